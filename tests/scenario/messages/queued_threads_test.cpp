// SPDX-License-Identifier: Apache-2.0
// Several threads take messages and completions of two loops out of one queue.

#include "netio/fabric.hpp"
#include "netio/messages/queued.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace netio::test::queued_threads_test {
namespace {

using namespace std::chrono_literals;
using Kind = QueueEvent::Kind;

constexpr std::uint64_t messages = 20'000;
constexpr std::size_t slots = 16;
constexpr std::size_t message_bytes = 9'000; // kept without a copy

// The sending loop: fills a slot when a thread reports that it is free.
class SendingLoop {
  public:
    SendingLoop(CompletionQueue& queue, const Address& receiver)
        : sender_{queue, 2, *transport_, SendSocket::Options{}} {
        sender_->connect(receiver);
        for (std::size_t i = 0; i < slots; ++i)
            free_.push_back(i);
    }
    EventLoop& loop() noexcept { return loop_; }
    // In tasks of the loop.
    void release(std::size_t slot) {
        free_.push_back(slot);
        send();
    }
    void send() {
        while (!free_.empty() && next_ < messages) {
            const std::size_t slot = free_.back();
            const Slice slice = memory_.slice(slot * message_bytes, message_bytes);
            std::fill_n(slice.data, slice.size, static_cast<std::byte>(next_));
            if (sender_.send(slice, Cookie{slot}, next_) != Status::ok) return;
            free_.pop_back();
            ++next_;
        }
    }

  private:
    EventLoop loop_;
    std::unique_ptr<Transport> transport_ = open_fabric(loop_);
    RegisteredBuffer memory_{slots * message_bytes};
    std::vector<std::size_t> free_;
    std::uint64_t next_ = 0;
    Queued<SendSocket> sender_;
};

TEST(QueuedThreads, FourTakeAllMessagesOfTwoLoopsOnceThroughASmallQueue) {
    CompletionQueue queue{{.queue_limit_events = 64}};
    std::promise<Address> address;
    std::promise<EventLoop*> receiving_loop;
    std::promise<SendingLoop*> sending_loop;
    std::jthread receiving{[&] {
        EventLoop loop;
        const auto transport = open_fabric(loop);
        ListenSocket::Options options{.listen = {{"127.0.0.1", 0}}};
        options.session.receive_count = 16;
        options.session.window_limit = 0;
        options.session.keep_limit_bytes = 1 << 20;
        Queued<ListenSocket> listener{queue, 1, *transport, options};
        address.set_value(listener->endpoints().front().address);
        receiving_loop.set_value(&loop);
        loop.run();
    }};
    const Address receiver = address.get_future().get();
    std::jthread sending{[&] {
        SendingLoop side{queue, receiver};
        sending_loop.set_value(&side);
        side.loop().run();
    }};
    SendingLoop& side = *sending_loop.get_future().get();
    std::vector<std::atomic<int>> seen(messages);
    std::atomic<std::uint64_t> arrived{0};
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> wrong{0};
    const auto work = [&] {
        std::array<QueueEvent, 7> events;
        while (const std::size_t count = queue.dequeue(events, 1h)) {
            for (const QueueEvent& event : std::span{events}.first(count)) {
                if (event.kind == Kind::message) {
                    const auto value = static_cast<std::byte>(*event.immediate);
                    const auto bytes = event.bytes.bytes();
                    wrong += std::ranges::count(bytes, value) ==
                                     static_cast<std::ptrdiff_t>(message_bytes)
                                 ? 0U
                                 : 1U;
                    ++seen[*event.immediate];
                    ++arrived;
                } else if (event.kind == Kind::sent) {
                    ++sent;
                    side.loop().post_always([&side, slot = static_cast<std::size_t>(event.cookie)] {
                        side.release(slot);
                    });
                } else if (event.tag == 2) { // connected, writable
                    side.loop().post_always([&side] { side.send(); });
                }
                if (arrived == messages && sent == messages) queue.close();
            }
        }
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back(work);
    threads.clear();
    side.loop().stop();
    receiving_loop.get_future().get()->stop();
    sending.join();
    receiving.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(sent, messages);
    EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& each) { return each == 1; }));
}

} // namespace
} // namespace netio::test::queued_threads_test
