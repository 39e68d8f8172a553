// SPDX-License-Identifier: Apache-2.0

// A publisher's answers to a subscriber that sends hand-made frames.

#include "netio/session/session.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include "pubsub/publisher/subscriber_session.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace netio::pubsub::test::publisher_requests_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Service;
using netio::Status;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A session that sends what the test wants and stores every received frame.
class Speaker final : private netio::Session::Handler {
  public:
    struct Frame {
        std::uint8_t kind = 0;
        std::uint8_t flags = 0;
        std::vector<std::byte> body;
    };

    Speaker(netio::Transport& transport, const netio::Address& address)
        : session_{transport,
                   {.provider = transport.providers_to(address).front(),
                    .remote = address,
                    .local_host = {}},
                   hello(),
                   {.receive_buffer_bytes = receive_buffer_bytes, .receive_count = 16},
                   static_cast<netio::Session::Handler&>(*this)} {}

    static constexpr std::size_t receive_buffer_bytes = 258 * 1024;

    void send(std::uint8_t kind, std::uint8_t flags, const std::vector<std::byte>& body) {
        EXPECT_EQ(session_.send({.kind = kind, .flags = flags, .extension = body, .slices = {}},
                                std::nullopt),
                  Status::ok);
    }
    void request(std::uint8_t kind, std::uint32_t number, const FidRange& range,
                 std::uint8_t flags = 0, std::optional<SlowPolicy> policy = {}) {
        std::vector<std::byte> body(request_header_bytes + range_bytes);
        encode_request(number, std::span{&range, 1}, body, policy);
        send(kind, flags, body);
    }
    // The answers, in their order.
    std::vector<std::pair<std::uint32_t, SubscriptionResult>> answers() const {
        std::vector<std::pair<std::uint32_t, SubscriptionResult>> found;
        for (const Frame& frame : frames) {
            if (frame.kind != subscription_answer_kind) continue;
            const auto answer = decode_answer(frame.body).value();
            found.emplace_back(answer.request, answer.result);
        }
        return found;
    }
    std::size_t count(std::uint8_t kind) const {
        return static_cast<std::size_t>(std::ranges::count(frames, kind, &Frame::kind));
    }

    // The largest message size that the publisher announces when it admits a peer.
    std::uint32_t largest_message() const {
        EXPECT_EQ(session_.peer().service_data.size, 4U);
        return netio::wire::load<std::uint32_t>(session_.peer().service_data.bytes.data());
    }

    bool is_open = false;
    std::vector<Frame> frames;
    std::vector<netio::Closed> closed;

  private:
    static netio::Hello hello() {
        netio::Hello hello{.service = Service::publish_subscribe, .service_data = {}};
        std::ranges::fill(hello.service_data.bytes, std::byte{0xff}); // accepts any message size
        hello.service_data.size = 4;
        return hello;
    }
    void on_open(netio::Session&) override { is_open = true; }
    void on_frame(netio::Session&, const netio::IncomingFrame& frame) override {
        frames.push_back({frame.kind, frame.flags, {frame.body.begin(), frame.body.end()}});
    }
    void on_sent(netio::Session&, Cookie, netio::Completion::Outcome) override {}
    void on_writable(netio::Session&) override {}
    void on_closed(netio::Session&, const netio::Closed& why) override { closed.push_back(why); }

    netio::Session session_;
};

class PublisherRequests : public PubSubScenario {
  protected:
    std::unique_ptr<Speaker> speaker() {
        auto made = std::make_unique<Speaker>(transport(), address);
        EXPECT_TRUE(run_until([&] { return made->is_open; }));
        return made;
    }
    // A peer that is subscribed to fid 1 by its first request.
    std::unique_ptr<Speaker> subscribed_speaker() {
        auto made = speaker();
        made->request(subscribe_kind, 1, range(1, 1));
        EXPECT_TRUE(run_until([&] { return made->answers().size() == 1; }));
        return made;
    }
    void expect_malformed(Speaker& speaker, std::size_t before = 0) {
        ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == before + 1; }));
        EXPECT_EQ(publisher_actor.closed.back().reason, CloseReason::protocol_error);
        EXPECT_TRUE(run_until([&] { return !speaker.closed.empty(); }));
    }
};

TEST_P(PublisherRequests, AnUnsubscriptionHasNoPolicyAndAsksForNoPositions) {
    auto publisher = buffered({});
    auto with_policy = subscribed_speaker();
    with_policy->request(unsubscribe_kind, 2, range(1, 1), 0, SlowPolicy::drop);
    expect_malformed(*with_policy);
    auto with_positions = subscribed_speaker();
    with_positions->request(unsubscribe_kind, 2, range(1, 1), positions_flag);
    expect_malformed(*with_positions, 1);
    auto with_another_flag = subscribed_speaker();
    with_another_flag->request(subscribe_kind, 2, range(1, 1), positions_flag | 2);
    expect_malformed(*with_another_flag, 2);
    EXPECT_THAT(publisher_actor.unsubscribed, IsEmpty());
}

// A later version may send options; only a mandatory one makes a difference.
TEST_P(PublisherRequests, AnUnknownMandatoryOptionIsRefusedAndNothingIsDone) {
    auto publisher = buffered({});
    auto peer = speaker();
    for (const std::uint8_t high_byte : {std::uint8_t{0x00}, std::uint8_t{0x80}}) {
        const FidRange wanted = range(1, 1);
        std::vector<std::byte> body(request_header_bytes + 4 + range_bytes);
        encode_request(high_byte, std::span{&wanted, 1}, body);
        std::rotate(body.begin() + request_header_bytes, body.end() - 4, body.end());
        body[6] = std::byte{4}; // bytes of the options: type 5, without a value
        body[8] = std::byte{5};
        body[9] = std::byte{high_byte};
        peer->send(subscribe_kind, 0, body);
    }
    ASSERT_TRUE(run_until([&] { return peer->answers().size() == 2; }));
    using enum SubscriptionResult;
    EXPECT_THAT(peer->answers(),
                ElementsAre(std::pair{0U, accepted}, std::pair{0x80U, unknown_option}));
    EXPECT_THAT(publisher_actor.subscribing, SizeIs(1));
    EXPECT_THAT(publisher_actor.subscribed, SizeIs(1));
    EXPECT_THAT(peer->closed, IsEmpty());
}

TEST_P(PublisherRequests, AnAdmittedPeerGetsTheLargestMessageSize) {
    auto lent = unbuffered({.publisher = {.largest_message_bytes = 12345}});
    EXPECT_EQ(speaker()->largest_message(), 12345U);
    auto pages = buffered({.page_size_bytes = 1024, .page_count = 4});
    EXPECT_EQ(speaker()->largest_message(), pages->message_limit());
}

// Its connection is closed when it unsubscribes its last fid, not when it never had one.
TEST_P(PublisherRequests, UnsubscribingAnUnknownFidKeepsTheConnection) {
    auto publisher = buffered({});
    auto peer = speaker();
    peer->request(unsubscribe_kind, 1, range(1, 1));
    ASSERT_TRUE(run_until([&] { return peer->answers().size() == 1; }));
    peer->request(subscribe_kind, 2, range(1, 1));
    ASSERT_TRUE(run_until([&] { return peer->answers().size() == 2; }));
    peer->request(unsubscribe_kind, 3, range(2, 2));
    ASSERT_TRUE(run_until([&] { return peer->answers().size() == 3; }));
    EXPECT_THAT(peer->closed, IsEmpty());
    peer->request(unsubscribe_kind, 4, range(0, 9));
    ASSERT_TRUE(run_until([&] { return !peer->closed.empty(); }));
    EXPECT_EQ(peer->closed[0].reason, CloseReason::orderly);
    using enum SubscriptionResult;
    EXPECT_THAT(peer->answers(), ElementsAre(std::pair{1U, accepted}, std::pair{2U, accepted},
                                             std::pair{3U, accepted}, std::pair{4U, accepted}));
}

// The connection stays, so no message published from now on is lost.
TEST_P(PublisherRequests, UnsubscribingAndSubscribingAtOnceKeepsTheConnection) {
    auto publisher = buffered({});
    auto peer = subscribed_speaker();
    peer->request(unsubscribe_kind, 2, range(1, 1));
    peer->request(subscribe_kind, 3, range(1, 1));
    ASSERT_TRUE(run_until([&] { return peer->answers().size() == 3; }));
    bed.let_pass(2 * Subscriber::leave_after);
    EXPECT_THAT(peer->closed, IsEmpty());
    EXPECT_THAT(publisher_actor.subscribed, SizeIs(2));
    EXPECT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
}

TEST_P(PublisherRequests, RequestedPositionsPrecedeTheAnswer) {
    auto publisher = buffered({});
    for (std::uint64_t fid = 1; fid <= 2; ++fid)
        ASSERT_EQ(publish(*publisher, Fid{fid}, 0, 40), Status::no_subscribers);
    auto peer = speaker();
    peer->request(subscribe_kind, 1, range(1, 1));
    peer->request(subscribe_kind, 2, range(2, 2), positions_flag);
    ASSERT_TRUE(run_until([&] { return peer->answers().size() == 2; }));
    ASSERT_THAT(peer->frames, SizeIs(3));
    EXPECT_EQ(peer->frames[0].kind, subscription_answer_kind) << "it has not asked for them";
    EXPECT_EQ(peer->frames[1].kind, positions_kind);
    const std::span body{peer->frames[1].body};
    EXPECT_EQ(decode_positions(body).value().request, 2U);
    EXPECT_THAT(decode_counts(body.subspan(positions_extension_bytes)).value(),
                ElementsAre(FidCount{Fid{2}, 1}));
    EXPECT_EQ(peer->frames[2].kind, subscription_answer_kind);
}

// --- while the publisher ends ---------------------------------------------------------------

TEST_P(PublisherRequests, AfterTheTotalsAreNotAnsweredAndHarmless) {
    auto publisher = buffered({});
    auto peer = subscribed_speaker();
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return peer->count(totals_kind) == 1; }));
    peer->request(subscribe_kind, 2, range(2, 2));
    peer->request(unsubscribe_kind, 3, range(1, 1));
    peer->send(totals_answer_kind, 0, {});
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
    EXPECT_THAT(publisher_actor.subscribed, SizeIs(1));
    EXPECT_THAT(publisher_actor.unsubscribed, IsEmpty());
    EXPECT_THAT(peer->answers(), SizeIs(1));
    EXPECT_TRUE(run_until([&] { return !peer->closed.empty(); }));
    EXPECT_EQ(peer->closed[0].reason, CloseReason::orderly);
}

TEST_P(PublisherRequests, AnAnswerToTheTotalsHasNoFlagsAndNoBody) {
    const std::vector<std::pair<std::uint8_t, std::size_t>> malformed{{1, 0}, {0, 8}};
    for (const auto& [flags, bytes] : malformed) {
        publisher_actor = {};
        auto publisher = buffered({});
        auto peer = subscribed_speaker();
        publisher->close();
        ASSERT_TRUE(run_until([&] { return peer->count(totals_kind) == 1; }));
        peer->send(totals_answer_kind, flags, std::vector<std::byte>(bytes));
        expect_malformed(*peer);
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        EXPECT_EQ(publisher_actor.end.reason, CloseReason::unconfirmed);
    }
}

// --- limits ---------------------------------------------------------------------------------

TEST_P(PublisherRequests, PendingAnswersAreLimitedAndOneMoreEndsTheConnection) {
    constexpr std::uint32_t limit = 3;
    auto publisher = buffered(
        {.publisher = {.pending_reply_limit = limit}, .page_size_bytes = 1024, .page_count = 64});
    auto guest = stuck(range(1, 1));
    while (publish(*publisher, Fid{1}, 0, 900) == Status::ok)
        publisher->flush(); // until nothing more leaves for it
    std::uint32_t number = 1;
    const auto ask = [&] { request(*guest, ++number, range(2, 2), {}); };
    for (std::uint32_t i = 0; i < limit; ++i)
        ask();
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1 + limit; }));
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
    ask();
    ASSERT_TRUE(run_until([&] { return !publisher_actor.closed.empty(); }));
    EXPECT_EQ(publisher_actor.closed[0].reason, CloseReason::protocol_error);
    EXPECT_THAT(publisher_actor.closed[0].detail,
                HasSubstr("more requests than pending_reply_limit, 3"));
}

// --- what the frames say --------------------------------------------------------------------

// The protocol demands this: so a fragment is never mistaken for one of the previous message.
TEST_P(PublisherRequests, FragmentsOfConsecutiveMessagesHaveDifferentNumbers) {
    auto pages = buffered({.page_size_bytes = 1024, .page_count = 64});
    auto of_pages = subscribed_speaker();
    auto lent = unbuffered({});
    auto of_lent = subscribed_speaker();
    constexpr std::size_t bytes = 2 * Speaker::receive_buffer_bytes;
    netio::RegisteredBuffer memory{bytes};
    for (std::uint64_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(run_until([&] { return publish(*pages, Fid{1}, i, 5000) == Status::ok; }));
        ASSERT_EQ(lent->publish(Fid{1}, memory.slice(), Cookie{i}), Status::ok);
    }
    for (Speaker* const peer : {of_pages.get(), of_lent.get()}) {
        const std::size_t total = peer == of_pages.get() ? 5000 : bytes;
        std::vector<std::uint32_t> numbers; // of each message
        const auto look = [&] {
            numbers.clear();
            std::size_t arrived = 0;
            for (const Speaker::Frame& frame : peer->frames) {
                if (frame.kind != fragment_kind) continue;
                const auto fragment = decode_fragment(frame.body).value();
                if (fragment.offset == 0) numbers.push_back(fragment.message_number);
                EXPECT_EQ(fragment.message_number, numbers.back());
                EXPECT_EQ(fragment.total, total);
                arrived += frame.body.size() - fragment_extension_bytes;
            }
            return arrived == 3 * total;
        };
        ASSERT_TRUE(run_until(look));
        EXPECT_EQ((std::set<std::uint32_t>{numbers.begin(), numbers.end()}).size(), 3U);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherRequests, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::publisher_requests_test
