// SPDX-License-Identifier: Apache-2.0
// Subscribes to readout.cpp and checks the sequence and every byte: readout_check HOST:PORT
#include "apps/examples/readout_event.hpp"
#include "netio/fabric.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <array>
#include <cstdio>
#include <cstring>

struct Checker final : netio::pubsub::SubscribeSocket::Handler {
    explicit Checker(netio::EventLoop& of) : loop{of} {}
    void on_message(netio::pubsub::SubscribeSocket&, netio::pubsub::Fid fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        const std::size_t link = netio::pubsub::to_integer(fid);
        std::uint64_t event = 0;
        std::memcpy(&event, message.data() + 1, message.size() < 9 ? 0 : 8);
        if (messages == 0) { // a late subscriber misses some
            std::printf("the first message is of event %llu\n",
                        static_cast<unsigned long long>(event));
            std::fflush(stdout);
        }
        if (expected.at(link) == not_seen) expected[link] = event;
        bool good = event == expected[link]++ && message.size() == 1 + readout::words * 8 &&
                    message[0] == std::byte{readout::status_of(event)};
        for (std::size_t i = 0; good && i < readout::words; ++i) {
            std::uint64_t word = 0;
            std::memcpy(&word, &message[1 + i * 8], 8);
            good = word == readout::word(event, link, i);
        }
        ++messages;
        if (!good) ++wrong;
    }
    void on_closed(netio::pubsub::SubscribeSocket&, const netio::Closed& closed,
                   bool retrying) override {
        orderly = closed.reason == netio::CloseReason::orderly;
        if (!retrying) loop.stop();
    }
    netio::EventLoop& loop;
    static constexpr std::uint64_t not_seen = UINT64_MAX;
    std::array<std::uint64_t, readout::links> expected{not_seen, not_seen};
    std::uint64_t messages = 0, wrong = 0;
    bool orderly = false;
};

int main(int argc, char** argv) {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Checker checker{loop};
    netio::pubsub::SubscribeSocket socket{
        *transport,
        {.publisher = netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345")},
        checker};
    socket.subscribe(
        {.first = netio::pubsub::Fid{0}, .last = netio::pubsub::Fid{readout::links - 1}});
    loop.run();
    std::printf("checked %llu messages, %llu wrong\n",
                static_cast<unsigned long long>(checker.messages),
                static_cast<unsigned long long>(checker.wrong));
    return checker.orderly && checker.messages > 0 && checker.wrong == 0 ? 0 : 1;
}
