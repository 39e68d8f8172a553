// SPDX-License-Identifier: Apache-2.0
// Two threads take messages and completions of sockets out of one queue: completion_queue
// [MESSAGES]
#include "netio/fabric.hpp"
#include "netio/messages/queued.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

constexpr std::size_t message_bytes = 20'000;

class Program {
  public:
    Program(netio::EventLoop& loop, unsigned long count) : loop_{loop}, count_{count} {}

    // On each of the threads, until the queue is closed.
    void work(netio::CompletionQueue& queue) {
        std::vector<netio::QueueEvent> events(64);
        while (const std::size_t count = queue.dequeue(events, std::chrono::hours{1}))
            for (const netio::QueueEvent& event : std::span{events}.first(count))
                take(event);
    }
    // On the loop: sends until `again`; then the event `writable` follows.
    void send() {
        while (sent_ < count_ &&
               sender->send(memory_.slice(), netio::Cookie{sent_}) == netio::Status::ok)
            ++sent_;
        if (sent_ == count_) (*sender)->close(); // after what was sent
    }
    unsigned long arrived() const noexcept { return arrived_; }
    unsigned long completed() const noexcept { return completed_; }
    netio::Queued<netio::SendSocket>* sender = nullptr;

  private:
    void take(const netio::QueueEvent& event) {
        switch (event.kind) {
        case netio::QueueEvent::Kind::message: // event.bytes lasts as long as the event
            ++arrived_;
            break;
        case netio::QueueEvent::Kind::sent:
            ++completed_;
            break;
        case netio::QueueEvent::Kind::connected:
        case netio::QueueEvent::Kind::writable:
            if (event.tag == 2) loop_.post_always([this] { send(); });
            break;
        case netio::QueueEvent::Kind::closed:
            if (++ends_ == 2) loop_.stop(); // both sides have everything
            break;
        default:
            break;
        }
    }

    netio::EventLoop& loop_;
    const unsigned long count_;
    unsigned long sent_ = 0; // on the loop
    netio::RegisteredBuffer memory_{message_bytes};
    std::atomic<int> ends_{0};
    std::atomic<unsigned long> arrived_{0};
    std::atomic<unsigned long> completed_{0};
};

int main(int argc, char** argv) try {
    const unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000;
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Program program{loop, count};
    netio::CompletionQueue queue;
    netio::Queued<netio::ListenSocket> listener{
        queue, 1, *transport, {.listen = {{"127.0.0.1", 0}}}};
    netio::Queued<netio::SendSocket> sender{queue, 2, *transport, {}};
    sender->connect(listener->endpoints().front().address);
    program.sender = &sender;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] { program.work(queue); });
    loop.run();
    queue.close();
    threads.clear(); // they take what is left
    std::printf("received %lu messages, %lu sends are complete\n", program.arrived(),
                program.completed());
    return program.arrived() == count && program.completed() == count ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "completion_queue: %s\n", error.what());
    return 1;
}
