// SPDX-License-Identifier: Apache-2.0

// A client reports for each fid how many messages were lost, and where.

#include "tests/scenario/pubsub/clients.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace netio::pubsub::test::client_missed_test {
namespace {

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

class MissedByAClient : public testing::Test {
  protected:
    Client::Options to_publisher() {
        Client::Options options = subscribing(publisher);
        options.socket.retry_limit = 1ms;
        return options;
    }
    // `look` updates the counts.
    template <typename Look>
    void cut_until_some_are_missed(Look look) {
        const std::uint16_t port = publisher.endpoints().front().address.port;
        std::uint64_t number = 1;
        const auto publish_both = [&] {
            publish(publisher, Fid{0}, number);
            publish(publisher, Fid{1}, number++);
            look();
        };
        while (books.missed() == 0) {
            cut(port);
            for (int i = 0; i < 50; ++i)
                publish_both();
        }
        const std::uint64_t behind = number; // the connection is back
        while (books.last[0] < behind || books.last[1] < behind)
            publish_both();
        EXPECT_EQ(books.wrong, 0U);
    }
    static Client::Options dropping() {
        Client::Options options = publishing();
        options.publish->publisher.slow_policy = SlowPolicy::drop;
        return options;
    }

    Client publisher{dropping()};
    Books books;
};

TEST_F(MissedByAClient, OnALostConnectionIsReportedToAFunctionForEachFid) {
    Client::Options options = to_publisher();
    options.on_message = [this](Fid fid, std::span<const std::byte> message, std::uint8_t) {
        books.take(fid, message);
    };
    Client::Events events;
    events.on_missed = [this](Fid fid, std::uint64_t count) { books.miss(fid, count); };
    Client client{std::move(options), std::move(events)};
    ASSERT_EQ(client.subscribe({range(0, 1)}, {}, deadline), Answer::accepted);
    publish(publisher, Fid{0}, 0);
    publish(publisher, Fid{1}, 0);
    cut_until_some_are_missed([] {});
    client.close();
    EXPECT_EQ(client.counters().missed, books.missed());
}

TEST_F(MissedByAClient, OnALostConnectionIsReportedWithTheNextQueuedMessage) {
    Client client{to_publisher()};
    ASSERT_EQ(client.subscribe({range(0, 1)}, {}, deadline), Answer::accepted);
    publish(publisher, Fid{0}, 0);
    publish(publisher, Fid{1}, 0);
    MessageBatch batch;
    const auto look = [&] {
        client.poll(batch);
        for (const MessageBatch::Item message : batch) {
            books.miss(message.fid, message.missed);
            books.take(message.fid, message.bytes);
        }
    };
    cut_until_some_are_missed(look);
    EXPECT_LE(books.missed(), client.counters().missed);
}

TEST(Client, LossesAtTheEndAreReportedWithoutAMessage) {
    Client publisher{publishing()};
    Client::Options options = subscribing(publisher);
    options.queue_messages = 10;
    options.when_full = SlowPolicy::drop;
    Client client{std::move(options)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    for (std::uint64_t n = 0; n < 100; ++n)
        publish(publisher, Fid{1}, n);
    wait_until([&] { return client.counters().messages == 100; });
    client.close();
    const std::vector<Message> messages = take(client, 11);
    ASSERT_EQ(messages.size(), 11U);
    EXPECT_FALSE(messages[9].is_gap);
    EXPECT_TRUE(messages[10].is_gap);
    EXPECT_EQ(messages[10].fid, Fid{1});
    EXPECT_EQ(messages[10].missed, 90U);
    EXPECT_TRUE(messages[10].bytes.empty());
}

} // namespace
} // namespace netio::pubsub::test::client_missed_test
