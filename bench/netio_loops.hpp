// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publisher with two halves of the fids, on one loop or on two, each with its own thread, network
// and port. Two subscribers, on one loop of another process, receive one half each, so that only
// the publisher's loops differ.

#include "bench/netio_sockets.hpp"
#include "netio/fabric.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

inline constexpr std::size_t half_count = 2;

// The fids of a half, as ranges.
inline std::vector<FidRange> ranges_of_half(const Arguments& arguments, std::size_t half) {
    const std::size_t first = half * arguments.fids;
    return {{Fid{fid_at(first)}, Fid{fid_at(first + arguments.fids - 1)}}};
}

// Some halves on one loop. Constructed, run and destroyed in one thread.
class HalvesOnALoop {
  public:
    struct Events {
        std::function<void()> on_ready; // its subscribers are connected, and it waits for begin()
        std::function<void()> on_done; // everything was published some time ago; it waits for end()
    };
    HalvesOnALoop(const Arguments& arguments, std::size_t first, std::size_t count, Events events)
        : fids_{arguments.fids}, events_{std::move(events)}, done_{loop_,
                                                                   [this] { events_.on_done(); }},
          transport_{netio::open_fabric(loop_, {.provider = arguments.provider})} {
        for (std::size_t i = 0; i < count; ++i)
            halves_.push_back({first + i, Source{arguments}});
        output_.emplace(*transport_, arguments, static_cast<unsigned>(first), count,
                        Output::Events{.on_ready = events_.on_ready,
                                       .on_writable = [this] { pump(); },
                                       .on_closed = [this] { loop_.stop(); }});
    }
    // Any thread.
    void begin() {
        post([this] {
            for (Half& half : halves_)
                half.source.start();
            pump();
        });
    }
    void end() {
        post([this] { output_->close(); });
    }
    void run() { loop_.run(); }
    std::uint64_t messages() const {
        std::uint64_t sum = 0;
        for (const Half& half : halves_)
            sum += half.source.count();
        return sum;
    }

  private:
    struct Half {
        std::size_t number;
        Source source;
    };

    // Publishes some messages of each half in turn; if a subscriber of one half is slow, the other
    // continues.
    void pump() {
        bool all_done = true;
        for (bool any = true; any;) {
            any = false;
            all_done = true;
            for (Half& half : halves_) {
                for (std::size_t i = 0; i < burst && publish(half); ++i)
                    any = true;
                all_done = all_done && half.source.done();
            }
        }
        // Wait until messages in flight have arrived.
        if (all_done && !done_.armed()) done_.start(std::chrono::milliseconds{20});
    }
    void post(std::function<void()> task) {
        if (!loop_.post(std::move(task))) fail("the task queue of a loop is full");
    }
    bool publish(Half& half) {
        if (half.source.done()) return false;
        const Fid fid{half.source.fid() + fid_at(half.number * fids_) - fid_at(0)};
        if (!output_->publish(fid, [&](std::byte* out) { half.source.prepare(out); })) return false;
        half.source.advance();
        return true;
    }

    static constexpr std::size_t burst = 64;
    const std::size_t fids_;
    Events events_;
    netio::EventLoop loop_;
    netio::Timer done_;
    std::unique_ptr<netio::Transport> transport_;
    std::vector<Half> halves_;
    std::optional<Output> output_;
};

// State that a loop reports to the first thread.
struct alignas(64) Flags {
    std::atomic<bool> made{false};
    std::atomic<bool> ready{false};
    std::atomic<bool> done{false};
    HalvesOnALoop* loop = nullptr;
    std::uint64_t messages = 0;
};
// Written when the messages begin, and when all are sent: bench/lines sees these writes.
struct alignas(64) Part {
    volatile std::uint64_t number = 0;
};
inline Part part;

// The first thread polls at intervals, so that no thread is woken and no cache line is shared for
// it.
inline void wait_for(const std::vector<Flags>& loops, std::atomic<bool> Flags::*flag) {
    for (const Flags& each : loops)
        while (!(each.*flag))
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
}

inline void publish_on_loops(const Arguments& arguments) {
    const std::size_t count = arguments.loops;
    const std::size_t halves = half_count / count; // per loop
    std::vector<Flags> loops(count);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&arguments, &mine = loops[i], i, halves] {
            HalvesOnALoop loop{arguments, i * halves, halves,
                               HalvesOnALoop::Events{.on_ready = [&mine] { mine.ready = true; },
                                                     .on_done = [&mine] { mine.done = true; }}};
            mine.loop = &loop;
            mine.made = true;
            loop.run();
            mine.messages = loop.messages();
        });
    }
    wait_for(loops, &Flags::made);
    std::printf("{\"role\": \"part\", \"address\": \"%p\"}\n",
                const_cast<const void*>(static_cast<const volatile void*>(&part.number)));
    say("listening");
    wait_for(loops, &Flags::ready);
    const double cpu_at_start_s = cpu_seconds();
    const std::uint64_t start_ns = now_ns();
    part.number = 1;
    for (const Flags& each : loops)
        each.loop->begin();
    wait_for(loops, &Flags::done);
    part.number = 2;
    const double cpu_s = cpu_seconds() - cpu_at_start_s;
    for (const Flags& each : loops)
        each.loop->end();
    std::uint64_t messages = 0;
    for (std::size_t i = 0; i < count; ++i) {
        threads[i].join();
        messages += loops[i].messages;
    }
    std::printf("{\"role\": \"publish\", \"messages\": %llu, \"cpu_s\": %.6f, \"wall_s\": %.6f}\n",
                static_cast<unsigned long long>(messages), cpu_s,
                static_cast<double>(now_ns() - start_ns) * 1e-9);
}

// Receives one of the halves.
class HalfInput final : public Input {
  public:
    HalfInput(netio::Transport& transport, const Arguments& arguments, std::size_t half,
              std::function<void()> on_half_ended)
        : Input{transport, arguments, static_cast<unsigned>(arguments.loops > 1 ? half : 0),
                ranges_of_half(arguments, half)},
          sink_{arguments}, on_half_ended_{std::move(on_half_ended)} {}
    Sink& sink() noexcept { return sink_; }

  private:
    void on_message(netio::pubsub::SubscribeSocket&, Fid, std::span<const std::byte> message,
                    std::uint8_t) override {
        sink_.take(message.data(), message.size());
    }
    void on_ended() override { on_half_ended_(); }

    Sink sink_;
    std::function<void()> on_half_ended_;
};

inline void subscribe_to_loops(const Arguments& arguments, netio::EventLoop& loop,
                               netio::Transport& transport) {
    std::vector<std::unique_ptr<HalfInput>> inputs;
    std::size_t ended = 0;
    const double cpu_at_start_s = cpu_seconds();
    const std::uint64_t start_ns = now_ns();
    for (std::size_t half = 0; half < half_count; ++half) {
        inputs.push_back(std::make_unique<HalfInput>(transport, arguments, half, [&] {
            if (++ended == half_count) loop.stop();
        }));
    }
    loop.run();
    std::uint64_t messages = 0;
    for (const auto& input : inputs) {
        if (input->lost() > 0) fail("the publisher's totals show that messages were lost");
        messages += input->sink().count();
    }
    std::printf("{\"role\": \"subscribe\", \"messages\": %llu, \"seconds\": %.6f, "
                "\"cpu_s\": %.6f}\n",
                static_cast<unsigned long long>(messages),
                static_cast<double>(now_ns() - start_ns) * 1e-9, cpu_seconds() - cpu_at_start_s);
}

} // namespace bench
