// SPDX-License-Identifier: Apache-2.0
#include "netio/base/ring_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace netio::ring_queue_test {
namespace {

using Queue = RingQueue<std::shared_ptr<int>>;

void add(Queue& queue, int value) {
    queue.emplace_back() = std::make_shared<int>(value);
}

std::vector<int> values_of(const Queue& queue) {
    std::vector<int> values;
    for (std::size_t i = 0; i < queue.size(); ++i)
        values.push_back(queue[i] ? *queue[i] : -1);
    return values;
}

TEST(RingQueue, IsEmptyAtFirst) {
    const Queue queue;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.size(), 0U);
}

TEST(RingQueue, ElementsRemovedAtTheFrontAreDestroyedAtOnce) {
    Queue queue;
    add(queue, 1);
    add(queue, 2);
    const std::weak_ptr<int> first = queue.front();
    queue.pop_front();
    EXPECT_TRUE(first.expired());
    EXPECT_EQ(*queue.front(), 2);
    EXPECT_EQ(*queue.back(), 2);
    EXPECT_FALSE(queue.emplace_back()) << "a new element equals Value{}";
}

TEST(RingQueue, ElementsRemovedAtTheBackAreDestroyedAtOnce) {
    Queue queue;
    for (int i = 0; i < 3; ++i)
        add(queue, i);
    const std::weak_ptr<int> last = queue.back();
    queue.pop_back();
    EXPECT_TRUE(last.expired());
    EXPECT_EQ(values_of(queue), (std::vector<int>{0, 1}));
    EXPECT_FALSE(queue.emplace_back()) << "a new element equals Value{}";
}

// The elements move through the ring, so that every operation meets every position of the wrap.
TEST(RingQueue, DoesWhatADequeDoes) {
    std::mt19937 random{1};
    Queue queue;
    std::deque<int> model;
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t size = model.size();
        switch (size == 0 ? 0 : random() % (size > 9 ? 8 : 5)) {
        case 0:
        case 1:
        case 2:
            add(queue, step);
            model.push_back(step);
            break;
        case 3:
            queue.pop_back();
            model.pop_back();
            break;
        default:
            queue.pop_front();
            model.pop_front();
        }
        ASSERT_EQ(values_of(queue), std::vector<int>(model.begin(), model.end()));
    }
}

// Counts the slots of all queues: each slot has a value, used or not.
struct Place {
    static std::size_t count;
    Place() { ++count; }
    Place(const Place&) { ++count; }
    Place& operator=(const Place&) = default;
    ~Place() { --count; }
};
std::size_t Place::count = 0;

TEST(RingQueue, KeepsItsMemoryFromOneElementToTheNext) {
    RingQueue<int> queue;
    queue.emplace_back();
    const int* const first = &queue.front();
    for (int i = 0; i < 3; ++i)
        queue.emplace_back();
    for (int i = 0; i < 100; ++i) {
        queue.pop_front();
        queue.emplace_back();
    }
    EXPECT_EQ(&queue.front(), first) << "a hundred elements through a ring of four";
    while (!queue.empty())
        queue.pop_front();
    EXPECT_EQ(&queue.emplace_back(), first);
}

TEST(RingQueue, ReleasesTheMemoryOfABurstAfterItHasDrained) {
    RingQueue<Place> queue;
    for (int i = 0; i < 1'000; ++i)
        queue.emplace_back();
    EXPECT_GE(Place::count, 1'000U);
    while (queue.size() > 1)
        queue.pop_front();
    queue.pop_front();
    EXPECT_LE(Place::count, RingQueue<Place>::kept_count);
    for (int i = 0; i < 1'000; ++i)
        queue.emplace_back();
    while (!queue.empty())
        queue.pop_back();
    EXPECT_LE(Place::count, RingQueue<Place>::kept_count);
}

} // namespace
} // namespace netio::ring_queue_test
