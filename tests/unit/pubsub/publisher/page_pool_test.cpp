// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/page_pool.hpp"

#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

namespace netio::pubsub::page_pool_test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

PageBudget::Options small() {
    return {.page_size_bytes = 1024, .page_count = 8, .largest_message_bytes = 1 << 20};
}

TEST(PageBudget, RefuseWhatCannotKeepThePromisesOfThePolicies) {
    const auto with = [](auto change) {
        PageBudget::Options options = small();
        change(options);
        return options;
    };
    EXPECT_NO_THROW(PageBudget{with([](auto& it) { it.queue_limit_bytes = 4096; })});
    EXPECT_THROW(PageBudget{with([](auto& it) { it.queue_limit_bytes = 4097; })},
                 std::invalid_argument);
    EXPECT_THROW(PageBudget{with([](auto& it) { it.page_size_bytes = 255; })},
                 std::invalid_argument);
    EXPECT_THROW(PageBudget{with([](auto& it) { it.page_count = 1; })}, std::invalid_argument);
    EXPECT_NO_THROW(PageBudget{with([](auto& it) { it.watermark_bytes = 1024; })});
    EXPECT_THROW(PageBudget{with([](auto& it) { it.watermark_bytes = 1025; })},
                 std::invalid_argument);
}

TEST(PageBudget, AMessageMayTakeAllPagesButOne) {
    EXPECT_EQ(PageBudget{small()}.message_limit(), 7U * 1024);
    PageBudget::Options options = small();
    options.largest_message_bytes = 2000;
    EXPECT_EQ(PageBudget{options}.message_limit(), 2000U);
}

TEST(PageBudget, WithoutAWatermarkAPageLeavesWhenItIsFull) {
    EXPECT_EQ(PageBudget{small()}.watermark_bytes(), 1024U);
    EXPECT_EQ(PageBudget{small()}.set_aside(), 2048U);
}

TEST(PageBudget, AWatermarkIsTheOptions) {
    PageBudget::Options options = small();
    options.watermark_bytes = 512;
    EXPECT_EQ(PageBudget{options}.watermark_bytes(), 512U);
}

TEST(PageBudget, DroppingQueuesMayHoldMoreThanBlockingOnes) {
    PageBudget::Options options = small();
    options.page_count = 65536; // 64 MiB
    const PageBudget limits{options};
    EXPECT_EQ(limits.limit_of(SlowPolicy::block), std::size_t{1} << 20);
    EXPECT_EQ(limits.limit_of(SlowPolicy::disconnect), std::size_t{1} << 20);
    EXPECT_EQ(limits.limit_of(SlowPolicy::drop), std::size_t{4} << 20);
    EXPECT_EQ(limits.limit_of(SlowPolicy::newest), std::size_t{1} << 20)
        << "more would only be old";
    EXPECT_EQ(PageBudget{small()}.limit_of(SlowPolicy::drop), 4096U); // half of the pool
    options.queue_limit_bytes = 5000;
    EXPECT_EQ(PageBudget{options}.limit_of(SlowPolicy::drop), 5000U);
}

TEST(PageBudget, AFullQueueDropsOrBlocksByItsPolicy) {
    const PageBudget limits{small()};
    const MemoryBudget budget{limits.pool()};
    const auto admit = [&](std::size_t held, SlowPolicy policy) {
        return limits.admit({.waiting = held / 2, .posted = held - held / 2}, policy, budget, {});
    };
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::disconnect})
        EXPECT_EQ(admit(4095, policy), Admit::enqueue);
    EXPECT_EQ(admit(4096, SlowPolicy::block), Admit::block);
    EXPECT_EQ(admit(4096, SlowPolicy::disconnect), Admit::block);
    EXPECT_EQ(admit(4096, SlowPolicy::drop), Admit::drop);
    EXPECT_EQ(admit(4096, SlowPolicy::newest), Admit::drop);
}

TEST(PageBudget, LargeMessageKeepsQueueBelowHalfOfThePool) {
    const PageBudget limits{small()};
    const MemoryBudget budget{limits.pool()};
    const auto admit = [&](std::size_t held, std::size_t message_bytes, SlowPolicy policy) {
        return limits.admit({.waiting = held}, policy, budget,
                            {.bytes = message_bytes, .is_large = true});
    };
    EXPECT_EQ(admit(1000, 3096, SlowPolicy::block), Admit::enqueue);
    EXPECT_EQ(admit(1000, 3097, SlowPolicy::block), Admit::block);
    EXPECT_EQ(admit(1000, 3097, SlowPolicy::drop), Admit::drop);
    EXPECT_EQ(admit(0, 7 * 1024, SlowPolicy::block), Admit::enqueue)
        << "the only way to publish it";
}

TEST(PageBudget, OneMorePageMayBringItBeyondHalfOfThePool) {
    const PageBudget limits{small()};
    const MemoryBudget budget{limits.pool()};
    EXPECT_EQ(limits.admit({.waiting = 4000}, SlowPolicy::block, budget, {.bytes = 1024}),
              Admit::enqueue);
}

TEST(PageBudget, LimitsBlockingQueueWhenMemoryIsNotPlenty) {
    const PageBudget limits{small()};
    MemoryBudget budget{limits.pool(), limits.largest()};
    budget.set_subscribers(4);
    const std::size_t free = limits.pool();
    const std::size_t limit = budget.waiting_limit(free);
    ASSERT_GT(limit, 100U);
    const auto admit = [&](std::size_t bytes, SlowPolicy policy, bool is_confined) {
        return limits.admit({.waiting = 100}, policy, budget,
                            {.bytes = bytes, .is_confined = is_confined, .free = free});
    };
    EXPECT_EQ(admit(limit - 100, SlowPolicy::block, true), Admit::enqueue);
    EXPECT_EQ(admit(limit - 99, SlowPolicy::block, true), Admit::block);
    EXPECT_EQ(admit(limit - 99, SlowPolicy::disconnect, true), Admit::block);
    EXPECT_EQ(admit(limit - 99, SlowPolicy::block, false), Admit::enqueue);
    EXPECT_EQ(admit(limit - 99, SlowPolicy::drop, true), Admit::enqueue) << "it can be reclaimed";
}

TEST(PageBudget, AnEmptyQueueAdmitsEvenWithoutFreeMemory) {
    const PageBudget limits{small()};
    MemoryBudget budget{limits.pool()};
    budget.use(limits.pool());
    EXPECT_EQ(limits.admit({}, SlowPolicy::drop, budget, {}), Admit::enqueue);
    EXPECT_EQ(limits.admit({.waiting = 1}, SlowPolicy::drop, budget, {}), Admit::drop);
}

TEST(ByteArena, TakesTheLowestPieceThatIsLargeEnough) {
    ByteArena arena{1024};
    const auto first = arena.take(64, 128);
    const auto second = arena.take(64, 128);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->offset, 0U);
    EXPECT_EQ(second->offset, 128U);
    arena.release(*first);
    const auto third = arena.take(256, 256);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->offset, 256U) << "the hole before it is too small";
    EXPECT_EQ(arena.take(64, 128)->offset, 0U);
}

TEST(ByteArena, TheUnusedRestOfAPieceIsForTheNext) {
    ByteArena arena{256 * 1024};
    for (int i = 0; i < 32; ++i) {
        auto piece = arena.take(64, 256 * 1024);
        ASSERT_TRUE(piece) << "a page of 4 kB must not block 256 KiB";
        arena.shorten(*piece, 4096);
    }
    EXPECT_EQ(arena.free_bytes(), 128U * 1024U);
    EXPECT_EQ(arena.hole_count(), 1U);
}

TEST(ByteArena, TakesTheLargestPieceIfNoneSuffices) {
    ByteArena arena{512};
    ASSERT_TRUE(arena.take(64, 64));
    const auto middle = arena.take(64, 64);
    ASSERT_TRUE(arena.take(64, 64));
    arena.release(*middle);
    const auto largest = arena.take(64, 1024);
    ASSERT_TRUE(largest);
    EXPECT_EQ(largest->size, 320U);
    EXPECT_FALSE(arena.take(128, 128)) << "only the hole of 64 bytes is left";
}

TEST(ByteArena, TakesTheLowestHoleThatFits) {
    ByteArena arena{256};
    std::array<ByteArena::Piece, 4> pieces;
    for (ByteArena::Piece& piece : pieces)
        piece = arena.take(64, 64).value();
    arena.release(pieces[0]);
    arena.release(pieces[2]);
    for (const std::size_t lowest : {pieces[0].offset, pieces[2].offset}) {
        const auto piece = arena.take(64, 1024);
        ASSERT_TRUE(piece);
        EXPECT_EQ(piece->offset, lowest);
        EXPECT_EQ(piece->size, 64U);
    }
    EXPECT_FALSE(arena.take(1, 1));
}

TEST(ByteArena, NothingIsNoHole) {
    ByteArena small{ByteArena::grain - 1};
    EXPECT_EQ(small.free_bytes(), 0U);
    EXPECT_EQ(small.hole_count(), 0U);
    EXPECT_FALSE(small.take(1, 1));
    ByteArena used{64};
    ASSERT_TRUE(used.take(64, 64));
    used.release({});
    EXPECT_EQ(used.hole_count(), 0U);
}

TEST(ByteArena, TheMinimumCountsIfItExceedsTheWantedSize) {
    ByteArena arena{1024};
    EXPECT_EQ(arena.take(100, 10)->size, 128U);
    EXPECT_EQ(arena.take(1, 1)->offset, 128U);
}

TEST(ByteArena, NeverGivesAByteTwiceAndForgetsNone) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random{seed};
        constexpr std::size_t grains = 64;
        ByteArena arena{grains * ByteArena::grain};
        std::vector<ByteArena::Piece> pieces;
        std::vector<bool> used(grains, false);
        std::size_t free = grains;
        const auto mark = [&](std::size_t offset, std::size_t size, bool taken) {
            for (std::size_t i = 0; i < size / ByteArena::grain; ++i) {
                ASSERT_NE(used[offset / ByteArena::grain + i], taken) << "seed " << seed;
                used[offset / ByteArena::grain + i] = taken;
            }
            free += taken ? 0 - size / ByteArena::grain : size / ByteArena::grain;
        };
        for (int step = 0; step < 200; ++step) {
            const std::size_t which = pieces.empty() ? 0 : random() % pieces.size();
            if (random() % 2 == 0) {
                const std::size_t least = 1 + random() % 400;
                const auto piece = arena.take(least, least + random() % 400);
                if (!piece) continue;
                ASSERT_GE(piece->size, least);
                mark(piece->offset, piece->size, true);
                pieces.push_back(*piece);
            } else if (!pieces.empty() && random() % 2 == 0) {
                const ByteArena::Piece before = pieces[which];
                arena.shorten(pieces[which], random() % 300);
                mark(before.offset + pieces[which].size, before.size - pieces[which].size, false);
            } else if (!pieces.empty()) {
                arena.release(pieces[which]);
                mark(pieces[which].offset, pieces[which].size, false);
                pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(which));
            }
            ASSERT_EQ(arena.free_bytes(), free * ByteArena::grain);
        }
        for (const ByteArena::Piece& piece : pieces)
            arena.release(piece);
        EXPECT_EQ(arena.hole_count(), 1U) << "seed " << seed;
    }
}

TEST(ByteArena, ExtendsAPieceOnlyIntoTheHoleAfterIt) {
    ByteArena arena{512};
    auto piece = arena.take(64, 64);
    const auto next = arena.take(64, 64);
    EXPECT_FALSE(arena.extend(*piece, 128)) << "the next piece begins there";
    EXPECT_EQ(piece->size, 64U);
    arena.release(*next);
    EXPECT_FALSE(arena.extend(*piece, 576)) << "the hole is too small";
    EXPECT_TRUE(arena.extend(*piece, 128));
    EXPECT_EQ(piece->size, 128U);
    EXPECT_EQ(arena.free_bytes(), 384U);
    EXPECT_EQ(arena.take(64, 64)->offset, 128U);
    EXPECT_TRUE(arena.extend(*piece, 100)) << "it is large enough already";
    EXPECT_EQ(piece->size, 128U);
}

class PageStoreTest : public testing::Test {
  protected:
    static constexpr std::size_t pool = 4096;

    std::vector<std::size_t> sizes_of(const std::vector<std::uint32_t>& pages) const {
        std::vector<std::size_t> sizes;
        for (const std::uint32_t page : pages)
            sizes.push_back(store.size(page));
        return sizes;
    }
    // Fills the memory with pages of `bytes` bytes, and releases every second one: separate holes.
    void leave_holes_of(std::size_t bytes) {
        std::vector<std::uint32_t> pages;
        while (store.free() > 0)
            pages.push_back(store.open(bytes, bytes).value());
        for (std::size_t i = 0; i < pages.size(); i += 2)
            store.abandon(pages[i]);
    }

    PageStore store{pool};
    MemoryBudget budget{pool};
};

TEST_F(PageStoreTest, PageHasTheWantedOrTheLargestSize) {
    EXPECT_EQ(store.memory(store.open(64, 1000).value()).size(), 1024U) << "whole cache lines";
    leave_holes_of(512);
    EXPECT_EQ(store.memory(store.open(64, 1024).value()).size(), 512U);
    EXPECT_FALSE(store.open(576, 1024)) << "less than the required minimum";
}

TEST_F(PageStoreTest, SealedPageUsesWhatItHolds) {
    const std::uint32_t page = store.open(64, 1024).value();
    EXPECT_EQ(budget.free(), pool) << "it is not counted while it is being filled";
    store.memory(page)[99] = std::byte{5};
    store.seal(page, 100, PageStore::Contents::later_fragment, {.fid = Fid{3}, .status = 4},
               budget);
    EXPECT_EQ(store.size(page), 128U);
    EXPECT_EQ(budget.free(), pool - 128);
    EXPECT_EQ(store.free(), pool - 128);
    ASSERT_EQ(store.memory(page).size(), 100U);
    EXPECT_EQ(store.slice(page).size, 100U);
    EXPECT_EQ(store.slice(page).data[99], std::byte{5});
    EXPECT_EQ(store.contents(page), PageStore::Contents::later_fragment);
    EXPECT_EQ(store.fragment(page).fid, Fid{3});
    EXPECT_EQ(store.fragment(page).status, 4);
}

TEST_F(PageStoreTest, PageIsFreeAfterTheLastRelease) {
    const std::uint32_t page = store.open(64, 1024).value();
    store.seal(page, 1000, PageStore::Contents::records, {}, budget);
    store.add_user(page);
    store.add_user(page);
    for (int others = 2; others > 0; --others) {
        store.release(page, budget);
        EXPECT_EQ(budget.free(), pool - 1024) << others;
        EXPECT_EQ(store.free(), pool - 1024) << others;
    }
    store.release(page, budget);
    EXPECT_EQ(budget.free(), pool);
    EXPECT_EQ(store.free(), pool);
}

TEST_F(PageStoreTest, APageThatIsShortenedLeavesTheRestToOthers) {
    const std::uint32_t page = store.open(64, 1024).value();
    store.shorten(page, 200);
    EXPECT_EQ(store.size(page), 256U);
    EXPECT_EQ(store.memory(page).size(), 256U);
    EXPECT_EQ(store.free(), pool - 256);
}

TEST_F(PageStoreTest, SeveralPagesHoldAllBytes) {
    EXPECT_THAT(sizes_of(store.open_for(2500, 64, 1024)), ElementsAre(1024, 1024, 512));
    EXPECT_THAT(sizes_of(store.open_for(1024, 64, 1024)), ElementsAre(1024)) << "no empty page";
}

TEST_F(PageStoreTest, SeveralPagesFillTheHolesThatThereAre) {
    leave_holes_of(512);
    EXPECT_THAT(sizes_of(store.open_for(1500, 64, 1024)), ElementsAre(512, 512, 512));
}

TEST_F(PageStoreTest, WhereThereIsNotRoomForAllNoneIsTaken) {
    leave_holes_of(512);
    const std::size_t before = store.free();
    EXPECT_THAT(store.open_for(before + 1, 64, 1024), IsEmpty());
    EXPECT_EQ(store.free(), before);
    EXPECT_THAT(store.open_for(1500, 1024, 1024), IsEmpty()) << "the pieces are too small";
    EXPECT_EQ(store.free(), before);
}

constexpr std::size_t page_size_bytes = 1024;
constexpr std::size_t page_count = 8;

class OpenPagesTest : public testing::Test {
  protected:
    bool open(Group& group) { return pages.open(group, record, page_size_bytes); }
    bool takes(Group& group, std::size_t bytes) {
        return pages.append(group, Fid{1}, 0, bytes) != nullptr;
    }
    // Uses all memory except that of the open pages.
    void use_up_the_memory() {
        while (store.free() > 0)
            ASSERT_TRUE(store.open(1, page_size_bytes));
    }

    static constexpr std::size_t record = 100;
    PageBudget limits{{.page_size_bytes = page_size_bytes, .page_count = page_count}};
    PageStore store{limits.pool()};
    OpenPages pages{store, limits};
};

// A quarter of the memory is reserved for pages that are being filled: 2 KiB.
TEST_F(OpenPagesTest, ShrinksOtherPagesToTheirPartForMemory) {
    std::array<Group, 4> groups;
    for (Group& group : groups)
        ASSERT_TRUE(open(group));
    ASSERT_TRUE(takes(groups[0], 8));
    use_up_the_memory();
    Group next;
    ASSERT_TRUE(open(next));
    constexpr std::size_t part = page_size_bytes * page_count / 4 / 5;
    EXPECT_TRUE(takes(groups[0], part - 50)) << "its own part is kept for it";
    EXPECT_FALSE(takes(groups[0], part)) << "memory beyond its part is not";
    EXPECT_TRUE(takes(next, record - page::header_bytes));
}

// When an open page is due, and how much of its memory others may use.

constexpr std::size_t watermark = 200;
constexpr std::size_t first_header = 12; // of the first message in a page
constexpr std::size_t next_header = 4;   // of a later message of the same fid

// A quarter of the memory is reserved for pages that are being filled: 2 KiB.
class OpenPagesLimits : public testing::Test {
  protected:
    Group& open(std::size_t record = 100, std::size_t most = page_size_bytes) {
        Group& group = groups.emplace_back();
        EXPECT_TRUE(pages.open(group, record, most));
        return group;
    }
    bool append(Group& group, std::size_t bytes) {
        return pages.append(group, Fid{1}, 0, bytes) != nullptr;
    }
    // The fast path of publish(), if the writer has room.
    static bool write(Group& group, std::size_t bytes) {
        return group.writer.append(Fid{1}, 0, bytes) != nullptr;
    }
    void use_up_the_memory() {
        while (store.free() > 0)
            ASSERT_TRUE(store.open(1, page_size_bytes));
    }
    // Uses memory for other pages, until only `free` bytes are free.
    void leave(std::size_t free) {
        while (store.free() > free)
            ASSERT_TRUE(store.open(1, std::min(page_size_bytes, store.free() - free)));
    }

    PageBudget limits{{.page_size_bytes = page_size_bytes,
                       .page_count = page_count,
                       .watermark_bytes = watermark}};
    PageStore store{limits.pool()};
    OpenPages pages{store, limits};
    std::deque<Group> groups;
};

TEST_F(OpenPagesLimits, APageIsDueOnceItHoldsAsMuchAsTheWatermark) {
    Group& group = open();
    ASSERT_TRUE(append(group, 100));
    ASSERT_TRUE(append(group, watermark - 1 - (first_header + 100) - next_header));
    EXPECT_EQ(group.writer.used(), watermark - 1);
    EXPECT_FALSE(pages.is_due(group));
    Group& other = open();
    ASSERT_TRUE(append(other, 100));
    ASSERT_TRUE(append(other, watermark - (first_header + 100) - next_header));
    EXPECT_EQ(other.writer.used(), watermark);
    EXPECT_TRUE(pages.is_due(other));
}

TEST_F(OpenPagesLimits, WriterStopsBeforeTheWatermark) {
    Group& group = open();
    ASSERT_TRUE(append(group, 100));
    const std::size_t reaching = watermark - (first_header + 100) - next_header;
    EXPECT_FALSE(write(group, reaching)) << "the publisher would not notice that the page is due";
    EXPECT_TRUE(write(group, reaching - 1));
    EXPECT_FALSE(write(group, 0));
    EXPECT_TRUE(append(group, 500)) << "any amount beyond it";
    EXPECT_TRUE(pages.is_due(group));
}

TEST_F(OpenPagesLimits, SmallPageIsDueWhenNoMessageFits) {
    constexpr std::size_t small = 128;
    Group& group = open(small, small);
    ASSERT_TRUE(append(group, small - page::header_bytes - first_header));
    EXPECT_FALSE(pages.is_due(group)) << "a message of 0 bytes and another fid still fits";
    Group& other = open(small, small);
    ASSERT_TRUE(append(other, small - page::header_bytes - first_header + 1));
    EXPECT_TRUE(pages.is_due(other));
}

TEST_F(OpenPagesLimits, TakenPageLeavesWriterWithoutRoom) {
    Group& group = open();
    ASSERT_TRUE(append(group, 100));
    const OpenPages::Filled filled = pages.take(group.place);
    EXPECT_EQ(filled.bytes, first_header + 100);
    EXPECT_EQ(filled.group, &group);
    EXPECT_TRUE(pages.empty());
    EXPECT_EQ(group.place, Group::nowhere);
    EXPECT_FALSE(write(group, 0)) << "the page has another owner now";
}

TEST_F(OpenPagesLimits, UnfilledMemoryIsFreedWhenNeeded) {
    for (int i = 0; i < 4; ++i)
        ASSERT_TRUE(append(open(), 8));
    use_up_the_memory();
    open(); // uses what the others had beyond their parts
    use_up_the_memory();
    Group& last = open(); // no such piece is left for this one
    EXPECT_TRUE(append(last, 100 - page::header_bytes));
    for (Group& group : groups)
        EXPECT_FALSE(write(group, 150)) << "memory that was released";
}

TEST_F(OpenPagesLimits, ALargeMessageHasWhatOpenPagesDoNotNeed) {
    ASSERT_TRUE(append(open(), 8));
    const std::vector<std::uint32_t> taken = pages.take_pages(limits.pool() - 64);
    EXPECT_THAT(taken, SizeIs(page_count)) << "all but the cache line of the open message";
    EXPECT_EQ(store.free(), 0U);
}

TEST_F(OpenPagesLimits, ALargeMessageFitsIntoGapsToo) {
    std::vector<std::uint32_t> others;
    for (int i = 0; i < 16; ++i)
        others.push_back(store.open(512, 512).value());
    for (std::size_t i = 0; i < others.size(); i += 2)
        store.abandon(others[i]);
    std::vector<std::size_t> sizes;
    for (const std::uint32_t page : pages.take_pages(2048))
        sizes.push_back(store.size(page));
    EXPECT_THAT(sizes, SizeIs(4));
    EXPECT_THAT(sizes, Each(512U));
    EXPECT_TRUE(pages.take_pages(4096).empty()) << "half of that is left";
}

// Less than half of the memory is left, and the open pages have more than their parts.
TEST_F(OpenPagesLimits, LittleMemoryReducesPagesToHalfOfTheirPart) {
    for (int i = 0; i < 6; ++i)
        open();
    const std::size_t opened = limits.pool() - store.free();
    ASSERT_GT(opened, limits.set_aside());
    leave(limits.pool() / 2);
    EXPECT_EQ(pages.free(limits.pool() / 2 + opened), limits.pool() / 2) << "half of it is enough";
    leave(limits.pool() / 2 - 64);
    constexpr std::size_t kept = 192; // half of the part of each, in whole cache lines
    EXPECT_EQ(pages.free(store.free() + opened), limits.pool() / 2 - 64 + opened - 6 * kept);
    EXPECT_EQ(store.free(), limits.pool() / 2 - 64 + opened - 6 * kept);
}

TEST_F(OpenPagesLimits, KeepsPagesThatUseNoMoreThanTheirPart) {
    open();
    open();
    ASSERT_EQ(limits.pool() - store.free(), limits.set_aside());
    leave(1024);
    EXPECT_EQ(pages.free(1024 + limits.set_aside()), 1024U);
    EXPECT_EQ(pages.free(1024 + limits.set_aside() + 1), 1024U + 2 * 512) << "half of their part";
}

// A flush of a thousand nearly empty pages, which takes at least 8 ms, and then an open page.
class AFlushOfManyPages : public testing::Test {
  protected:
    // How long a page waited that is opened `pause` after the flush.
    Duration wait_of_a_page_opened_after(Duration pause) {
        bool is_many = true;
        std::optional<TimePoint> opened, left;
        Timer open{bed_.loop(), [&] {
                       opened = bed_.loop().now();
                       clock_->on_page_opened();
                   }};
        clock_.emplace(
            bed_.loop(), FlushClock::Options{.flush_time = 40us},
            [&] {
                if (!is_many) {
                    left = bed_.loop().now();
                    return;
                }
                is_many = false;
                clock_->on_flushed_in_time({.nearly_empty = 1000});
                open.start(pause);
            },
            [] {});
        Timer begin{bed_.loop(), [&] { clock_->on_page_opened(); }};
        begin.start(1ms); // so that the loop has slept before
        EXPECT_TRUE(bed_.run_until([&] { return left.has_value(); }));
        clock_.reset();
        return *left - *opened;
    }

  private:
    test::TestBed bed_{test::Bed::sim_tcp};
    std::optional<FlushClock> clock_;
};

TEST_F(AFlushOfManyPages, LeavesTimeToFillPagesWhenIdle) {
    EXPECT_GE(wait_of_a_page_opened_after(0ms), 8ms);
}

TEST_F(AFlushOfManyPages, DelaysNothingIfTheLoopHasRested) {
    EXPECT_LE(wait_of_a_page_opened_after(1ms), 40us);
}

// The flush timer, in virtual time.
class AFlushClock : public testing::Test {
  protected:
    static constexpr auto flush_time = 10ms;

    void let_pass(Duration time) {
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
    }

    test::TestBed bed{test::Bed::sim_tcp};
    int flushes = 0;
    FlushPace::Pages next; // the result of the next flush
    FlushClock clock{bed.loop(), FlushClock::Options{.flush_time = flush_time},
                     [this] {
                         ++flushes;
                         clock.on_flushed_in_time(next);
                     },
                     [] {}};
};

TEST_F(AFlushClock, LooksAgainAtPagesThatWereKeptAndAtNothingElse) {
    next = {.nearly_empty = 1, .kept = 1};
    clock.on_page_opened();
    let_pass(5 * flush_time / 2);
    EXPECT_EQ(flushes, 3) << "at once, and twice because a page was kept";
    next = {.nearly_empty = 1};
    let_pass(10 * flush_time);
    EXPECT_EQ(flushes, 4);
    clock.on_page_opened();
    let_pass(10 * flush_time);
    EXPECT_EQ(flushes, 5) << "a page that is opened after a pause leaves at once";
}

TEST_F(AFlushClock, DoesNothingForPagesThatHaveLeft) {
    next = {.nearly_empty = 1};
    clock.on_page_opened();
    let_pass(1ms);
    ASSERT_EQ(flushes, 1);
    clock.on_page_opened(); // in the flush time of the previous page
    clock.on_all_flushed();
    let_pass(10 * flush_time);
    EXPECT_EQ(flushes, 1);
}

// Pages of 256 KiB that leave early use the beginning of the memory again.
TEST(OpenPages, UseTheSameMemoryAgainWhenTheyLeaveEarly) {
    const PageBudget limits{{.page_size_bytes = 256 * 1024, .page_count = 16}};
    PageStore store{limits.pool()};
    OpenPages pages{store, limits};
    MemoryBudget budget{limits.pool()};
    const std::byte* const begin = store.memory(*store.open(64, 64)).data();
    std::vector<std::uint32_t> sent;
    std::size_t highest = 0;
    for (int i = 0; i < 100; ++i) {
        Group group;
        ASSERT_TRUE(pages.open(group, 1000, limits.page_size_bytes()));
        const OpenPages::Filled filled = pages.take(group.place);
        store.seal(filled.page, limits.early_bytes(), PageStore::Contents::records, {}, budget);
        const auto memory = store.memory(filled.page);
        highest =
            std::max(highest, static_cast<std::size_t>(memory.data() + memory.size() - begin));
        sent.push_back(filled.page);
        if (sent.size() < 3) continue; // up to 3 pages are in flight
        store.release(sent.front(), budget);
        sent.erase(sent.begin());
    }
    EXPECT_LE(highest, 4 * limits.early_bytes());
}

} // namespace
} // namespace netio::pubsub::page_pool_test
