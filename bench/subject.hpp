// SPDX-License-Identifier: Apache-2.0
#pragma once

// Common parts of the programs measured by bench/run: arguments, the stream of numbered messages,
// its check at the receiver, and the report. Every subject is one program that plays both roles,
// each in its own process:
//
//     SUBJECT publish   --pattern stream --size 40 --fids 64 --port 5000 --seconds 1
//     SUBJECT subscribe --pattern stream --size 40 --fids 64 --port 5000
//
// A publisher prints "listening" when subscribers may connect, waits for all of them, and sends for
// the given time. The patterns:
//     stream  as fast as it goes
//     paced   --rate messages a second, those that are due every 50 us
//     echo    the subscriber sends each message back; the publisher measures the round trip
// Both end with one line of JSON. A lost or reordered message ends the program.

#include "bench/arguments.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace bench {

// --- the publisher's side ---------------------------------------------------------------------

inline constexpr std::uint64_t last_mark = std::uint64_t{1} << 63;
inline constexpr std::size_t head_bytes = 16; // message number, time of sending

// Numbers the messages and decides when to end. prepare() may be repeated for a refused message;
// advance() moves to the next one.
class Source {
  public:
    explicit Source(const Arguments& arguments)
        : paced_{arguments.pattern == "paced"}, seconds_{arguments.seconds},
          interval_ns_{1e9 / arguments.rate}, check_every_{std::max<std::uint64_t>(
                                                  1, 65536 / arguments.size)},
          order_(arguments.fids) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        if (arguments.each_fid) std::shuffle(order_.begin(), order_.end(), std::mt19937{4711});
    }

    void start() {
        mark(true);
        cpu_at_start_ = cpu_seconds();
        start_ns_ = now_ns();
        end_ns_ = start_ns_ + static_cast<std::uint64_t>(seconds_ * 1e9);
    }

    bool done() const noexcept { return done_; }
    // Returns whether the next message is due.
    bool due() const {
        return !paced_ || static_cast<double>(now_ns() - start_ns_) >=
                              static_cast<double>(number_) * interval_ns_;
    }
    std::uint64_t fid() const noexcept { return fid_at(order_[place_]); }

    void prepare(std::byte* message) const {
        const std::uint64_t number = number_ | (ending_ ? last_mark : 0);
        std::memcpy(message, &number, sizeof number);
        if (!paced_) return;
        const std::uint64_t now = now_ns();
        std::memcpy(message + sizeof number, &now, sizeof now);
    }
    void advance() {
        done_ = ending_;
        if (done_) mark(false);
        ++number_;
        if (++place_ == order_.size()) place_ = 0;
        if (--until_check_ > 0) return;
        until_check_ = check_every_;
        ending_ = now_ns() >= end_ns_;
    }

    // Counts a wake-up in which messages were due and published.
    void tick() noexcept { ++ticks_; }

    std::uint64_t count() const noexcept { return number_; }
    // Call when everything was sent.
    void report() const {
        std::printf("{\"role\": \"publish\", \"messages\": %llu, \"ticks\": %llu, "
                    "\"cpu_s\": %.6f, \"wall_s\": %.6f}\n",
                    static_cast<unsigned long long>(number_),
                    static_cast<unsigned long long>(ticks_), cpu_seconds() - cpu_at_start_,
                    static_cast<double>(now_ns() - start_ns_) * 1e-9);
    }

  private:
    bool paced_;
    double seconds_;
    double interval_ns_;
    std::uint64_t check_every_; // messages between two readings of the clock
    std::uint64_t until_check_ = check_every_;
    std::vector<std::size_t> order_;
    std::size_t place_ = 0;
    std::uint64_t number_ = 0;
    std::uint64_t ticks_ = 0;
    bool ending_ = false;
    bool done_ = false;
    double cpu_at_start_ = 0;
    std::uint64_t start_ns_ = 0;
    std::uint64_t end_ns_ = 0;
};

inline constexpr long tick_ns = 50'000;

// For subjects without a loop: calls publish(message) for each message when it is due, and flush()
// after every batch.
template <typename Publish, typename Flush>
void run_source(Source& source, Publish publish, Flush flush) {
    source.start();
    while (!source.done()) {
        if (source.due()) {
            do {
                publish();
                source.advance();
            } while (!source.done() && source.due());
            flush();
            source.tick();
        }
        const timespec tick{0, tick_ns};
        if (!source.done()) ::clock_nanosleep(CLOCK_MONOTONIC, 0, &tick, nullptr);
    }
}

// --- the subscriber's side --------------------------------------------------------------------

class Samples {
  public:
    void add(std::uint64_t ns) { ns_.push_back(ns); }
    // Returns ", "p50_us": ..." for a report; empty if there are no values.
    std::string text() {
        if (ns_.empty()) return {};
        std::sort(ns_.begin(), ns_.end());
        std::string text;
        for (const auto& [name, share] :
             {std::pair{"p50_us", 0.5}, {"p99_us", 0.99}, {"p999_us", 0.999}}) {
            const auto at = static_cast<std::size_t>(share * static_cast<double>(ns_.size() - 1));
            char part[64];
            std::snprintf(part, sizeof part, ", \"%s\": %.3f", name,
                          static_cast<double>(ns_[at]) * 1e-3);
            text += part;
        }
        return text;
    }
    void reserve(std::size_t count) { ns_.reserve(count); }

  private:
    std::vector<std::uint64_t> ns_;
};

// Takes every message, reads it (only the first KiB of large ones) and checks that none is missing.
class Sink {
  public:
    explicit Sink(const Arguments& arguments)
        : size_{arguments.size}, paced_{arguments.pattern == "paced"} {
        if (paced_) latencies_.reserve(static_cast<std::size_t>(arguments.rate * 60));
    }

    // Returns true for the last message.
    bool take(const std::byte* message, std::size_t size) {
        std::uint64_t number = 0;
        std::memcpy(&number, message, sizeof number);
        if (size != size_ || (number & ~last_mark) != expected_) {
            fail("message " + std::to_string(number & ~last_mark) + " of " + std::to_string(size) +
                 " bytes arrived, " + std::to_string(expected_) + " of " + std::to_string(size_) +
                 " was expected: lost or out of order");
        }
        if (expected_++ == 0) {
            mark(true);
            start_ns_ = now_ns();
            cpu_at_start_ = cpu_seconds();
        }
        std::uint64_t sum = 0;
        for (std::size_t at = 0; at + 8 <= std::min<std::size_t>(size, 1024); at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, message + at, sizeof word);
            sum += word;
        }
        sum_ = sum_ ^ sum;
        if (paced_) {
            std::uint64_t sent = 0;
            std::memcpy(&sent, message + sizeof number, sizeof sent);
            latencies_.add(now_ns() - sent);
        }
        if ((number & last_mark) == 0) return false;
        mark(false);
        end_ns_ = now_ns();
        cpu_s_ = cpu_seconds() - cpu_at_start_;
        return true;
    }

    std::uint64_t count() const noexcept { return expected_; }
    void report() {
        std::printf("{\"role\": \"subscribe\", \"messages\": %llu, \"seconds\": %.6f, "
                    "\"cpu_s\": %.6f%s, \"sum\": %llu}\n",
                    static_cast<unsigned long long>(expected_),
                    static_cast<double>(end_ns_ - start_ns_) * 1e-9, cpu_s_,
                    latencies_.text().c_str(), static_cast<unsigned long long>(sum_));
    }

  private:
    std::size_t size_;
    bool paced_;
    std::uint64_t expected_ = 0;
    std::uint64_t sum_ = 0; // reported, so that the reading is not optimised away
    std::uint64_t start_ns_ = 0;
    std::uint64_t end_ns_ = 0;
    double cpu_at_start_ = 0;
    double cpu_s_ = 0;
    Samples latencies_;
};

// Round trips: the publisher sends the next message when the last one has returned.
class RoundTrips {
  public:
    explicit RoundTrips(const Arguments& arguments) : seconds_{arguments.seconds} {
        samples_.reserve(static_cast<std::size_t>(2e5 * arguments.seconds));
    }

    void prepare(std::byte* message) {
        sent_ns_ = now_ns();
        if (end_ns_ == 0) {
            cpu_at_start_ = cpu_seconds();
            end_ns_ = sent_ns_ + static_cast<std::uint64_t>((seconds_ + warm_up_s) * 1e9);
            warm_ns_ = sent_ns_ + static_cast<std::uint64_t>(warm_up_s * 1e9);
        }
        const std::uint64_t number = number_ | (sent_ns_ >= end_ns_ ? last_mark : 0);
        std::memcpy(message, &number, sizeof number);
    }
    // Returns true when the last message has returned.
    bool take(const std::byte* message) {
        const std::uint64_t now = now_ns();
        std::uint64_t number = 0;
        std::memcpy(&number, message, sizeof number);
        if ((number & ~last_mark) != number_++) fail("an echo is lost or out of order");
        if (now >= warm_ns_) samples_.add(now - sent_ns_);
        return (number & last_mark) != 0;
    }
    void report() {
        std::printf("{\"role\": \"publish\", \"messages\": %llu, \"cpu_s\": %.6f%s}\n",
                    static_cast<unsigned long long>(number_), cpu_seconds() - cpu_at_start_,
                    samples_.text().c_str());
    }

  private:
    static constexpr double warm_up_s = 0.1;
    double seconds_;
    std::uint64_t number_ = 0;
    std::uint64_t sent_ns_ = 0;
    std::uint64_t warm_ns_ = 0;
    std::uint64_t end_ns_ = 0;
    double cpu_at_start_ = 0;
    Samples samples_;
};

// The subscriber's part of round trips.
inline bool is_last(const std::byte* message) {
    std::uint64_t number = 0;
    std::memcpy(&number, message, sizeof number);
    return (number & last_mark) != 0;
}

} // namespace bench
