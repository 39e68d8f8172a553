// SPDX-License-Identifier: Apache-2.0

// Published messages reach all their subscribers, in order and complete.

#include "pubsub/core/fid_ranges.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <random>

namespace netio::pubsub::test::delivery_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using testing::ElementsAre;
using testing::IsEmpty;

using Delivery = PubSubScenario;

TEST_P(Delivery, BufferedMessagesOfManyFidsShareAPage) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(0, 63)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 640; ++i)
        ASSERT_EQ(publish(*publisher, Fid{i % 64}, i / 64, 40), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (std::uint64_t fid = 0; fid < 64; ++fid)
        subscriber.actor.expect_contiguous(Fid{fid}, 0, 10);
    EXPECT_EQ(publisher->counters().pages, 1U);
    EXPECT_EQ(subscriber.actor.totals, 1);
    EXPECT_EQ(subscriber.actor.lost, 0U);
    EXPECT_TRUE(subscriber.socket->seen().pages);
    EXPECT_FALSE(subscriber.socket->seen().messages);
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::orderly);
}

TEST_P(Delivery, UnbufferedMessagesOfEverySizeArriveWholeAndCompleteOnce) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(5, 5)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    const std::vector<std::size_t> sizes{8,     9,      40,     56,     57,      64,     1000,
                                         65536, 67552,  67553,  67584,  67585,   131072, 200000,
                                         8,     500000, 100000, 333333, 1000000, 12};
    std::vector<std::unique_ptr<netio::RegisteredBuffer>> memory;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto message = make_message(Fid{5}, i, sizes[i]);
        memory.push_back(std::make_unique<netio::RegisteredBuffer>(message.size()));
        std::ranges::copy(message, memory.back()->data());
        ASSERT_EQ(publisher->publishv(Fid{5}, std::array{memory.back()->slice()}, Cookie{i},
                                      {.status = static_cast<std::uint8_t>(i), .header = {}}),
                  Status::ok);
    }
    EXPECT_THAT(publisher_actor.completions, IsEmpty()) << "no callback within a call";
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    subscriber.actor.expect_contiguous(Fid{5}, 0, sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(subscriber.actor.by_fid[Fid{5}][i].size, sizes[i]);
        EXPECT_EQ(subscriber.actor.by_fid[Fid{5}][i].status, i);
        EXPECT_EQ(publisher_actor.completions[i], 1);
    }
    EXPECT_EQ(subscriber.actor.lost, 0U);
}

TEST_P(Delivery, BufferedMessagesLargerThanAPageArriveWholeAndInOrder) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 16});
    auto& subscriber = subscribe({range(1, 2)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    const std::vector<std::size_t> sizes{40, 1010, 1011, 1012, 5000, 8, 15 * 1024, 100, 2048};
    std::uint64_t next = 0;
    const std::uint64_t count = 300;
    publisher_actor.at_room = [&] {
        while (next < count) {
            const std::uint64_t number = next / 2;
            const Status status =
                publish(*publisher, Fid{1 + next % 2}, number, sizes[next % sizes.size()]);
            if (status == Status::again) return;
            ASSERT_EQ(status, Status::ok);
            ++next;
        }
        publisher->close();
    };
    publisher_actor.at_room();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, count / 2);
    subscriber.actor.expect_contiguous(Fid{2}, 0, count / 2);
    EXPECT_GT(publisher->counters().again, 0U) << "the test must reach the limit";
    EXPECT_EQ(publish(*publisher, Fid{1}, 0, 8), Status::closed);
}

TEST_P(Delivery, TooLargeIsRefusedPermanently) {
    auto small_pages = buffered({.page_size_bytes = 1024, .page_count = 4});
    EXPECT_EQ(small_pages->message_limit(), 3 * 1024U);
    EXPECT_EQ(publish(*small_pages, Fid{1}, 0, 3 * 1024 + 1), Status::too_large);
    auto publisher = unbuffered({.publisher = {.largest_message_bytes = 100}});
    netio::RegisteredBuffer memory{200};
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(0, 101), Cookie{1}), Status::too_large);
    const std::vector<netio::Slice> slices(29, memory.slice(0, 1));
    EXPECT_EQ(publisher->publishv(Fid{1}, slices, Cookie{1}), Status::too_many_segments);
}

TEST_P(Delivery, UpTo28SlicesAndAUserHeaderAreOneMessage) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(7, 7)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t number = 0;
    std::vector<std::unique_ptr<netio::RegisteredBuffer>> memory;
    for (const std::size_t slices : {0U, 1U, 2U, 3U, 4U, 5U, 27U, 28U}) {
        for (const std::size_t bytes : {1U, 100U, 5000U}) {
            // The header is the message's first eight bytes: its number.
            const auto message = make_message(Fid{7}, number, 8 + slices * bytes);
            memory.push_back(std::make_unique<netio::RegisteredBuffer>(message.size()));
            std::ranges::copy(message, memory.back()->data());
            std::vector<netio::Slice> list;
            for (std::size_t i = 0; i < slices; ++i)
                list.push_back(memory.back()->slice(8 + i * bytes, bytes));
            ASSERT_EQ(publisher->publishv(Fid{7}, list, Cookie{number},
                                          {.status = 0, .header = std::span{message}.first(8)}),
                      Status::ok);
            ++number;
            ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == number; }));
        }
    }
    subscriber.actor.expect_contiguous(Fid{7}, 0, number);
}

TEST_P(Delivery, NoSubscribersMeansNoCompletion) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{64};
    EXPECT_EQ(publisher->publish(Fid{2}, memory.slice(), Cookie{1}), Status::no_subscribers);
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{2}), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_THAT(publisher_actor.completions, ElementsAre(std::pair{2U, 1}));
    EXPECT_EQ(publisher->counters().without_subscribers, 1U);
}

TEST_P(Delivery, AMessageInPartsArrivesAsOneWhateverItsSize) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 32});
    auto& subscriber = subscribe({range(4, 4)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t number = 0;
    for (const std::size_t size : {8U, 9U, 40U, 500U, 1023U, 1024U, 1025U, 5000U}) {
        const auto message = make_message(Fid{4}, number, size);
        const std::span whole{message};
        const std::array parts{whole.first(1), whole.subspan(1, 0), whole.subspan(1, size / 2),
                               whole.subspan(1 + size / 2)};
        const std::array<std::span<const std::byte>, 4> lent{parts[0], parts[1], parts[2],
                                                             parts[3]};
        ASSERT_EQ(publisher->publishv(Fid{4}, lent, static_cast<std::uint8_t>(number)), Status::ok);
        ++number;
    }
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == number; }));
    subscriber.actor.expect_contiguous(Fid{4}, 0, number);
    EXPECT_EQ(subscriber.actor.by_fid[Fid{4}].back().size, 5000U);
    EXPECT_EQ(subscriber.actor.by_fid[Fid{4}].back().status, number - 1);
}

TEST_P(Delivery, EverySubscriberGetsExactlyItsFids) {
    auto publisher = buffered({.page_size_bytes = 2048, .page_count = 32});
    const std::vector<std::vector<FidRange>> wishes{
        {range(0, 9)}, {range(5, 14)}, {range(3, 3), range(12, 12)}, {range(0, UINT64_MAX)}};
    for (const auto& wish : wishes)
        subscribe(wish);
    ASSERT_TRUE(run_until([&] {
        return std::ranges::all_of(subscribers, [](const auto& each) {
            return each->actor.subscribed.size() == each->socket->wanted().size();
        });
    }));
    constexpr std::uint64_t fids = 16;
    constexpr std::uint64_t each = 100;
    std::uint64_t next = 0;
    publisher_actor.at_room = [&] {
        for (; next < fids * each; ++next)
            if (publish(*publisher, Fid{next % fids}, next / fids, 60) != Status::ok) return;
        publisher->close();
    };
    publisher_actor.at_room();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        for (std::uint64_t fid = 0; fid < fids; ++fid) {
            const bool wanted = std::ranges::any_of(
                wishes[i], [&](const FidRange& wish) { return contains(wish, Fid{fid}); });
            subscribers[i]->actor.expect_contiguous(Fid{fid}, 0, wanted ? each : 0);
        }
        EXPECT_EQ(subscribers[i]->actor.lost, 0U);
    }
}

// The number of the first message after a subscription's answer equals the number of messages
// published before it, whatever is in flight then.
TEST_P(Delivery, ASubscriptionUnderLoadLastsExactlyFromAnswerToAnswer) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 32});
    auto& steady = subscribe({range(0, 3)});
    ASSERT_TRUE(run_until([&] { return steady.actor.subscribed.size() == 1; }));
    bool stop = false;
    std::uint64_t position = 0; // fid and number alternate; refused calls keep the order
    netio::Timer load{loop(), [&] {
                          for (int i = 0; i < 80; ++i) {
                              if (publish(*publisher, Fid{position % 4}, position / 4, 40) !=
                                  Status::ok)
                                  break;
                              ++position;
                          }
                          if (!stop || position % 4 != 0) load.start(std::chrono::microseconds{50});
                      }};
    // The number of the next message of a fid.
    const auto next = [&](std::uint64_t fid) { return (position + 3 - fid) / 4; };
    std::vector<std::array<std::uint64_t, 2>> begins, ends; // for fids 1 and 2
    publisher_actor.at_subscribe = [&] { begins.push_back({next(1), next(2)}); };
    publisher_actor.at_unsubscribe = [&] { ends.push_back({next(1), next(2)}); };
    load.start(netio::Duration::zero());
    auto& guest = subscribe({range(9, 9)}); // keeps its connection
    ASSERT_TRUE(run_until([&] { return guest.actor.subscribed.size() == 1; }));
    begins.clear();
    constexpr std::size_t rounds = 10;
    for (std::size_t round = 0; round < rounds; ++round) {
        guest.actor.by_fid.clear();
        guest.socket->subscribe(range(1, 2));
        ASSERT_TRUE(run_until([&] { return guest.actor.by_fid[Fid{1}].size() > 50; }));
        guest.socket->unsubscribe(range(1, 2));
        ASSERT_TRUE(run_until([&] { return guest.actor.unsubscribed.size() == round + 1; }));
        ASSERT_EQ(begins.size(), round + 1);
        ASSERT_EQ(ends.size(), round + 1);
        for (std::size_t i = 0; i < 2; ++i)
            guest.actor.expect_contiguous(Fid{1 + i}, begins[round][i],
                                          ends[round][i] - begins[round][i]);
    }
    stop = true;
    ASSERT_TRUE(run_until([&] { return !load.armed(); }));
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (std::uint64_t fid = 0; fid < 4; ++fid)
        steady.actor.expect_contiguous(Fid{fid}, 0, next(fid));
    EXPECT_EQ(steady.actor.lost, 0U);
    EXPECT_EQ(guest.actor.lost, 0U);
}

TEST_P(Delivery, UnsubscribingTheLastFidDisconnectsAndMayReconnect) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 3)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->unsubscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.unsubscribed.size() == 1; }));
    EXPECT_TRUE(subscriber.socket->is_connected());
    subscriber.socket->unsubscribe(range(0, 9));
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.unsubscribed.size(), 2U);
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::orderly);
    EXPECT_FALSE(subscriber.actor.last_retrying);
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(publisher->counters().subscribers, 0U);

    subscriber.socket->subscribe(range(8, 8));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    netio::RegisteredBuffer memory{64};
    std::ranges::copy(make_message(Fid{8}, 0, 64), memory.data());
    EXPECT_EQ(publisher->publish(Fid{8}, memory.slice(), Cookie{1}), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
}

TEST_P(Delivery, ASubscriberRetriesWithTheRequiredBufferSize) {
    auto publisher = buffered({.page_size_bytes = 128 * 1024});
    auto& subscriber = subscribe({range(1, 1)}, {.session = {.receive_buffer_bytes = 4096}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 100000), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, 1);
}

TEST_P(Delivery, TooSmallReceiveBuffersAreReportedWithTheRequiredSize) {
    auto publisher = unbuffered({.publisher = {.largest_message_bytes = 1 << 20}});
    auto& subscriber = subscribe({range(1, 1)}, {.largest_message_bytes = 1000});
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::rejected);
    EXPECT_FALSE(subscriber.actor.last_retrying);
    EXPECT_THAT(subscriber.actor.closed[0].detail,
                testing::HasSubstr("largest_message_bytes (1048576 bytes required)"));
}

TEST_P(Delivery, SubscriptionsBeyondTheLimitAreRefusedWhole) {
    auto publisher = unbuffered({.publisher = {.ranges_per_subscriber_limit = 2}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->subscribe(std::array{range(3, 3), range(5, 5)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.refused.size() == 2; }));
    EXPECT_EQ(publisher->counters().requests_refused, 1U) << "one request for both";
    ASSERT_EQ(bed.seen().refused.size(), 1U);
    EXPECT_THAT(bed.seen().refused[0].why, testing::HasSubstr("ranges_per_subscriber_limit"));
    netio::RegisteredBuffer memory{64};
    EXPECT_EQ(publisher->publish(Fid{3}, memory.slice(), Cookie{1}), Status::no_subscribers);
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{2}), Status::ok);
}

TEST_P(Delivery, APageLeavesAtTheWatermarkOrFlushTimeOrOnAnIdleConnection) {
    for (const auto& options :
         {BufferedPublishSocket::Options{.watermark_bytes = 50, .flush_time = {}},
          BufferedPublishSocket::Options{.flush_time = std::chrono::microseconds{200}},
          BufferedPublishSocket::Options{.flush_time = {}, .flush_when_idle = true}}) {
        publisher_actor = {};
        auto publisher = buffered(options);
        auto& subscriber = subscribe({range(1, 1)});
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
        ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
        ASSERT_EQ(publish(*publisher, Fid{1}, 1, 40), Status::ok);
        ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
        EXPECT_EQ(publisher->counters().pages, 2U);
        subscribers.clear();
    }
}

TEST_P(Delivery, AfterAPauseAPageLeavesAtOnceAndThenOnceInAFlushTime) {
    auto publisher = buffered({.flush_time = std::chrono::hours{1}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    ASSERT_EQ(publish(*publisher, Fid{1}, 1, 40), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
    EXPECT_EQ(publisher->counters().pages, 1U);
    // The next message waits for its page to fill: many turns of the loop later it is still there.
    ASSERT_EQ(publish(*publisher, Fid{1}, 2, 40), Status::ok);
    int turns = 0;
    const std::function<void()> turn = [&] {
        if (++turns < 20) {
            ASSERT_TRUE(bed.loop().post(turn));
        }
    };
    turn();
    ASSERT_TRUE(run_until([&] { return turns == 20; }));
    EXPECT_EQ(publisher->counters().pages, 1U);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 3; }));
}

TEST_P(Delivery, WithoutAReasonAPageStays) {
    auto publisher = buffered({.flush_time = {}});
    auto& subscriber = subscribe({range(1, 2)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    // A complete request and answer later, it is still there.
    subscriber.socket->subscribe(range(5, 5));
    subscriber.actor.messages = 0;
    publisher_actor.at_subscribe = [&] {
        ASSERT_EQ(publish(*publisher, Fid{2}, 0, 40), Status::ok);
    };
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    EXPECT_EQ(subscriber.actor.messages, 1U) << "a change of groups sends the coalesced messages";
    EXPECT_EQ(publisher->counters().pages, 1U);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, Delivery, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::delivery_test
