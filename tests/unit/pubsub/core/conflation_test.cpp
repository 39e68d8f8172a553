// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/conflation.hpp"

#include <gmock/gmock.h>

#include <array>
#include <deque>
#include <map>
#include <random>
#include <string>

namespace netio::pubsub::conflation_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::size_t overhead = ConflationStore::overhead_bytes;

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

std::vector<Fid> put(ConflationStore& store, std::uint64_t fid, const std::string& text,
                     std::uint8_t status = 0) {
    const std::vector<std::byte> bytes = bytes_of(text);
    const std::span<const std::byte> part{bytes};
    const std::span<const Fid> dropped = store.put(Fid{fid}, {&part, 1}, status);
    return {dropped.begin(), dropped.end()};
}
using Older = ConflationStore::Older;

Older put_older(ConflationStore& store, std::uint64_t fid, const std::string& text) {
    const std::vector<std::byte> bytes = bytes_of(text);
    const std::span<const std::byte> part{bytes};
    return store.put_older(Fid{fid}, {&part, 1}, 0);
}
std::string take(ConflationStore& store) {
    const ConflationStore::Message& message = store.front();
    std::string text = std::to_string(to_integer(message.fid)) + ":";
    for (const std::byte each : message.bytes)
        text += static_cast<char>(each);
    store.pop_front();
    return text;
}

TEST(ConflationStore, KeepsTheLastOfEachFidAndCountsThoseBeforeIt) {
    ConflationStore store{10000};
    EXPECT_THAT(put(store, 1, "a"), IsEmpty());
    EXPECT_THAT(put(store, 2, "b"), IsEmpty());
    EXPECT_THAT(put(store, 1, "c"), ElementsAre(Fid{1}));
    EXPECT_THAT(put(store, 1, "d", 7), ElementsAre(Fid{1}));
    EXPECT_THAT(store.take_dropped(), ElementsAre(FidCount{Fid{1}, 2}));
    EXPECT_EQ(take(store), "2:b");
    EXPECT_EQ(store.front().status, 7);
    EXPECT_EQ(take(store), "1:d");
    EXPECT_TRUE(store.empty());
    EXPECT_EQ(store.bytes(), 0U);
}

TEST(ConflationStore, PutsThePartsOfAMessageTogether) {
    ConflationStore store{10000};
    const std::vector<std::byte> one = bytes_of("ab");
    const std::vector<std::byte> two = bytes_of("cde");
    const std::array<std::span<const std::byte>, 2> parts{one, two};
    store.put(Fid{1}, parts, 0);
    EXPECT_EQ(take(store), "1:abcde");
}

TEST(ConflationStore, DropsTheOldestFidAtTheLimit) {
    ConflationStore store{3 * (overhead + 1)};
    put(store, 1, "a");
    put(store, 2, "b");
    put(store, 3, "c");
    EXPECT_EQ(store.bytes(), 3 * (overhead + 1));
    put(store, 1, "d");
    EXPECT_THAT(put(store, 4, "e"), ElementsAre(Fid{2}));
    EXPECT_THAT(put(store, 5, std::string(overhead + 2, 'f')), ElementsAre(Fid{3}, Fid{1}));
    EXPECT_THAT(store.take_dropped(),
                ElementsAre(FidCount{Fid{1}, 2}, FidCount{Fid{2}, 1}, FidCount{Fid{3}, 1}));
    EXPECT_EQ(take(store), "4:e");
}

TEST(ConflationStore, MissesAMessageAboveTheLimit) {
    ConflationStore store{overhead + 10};
    put(store, 1, "a");
    EXPECT_THAT(put(store, 1, std::string(11, 'b')), ElementsAre(Fid{1}, Fid{1}));
    EXPECT_FALSE(store.has_messages());
    EXPECT_FALSE(store.empty()) << "a loss must be reported";
    EXPECT_THAT(store.take_dropped(), ElementsAre(FidCount{Fid{1}, 2}));
    EXPECT_TRUE(store.empty());
    EXPECT_THAT(put(store, 1, std::string(10, 'c')), IsEmpty()) << "this one fits";
}

TEST(ConflationStore, AnOlderOneIsKeptOnlyIfItIsTheLastOfItsFid) {
    ConflationStore store{3 * (overhead + 1)};
    put(store, 1, "b");
    EXPECT_EQ(put_older(store, 1, "a"), Older::not_last) << "there is a newer one";
    EXPECT_EQ(put_older(store, 2, "c"), Older::kept);
    EXPECT_EQ(put_older(store, 2, "d"), Older::not_last);
    put(store, 3, "e");
    EXPECT_THAT(put(store, 5, "g"), ElementsAre(Fid{2})) << "it is older than all others";
    EXPECT_EQ(put_older(store, 2, "h"), Older::not_last) << "a newer one was dropped";
    EXPECT_EQ(take(store), "1:b");
}

TEST(ConflationStore, AnOlderOneMayTakeTheLastOfTheRoom) {
    ConflationStore store{2 * (overhead + 1)};
    put(store, 1, "b");
    EXPECT_EQ(put_older(store, 2, "a"), Older::kept);
    EXPECT_EQ(store.bytes(), 2 * (overhead + 1));
    EXPECT_EQ(put_older(store, 3, ""), Older::dropped);
}

TEST(ConflationStore, CountsAnOlderOneWithoutRoom) {
    ConflationStore store{overhead + 10};
    EXPECT_EQ(put_older(store, 1, std::string(11, 'c')), Older::dropped)
        << "nothing is dropped for it";
    EXPECT_FALSE(store.empty()) << "it must be reported";
    EXPECT_EQ(put_older(store, 1, "b"), Older::not_last) << "it would arrive after a newer one";
    EXPECT_EQ(put_older(store, 2, "a"), Older::kept);
    EXPECT_THAT(store.take_dropped(), ElementsAre(FidCount{Fid{1}, 1}));
    EXPECT_EQ(take(store), "2:a");
    EXPECT_TRUE(store.empty());
}

TEST(ConflationStore, ForgetsFidsAndReportsTheirLosses) {
    ConflationStore store{10000};
    for (const std::uint64_t fid : {1U, 2U, 3U, 4U, 7U}) {
        put(store, fid, "a");
        put(store, fid, "b");
    }
    const std::array set{FidRange{.first = Fid{2}, .last = Fid{3}},
                         FidRange{.first = Fid{5}, .last = Fid{UINT64_MAX}}};
    const ConflationStore::Forgotten gone = store.forget(set);
    EXPECT_THAT(gone.dropped,
                ElementsAre(FidCount{Fid{2}, 2}, FidCount{Fid{3}, 2}, FidCount{Fid{7}, 2}));
    EXPECT_THAT(gone.dropped_now, UnorderedElementsAre(Fid{2}, Fid{3}, Fid{7}));
    EXPECT_THAT(store.take_dropped(), ElementsAre(FidCount{Fid{1}, 1}, FidCount{Fid{4}, 1}));
    EXPECT_EQ(take(store), "1:b");
    EXPECT_EQ(take(store), "4:b");
}

// Compared with lists of all messages: each fid delivers a gap and then its last message, the
// counts are exact, and the limit is kept.
TEST(ConflationStore, AgreesWithAPlainModel) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937 random{seed};
        const std::size_t limit = overhead + random() % (5 * overhead);
        ConflationStore store{limit};
        std::map<Fid, std::deque<std::string>> due; // put, and neither delivered nor reported
        std::map<Fid, std::uint64_t> dropped;       // as reported by put()
        int number = 0;
        const auto tell = [&](const std::vector<FidCount>& counts) {
            for (const auto& [fid, count] : counts) {
                ASSERT_EQ(dropped[fid], count) << seed;
                ASSERT_LE(count, due[fid].size()) << seed;
                due[fid].erase(due[fid].begin(),
                               due[fid].begin() + static_cast<std::ptrdiff_t>(count));
                dropped[fid] = 0;
            }
        };
        for (int step = 0; step < 200; ++step) {
            const std::uint64_t fid = random() % 6;
            const std::string text = std::to_string(number++) + std::string(random() % 200, 'x');
            switch (random() % 12) {
            default: {
                for (const Fid each : put(store, fid, text))
                    ++dropped[each];
                due[Fid{fid}].push_back(text);
                ASSERT_EQ(store.has_messages(), !store.empty() && store.messages() > 0) << seed;
                break;
            }
            case 0:
                switch (put_older(store, fid, text)) {
                case Older::not_last:
                    ASSERT_FALSE(due[Fid{fid}].empty()) << seed;
                    break;
                case Older::dropped:
                    ++dropped[Fid{fid}];
                    [[fallthrough]];
                case Older::kept:
                    ASSERT_TRUE(due[Fid{fid}].empty()) << seed;
                    due[Fid{fid}].push_front(text);
                }
                break;
            case 1: {
                const FidRange range{.first = Fid{fid}, .last = Fid{fid + random() % 2}};
                const ConflationStore::Forgotten gone = store.forget({&range, 1});
                for (const Fid each : gone.dropped_now)
                    ++dropped[each];
                tell(gone.dropped);
                for (std::uint64_t each = fid; each <= to_integer(range.last); ++each)
                    ASSERT_TRUE(due[Fid{each}].empty()) << seed;
                break;
            }
            case 2:
                tell(store.take_dropped());
                for (auto left = random() % 3; left > 0 && store.has_messages(); --left) {
                    const Fid first = store.front().fid;
                    ASSERT_EQ(due[first].size(), 1U) << seed << ": the last one";
                    ASSERT_EQ(take(store), std::to_string(to_integer(first)) + ":" + due[first][0]);
                    due[first].clear();
                }
            }
            ASSERT_LE(store.bytes(), limit) << seed;
            std::size_t kept = 0;
            for (const auto& [each, list] : due) {
                ASSERT_GE(list.size(), dropped[each]) << seed;
                kept += list.size() - dropped[each];
            }
            ASSERT_EQ(store.messages(), kept) << seed;
        }
    }
}

constexpr SubscriberId anna{1};
constexpr SubscriberId bert{2};
constexpr std::array<FidRange, 1> range(std::uint64_t first, std::uint64_t last) {
    return {{{.first = Fid{first}, .last = Fid{last}}}};
}

void put(ConflationTable& book, SubscriberId subscriber, std::uint64_t fid) {
    book.store_of(subscriber)->put(Fid{fid}, {}, 0);
}

TEST(ConflationTable, HasAStoreOnlyForSubscribersOfTheNewest) {
    ConflationTable book{10000, 100};
    book.note(anna, range(1, 9), SlowPolicy::drop);
    EXPECT_EQ(book.store_of(anna), nullptr);
    EXPECT_EQ(book.requests(anna), 0U);
    book.note(anna, range(5, 5), SlowPolicy::newest);
    ASSERT_NE(book.store_of(anna), nullptr);
    EXPECT_EQ(book.store_of(bert), nullptr);
    EXPECT_EQ(book.store_of(bert, Fid{5}, UINT32_MAX), nullptr);
    EXPECT_FALSE(book.keeps(anna));
    put(book, anna, 5);
    EXPECT_TRUE(book.keeps(anna));
    book.remove(anna);
    EXPECT_FALSE(book.keeps(anna));
}

TEST(ConflationTable, IgnoresMessagesOfEarlierSubscriptions) {
    ConflationTable book{10000, 100};
    book.note(anna, range(1, 1), SlowPolicy::newest);
    const std::uint32_t before = book.requests(anna);
    book.note(anna, range(2, 2), SlowPolicy::newest);
    const std::uint32_t after = book.requests(anna);
    EXPECT_EQ(book.store_of(anna, Fid{1}, 0), nullptr);
    EXPECT_NE(book.store_of(anna, Fid{1}, before), nullptr);
    EXPECT_EQ(book.store_of(anna, Fid{2}, before), nullptr);
    EXPECT_NE(book.store_of(anna, Fid{2}, after), nullptr);
    EXPECT_EQ(book.store_of(anna, Fid{3}, after), nullptr);
}

TEST(ConflationTable, ASecondRequestForTheSameChangesNothing) {
    ConflationTable book{10000, 100};
    book.note(anna, range(1, 3), SlowPolicy::newest);
    const std::uint32_t before = book.requests(anna);
    put(book, anna, 2);
    EXPECT_THAT(book.note(anna, range(2, 5), SlowPolicy::newest).dropped, IsEmpty());
    EXPECT_TRUE(book.keeps(anna));
    EXPECT_NE(book.store_of(anna, Fid{2}, before), nullptr);
    EXPECT_EQ(book.store_of(anna, Fid{5}, before), nullptr);
}

TEST(ConflationTable, AnotherPolicyOrNoneEndsWhatIsKept) {
    for (const std::optional<SlowPolicy> policy :
         {std::optional<SlowPolicy>{}, std::optional{SlowPolicy::block}}) {
        ConflationTable book{10000, 100};
        book.note(anna, range(1, 3), SlowPolicy::newest);
        for (std::uint64_t fid = 1; fid <= 3; ++fid)
            put(book, anna, fid);
        const ConflationStore::Forgotten gone = book.note(anna, range(2, 2), policy);
        EXPECT_THAT(gone.dropped, ElementsAre(FidCount{Fid{2}, 1}));
        EXPECT_THAT(gone.dropped_now, ElementsAre(Fid{2}));
        EXPECT_EQ(book.store_of(anna)->messages(), 2U);
        EXPECT_EQ(book.store_of(anna, Fid{2}, UINT32_MAX), nullptr);
        const std::uint32_t before = book.requests(anna);
        book.note(anna, range(2, 2), SlowPolicy::newest);
        EXPECT_EQ(book.store_of(anna, Fid{2}, before), nullptr) << "of the earlier subscription";
    }
}

// Otherwise an unauthenticated peer that subscribes fid by fid would get an entry for each.
TEST(ConflationTable, FidsThatAreAskedForOneByOneDoNotAddUp) {
    ConflationTable book{10000, 4};
    for (std::uint64_t fid = 1; fid <= 20; ++fid)
        book.note(anna, range(fid, fid), SlowPolicy::newest);
    EXPECT_NE(book.store_of(anna, Fid{1}, 1), nullptr);
    const std::uint32_t before = book.requests(anna);
    book.note(anna, range(21, 21), SlowPolicy::newest);
    EXPECT_EQ(book.store_of(anna, Fid{1}, before), nullptr);
    EXPECT_NE(book.store_of(anna, Fid{1}, book.requests(anna)), nullptr);
}

} // namespace
} // namespace netio::pubsub::conflation_test
