// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arguments of the programs that bench/run measures, and common functions: clocks, output,
// fids.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <utility>

// Defined if bench/count.cpp is preloaded: counting begins (1) or ends (0).
extern "C" void bench_mark(int begin) __attribute__((weak));

namespace bench {

inline void mark(bool begin) {
    if (bench_mark != nullptr) bench_mark(begin ? 1 : 0);
}

[[noreturn]] inline void fail(const std::string& what) {
    std::fprintf(stderr, "bench: %s\n", what.c_str());
    std::exit(1);
}

struct Arguments {
    bool publish = false;
    std::string pattern = "stream";
    std::string mode = "blocking"; // how a loop waits: blocking, adaptive, busy
    std::string form;              // variant of the subject, such as buffered
    std::size_t size = 40;
    std::size_t fids = 1;
    bool each_fid = false; // subscribe to each fid separately; they are published in random order
    std::size_t subscribers = 1; // processes
    std::size_t index = 0;       // index of this subscriber
    std::size_t idle = 0;        // further connections without messages
    std::size_t pieces = 1;      // scatter-gather elements of each zero-copy message
    std::size_t groups = 0;      // groups of subscribers, each with its own fid
    std::size_t loops = 1;       // loops of the publisher: 1 or 2
    std::size_t offset = 0;      // netio-stream: of its memory from a page boundary
    long heartbeat_ms = -1;      // heartbeat of connections; -1: the subject's default
    double seconds = 1;
    double rate = 100'000;
    std::string provider = "tcp"; // netio only
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    std::string protection; // netio only; empty: no keys
    std::string keys; // key file that the publisher creates, with another one for its subscribers
};

inline Arguments parse(int argc, char** argv) {
    Arguments arguments;
    if (argc < 2) fail("usage: publish|subscribe [--OPTION VALUE]...");
    arguments.publish = std::string_view{argv[1]} == "publish";
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const char* const value = argv[i + 1];
        const auto count = [value] { return std::size_t{std::strtoul(value, nullptr, 10)}; };
        if (name == "--pattern")
            arguments.pattern = value;
        else if (name == "--mode")
            arguments.mode = value;
        else if (name == "--form")
            arguments.form = value;
        else if (name == "--size")
            arguments.size = count();
        else if (name == "--fids")
            arguments.fids = count();
        else if (name == "--each-fid")
            arguments.each_fid = count() != 0;
        else if (name == "--subscribers")
            arguments.subscribers = count();
        else if (name == "--index")
            arguments.index = count();
        else if (name == "--idle")
            arguments.idle = count();
        else if (name == "--pieces")
            arguments.pieces = count();
        else if (name == "--groups")
            arguments.groups = count();
        else if (name == "--loops")
            arguments.loops = std::clamp<std::size_t>(count(), 1, 2);
        else if (name == "--offset")
            arguments.offset = count();
        else if (name == "--heartbeat")
            arguments.heartbeat_ms = std::strtol(value, nullptr, 10);
        else if (name == "--seconds")
            arguments.seconds = std::strtod(value, nullptr);
        else if (name == "--rate")
            arguments.rate = std::strtod(value, nullptr);
        else if (name == "--provider")
            arguments.provider = value;
        else if (name == "--address")
            arguments.address = value;
        else if (name == "--protection")
            arguments.protection = value;
        else if (name == "--keys")
            arguments.keys = value;
        else if (name == "--port")
            arguments.port = static_cast<std::uint16_t>(count());
        else
            fail("unknown option " + std::string{name});
    }
    if (arguments.size < 40) fail("--size must be at least 40");
    return arguments;
}

inline std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds{1});
}

// CPU time of the whole process so far: all its threads, user and kernel.
inline double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

inline void say(const char* line) {
    std::puts(line);
    std::fflush(stdout);
}

// Fids like those of a detector: not adjacent, so that none merge into a range.
inline std::uint64_t fid_at(std::size_t index) {
    return 0x1000'0000 + index * 16;
}

// Position and size of one piece of a message; the last piece has the rest.
inline std::pair<std::size_t, std::size_t> piece_of(const Arguments& arguments, std::size_t i) {
    const std::size_t each = arguments.size / arguments.pieces;
    const std::size_t at = i * each;
    return {at, i + 1 == arguments.pieces ? arguments.size - at : each};
}

// For plain libfabric and streams: number of messages in flight, each with its buffer.
inline std::size_t window_of(std::size_t size) {
    return std::clamp<std::size_t>((std::size_t{4} << 20) / size, 4, 64);
}

} // namespace bench
