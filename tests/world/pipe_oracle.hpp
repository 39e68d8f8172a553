// SPDX-License-Identifier: Apache-2.0
#pragma once

// What went into one end of a connection and came out at the other: messages from point to point,
// or bytes. Each direction of each connection is a pipe; it sees only what users see.

#include "tests/world/oracle.hpp"
#include "tests/world/pubsub_oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace netio::world {

class PipeOracle {
  public:
    explicit PipeOracle(Oracle& oracle) : oracle_{oracle} {}

    // A direction of a connection: its number, and whether it leads to who connected.
    struct Pipe {
        std::uint64_t connection = 0;
        bool back = false;
        auto operator<=>(const Pipe&) const = default;
    };
    // --- messages ---
    MessageName next_message(const Pipe& pipe) const;
    void accepted(const Pipe& pipe, std::size_t bytes);
    void arrived(const Pipe& pipe, std::uint32_t process, std::span<const std::byte> bytes);
    // --- bytes ---
    // The bytes that go in next, and those that come out next.
    std::byte byte_at(const Pipe& pipe, std::uint64_t offset) const;
    std::uint64_t bytes_in(const Pipe& pipe) const;
    void bytes_accepted(const Pipe& pipe, std::uint64_t count);
    void bytes_arrived(const Pipe& pipe, std::uint32_t process, std::span<const std::byte> bytes);
    // --- the end ---
    // Somebody was told that everything has arrived.
    void everything_arrived(const Pipe& pipe, const char* why);
    // The same, but who receives it closes `other`, and may hold a part of it in a receive that
    // ends only with its connection.
    void everything_arrives(const Pipe& pipe, const Pipe& other, const char* why);
    bool is_empty(const Pipe& pipe) const;
    // --- close() ---
    // This process, which sends into it, ends it in order. It may give a peer up that takes nothing
    // for `timeout`, and is to hear of the end within `limit` of the time in which it looked.
    void closes(const Pipe& pipe, std::uint32_t process, Duration timeout, Duration limit);
    bool is_closing(const Pipe& pipe) const;
    // Whether nothing has happened since that keeps the peer, which reads, from confirming it.
    bool closes_calmly(const Pipe& pipe) const;
    // The peer may have been given up by now.
    bool may_be_given_up(const Pipe& pipe) const;
    // If it has given its peer up now as too slow: its time-out stands still while it is stopped
    // itself, but for so much of each time as its loop sleeps and cannot tell.
    bool gave_up_early(const Pipe& pipe, Duration sleep) const;
    // Who closes it has heard of the end, behind its last receive, which comes out of `other`.
    void closed(const Pipe& pipe, const Pipe& other);
    // Nobody has been waiting for longer.
    void check_closes() const;
    // --- operations: each ends once ---
    // No more of this process may be under way than `limit`.
    void begins(std::uint32_t process, std::uint64_t operation, std::size_t limit = SIZE_MAX);
    void ends(std::uint32_t process, std::uint64_t operation, const char* what);
    // Nothing may be outstanding: the connection has had its last word.
    void all_ended(std::uint32_t process, const char* when);
    void forget(std::uint32_t process);
    std::uint64_t arrived_count() const noexcept { return arrived_; }

  private:
    struct Closing {
        std::uint32_t process;
        TimePoint since;
        Duration timeout;
        Duration limit;
        bool is_over = false;
    };
    struct State {
        std::uint64_t accepted = 0; // messages, or bytes
        std::uint64_t arrived = 0;
        std::deque<std::size_t> sizes; // of messages that are due
        std::optional<Closing> closing;
        const char* everything_due = nullptr; // why
    };
    const Closing* closing_of(const Pipe& pipe) const;
    Duration time_away(const Closing& closing) const;
    void check_in_time(const Pipe& pipe, const Closing& closing) const;
    static MessageName name(const Pipe& pipe, std::uint64_t number) {
        return {.publisher = pipe.connection * 2 + pipe.back, .fid = 99, .number = number};
    }

    Oracle& oracle_;
    std::map<Pipe, State> pipes_;
    std::map<std::uint32_t, std::set<std::uint64_t>> outstanding_;
    std::uint64_t arrived_ = 0;
};

} // namespace netio::world
