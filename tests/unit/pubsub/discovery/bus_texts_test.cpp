// SPDX-License-Identifier: Apache-2.0
// What is read and written on a board, without any file: a board in memory that can fail.

#include "pubsub/discovery/bus_reader.hpp"
#include "pubsub/discovery/bus_writer.hpp"

#include <gmock/gmock.h>

#include <map>

namespace netio::pubsub {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr TimePoint start{seconds{1000}};

class MemoryBoard final : public Board {
  public:
    void put(const std::string& name, const std::string& text) override {
        check();
        texts[name] = text;
        ++puts;
    }
    bool has_leases() const noexcept override { return keeps_leases; }
    bool keep(const std::string& name) override {
        check();
        return keeps_leases && texts.contains(name);
    }
    std::optional<std::string> get(const std::string& name) override {
        check();
        const auto found = texts.find(name);
        return found == texts.end() ? std::nullopt : std::optional{found->second};
    }
    void remove(const std::string& name) override {
        check();
        texts.erase(name);
    }
    void look(Visitor& visitor) override {
        check();
        for (const auto& [name, text] : seen_)
            if (!texts.contains(name)) visitor.on_removed(name);
        for (const auto& [name, text] : texts) {
            if (!seen_.contains(name) || seen_[name] != text) {
                visitor.on_text(name, text);
            } else if (keeps_leases && !visitor.on_kept(name)) {
                ++readings;
                visitor.on_text(name, text);
            }
        }
        seen_ = texts;
    }
    void wait(TimePoint) override {}
    void interrupt() noexcept override {}

    std::map<std::string, std::string> texts;
    int puts = 0;
    int readings = 0; // of what stands there unchanged
    bool keeps_leases = false;
    bool broken = false;

  private:
    void check() const {
        if (broken) throw BoardError{"cannot reach 'memory'"};
    }
    std::map<std::string, std::string> seen_;
};

Announcement of(const std::string& name, std::uint64_t instance) {
    return {.name = name, .instance = instance, .host = "h", .pid = 7};
}

class BusTexts : public testing::Test {
  protected:
    BusNews look(TimePoint now) {
        reader.look(board, now);
        return reader.take_news();
    }

    void looks_at_two();

    MemoryBoard board;
    BusReader reader{seconds{10}, 2};
    BusWriter writer{of("a", 1), seconds{10}};
};

TEST_F(BusTexts, WhatIsWrittenIsFoundAndWhatIsRefreshedIsNoNews) {
    writer.refresh(board, start);
    const BusNews news = look(start);
    EXPECT_TRUE(news.caught_up);
    ASSERT_EQ(news.publishers.size(), 1U);
    EXPECT_EQ(news.publishers.at("a")->host, "h");
    writer.refresh(board, start + seconds{3});
    EXPECT_TRUE(look(start + seconds{3}).empty());
    EXPECT_TRUE(look(start + seconds{12}).empty());
    EXPECT_EQ(look(start + seconds{13}).publishers.at("a"), std::nullopt);
}

TEST_F(BusTexts, AWithdrawalIsNewsAtOnce) {
    writer.refresh(board, start);
    look(start);
    writer.withdraw(board);
    EXPECT_EQ(look(start).publishers.at("a"), std::nullopt);
}

TEST_F(BusTexts, ATornAnnouncementIsToldAndTheOthersAreRead) {
    writer.refresh(board, start);
    board.texts["b"] = board.texts["a"].substr(0, 20);
    board.texts["c"] = board.texts["a"];
    const BusNews news = look(start);
    EXPECT_EQ(news.publishers.size(), 1U);
    EXPECT_THAT(news.troubles,
                ElementsAre("the announcement 'b' is passed over: announcement: it is not JSON",
                            "the announcement 'c' is passed over: name: it is 'a'"));
}

TEST_F(BusTexts, ABusThatCannotBeReachedIsToldOnceAndNobodyIsGoneForIt) {
    writer.refresh(board, start);
    look(start);
    board.broken = true;
    EXPECT_THAT(look(start + seconds{9}).troubles, ElementsAre(HasSubstr("cannot reach")));
    EXPECT_TRUE(look(start + seconds{30}).empty());
    writer.refresh(board, start + seconds{30});
    EXPECT_THAT(writer.take_troubles(), ElementsAre(HasSubstr("new subscribers may not find")));
    board.broken = false;
    EXPECT_TRUE(look(start + seconds{39}).empty());
    EXPECT_EQ(look(start + seconds{40}).publishers.at("a"), std::nullopt);
}

TEST_F(BusTexts, ABusThatLostItsDataIsToldAgain) {
    board.keeps_leases = true;
    writer.refresh(board, start);
    look(start);
    board.texts.clear();
    look(start);
    writer.refresh(board, start + seconds{3});
    EXPECT_TRUE(look(start + seconds{3}).publishers.at("a").has_value());
}

TEST_F(BusTexts, ABoardThatKeepsLeasesIsNotWrittenAgain) {
    board.keeps_leases = true;
    for (int round = 0; round < 9; ++round) {
        writer.refresh(board, start + seconds{3 * round});
        look(start + seconds{3 * round});
    }
    EXPECT_EQ(board.puts, 1);
    EXPECT_TRUE(look(start + seconds{30}).empty());
}

// It writes its text once, and would not be read again.
TEST_F(BusTexts, WhoWasRefusedOnABoardThatKeepsLeasesIsFoundWhenThereIsRoom) {
    board.keeps_leases = true;
    std::vector<BusWriter> writers;
    for (const char* name : {"a", "b", "c", "d"})
        writers.emplace_back(of(name, 1), seconds{10}).refresh(board, start);
    EXPECT_EQ(look(start).publishers.size(), 2U);
    EXPECT_TRUE(look(start + seconds{1}).publishers.empty());
    EXPECT_EQ(board.readings, 0) << "nobody has gone";
    writers[0].withdraw(board);
    const BusNews news = look(start + seconds{2});
    EXPECT_EQ(news.publishers.at("a"), std::nullopt);
    EXPECT_TRUE(news.publishers.at("c").has_value());
    EXPECT_FALSE(news.publishers.contains("d"));
    EXPECT_EQ(board.readings, 2);
    look(start + seconds{3});
    EXPECT_EQ(board.readings, 2);
}

TEST_F(BusTexts, WhatAPublisherSaysAnewIsWrittenAtOnce) {
    board.keeps_leases = true;
    writer.refresh(board, start);
    look(start);
    Announcement other = of("x", 9);
    other.mode = "unbuffered";
    writer.say(other);
    writer.refresh(board, start);
    const auto said = look(start).publishers.at("a");
    ASSERT_TRUE(said);
    EXPECT_EQ(said->mode, "unbuffered");
    EXPECT_EQ(said->instance, 1U);
}

TEST_F(BusTexts, OfTwoPublishersWithOneNameTheLaterIsFoundAndTheOtherSaysWhy) {
    looks_at_two();
}

TEST_F(BusTexts, SoItIsWhereTheBoardKeepsLeases) {
    board.keeps_leases = true;
    looks_at_two();
}

// One of them overwrites the other between two looks, as an earlier version may, and the other
// ends.
TEST_F(BusTexts, WhoIsContestedAndGoneWhereTheBoardKeepsLeasesGivesItsNameAway) {
    board.keeps_leases = true;
    writer.refresh(board, start);
    const std::string first = board.texts["a"];
    look(start);
    BusWriter{of("a", 2), seconds{10}}.refresh(board, start);
    EXPECT_EQ(look(start).publishers.at("a")->instance, 2U);
    board.texts["a"] = first;
    EXPECT_THAT(look(start + seconds{1}).troubles, ElementsAre(HasSubstr("two publishers")));
    EXPECT_TRUE(look(start + seconds{9}).empty());
    look(start + seconds{10});
    const BusNews news = look(start + seconds{11});
    ASSERT_TRUE(news.publishers.contains("a"));
    EXPECT_EQ(news.publishers.at("a")->instance, 1U);
    for (int second = 12; second < 60; ++second)
        EXPECT_TRUE(look(start + seconds{second}).publishers.empty()) << second;
}

void BusTexts::looks_at_two() {
    BusWriter later{of("a", 2), seconds{10}};
    writer.refresh(board, start);
    later.refresh(board, start);
    for (int round = 1; round < 20; ++round) {
        writer.refresh(board, start + seconds{round});
        later.refresh(board, start + seconds{round});
        const BusNews news = look(start + seconds{round});
        if (round == 1) {
            EXPECT_EQ(news.publishers.at("a")->instance, 2U);
        } else {
            EXPECT_TRUE(news.empty()) << round;
        }
    }
    EXPECT_THAT(writer.take_troubles(), ElementsAre(HasSubstr("give each a name of its own")));
    EXPECT_THAT(later.take_troubles(), IsEmpty());
    later.withdraw(board);
    writer.refresh(board, start + seconds{20});
    EXPECT_EQ(look(start + seconds{20}).publishers.at("a")->instance, 1U);
}

TEST_F(BusTexts, WhoStandsBackDoesNotWithdrawTheOther) {
    BusWriter later{of("a", 2), seconds{10}};
    writer.refresh(board, start);
    later.refresh(board, start);
    writer.withdraw(board);
    EXPECT_TRUE(board.texts.contains("a"));
}

TEST_F(BusTexts, MorePublishersThanTheLimitArePassedOverWithAWord) {
    for (const char* name : {"a", "b", "c", "d"})
        BusWriter{of(name, 1), seconds{10}}.refresh(board, start);
    const BusNews news = look(start);
    EXPECT_EQ(news.publishers.size(), 2U);
    EXPECT_THAT(news.troubles, ElementsAre(HasSubstr("more than 2 publishers")));
}

TEST_F(BusTexts, AThousandTroublesAreFewLines) {
    for (int i = 0; i < 1000; ++i)
        board.texts["b" + std::to_string(i)] = "x";
    EXPECT_EQ(look(start).troubles.size(), Complaints::limit + 1);
}

} // namespace
} // namespace netio::pubsub
