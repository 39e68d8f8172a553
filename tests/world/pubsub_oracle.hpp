// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares what publishers accepted with what subscribers received: for each connection and fid it
// has a list of the messages accepted while it was subscribed. It uses only what users see: the
// results of their calls and the arguments of their callbacks.

#include "tests/world/oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace netio::world {

enum class Policy : std::uint8_t { block, drop, disconnect, newest };
constexpr bool policy_drops(Policy policy) noexcept {
    return policy == Policy::drop || policy == Policy::newest;
}

// The bytes of a message follow from its name.
struct MessageName {
    std::uint64_t publisher = 0; // process and incarnation
    std::uint64_t fid = 0;
    std::uint64_t number = 0;
};
void fill(const MessageName& name, std::span<std::byte> bytes);
bool is_intact(const MessageName& name, std::span<const std::byte> bytes);
// So does its time, if its publisher sends times; some messages are published without one.
std::optional<std::int64_t> time_of(const MessageName& name);

class PubSubOracle {
  public:
    explicit PubSubOracle(Oracle& oracle) : oracle_{oracle} {}

    // --- publishers ---
    // `explicitly`: an explicit publication waits for all subscribers, whatever the policy.
    void opens(std::uint32_t publisher, std::uint64_t incarnation, Policy policy,
               Duration disconnect_after, bool explicitly);
    // Its limit for conflated messages is low enough to be reached.
    void keeps_little(std::uint32_t publisher);
    void sends_times(std::uint32_t publisher);
    // It keeps the last messages, within this limit.
    void keeps_history(std::uint32_t publisher, std::size_t limit_bytes);
    // The socket is destroyed, alone or with its process.
    void vanishes(std::uint32_t publisher);
    void begins_to_close(std::uint32_t publisher);
    void closed(std::uint32_t publisher, bool everything_confirmed);
    // Peers are identified by the number of their connection.
    void peer_subscribed(std::uint32_t publisher, std::uint64_t connection,
                         const std::set<std::uint64_t>& fids);
    void peer_unsubscribed(std::uint32_t publisher, std::uint64_t connection,
                           const std::set<std::uint64_t>& fids);
    // `in_end`: the publisher has begun its orderly end.
    void peer_closed(std::uint32_t publisher, std::uint64_t connection, bool in_end);
    // The name of the next message of this fid.
    MessageName next(std::uint32_t publisher, std::uint64_t fid) const;
    void accepted(std::uint32_t publisher, std::uint64_t fid, std::size_t bytes,
                  std::uint8_t status);
    void nobody_wants(std::uint32_t publisher, std::uint64_t fid, std::size_t bytes,
                      std::uint8_t status);
    void ticket_opens(std::uint32_t publisher, std::uint64_t fid);
    void ticket_closes(std::uint32_t publisher, std::uint64_t fid);
    void refused(std::uint32_t publisher, std::uint64_t fid); // the call returned again
    void writable(std::uint32_t publisher);

    // --- subscribers ---
    // It asks for history, once for each fid: it does not subscribe what it has unsubscribed.
    void asks_for_history(std::uint32_t subscriber);
    // Without a policy the publisher's own applies.
    void asks(std::uint32_t subscriber, const std::set<std::uint64_t>& fids,
              std::optional<Policy> policy);
    void connected(std::uint32_t subscriber, std::uint32_t publisher, std::uint64_t connection);
    // The answers to its requests.
    void subscribed(std::uint32_t subscriber, const std::set<std::uint64_t>& fids);
    void unsubscribed(std::uint32_t subscriber, const std::set<std::uint64_t>& fids);
    void message(std::uint32_t subscriber, std::uint64_t fid, std::span<const std::byte> bytes,
                 std::uint8_t status, std::optional<std::int64_t> time);
    void gap(std::uint32_t subscriber, std::uint64_t fid, std::uint64_t count);
    void totals(std::uint32_t subscriber, std::uint64_t missing, std::uint64_t surplus);
    // `orderly`: the connection ended in order. `closed_here`: the subscriber has closed it, so
    // messages may be missing.
    void ended(std::uint32_t subscriber, bool orderly, bool closed_here);

    // --- periodic checks ---
    void check_waits();
    // At the end, after all faults: the subscriber wants these fids, and its publisher lives.
    void served(std::uint32_t subscriber, std::uint32_t publisher,
                const std::set<std::uint64_t>& wanted);
    // Current states, for the table of meetings.
    bool waits(std::uint32_t publisher) const;
    bool has_backlog(std::uint32_t publisher) const;
    bool has_ticket(std::uint32_t publisher) const;
    std::uint64_t delivered() const noexcept { return delivered_; }
    std::uint64_t gaps() const noexcept { return gaps_; }

  private:
    struct Expected {
        std::uint64_t number = 0;
        std::size_t bytes = 0;
        std::uint8_t status = 0;
        std::uint64_t request = 0; // the last one before it
        bool is_optional = false;  // it has unsubscribed, and need not be sent it any more
        bool kept = false;         // published before it subscribed
    };
    struct Account { // of one connection and fid
        std::deque<Expected> expected;
        std::uint64_t lost = 0;     // reported since it subscribed
        std::uint64_t requests = 0; // granted by the publisher
        std::uint64_t answers = 0;  // received by the subscriber
    };
    struct Link {
        std::uint32_t publisher = 0;
        std::uint64_t incarnation = 0;
        std::optional<TimePoint> since;     // known to the publisher
        std::set<std::uint64_t> subscribed; // at the publisher
        std::map<std::uint64_t, Account> accounts;
        bool closed_at_publisher = false;
    };
    struct Kept {
        std::uint64_t fid = 0;
        Expected message;
    };
    struct Publisher {
        std::uint64_t incarnation = 0;
        Policy policy = Policy::block;
        Duration disconnect_after{};
        bool explicitly = false;
        bool open = false;
        bool keeps_little = false;
        bool sends_times = false;
        std::uint64_t unserved = 0; // ended by an orderly end without all messages
        std::map<std::uint64_t, std::uint64_t> numbers; // next number, by fid
        // The newest messages that fit into the limit.
        std::size_t history_limit = 0; // 0: none are kept
        std::size_t history_bytes = 0;
        std::deque<Kept> history;
        std::map<std::uint64_t, TimePoint> waits; // by fid: blocked since
        std::set<std::uint64_t> tickets;
    };
    struct Subscriber {
        std::uint64_t connection = 0;          // 0: none
        std::set<std::uint64_t> asked_to_drop; // or for conflation
        std::set<std::uint64_t> ever_dropped;
        // All policies that it has ever requested, by fid; nullopt: the publisher's own.
        std::map<std::uint64_t, std::set<std::optional<Policy>>> asked;
        bool wants_history = false;
        // The incarnation of the publisher that has accepted this fid for history.
        std::map<std::uint64_t, std::uint64_t> supplied;
    };

    static bool takes(const Link& link, std::uint64_t fid) {
        return !link.closed_at_publisher && link.subscribed.contains(fid);
    }
    void keep(Publisher& publisher, std::uint64_t fid, const Expected& message);
    // The kept messages of a fid are due.
    void expect_kept(const Publisher& publisher, std::uint64_t fid, Account& account) const;
    bool has_history(const Link& link) const;
    std::string name_of(std::uint32_t subscriber, std::uint64_t fid) const;
    void check_time(std::uint32_t subscriber, const Link& link, MessageName name,
                    std::optional<std::int64_t> time);
    bool may_drop(std::uint32_t subscriber, const Link& link, std::uint64_t fid) const;
    // Whether it has never had another policy for this fid.
    bool wants_newest(std::uint32_t subscriber, const Link& link, std::uint64_t fid) const;
    void expect_everything(std::uint32_t subscriber, const Link& link,
                           const std::set<std::uint64_t>& fids, const char* when);
    void not_told(std::uint32_t subscriber, std::uint64_t fid, const Account& account,
                  std::ptrdiff_t due, const char* when);
    // Until when a wait for this fid may last, or max() if a rule permits the wait.
    TimePoint patience(std::uint32_t publisher, std::uint64_t fid, TimePoint since) const;

    Oracle& oracle_;
    std::map<std::uint32_t, Publisher> publishers_;
    std::map<std::uint32_t, Subscriber> subscribers_;
    std::map<std::uint64_t, Link> links_;           // by connection
    std::map<std::uint64_t, std::uint32_t> owners_; // subscriber of each connection
    std::uint64_t delivered_ = 0;
    std::uint64_t gaps_ = 0;
};

} // namespace netio::world
