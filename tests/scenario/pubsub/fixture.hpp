// SPDX-License-Identifier: Apache-2.0
#pragma once

// One publisher and any number of subscribers on a test bed.

#include "pubsub/core/wire.hpp"
#include "tests/scenario/pubsub/actors.hpp"
#include "tests/scenario/pubsub/intruder.hpp"
#include "tests/support/test_bed.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace netio::pubsub::test {

using netio::test::all_beds;
using netio::test::Bed;
using netio::test::bed_name;
using netio::test::TestBed;

class PubSubScenario : public testing::TestWithParam<Bed> {
  protected:
    struct Subscription {
        SubscriberActor actor;
        std::unique_ptr<SubscribeSocket> socket;
    };

    netio::EventLoop& loop() { return bed.loop(); }
    netio::Transport& transport() { return bed.transport(); }
    bool run_until(const std::function<bool()>& done) { return bed.run_until(done); }

    std::unique_ptr<BufferedPublishSocket> buffered(BufferedPublishSocket::Options options) {
        options.publisher.listen = {bed.address()};
        options.publisher.allow_remote_anonymous = true;
        auto socket =
            std::make_unique<BufferedPublishSocket>(transport(), options, publisher_actor);
        address = socket->endpoints().front().address;
        return socket;
    }
    std::unique_ptr<PublishSocket> unbuffered(PublishSocket::Options options) {
        options.publisher.listen = {bed.address()};
        options.publisher.allow_remote_anonymous = true;
        auto socket = std::make_unique<PublishSocket>(transport(), options, publisher_actor);
        address = socket->endpoints().front().address;
        return socket;
    }
    Subscription& subscribe(const std::vector<FidRange>& ranges,
                            SubscribeSocket::Options options = {},
                            std::optional<SlowPolicy> policy = {}) {
        options.publisher = address;
        Subscription& made = *subscribers.emplace_back(std::make_unique<Subscription>());
        made.socket = std::make_unique<SubscribeSocket>(transport(), options, made.actor);
        made.socket->subscribe(ranges, policy);
        return made;
    }
    // A subscriber that receives as much as its receive buffers hold and then nothing more.
    std::unique_ptr<Impostor> stuck(const FidRange& range, std::optional<SlowPolicy> policy = {}) {
        const std::size_t before = publisher_actor.subscribed.size();
        auto peer =
            std::make_unique<Impostor>(transport(), address, netio::Service::publish_subscribe);
        EXPECT_TRUE(run_until([&] { return peer->connected; }));
        peer->send_open();
        request(*peer, 1, range, policy);
        EXPECT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == before + 1; }));
        return peer;
    }
    // Its nth request.
    static void request(Impostor& peer, std::uint32_t nth, const FidRange& range,
                        std::optional<SlowPolicy> policy) {
        std::vector<std::byte> body(request_header_bytes + range_bytes);
        encode_request(nth, std::span{&range, 1}, body, policy);
        peer.send_frame({.kind = subscribe_kind, .sequence = nth}, body);
    }
    static netio::Status publish(BufferedPublishSocket& socket, Fid fid, std::uint64_t number,
                                 std::size_t size) {
        return socket.publish(fid, make_message(fid, number, size));
    }

    TestBed bed{GetParam()};
    PublisherActor publisher_actor;
    netio::Address address;
    std::vector<std::unique_ptr<Subscription>> subscribers;
};

} // namespace netio::pubsub::test
