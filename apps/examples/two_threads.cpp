// SPDX-License-Identifier: Apache-2.0
// The usual readout: one thread waits for the detector, the other runs the loop. A bounded queue
// connects them, with at most one pending post() to the loop: two_threads HOST:PORT COUNT
#include "netio/fabric.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace pubsub = netio::pubsub;

// The queue between the threads: the readout waits when it is full, the loop never waits.
class Queue {
  public:
    void push(std::uint64_t value) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return values_.size() < limit; });
        values_.push_back(value);
    }
    std::optional<std::uint64_t> front() {
        const std::lock_guard lock{mutex_};
        return values_.empty() ? std::nullopt : std::optional{values_.front()};
    }
    void pop() {
        const std::lock_guard lock{mutex_};
        values_.pop_front();
        changed_.notify_one();
    }

  private:
    static constexpr std::size_t limit = 4096;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::uint64_t> values_;
};

class Publishing final : private pubsub::Publisher::Handler {
  public:
    Publishing(netio::Transport& transport, const netio::Address& address, std::uint64_t count)
        : loop_{transport.loop()}, count_{count}, socket_{transport, options(address), *this} {
        std::printf("listening at %s\n", to_string(socket_.endpoints().at(0).address).c_str());
        std::fflush(stdout);
    }
    ~Publishing() {
        if (readout_.joinable()) readout_.join();
    }

  private:
    static pubsub::BufferedPublishSocket::Options options(const netio::Address& address) {
        pubsub::BufferedPublishSocket::Options options;
        options.publisher.listen = {address};
        options.publisher.allow_remote_anonymous =
            true; // any peer that reaches the address may connect
        return options;
    }

    // The readout thread: calls only post() of the library.
    void read_out() {
        for (std::uint64_t value = 0; value < count_; ++value) {
            queue_.push(value);
            if (!told_.exchange(true) && !loop_.post([this] { publish(); })) told_ = false;
        }
    }

    // Everything below belongs to the loop's thread.
    void on_subscribed(pubsub::Publisher&, const pubsub::SubscriberPeer&,
                       const pubsub::FidRange&) override {
        if (!readout_.joinable()) readout_ = std::thread{[this] { read_out(); }};
    }
    void on_writable(pubsub::Publisher&) override { publish(); }
    void on_closed(pubsub::Publisher&, const netio::Closed&) override { loop_.stop(); }

    void publish() {
        told_ = false; // before the queue is read, so that no entry is left in it
        while (const std::optional<std::uint64_t> value = queue_.front()) {
            const auto bytes = std::as_bytes(std::span{&*value, 1});
            if (socket_.publish(1, bytes) == netio::Status::again) return;
            queue_.pop();
            if (*value + 1 == count_) socket_.close();
        }
    }

    netio::EventLoop& loop_;
    std::uint64_t count_;
    Queue queue_;
    std::atomic<bool> told_{false};
    pubsub::BufferedPublishSocket socket_;
    std::thread readout_;
};

int main(int argc, char** argv) try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    const Publishing publishing{*transport,
                                netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345"),
                                argc > 2 ? std::stoull(argv[2]) : 10000};
    loop.run();
} catch (const std::exception& error) {
    std::fprintf(stderr, "two_threads: %s\n", error.what());
    return 1;
}
