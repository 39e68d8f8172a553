// SPDX-License-Identifier: Apache-2.0

// What a client for all threads costs beside the socket of one thread, in the same run: messages a
// second of 40 bytes and of 1 KiB from a buffered publisher in a process of its own, over loopback.
//
//     build/bench/client [SECONDS [ROUNDS]]
//
//     socket    SubscribeSocket, its handler on the main thread
//     callback  Client, a function on its thread
//     batches   Client, the main thread polls batches
//     messages  Client, the main thread polls messages with memory of their own
//
// The four take turns; told is the median of the rounds, and its part of the socket's.

#include "pubsub/client/client.hpp"
#include "netio/fabric.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

namespace pubsub = netio::pubsub;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr pubsub::Fid fid{7};
constexpr pubsub::FidRange fids{fid, fid};

// As fast as it goes, until it is killed.
class Source final : private pubsub::Publisher::Handler {
  public:
    explicit Source(std::size_t size)
        : message_(size), transport_{netio::open_fabric(loop_, {})},
          socket_{*transport_,
                  {.publisher = {.addresses = {{.host = "127.0.0.1", .port = 0}}}},
                  static_cast<pubsub::Publisher::Handler&>(*this)} {}

    int run() {
        std::printf("%u\n", unsigned{socket_.endpoints().front().address.port});
        std::fflush(stdout);
        loop_.run();
        return 0;
    }

  private:
    void on_subscribed(pubsub::Publisher&, const pubsub::SubscriberPeer&,
                       const pubsub::FidRange&) override {
        next_turn_.start(netio::Duration::zero());
    }
    void on_writable(pubsub::Publisher&) override { publish(); }
    void on_closed(pubsub::Publisher&, const netio::Closed&) override {}

    void publish() {
        for (int i = 0; i < 4096; ++i)
            if (socket_.publish(fid, message_) == netio::Status::again) return;
        next_turn_.start(netio::Duration::zero());
    }

    std::vector<std::byte> message_;
    netio::EventLoop loop_;
    std::unique_ptr<netio::Transport> transport_;
    pubsub::BufferedPublishSocket socket_;
    netio::Timer next_turn_{loop_, [this] { publish(); }};
};

// A Source in a process of its own.
class SourceProcess {
  public:
    SourceProcess(const char* program, std::size_t size) {
        int ends[2];
        if (::pipe(ends) != 0) std::abort();
        const std::string text = std::to_string(size);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::execl(program, program, "source", text.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(ends[1]);
        std::FILE* const out = ::fdopen(ends[0], "r");
        unsigned port = 0;
        if (std::fscanf(out, "%u", &port) != 1) std::abort();
        std::fclose(out);
        address_ = {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)};
    }
    ~SourceProcess() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    SourceProcess(const SourceProcess&) = delete;
    SourceProcess& operator=(const SourceProcess&) = delete;
    const netio::Address& address() const { return address_; }

  private:
    pid_t pid_ = 0;
    netio::Address address_;
};

double seconds = 1;
unsigned touched = 0; // so that each message is looked at

// Messages a second, from a quarter of the time on.
class Rate {
  public:
    bool goes_on(std::uint64_t count) {
        const auto now = Clock::now();
        const std::chrono::duration<double> passed = now - begin_;
        if (passed.count() < seconds / 4) {
            from_ = now;
            before_ = count;
        }
        const std::chrono::duration<double> counted = now - from_;
        if (counted.count() > 0) rate_ = static_cast<double>(count - before_) / counted.count();
        return passed.count() < seconds;
    }
    double rate() const { return rate_; }

  private:
    Clock::time_point begin_ = Clock::now();
    Clock::time_point from_ = begin_;
    std::uint64_t before_ = 0;
    double rate_ = 0;
};

double by_socket(const netio::Address& address) {
    struct Handler final : pubsub::SubscribeSocket::Handler {
        void on_message(pubsub::SubscribeSocket&, pubsub::Fid, std::span<const std::byte> message,
                        std::uint8_t) override {
            touched += std::to_integer<unsigned>(message[0]);
            ++count;
        }
        void on_closed(pubsub::SubscribeSocket&, const netio::Closed&, bool) override {}
        std::uint64_t count = 0;
    } handler;
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop, {});
    pubsub::SubscribeSocket socket{*transport, {.publisher = address}, handler};
    socket.subscribe(fids);
    while (handler.count == 0)
        loop.run_once(loop.now() + 10ms);
    Rate rate;
    netio::Timer tick{loop, [&] { rate.goes_on(handler.count) ? tick.start(10ms) : loop.stop(); }};
    tick.start(10ms);
    loop.run();
    return rate.rate();
}

pubsub::Client::Options options_for(const netio::Address& address) {
    pubsub::Client::Options options;
    options.publishers = {address};
    return options;
}

double by_callback(const netio::Address& address) {
    std::atomic<std::uint64_t> count{0};
    pubsub::Client::Options options = options_for(address);
    options.on_message = [&](pubsub::Fid, std::span<const std::byte> message, std::uint8_t) {
        touched += std::to_integer<unsigned>(message[0]);
        count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    };
    pubsub::Client client{std::move(options)};
    client.subscribe({fids}, {}, 10s);
    Rate rate;
    while (rate.goes_on(count.load(std::memory_order_relaxed)))
        std::this_thread::sleep_for(10ms);
    return rate.rate();
}

double by_batches(const netio::Address& address) {
    pubsub::Client client{options_for(address)};
    client.subscribe({fids}, {}, 10s);
    pubsub::MessageBatch batch;
    std::uint64_t count = 0;
    Rate rate;
    do {
        client.poll(batch, 1s);
        for (const pubsub::MessageBatch::Item message : batch)
            touched += std::to_integer<unsigned>(message.bytes[0]);
        count += batch.size();
    } while (rate.goes_on(count));
    return rate.rate();
}

double by_messages(const netio::Address& address) {
    pubsub::Client client{options_for(address)};
    client.subscribe({fids}, {}, 10s);
    std::vector<pubsub::Message> messages;
    std::uint64_t count = 0;
    Rate rate;
    do {
        messages.clear();
        client.poll(messages, 1000, 1s);
        for (const pubsub::Message& message : messages)
            touched += std::to_integer<unsigned>(message.bytes[0]);
        count += messages.size();
    } while (rate.goes_on(count));
    return rate.rate();
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string{argv[1]} == "source")
        return Source{std::strtoul(argv[2], nullptr, 10)}.run();
    if (argc > 1) seconds = std::strtod(argv[1], nullptr);
    const unsigned long rounds = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 5;
    const std::vector<std::pair<const char*, std::function<double(const netio::Address&)>>> ways{
        {"socket", by_socket},
        {"callback", by_callback},
        {"batches", by_batches},
        {"messages", by_messages}};
    for (const std::size_t size : {std::size_t{40}, std::size_t{1024}}) {
        std::map<std::string, std::vector<double>> rates;
        for (unsigned long round = 0; round < rounds; ++round) {
            for (const auto& [name, way] : ways) {
                const SourceProcess source{argv[0], size};
                rates[name].push_back(way(source.address()));
            }
        }
        double socket = 0;
        for (const auto& [name, way] : ways) {
            std::vector<double>& all = rates[name];
            std::sort(all.begin(), all.end());
            const double median = all[all.size() / 2];
            if (socket == 0) socket = median;
            std::printf("%5zu bytes  %-8s  %10.0f messages/s  %.2f\n", size, name, median,
                        median / socket);
        }
    }
    return touched == 1 ? 1 : 0;
}
