// SPDX-License-Identifier: Apache-2.0
#include "tests/world/pubsub_oracle.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace netio::world {
namespace {

// A wait without a cause must end within this time.
constexpr Duration prompt = std::chrono::seconds{2};

std::uint64_t seed_of(const MessageName& name) {
    return (name.publisher * 1000003 + name.fid) * 1000003 + name.number;
}
std::byte byte_of(std::uint64_t seed, std::size_t place) {
    return static_cast<std::byte>((seed + place) * 2654435761U >> 16);
}

} // namespace

void fill(const MessageName& name, std::span<std::byte> bytes) {
    const std::uint64_t seed = seed_of(name);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = byte_of(seed, i);
}

bool is_intact(const MessageName& name, std::span<const std::byte> bytes) {
    const std::uint64_t seed = seed_of(name);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] != byte_of(seed, i)) return false;
    return true;
}

std::optional<std::int64_t> time_of(const MessageName& name) {
    constexpr std::uint64_t without = 3; // every third message has no time
    if (name.number % without == without - 1) return std::nullopt;
    return static_cast<std::int64_t>(seed_of(name) * 0x9e3779b97f4a7c15U);
}

std::string PubSubOracle::name_of(std::uint32_t subscriber, std::uint64_t fid) const {
    return "process " + std::to_string(subscriber) + ", fid " + std::to_string(fid);
}

// --- publishers -----------------------------------------------------------------------------

void PubSubOracle::opens(std::uint32_t publisher, std::uint64_t incarnation, Policy policy,
                         Duration disconnect_after, bool explicitly) {
    vanishes(publisher);
    publishers_[publisher] = {.incarnation = incarnation,
                              .policy = policy,
                              .disconnect_after = disconnect_after,
                              .explicitly = explicitly,
                              .open = true};
}

void PubSubOracle::keeps_little(std::uint32_t publisher) {
    publishers_[publisher].keeps_little = true;
}

void PubSubOracle::sends_times(std::uint32_t publisher) {
    publishers_[publisher].sends_times = true;
}

void PubSubOracle::keeps_history(std::uint32_t publisher, std::size_t limit_bytes) {
    publishers_[publisher].history_limit = limit_bytes;
}

void PubSubOracle::keep(Publisher& publisher, std::uint64_t fid, const Expected& message) {
    // docs/history.md: 32 bytes more than its size with its time, rounded up to 8.
    const std::size_t stamp = publisher.sends_times ? 8 : 0;
    const auto needed = [&](const Expected& one) { return 32 + (one.bytes + stamp + 7) / 8 * 8; };
    if (publisher.history_limit == 0) return;
    publisher.history.push_back({.fid = fid, .message = message});
    publisher.history_bytes += needed(message);
    while (publisher.history_bytes > publisher.history_limit) {
        publisher.history_bytes -= needed(publisher.history.front().message);
        publisher.history.pop_front();
    }
}

void PubSubOracle::expect_kept(const Publisher& publisher, std::uint64_t fid,
                               Account& account) const {
    for (const Kept& each : publisher.history) {
        if (each.fid != fid) continue;
        Expected& due = account.expected.emplace_back(each.message);
        due.request = account.requests;
        due.kept = true;
    }
}

bool PubSubOracle::has_history(const Link& link) const {
    const auto publisher = publishers_.find(link.publisher);
    const auto is_of = [&](const auto& entry) {
        const auto found = links_.find(entry.first);
        return found != links_.end() && &found->second == &link &&
               subscribers_.at(entry.second).wants_history;
    };
    return publisher != publishers_.end() && publisher->second.history_limit > 0 &&
           std::ranges::any_of(owners_, is_of);
}

void PubSubOracle::vanishes(std::uint32_t publisher) {
    Publisher& it = publishers_[publisher];
    it.open = false;
    it.waits.clear();
    it.tickets.clear();
    for (auto& [connection, link] : links_)
        if (link.publisher == publisher) link.closed_at_publisher = true;
}

// No message is accepted any more; the end reports what is still queued.
void PubSubOracle::begins_to_close(std::uint32_t publisher) {
    Publisher& it = publishers_[publisher];
    it.open = false;
    it.waits.clear();
    it.tickets.clear();
}

void PubSubOracle::closed(std::uint32_t publisher, bool everything_confirmed) {
    if (!everything_confirmed) return;
    if (const std::uint64_t unserved = publishers_[publisher].unserved; unserved > 0) {
        oracle_.violate(RuleId::orderly_is_everything,
                        "the publisher closed as orderly, and " + std::to_string(unserved) +
                            " subscribers ended meanwhile without everything");
    }
    for (const auto& [connection, link] : links_) {
        if (link.publisher != publisher || link.closed_at_publisher) continue;
        if (link.incarnation != publishers_[publisher].incarnation) continue;
        const auto owner = owners_.find(connection);
        if (owner == owners_.end()) continue;
        expect_everything(owner->second, link, link.subscribed, "the publisher closed as orderly");
    }
}

void PubSubOracle::peer_subscribed(std::uint32_t publisher, std::uint64_t connection,
                                   const std::set<std::uint64_t>& fids) {
    Link& link = links_[connection];
    link.publisher = publisher;
    link.incarnation = publishers_[publisher].incarnation;
    if (!link.since) link.since = oracle_.now();
    const Publisher& it = publishers_[publisher];
    const bool has_kept = has_history(link);
    for (const std::uint64_t fid : fids) {
        Account& account = link.accounts[fid];
        ++account.requests;
        if (!has_kept || link.subscribed.contains(fid)) continue;
        const Subscriber& peer = subscribers_[owners_.at(connection)];
        const auto supplied = peer.supplied.find(fid);
        if (supplied == peer.supplied.end() || supplied->second != it.incarnation)
            expect_kept(it, fid, account);
    }
    link.subscribed.insert(fids.begin(), fids.end());
}

void PubSubOracle::peer_unsubscribed(std::uint32_t publisher, std::uint64_t connection,
                                     const std::set<std::uint64_t>& fids) {
    Link& link = links_[connection];
    const Publisher& it = publishers_[publisher];
    for (const std::uint64_t fid : fids) {
        link.subscribed.erase(fid);
        Account& account = link.accounts[fid];
        ++account.requests;
        if (it.tickets.contains(fid) && !account.expected.empty()) {
            account.expected.back().is_optional = true;
        }
        if (!has_history(link)) continue;
        for (Expected& each : account.expected)
            each.is_optional = true;
    }
}

void PubSubOracle::peer_closed(std::uint32_t publisher, std::uint64_t connection, bool in_end) {
    const auto found = links_.find(connection);
    if (found == links_.end()) return;
    Link& link = found->second;
    link.closed_at_publisher = true;
    const bool due = std::ranges::any_of(link.subscribed, [&](std::uint64_t fid) {
        return std::ranges::count(link.accounts[fid].expected, false, &Expected::is_optional) > 0;
    });
    if (in_end && due) ++publishers_[publisher].unserved;
}

MessageName PubSubOracle::next(std::uint32_t publisher, std::uint64_t fid) const {
    const Publisher& it = publishers_.at(publisher);
    const auto number = it.numbers.find(fid);
    return {.publisher = publisher * 1000ULL + it.incarnation,
            .fid = fid,
            .number = number == it.numbers.end() ? 0 : number->second};
}

void PubSubOracle::accepted(std::uint32_t publisher, std::uint64_t fid, std::size_t bytes,
                            std::uint8_t status) {
    Publisher& it = publishers_[publisher];
    const std::uint64_t number = it.numbers[fid]++;
    it.waits.erase(fid);
    bool wanted = false;
    const Expected message{.number = number, .bytes = bytes, .status = status};
    keep(it, fid, message);
    for (auto& [connection, link] : links_) {
        if (link.publisher != publisher || !takes(link, fid)) continue;
        wanted = true;
        Account& account = link.accounts[fid];
        account.expected.push_back(message);
        account.expected.back().request = account.requests;
    }
    if (!wanted) {
        oracle_.violate(RuleId::told_who_wants_it, "publish said ok for fid " +
                                                       std::to_string(fid) +
                                                       ", and nobody has subscribed to it");
    }
}

void PubSubOracle::nobody_wants(std::uint32_t publisher, std::uint64_t fid, std::size_t bytes,
                                std::uint8_t status) {
    Publisher& it = publishers_[publisher];
    it.waits.erase(fid);
    if (it.history_limit > 0)
        keep(it, fid, {.number = it.numbers[fid]++, .bytes = bytes, .status = status});
    for (const auto& [connection, link] : links_) {
        if (link.publisher == publisher && takes(link, fid)) {
            oracle_.violate(RuleId::told_who_wants_it,
                            "publish said no_subscribers for fid " + std::to_string(fid) +
                                ", and connection " + std::to_string(connection) + " wants it");
        }
    }
}

void PubSubOracle::ticket_opens(std::uint32_t publisher, std::uint64_t fid) {
    publishers_[publisher].tickets.insert(fid);
}
void PubSubOracle::ticket_closes(std::uint32_t publisher, std::uint64_t fid) {
    publishers_[publisher].tickets.erase(fid);
}

void PubSubOracle::refused(std::uint32_t publisher, std::uint64_t fid) {
    publishers_[publisher].waits.emplace(fid, oracle_.now());
}

void PubSubOracle::writable(std::uint32_t publisher) {
    publishers_[publisher].waits.clear();
}

// --- subscribers ----------------------------------------------------------------------------

void PubSubOracle::asks_for_history(std::uint32_t subscriber) {
    Subscriber& it = subscribers_[subscriber];
    it.wants_history = true;
    it.supplied.clear(); // a new socket does not know what an earlier one has received
}

void PubSubOracle::asks(std::uint32_t subscriber, const std::set<std::uint64_t>& fids,
                        std::optional<Policy> policy) {
    Subscriber& it = subscribers_[subscriber];
    for (const std::uint64_t fid : fids) {
        it.asked[fid].insert(policy);
        if (policy && policy_drops(*policy)) {
            it.asked_to_drop.insert(fid);
            it.ever_dropped.insert(fid);
        } else {
            it.asked_to_drop.erase(fid);
        }
    }
}

void PubSubOracle::connected(std::uint32_t subscriber, std::uint32_t publisher,
                             std::uint64_t connection) {
    subscribers_[subscriber].connection = connection;
    owners_[connection] = subscriber;
    Link& link = links_[connection];
    if (link.incarnation == 0) {
        link.publisher = publisher;
        link.incarnation = publishers_[publisher].incarnation;
    }
}

void PubSubOracle::subscribed(std::uint32_t subscriber, const std::set<std::uint64_t>& fids) {
    Subscriber& it = subscribers_[subscriber];
    Link& link = links_[it.connection];
    for (const std::uint64_t fid : fids) {
        ++link.accounts[fid].answers;
        it.supplied[fid] = link.incarnation;
    }
}

// Messages published before the request arrive before its answer, whatever is requested later.
void PubSubOracle::unsubscribed(std::uint32_t subscriber, const std::set<std::uint64_t>& fids) {
    Link& link = links_[subscribers_[subscriber].connection];
    for (const std::uint64_t fid : fids) {
        Account& account = link.accounts[fid];
        account.lost = 0;
        const std::uint64_t answer = ++account.answers;
        const auto due = std::ranges::count_if(account.expected, [&](const Expected& one) {
            return one.request < answer && !one.is_optional;
        });
        if (due > 0) not_told(subscriber, fid, account, due, "unsubscribed");
        // Messages not sent by then do not arrive any more; later losses belong to other messages.
        std::erase_if(account.expected,
                      [&](const Expected& one) { return one.request < answer && one.is_optional; });
    }
}

void PubSubOracle::check_time(std::uint32_t subscriber, const Link& link, MessageName name,
                              std::optional<std::int64_t> time) {
    name.publisher = link.publisher * 1000ULL + link.incarnation;
    const bool has_times = publishers_[link.publisher].sends_times;
    const auto sent = has_times ? time_of(name) : std::nullopt;
    if (time == sent) return;
    const auto text = [](std::optional<std::int64_t> one) {
        return one ? "the time " + std::to_string(*one) : std::string{"no time"};
    };
    oracle_.violate(RuleId::time_is_sent, name_of(subscriber, name.fid) + ": message " +
                                              std::to_string(name.number) + " came with " +
                                              text(time) + " and was published with " + text(sent));
}

void PubSubOracle::message(std::uint32_t subscriber, std::uint64_t fid,
                           std::span<const std::byte> bytes, std::uint8_t status,
                           std::optional<std::int64_t> time) {
    ++delivered_;
    Link& link = links_[subscribers_[subscriber].connection];
    std::deque<Expected>& expected = link.accounts[fid].expected;
    const auto matches = [&](const Expected& one) {
        return one.bytes == bytes.size() && one.status == status &&
               is_intact({.publisher = link.publisher * 1000ULL + link.incarnation,
                          .fid = fid,
                          .number = one.number},
                         bytes);
    };
    while (!expected.empty() && expected.front().is_optional && !matches(expected.front()))
        expected.pop_front();
    if (expected.empty()) {
        return oracle_.violate(RuleId::once_in_order,
                               name_of(subscriber, fid) + ": a message of " +
                                   std::to_string(bytes.size()) +
                                   " bytes that was not published to it, or arrived before");
    }
    const Expected front = expected.front();
    if (matches(front)) {
        check_time(subscriber, link, {.fid = fid, .number = front.number}, time);
        return expected.pop_front();
    }
    const auto later = std::ranges::find_if(expected, matches);
    oracle_.violate(later == expected.end() ? RuleId::whole
                    : front.kept            ? RuleId::history_first
                                            : RuleId::once_in_order,
                    name_of(subscriber, fid) + ": expected message " +
                        std::to_string(front.number) + " of " + std::to_string(front.bytes) +
                        " bytes, came " +
                        (later != expected.end()
                             ? "message " + std::to_string(later->number)
                             : std::to_string(bytes.size()) + " bytes that are no message's"));
    while (!expected.empty() && later != expected.end() && expected.front().number <= later->number)
        expected.pop_front();
}

bool PubSubOracle::may_drop(std::uint32_t subscriber, const Link& link, std::uint64_t fid) const {
    const auto publisher = publishers_.find(link.publisher);
    if (publisher != publishers_.end() && policy_drops(publisher->second.policy)) return true;
    const auto it = subscribers_.find(subscriber);
    return it != subscribers_.end() && it->second.ever_dropped.contains(fid);
}

bool PubSubOracle::wants_newest(std::uint32_t subscriber, const Link& link,
                                std::uint64_t fid) const {
    const auto publisher = publishers_.find(link.publisher);
    const auto it = subscribers_.find(subscriber);
    if (publisher == publishers_.end() || it == subscribers_.end()) return false;
    const auto asked = it->second.asked.find(fid);
    if (asked == it->second.asked.end()) return false;
    return std::ranges::all_of(asked->second, [&](const std::optional<Policy>& each) {
        return each.value_or(publisher->second.policy) == Policy::newest;
    });
}

void PubSubOracle::gap(std::uint32_t subscriber, std::uint64_t fid, std::uint64_t count) {
    gaps_ += count;
    Link& link = links_[subscribers_[subscriber].connection];
    Account& account = link.accounts[fid];
    account.lost += count;
    const auto lost = static_cast<std::ptrdiff_t>(
        std::min<std::size_t>(static_cast<std::size_t>(count), account.expected.size()));
    // Kept messages may be overwritten before they are sent, whatever the policy.
    const bool only_kept =
        std::ranges::all_of(account.expected | std::views::take(lost), &Expected::kept);
    if (!only_kept && !may_drop(subscriber, link, fid)) {
        oracle_.violate(RuleId::gap_by_policy, name_of(subscriber, fid) + ": a gap of " +
                                                   std::to_string(count) +
                                                   ", and no policy lets it miss any");
    }
    if (count == 0 || count > account.expected.size()) {
        oracle_.violate(RuleId::gap_at_its_place, name_of(subscriber, fid) + ": a gap of " +
                                                      std::to_string(count) + ", and only " +
                                                      std::to_string(account.expected.size()) +
                                                      " messages are due");
        account.expected.clear();
        return;
    }
    // With conflation the newest message is never lost, unless the fid was just unsubscribed.
    if (count == account.expected.size() && account.requests == account.answers &&
        !publishers_[link.publisher].keeps_little && wants_newest(subscriber, link, fid) &&
        !has_history(link)) {
        oracle_.violate(RuleId::newest_arrives,
                        name_of(subscriber, fid) + ": a gap of " + std::to_string(count) +
                            ", which is all that was due, with the newest message");
    }
    account.expected.erase(account.expected.begin(),
                           account.expected.begin() + static_cast<std::ptrdiff_t>(count));
}

void PubSubOracle::expect_everything(std::uint32_t subscriber, const Link& link,
                                     const std::set<std::uint64_t>& fids, const char* when) {
    for (const auto& [fid, account] : link.accounts) {
        if (!fids.contains(fid)) continue;
        const auto due = std::ranges::count(account.expected, false, &Expected::is_optional);
        if (due == 0) continue;
        not_told(subscriber, fid, account, due, when);
    }
}

void PubSubOracle::not_told(std::uint32_t subscriber, std::uint64_t fid, const Account& account,
                            std::ptrdiff_t due, const char* when) {
    oracle_.violate(RuleId::orderly_is_everything,
                    name_of(subscriber, fid) + ": " + when + ", and " + std::to_string(due) +
                        " messages were neither delivered nor told as missing, the first is " +
                        std::to_string(account.expected.front().number));
}

void PubSubOracle::totals(std::uint32_t subscriber, std::uint64_t missing, std::uint64_t surplus) {
    const Link& link = links_[subscribers_[subscriber].connection];
    expect_everything(subscriber, link, link.subscribed, "the totals were reported");
    std::uint64_t truth = 0;
    for (const auto& [fid, account] : link.accounts)
        if (link.subscribed.contains(fid)) truth += account.lost;
    if (missing == truth && surplus == 0) return;
    oracle_.violate(RuleId::totals_match, "process " + std::to_string(subscriber) +
                                              ": by its totals it lost " + std::to_string(missing) +
                                              ", surplus " + std::to_string(surplus) + "; " +
                                              std::to_string(truth) + " were reported missing");
}

void PubSubOracle::ended(std::uint32_t subscriber, bool orderly, bool closed_here) {
    Subscriber& it = subscribers_[subscriber];
    const auto found = links_.find(std::exchange(it.connection, 0));
    if (found == links_.end() || !orderly || closed_here) return;
    std::set<std::uint64_t> all;
    for (const auto& [fid, account] : found->second.accounts)
        all.insert(fid);
    expect_everything(subscriber, found->second, all, "the end was orderly");
}

// --- waiting --------------------------------------------------------------------------------

TimePoint PubSubOracle::patience(std::uint32_t publisher, std::uint64_t fid,
                                 TimePoint since) const {
    const Publisher& it = publishers_.at(publisher);
    TimePoint until = since + prompt;
    if (!oracle_.was_free(publisher, since - prompt)) return TimePoint::max();
    for (const auto& [connection, link] : links_) {
        if (link.publisher != publisher || link.closed_at_publisher) continue;
        const auto owner = owners_.find(connection);
        if (owner == owners_.end()) return TimePoint::max(); // it is still connecting
        // A host that has come back does not know the connections that it had before.
        const bool vanished =
            link.since && oracle_.happened(Trouble::vanished, owner->second, *link.since);
        if (!vanished && oracle_.was_free(owner->second, since - prompt)) continue;
        const auto subscriber = subscribers_.find(owner->second);
        if (!link.subscribed.contains(fid)) continue;
        if (it.explicitly) return TimePoint::max();
        const bool drops =
            policy_drops(it.policy) || (!vanished && subscriber != subscribers_.end() &&
                                        subscriber->second.asked_to_drop.contains(fid));
        if (drops) continue;
        if (it.policy == Policy::block) return TimePoint::max();
        until = std::max(until, since + it.disconnect_after + prompt);
    }
    return until;
}

void PubSubOracle::check_waits() {
    for (auto& [number, publisher] : publishers_) {
        for (auto& [fid, since] : publisher.waits) {
            if (oracle_.now() - since <= prompt) continue;
            if (oracle_.now() <= patience(number, fid, since)) continue;
            oracle_.violate(
                RuleId::slow_holds_up_only_its_own,
                "process " + std::to_string(number) + ", fid " + std::to_string(fid) +
                    ": publish said again, and for " +
                    std::to_string((oracle_.now() - since) / std::chrono::milliseconds{1}) +
                    " ms no on_writable has come, although no rule holds it up");
            since = TimePoint::max() - std::chrono::hours{1}; // reported once
        }
    }
}

void PubSubOracle::served(std::uint32_t subscriber, std::uint32_t publisher,
                          const std::set<std::uint64_t>& wanted) {
    const Subscriber& it = subscribers_[subscriber];
    const auto found = links_.find(it.connection);
    if (it.connection == 0 || found == links_.end()) {
        return oracle_.violate(RuleId::served_in_the_end,
                               "process " + std::to_string(subscriber) +
                                   " is not connected, although its publisher, process " +
                                   std::to_string(publisher) + ", lives and nothing is amiss");
    }
    for (const std::uint64_t fid : wanted) {
        const Link& link = found->second;
        const auto account = link.accounts.find(fid);
        if (!link.subscribed.contains(fid)) {
            oracle_.violate(RuleId::served_in_the_end,
                            name_of(subscriber, fid) + ": wanted, and not subscribed");
        } else if (account != link.accounts.end() && !account->second.expected.empty()) {
            oracle_.violate(RuleId::served_in_the_end,
                            name_of(subscriber, fid) + ": " +
                                std::to_string(account->second.expected.size()) +
                                " messages have not come, the first is " +
                                std::to_string(account->second.expected.front().number));
        }
    }
}

bool PubSubOracle::waits(std::uint32_t publisher) const {
    const auto found = publishers_.find(publisher);
    return found != publishers_.end() && !found->second.waits.empty();
}

bool PubSubOracle::has_ticket(std::uint32_t publisher) const {
    const auto found = publishers_.find(publisher);
    return found != publishers_.end() && !found->second.tickets.empty();
}

bool PubSubOracle::has_backlog(std::uint32_t publisher) const {
    return std::ranges::any_of(links_, [&](const auto& entry) {
        return entry.second.publisher == publisher && !entry.second.closed_at_publisher &&
               std::ranges::any_of(entry.second.accounts, [](const auto& account) {
                   return !account.second.expected.empty();
               });
    });
}

} // namespace netio::world
