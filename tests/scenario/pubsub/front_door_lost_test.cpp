// SPDX-License-Identifier: Apache-2.0

// A subscriber reports for each fid how many messages were lost, and where.

#include "tests/scenario/pubsub/front_door.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>

namespace netio::front_door_lost_test {
namespace {

using namespace front_door_test;

// Breaks the connections of this process to one of its own ports, like a network failure.
void cut(std::uint16_t port) {
    for (int fd = 3; fd < 1024; ++fd) {
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
        if (peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) ::shutdown(fd, SHUT_RDWR);
    }
}

// Checks messages of two fids, numbered from 0: before message n, n messages have arrived or were
// reported lost.
class Books {
  public:
    void miss(Fid fid, std::uint64_t count) {
        next_.at(to_integer(fid)) += count;
        missed_ += count;
    }
    void take(Fid fid, std::span<const std::byte> message) {
        if (number_of(message) != next_.at(to_integer(fid))++) ++wrong;
        last.at(to_integer(fid)) = number_of(message);
    }
    std::uint64_t missed() const { return missed_; }

    std::array<std::atomic<std::uint64_t>, 2> last{};
    std::atomic<std::uint64_t> wrong{0};

  private:
    std::array<std::uint64_t, 2> next_{};
    std::atomic<std::uint64_t> missed_{0};
};

class LostOnTheWay : public FrontDoor {
  protected:
    // `look` updates the counts.
    template <typename Look>
    void cut_until_some_are_missed(Look look) {
        std::uint64_t number = 1;
        const auto publish_both = [&] {
            publisher.publish_value(0, number);
            publisher.publish_value(1, number++);
            look();
        };
        while (books.missed() == 0) {
            cut(publisher.address().port);
            for (int i = 0; i < 50; ++i)
                publish_both();
        }
        const std::uint64_t behind = number; // the connection is back
        while (books.last[0] < behind || books.last[1] < behind)
            publish_both();
        EXPECT_EQ(books.wrong, 0U);
    }

    Publisher publisher{any_port, {.slow_policy = SlowPolicy::drop}};
    Books books;
};

TEST_F(LostOnTheWay, IsReportedToAFunctionForEachFid) {
    Subscriber::Options options = quick();
    options.on_message = [this](const Message& message) {
        books.take(message.fid(), message.bytes());
    };
    options.on_lost = [this](Fid fid, std::uint64_t count) { books.miss(fid, count); };
    Subscriber subscriber{publisher.address(), options};
    subscribe(subscriber, FidSet{{0, 1}});
    publisher.publish_value(0, std::uint64_t{0});
    publisher.publish_value(1, std::uint64_t{0});
    cut_until_some_are_missed([] {});
    subscriber.close();
    EXPECT_EQ(subscriber.stats().lost, books.missed());
}

TEST_F(LostOnTheWay, IsReportedWithTheNextQueuedMessage) {
    Subscriber subscriber{publisher.address(), quick()};
    subscribe(subscriber, FidSet{{0, 1}});
    publisher.publish_value(0, std::uint64_t{0});
    publisher.publish_value(1, std::uint64_t{0});
    pubsub::MessageBatch batch;
    const auto look = [&] {
        subscriber.receive(batch, 0ms);
        for (const pubsub::MessageBatch::Item message : batch) {
            books.miss(message.fid, message.missed);
            books.take(message.fid, message.bytes);
        }
    };
    cut_until_some_are_missed(look);
    EXPECT_LE(books.missed(), subscriber.stats().lost);
}

class LostInTheQueue : public FrontDoor {
  protected:
    // A hundred messages arrive, and ten of them fit.
    void fill() {
        subscribe(subscriber, FidSet{{1, 1}});
        for (std::uint64_t n = 0; n < 100; ++n)
            publisher.publish_value(1, n);
        wait_until([&] { return subscriber.stats().messages == 100; });
    }
    static Subscriber::Options dropping() {
        Subscriber::Options options = quick();
        options.queue_limit_messages = 10;
        options.when_full = SlowPolicy::drop;
        return options;
    }

    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), dropping()};
};

TEST_F(LostInTheQueue, IsReportedWithTheNextMessageOfTheFid) {
    fill();
    EXPECT_EQ(take(subscriber, 10).back().lost_before(), 0U);
    EXPECT_EQ(subscriber.stats().dropped, 90U);
    publisher.publish_value(1, std::uint64_t{100});
    const std::vector<OwnedMessage> next = take(subscriber, 1);
    ASSERT_EQ(next.size(), 1U);
    EXPECT_EQ(next[0].lost_before(), 90U);
    EXPECT_EQ(next[0].value<std::uint64_t>(), 100U);
}

TEST_F(LostInTheQueue, IsReportedWithoutAMessageAtTheEnd) {
    fill();
    subscriber.close();
    EXPECT_EQ(subscriber.stats().lost_at_end, 90U);
    std::size_t messages = 0;
    std::uint64_t missed = 0;
    pubsub::MessageBatch batch;
    while (subscriber.receive(batch, deadline) > 0) {
        for (const pubsub::MessageBatch::Item item : batch) {
            EXPECT_EQ(item.fid, Fid{1});
            EXPECT_EQ(item.is_gap, messages == 10);
            if (!item.is_gap) ++messages;
            missed += item.missed;
        }
    }
    EXPECT_EQ(messages, 10U);
    EXPECT_EQ(missed, 90U);
}

} // namespace
} // namespace netio::front_door_lost_test
