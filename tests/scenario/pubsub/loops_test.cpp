// SPDX-License-Identifier: Apache-2.0

// Two loops of one process that publish at the same time, each on its own thread with its own
// transport and socket, over tcp. The thread sanitizer checks the data that the threads share.

#include "netio/fabric.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_shards.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <thread>

namespace netio::pubsub::loops_test {
namespace {

constexpr std::uint64_t messages = 2000; // per fid
constexpr FidRange all_fids{.first = Fid{0}, .last = Fid{7}};

// Everything that a loop owns. It is created, used and destroyed on the loop's thread; only values
// are passed to other threads.
class LoopOfOne final : public Publisher::Handler {
  public:
    struct Result {
        std::uint64_t published = 0;
        std::uint64_t not_owned = 0;
        CloseReason end{};
    };

    explicit LoopOfOne(const std::vector<FidRange>& owned) : owned_{owned} {
        BufferedPublishSocket::Options options;
        options.publisher.listen = {{.host = "127.0.0.1", .port = 0}};
        options.publisher.fids = owned;
        socket_ = std::make_unique<BufferedPublishSocket>(*transport_, options, *this);
    }

    Address address() const { return socket_->endpoints().front().address; }
    Result run() {
        loop_.run();
        return result_;
    }

  private:
    void on_subscribed(Publisher&, const SubscriberPeer&, const FidRange&) override { publish(); }
    void on_writable(Publisher&) override { publish(); }
    void on_closed(Publisher&, const Closed& closed) override {
        result_.end = closed.reason;
        loop_.stop();
    }

    void publish() {
        for (; number_ < messages * (to_integer(all_fids.last) + 1); ++number_) {
            const Fid fid{number_ % (to_integer(all_fids.last) + 1)};
            const std::uint64_t message = number_ / (to_integer(all_fids.last) + 1);
            const Status status = socket_->publish(fid, std::as_bytes(std::span{&message, 1}));
            if (status == Status::again) return;
            if (status == Status::ok) ++result_.published;
            if (status == Status::not_owned) ++result_.not_owned;
        }
        socket_->close();
    }

    std::vector<FidRange> owned_;
    EventLoop loop_;
    std::unique_ptr<Transport> transport_ = open_fabric(loop_, {.provider = "tcp"});
    std::unique_ptr<BufferedPublishSocket> socket_;
    std::uint64_t number_ = 0;
    Result result_;
};

class InOrder final : public Subscriptions::Handler {
  public:
    explicit InOrder(EventLoop& loop) : loop_{loop} {}
    void on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        std::uint64_t number = 0;
        ASSERT_EQ(message.size(), sizeof number);
        std::memcpy(&number, message.data(), sizeof number);
        EXPECT_EQ(number, next[fid]++);
    }
    void on_ended(Subscriptions&) override { loop_.stop(); }

    std::map<Fid, std::uint64_t> next;

  private:
    EventLoop& loop_;
};

TEST(Loops, TwoPublishAtOnceAndASubscriberGetsEachFidOnceAndInOrder) {
    const FidShards shards = FidShards::divide({all_fids}, 2);
    std::vector<std::future<LoopOfOne::Result>> results;
    Subscriptions::Options options;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < shards.count(); ++i) {
        std::promise<Address> listening;
        std::promise<LoopOfOne::Result> ended;
        std::future<Address> address = listening.get_future();
        results.push_back(ended.get_future());
        threads.emplace_back([owned = shards.of(i), address = std::move(listening),
                              end = std::move(ended)]() mutable {
            LoopOfOne loop{owned};
            address.set_value(loop.address());
            end.set_value(loop.run());
        });
        options.publishers.push_back(address.get());
    }

    EventLoop loop;
    const auto transport = open_fabric(loop, {.provider = "tcp"});
    InOrder seen{loop};
    {
        options.socket.reconnect = false;
        Subscriptions all{*transport, options, seen};
        all.subscribe(all_fids);
        loop.run();
        for (const Subscriptions::PublisherStats& stats : all.publisher_stats())
            EXPECT_TRUE(stats.complete);
    }
    for (std::thread& thread : threads)
        thread.join();
    for (auto& each : results) {
        const LoopOfOne::Result result = each.get();
        EXPECT_EQ(result.published, 4 * messages);
        EXPECT_EQ(result.not_owned, 4 * messages);
        EXPECT_EQ(result.end, CloseReason::orderly);
    }
    EXPECT_EQ(seen.next.size(), 8U);
    for (const auto& [fid, count] : seen.next)
        EXPECT_EQ(count, messages) << to_string(fid);
}

} // namespace
} // namespace netio::pubsub::loops_test
