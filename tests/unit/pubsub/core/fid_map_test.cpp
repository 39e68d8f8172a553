// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_map.hpp"

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace netio::pubsub::fid_map_test {
namespace {

std::map<Fid, int> contents(const FidMap<int>& map) {
    std::map<Fid, int> all;
    map.for_each([&](Fid fid, int value) { EXPECT_TRUE(all.emplace(fid, value).second); });
    return all;
}

TEST(FidMap, FindsNothingWhenEmpty) {
    FidMap<int> map;
    EXPECT_TRUE(map.empty());
    EXPECT_EQ(map.find(Fid{0}), nullptr);
    EXPECT_FALSE(map.erase(Fid{0}));
}

TEST(FidMap, MakesAValueAtFirstUse) {
    FidMap<int> map;
    map[Fid{7}] += 3;
    map[Fid{7}] += 4;
    ASSERT_NE(map.find(Fid{7}), nullptr);
    EXPECT_EQ(*map.find(Fid{7}), 7);
    EXPECT_EQ(map.size(), 1U);
}

TEST(FidMap, TakesTheWholeRangeOfFids) {
    FidMap<int> map;
    map[Fid{0}] = 1;
    map[Fid{UINT64_MAX}] = 2;
    EXPECT_EQ(*map.find(Fid{0}), 1);
    EXPECT_EQ(*map.find(Fid{UINT64_MAX}), 2);
}

// Internally one fid marks an empty slot, until a user inserts this fid.
TEST(FidMap, StoresTheFidThatMarksEmptySlots) {
    constexpr Fid initial_vacant = FidMap<int>::initial_vacant;
    for (const std::uint64_t others : {0U, 1U, 3U, 4U, 1000U}) {
        FidMap<int> map;
        for (std::uint64_t fid = 0; fid < others; ++fid)
            map[Fid{fid}] = 1;
        EXPECT_EQ(map.find(initial_vacant), nullptr);
        EXPECT_FALSE(map.erase(initial_vacant));
        map[initial_vacant] = 5;
        map[Fid{others}] = 6; // the map may have to grow
        ASSERT_NE(map.find(initial_vacant), nullptr);
        EXPECT_EQ(*map.find(initial_vacant), 5);
        EXPECT_EQ(map.size(), others + 2);
        EXPECT_EQ(contents(map).size(), others + 2);
        EXPECT_EQ(map.find(Fid{others + 1}), nullptr);
        EXPECT_TRUE(map.erase(initial_vacant));
        EXPECT_EQ(map.find(initial_vacant), nullptr);
        EXPECT_EQ(contents(map).size(), others + 1);
        map[initial_vacant] = 7;
        EXPECT_EQ(contents(map).at(initial_vacant), 7);
    }
}

// A look-up without an insertion must not return an empty slot.
TEST(FidMap, TheFidThatMarksEmptySlotsIsNotFound) {
    detail::FidTable table;
    table.fids[Fid{1}].generation = table.generation;
    EXPECT_NE(table.find_current(Fid{1}), nullptr);
    EXPECT_EQ(table.find_current(FidMap<int>::initial_vacant), nullptr);
    EXPECT_EQ(table.find_current(Fid{2}), nullptr);
    ArrivalCounter counter;
    counter.add_dropped(Fid{1}, 3);
    EXPECT_NE(counter.find(Fid{1}), nullptr) << "counted, although nothing has arrived";
    EXPECT_EQ(counter.find(FidMap<int>::initial_vacant), nullptr);
    EXPECT_EQ(counter.find(Fid{2}), nullptr);
}

template <typename Value>
bool lie_in_one_line_each() {
    FidMap<Value> map;
    for (std::uint64_t fid = 0; fid < 100; ++fid)
        map[Fid{fid}] = {};
    bool all = true;
    map.for_each([&](Fid, const Value& value) {
        const auto begin = reinterpret_cast<std::uintptr_t>(&value) - sizeof(Fid);
        const auto last = reinterpret_cast<std::uintptr_t>(&value) + sizeof(Value) - 1;
        all = all && begin / 64 == last / 64;
    });
    return all;
}

TEST(FidMap, AFidAndAValueOfUpToThreeWordsLieInOneCacheLine) {
    EXPECT_TRUE((lie_in_one_line_each<std::array<std::uint64_t, 1>>()));
    EXPECT_TRUE((lie_in_one_line_each<std::array<std::uint64_t, 2>>()));
    EXPECT_TRUE((lie_in_one_line_each<std::array<std::uint64_t, 3>>()));
    EXPECT_EQ((FidMap<std::array<std::uint64_t, 3>>::slot_bytes()), 32U);
    EXPECT_EQ((FidMap<std::array<std::uint64_t, 4>>::slot_bytes()), 40U);
}

// A few fids of a large range, and many fids of a small range, are found in different ways.
TEST(FidMap, VisitsAndErasesThoseOfARange) {
    for (const std::uint64_t last : {std::uint64_t{12}, UINT64_MAX}) {
        FidMap<int> map;
        for (std::uint64_t fid = 0; fid < 40; fid += 2)
            map[Fid{fid}] = static_cast<int>(fid);
        const FidRange range{.first = Fid{3}, .last = Fid{last}};
        std::map<Fid, int> in_range;
        map.for_each_in(range, [&](Fid fid, int value) { in_range.emplace(fid, value); });
        std::map<Fid, int> rest = contents(map);
        std::erase_if(rest, [&](const auto& each) { return contains(range, each.first); });
        EXPECT_EQ(in_range.size() + rest.size(), 20U);
        EXPECT_EQ(in_range.begin()->first, Fid{4});
        EXPECT_EQ(in_range.begin()->second, 4);
        EXPECT_EQ(in_range.rbegin()->first, Fid{last == 12 ? 12U : 38U});
        map.erase(range);
        EXPECT_EQ(contents(map), rest);
    }
}

// Few distinct fids make long runs of collisions, many make the map grow; both are compared with
// std::map after every step.
class FidMapAgainstMap : public testing::TestWithParam<std::uint64_t> {};

TEST_P(FidMapAgainstMap, AgreesInEveryStep) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937_64 random{seed};
        FidMap<int> map;
        std::map<Fid, int> truth;
        for (int step = 0; step < 2000; ++step) {
            // Multiples of a large power of two collide in many hash functions.
            Fid fid{(random() % GetParam()) << (seed % 2 == 0 ? 0 : 40)};
            if (random() % 50 == 0) fid = FidMap<int>::initial_vacant;
            if (random() % 3 == 0) {
                ASSERT_EQ(map.erase(fid), truth.erase(fid) == 1) << "seed " << seed;
            } else {
                map[fid] = step;
                truth[fid] = step;
            }
            ASSERT_EQ(map.size(), truth.size()) << "seed " << seed;
            const Fid other{random() % GetParam()};
            const auto expected = truth.find(other);
            const int* found = map.find(other);
            ASSERT_EQ(found != nullptr, expected != truth.end()) << "seed " << seed;
            if (found != nullptr) {
                ASSERT_EQ(*found, expected->second);
            }
        }
        EXPECT_EQ(contents(map), truth) << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Fids, FidMapAgainstMap, testing::Values(3, 40, 100000));

// The fid with this hash for the known multiplier; every step of the hash can be inverted.
std::uint64_t fid_of_hash(std::uint64_t hash) {
    constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15;
    std::uint64_t inverse = golden_ratio; // by Newton's iteration
    for (int i = 0; i < 6; ++i)
        inverse *= 2 - golden_ratio * inverse;
    const std::uint64_t folded = hash * inverse;
    return (folded ^ (folded >> 32)) * inverse;
}

TEST(FidMap, FidsChosenToCollideAreSpreadNevertheless) {
    FidMap<std::uint64_t> map;
    constexpr std::uint64_t count = 50'000;
    for (std::uint64_t i = 0; i < count; ++i)
        map[Fid{fid_of_hash(i)}] = i; // all of them hash to the first slot
    EXPECT_LT(map.farthest(), 512U);
    ASSERT_EQ(map.size(), count);
    for (std::uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(*map.find(Fid{fid_of_hash(i)}), i);
    for (std::uint64_t i = 0; i < count; i += 2)
        ASSERT_TRUE(map.erase(Fid{fid_of_hash(i)}));
    for (std::uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(map.find(Fid{fid_of_hash(i)}) != nullptr, i % 2 == 1);
}

TEST(FidMap, ReportsTheLongestDistanceFromHome) {
    FidMap<std::uint64_t> map;
    EXPECT_EQ(map.farthest(), 0U);
    constexpr std::uint64_t count = 20;
    for (std::uint64_t i = 0; i < count; ++i) {
        map[Fid{fid_of_hash(i)}] = i; // all of them hash to the first slot
        EXPECT_EQ(map.farthest(), i);
    }
}

// The output of a program should be the same in every run. Random hashing is used only against fids
// that were chosen to collide.
TEST(FidMap, TheSameFidsAreVisitedInTheSameOrderInEveryMap) {
    const auto order_of = [] {
        FidMap<std::uint64_t> map;
        for (std::uint64_t fid = 0; fid < 1000; ++fid)
            map[Fid{fid << 16}] = fid;
        std::vector<std::uint64_t> order;
        map.for_each([&](Fid, std::uint64_t value) { order.push_back(value); });
        return order;
    };
    EXPECT_EQ(order_of(), order_of());
}

TEST(FidMap, EachIsVisitedOnceAlsoTheOneInTheFirstPlace) {
    for (std::uint64_t fids = 1; fids <= 64; ++fids) {
        FidMap<int> map;
        for (std::uint64_t i = 0; i < fids; ++i)
            map[Fid{fid_of_hash(i << 58)}] = 0; // distributed over the whole map
        map.for_each([](Fid, int& value) { ++value; });
        for (const auto& [fid, value] : contents(map))
            ASSERT_EQ(value, 1) << fids << " fids: " << to_string(fid);
        map.clear();
        EXPECT_EQ(map.find(Fid{fid_of_hash(0)}), nullptr);
    }
}

TEST(FidMap, AWalkInPartsMeetsEachValueOnce) {
    FidMap<std::uint64_t> map;
    for (std::uint64_t fid = 0; fid < 5000; ++fid)
        map[Fid{fid * 16}] = fid;
    std::set<std::uint64_t> seen;
    std::size_t next = 0;
    while (next < map.places()) {
        int left = 3;
        next = map.visit_places(next, 10, [&](Fid fid, std::uint64_t value) {
            if (left-- == 0) return false;
            EXPECT_EQ(fid, Fid{value * 16});
            EXPECT_TRUE(seen.insert(value).second);
            return true;
        });
    }
    EXPECT_EQ(seen.size(), 5000U);
    const FidMap<std::uint64_t> empty;
    EXPECT_EQ(empty.visit_places(0, 10, [](Fid, std::uint64_t) { return true; }), empty.places());
}

TEST(FidMap, AfterAReservationNothingIsMoved) {
    for (const std::uint64_t fids : {1U, 4U, 5U, 1000U, 1024U, 1025U}) {
        FidMap<std::uint64_t> map;
        map[Fid{0}] = 7;
        map.reserve(fids);
        const std::size_t places = map.places();
        EXPECT_LT(places, std::max<std::size_t>(4 * fids, 9));
        for (std::uint64_t fid = 0; fid < fids; ++fid)
            map[Fid{fid}] += fid;
        EXPECT_EQ(map.places(), places);
        EXPECT_EQ(map.size(), fids);
        EXPECT_EQ(*map.find(Fid{0}), 7U);
        map.reserve(fids / 2);
        EXPECT_EQ(map.places(), places) << "the map never shrinks";
        EXPECT_EQ(*map.find(Fid{fids - 1}), fids == 1 ? 7U : fids - 1);
    }
}

// To show 1,000 of 1,000,000 fids, only a few thousand slots are read.
TEST(FidMap, AWalkThatIsEndedLooksNoFurther) {
    FidMap<std::uint64_t> map;
    for (std::uint64_t fid = 0; fid < 1'000'000; ++fid)
        map[Fid{fid * 16}] = fid;
    std::size_t calls = 0;
    const std::size_t looked_at =
        map.visit_places(0, map.places(), [&](Fid, std::uint64_t) { return calls++ < 1000; });
    EXPECT_EQ(calls, 1001U);
    EXPECT_LT(looked_at, 8000U);
}

} // namespace
} // namespace netio::pubsub::fid_map_test
