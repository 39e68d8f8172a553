// SPDX-License-Identifier: Apache-2.0
// Passes one message from a publisher to a subscriber in one loop. Fails if the libraries are not
// of the expected version: consumer VERSION
#include "netio/base/version.hpp"
#include "netio/fabric.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <cstdio>
#include <cstring>

namespace {

const char greeting[] = "it arrived";

struct Receiver : netio::pubsub::SubscribeSocket::Handler {
    netio::EventLoop& loop;
    netio::pubsub::BufferedPublishSocket& publisher;
    bool arrived = false;

    Receiver(netio::EventLoop& loop_, netio::pubsub::BufferedPublishSocket& publisher_)
        : loop{loop_}, publisher{publisher_} {}
    void on_subscribed(netio::pubsub::SubscribeSocket&, const netio::pubsub::FidRange&) override {
        if (publisher.publish(netio::pubsub::Fid{7}, std::as_bytes(std::span{greeting})) !=
            netio::Status::ok)
            loop.stop();
    }
    void on_message(netio::pubsub::SubscribeSocket&, netio::pubsub::Fid fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        arrived = fid == netio::pubsub::Fid{7} && message.size() == sizeof greeting &&
                  std::memcmp(message.data(), greeting, sizeof greeting) == 0;
        loop.stop();
    }
    void on_closed(netio::pubsub::SubscribeSocket&, const netio::Closed& closed, bool) override {
        std::printf("closed: %s\n", closed.detail.c_str());
        loop.stop();
    }
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 2 || std::strcmp(argv[1], netio::version()) != 0) {
        std::printf("the library is version %s\n", netio::version());
        return 1;
    }
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop, {.provider = "tcp"});
    struct : netio::pubsub::Publisher::Handler {
    } subscribers_may_come;
    netio::pubsub::BufferedPublishSocket publisher{
        *transport, {.publisher = {.listen = {{"127.0.0.1", 0}}}}, subscribers_may_come};
    Receiver receiver{loop, publisher};
    netio::pubsub::SubscribeSocket subscriber{
        *transport, {.publisher = publisher.endpoints().at(0).address}, receiver};
    subscriber.subscribe(
        netio::pubsub::FidRange{.first = netio::pubsub::Fid{7}, .last = netio::pubsub::Fid{7}});
    loop.run();
    std::puts(receiver.arrived ? greeting : "nothing arrived");
    return receiver.arrived ? 0 : 1;
}
