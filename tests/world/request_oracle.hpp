// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares what requesters and responders do with what their users see: each request has a number
// that its bytes contain. Only what users see is used.

#include "tests/world/oracle.hpp"
#include "tests/world/pubsub_oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::world {

// How the user of a requester sees a request end.
enum class Ended : std::uint8_t {
    open,
    replied,
    timed_out,
    canceled,
    disconnected,
    no_reply,
    failed,
    too_large,
};

class RequestOracle {
  public:
    explicit RequestOracle(Oracle& oracle) : oracle_{oracle} {}

    // A request begins with its number.
    static constexpr std::size_t least_bytes = 8;
    static std::uint64_t number_in(std::span<const std::byte> request);

    // --- the requester ---
    // The number of the next request, and its bytes.
    std::uint64_t next() const { return next_; }
    void fill_request(std::uint64_t number, std::span<std::byte> bytes) const;
    // `now`, here and below: the time of the requester, whose clock may leap.
    void accepted(std::uint32_t requester, std::uint32_t responder, std::size_t bytes,
                  TimePoint now, Duration timeout);
    // Its user does not want it any more.
    void cancels(std::uint64_t request);
    // The user has taken a message of its reply.
    void taken(std::uint64_t request, std::span<const std::byte> message);
    // The user sees that it has ended. `newest`: the latest connection of the requester.
    void ended(std::uint64_t request, Ended how, TimePoint now, std::uint64_t newest);
    // The user has taken all messages of the reply. `why`: the text of the error, if there is one;
    // it may be cut, but not before `largest_failure` bytes.
    void is_over(std::uint64_t request, const std::string& why, std::size_t largest_failure);
    // The user sees now that it is still open.
    void is_open(std::uint64_t request, TimePoint now);
    // What the responder may have sent and the user has not taken, as the limit counts it.
    std::size_t untaken_cost(std::uint64_t request) const;

    // --- the responder ---
    void responder_begins(std::uint32_t responder);
    // The user has taken a request from the connection of this number.
    void arrived(std::uint32_t responder, std::uint64_t connection,
                 std::span<const std::byte> bytes);
    // A call returned true, false, or too_large.
    void part_given(std::uint64_t request, std::size_t bytes, bool is_last);
    void failure_given(std::uint64_t request, std::size_t bytes);
    void given_up(std::uint64_t request);
    // `excused`: the responder is closed, or the requester was disconnected as too slow.
    void not_given(std::uint64_t request, bool is_canceled, bool excused);
    // The user has an open request, and sees whether it is canceled. `free_since`: since then no
    // limit of the responder has kept it from receiving.
    void is_held(std::uint64_t request, bool is_canceled, TimePoint free_since) const;

    // close(), the destruction or the death of a requester or responder.
    void ends(std::uint32_t process) { over_[process] = oracle_.now(); }

    static MessageName name_of_part(std::uint64_t request, std::size_t part) {
        return {.publisher = request, .fid = 98, .number = part};
    }
    static std::string text_of_failure(std::uint64_t request, std::size_t bytes);
    std::uint64_t replied_count() const noexcept { return replied_; }
    bool has_arrived(std::uint64_t request) const { return at(request).has_arrived; }
    Ended end_of(std::uint64_t request) const { return at(request).end; }

  private:
    struct Request {
        std::uint32_t requester = 0;
        std::uint32_t responder = 0;
        std::size_t bytes = 0;
        TimePoint since;
        TimePoint until; // by its clock
        Duration timeout;
        Ended end = Ended::open;
        TimePoint ended_at{};
        std::uint64_t newest = 0; // connection at its end
        bool is_canceled = false; // by the user
        bool has_arrived = false;
        std::vector<std::size_t> parts; // given
        std::size_t taken = 0;
        Ended answer = Ended::open; // of the responder, which ends the request
        std::size_t failure_bytes = 0;
        TimePoint answered_at{};
    };
    const Request& at(std::uint64_t request) const { return requests_.at(request - 1); }
    Request& at(std::uint64_t request) { return requests_.at(request - 1); }
    bool is_known(std::uint64_t request) const { return request != 0 && request < next_; }
    // Nothing has delayed or disturbed one of the two since shortly before it was sent.
    bool was_calm(const Request& request) const;
    bool has_ended_since(std::uint32_t process, TimePoint since) const;
    void judge(std::uint64_t number, const Request& request, TimePoint now);
    void judge_too_large(std::uint64_t number, const Request& request, const std::string& why);
    void violate(RuleId rule, std::uint64_t number, const std::string& what) const;

    Oracle& oracle_;
    std::vector<Request> requests_;
    std::uint64_t next_ = 1;
    std::map<std::uint32_t, TimePoint> begun_; // responders
    std::map<std::uint32_t, TimePoint> over_;  // the latest end of each process
    std::uint64_t replied_ = 0;
};

} // namespace netio::world
