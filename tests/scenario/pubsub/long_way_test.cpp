// SPDX-License-Identifier: Apache-2.0

// A subscriber at a distance of 10 ms with a growing window: whether it is slow or not, and at each
// protection level, the counters of both sides agree until the end.

#include "tests/scenario/pubsub/exact_account.hpp"
#include "tests/support/protected_bed.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <tuple>
#include <utility>

namespace netio::pubsub::test::long_way_test {
namespace {

using namespace std::chrono_literals;
using netio::CloseReason;
using netio::Status;
using netio::access::Protection;
using netio::test::AgreedKeys;
using netio::test::Bed;
using netio::test::TestBed;
using testing::IsEmpty;

using Level = std::tuple<SlowPolicy, Protection>;

std::string name_of(const testing::TestParamInfo<Level>& info) {
    static constexpr std::array names{"block", "drop", "disconnect", "newest"};
    return names.at(static_cast<std::size_t>(std::get<0>(info.param))) + std::string{"_"} +
           std::string{to_string(std::get<1>(info.param))};
}

class LongWay : public testing::TestWithParam<Level> {
  protected:
    static constexpr std::uint64_t fids = 4;
    static constexpr std::uint64_t messages = 20'000;
    static constexpr std::size_t message_bytes = 200;
    static constexpr std::size_t receive_buffer_bytes = 2048;
    static constexpr std::size_t receives_at_most = 64;

    LongWay() { bed.sim()->network().set_path(0, 0, {.delay = 10ms}); }

    bool run_until(const std::function<bool()>& done) { return bed.run_until(done); }
    std::unique_ptr<BufferedPublishSocket> make_publisher() {
        return std::make_unique<BufferedPublishSocket>(
            bed.transport(),
            BufferedPublishSocket::Options{.publisher = {.listen = {bed.address()},
                                                         .keys = keys.server(),
                                                         .slow_policy = SlowPolicy::block},
                                           .page_size_bytes = 1024,
                                           .page_count = 128,
                                           .queue_limit_bytes = 64 * 1024},
            publisher_actor);
    }
    std::unique_ptr<SubscribeSocket> make_subscriber(const Address& address) {
        SubscribeSocket::Options options;
        options.publisher = address;
        options.key = keys.client();
        options.session.receive_buffer_bytes = receive_buffer_bytes;
        options.session.window_limit = receives_at_most * receive_buffer_bytes;
        auto socket = std::make_unique<SubscribeSocket>(bed.transport(), options, actor);
        socket->subscribe(range(1, fids), policy);
        return socket;
    }
    // Publishes the next messages; returns false if the call must be repeated.
    bool publish(BufferedPublishSocket& publisher, std::uint64_t count) {
        for (const std::uint64_t end = std::min(next + count, messages); next < end; ++next) {
            const Fid fid{1 + next % fids};
            const auto message = make_message(fid, next / fids, message_bytes);
            const Status status = publisher.publish(fid, message);
            if (status == Status::again) return false;
            EXPECT_EQ(status, Status::ok);
        }
        return true;
    }
    // Continuously publishes more than the path carries.
    void flood(BufferedPublishSocket& publisher) {
        netio::Timer more{bed.loop(), [&] {
                              EXPECT_TRUE(publish(publisher, 40)) << "no subscriber blocks it";
                              if (next < messages) more.start(1ms);
                          }};
        if (may_drop(policy)) {
            more.start({});
        } else {
            publisher_actor.at_room = [&] { publish(publisher, messages); };
            publisher_actor.at_room();
        }
        ASSERT_TRUE(run_until([&] { return next == messages; }));
        publisher_actor.at_room = {};
    }
    // The publisher's own receive window does not grow.
    std::size_t grown_by() { return bed.transport().window_budget().used() / receive_buffer_bytes; }

    SlowPolicy policy = std::get<0>(GetParam());
    TestBed bed{Bed::sim_tcp};
    AgreedKeys keys{bed.loop(), std::get<1>(GetParam())};
    PublisherActor publisher_actor;
    SubscriberActor actor;
    std::uint64_t next = 0;
};

TEST_P(LongWay, IsFilledByAWindowThatGrowsAndEndsInOrder) {
    const auto publisher = make_publisher();
    auto subscriber = make_subscriber(publisher->endpoints().front().address);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
    EXPECT_EQ(grown_by(), 0U);
    flood(*publisher);
    EXPECT_GE(grown_by(), receives_at_most - SubscribeSocket::Options{}.session.receive_count);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());

    // Messages not received yet are in transit and in the publisher's pages.
    EXPECT_LT(actor.messages, messages);
    std::size_t grown_at_the_end = 0;
    actor.at_totals = [&](SubscribeSocket&) { grown_at_the_end = grown_by(); };
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1 && !actor.closed.empty(); }));
    EXPECT_GT(grown_at_the_end, 0U);
    EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly) << publisher_actor.end.detail;
    EXPECT_EQ(actor.closed[0].reason, CloseReason::orderly) << actor.closed[0].detail;

    const Publisher::Counters& sent = publisher->counters();
    EXPECT_EQ(sent.messages, messages);
    EXPECT_EQ(sent.dropped > 0, may_drop(policy)) << sent.dropped;
    EXPECT_EQ(actor.totals, 1);
    EXPECT_EQ(actor.lost, sent.dropped);
    EXPECT_EQ(actor.messages + sent.dropped, messages);
    for (std::uint64_t fid = 1; fid <= fids; ++fid) {
        expect_exact_account(actor, Fid{fid}, messages / fids);
        if (policy == SlowPolicy::newest) {
            EXPECT_EQ(actor.by_fid[Fid{fid}].back().number, messages / fids - 1);
        }
    }
    subscriber.reset();
    EXPECT_EQ(bed.transport().window_budget().used(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Levels, LongWay,
                         testing::Combine(testing::ValuesIn(slow_policies),
                                          testing::Values(Protection::none, Protection::peers,
                                                          Protection::integrity,
                                                          Protection::privacy)),
                         name_of);

} // namespace
} // namespace netio::pubsub::test::long_way_test
