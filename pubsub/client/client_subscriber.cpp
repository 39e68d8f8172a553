// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client_subscriber.hpp"

#include "netio/base/option_check.hpp"
#include "pubsub/discovery/bus.hpp"

#include <cstdint>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// Only one thread changes it.
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
        return {Client::Answer::no_room, "it has no room for more ranges of one subscriber"};
    case Subscriptions::Refusal::policy:
        return {Client::Answer::policy, "it would be held up more than its own policy allows"};
    case Subscriptions::Refusal::not_permitted:
        break;
    }
    return {Client::Answer::not_permitted, "the key does not permit them, or not with this policy"};
}

} // namespace

ClientSubscriber::ClientSubscriber(EventLoop& loop, const Client::Options& options,
                                   Client::Events events, Calls calls)
    : options_{options}, events_{std::move(events)}, calls_{std::move(calls)}, resume_{calls_.post,
                                                                                       [this] {
                                                                                           go_on();
                                                                                       }},
      answers_{options.answer_limit}, first_expires_{loop, [this] { drop_expired(); }},
      queue_{{.limit = {.messages = options.queue_messages, .bytes = options.queue_bytes},
              .when_full = options.when_full.policy},
             [this] { resume_.ask(); }},
      turn_end_{loop,
                [this] { // what this turn has brought is there for others
                    if (!queue_.hand_over()) hold_up();
                }},
      patience_{loop, [this] { leave(); }} {
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

// --- the client's thread --------------------------------------------------------------------

void ClientSubscriber::unsubscribe(const FidRange& fids) {
    if (closing_ || !subscriptions_) return;
    subscriptions_->unsubscribe(fids);
    answer(answers_.end(fids), Client::Answer::canceled);
}

void ClientSubscriber::close() {
    closing_ = true;
    answer(answers_.take_all(), Client::Answer::closed);
    if (!subscriptions_) return;
    subscriptions_->close();
    subscriptions_->resume(); // what waits is not wanted any more
}

void ClientSubscriber::end() {
    closing_ = true;
    answer(answers_.take_all(), Client::Answer::closed);
    queue_.end(); // whoever waits for the end goes on
}

void ClientSubscriber::ask(const std::vector<FidRange>& fids, std::optional<SlowPolicy> policy,
                           const Client::OnAnswer& answer, TimePoint end) {
    if (closing_ || left_ || !subscriptions_) return answer(Client::Answer::closed);
    if (fids.empty()) return answer(Client::Answer::accepted);
    const bool waits = end > Clock::now();
    if (answers_.is_full()) drop_expired(); // their timer may come a turn later
    if (waits && answers_.is_full()) return answer(Client::Answer::closed);
    if (waits) {
        const bool is_first = end != TimePoint::max() && end < answers_.next_end();
        answers_.add(fids, answer, end);
        if (is_first) first_expires_.start_at(end);
    }
    subscriptions_->subscribe(fids, policy);
    if (!waits) answer(Client::Answer::pending);
}

void ClientSubscriber::drop_expired() {
    answer(answers_.expire(Clock::now()), Client::Answer::pending);
    first_expires_.start_at(answers_.next_end());
}

void ClientSubscriber::hold_up() {
    subscriptions_->pause();
    if (options_.when_full.policy == SlowPolicy::disconnect && !patience_.armed())
        patience_.start(options_.when_full.disconnect_after);
}

void ClientSubscriber::go_on() {
    if (!queue_.hand_over()) return;
    patience_.cancel();
    if (subscriptions_) subscriptions_->resume();
}

void ClientSubscriber::leave() {
    if (closing_ || std::exchange(left_, true)) return;
    increase(counted_.disconnected, 1);
    calls_.tell("its queue was full for " +
                std::to_string(options_.when_full.disconnect_after.count()) +
                " ms: it leaves the publishers");
    answer(answers_.take_all(), Client::Answer::closed);
    subscriptions_->close();
}

void ClientSubscriber::on_connected(Subscriptions&, const Subscriptions::Source& source,
                                    const std::string& provider) {
    calls_.tell("connected to " + source.name + " (" + provider + ")");
}

void ClientSubscriber::on_subscribed(Subscriptions&, const Subscriptions::Source&,
                                     const FidRange& range) {
    answer(answers_.accept(range), Client::Answer::accepted);
}

void ClientSubscriber::on_refused(Subscriptions&, const Subscriptions::Source& source,
                                  const FidRange& range, Subscriptions::Refusal refusal) {
    increase(counted_.refused, 1);
    const Denial denial = denial_of(refusal);
    calls_.tell(source.name + " refuses " + to_string(range) + ": " + denial.why);
    if (events_.on_refused) events_.on_refused(source, range, refusal);
    answer(answers_.end(range), denial.answer);
}

void ClientSubscriber::on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                  std::span<const std::byte> message, std::uint8_t status) {
    increase(counted_.messages, 1);
    if (options_.on_message) return options_.on_message(fid, message, status);
    put(fid, message, status);
}

// Apart from the function's way, which would pay for what this one keeps in registers.
[[gnu::noinline]] void ClientSubscriber::put(Fid fid, std::span<const std::byte> message,
                                             std::uint8_t status) {
    if (!turn_end_.armed()) turn_end_.start(Duration::zero());
    if (!queue_.put(fid, message, status)) hold_up();
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
    calls_.tell(source.name +
                " is another publisher than before; what the former one published at its "
                "end is " +
                (change.tail_known ? "known" : "not known"));
    if (events_.on_publisher_changed) events_.on_publisher_changed(source, change);
}

void ClientSubscriber::on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                                            const FidQuery::Near& near) {
    calls_.tell(source.name + ": " + to_string(near));
}

void ClientSubscriber::on_closed(Subscriptions&, const Subscriptions::Source& source,
                                 const Subscriptions::Ending& ending) {
    calls_.tell(source.name + ": " + to_string(ending.closed));
}

void ClientSubscriber::on_contest(Subscriptions&, const Subscriptions::Contest& contest) {
    calls_.tell(contest.owner + " and " + contest.other + " both announce " +
                std::to_string(contest.fids) + " fids from " + to_string(contest.first.first) +
                " on");
}

void ClientSubscriber::on_trouble(Subscriptions&, const std::string& what) {
    calls_.tell(what);
}

void ClientSubscriber::on_ended(Subscriptions&) {
    if (closing_ || left_) {
        over_ = true;
        return calls_.ended();
    }
    calls_.tell("no publisher that was given lets us in; they are asked again with the next "
                "subscription");
    answer(answers_.take_all(), Client::Answer::refused);
}

} // namespace netio::pubsub::inline v0_2
