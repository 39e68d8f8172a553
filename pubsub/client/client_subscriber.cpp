// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client_subscriber.hpp"

#include "netio/base/option_check.hpp"
#include "pubsub/discovery/bus.hpp"

#include <utility>

namespace netio::pubsub::inline v0_3 {

namespace {

// For a counter that only one thread changes.
void increase(std::atomic<std::uint64_t>& counter, std::uint64_t count) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

void answer(const std::vector<Client::OnAnswer>& waiters, Client::Answer answer) {
    for (const Client::OnAnswer& each : waiters)
        each(answer);
}

struct Denial {
    Client::Answer answer;
    const char* why;
};

Denial denial_of(Subscriptions::Refusal refusal) {
    switch (refusal) {
    case Subscriptions::Refusal::no_room:
        return {Client::Answer::no_room, "it accepts no more ranges of one subscriber"};
    case Subscriptions::Refusal::policy:
        return {Client::Answer::policy,
                "the policy would block it longer than its own policy does"};
    case Subscriptions::Refusal::not_permitted:
        break;
    }
    return {Client::Answer::not_permitted, "the key does not permit them, or not with this policy"};
}

} // namespace

ClientSubscriber::ClientSubscriber(EventLoop& loop, const Client::Options& options,
                                   Client::Events events, const ClientCalls& calls)
    : options_{options}, events_{std::move(events)}, calls_{calls}, resume_{calls.post,
                                                                            [this] { resume(); }},
      pending_{options.pending_reply_limit}, first_expires_{loop, [this] { drop_expired(); }},
      queue_{{.limit = {.messages = options.queue_messages, .bytes = options.queue_bytes},
              .when_full = options.when_full.policy},
             [this] { resume_.request(); }},
      turn_end_{loop,
                [this] { // makes the messages of this turn visible to other threads
                    if (!queue_.hand_over()) pause();
                }},
      disconnect_{loop, [this] { leave(); }} {
    require_at_least("queue_messages", static_cast<std::int64_t>(options.queue_messages), 1);
    require_at_least("queue_bytes", static_cast<std::int64_t>(options.queue_bytes), 1);
    require_time("when_full.disconnect_after", options.when_full.disconnect_after);
}

void ClientSubscriber::open(Transport& transport) {
    if (!options_.bus.empty()) bus_ = open_bus(transport.loop(), options_.bus);
    if (!bus_ && options_.publishers.empty()) return;
    Subscriptions::Options all;
    all.publishers = options_.publishers;
    all.bus = bus_.get();
    all.socket = options_.socket;
    all.socket.reconnect = all.socket.wait_for_publisher = true;
    all.socket.silence_hint = options_.silence_hint;
    subscriptions_ = std::make_unique<Subscriptions>(transport, std::move(all),
                                                     static_cast<Subscriptions::Handler&>(*this));
    over_ = false;
}

void ClientSubscriber::add_to(Client::Counters& counters) const {
    counters.messages = counted_.messages.load(std::memory_order_relaxed);
    counters.dropped = queue_.dropped();
    counters.missed = counted_.missed.load(std::memory_order_relaxed);
    counters.restarts = counted_.restarts.load(std::memory_order_relaxed);
    counters.unknown_tails = counted_.unknown_tails.load(std::memory_order_relaxed);
    counters.refused = counted_.refused.load(std::memory_order_relaxed);
    counters.disconnected = counted_.disconnected.load(std::memory_order_relaxed);
}

void ClientSubscriber::unsubscribe(const FidRange& fids) {
    if (closing_ || !subscriptions_) return;
    subscriptions_->unsubscribe(fids);
    answer(pending_.end(fids), Client::Answer::canceled);
}

void ClientSubscriber::close() {
    closing_ = true;
    answer(pending_.take_all(), Client::Answer::closed);
    if (!subscriptions_) return;
    subscriptions_->close();
    subscriptions_->resume(); // discards waiting messages
}

void ClientSubscriber::end() {
    closing_ = true;
    answer(pending_.take_all(), Client::Answer::closed);
    queue_.end(); // wakes threads that wait for the end
}

void ClientSubscriber::subscribe(const std::vector<FidRange>& fids,
                                 std::optional<SlowPolicy> policy, const Client::OnAnswer& answer,
                                 TimePoint end) {
    if (closing_ || left_ || !subscriptions_) return answer(Client::Answer::closed);
    if (fids.empty()) return answer(Client::Answer::accepted);
    const bool waits = end > Clock::now();
    if (pending_.is_full()) drop_expired(); // their timer may fire a turn later
    if (waits && pending_.is_full()) return answer(Client::Answer::closed);
    if (waits) {
        const bool is_first = end != TimePoint::max() && end < pending_.next_end();
        pending_.add(fids, answer, end);
        if (is_first) first_expires_.start_at(end);
    }
    subscriptions_->subscribe(fids, policy);
    if (!waits) answer(Client::Answer::pending);
}

void ClientSubscriber::drop_expired() {
    answer(pending_.expire(Clock::now()), Client::Answer::pending);
    first_expires_.start_at(pending_.next_end());
}

void ClientSubscriber::pause() {
    subscriptions_->pause();
    if (options_.when_full.policy == SlowPolicy::disconnect && !disconnect_.armed())
        disconnect_.start(options_.when_full.disconnect_after);
}

void ClientSubscriber::resume() {
    if (!queue_.hand_over()) return;
    disconnect_.cancel();
    if (subscriptions_) subscriptions_->resume();
}

void ClientSubscriber::leave() {
    if (closing_ || std::exchange(left_, true)) return;
    increase(counted_.disconnected, 1);
    calls_.report("its queue was full for " +
                  std::to_string(options_.when_full.disconnect_after.count()) +
                  " ms: it disconnects from the publishers");
    answer(pending_.take_all(), Client::Answer::closed);
    subscriptions_->close();
}

void ClientSubscriber::on_connected(Subscriptions&, const Subscriptions::Source& source,
                                    const std::string& provider) {
    calls_.report("connected to " + source.name + " (" + provider + ")");
}

void ClientSubscriber::on_subscribed(Subscriptions&, const Subscriptions::Source&,
                                     const FidRange& range) {
    answer(pending_.accept(range), Client::Answer::accepted);
}

void ClientSubscriber::on_refused(Subscriptions&, const Subscriptions::Source& source,
                                  const FidRange& range, Subscriptions::Refusal refusal) {
    increase(counted_.refused, 1);
    const Denial denial = denial_of(refusal);
    calls_.report(source.name + " refuses " + to_string(range) + ": " + denial.why);
    if (events_.on_refused) events_.on_refused(source, range, refusal);
    answer(pending_.end(range), denial.answer);
}

void ClientSubscriber::on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                  std::span<const std::byte> message, std::uint8_t status) {
    increase(counted_.messages, 1);
    if (options_.on_message) return options_.on_message(fid, message, status);
    put(fid, message, status);
}

// Not inlined, because the path of options_.on_message would save the registers that this one
// needs.
[[gnu::noinline]] void ClientSubscriber::put(Fid fid, std::span<const std::byte> message,
                                             std::uint8_t status) {
    if (!turn_end_.armed()) turn_end_.start(Duration::zero());
    const bool is_large = message.size() >= KeepPool::copied_below;
    const bool goes_on = is_large ? queue_.put_kept(fid, subscriptions_->keep(message), status)
                                  : queue_.put(fid, message, status);
    if (!goes_on) pause();
}

void ClientSubscriber::add_missed(Fid fid, std::uint64_t count) {
    increase(counted_.missed, count);
    if (events_.on_missed) events_.on_missed(fid, count);
    if (!options_.on_message) queue_.add_missed(fid, count);
}

void ClientSubscriber::on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                                            const PublisherChange& change) {
    increase(counted_.restarts, 1);
    if (!change.tail_known) increase(counted_.unknown_tails, 1);
    calls_.report(source.name +
                  " is another publisher than before; what the former one published at its "
                  "end is " +
                  (change.tail_known ? "known" : "not known"));
    if (events_.on_publisher_changed) events_.on_publisher_changed(source, change);
}

void ClientSubscriber::on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                                            const FidQuery::Near& near) {
    calls_.report(source.name + ": " + to_string(near));
}

void ClientSubscriber::on_closed(Subscriptions&, const Subscriptions::Source& source,
                                 const Subscriptions::Ending& ending) {
    calls_.report(source.name + ": " + to_string(ending.closed));
}

void ClientSubscriber::on_contest(Subscriptions&, const Subscriptions::Contest& contest) {
    calls_.report(contest.owner + " and " + contest.other + " both announce " +
                  std::to_string(contest.fids) + " fids from " + to_string(contest.first.first) +
                  " on");
}

void ClientSubscriber::on_trouble(Subscriptions&, const std::string& what) {
    calls_.report(what);
}

void ClientSubscriber::on_ended(Subscriptions&) {
    if (closing_ || left_) {
        over_ = true;
        return calls_.ended();
    }
    calls_.report(
        "all configured publishers reject this client; they are asked again with the next "
        "subscription");
    answer(pending_.take_all(), Client::Answer::refused);
}

} // namespace netio::pubsub::inline v0_3
