// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares what enters one end of a connection with what leaves the other: point-to-point messages
// or bytes. Each direction of each connection is a pipe; only what users see is used.

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

    // A direction of a connection: its number, and whether it leads to the connecting side.
    struct Pipe {
        std::uint64_t connection = 0;
        bool back = false;
        auto operator<=>(const Pipe&) const = default;
    };
    // --- messages ---
    MessageName next_message(const Pipe& pipe) const;
    void accepted(const Pipe& pipe, std::size_t bytes, std::optional<std::uint64_t> immediate = {});
    // `promised`: the rule for this kind of socket.
    void arrived(const Pipe& pipe, std::uint32_t process, std::span<const std::byte> bytes,
                 std::optional<std::uint64_t> immediate = {},
                 RuleId promised = RuleId::once_in_order);
    // Of the next message to arrive; nullopt: none was sent.
    std::optional<std::size_t> next_size(const Pipe& pipe) const;
    // Its sender sends nothing more, and its receiver is notified of that.
    void finishes(const Pipe& pipe) { pipes_[pipe].is_finished = true; }
    bool is_finished(const Pipe& pipe) const;
    // --- bytes ---
    // The next bytes to send and the next bytes to receive.
    std::byte byte_at(const Pipe& pipe, std::uint64_t offset) const;
    std::uint64_t bytes_in(const Pipe& pipe) const;
    void bytes_accepted(const Pipe& pipe, std::uint64_t count);
    void bytes_arrived(const Pipe& pipe, std::uint32_t process, std::span<const std::byte> bytes);
    // --- the end ---
    // The sender got the confirmation that everything has arrived.
    void everything_arrived(const Pipe& pipe, const char* why);
    // The same, but its receiver closes `other` and may have a part of it in a receive that
    // completes only with the end of its connection.
    void everything_arrives(const Pipe& pipe, const Pipe& other, const char* why);
    bool is_empty(const Pipe& pipe) const;
    // --- close() ---
    // This process, which sends into the pipe, closes it in order. It may give up on a peer that
    // receives nothing for `timeout`. It must be notified of the end within `limit` of the time in
    // which it looked.
    void closes(const Pipe& pipe, std::uint32_t process, Duration timeout, Duration limit,
                RuleId promised = RuleId::stream_close_is_bounded);
    bool is_closing(const Pipe& pipe) const;
    // Whether no fault since then can keep the peer, which reads, from confirming it.
    bool closes_calmly(const Pipe& pipe) const;
    // Whether its time-out for the peer may have expired by now.
    bool may_be_given_up(const Pipe& pipe) const;
    // Whether its time-out, if it expires now, does so too early. The time-out does not run while
    // the process is stopped, except for the part of each stop in which its loop slept and cannot
    // tell.
    bool gave_up_early(const Pipe& pipe, Duration sleep) const;
    // The closing process has received the end, after its last receive, which leaves `other`.
    void closed(const Pipe& pipe, const Pipe& other);
    // No close has taken longer than its limit.
    void check_closes() const;
    // --- operations: each completes once ---
    // At most `limit` operations of this process may be in flight.
    void begins(std::uint32_t process, std::uint64_t operation, std::size_t limit = SIZE_MAX);
    void ends(std::uint32_t process, std::uint64_t operation, const char* what);
    // No operation may be outstanding, because the connection has reported its end.
    void all_ended(std::uint32_t process, const char* when);
    void forget(std::uint32_t process);
    std::uint64_t arrived_count() const noexcept { return arrived_; }

  private:
    struct Closing {
        std::uint32_t process;
        TimePoint since;
        Duration timeout;
        Duration limit;
        RuleId promised;
        bool is_over = false;
    };
    struct Pending {
        std::size_t bytes;
        std::optional<std::uint64_t> immediate;
    };
    struct State {
        std::uint64_t accepted = 0; // messages or bytes
        std::uint64_t arrived = 0;
        std::deque<Pending> pending; // messages
        bool is_finished = false;
        std::optional<Closing> closing;
        const char* everything_due = nullptr; // the reason
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
