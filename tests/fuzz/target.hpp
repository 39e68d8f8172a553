// SPDX-License-Identifier: Apache-2.0
#pragma once

// A fuzz target: code that reads bytes from another party, called with arbitrary bytes. The
// required properties are checked with NETIO_CHECK. Each target is a program with libFuzzer (./dev
// fuzz), and all of them together are one test that replays tests/fuzz/corpus.
//
//     const Target frames{"frames", [](Bytes bytes) { ... }};

#include "netio/base/check.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace netio::fuzz {

using Bytes = std::span<const std::byte>;

struct Target {
    Target(std::string_view its_name, void (*its_run)(Bytes)) : name{its_name}, run{its_run} {
        all().push_back(this);
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    std::string_view name;
    void (*run)(Bytes);

    // The targets that are linked into this program.
    static std::vector<const Target*>& all() {
        static std::vector<const Target*> targets;
        return targets;
    }
};

// The bytes as a source of decisions; zeros when they are used up.
class Input {
  public:
    explicit Input(Bytes bytes) noexcept : bytes_{bytes} {}

    bool empty() const noexcept { return bytes_.empty(); }
    // A big-endian number of `bytes` bytes.
    std::uint64_t number(std::size_t bytes) noexcept {
        std::uint64_t value = 0;
        for (; bytes > 0; --bytes)
            value = value << 8 | next();
        return value;
    }
    std::uint8_t byte() noexcept { return static_cast<std::uint8_t>(next()); }
    bool flag() noexcept { return (next() & 1) != 0; }
    std::uint64_t below(std::uint64_t limit) noexcept {
        return number(limit > 256 ? 4 : 1) % limit;
    }
    // Mostly small, sometimes any 64-bit number, like a number that a peer sends.
    std::uint64_t wild() noexcept { return number(below(4) == 0 ? 8 : 2); }
    std::uint32_t wild32() noexcept {
        return static_cast<std::uint32_t>(number(below(4) == 0 ? 4 : 1));
    }
    // The next bytes unchanged, at most `bytes`.
    Bytes take(std::size_t bytes) noexcept {
        const Bytes taken = bytes_.first(bytes < bytes_.size() ? bytes : bytes_.size());
        bytes_ = bytes_.subspan(taken.size());
        return taken;
    }
    Bytes rest() noexcept { return take(bytes_.size()); }

  private:
    std::uint64_t next() noexcept {
        const Bytes one = take(1);
        return one.empty() ? 0 : std::to_integer<std::uint64_t>(one[0]);
    }

    Bytes bytes_;
};

// Reads all bytes, so that a sanitizer notices bytes that must not be read.
inline void look_at(Bytes bytes) noexcept {
    static volatile unsigned seen = 0;
    for (const std::byte byte : bytes)
        seen = seen + std::to_integer<unsigned>(byte);
}

} // namespace netio::fuzz
