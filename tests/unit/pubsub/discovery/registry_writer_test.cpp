// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/registry_writer.hpp"

#include "pubsub/discovery/directory_registry.hpp"
#include "pubsub/discovery/registry_reader.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::registry_writer_test {
namespace {

using std::chrono::seconds;

constexpr TimePoint start{seconds{1000}};

std::optional<Announcement> standing(std::uint64_t instance, std::uint64_t counter) {
    return Announcement{.name = "a", .instance = instance, .counter = counter};
}

TEST(NameLease, ANewPublisherTakesTheNameFromWhatItsPredecessorLeft) {
    NameLease claim{2, seconds{10}};
    EXPECT_TRUE(claim.may_write(standing(1, 9), false, start));
    EXPECT_TRUE(claim.may_write(standing(2, 1), false, start));
}

TEST(NameLease, TheEarlierOneYieldsToALaterOne) {
    NameLease claim{1, seconds{10}};
    EXPECT_TRUE(claim.may_write({}, false, start));
    EXPECT_FALSE(claim.may_write(standing(2, 1), false, start));
    EXPECT_FALSE(claim.may_write(standing(2, 2), false, start + seconds{9}));
    EXPECT_FALSE(claim.may_write(standing(2, 2), false, start + seconds{18}));
}

TEST(NameLease, ItReturnsWhenTheOtherIsDead) {
    NameLease claim{1, seconds{10}};
    claim.may_write({}, false, start);
    claim.may_write(standing(2, 1), false, start);
    EXPECT_TRUE(claim.may_write(standing(2, 1), false, start + seconds{10}));
}

TEST(NameLease, ItReturnsWhenTheOtherHasWithdrawn) {
    NameLease claim{1, seconds{10}};
    claim.may_write({}, false, start);
    claim.may_write(standing(2, 1), false, start);
    EXPECT_TRUE(claim.may_write({}, false, start + seconds{1}));
}

// With leases the text does not change, and the text of the predecessor may be read.
TEST(NameLease, WithLeasesItReturnsWhenTheNameIsFree) {
    NameLease claim{1, seconds{10}};
    claim.may_write({}, true, start);
    EXPECT_FALSE(claim.may_write(standing(2, 1), true, start));
    EXPECT_FALSE(claim.may_write(standing(2, 1), true, start + seconds{60}));
    EXPECT_TRUE(claim.may_write({}, true, start + seconds{61}));
    NameLease later{3, seconds{10}};
    EXPECT_TRUE(later.may_write(standing(1, 1), true, start)) << "the text of its predecessor";
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A registry in memory; a test can make writes fail.
class MemoryRegistry final : public Registry {
  public:
    void put(const std::string& name, const std::string& text) override {
        if (!refusal.empty()) throw RegistryError{refusal};
        texts[name] = text;
        ++puts;
    }
    bool has_leases() const noexcept override { return keeps; }
    bool keep(const std::string&) override { return keeps; }
    std::optional<std::string> get(const std::string& name) override {
        const auto found = texts.find(name);
        return found == texts.end() ? std::nullopt : std::optional{found->second};
    }
    void remove(const std::string& name) override { texts.erase(name); }
    void look(Visitor&) override {}
    void wait(TimePoint) override {}
    void interrupt() noexcept override {}

    std::map<std::string, std::string> texts;
    std::string refusal; // error of every put(); empty: none
    int puts = 0;
    bool keeps = false; // whether it has leases
};

class AnnouncementOnABoard : public testing::Test {
  protected:
    Announcement standing() { return parse_announcement(board.texts.at("a")); }

    MemoryRegistry board;
    RegistryWriter writer{{.name = "a", .instance = 1}, seconds{7}};
};

TEST_F(AnnouncementOnABoard, AnUpdateKeepsNameLeaseAndCounter) {
    writer.refresh(board, start);
    EXPECT_EQ(standing().lease, seconds{7});
    EXPECT_EQ(standing().counter, 1U);
    writer.update(
        {.name = "b", .instance = 2, .counter = 99, .mode = "buffered", .lease = seconds{60}});
    writer.refresh(board, start);
    EXPECT_THAT(board.texts, SizeIs(1));
    EXPECT_EQ(standing().mode, "buffered");
    EXPECT_EQ(standing().lease, seconds{7});
    EXPECT_EQ(standing().counter, 2U) << "only the counter has changed";
    EXPECT_EQ(standing().instance, 1U);
}

TEST_F(AnnouncementOnABoard, IsWrittenReportsTheCurrentState) {
    EXPECT_FALSE(writer.is_written());
    writer.refresh(board, start);
    EXPECT_TRUE(writer.is_written());
    writer.update({.mode = "buffered"});
    EXPECT_FALSE(writer.is_written()) << "the new text is not written yet";
    writer.refresh(board, start);
    EXPECT_TRUE(writer.is_written());
    board.refusal = "it is full";
    writer.refresh(board, start);
    EXPECT_FALSE(writer.is_written());
    board.refusal.clear();
    writer.refresh(board, start);
    EXPECT_TRUE(writer.is_written());
    RegistryWriter later{{.name = "a", .instance = 2}, seconds{7}};
    later.refresh(board, start);
    writer.refresh(board, start);
    EXPECT_FALSE(writer.is_written()) << "another publisher has its name";
    EXPECT_TRUE(later.is_written());
}

// A directory removes nothing by itself: a dead publisher is detected by its silence.
TEST(AnnouncementInADirectory, GetsItsNameBackAfterTheSilenceOfTheOther) {
    const netio::test::TemporaryFolder folder;
    DirectoryRegistry board{folder.path().string(), seconds{3600}};
    RegistryWriter writer{{.name = "a", .instance = 1}, seconds{7}};
    RegistryWriter other{{.name = "a", .instance = 2}, seconds{7}};
    writer.refresh(board, start);
    other.refresh(board, start);
    writer.refresh(board, start + seconds{1});
    EXPECT_FALSE(writer.is_written());
    writer.refresh(board, start + seconds{100});
    EXPECT_TRUE(writer.is_written());
}

// A registry with leases keeps the earlier text, and would keep it.
TEST_F(AnnouncementOnABoard, IsWrittenAgainAfterAFailedUpdate) {
    board.keeps = true;
    writer.refresh(board, start);
    writer.refresh(board, start);
    EXPECT_EQ(board.puts, 1);
    writer.update({.mode = "buffered"});
    board.refusal = "it is full";
    writer.refresh(board, start);
    board.refusal.clear();
    writer.refresh(board, start);
    EXPECT_EQ(board.puts, 2);
    EXPECT_EQ(standing().mode, "buffered");
}

TEST_F(AnnouncementOnABoard, ReportsALimitedNumberOfTroublesAtOnce) {
    const auto fail = [this](std::size_t times, TimePoint now) {
        for (std::size_t i = 0; i < times; ++i) {
            board.refusal = std::to_string(i);
            writer.refresh(board, now);
        }
    };
    fail(RateLimitedWarnings::limit + 10, start);
    fail(10, start + seconds{60});
    EXPECT_THAT(writer.take_troubles(), SizeIs(RateLimitedWarnings::line_limit));
    EXPECT_THAT(writer.take_troubles(), IsEmpty());
    fail(2, start + seconds{120});
    EXPECT_THAT(writer.take_troubles(),
                ElementsAre("0; new subscribers may not find this publisher",
                            "1; new subscribers may not find this publisher"));
}

RegistryNews news_of(std::vector<std::string> troubles) {
    RegistryNews news;
    news.troubles = std::move(troubles);
    return news;
}

TEST(RegistryNews, TheLatestNewsOfEachPublisherCounts) {
    RegistryNews news;
    news.publishers["a"] = Announcement{.name = "a", .mode = "buffered"};
    news.publishers["b"] = std::nullopt;
    RegistryNews later;
    later.publishers["b"] = Announcement{.name = "b"};
    later.publishers["a"] = std::nullopt;
    news.add(std::move(later));
    EXPECT_EQ(news.publishers.at("a"), std::nullopt);
    EXPECT_TRUE(news.publishers.at("b").has_value());
}

TEST(RegistryNews, CaughtUpStaysSetWhateverFollows) {
    RegistryNews news;
    EXPECT_TRUE(news.empty());
    RegistryNews first;
    first.caught_up = true;
    news.add(std::move(first));
    EXPECT_FALSE(news.empty());
    news.add(news_of({"one"}));
    EXPECT_TRUE(news.caught_up);
}

TEST(RegistryNews, UnreadTroublesAreLimited) {
    RegistryNews news =
        news_of(std::vector<std::string>(RateLimitedWarnings::line_limit - 2, "old"));
    news.add(news_of({"one", "two"}));
    EXPECT_THAT(news.troubles, SizeIs(RateLimitedWarnings::line_limit));
    EXPECT_EQ(news.troubles.back(), "two");
    RegistryNews later = news_of({"three"});
    later.publishers["a"] = std::nullopt;
    news.add(std::move(later));
    EXPECT_THAT(news.troubles, SizeIs(RateLimitedWarnings::line_limit));
    EXPECT_THAT(news.publishers, SizeIs(1)) << "the publisher is still reported";
}

} // namespace
} // namespace netio::pubsub::registry_writer_test
