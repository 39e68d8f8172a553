// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/subscriber.hpp"

#include "netio/base/line_limiter.hpp"
#include "netio/base/option_check.hpp"
#include "pubsub/client/client_queues.hpp"
#include "pubsub/client/message_queue.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace netio::inline v0_3 {
namespace {

using pubsub::Subscriptions;

// For a counter that only one thread changes.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

const char* reason_of(Subscriptions::Refusal refusal) {
    switch (refusal) {
    case Subscriptions::Refusal::no_room:
        return "it accepts no more ranges of one subscriber (ranges_per_subscriber_limit)";
    case Subscriptions::Refusal::policy:
        return "the policy would make it wait longer than its own slow_policy does";
    case Subscriptions::Refusal::not_permitted:
        break;
    }
    return "the key does not permit these fids, or not with this policy";
}

Subscriptions::Options subscriptions_options(AddressList publishers, pubsub::Discovery* bus,
                                             const Subscriber::Options& options) {
    Subscriptions::Options all;
    all.publishers = std::move(publishers);
    all.bus = bus;
    all.socket = options.socket;
    all.socket.key = options.key;
    all.socket.silence_hint = options.silence_hint;
    all.socket.reconnect = options.reconnect != Reconnect::never;
    all.socket.reconnect_after_end = options.reconnect == Reconnect::always || bus != nullptr;
    return all;
}

} // namespace

// Everything that belongs to the loop is in OnLoop, and is created, used and destroyed on the
// context's thread. The other members may be used by any thread.
struct Subscriber::Impl {
    struct OnLoop;
    // The batch that is being read. Iterators refer to it while they refer to a message of it.
    struct Reading {
        std::timed_mutex mutex; // held while a reader waits for messages
        std::shared_ptr<pubsub::MessageBatch> batch = std::make_shared<pubsub::MessageBatch>();
        std::size_t next = 0;
        unsigned iterators = 0; // that have taken from this batch
    };

    Impl(AddressList publishers, const Bus* bus, Options its_options);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void subscribe(std::vector<FidRange> fids, std::optional<pubsub::SlowPolicy> policy);
    void unsubscribe(std::vector<FidRange> fids);
    bool close(std::chrono::milliseconds timeout);

    // Calls use(message, batch) for the next message, which is valid as long as the batch is
    // unchanged; `held` is the batch of the previous message, if its iterator has one. Returns
    // false at the time limit or at the end.
    template <typename Use>
    bool take(std::shared_ptr<pubsub::MessageBatch>& held, std::chrono::milliseconds timeout,
              Use use);
    void throw_refusal();
    void throw_if_failed();

    const Options options;
    Context context;
    pubsub::CoalescedTask resume_task;
    pubsub::CoalescedTask close_task;
    pubsub::MessageQueue queue;
    Reading reading;

    struct Counters {
        std::atomic<std::uint64_t> messages{0};
        std::atomic<std::uint64_t> lost{0};
        std::atomic<std::uint64_t> lost_at_end{0};
        std::atomic<std::uint64_t> restarts{0};
        std::atomic<std::uint64_t> unknown_tails{0};
        std::atomic<std::size_t> publishers{0};
    } counters;

    mutable std::mutex mutex; // of what follows
    mutable std::condition_variable changed;
    pubsub::FidRangeMap<std::monostate> unanswered; // fids that no publisher has accepted
    std::deque<std::string> refusals;               // of subscriptions, not thrown yet
    std::string failure;                            // at the end; empty: closed in order
    std::atomic<bool> over{false};                  // no further message will arrive

    std::unique_ptr<OnLoop> on_loop;
};

struct Subscriber::Impl::OnLoop final : Subscriptions::Handler, MessageKeeper {
    OnLoop(Impl& its_impl, AddressList publishers, const Bus* its_bus)
        : impl{its_impl}, turn_end{impl.context.loop(),
                                   [this] { // makes the messages of this turn available to readers
                                       if (!impl.queue.hand_over()) subscriptions.pause();
                                   }},
          bus{its_bus == nullptr
                  ? nullptr
                  : pubsub::open_bus(impl.context.loop(), its_bus->where, its_bus->options)},
          subscriptions{impl.context.transport(),
                        subscriptions_options(std::move(publishers), bus.get(), impl.options),
                        static_cast<Subscriptions::Handler&>(*this)} {}

    KeptBytes keep(std::span<const std::byte> message) const override {
        return subscriptions.keep(message);
    }
    void resume() {
        if (impl.queue.hand_over()) subscriptions.resume();
    }
    void close();
    void end();
    void log(const std::string& line) { lines.pass(line, impl.context.loop().now(), write_log); }
    void add_lost(Fid fid, std::uint64_t count);
    void add_lost_by_totals();
    void refuse(const std::string& text);

    void on_connected(Subscriptions&, const Subscriptions::Source& source,
                      const std::string& provider) override;
    void on_subscribed(Subscriptions&, const Subscriptions::Source&,
                       const FidRange& range) override;
    void on_refused(Subscriptions&, const Subscriptions::Source& source, const FidRange& range,
                    Subscriptions::Refusal refusal) override;
    void on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte> message, std::uint8_t status) override;
    void on_gap(Subscriptions&, const Subscriptions::Source&, Fid fid,
                std::uint64_t count) override {
        add_lost(fid, count);
    }
    void on_missed(Subscriptions&, const Subscriptions::Source&, Fid fid,
                   std::uint64_t count) override {
        add_lost(fid, count);
    }
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                              const pubsub::PublisherChange& change) override;
    void on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                              const pubsub::FidQuery::Near& near) override {
        log("publisher " + source.name + ": " + to_string(near));
    }
    void on_closed(Subscriptions&, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override;
    void on_contest(Subscriptions&, const Subscriptions::Contest& contest) override;
    void on_trouble(Subscriptions&, const std::string& what) override { log(what); }
    void on_ended(Subscriptions&) override;

    Impl& impl;
    LineLimiter lines;
    bool closing = false;
    std::map<std::string, std::string> complaints; // by publisher: the last warning in the log
    std::map<std::string, std::string> failures;   // by publisher: why it will not come back
    pubsub::FidMap<std::uint64_t> lost;            // reported
    pubsub::FidMap<std::uint64_t> lost_before;     // with on_message: not reported yet
    Timer turn_end;
    std::unique_ptr<pubsub::Discovery> bus;
    Subscriptions subscriptions;
};

// --- the loop's thread ----------------------------------------------------------------------

void Subscriber::Impl::OnLoop::close() {
    if (std::exchange(closing, true)) return;
    subscriptions.close();
    subscriptions.resume(); // discards waiting messages
}

void Subscriber::Impl::OnLoop::end() {
    impl.queue.end();
    const std::lock_guard lock{impl.mutex};
    impl.over = true;
    impl.changed.notify_all();
}

void Subscriber::Impl::OnLoop::add_lost(Fid fid, std::uint64_t count) {
    lost[fid] += count;
    add(impl.counters.lost, count);
    if (impl.options.on_message) {
        lost_before[fid] += count;
    } else {
        impl.queue.add_missed(fid, count);
    }
}

// Adds the messages that publishers reported in their totals at the end, beyond those reported
// before.
void Subscriber::Impl::OnLoop::add_lost_by_totals() {
    pubsub::FidMap<std::uint64_t> all;
    for (const Subscriptions::Told& told : subscriptions.told())
        told.fids.for_each([&](Fid fid, const pubsub::Account::Row& row) { all[fid] += row.lost; });
    all.for_each([this](Fid fid, std::uint64_t count) {
        const std::uint64_t* const told = lost.find(fid);
        if (const std::uint64_t known = told == nullptr ? 0 : *told; count > known)
            add_lost(fid, count - known);
    });
}

void Subscriber::Impl::OnLoop::on_connected(Subscriptions&, const Subscriptions::Source& source,
                                            const std::string& provider) {
    impl.counters.publishers.store(subscriptions.connected_count(), std::memory_order_relaxed);
    failures.erase(source.name);
    if (complaints.erase(source.name) > 0)
        log("connected to publisher " + source.name + " (" + provider + ")");
}

void Subscriber::Impl::OnLoop::on_subscribed(Subscriptions&, const Subscriptions::Source&,
                                             const FidRange& range) {
    const std::lock_guard lock{impl.mutex};
    impl.unanswered.erase(range);
    if (impl.unanswered.empty()) impl.changed.notify_all();
}

void Subscriber::Impl::OnLoop::on_refused(Subscriptions&, const Subscriptions::Source& source,
                                          const FidRange& range, Subscriptions::Refusal refusal) {
    const std::string text = "publisher " + source.name + " refuses the subscription to fids " +
                             to_string(range) + ": " + reason_of(refusal);
    log(text);
    if (bus) return; // another publisher may accept it
    {
        const std::lock_guard lock{impl.mutex};
        impl.refusals.push_back(text);
    }
    impl.queue.put_mark();
}

void Subscriber::Impl::OnLoop::on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                          std::span<const std::byte> message, std::uint8_t status) {
    add(impl.counters.messages, 1);
    if (!impl.options.on_message) {
        if (!turn_end.armed()) turn_end.start(Duration::zero());
        const bool is_large = message.size() >= KeepPool::copied_below;
        const bool goes_on = is_large
                                 ? impl.queue.put_kept(fid, subscriptions.keep(message), status)
                                 : impl.queue.put(fid, message, status);
        if (!goes_on) subscriptions.pause();
        return;
    }
    std::uint64_t before = 0;
    if (const std::uint64_t* const count = lost_before.find(fid)) {
        before = *count;
        lost_before.erase(fid);
    }
    impl.options.on_message(Message{fid, message, status, before, this});
}

void Subscriber::Impl::OnLoop::on_publisher_changed(Subscriptions&,
                                                    const Subscriptions::Source& source,
                                                    const pubsub::PublisherChange& change) {
    add(impl.counters.restarts, 1);
    if (change.tail_known) return;
    add(impl.counters.unknown_tails, 1);
    log("publisher " + source.name +
        " was started again; how many messages the former one published last is not known");
}

void Subscriber::Impl::OnLoop::on_closed(Subscriptions&, const Subscriptions::Source& source,
                                         const Subscriptions::Ending& ending) {
    impl.counters.publishers.store(subscriptions.connected_count(), std::memory_order_relaxed);
    if (closing) return;
    const bool in_order = ending.closed.reason == CloseReason::orderly;
    const std::string text = "publisher " + source.name + ": " + explain(ending.closed);
    if (!ending.retrying && !in_order) failures[source.name] = text;
    if (in_order) return;
    // Logs each reason once, however often the connection is tried again.
    std::string& last = complaints[source.name];
    const std::string reason{to_string(ending.closed.reason)};
    if (last != reason) log(text + (ending.retrying ? "; trying again" : ""));
    last = reason;
}

void Subscriber::Impl::OnLoop::on_contest(Subscriptions&, const Subscriptions::Contest& contest) {
    log("publishers " + contest.owner + " and " + contest.other + " both announce " +
        std::to_string(contest.fids) + " fids from " + to_string(contest.first.first) +
        "; the first one is used");
}

void Subscriber::Impl::OnLoop::on_ended(Subscriptions&) {
    std::string text;
    if (!std::exchange(closing, true)) {
        add_lost_by_totals();
        for (const auto& [publisher, failure] : failures)
            text += (text.empty() ? "" : "; ") + failure;
    }
    {
        const std::lock_guard lock{impl.mutex};
        impl.failure = std::move(text);
    }
    end();
}

// --- any thread -----------------------------------------------------------------------------

Subscriber::Impl::Impl(AddressList publishers, const Bus* bus, Options its_options)
    : options{std::move(its_options)}, context{options.context ? *options.context : Context{}},
      resume_task{[this](auto task) {
                      context.post_always(std::move(task));
                      return true;
                  },
                  [this] { on_loop->resume(); }},
      close_task{[this](auto task) {
                     context.post_always(std::move(task));
                     return true;
                 },
                 [this] { on_loop->close(); }},
      queue{
          {.limit = {.messages = options.queue_limit_messages, .bytes = options.queue_limit_bytes},
           .when_full = options.when_full},
          [this] { resume_task.request(); }} {
    require_option(bus != nullptr || !publishers.empty(),
                   "a subscriber needs the address of a publisher, or a bus");
    require_at_least("queue_limit_messages",
                     static_cast<std::int64_t>(options.queue_limit_messages), 1);
    require_at_least("queue_limit_bytes", static_cast<std::int64_t>(options.queue_limit_bytes), 1);
    context.run([&] { on_loop = std::make_unique<OnLoop>(*this, std::move(publishers), bus); });
}

Subscriber::Impl::~Impl() {
    close(std::chrono::seconds{1});
    context.run([this] { on_loop.reset(); });
}

bool Subscriber::Impl::close(std::chrono::milliseconds timeout) {
    close_task.request();
    if (context.is_own_thread()) return over;
    std::unique_lock lock{mutex};
    return changed.wait_for(lock, timeout, [this] { return over.load(); });
}

void Subscriber::Impl::subscribe(std::vector<FidRange> fids,
                                 std::optional<pubsub::SlowPolicy> policy) {
    for (const FidRange& range : fids) {
        require_option(range.first <= range.last,
                       "a range of fids ends before it begins: " + to_string(range));
    }
    {
        const std::lock_guard lock{mutex};
        for (const FidRange& range : fids)
            unanswered.assign(range, {});
    }
    context.post_always([this, fids = std::move(fids), policy] {
        if (!on_loop->closing) on_loop->subscriptions.subscribe(fids, policy);
    });
}

void Subscriber::Impl::unsubscribe(std::vector<FidRange> fids) {
    {
        const std::lock_guard lock{mutex};
        for (const FidRange& range : fids)
            unanswered.erase(range);
        if (unanswered.empty()) changed.notify_all();
    }
    context.post_always([this, fids = std::move(fids)] {
        for (const FidRange& range : fids)
            if (!on_loop->closing) on_loop->subscriptions.unsubscribe(range);
    });
}

void Subscriber::Impl::throw_refusal() {
    std::string text;
    {
        const std::lock_guard lock{mutex};
        text = std::move(refusals.front());
        refusals.pop_front();
    }
    throw Error{Status::closed, text};
}

void Subscriber::Impl::throw_if_failed() {
    const std::lock_guard lock{mutex};
    if (!failure.empty()) throw Error{Status::closed, failure};
}

template <typename Use>
bool Subscriber::Impl::take(std::shared_ptr<pubsub::MessageBatch>& held,
                            std::chrono::milliseconds timeout, Use use) {
    const bool for_ever = timeout == std::chrono::milliseconds::max();
    timeout = std::clamp(timeout, std::chrono::milliseconds{0}, longest_time);
    const TimePoint end = for_ever ? TimePoint::max() : Clock::now() + timeout;
    std::unique_lock lock{reading.mutex, std::defer_lock};
    if (for_ever) {
        lock.lock();
    } else if (!lock.try_lock_until(end)) {
        return false;
    }
    for (;;) {
        while (reading.next < reading.batch->size()) {
            const pubsub::MessageBatch::Item item = (*reading.batch)[reading.next++];
            if (item.is_gap && item.missed == 0) throw_refusal();
            if (item.is_gap) {
                counters.lost_at_end.fetch_add(item.missed, std::memory_order_relaxed);
                continue;
            }
            use(Message{item.fid, item.bytes, item.status, item.missed, reading.batch.get()},
                reading);
            return true;
        }
        // The queue reuses the batch's memory, so no other iterator may refer to it.
        if (reading.iterators > (held == reading.batch ? 1U : 0U))
            reading.batch = std::make_shared<pubsub::MessageBatch>();
        held.reset();
        reading.iterators = 0;
        reading.next = 0;
        const bool was_over = over; // if so, all remaining messages were in the queue
        const TimePoint now = for_ever ? TimePoint{} : Clock::now();
        const auto left = for_ever    ? longest_time
                          : end > now ? std::chrono::ceil<std::chrono::milliseconds>(end - now)
                                      : std::chrono::milliseconds{0};
        if (queue.poll(*reading.batch, left) > 0) continue;
        if (was_over) throw_if_failed();
        if (was_over || end <= now) return false;
    }
}

Subscriber::Subscriber(AddressList publishers) : Subscriber{std::move(publishers), Options{}} {}

Subscriber::Subscriber(AddressList publishers, Options options)
    : impl_{new Impl{std::move(publishers), nullptr, std::move(options)}} {}

Subscriber::Subscriber(const Bus& bus) : Subscriber{bus, Options{}} {}

Subscriber::Subscriber(const Bus& bus, Options options)
    : impl_{new Impl{{}, &bus, std::move(options)}} {}

Subscriber::~Subscriber() = default;

void Subscriber::subscribe(Fid fid, std::optional<pubsub::SlowPolicy> policy) {
    subscribe(FidRange{.first = fid, .last = fid}, policy);
}

void Subscriber::subscribe(const FidRange& fids, std::optional<pubsub::SlowPolicy> policy) {
    impl_->subscribe({fids}, policy);
}

void Subscriber::subscribe(const FidSet& fids, std::optional<pubsub::SlowPolicy> policy) {
    impl_->subscribe({fids.ranges().begin(), fids.ranges().end()}, policy);
}

void Subscriber::unsubscribe(Fid fid) {
    unsubscribe(FidRange{.first = fid, .last = fid});
}

void Subscriber::unsubscribe(const FidRange& fids) {
    impl_->unsubscribe({fids});
}

void Subscriber::unsubscribe(const FidSet& fids) {
    impl_->unsubscribe({fids.ranges().begin(), fids.ranges().end()});
}

bool Subscriber::wait_until_subscribed(std::chrono::milliseconds timeout) const {
    const Impl& impl = *impl_.operator->();
    const auto time = impl.context.is_own_thread()
                          ? std::chrono::milliseconds{0}
                          : std::clamp(timeout, std::chrono::milliseconds{0}, longest_time);
    std::unique_lock lock{impl.mutex};
    impl.changed.wait_for(lock, time, [&] { return impl.unanswered.empty() || impl.over; });
    return impl.unanswered.empty() && !impl.over;
}

void Subscriber::Iterator::take_next() {
    const auto keep = [this](const Message& message, Impl::Reading& reading) {
        message_ = message;
        if (held_ == reading.batch) return;
        held_ = reading.batch;
        ++reading.iterators;
    };
    if (!subscriber_->impl_->take(held_, std::chrono::milliseconds::max(), keep))
        subscriber_ = nullptr;
}

std::optional<OwnedMessage> Subscriber::receive(std::chrono::milliseconds timeout) {
    std::optional<OwnedMessage> copy;
    std::shared_ptr<pubsub::MessageBatch> nothing;
    impl_->take(nothing, timeout,
                [&](const Message& message, Impl::Reading&) { copy.emplace(message); });
    return copy;
}

int Subscriber::pollable_fd() const noexcept {
    return impl_->queue.pollable_fd();
}

void Subscriber::close() {
    impl_->close(longest_time);
}

bool Subscriber::is_closed() const noexcept {
    return impl_->over;
}

Subscriber::Stats Subscriber::stats() const {
    const Impl::Counters& counters = impl_->counters;
    const std::uint64_t dropped = impl_->queue.dropped();
    return {.messages = counters.messages.load(std::memory_order_relaxed),
            .lost = counters.lost.load(std::memory_order_relaxed) + dropped,
            .lost_at_end = counters.lost_at_end.load(std::memory_order_relaxed),
            .dropped = dropped,
            .restarts = counters.restarts.load(std::memory_order_relaxed),
            .unknown_tails = counters.unknown_tails.load(std::memory_order_relaxed),
            .publishers = counters.publishers.load(std::memory_order_relaxed)};
}

} // namespace netio::inline v0_3
