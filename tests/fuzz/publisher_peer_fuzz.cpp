// SPDX-License-Identifier: Apache-2.0

// Publishers, buffered and unbuffered, with a subscriber that sends arbitrary frames, in some
// inputs after authentication and within the rights of its key.

#include "netio/session/server_keys.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "tests/fuzz/stranger.hpp"

#include <map>
#include <memory>

namespace netio::fuzz::publisher_peer_fuzz {
namespace {

using pubsub::Fid;

struct User final : pubsub::PublishSocket::Handler {
    void on_publish_completed(pubsub::PublishSocket&, Cookie cookie,
                              const pubsub::PublicationOutcome&) override {
        NETIO_CHECK_MSG(--lent[cookie] == 0, "a cookie came back twice");
    }
    std::map<Cookie, int> lent;
};

pubsub::Publisher::Options options(Input& input, const std::shared_ptr<ServerKeys>& keys) {
    pubsub::Publisher::Options options;
    options.listen = {Scene::address()};
    options.keys = keys;
    options.session.rekey_after_bytes = 200;
    options.session.receive_buffer_bytes = 1024;
    options.slow_policy = static_cast<pubsub::SlowPolicy>(input.below(3));
    options.ranges_per_subscriber_limit = 4;
    return options;
}

const Target buffered{
    "publisher_peer", [](Bytes bytes) {
        Input input{bytes};
        Scene scene;
        User user;
        RegisteredBuffer memory{6000};
        std::shared_ptr<ServerKeys> keys;
        if (input.flag()) {
            keys = std::make_shared<ServerKeys>(scene.loop(),
                                                ServerKeys::Options{.file = site().site()});
        }
        pubsub::BufferedPublishSocket pages{
            scene.transport(), {.publisher = options(input, keys)}, user};
        pubsub::PublishSocket single{scene.transport(), {.publisher = options(input, keys)}, user};
        const bool of_pages = input.flag();
        Stranger stranger{scene, Service::publish_subscribe};
        if (keys) static_cast<void>(stranger.hold_key_of_site(input));
        stranger.connect((of_pages ? pages.endpoints() : single.endpoints()).front().address,
                         input);
        std::uint64_t next = 0;
        while (!input.empty()) {
            if (input.below(4) != 0) {
                stranger.act(input);
                continue;
            }
            const Fid fid{input.below(4)};
            const Slice slice = memory.slice(0, input.number(2) % memory.size());
            const Cookie cookie{next++};
            if (of_pages) {
                static_cast<void>(pages.publish(fid, {slice.data, slice.size}));
            } else if (single.publish(fid, slice, cookie) == Status::ok) {
                ++user.lent[cookie];
            }
            if (input.below(64) == 0) pages.close();
            if (input.below(64) == 0) single.close();
        }
        pages.abort();
        single.abort();
        scene.run(std::chrono::seconds{1});
    }};

} // namespace
} // namespace netio::fuzz::publisher_peer_fuzz
