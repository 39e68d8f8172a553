// SPDX-License-Identifier: Apache-2.0
#include "tests/world/pipe_oracle.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace netio::world {
namespace {

std::string name_of(const PipeOracle::Pipe& pipe) {
    return "connection " + std::to_string(pipe.connection) + (pipe.back ? ", back" : "");
}

} // namespace

MessageName PipeOracle::next_message(const Pipe& pipe) const {
    const auto found = pipes_.find(pipe);
    return name(pipe, found == pipes_.end() ? 0 : found->second.accepted);
}

void PipeOracle::accepted(const Pipe& pipe, std::size_t bytes,
                          std::optional<std::uint64_t> immediate) {
    State& state = pipes_[pipe];
    ++state.accepted;
    state.pending.push_back({.bytes = bytes, .immediate = immediate});
}

std::optional<std::size_t> PipeOracle::next_size(const Pipe& pipe) const {
    const auto found = pipes_.find(pipe);
    if (found == pipes_.end() || found->second.pending.empty()) return std::nullopt;
    return found->second.pending.front().bytes;
}

bool PipeOracle::is_finished(const Pipe& pipe) const {
    const auto found = pipes_.find(pipe);
    return found != pipes_.end() && found->second.is_finished;
}

void PipeOracle::arrived(const Pipe& pipe, std::uint32_t process, std::span<const std::byte> bytes,
                         std::optional<std::uint64_t> immediate, RuleId promised) {
    ++arrived_;
    State& state = pipes_[pipe];
    const bool due = !state.pending.empty();
    if (due && state.pending.front().bytes == bytes.size() &&
        state.pending.front().immediate == immediate &&
        is_intact(name(pipe, state.arrived), bytes)) {
        ++state.arrived;
        state.pending.pop_front();
        return;
    }
    oracle_.violate(promised,
                    "process " + std::to_string(process) + ", " + name_of(pipe) + ": " +
                        std::to_string(bytes.size()) + " bytes came, expected message " +
                        std::to_string(state.arrived) +
                        (due ? " of " + std::to_string(state.pending.front().bytes) + " bytes"
                             : ", which was not sent"));
}

// Every byte of a stream follows from its position.
std::byte PipeOracle::byte_at(const Pipe& pipe, std::uint64_t offset) const {
    const std::uint64_t mixed = (offset + pipe.connection * 131 + pipe.back * 7) * 2654435761U;
    return static_cast<std::byte>(mixed >> 24);
}

std::uint64_t PipeOracle::bytes_in(const Pipe& pipe) const {
    const auto found = pipes_.find(pipe);
    return found == pipes_.end() ? 0 : found->second.accepted;
}

void PipeOracle::bytes_accepted(const Pipe& pipe, std::uint64_t count) {
    pipes_[pipe].accepted += count;
}

void PipeOracle::bytes_arrived(const Pipe& pipe, std::uint32_t process,
                               std::span<const std::byte> bytes) {
    State& state = pipes_[pipe];
    ++arrived_;
    for (const std::byte byte : bytes) {
        if (state.arrived >= state.accepted || byte != byte_at(pipe, state.arrived)) {
            return oracle_.violate(RuleId::bytes_in_order,
                                   "process " + std::to_string(process) + ", " + name_of(pipe) +
                                       ": wrong byte at " + std::to_string(state.arrived) + " of " +
                                       std::to_string(state.accepted));
        }
        ++state.arrived;
    }
}

bool PipeOracle::is_empty(const Pipe& pipe) const {
    const auto found = pipes_.find(pipe);
    return found == pipes_.end() || found->second.accepted == found->second.arrived;
}

void PipeOracle::everything_arrived(const Pipe& pipe, const char* why) {
    if (is_empty(pipe)) return;
    const State& state = pipes_[pipe];
    oracle_.violate(RuleId::orderly_is_everything, name_of(pipe) + ": " + why + ", and of " +
                                                       std::to_string(state.accepted) + " only " +
                                                       std::to_string(state.arrived) + " arrived");
}

// --- close() --------------------------------------------------------------------------------

void PipeOracle::closes(const Pipe& pipe, std::uint32_t process, Duration timeout, Duration limit,
                        RuleId promised) {
    pipes_[pipe].closing = {.process = process,
                            .since = oracle_.now(),
                            .timeout = timeout,
                            .limit = limit,
                            .promised = promised};
}

const PipeOracle::Closing* PipeOracle::closing_of(const Pipe& pipe) const {
    const auto found = pipes_.find(pipe);
    return found == pipes_.end() || !found->second.closing ? nullptr : &*found->second.closing;
}

bool PipeOracle::is_closing(const Pipe& pipe) const {
    return closing_of(pipe) != nullptr;
}

bool PipeOracle::closes_calmly(const Pipe& pipe) const {
    const Closing* const closing = closing_of(pipe);
    return closing != nullptr && oracle_.was_calm(closing->since);
}

bool PipeOracle::may_be_given_up(const Pipe& pipe) const {
    const Closing* const closing = closing_of(pipe);
    return closing != nullptr &&
           oracle_.now() - closing->since >= closing->timeout + time_away(*closing);
}

bool PipeOracle::gave_up_early(const Pipe& pipe, Duration sleep) const {
    const Closing* const closing = closing_of(pipe);
    // Its clock may have leapt.
    if (closing == nullptr || oracle_.happened(Trouble::busy, closing->process, closing->since))
        return false;
    const Duration everyday = std::chrono::milliseconds{200};
    const Duration away =
        oracle_.lasted(Trouble::stopped, closing->process, closing->since, sleep + everyday);
    return oracle_.now() - closing->since < closing->timeout + away;
}

void PipeOracle::everything_arrives(const Pipe& pipe, const Pipe& other, const char* why) {
    const Closing* const closing = closing_of(other);
    if (closing == nullptr || closing->is_over) return everything_arrived(pipe, why);
    pipes_[pipe].everything_due = why;
}

void PipeOracle::closed(const Pipe& pipe, const Pipe& other) {
    if (const char* const why = std::exchange(pipes_[other].everything_due, nullptr)) {
        everything_arrived(other, why);
    }
    State& state = pipes_[pipe];
    if (!state.closing || std::exchange(state.closing->is_over, true)) return;
    check_in_time(pipe, *state.closing);
}

// The time in which it did not look; the peer is not to blame for it.
Duration PipeOracle::time_away(const Closing& closing) const {
    return oracle_.lasted(Trouble::stopped, closing.process, closing.since) +
           oracle_.lasted(Trouble::busy, closing.process, closing.since);
}

// A clock that leaps runs ahead of the others, so a wait measured by it is shorter.
void PipeOracle::check_in_time(const Pipe& pipe, const Closing& closing) const {
    const Duration slack = std::chrono::seconds{2};
    if (oracle_.now() - closing.since <= closing.limit + time_away(closing) + slack) return;
    oracle_.violate(closing.promised, "process " + std::to_string(closing.process) + ", " +
                                          name_of(pipe) + ": it closes for longer than that");
}

void PipeOracle::check_closes() const {
    for (const auto& [pipe, state] : pipes_)
        if (state.closing && !state.closing->is_over) check_in_time(pipe, *state.closing);
}

void PipeOracle::forget(std::uint32_t process) {
    outstanding_.erase(process);
    for (auto& [pipe, state] : pipes_)
        if (state.closing && state.closing->process == process) state.closing->is_over = true;
}

// --- operations -----------------------------------------------------------------------------

void PipeOracle::begins(std::uint32_t process, std::uint64_t operation, std::size_t limit) {
    std::set<std::uint64_t>& outstanding = outstanding_[process];
    outstanding.insert(operation);
    if (outstanding.size() <= limit) return;
    oracle_.violate(RuleId::queue_is_limited, "process " + std::to_string(process) + " has " +
                                                  std::to_string(outstanding.size()) +
                                                  " operations under way, at most " +
                                                  std::to_string(limit) + " were announced");
}

void PipeOracle::ends(std::uint32_t process, std::uint64_t operation, const char* what) {
    if (outstanding_[process].erase(operation) == 1) return;
    oracle_.violate(RuleId::completed_once, "process " + std::to_string(process) + ": " + what +
                                                " of operation " + std::to_string(operation) +
                                                ", which is not outstanding");
}

void PipeOracle::all_ended(std::uint32_t process, const char* when) {
    const auto found = outstanding_.find(process);
    if (found == outstanding_.end() || found->second.empty()) return;
    oracle_.violate(RuleId::completed_once, "process " + std::to_string(process) + ": " + when +
                                                ", and " + std::to_string(found->second.size()) +
                                                " operations have not ended");
    found->second.clear();
}

} // namespace netio::world
