// SPDX-License-Identifier: Apache-2.0
#include "netio/completion_queue.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <vector>

namespace netio::test::completion_queue_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Kind = QueueEvent::Kind;

class CompletionQueueTest : public testing::Test {
  protected:
    std::vector<std::uint64_t> take(CompletionQueue& queue, std::size_t most = 16) {
        std::vector<QueueEvent> events(most);
        events.resize(queue.dequeue(events, 0ms));
        std::vector<std::uint64_t> cookies;
        for (const QueueEvent& event : events)
            cookies.push_back(static_cast<std::uint64_t>(event.cookie));
        return cookies;
    }
    static QueueEvent event(std::uint64_t cookie, std::size_t bytes = 0) {
        return {.kind = Kind::message,
                .cookie = Cookie{cookie},
                .bytes = KeptBytes::copy_of(std::vector<std::byte>(bytes))};
    }
    void turn() {
        while (loop.run_once()) {
        }
    }

    EventLoop loop;
    int rooms = 0;
};

bool is_readable(int fd) {
    ::pollfd look{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&look, 1, 0) == 1;
}

TEST_F(CompletionQueueTest, EventsComeOutInOrderInBatches) {
    CompletionQueue queue;
    QueueWriter writer{queue, loop, 7, [] {}};
    for (std::uint64_t i = 0; i < 5; ++i)
        EXPECT_TRUE(writer.push(event(i)));
    EXPECT_EQ(queue.size(), 5U);
    EXPECT_THAT(take(queue, 3), ElementsAre(0, 1, 2));
    EXPECT_THAT(take(queue), ElementsAre(3, 4));
    EXPECT_THAT(take(queue), ElementsAre());
    writer.push(event(5));
    std::array<QueueEvent, 1> one;
    EXPECT_EQ(queue.dequeue(one, 1h), 1U);
    EXPECT_EQ(one[0].tag, 7U);
    EXPECT_EQ(queue.dequeue(one, 1ms), 0U);
}

// What a thread has taken before may be what its connection waits for.
TEST_F(CompletionQueueTest, DequeueReleasesTheFormerEventsFirst) {
    CompletionQueue queue;
    QueueWriter writer{queue, loop, 0, [] {}};
    const auto owner = std::make_shared<int>();
    writer.push({.bytes = KeptBytes{owner, {}}});
    std::array<QueueEvent, 4> events;
    EXPECT_EQ(queue.dequeue(events, 0ms), 1U);
    EXPECT_EQ(owner.use_count(), 2);
    EXPECT_EQ(queue.dequeue(events, 0ms), 0U);
    EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(CompletionQueueTest, AFullQueueNotifiesItsWriterOnceWhenHalfIsFree) {
    CompletionQueue queue{{.queue_limit_events = 4}};
    QueueWriter writer{queue, loop, 0, [this] { ++rooms; }};
    for (std::uint64_t i = 0; i < 3; ++i)
        EXPECT_TRUE(writer.push(event(i)));
    EXPECT_FALSE(writer.push(event(3)));
    EXPECT_FALSE(writer.push(event(4))) << "never refused";
    take(queue, 2);
    turn();
    EXPECT_EQ(rooms, 0);
    take(queue, 2);
    EXPECT_EQ(rooms, 0) << "a call never calls back";
    turn();
    take(queue);
    turn();
    EXPECT_EQ(rooms, 1);
}

TEST_F(CompletionQueueTest, BytesAreLimitedToo) {
    CompletionQueue queue{{.queue_limit_bytes = 100}};
    QueueWriter writer{queue, loop, 0, [this] { ++rooms; }};
    EXPECT_TRUE(writer.push(event(0, 99)));
    EXPECT_FALSE(writer.push(event(1, 1)));
    take(queue, 1);
    turn();
    EXPECT_EQ(rooms, 1);
    EXPECT_TRUE(writer.push(event(2, 98)));
}

TEST_F(CompletionQueueTest, AnOutstandingOperationHasARoomForItsCompletion) {
    CompletionQueue queue{{.queue_limit_events = 3}};
    QueueWriter writer{queue, loop, 0, [this] { ++rooms; }};
    auto other = std::make_unique<QueueWriter>(queue, loop, 1, [] {});
    EXPECT_TRUE(writer.reserve());
    EXPECT_TRUE(other->reserve());
    EXPECT_TRUE(writer.reserve());
    EXPECT_FALSE(writer.reserve());
    writer.complete(event(1));
    EXPECT_EQ(queue.size(), 1U);
    turn();
    EXPECT_EQ(rooms, 0) << "the event takes the place of the operation";
    writer.cancel();
    turn();
    EXPECT_EQ(rooms, 1) << "an operation that was not accepted";
    EXPECT_TRUE(writer.reserve());
    EXPECT_FALSE(writer.reserve());
    other.reset(); // with its operation
    turn();
    EXPECT_EQ(rooms, 2);
    EXPECT_THAT(take(queue), ElementsAre(1));
}

TEST_F(CompletionQueueTest, AWriterThatIsGoneIsNotNotified) {
    CompletionQueue queue{{.queue_limit_events = 1}};
    auto writer = std::make_unique<QueueWriter>(queue, loop, 0, [this] { ++rooms; });
    EXPECT_FALSE(writer->push(event(0)));
    take(queue); // its task is posted
    writer.reset();
    turn();
    writer = std::make_unique<QueueWriter>(queue, loop, 0, [this] { ++rooms; });
    EXPECT_FALSE(writer->push(event(1)));
    writer.reset();
    EXPECT_THAT(take(queue), ElementsAre(1)) << "its events stay";
    turn();
    EXPECT_EQ(rooms, 0);
}

TEST_F(CompletionQueueTest, TheDescriptorIsReadableWhileThereAreEvents) {
    CompletionQueue queue;
    QueueWriter writer{queue, loop, 0, [] {}};
    writer.push(event(0));
    const int fd = queue.pollable_fd();
    EXPECT_TRUE(is_readable(fd)) << "also for events of before";
    writer.push(event(1));
    take(queue, 1);
    EXPECT_TRUE(is_readable(fd));
    take(queue, 1);
    EXPECT_FALSE(is_readable(fd));
    writer.push(event(2));
    EXPECT_TRUE(is_readable(fd));
    take(queue);
    queue.close();
    EXPECT_TRUE(is_readable(fd));
    take(queue);
    EXPECT_TRUE(is_readable(fd)) << "after close()";
    EXPECT_EQ(queue.pollable_fd(), fd);
}

TEST_F(CompletionQueueTest, AClosedQueueStillGivesItsEventsAndWaitsForNone) {
    CompletionQueue queue;
    QueueWriter writer{queue, loop, 0, [] {}};
    writer.push(event(0));
    queue.close();
    EXPECT_TRUE(queue.is_closed());
    std::array<QueueEvent, 4> events;
    EXPECT_EQ(queue.dequeue(events, 1h), 1U);
    EXPECT_EQ(queue.dequeue(events, 1h), 0U);
    writer.push(event(1));
    EXPECT_EQ(queue.dequeue(events, 1h), 1U);
}

TEST_F(CompletionQueueTest, ALimitOfNothingIsRefused) {
    EXPECT_THROW((CompletionQueue{{.queue_limit_events = 0}}), std::invalid_argument);
    EXPECT_THROW((CompletionQueue{{.queue_limit_bytes = 0}}), std::invalid_argument);
}

using CompletionQueueDeathTest = CompletionQueueTest;
TEST_F(CompletionQueueDeathTest, ItsSocketsMustBeDestroyedBefore) {
    const auto destroy_first = [this] {
        auto queue = std::make_unique<CompletionQueue>();
        const QueueWriter writer{*queue, loop, 0, [] {}};
        queue.reset();
    };
    EXPECT_DEATH(destroy_first(), "destroy the sockets of a completion queue before it");
}

} // namespace
} // namespace netio::test::completion_queue_test
