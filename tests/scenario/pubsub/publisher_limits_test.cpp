// SPDX-License-Identifier: Apache-2.0

// What publishers accept and send at once, exactly at each limit.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>

namespace netio::pubsub::test::publisher_limits_test {
namespace {

using netio::Cookie;
using netio::Status;
using namespace std::chrono_literals;

class PublisherLimits : public PubSubScenario {
  protected:
    SubscriberSnapshot only_subscriber(Publisher& publisher) const {
        return publisher.snapshot().subscribers.at(0);
    }

    netio::RegisteredBuffer memory{100'000};
};

// The user's header is a part of the message.
TEST_P(PublisherLimits, AZeroCopyMessageOfTheLargestSizeIsAcceptedAndNoLarger) {
    constexpr std::size_t largest = 100;
    auto publisher = unbuffered({.publisher = {.largest_message_bytes = largest}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    const std::array<std::byte, 8> header{};
    const auto publish_with_header = [&](std::size_t bytes) {
        const netio::Slice slice = memory.slice(0, bytes);
        return publisher->publishv(Fid{1}, {&slice, 1}, Cookie{bytes}, {.header = header});
    };
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(0, largest), Cookie{1}), Status::ok);
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(0, largest + 1), Cookie{2}),
              Status::too_large);
    EXPECT_EQ(publish_with_header(largest - header.size()), Status::ok);
    EXPECT_EQ(publish_with_header(largest - header.size() + 1), Status::too_large);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
    EXPECT_EQ(subscriber.actor.by_fid[Fid{1}].back().size, largest);
}

TEST_P(PublisherLimits, QueueLimitMessagesPublicationsWaitForASubscriber) {
    auto publisher = unbuffered({.outstanding_limit = 100, .queue_limit_messages = 5});
    auto slow = stuck(range(1, 1));
    std::uint64_t taken = 0;
    // Too large for a batch.
    while (publisher->publish(Fid{1}, memory.slice(0, 10'000), Cookie{taken}) == Status::ok)
        ASSERT_LT(++taken, 100U);
    EXPECT_EQ(only_subscriber(*publisher).waiting, 5U);
    EXPECT_EQ(publisher->outstanding(), taken);
    EXPECT_EQ(publisher->counters().again, 1U);
}

TEST_P(PublisherLimits, DefaultPublishingBatchesSmallMessagesAndExplicitDoesNot) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 40), Cookie{i}), Status::ok);
    EXPECT_EQ(only_subscriber(*publisher).posted, 1U) << "no message was in flight";
    EXPECT_EQ(only_subscriber(*publisher).waiting, 2U);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 3; }));
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
    EXPECT_TRUE(subscriber.socket->seen().gathered);
    for (std::uint64_t i = 3; i < 6; ++i) {
        ASSERT_EQ(publisher->try_publish(Fid{1}, memory.slice(0, 40), Cookie{i}).status,
                  Status::ok);
    }
    EXPECT_EQ(only_subscriber(*publisher).posted, 3U);
    EXPECT_EQ(only_subscriber(*publisher).waiting, 0U);
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
}

TEST_P(PublisherLimits, AMessageOfOnePageIsARecordAndALargerOneIsFragmented) {
    constexpr std::size_t page_size_bytes = 1024;
    auto publisher =
        buffered({.page_size_bytes = page_size_bytes, .page_count = 16, .flush_time = {}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    const std::size_t largest = page_size_bytes - page::header_bytes;
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, largest), Status::ok);
    EXPECT_EQ(publisher->counters().pages_left.full, 1U) << "nothing more fits";
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_FALSE(subscriber.socket->seen().fragments);
    ASSERT_EQ(publish(*publisher, Fid{1}, 1, largest + 1), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
    EXPECT_TRUE(subscriber.socket->seen().fragments);
    EXPECT_EQ(publisher->counters().pages_left.full, 1U);
    EXPECT_EQ(publisher->counters().pages, 2U);
    subscriber.actor.expect_contiguous(Fid{1}, 0, 2);
}

TEST_P(PublisherLimits, AMessageWithoutItsOwnPageLeavesAfterEarlierMessages) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 16, .flush_time = {}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    ASSERT_EQ(publish(*publisher, Fid{1}, 1, 3000), Status::ok);
    EXPECT_EQ(publisher->counters().pages_left.full, 1U);
    EXPECT_EQ(publisher->counters().pages, 4U) << "and three of fragments";
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, 2);
}

TEST_P(PublisherLimits, APageLeavesEarlyWhileItsSubscriberIsIdle) {
    auto publisher = buffered({.flush_time = {}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t count = 0;
    while (publisher->counters().pages == 0) {
        ASSERT_EQ(publish(*publisher, Fid{1}, count++, 1000), Status::ok);
        ASSERT_LT(count, 70U) << "a quarter of a page";
    }
    EXPECT_GE(count, 60U);
    EXPECT_EQ(publisher->counters().pages_left.idle, 1U);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == count; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, count);
}

TEST_P(PublisherLimits, APageFillsFurtherWhileItsSubscriberIsBusy) {
    auto publisher = buffered({.page_size_bytes = 126 * 1024, .flush_time = {}});
    auto slow = stuck(range(1, 1));
    std::uint64_t count = 0;
    // Some pages leave early, until one has to wait.
    while (only_subscriber(*publisher).waiting == 0) {
        ASSERT_EQ(publish(*publisher, Fid{1}, count++, 1000), Status::ok);
        ASSERT_LT(count, 2000U);
    }
    const std::uint64_t early = publisher->counters().pages;
    const std::uint64_t before = count;
    while (publisher->counters().pages == early) {
        ASSERT_EQ(publish(*publisher, Fid{1}, count++, 1000), Status::ok);
        ASSERT_LT(count, before + 150);
    }
    EXPECT_GE(count - before, 120U) << "the page is filled to its 126 KiB";
    EXPECT_GE(publisher->counters().pages_left.full, 1U);
}

// One subscriber has stopped and drops messages, the other one reads.
TEST_P(PublisherLimits, PagesLeaveEarlyWhileADroppingSubscriberIsStuck) {
    auto publisher = buffered({.page_size_bytes = 126 * 1024, .flush_time = {}});
    auto slow = stuck(range(1, 1), SlowPolicy::drop);
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t count = 0;
    while (only_subscriber(*publisher).waiting == 0) {
        for (const std::uint64_t pages = publisher->counters().pages;
             publisher->counters().pages == pages;)
            ASSERT_EQ(publish(*publisher, Fid{1}, count++, 1000), Status::ok);
        // The last message may have opened a page.
        ASSERT_TRUE(run_until([&] { return subscriber.actor.messages + 1 >= count; }));
        ASSERT_LT(count, 5000U);
    }
    const std::uint64_t before = count;
    for (const std::uint64_t pages = publisher->counters().pages;
         publisher->counters().pages == pages;)
        ASSERT_EQ(publish(*publisher, Fid{1}, count++, 1000), Status::ok);
    EXPECT_LT(count - before, 70U) << "a quarter of a page";
    EXPECT_EQ(publisher->counters().pages_left.full, 0U);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == count; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, count);
}

// When half of the memory is used, pages are opened with less memory and do not grow beyond it.
TEST_P(PublisherLimits, APageDoesNotGrowWhileMemoryIsShort) {
    auto publisher = buffered({.page_size_bytes = 126 * 1024, .page_count = 10, .flush_time = {}});
    auto slow = stuck(range(1, 1));
    auto other = stuck(range(2, 2));
    for (std::uint64_t i = 0; publish(*publisher, Fid{2}, i, 1000) == Status::ok; ++i)
        ASSERT_LT(i, 2000U);
    std::uint64_t count = 0;
    std::uint64_t last_page = 0;
    std::uint64_t most = 0; // messages in a page
    for (std::uint64_t pages = 0; publish(*publisher, Fid{1}, count, 1000) == Status::ok;) {
        ++count;
        if (publisher->counters().pages == pages) continue;
        pages = publisher->counters().pages;
        most = std::max(most, count - std::exchange(last_page, count));
        ASSERT_LT(count, 2000U);
    }
    EXPECT_GT(only_subscriber(*publisher).waiting, 0U);
    EXPECT_LT(most, 70U) << "each leaves at 64 KiB although its subscriber is busy";
}

TEST_P(PublisherLimits, AWatermarkKeepsPagesFromLeavingEarly) {
    auto publisher = buffered({.watermark_bytes = 128 * 1024, .flush_time = {}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t count = 0;
    while (publisher->counters().pages == 0) {
        ASSERT_EQ(publish(*publisher, Fid{1}, count++, 1000), Status::ok);
        ASSERT_LT(count, 200U);
    }
    EXPECT_GE(count, 128U);
    EXPECT_EQ(publisher->counters().pages_left.idle, 0U);
}

// The fast path of publishing does not check whether the publisher has ended.
TEST_P(PublisherLimits, NothingIsPublishedAfterTheEndAlthoughAPageWasOpen) {
    for (const bool at_once : {false, true}) {
        publisher_actor = {};
        auto publisher = buffered({.flush_time = {}});
        auto& subscriber = subscribe({range(1, 1)});
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
        ASSERT_EQ(publish(*publisher, Fid{1}, 1, 40), Status::ok) << "into the open page";
        at_once ? publisher->abort() : publisher->close();
        EXPECT_EQ(publish(*publisher, Fid{1}, 2, 40), Status::closed);
        EXPECT_EQ(publish(*publisher, Fid{2}, 0, 40), Status::closed);
        EXPECT_EQ(publisher->counters().messages, 2U);
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    }
}

// Completions of messages without a subscriber are reported from the loop; until then a separate
// limit applies to them.
TEST_P(PublisherLimits, UnreportedCompletionsAreLimitedLikePublications) {
    constexpr std::size_t limit = 8;
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop},
                                 .outstanding_limit = limit,
                                 .queue_limit_messages = 1});
    auto slow = stuck(range(1, 1));
    std::uint64_t taken = 0;
    const auto take_one = [&] {
        return publisher->publish(Fid{1}, memory.slice(0, 10'000), Cookie{taken}) == Status::ok &&
               ++taken > 0;
    };
    ASSERT_TRUE(run_until([&] { return take_one() && publisher->counters().dropped > 0; }));
    ASSERT_TRUE(run_until([&] { // the losses were reported
        return publisher_actor.completions.size() + publisher->outstanding() == taken;
    }));
    std::uint64_t untold = 0;
    while (take_one())
        ASSERT_LT(++untold, 100U);
    EXPECT_EQ(untold, limit);
    ASSERT_TRUE(run_until([&] { return publisher_actor.room > 0; })) << "it may be tried again";
    EXPECT_TRUE(take_one());
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherLimits, all_beds(), bed_name);

// --- in virtual time ------------------------------------------------------------------------

using PublisherLimitsInVirtualTime = PublisherLimits;

// The flush time of a page ends although the page has already left.
TEST_P(PublisherLimitsInVirtualTime, AFullPageDoesNotDelayTheNextOne) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 16, .flush_time = 1h});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 1024 - page::header_bytes), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    const netio::TimePoint begin = loop().now();
    ASSERT_EQ(publish(*publisher, Fid{1}, 1, 40), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
    EXPECT_LT(loop().now() - begin, 1s) << "it is the first page that the flush time sends";
    EXPECT_EQ(publisher->counters().pages_left.in_time, 1U);
    EXPECT_EQ(publisher->counters().pages_left.full, 1U);
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherLimitsInVirtualTime, netio::test::simulated_beds(),
                         bed_name);

} // namespace
} // namespace netio::pubsub::test::publisher_limits_test
