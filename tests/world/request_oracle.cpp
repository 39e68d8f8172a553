// SPDX-License-Identifier: Apache-2.0
#include "tests/world/request_oracle.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace netio::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A loop that nothing delays sees a deadline within this time.
constexpr Duration patience = milliseconds{50};
// Without a fault, what is sent arrives within this time.
constexpr Duration transit = milliseconds{100};
constexpr std::size_t part_cost = 64; // "plus 64 bytes for each of their messages"
constexpr std::size_t failure_text_bytes = 4096;
constexpr std::uint64_t request_part = UINT64_MAX;

const char* text_of(Ended end) {
    static constexpr std::array names{"open",         "replied",  "timed_out", "canceled",
                                      "disconnected", "no_reply", "failed",    "too_large"};
    return names[static_cast<std::size_t>(end)];
}

} // namespace

std::uint64_t RequestOracle::number_in(std::span<const std::byte> request) {
    std::uint64_t number = 0;
    if (request.size() >= sizeof number) std::memcpy(&number, request.data(), sizeof number);
    return number;
}

std::string RequestOracle::text_of_failure(std::uint64_t request, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes)
        text += "request " + std::to_string(request) + " failed; ";
    text.resize(bytes);
    return text;
}

void RequestOracle::violate(RuleId rule, std::uint64_t number, const std::string& what) const {
    std::string who = "request " + std::to_string(number);
    if (is_known(number))
        who += " of process " + std::to_string(at(number).requester) + " to process " +
               std::to_string(at(number).responder);
    oracle_.violate(rule, who + ": " + what);
}

bool RequestOracle::has_ended_since(std::uint32_t process, TimePoint since) const {
    const auto found = over_.find(process);
    return found != over_.end() && found->second >= since;
}

bool RequestOracle::was_calm(const Request& request) const {
    const TimePoint from = request.since - seconds{4};
    for (const std::uint32_t process : {request.requester, request.responder})
        if (!oracle_.was_free(process, from) || has_ended_since(process, from)) return false;
    return true;
}

// --- the requester --------------------------------------------------------------------------

void RequestOracle::fill_request(std::uint64_t number, std::span<std::byte> bytes) const {
    fill(name_of_part(number, request_part), bytes);
    std::memcpy(bytes.data(), &number, sizeof number);
}

void RequestOracle::accepted(std::uint32_t requester, std::uint32_t responder, std::size_t bytes,
                             TimePoint now, Duration timeout) {
    ++next_;
    requests_.push_back({.requester = requester,
                         .responder = responder,
                         .bytes = bytes,
                         .since = oracle_.now(),
                         .until = now + timeout,
                         .timeout = timeout});
}

void RequestOracle::cancels(std::uint64_t request) {
    if (at(request).end == Ended::open) at(request).is_canceled = true;
}

void RequestOracle::taken(std::uint64_t number, std::span<const std::byte> message) {
    Request& request = at(number);
    const std::size_t part = request.taken++;
    if (part >= request.parts.size())
        return violate(RuleId::reply_in_order, number,
                       "part " + std::to_string(part) + " arrived, which was not given");
    if (message.size() != request.parts[part] || !is_intact(name_of_part(number, part), message))
        violate(RuleId::reply_in_order, number,
                "part " + std::to_string(part) + " of " + std::to_string(request.parts[part]) +
                    " bytes arrived as " + std::to_string(message.size()) + " other bytes");
}

void RequestOracle::ended(std::uint64_t number, Ended how, TimePoint now, std::uint64_t newest) {
    Request& request = at(number);
    if (request.end == how) return;
    if (request.end != Ended::open)
        return violate(RuleId::request_ends_once, number,
                       std::string{"it has ended as "} + text_of(request.end) + ", and now as " +
                           text_of(how));
    request.end = how;
    request.ended_at = oracle_.now();
    request.newest = newest;
    judge(number, request, now);
}

void RequestOracle::judge(std::uint64_t number, const Request& request, TimePoint now) {
    const bool answered_in_time =
        request.answer != Ended::open &&
        request.answered_at + seconds{5} < request.since + request.timeout;
    switch (request.end) {
    case Ended::open:
        return;
    case Ended::replied:
        ++replied_;
        if (request.answer != Ended::replied)
            violate(RuleId::reply_whole, number, "it ended as replied, and was not");
        return;
    case Ended::timed_out:
        if (now < request.until) violate(RuleId::request_time, number, "it timed out too early");
        if (answered_in_time && was_calm(request))
            violate(RuleId::reply_given_arrives, number, "it timed out and was answered in time");
        return;
    case Ended::canceled:
        if (!request.is_canceled && !has_ended_since(request.requester, request.since))
            violate(RuleId::request_canceled, number, "its user did not cancel it");
        return;
    case Ended::disconnected:
        if (was_calm(request))
            violate(RuleId::request_disconnected, number, "nothing has disturbed the connection");
        return;
    case Ended::no_reply:
        if (request.answer != Ended::no_reply && !has_ended_since(request.responder, request.since))
            violate(RuleId::request_no_reply, number, "the responder has not given it up");
        return;
    case Ended::failed:
        if (request.answer != Ended::failed)
            violate(RuleId::request_failed, number, "the responder has not reported a failure");
        return;
    case Ended::too_large:
        return; // is_over()
    }
}

void RequestOracle::is_over(std::uint64_t number, const std::string& why,
                            std::size_t largest_failure) {
    const Request& request = at(number);
    if (request.end == Ended::replied && request.taken != request.parts.size())
        violate(RuleId::reply_whole, number,
                std::to_string(request.taken) + " parts of " +
                    std::to_string(request.parts.size()) + " arrived");
    if (request.end == Ended::failed) {
        const std::string full = text_of_failure(number, request.failure_bytes);
        const std::string text = why.substr(std::min(why.size(), why.find(": ") + 2));
        const bool is_whole = text.size() >= std::min(full.size(), largest_failure);
        if (!is_whole || !full.starts_with(text))
            violate(RuleId::request_failed, number, "with another text: " + text.substr(0, 80));
    }
    if (request.end == Ended::too_large) judge_too_large(number, request, why);
}

void RequestOracle::judge_too_large(std::uint64_t number, const Request& request,
                                    const std::string& why) {
    static constexpr std::string_view mark = "the limit is ";
    const std::size_t place = why.find(mark);
    if (place != std::string::npos) {
        const std::uint64_t limit = std::stoull(why.substr(place + mark.size()));
        if (request.bytes <= limit || request.has_arrived)
            violate(RuleId::request_too_large, number,
                    std::to_string(request.bytes) + " bytes: " + why);
    } else if (why.find("reply_limit_bytes") == std::string::npos || request.parts.empty()) {
        violate(RuleId::request_too_large, number, why);
    }
}

void RequestOracle::is_open(std::uint64_t number, TimePoint now) {
    const Request& request = at(number);
    if (request.end != Ended::open)
        return violate(RuleId::request_ends_once, number, "it has ended, and is open again");
    if (now > request.until + patience && was_calm(request))
        violate(RuleId::request_time, number, "it is open after its time");
}

std::size_t RequestOracle::untaken_cost(std::uint64_t number) const {
    const Request& request = at(number);
    std::size_t cost = 0;
    for (std::size_t part = request.taken; part < request.parts.size(); ++part)
        cost += request.parts[part] + part_cost;
    return cost;
}

// --- the responder --------------------------------------------------------------------------

void RequestOracle::responder_begins(std::uint32_t responder) {
    begun_[responder] = oracle_.now();
}

void RequestOracle::arrived(std::uint32_t responder, std::uint64_t connection,
                            std::span<const std::byte> bytes) {
    const std::uint64_t number = number_in(bytes);
    if (!is_known(number)) return violate(RuleId::request_whole, number, "it was never sent");
    Request& request = at(number);
    std::vector<std::byte> expected(request.bytes);
    fill_request(number, expected);
    if (request.responder != responder || !std::ranges::equal(expected, bytes))
        violate(RuleId::request_whole, number,
                "it arrived at process " + std::to_string(responder) + " with " +
                    std::to_string(bytes.size()) + " bytes of " + std::to_string(request.bytes));
    if (std::exchange(request.has_arrived, true))
        violate(RuleId::request_not_repeated, number, "it arrived again");
    if (request.end == Ended::open) return;
    if (connection > request.newest || request.ended_at < begun_[responder])
        violate(RuleId::request_not_repeated, number,
                "it ended before the connection, on which it arrived, was made");
}

void RequestOracle::part_given(std::uint64_t number, std::size_t bytes, bool is_last) {
    Request& request = at(number);
    if (request.answer != Ended::open)
        violate(RuleId::reply_accepted, number, "a part was accepted after its end");
    request.parts.push_back(bytes);
    if (!is_last) return;
    request.answer = Ended::replied;
    request.answered_at = oracle_.now();
}

void RequestOracle::failure_given(std::uint64_t number, std::size_t bytes) {
    Request& request = at(number);
    if (request.answer != Ended::open)
        violate(RuleId::reply_accepted, number, "a failure was accepted after its end");
    request.answer = Ended::failed;
    request.failure_bytes = std::min(bytes, failure_text_bytes);
    request.answered_at = oracle_.now();
}

void RequestOracle::given_up(std::uint64_t number) {
    Request& request = at(number);
    if (request.answer != Ended::open) return;
    request.answer = Ended::no_reply;
    request.answered_at = oracle_.now();
}

void RequestOracle::not_given(std::uint64_t number, bool is_canceled, bool excused) {
    if (at(number).answer == Ended::open && !is_canceled && !excused)
        violate(RuleId::reply_accepted, number, "its open request takes no reply");
}

void RequestOracle::is_held(std::uint64_t number, bool is_canceled, TimePoint free_since) const {
    const Request& request = at(number);
    if (!was_calm(request)) return;
    // After the time-out, the requester's user may not have looked yet.
    const bool waits =
        request.end == Ended::open && oracle_.now() < request.since + request.timeout;
    if (is_canceled && waits)
        violate(RuleId::request_cancel_cause, number, "it is canceled, and its requester waits");
    const bool is_unwanted = request.end == Ended::timed_out || request.end == Ended::canceled;
    if (!is_canceled && is_unwanted && request.ended_at > free_since + transit &&
        oracle_.now() > request.ended_at + transit)
        violate(RuleId::request_cancel_arrives, number,
                std::string{"it has ended as "} + text_of(request.end) +
                    ", and the responder was not notified");
}

} // namespace netio::world
