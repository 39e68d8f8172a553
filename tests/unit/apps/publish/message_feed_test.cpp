// SPDX-License-Identifier: Apache-2.0
#include "apps/common/pattern.hpp"
#include "apps/publish/message_feed.hpp"
#include "netio/base/wire.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <system_error>

namespace apps::message_feed_test {
namespace {

class Sources : public testing::Test {
  protected:
    std::string file(const std::string& content) {
        std::ofstream{path} << content;
        return path;
    }
    // Publishes the next message of up to `size` bytes and returns it; "" at the end.
    static std::string next(Source& source, std::size_t size) {
        std::string text(size, '?');
        const auto result = source.fill(std::as_writable_bytes(std::span{text}));
        text.resize(result.bytes);
        if (result.outcome == Source::Outcome::message) source.accept();
        return result.outcome == Source::Outcome::message ? text : "";
    }
    void TearDown() override { std::filesystem::remove(path); }

    std::string path = testing::TempDir() + "netio_source_" + std::to_string(::getpid());
};

TEST_F(Sources, RefusesANamedPipeInsteadOfWaitingForItsWriter) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const auto source = make_file_source(path, false);
    EXPECT_THAT([&] { next(*source, 3); },
                testing::ThrowsMessage<std::system_error>(testing::HasSubstr("is a pipe")));
}

TEST_F(Sources, AFileIsCutIntoMessagesAndEnds) {
    const auto source = make_file_source(file("abcdefgh"), false);
    EXPECT_EQ(next(*source, 3), "abc");
    EXPECT_EQ(next(*source, 1), "d");
    EXPECT_EQ(next(*source, 10), "efgh");
    EXPECT_EQ(next(*source, 10), "");
    EXPECT_EQ(next(*source, 10), "");
}

TEST_F(Sources, ARepeatedFileBeginsAgain) {
    const auto source = make_file_source(file("abcd"), true);
    EXPECT_EQ(next(*source, 3), "abc");
    EXPECT_EQ(next(*source, 3), "d");
    EXPECT_EQ(next(*source, 3), "abc");
}

// A message that is filled and not accepted is filled again, also with another size.
TEST_F(Sources, AnUnpublishedMessageIsRepeated) {
    std::array<std::byte, 2> two{};
    const auto in_file = make_file_source(file("abcd"), true);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ASSERT_EQ(::write(ends[1], "abcd", 4), 4);
    ::close(ends[1]);
    const auto in_pipe = make_pipe_source(ends[0]);
    for (Source* const source : {in_file.get(), in_pipe.get()}) {
        EXPECT_EQ(source->fill(two).bytes, 2U);
        EXPECT_EQ(next(*source, 3), "abc");
        EXPECT_EQ(source->fill(two).bytes, 1U);
        EXPECT_EQ(next(*source, 3), "d");
    }
    EXPECT_EQ(next(*in_file, 3), "abc") << "from the beginning";
    EXPECT_EQ(next(*in_pipe, 3), "");
    ::close(ends[0]);
    const auto pattern = make_pattern_source(netio::pubsub::Fid{1});
    std::array<std::byte, 40> first{};
    std::array<std::byte, 40> again{};
    pattern->fill(first);
    pattern->fill(again);
    EXPECT_EQ(first, again);
    pattern->accept();
    pattern->fill(again);
    EXPECT_NE(first, again);
}

TEST_F(Sources, AnEmptyFileEndsAlsoWhenRepeated) {
    EXPECT_EQ(next(*make_file_source(file(""), false), 3), "");
    EXPECT_EQ(next(*make_file_source(file(""), true), 3), "");
}

TEST_F(Sources, AMissingFileIsNamed) {
    const auto source = make_file_source("/nowhere/at/all", false);
    std::array<std::byte, 4> memory;
    try {
        source->fill(memory);
        FAIL() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("/nowhere/at/all"));
        EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
    }
}

TEST_F(Sources, APipeWaitsForWholeMessagesAndSendsTheRestAtTheEnd) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const auto source = make_pipe_source(ends[0]);
    EXPECT_EQ(source->wait_fd(), ends[0]);
    std::array<std::byte, 4> memory;
    EXPECT_EQ(source->fill(memory).outcome, Source::Outcome::not_ready);
    ASSERT_EQ(::write(ends[1], "abc", 3), 3);
    EXPECT_EQ(source->fill(memory).outcome, Source::Outcome::not_ready);
    ASSERT_EQ(::write(ends[1], "defghij", 7), 7);
    EXPECT_EQ(next(*source, 4), "abcd");
    EXPECT_EQ(next(*source, 4), "efgh");
    ::close(ends[1]);
    EXPECT_EQ(next(*source, 4), "ij");
    EXPECT_EQ(next(*source, 4), "");
    ::close(ends[0]);
}

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
    // Publishes the next message.
    Outcome next(netio::TimePoint now = start) {
        const Outcome outcome = feed.next(memory, now);
        if (outcome == Outcome::message) feed.accept();
        return outcome;
    }
    // The next message, for which there is no room.
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

TEST(MessageFeed, ABlockedFidDoesNotBlockOthers) {
    StreamConfig config = stream(1, 3);
    config.count = 2;
    Feed feed{{config}};
    ASSERT_EQ(feed.next_refused(), Outcome::message);
    for (const std::uint64_t fid : {2U, 3U, 2U, 3U}) {
        ASSERT_EQ(feed.next(), Outcome::message);
        EXPECT_EQ(feed.fid(), fid);
    }
    EXPECT_EQ(feed.next(), Outcome::waiting) << "fid 1 still has two messages";
    feed.feed.retry();
    PatternChecker checker;
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(feed.next(), Outcome::message);
        EXPECT_EQ(feed.fid(), 1U);
        checker.check(Fid{1}, feed.memory);
    }
    EXPECT_EQ(checker.total(), (PatternCounts{.messages = 2})) << "none left out or repeated";
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

TEST(MessageFeed, AFewOfManyBlockedFidsAreTriedInEachCall) {
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

TEST(MessageFeed, AStreamWithARateDoesNotBlockTheOthers) {
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

// Files of different lengths: each gives one message per round until its end.
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
    ASSERT_EQ(feed.next(memory, {}), MessageFeed::Outcome::waiting) << "retry() was not called";
    feed.retry(); // only once: it is called again only after a refusal
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(feed.next(memory, {}), MessageFeed::Outcome::message) << i;
        feed.accept();
    }
    EXPECT_EQ(feed.next(memory, {}), MessageFeed::Outcome::ended);
}

// --- triggers -------------------------------------------------------------------------------

std::uint64_t event_of(const MessageFeed::Message& message) {
    return netio::wire::load<std::uint64_t>(message.header.data());
}

// Fids 1 to 3, and 10 in another stream, of one trigger that comes once per second; each message
// begins with the number of the event.
class Triggered {
  public:
    explicit Triggered(const FaultConfig& faults = {}, std::optional<std::uint64_t> count = {},
                       double per_second = 1)
        : feed{{triggered(1, 3, faults, count), triggered(10, 10, {}, count)},
               {{.name = "l1", .rate = {.per_second = per_second}}}} {
        memory.resize(feed.largest_bytes());
        feed.begin(start);
    }
    // Publishes all that is due at `now`; returns fid and event of each message.
    using Published = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    Published all(netio::TimePoint now, const std::set<std::uint64_t>& refused = {}) {
        Published published;
        while (feed.next(memory, now) == Outcome::message) {
            const std::uint64_t fid = to_integer(feed.message().fid);
            if (refused.contains(fid)) {
                feed.refuse();
                continue;
            }
            published.emplace_back(fid, event_of(feed.message()));
            feed.accept();
        }
        return published;
    }

    MessageFeed feed;
    std::vector<std::byte> memory;

  private:
    static StreamConfig triggered(std::uint64_t first, std::uint64_t last,
                                  const FaultConfig& faults, std::optional<std::uint64_t> count) {
        StreamConfig config = stream(first, last);
        config.source = PatternConfig{.faults = faults};
        config.trigger = 0;
        config.header.event = true;
        config.count = count;
        return config;
    }
};

TEST(MessageFeed, AllFidsOfATriggerPublishOneEventTogether) {
    Triggered both;
    EXPECT_THAT(both.all(start),
                testing::UnorderedElementsAre(std::pair{1U, 0U}, std::pair{2U, 0U},
                                              std::pair{3U, 0U}, std::pair{10U, 0U}));
    EXPECT_TRUE(both.all(start + 999ms).empty());
    EXPECT_EQ(both.feed.next_due(), start + 1s + 1ns);
    EXPECT_THAT(both.all(start + 1001ms),
                testing::UnorderedElementsAre(std::pair{1U, 1U}, std::pair{2U, 1U},
                                              std::pair{3U, 1U}, std::pair{10U, 1U}));
    EXPECT_EQ(both.feed.triggers()[0].events, 2U);
}

TEST(MessageFeed, NoFidBeginsAnEventBeforeTheOthersHaveHadTheLast) {
    Triggered both{{}, {}, 2};
    const auto published = both.all(start + 900ms); // two events at once
    ASSERT_EQ(published.size(), 8U);
    for (std::size_t i = 0; i < published.size(); ++i)
        EXPECT_EQ(published[i].second, i / 4) << i;
}

TEST(MessageFeed, AFidThatWaitsCatchesUpWithTheEvents) {
    Triggered both;
    EXPECT_EQ(both.all(start, {2}).size(), 3U);
    EXPECT_EQ(both.all(start + 1001ms, {2}).size(), 3U) << "the other fids continue";
    both.feed.retry();
    EXPECT_THAT(both.all(start + 1002ms),
                testing::ElementsAre(std::pair{2U, 0U}, std::pair{2U, 1U}));
    EXPECT_EQ(both.all(start + 2001ms).size(), 4U);
}

TEST(MessageFeed, IntentionallyMissingMessagesAreLeftOut) {
    Triggered both{{.missing = 1}};
    EXPECT_EQ(both.all(start).size(), 4U) << "the first event is complete";
    EXPECT_THAT(both.all(start + 1001ms), testing::ElementsAre(std::pair{10U, 1U}));
    EXPECT_THAT(both.all(start + 2001ms),
                testing::UnorderedElementsAre(std::pair{1U, 2U}, std::pair{2U, 2U},
                                              std::pair{3U, 2U}, std::pair{10U, 2U}));
    EXPECT_EQ(both.feed.faults(), FaultCounts{.missing = 3});
}

TEST(MessageFeed, TriggersEndWithTheCountOfTheirFids) {
    Triggered both{{}, 2};
    EXPECT_EQ(both.all(start + 900ms).size(), 4U);
    EXPECT_EQ(both.all(start + 1001ms).size(), 4U);
    EXPECT_EQ(both.feed.next(both.memory, start + 9s), Outcome::ended);
    EXPECT_EQ(both.feed.triggers()[0].events, 2U);
}

// Whatever is refused at any time, each fid has each event once and in order.
TEST(MessageFeed, EveryFidHasEveryEventOnceAndInOrderWhateverIsRefused) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        std::mt19937_64 random{seed};
        Triggered both;
        std::map<std::uint64_t, std::uint64_t> next;
        netio::TimePoint now = start;
        for (int step = 0; step < 200; ++step) {
            std::set<std::uint64_t> refused;
            for (const std::uint64_t fid : {1U, 2U, 3U, 10U})
                if (random() % 4 == 0) refused.insert(fid);
            for (const auto& [fid, event] : both.all(now, refused))
                ASSERT_EQ(event, next[fid]++) << "seed " << seed;
            if (random() % 2 == 0) both.feed.retry();
            now += std::chrono::milliseconds{random() % 1500};
        }
        for (int round = 0; round < 2; ++round) {
            both.feed.retry();
            for (const auto& [fid, event] : both.all(now))
                ASSERT_EQ(event, next[fid]++) << "seed " << seed;
        }
        for (const auto& [fid, events] : next)
            ASSERT_EQ(events, both.feed.triggers()[0].events) << "seed " << seed;
    }
}

} // namespace

} // namespace apps::message_feed_test
