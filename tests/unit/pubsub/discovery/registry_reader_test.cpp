// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/registry_reader.hpp"

#include "pubsub/discovery/registry_writer.hpp"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace netio::pubsub::registry_reader_test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Seen = LeaseTracker::Seen;

constexpr TimePoint start{seconds{1000}};

Announcement of(const std::string& name, std::uint64_t instance, std::uint64_t counter) {
    return {.name = name, .instance = instance, .counter = counter};
}

class Leases : public testing::Test {
  protected:
    LeaseTracker tracker{seconds{10}, 3};
};

TEST_F(Leases, APublisherIsFoundAtOnce) {
    EXPECT_EQ(tracker.saw(of("a", 1, 1), start), Seen::found);
    EXPECT_EQ(tracker.alive(), 1U);
}

TEST_F(Leases, AMovingCounterKeepsAPublisherAlive) {
    tracker.saw(of("a", 1, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start + seconds{9}), Seen::alive);
    EXPECT_THAT(tracker.expire(start + seconds{18}), IsEmpty());
    EXPECT_EQ(tracker.next_expiry(), start + seconds{19});
}

TEST_F(Leases, AnUnchangedCounterExpiresHoweverOftenItIsRead) {
    tracker.saw(of("a", 1, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 1, 1), start + seconds{9}), Seen::stale);
    EXPECT_THAT(tracker.expire(start + seconds{10}), ElementsAre("a"));
    EXPECT_THAT(tracker.expire(start + seconds{10}), IsEmpty());
}

TEST_F(Leases, AnAnnouncedLeaseTimeIsUsed) {
    Announcement quick = of("quick", 1, 1);
    quick.lease = seconds{1};
    Announcement slow = of("slow", 1, 1);
    slow.lease = seconds{60};
    tracker.saw(quick, start);
    tracker.saw(slow, start);
    EXPECT_EQ(tracker.next_expiry(), start + seconds{1});
    EXPECT_THAT(tracker.expire(start + seconds{2}), ElementsAre("quick"));
    EXPECT_THAT(tracker.expire(start + seconds{59}), IsEmpty());
    EXPECT_THAT(tracker.expire(start + seconds{60}), ElementsAre("slow"));
}

TEST_F(Leases, TheMemoryOfAllAnnouncementsIsLimited) {
    Announcement wordy = of("a", 1, 1);
    wordy.fids.resize(10, {.fids = {}, .meaning = std::string(100, 'm')});
    const std::size_t each = 10 * (sizeof(AnnouncedFids) + 100);
    LeaseTracker small{seconds{10}, 100, 2 * each};
    const auto say = [&](const char* name, std::uint64_t counter) {
        wordy.name = name;
        wordy.counter = counter;
        return small.saw(wordy, start);
    };
    EXPECT_EQ(say("a", 1), Seen::found);
    EXPECT_EQ(say("b", 1), Seen::found);
    EXPECT_EQ(say("c", 1), Seen::refused);
    EXPECT_EQ(say("b", 2), Seen::alive) << "it replaces its earlier announcement";
    EXPECT_TRUE(small.withdrawn("a"));
    EXPECT_EQ(say("c", 1), Seen::found);
    wordy.fids.resize(11, wordy.fids.front());
    EXPECT_EQ(say("c", 2), Seen::refused);
    EXPECT_EQ(small.saw(of("c", 1, 3), start), Seen::changed);
    EXPECT_EQ(small.expire(start + seconds{10}).size(), 2U);
    EXPECT_EQ(small.saw(of("d", 1, 1), start + seconds{10}), Seen::found);
}

TEST_F(Leases, WhatAKilledPublisherLeftIsNotFoundAgain) {
    tracker.saw(of("a", 1, 1), start);
    tracker.expire(start + seconds{10});
    EXPECT_EQ(tracker.saw(of("a", 1, 1), start + seconds{11}), Seen::stale);
    EXPECT_EQ(tracker.alive(), 0U);
}

TEST_F(Leases, AStoppedPublisherIsFoundAgain) {
    tracker.saw(of("a", 1, 1), start);
    tracker.expire(start + seconds{10});
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start + seconds{11}), Seen::found);
}

TEST_F(Leases, ARestartedPublisherTakesItsNameAtOnce) {
    tracker.saw(of("a", 1, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 2, 1), start + seconds{1}), Seen::changed);
    EXPECT_THAT(tracker.expire(start + seconds{10}), IsEmpty());
}

TEST_F(Leases, TwoOfOneNameDoNotTakeTurns) {
    tracker.saw(of("a", 1, 1), start);
    tracker.saw(of("a", 2, 1), start);
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start), Seen::contested);
    EXPECT_EQ(tracker.saw(of("a", 2, 2), start), Seen::alive);
}

TEST_F(Leases, TheFirstOfTwoMayComeBackWhenTheOtherIsGone) {
    tracker.saw(of("a", 1, 1), start);
    tracker.saw(of("a", 2, 1), start);
    tracker.expire(start + seconds{10});
    EXPECT_EQ(tracker.saw(of("a", 1, 2), start + seconds{10}), Seen::found);
}

TEST_F(Leases, NewFidsAreAChange) {
    tracker.saw(of("a", 1, 1), start);
    Announcement more = of("a", 1, 2);
    more.fids.push_back({.fids = {.first = Fid{1}, .last = Fid{2}}, .meaning = {}});
    EXPECT_EQ(tracker.saw(more, start), Seen::changed);
    more.counter = 3;
    EXPECT_EQ(tracker.saw(more, start), Seen::alive);
}

TEST_F(Leases, TheNumberOfPublishersIsLimited) {
    for (const char* name : {"a", "b", "c"})
        tracker.saw(of(name, 1, 1), start);
    EXPECT_EQ(tracker.saw(of("d", 1, 1), start), Seen::refused);
    EXPECT_TRUE(tracker.withdrawn("b"));
    EXPECT_EQ(tracker.saw(of("d", 1, 1), start), Seen::found);
    EXPECT_FALSE(tracker.withdrawn("b"));
}

TEST_F(Leases, OnABusWithLeasesRefusedOnesAreTakenOnceThereIsRoom) {
    const TimePoint later = start + seconds{9};
    for (const char* name : {"a", "b", "c", "d"})
        tracker.saw(of(name, 1, 1), start);
    for (const char* name : {"a", "b", "d"})
        EXPECT_TRUE(tracker.keep(name, later)) << "another read would not help";
    EXPECT_THAT(tracker.expire(start + seconds{10}), ElementsAre("c"));
    EXPECT_TRUE(tracker.keep("a", later));
    EXPECT_FALSE(tracker.keep("d", later));
    EXPECT_EQ(tracker.saw(of("d", 1, 1), later), Seen::found);
    EXPECT_EQ(tracker.saw(of("c", 1, 2), later), Seen::refused);
    EXPECT_TRUE(tracker.keep("c", later));
    tracker.withdrawn("a");
    EXPECT_FALSE(tracker.keep("c", later)) << "it was known, and its last announcement was refused";
    EXPECT_EQ(tracker.saw(of("c", 1, 2), later), Seen::found);
    EXPECT_TRUE(tracker.keep("c", later));
}

TEST_F(Leases, TimeWithoutReadsDoesNotCount) {
    tracker.saw(of("a", 1, 1), start);
    tracker.renew_all(start + seconds{30});
    EXPECT_THAT(tracker.expire(start + seconds{39}), IsEmpty());
    EXPECT_THAT(tracker.expire(start + seconds{40}), ElementsAre("a"));
}

// For any sequence of reads, a publisher is alive if its counter last moved within the lease time.
TEST_F(Leases, AgreeWithASimplerModel) {
    std::mt19937 random{1};
    LeaseTracker many{seconds{10}, 100};
    std::map<std::string, std::pair<std::uint64_t, TimePoint>> book; // counter, last change
    TimePoint now = start;
    for (int step = 0; step < 20000; ++step) {
        const std::string name{static_cast<char>('a' + random() % 20)};
        auto& [counter, moved] = book.try_emplace(name, 0, TimePoint{}).first->second;
        if (random() % 4 == 0) {
            ++counter;
            moved = now;
        }
        if (counter > 0) many.saw(of(name, 1, counter), now);
        now += std::chrono::milliseconds{random() % 500};
        many.expire(now);
        std::size_t alive = 0;
        for (const auto& [each, held] : book)
            if (held.first > 0 && now - held.second < seconds{10}) ++alive;
        ASSERT_EQ(many.alive(), alive) << step;
    }
}

// Room for twenty ranges, of any publishers.
class LeaseRoom : public testing::Test {
  protected:
    Seen say(const std::string& name, std::size_t ranges, TimePoint now = start) {
        Announcement one{.name = name, .instance = 1, .counter = ++counter_};
        one.fids.resize(ranges, {.fids = {}, .meaning = std::string(100, 'm')});
        return tracker.saw(one, now);
    }

    LeaseTracker tracker{seconds{10}, 100, 20 * (sizeof(AnnouncedFids) + 100)};

  private:
    std::uint64_t counter_ = 0;
};

TEST_F(LeaseRoom, GrowsWhenAnAnnouncementShrinks) {
    EXPECT_EQ(say("a", 10), Seen::found);
    EXPECT_EQ(say("b", 10), Seen::found);
    EXPECT_EQ(say("c", 1), Seen::refused);
    EXPECT_EQ(say("a", 10), Seen::alive);
    EXPECT_TRUE(tracker.keep("c", start)) << "no memory was released";
    EXPECT_EQ(say("a", 7), Seen::changed);
    EXPECT_FALSE(tracker.keep("c", start)) << "it must be read again";
    EXPECT_EQ(say("c", 4), Seen::refused);
    EXPECT_EQ(say("c", 3), Seen::found);
    EXPECT_EQ(say("d", 1), Seen::refused);
}

TEST_F(LeaseRoom, ShrinksWhenAnAnnouncementGrows) {
    EXPECT_EQ(say("a", 10), Seen::found);
    EXPECT_EQ(say("a", 15), Seen::changed);
    EXPECT_EQ(say("b", 6), Seen::refused);
    EXPECT_EQ(say("b", 5), Seen::found);
    EXPECT_EQ(say("a", 16), Seen::refused);
    EXPECT_EQ(say("a", 15), Seen::alive) << "its earlier announcement stays";
}

TEST_F(LeaseRoom, IsReleasedByRemovedPublishers) {
    EXPECT_EQ(say("a", 10), Seen::found);
    EXPECT_EQ(say("b", 10), Seen::found);
    EXPECT_EQ(say("c", 1), Seen::refused);
    EXPECT_THAT(tracker.expire(start + seconds{10}), ElementsAre("a", "b"));
    EXPECT_FALSE(tracker.keep("c", start + seconds{10}));
    EXPECT_EQ(say("d", 10, start + seconds{10}), Seen::found);
    EXPECT_EQ(say("a", 10, start + seconds{10}), Seen::found) << "it is back";
    EXPECT_EQ(say("c", 1, start + seconds{10}), Seen::refused);
    EXPECT_TRUE(tracker.withdrawn("d"));
    EXPECT_FALSE(tracker.withdrawn("b")) << "it was gone before";
    EXPECT_EQ(say("c", 10, start + seconds{10}), Seen::found);
    EXPECT_EQ(say("e", 1, start + seconds{10}), Seen::refused);
}

TEST(LeaseInstances, ZeroIsNoPredecessor) {
    LeaseTracker tracker{seconds{10}, 3};
    Announcement zero{.name = "a", .instance = 0, .counter = 1};
    EXPECT_EQ(tracker.saw(zero, start), Seen::found);
    zero.counter = 2;
    EXPECT_EQ(tracker.saw(zero, start), Seen::alive);
    EXPECT_TRUE(tracker.keep("a", start));
}

// A file server may show an old file for some time.
TEST(NameLease, ThePredecessorsLeaseStartsAtItsFirstRead) {
    const std::optional<Announcement> left = Announcement{.name = "a", .instance = 1, .counter = 9};
    NameLease claim{2, seconds{10}};
    EXPECT_TRUE(claim.may_write(left, false, start));
    EXPECT_FALSE(claim.may_write(left, false, start + seconds{10} - Duration{1}));
    EXPECT_TRUE(claim.may_write(left, false, start + seconds{10}));
}

TEST(RateLimitedWarnings, AWarningIsRepeatedOnlyAfterTheInterval) {
    RateLimitedWarnings warnings;
    EXPECT_EQ(warnings.line_for("one", start), "one");
    EXPECT_EQ(warnings.line_for("one", start + seconds{30}), std::nullopt);
    EXPECT_EQ(warnings.line_for("other", start + seconds{30}), "other");
    EXPECT_EQ(warnings.line_for("one", start + seconds{60} - Duration{1}), std::nullopt);
    EXPECT_EQ(warnings.line_for("one", start + seconds{60}), "one") << "60 s after the last report";
    EXPECT_EQ(warnings.line_for("other", start + seconds{60}), std::nullopt);
    EXPECT_EQ(warnings.line_for("other", start + seconds{90}), "other");
}

TEST(RateLimitedWarnings, AnOverflowIsReportedOncePerInterval) {
    RateLimitedWarnings warnings;
    for (std::size_t i = 0; i < RateLimitedWarnings::limit; ++i)
        EXPECT_EQ(warnings.line_for(std::to_string(i), start), std::to_string(i));
    EXPECT_EQ(warnings.line_for("0", start), std::nullopt) << "it was already reported";
    EXPECT_EQ(warnings.line_for("more", start), "the bus has more problems than are reported");
    for (const char* const next : {"more", "still more", "0"})
        EXPECT_EQ(warnings.line_for(next, start + seconds{59}), std::nullopt) << next;
    EXPECT_EQ(warnings.line_for("more", start + seconds{60}), "more");
}

using testing::HasSubstr;

class MemoryRegistry final : public Registry {
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
    int readings = 0; // reads of unchanged texts
    bool keeps_leases = false;
    bool broken = false;

  private:
    void check() const {
        if (broken) throw RegistryError{"cannot reach 'memory'"};
    }
    std::map<std::string, std::string> seen_;
};

Announcement of(const std::string& name, std::uint64_t instance) {
    return {.name = name, .instance = instance, .host = "h", .pid = 7};
}

class BusTexts : public testing::Test {
  protected:
    RegistryChanges look(TimePoint now) {
        reader.look(board, now);
        return reader.take_news();
    }

    void looks_at_two();

    MemoryRegistry board;
    RegistryReader reader{seconds{10}, 2};
    RegistryWriter writer{of("a", 1), seconds{10}};
};

TEST_F(BusTexts, AWrittenOneIsFoundAndARefreshIsNoChange) {
    writer.refresh(board, start);
    const RegistryChanges news = look(start);
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

TEST_F(BusTexts, ABrokenAnnouncementIsReportedAndOthersAreRead) {
    writer.refresh(board, start);
    board.texts["b"] = board.texts["a"].substr(0, 20);
    board.texts["c"] = board.texts["a"];
    const RegistryChanges news = look(start);
    EXPECT_EQ(news.publishers.size(), 1U);
    EXPECT_THAT(news.troubles,
                ElementsAre("the announcement 'b' is ignored: announcement: it is not JSON",
                            "the announcement 'c' is ignored: name: it is 'a'"));
}

TEST_F(BusTexts, AnUnreachableBusIsReportedOnceAndRemovesNoPublisher) {
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

TEST_F(BusTexts, ABusThatLostItsDataIsWrittenAgain) {
    board.keeps_leases = true;
    writer.refresh(board, start);
    look(start);
    board.texts.clear();
    look(start);
    writer.refresh(board, start + seconds{3});
    EXPECT_TRUE(look(start + seconds{3}).publishers.at("a").has_value());
}

TEST_F(BusTexts, ARegistryWithLeasesIsNotWrittenAgain) {
    board.keeps_leases = true;
    for (int round = 0; round < 9; ++round) {
        writer.refresh(board, start + seconds{3 * round});
        look(start + seconds{3 * round});
    }
    EXPECT_EQ(board.puts, 1);
    EXPECT_TRUE(look(start + seconds{30}).empty());
}

// It writes its text once, and would not be read again.
TEST_F(BusTexts, WithLeasesARefusedPublisherIsFoundOnceThereIsRoom) {
    board.keeps_leases = true;
    std::vector<RegistryWriter> writers;
    for (const char* name : {"a", "b", "c", "d"})
        writers.emplace_back(of(name, 1), seconds{10}).refresh(board, start);
    EXPECT_EQ(look(start).publishers.size(), 2U);
    EXPECT_TRUE(look(start + seconds{1}).publishers.empty());
    EXPECT_EQ(board.readings, 0) << "no publisher has gone";
    writers[0].withdraw(board);
    const RegistryChanges news = look(start + seconds{2});
    EXPECT_EQ(news.publishers.at("a"), std::nullopt);
    EXPECT_TRUE(news.publishers.at("c").has_value());
    EXPECT_FALSE(news.publishers.contains("d"));
    EXPECT_EQ(board.readings, 2);
    look(start + seconds{3});
    EXPECT_EQ(board.readings, 2);
}

TEST_F(BusTexts, AnUpdateIsWrittenAtOnce) {
    board.keeps_leases = true;
    writer.refresh(board, start);
    look(start);
    Announcement other = of("x", 9);
    other.mode = "unbuffered";
    writer.update(other);
    writer.refresh(board, start);
    const auto said = look(start).publishers.at("a");
    ASSERT_TRUE(said);
    EXPECT_EQ(said->mode, "unbuffered");
    EXPECT_EQ(said->instance, 1U);
}

TEST_F(BusTexts, TheLaterOfTwoWithOneNameIsFoundAndTheOtherWarns) {
    looks_at_two();
}

TEST_F(BusTexts, WithLeasesTheLaterOfTwoIsFoundToo) {
    board.keeps_leases = true;
    looks_at_two();
}

// One of them overwrites the other between two looks, as an earlier version may do, and the other
// ends.
TEST_F(BusTexts, WithLeasesAContestedNameChangesItsOwnerOnce) {
    board.keeps_leases = true;
    writer.refresh(board, start);
    const std::string first = board.texts["a"];
    look(start);
    RegistryWriter{of("a", 2), seconds{10}}.refresh(board, start);
    EXPECT_EQ(look(start).publishers.at("a")->instance, 2U);
    board.texts["a"] = first;
    EXPECT_THAT(look(start + seconds{1}).troubles, ElementsAre(HasSubstr("two publishers")));
    EXPECT_TRUE(look(start + seconds{9}).empty());
    look(start + seconds{10});
    const RegistryChanges news = look(start + seconds{11});
    ASSERT_TRUE(news.publishers.contains("a"));
    EXPECT_EQ(news.publishers.at("a")->instance, 1U);
    for (int second = 12; second < 60; ++second)
        EXPECT_TRUE(look(start + seconds{second}).publishers.empty()) << second;
}

void BusTexts::looks_at_two() {
    RegistryWriter later{of("a", 2), seconds{10}};
    writer.refresh(board, start);
    later.refresh(board, start);
    for (int round = 1; round < 20; ++round) {
        writer.refresh(board, start + seconds{round});
        later.refresh(board, start + seconds{round});
        const RegistryChanges news = look(start + seconds{round});
        if (round == 1) {
            EXPECT_EQ(news.publishers.at("a")->instance, 2U);
        } else {
            EXPECT_TRUE(news.empty()) << round;
        }
    }
    EXPECT_THAT(writer.take_troubles(), ElementsAre(HasSubstr("give each a different name")));
    EXPECT_THAT(later.take_troubles(), IsEmpty());
    later.withdraw(board);
    writer.refresh(board, start + seconds{20});
    EXPECT_EQ(look(start + seconds{20}).publishers.at("a")->instance, 1U);
}

TEST_F(BusTexts, APublisherWithoutItsNameDoesNotWithdrawTheOther) {
    RegistryWriter later{of("a", 2), seconds{10}};
    writer.refresh(board, start);
    later.refresh(board, start);
    writer.withdraw(board);
    EXPECT_TRUE(board.texts.contains("a"));
}

TEST_F(BusTexts, MorePublishersThanTheLimitArePassedOverWithAWord) {
    for (const char* name : {"a", "b", "c", "d"})
        RegistryWriter{of(name, 1), seconds{10}}.refresh(board, start);
    const RegistryChanges news = look(start);
    EXPECT_EQ(news.publishers.size(), 2U);
    EXPECT_THAT(news.troubles, ElementsAre(HasSubstr("more than 2 publishers")));
}

TEST_F(BusTexts, AThousandTroublesAreFewLines) {
    for (int i = 0; i < 1000; ++i)
        board.texts["b" + std::to_string(i)] = "x";
    RegistryChanges merged;
    merged.add(look(start)); // as on their way to the loop
    EXPECT_EQ(merged.troubles.size(), RateLimitedWarnings::line_limit);
    EXPECT_THAT(merged.troubles.back(), HasSubstr("more problems than are reported"));
    RegistryChanges later;
    later.troubles = {"one more"};
    merged.add(std::move(later));
    EXPECT_EQ(merged.troubles.size(), RateLimitedWarnings::line_limit);
}

} // namespace
} // namespace netio::pubsub::registry_reader_test
