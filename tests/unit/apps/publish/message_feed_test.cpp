// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/message_feed.hpp"

#include "apps/common/pattern.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace apps {
namespace {

using namespace std::chrono_literals;
using Outcome = MessageFeed::Outcome;
using netio::pubsub::Fid;

constexpr netio::TimePoint start{1h};

StreamConfig stream(std::uint64_t first, std::uint64_t last) {
    StreamConfig config;
    config.fids = {{.first = Fid{first}, .last = Fid{last}}};
    config.source = PatternConfig{};
    config.sizes = FixedSize{40};
    return config;
}

class Feed {
  public:
    explicit Feed(const std::vector<StreamConfig>& streams) : feed{streams} {
        memory.resize(feed.largest_bytes());
        feed.begin(start);
    }
    // The next message, which is published.
    Outcome next(netio::TimePoint now = start) {
        const Outcome outcome = feed.next(memory, now);
        if (outcome == Outcome::message) feed.accept();
        return outcome;
    }
    // The next message, which nobody has room for.
    Outcome next_refused() {
        const Outcome outcome = feed.next(memory, start);
        if (outcome == Outcome::message) feed.refuse();
        return outcome;
    }
    std::uint64_t fid() const { return to_integer(feed.message().fid); }

    MessageFeed feed;
    std::vector<std::byte> memory;
};

TEST(MessageFeed, TakesTheFidsOfAStreamInTurnAndEndsWithTheCount) {
    StreamConfig config = stream(5, 7);
    config.count = 2;
    config.status = 9;
    Feed feed{{config}};
    for (const std::uint64_t fid : {5U, 6U, 7U, 5U, 6U, 7U}) {
        ASSERT_EQ(feed.next(), Outcome::message);
        EXPECT_EQ(feed.fid(), fid);
        EXPECT_EQ(feed.feed.message().bytes, 40U);
        EXPECT_EQ(feed.feed.message().status, 9);
    }
    EXPECT_EQ(feed.next(), Outcome::ended);
    EXPECT_EQ(feed.next(), Outcome::ended);
}

TEST(MessageFeed, AFidThatWaitsForRoomHoldsUpNoOther) {
    StreamConfig config = stream(1, 3);
    config.count = 2;
    Feed feed{{config}};
    ASSERT_EQ(feed.next_refused(), Outcome::message);
    for (const std::uint64_t fid : {2U, 3U, 2U, 3U}) {
        ASSERT_EQ(feed.next(), Outcome::message);
        EXPECT_EQ(feed.fid(), fid);
    }
    EXPECT_EQ(feed.next(), Outcome::waiting) << "it has two messages yet";
    feed.feed.retry();
    PatternChecker checker;
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(feed.next(), Outcome::message);
        EXPECT_EQ(feed.fid(), 1U);
        checker.check(Fid{1}, feed.memory);
    }
    EXPECT_EQ(checker.total(), (PatternCounts{.messages = 2})) << "none was left out or repeated";
    EXPECT_EQ(feed.next(), Outcome::ended);
}

TEST(MessageFeed, CountsWhatIsPublishedOfEachFidAndNotWhatIsRefused) {
    StreamConfig second = stream(1, 2);
    second.count = 1;
    Feed feed{{stream(7, 7), second}};
    ASSERT_EQ(feed.next_refused(), Outcome::message);
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(feed.next(), Outcome::message);
    std::map<std::uint64_t, std::uint64_t> published;
    for (const PublishedFid& fid : feed.feed.published())
        published[to_integer(fid.fid)] = fid.messages;
    EXPECT_EQ(published, (std::map<std::uint64_t, std::uint64_t>{{1, 1}, {2, 1}, {7, 0}}));
}

TEST(MessageFeed, OfManyThatWaitAFewAreTriedEachTimeAndAllInTurn) {
    constexpr std::uint64_t fids = 3 * MessageFeed::retries_at_once;
    Feed feed{{stream(1, fids)}};
    while (feed.next_refused() == Outcome::message) {
    }
    std::set<std::uint64_t> tried;
    for (int round = 0; round < 3; ++round) {
        feed.feed.retry();
        std::size_t tries = 0;
        while (feed.next_refused() == Outcome::message) {
            tried.insert(feed.fid());
            ++tries;
        }
        EXPECT_EQ(tries, MessageFeed::retries_at_once);
    }
    EXPECT_EQ(tried.size(), fids);
}

TEST(MessageFeed, TakesStreamsInTurn) {
    Feed feed{{stream(1, 1), stream(10, 11)}};
    std::map<std::uint64_t, int> counts;
    for (int i = 0; i < 400; ++i) {
        ASSERT_EQ(feed.next(), Outcome::message);
        ++counts[feed.fid()];
    }
    EXPECT_THAT(counts,
                testing::ElementsAre(std::pair{1U, 200}, std::pair{10U, 100}, std::pair{11U, 100}));
}

TEST(MessageFeed, AStreamWithARateDoesNotHoldUpTheOthers) {
    StreamConfig paced = stream(1, 1);
    paced.rate = RateConfig{.per_second = 10};
    StreamConfig limited = stream(2, 2);
    limited.count = 50;
    Feed feed{{paced, limited}};
    int of_paced = 0;
    for (int i = 0; i < 51; ++i) {
        ASSERT_EQ(feed.next(), Outcome::message);
        of_paced += feed.fid() == 1 ? 1 : 0;
    }
    EXPECT_EQ(of_paced, 1);
    ASSERT_EQ(feed.next(), Outcome::waiting);
    EXPECT_NEAR(std::chrono::duration<double>(feed.feed.next_due() - start).count(), 0.1, 1e-6);
    ASSERT_EQ(feed.next(start + 1s), Outcome::message);
    EXPECT_EQ(feed.fid(), 1U);
}

TEST(MessageFeed, KnowsTheLargestMessage) {
    StreamConfig large = stream(2, 2);
    large.sizes = SizeList{{24, 5000}};
    EXPECT_EQ(MessageFeed({stream(1, 1), large}).largest_bytes(), 5000U);
}

// Files of different lengths, of which each gives one message a round while it lasts.
TEST(MessageFeed, AFidThatEndsLeavesTheTurnsOfTheOthersAsTheyWere) {
    const std::string folder = testing::TempDir() + "netio_feed_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    StreamConfig config = stream(0, 7);
    config.sizes = FixedSize{1};
    const std::vector<std::size_t> lengths = {3, 0, 1, 4, 1, 0, 2, 0};
    FileConfig files;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        files.paths.push_back(folder + "/" + std::to_string(i));
        std::ofstream{files.paths.back()} << std::string(lengths[i], 'x');
    }
    config.source = files;
    Feed feed{{config}};
    std::vector<std::uint64_t> order;
    for (int i = 0; i < 100 && feed.next() == Outcome::message; ++i)
        order.push_back(feed.fid());
    EXPECT_THAT(order, testing::ElementsAre(0, 2, 3, 4, 6, 0, 3, 6, 0, 3, 3));
    EXPECT_EQ(feed.next(), Outcome::ended);
    std::filesystem::remove_all(folder);
}

TEST(MessageFeed, ReachesTheLastFidOfAll) {
    StreamConfig config = stream(UINT64_MAX - 1, UINT64_MAX);
    config.count = 1;
    Feed feed{{config}};
    EXPECT_EQ(feed.next(), Outcome::message);
    EXPECT_EQ(feed.next(), Outcome::message);
    EXPECT_EQ(feed.fid(), UINT64_MAX);
    EXPECT_EQ(feed.next(), Outcome::ended);
}

TEST(MessageFeed, OffersEveryRefusedFidAgainOnceThereIsRoom) {
    MessageFeed feed{{{.fids = {{.first = netio::pubsub::Fid{1}, .last = netio::pubsub::Fid{100}}},
                       .source = PatternConfig{},
                       .sizes = FixedSize{64},
                       .count = 1}}};
    std::array<std::byte, 64> memory{};
    feed.begin({});
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(feed.next(memory, {}), MessageFeed::Outcome::message);
        feed.refuse();
    }
    ASSERT_EQ(feed.next(memory, {}), MessageFeed::Outcome::waiting) << "nobody has said more";
    feed.retry(); // once: it is not said again where nothing is refused
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(feed.next(memory, {}), MessageFeed::Outcome::message) << i;
        feed.accept();
    }
    EXPECT_EQ(feed.next(memory, {}), MessageFeed::Outcome::ended);
}

} // namespace
} // namespace apps
