// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/source_set.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <string>

namespace netio {
namespace {

const auto never = [] { return false; };
const auto at_once = [] { return true; };

struct Source final : EventSource {
    explicit Source(std::function<std::size_t(std::size_t)> what) : act{std::move(what)} {}
    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override { return act(budget); }
    bool may_sleep() override { return sleepy; }
    bool worth_polling() const noexcept override { return polled; }

    std::function<std::size_t(std::size_t)> act;
    bool sleepy = true;
    bool polled = false;
};

TEST(SourceSet, DrainsTheActiveOnesOnly) {
    SourceSet set;
    std::string log;
    Source a{[&](std::size_t) { return log += 'a', 1U; }};
    Source b{[&](std::size_t) { return log += 'b', 1U; }};
    set.add(a);
    set.add(b);
    EXPECT_TRUE(set.drain(10, never).worked);
    EXPECT_EQ(log, "ab") << "what was just added may have work already";
    EXPECT_FALSE(set.drain(10, never).worked);
    SourceSet::activate(b);
    set.drain(10, never);
    EXPECT_EQ(log, "abb");
}

TEST(SourceSet, APolledSourceStaysActiveUntilItIsArmed) {
    SourceSet set;
    int drained = 0;
    Source source{[&](std::size_t) { return ++drained, 0U; }};
    source.polled = true;
    set.add(source);
    set.drain(10, never);
    set.drain(10, never);
    EXPECT_EQ(drained, 2);
    source.sleepy = false;
    EXPECT_FALSE(set.arm());
    source.sleepy = true;
    EXPECT_TRUE(set.arm());
    set.drain(10, never);
    EXPECT_EQ(drained, 2);
    set.activate_polled();
    set.drain(10, never);
    EXPECT_EQ(drained, 3);
}

TEST(SourceSet, SaysWhetherSomethingIsLeft) {
    SourceSet set;
    std::size_t there = 3;
    Source source{[&](std::size_t budget) {
        const std::size_t work = std::min(budget, there);
        there -= work;
        return work;
    }};
    source.polled = true;
    set.add(source);
    EXPECT_FALSE(set.drain(2, never).completely);
    EXPECT_TRUE(set.drain(2, never).completely);
}

TEST(SourceSet, BeginsWhereItWasCutShort) {
    SourceSet set;
    std::string log;
    Source a{[&](std::size_t) { return log += 'a', 1U; }};
    Source b{[&](std::size_t) { return log += 'b', 1U; }};
    Source c{[&](std::size_t) { return log += 'c', 1U; }};
    for (Source* const source : {&a, &b, &c}) {
        source->polled = true;
        set.add(*source);
    }
    for (int i = 0; i < 4; ++i)
        EXPECT_FALSE(set.drain(10, at_once).completely);
    EXPECT_EQ(log, "abca");
}

TEST(SourceSet, SourcesMayComeAndGoWhileDraining) {
    SourceSet set;
    std::string log;
    Source late{[&](std::size_t) { return log += 'l', 1U; }};
    Source doomed{[&](std::size_t) { return log += 'd', 1U; }};
    Source last{[&](std::size_t) { return log += 'z', 1U; }};
    Source first{[&](std::size_t) {
        log += 'f';
        set.remove(doomed);
        set.add(late);
        return 1U;
    }};
    set.add(first);
    set.add(doomed);
    set.add(last);
    set.drain(10, never);
    EXPECT_EQ(log, "fz");
    EXPECT_FALSE(set.contains(doomed));
    set.drain(10, never);
    EXPECT_EQ(log, "fzl");
    set.remove(first);
    set.remove(late);
    set.remove(last);
    EXPECT_TRUE(set.empty());
}

TEST(SourceSet, ASourceThatWasRemovedIsNoneOfItAndMayComeAgain) {
    SourceSet set;
    std::string log;
    Source first{[&](std::size_t) { return log += 'f', 1U; }};
    Source second{[&](std::size_t) { return log += 's', 1U; }};
    set.add(first);
    set.add(second);
    set.remove(first);
    EXPECT_FALSE(set.contains(first));
    set.add(first);
    set.drain(10, never);
    EXPECT_EQ(log, "sf");
    set.remove(second);
    set.remove(first);
    EXPECT_TRUE(set.empty());
}

TEST(SourceSet, ASourceMayRemoveItself) {
    SourceSet set;
    Source source{[&](std::size_t) { return set.remove(source), 1U; }};
    set.add(source);
    EXPECT_TRUE(set.drain(10, never).worked);
    EXPECT_TRUE(set.empty());
    EXPECT_TRUE(set.arm());
}

TEST(SourceSet, TheTimeIsAskedForBehindWorkOnly) {
    SourceSet set;
    std::string log;
    Source idle{[&](std::size_t) { return log += 'i', 0U; }};
    Source busy{[&](std::size_t) { return log += 'b', 1U; }};
    Source late{[&](std::size_t) { return log += 'l', 1U; }};
    for (Source* const source : {&idle, &busy, &late})
        set.add(*source);
    EXPECT_FALSE(set.drain(10, at_once).completely);
    EXPECT_EQ(log, "ib");
}

} // namespace
} // namespace netio
