// SPDX-License-Identifier: Apache-2.0

// Misbehaving peers affect only their own connection. Unauthenticated peers: strangers_test.cpp.

#include "pubsub/core/wire.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/scenario/pubsub/intruder.hpp"

#include <gmock/gmock.h>

#include <random>

namespace netio::pubsub::test::hostility_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Service;
using netio::Status;

class Hostility : public PubSubScenario {
  protected:
    void start() {
        publisher = unbuffered({});
        // Long time-outs, so that the connection survives on a busy machine.
        SubscribeSocket::Options patient;
        patient.session.connect_timeout = std::chrono::minutes{1};
        honest = &subscribe({range(1, 1)}, patient);
        ASSERT_TRUE(run_until([&] { return honest->actor.subscribed.size() == 1; }));
    }
    // The honest subscriber is served, and another one can still connect.
    void expect_service() {
        const std::size_t before = honest->actor.messages;
        for (std::uint64_t i = 0; i < 20; ++i) {
            ASSERT_TRUE(run_until([&] {
                return publisher->publish(Fid{1}, memory.slice(), Cookie{next_key}) == Status::ok;
            }));
            ++next_key;
        }
        ASSERT_TRUE(run_until([&] { return honest->actor.messages == before + 20; }));
        auto& late = subscribe({range(2, 2)});
        ASSERT_TRUE(run_until([&] { return late.actor.subscribed.size() == 1; }));
        for (const netio::Closed& closed : honest->actor.closed)
            ADD_FAILURE() << "the honest subscriber lost its connection: " << closed.detail;
    }

    netio::RegisteredBuffer memory{1000};
    std::uint64_t next_key = 0;
    std::unique_ptr<PublishSocket> publisher;
    Subscription* honest = nullptr;
};

// --- inside: malformed frames ---------------------------------------------------------------

using MalformedFrames = Hostility;

struct Malformed {
    const char* what;
    std::function<void(Impostor&)> send;
};

std::vector<std::byte> bytes_of(std::size_t size, int value = 0) {
    return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

std::vector<Malformed> malformed_messages() {
    const auto service_frame = [](std::uint8_t kind, const std::vector<std::byte>& body,
                                  std::uint8_t flags = 0) {
        return [=](Impostor& peer) {
            peer.send_open();
            peer.send_frame({.kind = kind, .flags = flags, .credits = 0, .sequence = 1}, body);
        };
    };
    std::vector<std::byte> backwards(request_header_bytes + range_bytes);
    const FidRange wrong{.first = Fid{2}, .last = Fid{1}};
    encode_request(1, std::span{&wrong, 1}, backwards);
    std::vector<std::byte> good(request_header_bytes + range_bytes);
    const FidRange right{.first = Fid{1}, .last = Fid{2}};
    encode_request(1, std::span{&right, 1}, good);
    return {
        {"a message shorter than a header", [](Impostor& peer) { peer.send(bytes_of(3)); }},
        {"no open frame",
         [](Impostor& peer) { peer.send_frame({.kind = 20, .sequence = 0}, bytes_of(24)); }},
        {"a frame out of sequence",
         [](Impostor& peer) {
             peer.send_open();
             peer.send_frame({.kind = 3, .sequence = 7});
         }},
        {"a second open frame",
         [](Impostor& peer) {
             peer.send_open();
             peer.send_frame({.kind = 1, .sequence = 1});
         }},
        {"more credits than receives",
         [](Impostor& peer) {
             peer.send_open();
             peer.send_frame({.kind = 2, .credits = 60000, .sequence = 1});
         }},
        {"an unknown kind of the session", service_frame(9, {})},
        {"an unknown kind of the service", service_frame(200, {})},
        {"a page, which only publishers send", service_frame(page_kind, bytes_of(100))},
        {"totals answered that were not told", service_frame(totals_answer_kind, {})},
        {"a subscription without ranges", service_frame(subscribe_kind, bytes_of(8))},
        {"half a range", service_frame(subscribe_kind, bytes_of(20))},
        {"a range backwards", service_frame(subscribe_kind, backwards)},
        {"an unknown flag", service_frame(subscribe_kind, good, 128)},
        {"an unsubscription in pieces", service_frame(unsubscribe_kind, bytes_of(9))},
    };
}

TEST_P(MalformedFrames, CloseOnlyTheirOwnConnection) {
    start();
    for (const Malformed& each : malformed_messages()) {
        SCOPED_TRACE(each.what);
        const std::size_t closed_before = publisher_actor.closed.size();
        Impostor impostor{transport(), address, Service::publish_subscribe};
        ASSERT_TRUE(run_until([&] { return impostor.connected; }));
        each.send(impostor);
        ASSERT_TRUE(run_until([&] { return impostor.closed; }));
        // The user gets the end of those peers that were reported to it before.
        for (std::size_t i = closed_before; i < publisher_actor.closed.size(); ++i)
            EXPECT_EQ(publisher_actor.closed[i].reason, CloseReason::protocol_error);
        expect_service();
    }
}

TEST_P(MalformedFrames, RandomBytesAfterAGoodHandshakeToo) {
    start();
    for (unsigned seed = 0; seed < 30; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random{seed};
        Impostor impostor{transport(), address, Service::publish_subscribe};
        ASSERT_TRUE(run_until([&] { return impostor.connected; }));
        impostor.send_open();
        std::vector<std::byte> body(random() % 2000);
        for (std::byte& byte : body)
            byte = static_cast<std::byte>(random());
        impostor.send_frame({.kind = static_cast<std::uint8_t>(random()),
                             .flags = static_cast<std::uint8_t>(random() % 3),
                             .credits = 0,
                             .sequence = 1},
                            body);
        impostor.send_frame({.kind = 255, .sequence = 9999}); // if the first was valid by chance
        ASSERT_TRUE(run_until([&] { return impostor.closed; }));
    }
    expect_service();
}

TEST_P(MalformedFrames, AnotherServiceIsAcceptFailed) {
    start();
    Impostor impostor{transport(), address, Service::messages};
    ASSERT_TRUE(run_until([&] { return impostor.closed; }));
    EXPECT_FALSE(impostor.connected);
    EXPECT_EQ(impostor.rejected, netio::RejectCode::other_service);
    expect_service();
}

TEST_P(MalformedFrames, AnEarlierAndALaterVersionAreRejectedAndReported) {
    start();
    for (const int step : {-1, 1}) {
        const auto version = static_cast<std::uint8_t>(netio::wire_version + step);
        SCOPED_TRACE(int{version});
        Impostor impostor{transport(), address, Service::publish_subscribe, UINT32_MAX, version};
        ASSERT_TRUE(run_until([&] { return impostor.closed; }));
        EXPECT_FALSE(impostor.connected);
        EXPECT_EQ(impostor.rejected, netio::RejectCode::not_this_protocol);
        ASSERT_FALSE(bed.seen().rejected.empty());
        EXPECT_THAT(bed.seen().rejected.back(), testing::HasSubstr("another protocol or version"));
    }
    expect_service();
}

// The report has the address and the reason: the operator must fix a version mismatch.
TEST_P(MalformedFrames, RejectedSubscribersAreReportedToThePublisher) {
    start();
    const Impostor other_service{transport(), address, Service::messages};
    ASSERT_TRUE(run_until([&] { return bed.seen().rejected.size() == 1; }));
    const Impostor too_small{transport(), address, Service::publish_subscribe, 1000};
    ASSERT_TRUE(run_until([&] { return bed.seen().rejected.size() == 2; }));
    Impostor no_frame{transport(), address, Service::publish_subscribe};
    ASSERT_TRUE(run_until([&] { return no_frame.connected; }));
    no_frame.send(bytes_of(3));
    ASSERT_TRUE(run_until([&] { return bed.seen().rejected.size() == 3; }));
    EXPECT_THAT(bed.seen().rejected,
                testing::ElementsAre(testing::HasSubstr("another service"),
                                     testing::HasSubstr("messages as large as"),
                                     testing::HasSubstr("a frame without a header")));
    expect_service();
}

INSTANTIATE_TEST_SUITE_P(Beds, MalformedFrames, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::hostility_test
