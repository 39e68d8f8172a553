// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/answer_book.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

TEST(AnswerBook, ASubscriptionIsAcceptedWhenAllOfItIsByWhomever) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9), range(20, 29)};
    book.add(fids, 1);
    EXPECT_THAT(book.accept(range(0, 5)), IsEmpty());
    EXPECT_THAT(book.accept(range(20, 29)), IsEmpty());
    EXPECT_THAT(book.accept(range(6, 9)), ElementsAre(1));
    EXPECT_THAT(book.take_all(), IsEmpty());
}

TEST(AnswerBook, ItIsRefusedWithTheFirstOfItsFidsThatIs) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9)};
    book.add(fids, 1);
    book.add(fids, 2);
    EXPECT_THAT(book.end(range(10, 99)), IsEmpty());
    EXPECT_THAT(book.end(range(9, 9)), ElementsAre(1, 2));
}

TEST(AnswerBook, WhatIsAcceptedIsNotWaitedFor) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9)};
    book.add(fids, 1);
    EXPECT_THAT(book.accept(range(1, 5)), IsEmpty());
    EXPECT_THAT(book.end(range(1, 5)), IsEmpty());
    EXPECT_THAT(book.end(range(5, 6)), ElementsAre(1));
}

TEST(AnswerBook, ManyRangesThatAreAcceptedOneByOneAreNotLookedAtEachTime) {
    constexpr std::uint64_t count = 100'000;
    AnswerBook<int> book;
    std::vector<FidRange> apart;
    for (std::uint64_t i = 0; i < count; ++i)
        apart.push_back(range(3 * i, 3 * i + 1));
    book.add(apart, 1);
    for (std::uint64_t i = 0; i + 1 < count; ++i)
        ASSERT_THAT(book.accept(apart[i]), IsEmpty());
    EXPECT_THAT(book.accept(apart.back()), ElementsAre(1));
    EXPECT_LE(book.steps(), 3 * count);
}

TEST(AnswerBook, ManyWhoWaitAreAnsweredOneByOneWithoutLookingAtAllOfThem) {
    constexpr int count = 65'536;
    AnswerBook<int> book;
    const TimePoint now{};
    const auto fid = [](int i) {
        return range(3 * static_cast<std::uint64_t>(i), 3 * static_cast<std::uint64_t>(i));
    };
    for (int i = 0; i < count; ++i) {
        const FidRange one = fid(i);
        book.add({&one, 1}, i, now + std::chrono::seconds{count - i});
        ASSERT_EQ(book.next_end(), now + std::chrono::seconds{count - i});
    }
    for (int i = 0; i < count; i += 2) {
        ASSERT_THAT(book.accept(fid(i)), ElementsAre(i));
        ASSERT_LE(book.steps(), 4U * count) << i;
    }
    for (int i = 1; i < count; i += 4)
        ASSERT_THAT(book.end(fid(i)), ElementsAre(i));
    EXPECT_LE(book.steps(), 4U * count);
    EXPECT_EQ(book.expire(now + std::chrono::seconds{count / 2}).size(), count / 8U);
}

// Else a bound on them would hold whatever it costs.
TEST(AnswerBook, WhatIsLookedAtIsCounted) {
    constexpr std::uint64_t count = 100;
    AnswerBook<int> book;
    for (std::uint64_t i = 0; i < count; ++i) {
        const FidRange one = range(i, i);
        book.add({&one, 1}, 0);
    }
    for (std::uint64_t i = 0; i < count; ++i)
        EXPECT_THAT(book.accept(range(1000, 1000)), IsEmpty());
    EXPECT_GE(book.steps(), count) << "each time somewhere";
    const std::size_t before = book.steps();
    EXPECT_EQ(book.accept(range(0, count)).size(), count);
    EXPECT_GE(book.steps() - before, count) << "at each that waited";
}

// All that wait stand in a row, and each answer is held against each of them.
struct PlainAnswers {
    struct Entry {
        int waiter = 0;
        std::set<std::uint64_t> open;
        TimePoint end;
    };
    template <typename Has>
    std::vector<int> take(Has has_answer) {
        std::vector<int> taken;
        for (const Entry& each : waiting)
            if (has_answer(each)) taken.push_back(each.waiter);
        std::erase_if(waiting, has_answer);
        return taken;
    }
    std::vector<int> accept(const FidRange& fids) {
        for (Entry& each : waiting)
            std::erase_if(each.open, [&](std::uint64_t fid) { return contains(fids, fid); });
        return take([](const Entry& each) { return each.open.empty(); });
    }
    std::vector<int> end(const FidRange& fids) {
        return take([&](const Entry& each) {
            return std::ranges::any_of(each.open,
                                       [&](std::uint64_t fid) { return contains(fids, fid); });
        });
    }
    static bool contains(const FidRange& fids, std::uint64_t fid) {
        return fids.first <= Fid{fid} && Fid{fid} <= fids.last;
    }
    std::vector<Entry> waiting;
};

TEST(AnswerBook, AnswersAsOneThatLooksAtAllOfThem) {
    std::mt19937_64 random{1};
    AnswerBook<int> book;
    PlainAnswers plain;
    const auto draw = [&] {
        const std::uint64_t first = random() % 64;
        return range(first,
                     std::min<std::uint64_t>(63, first + (random() % 2 == 0 ? 0 : random() % 40)));
    };
    int answered = 0;
    for (int i = 0; i < 20'000; ++i) {
        const TimePoint now{std::chrono::seconds{i}};
        const FidRange fids = draw();
        switch (random() % 4) {
        case 0:
        case 1: {
            const std::array both{fids, draw()};
            PlainAnswers::Entry entry{.waiter = i,
                                      .end = now + std::chrono::seconds{random() % 40}};
            for (const FidRange& each : both)
                for (std::uint64_t fid = to_integer(each.first); fid <= to_integer(each.last);
                     ++fid)
                    entry.open.insert(fid);
            book.add(both, i, entry.end);
            plain.waiting.push_back(std::move(entry));
            break;
        }
        case 2: {
            const std::vector<int> taken = book.accept(fids);
            answered += static_cast<int>(taken.size());
            ASSERT_EQ(taken, plain.accept(fids));
            break;
        }
        default:
            if (random() % 4 == 0) {
                ASSERT_EQ(book.end(fids), plain.end(fids));
            } else {
                ASSERT_EQ(book.expire(now),
                          plain.take([&](const auto& each) { return each.end <= now; }));
            }
        }
    }
    EXPECT_GT(answered, 500);
}

TEST(AnswerBook, OnlyTheMiddleOfARangeIsAccepted) {
    AnswerBook<int> book;
    const std::array fids{range(0, UINT64_MAX)};
    book.add(fids, 1);
    EXPECT_THAT(book.accept(range(5, 9)), IsEmpty());
    EXPECT_THAT(book.end(range(5, 9)), IsEmpty());
    EXPECT_THAT(book.accept(range(0, 4)), IsEmpty());
    EXPECT_THAT(book.accept(range(10, UINT64_MAX)), ElementsAre(1));
}

TEST(AnswerBook, NobodyWaitsBeyondHisTime) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9)};
    const TimePoint now{};
    EXPECT_EQ(book.next_end(), TimePoint::max());
    book.add(fids, 1, now + std::chrono::seconds{2});
    book.add(fids, 2, now + std::chrono::seconds{1});
    book.add(fids, 3);
    EXPECT_EQ(book.next_end(), now + std::chrono::seconds{1});
    EXPECT_THAT(book.expire(now), IsEmpty());
    EXPECT_THAT(book.expire(now + std::chrono::seconds{1}), ElementsAre(2));
    EXPECT_THAT(book.expire(now + std::chrono::hours{1}), ElementsAre(1));
    EXPECT_EQ(book.next_end(), TimePoint::max());
}

TEST(AnswerBook, HasALimitThatCountsThoseWhoWait) {
    AnswerBook<int> book{2};
    const std::array fids{range(1, 9)};
    book.add(fids, 1);
    EXPECT_FALSE(book.is_full());
    book.add(fids, 2);
    EXPECT_TRUE(book.is_full());
    book.accept(range(1, 9));
    EXPECT_FALSE(book.is_full());
}

TEST(AnswerBook, TheEndAnswersAllThatWait) {
    AnswerBook<int> book;
    const std::array fids{range(1, 9)};
    book.add(fids, 1);
    EXPECT_THAT(book.take_all(), ElementsAre(1));
}

} // namespace
} // namespace netio::pubsub
