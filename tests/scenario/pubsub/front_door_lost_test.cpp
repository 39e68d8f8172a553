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
class Counts {
  public:
    void add_lost(Fid fid, std::uint64_t count) {
        next_.at(to_integer(fid)) += count;
        lost_ += count;
    }
    void take(Fid fid, std::span<const std::byte> message) {
        if (number_of(message) != next_.at(to_integer(fid))++) ++wrong;
        last.at(to_integer(fid)) = number_of(message);
    }
    std::uint64_t lost() const { return lost_; }

    std::array<std::atomic<std::uint64_t>, 2> last{};
    std::atomic<std::uint64_t> wrong{0};

  private:
    std::array<std::uint64_t, 2> next_{};
    std::atomic<std::uint64_t> lost_{0};
};

class LostOnTheWay : public FrontDoor {
  protected:
    // `look` updates the counts.
    template <typename Look>
    void cut_until_some_are_lost(Look look) {
        std::uint64_t number = 1;
        const auto publish_both = [&] {
            publisher.publish_value(0, number);
            publisher.publish_value(1, number++);
            look();
        };
        while (counts.lost() == 0) {
            cut(publisher.address().port);
            for (int i = 0; i < 50; ++i)
                publish_both();
        }
        const std::uint64_t behind = number; // the connection is back
        while (counts.last[0] < behind || counts.last[1] < behind)
            publish_both();
        EXPECT_EQ(counts.wrong, 0U);
    }

    Publisher publisher{any_port, {.slow_policy = SlowPolicy::drop}};
    Counts counts;
};

TEST_F(LostOnTheWay, IsReportedToAFunctionForEachFid) {
    Subscriber::Options options = quick();
    options.on_message = [this](const Message& message) {
        counts.take(message.fid(), message.bytes());
    };
    options.on_lost = [this](Fid fid, std::uint64_t count) { counts.add_lost(fid, count); };
    Subscriber subscriber{publisher.address(), options};
    subscribe(subscriber, FidSet{{0, 1}});
    publisher.publish_value(0, std::uint64_t{0});
    publisher.publish_value(1, std::uint64_t{0});
    cut_until_some_are_lost([] {});
    subscriber.close();
    EXPECT_EQ(subscriber.stats().lost, counts.lost());
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
            counts.add_lost(message.fid, message.lost_before);
            counts.take(message.fid, message.bytes);
        }
    };
    cut_until_some_are_lost(look);
    EXPECT_LE(counts.lost(), subscriber.stats().lost);
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
    std::uint64_t lost = 0;
    pubsub::MessageBatch batch;
    while (subscriber.receive(batch, deadline) > 0) {
        for (const pubsub::MessageBatch::Item item : batch) {
            EXPECT_EQ(item.fid, Fid{1});
            EXPECT_EQ(item.is_gap, messages == 10);
            if (!item.is_gap) ++messages;
            lost += item.lost_before;
        }
    }
    EXPECT_EQ(messages, 10U);
    EXPECT_EQ(lost, 90U);
}

} // namespace
} // namespace netio::front_door_lost_test
