// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/droppable_queue.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// An item that counts how often one of them is looked at or written over.
struct Counted {
    static inline int looks = 0;
    struct Flag {
        bool value = false;
        explicit(false) operator bool() const {
            ++looks;
            return value;
        }
    };
    struct Handling {
        Flag continues;
    };
    int number = 0;
    Handling handling;
    std::shared_ptr<int> held;
};

struct Queue : DroppableQueue<Counted> {
    void add(int number, bool droppable, bool continues = false) {
        emplace_back() = {.number = number,
                          .handling = {.continues = {.value = continues}},
                          .held = std::make_shared<int>(number)};
        if (droppable && !continues) mark_back();
    }
    std::vector<int> take() {
        const auto [first, end] = unmark_last();
        std::vector<int> numbers;
        for (auto each = first; each != end; ++each)
            numbers.push_back(each->number);
        erase(first, end);
        return numbers;
    }
    std::vector<int> numbers() const {
        std::vector<int> all;
        for (const Counted& each : *this)
            all.push_back(each.number);
        return all;
    }
};

TEST(DroppableQueue, TakesOutWhatCameLastWhereverItStands) {
    Queue queue;
    queue.add(1, true); // at the front
    queue.add(2, false);
    queue.add(3, true); // between others
    queue.add(4, true, true);
    queue.add(5, false);
    queue.add(6, true); // at the back
    EXPECT_THAT(queue.take(), ElementsAre(6));
    EXPECT_THAT(queue.take(), ElementsAre(3, 4)) << "and what continues it";
    EXPECT_THAT(queue.numbers(), ElementsAre(1, 2, 5));
    queue.add(7, true);
    EXPECT_THAT(queue.take(), ElementsAre(7)) << "what has come since goes first";
    EXPECT_THAT(queue.take(), ElementsAre(1));
    EXPECT_THAT(queue.take(), IsEmpty());
    EXPECT_THAT(queue.numbers(), ElementsAre(2, 5));
}

TEST(DroppableQueue, WhatIsNotMarkedAnyMoreStaysAndMayLeave) {
    Queue queue;
    queue.add(1, true);
    queue.add(2, true);
    queue.unmark_front();
    queue.pop_front();
    EXPECT_THAT(queue.take(), ElementsAre(2));
    queue.add(3, true);
    queue.unmark_front();
    EXPECT_THAT(queue.take(), IsEmpty());
    EXPECT_THAT(queue.numbers(), ElementsAre(3));
}

TEST(DroppableQueue, TakingEverythingOutLooksAtNothingThatStays) {
    constexpr int count = 1000;
    Queue queue;
    for (int i = 0; i < count; ++i) {
        queue.add(3 * i, false);
        queue.add(3 * i + 1, true);
        queue.add(3 * i + 2, true);
    }
    for (int i = 0; i < count; ++i)
        queue.add(3 * count + i, false); // behind all of them
    Counted::looks = 0;
    for (int i = count - 1; i >= 0; --i) {
        ASSERT_THAT(queue.take(), ElementsAre(3 * i + 2));
        ASSERT_THAT(queue.take(), ElementsAre(3 * i + 1));
    }
    EXPECT_LE(Counted::looks, 2 * count) << "whether what follows each continues it";
    EXPECT_EQ(queue.size(), 2U * count);
}

// What stands elsewhere stays where it is: a place is good until its item has left.
TEST(DroppableQueue, TakingOutMovesNothing) {
    Queue queue;
    for (int i = 0; i < 100; ++i)
        queue.add(i, i % 3 != 0);
    const auto last = std::prev(queue.end());
    const Counted* const address = &*last;
    while (!queue.take().empty()) {
    }
    EXPECT_EQ(&queue.back(), address);
    EXPECT_EQ(last->number, 99);
}

TEST(DroppableQueue, WhatHasLeftIsLetGoAtOnce) {
    Queue queue;
    for (int i = 0; i < 3; ++i)
        queue.add(i, i == 1);
    const std::weak_ptr<int> first = queue.front().held;
    const std::weak_ptr<int> second = std::next(queue.begin())->held;
    queue.take();
    EXPECT_TRUE(second.expired());
    queue.pop_front();
    EXPECT_TRUE(first.expired());
    EXPECT_FALSE(queue.emplace_back().held) << "what is new stands for Item{}";
    queue.mark_back();
    queue.clear();
    EXPECT_TRUE(queue.empty());
    EXPECT_THAT(queue.take(), IsEmpty());
}

// Counts the places of all queues, used or not.
struct Place {
    static inline std::size_t count = 0;
    Place() { ++count; }
    Place(const Place&) { ++count; }
    Place& operator=(const Place&) = default;
    ~Place() { --count; }
    Counted::Handling handling;
};

TEST(DroppableQueue, KeepsTheMemoryOfAFewItems) {
    DroppableQueue<Place> queue;
    const Place* const first = &queue.emplace_back();
    for (int i = 0; i < 100; ++i) {
        queue.pop_front();
        EXPECT_EQ(&queue.emplace_back(), first);
    }
    for (int i = 0; i < 1'000; ++i)
        queue.emplace_back();
    queue.erase(queue.begin(), queue.end());
    EXPECT_EQ(Place::count, DroppableQueue<Place>::kept_count);
}

} // namespace
} // namespace netio::pubsub
