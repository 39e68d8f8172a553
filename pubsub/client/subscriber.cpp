// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/subscriber.hpp"

#include "netio/base/line_limiter.hpp"
#include "netio/base/option_check.hpp"
#include "netio/coalesced_task.hpp"
#include "pubsub/client/message_queue.hpp"
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
    case Subscriptions::Refusal::too_many_ranges:
        return "it accepts no more ranges of one subscriber (ranges_per_subscriber_limit)";
    case Subscriptions::Refusal::policy:
        return "the policy would make it wait longer than its own slow_policy does";
    case Subscriptions::Refusal::not_permitted:
        break;
    }
    return "the key does not permit these fids, or not with this policy";
}

// The largest time means no limit.
TimePoint limit_of(std::chrono::milliseconds timeout) {
    if (timeout == std::chrono::milliseconds::max()) return TimePoint::max();
    return Clock::now() + std::clamp(timeout, std::chrono::milliseconds{0}, longest_time);
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
        std::mutex mutex; // of what follows
        std::condition_variable free;
        bool is_waiting = false; // a reader waits for messages, without the lock
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
    // A publisher has accepted or refused these fids. Returns those to whose last subscribe() this
    // is the answer: not if it is still to be sent, or (`awaited`) another answer follows.
    std::vector<FidRange> take_answer(const FidRange& fids, std::span<const FidRange> awaited);
    // Reads the next batch without the lock, so that other readers can give up in time.
    bool read_batch(std::unique_lock<std::mutex>& lock, TimePoint end);
    // `done` and `failed` are called with `mutex` held.
    template <typename Done, typename Failed>
    bool wait(std::chrono::milliseconds timeout, Done done, Failed failed) const;
    bool close(std::chrono::milliseconds timeout);

    // Calls use(message, batch) for the next message, which is valid as long as the batch is
    // unchanged; `held` is the batch of the previous message, if its iterator has one. Returns
    // false at the time limit or at the end.
    template <typename Use>
    bool take(std::shared_ptr<pubsub::MessageBatch>& held, std::chrono::milliseconds timeout,
              Use use);
    // Takes the next batch of the queue. Returns false at the time limit or at the end.
    bool take_batch(pubsub::MessageBatch& batch, TimePoint end);
    std::size_t receive(pubsub::MessageBatch& batch, std::chrono::milliseconds timeout);
    void throw_refusal();
    void throw_if_failed();

    const Options options;
    Context context;
    CoalescedTask resume_task;
    CoalescedTask close_task;
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
    using Fids = pubsub::FidRangeMap<std::monostate>;
    // Fids that no publisher has accepted or refused, with the number of the call of subscribe().
    pubsub::FidRangeMap<std::uint64_t> unanswered;
    std::uint64_t calls = 0;      // of subscribe()
    std::uint64_t begun_call = 0; // that the context's thread has begun: later ones have no answer
    Fids refused;                 // and that none has accepted since
    std::deque<std::string> refusals; // of subscriptions, not thrown yet
    std::string failure;              // at the end; empty: closed in order
    std::atomic<bool> over{false};    // no further message will arrive

    std::shared_ptr<OnLoop> on_loop; // tasks do nothing after its end
};

struct Subscriber::Impl::OnLoop final : Subscriptions::Handler, MessageKeeper {
    OnLoop(Impl& its_impl, AddressList publishers, const Bus* its_bus)
        : impl{its_impl}, turn_end{impl.context.loop(),
                                   [this] { // makes the messages of this turn available to readers
                                       if (!impl.queue.hand_over()) pause();
                                   }},
          disconnect{impl.context.loop(), [this] { leave(); }},
          subscribe_hint{impl.context.loop(), [this] { hint_at_subscribe(); }},
          bus{its_bus == nullptr
                  ? nullptr
                  : pubsub::open_bus(impl.context.loop(), its_bus->where, its_bus->options)},
          subscriptions{impl.context.transport(),
                        subscriptions_options(std::move(publishers), bus.get(), impl.options),
                        static_cast<Subscriptions::Handler&>(*this)} {
        if (impl.options.silence_hint.count() > 0)
            subscribe_hint.start(std::min(impl.options.silence_hint, longest_time));
    }

    KeptBytes keep(std::span<const std::byte> message) const override {
        return subscriptions.keep(message);
    }
    void pause();
    void resume();
    void leave();
    void close();
    void end();
    void log(const std::string& line) { lines.pass(line, impl.context.loop().now(), write_log); }
    // With Reconnect::never only a connection that was never there is tried again.
    const char* next_step() const noexcept {
        return impl.options.reconnect == Reconnect::never ? "; waiting until it can be connected"
                                                          : "; trying again";
    }
    void hint_at_subscribe();
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
    void on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source&, Fid fid,
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
    void on_warning(Subscriptions&, const std::string& what) override { log(what); }
    void on_ended(Subscriptions&) override;

    Impl& impl;
    LineLimiter lines;
    bool closing = false;
    std::string left;                              // why it left the publishers by itself
    std::map<std::string, std::string> complaints; // by publisher: the last warning in the log
    std::map<std::string, std::string> failures;   // by publisher: why it will not come back
    pubsub::FidMap<std::uint64_t> lost;            // reported
    pubsub::FidMap<std::uint64_t> lost_before;     // with on_message: not reported yet
    Timer turn_end;
    Timer disconnect; // if the queue stays full
    Timer subscribe_hint;
    std::unique_ptr<pubsub::Discovery> bus;
    Subscriptions subscriptions;
};

// --- the loop's thread ----------------------------------------------------------------------

void Subscriber::Impl::OnLoop::pause() {
    subscriptions.pause();
    if (impl.options.when_full == pubsub::SlowPolicy::disconnect && !disconnect.armed())
        disconnect.start(impl.options.disconnect_after);
}

void Subscriber::Impl::OnLoop::resume() {
    if (!impl.queue.hand_over()) return;
    disconnect.cancel();
    subscriptions.resume();
}

void Subscriber::Impl::OnLoop::leave() {
    if (closing) return;
    left = "the subscriber's queue was full for " +
           std::to_string(impl.options.disconnect_after.count()) +
           " ms (disconnect_after): it has disconnected";
    log(left);
    close();
}

void Subscriber::Impl::OnLoop::hint_at_subscribe() {
    {
        const std::lock_guard lock{impl.mutex};
        if (closing || impl.calls > 0) return;
    }
    log("a subscriber has subscribed to no fid for " +
        std::to_string(impl.options.silence_hint.count()) +
        " ms (silence_hint), so it gets no messages: call subscribe(fids)");
}

void Subscriber::Impl::OnLoop::close() {
    if (std::exchange(closing, true)) return;
    disconnect.cancel();
    subscribe_hint.cancel();
    subscriptions.close();
    subscriptions.resume(); // discards waiting messages
}

void Subscriber::Impl::OnLoop::end() {
    std::uint64_t unreported = impl.queue.end();
    lost_before.for_each([&](Fid, std::uint64_t count) { unreported += count; });
    impl.counters.lost_at_end.store(unreported, std::memory_order_relaxed);
    {
        const std::lock_guard lock{impl.mutex};
        impl.over = true;
        impl.changed.notify_all();
    }
    impl.queue.wake(); // for users of the descriptor
}

void Subscriber::Impl::OnLoop::add_lost(Fid fid, std::uint64_t count) {
    lost[fid] += count;
    add(impl.counters.lost, count);
    if (impl.options.on_lost) impl.options.on_lost(fid, count);
    if (impl.options.on_message) {
        lost_before[fid] += count;
    } else {
        impl.queue.add_lost(fid, count);
    }
}

// Adds the messages that publishers reported in their totals at the end, beyond those reported
// before.
void Subscriber::Impl::OnLoop::add_lost_by_totals() {
    pubsub::FidMap<std::uint64_t> all;
    for (const Subscriptions::PublisherStats& stats : subscriptions.publisher_stats())
        stats.fids.for_each(
            [&](Fid fid, const pubsub::Account::Row& row) { all[fid] += row.lost; });
    all.for_each([this](Fid fid, std::uint64_t count) {
        const std::uint64_t* const counted = lost.find(fid);
        if (const std::uint64_t known = counted == nullptr ? 0 : *counted; count > known)
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

void Subscriber::Impl::OnLoop::on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                                             const FidRange& range) {
    {
        const std::vector<FidRange> awaited = subscriptions.awaited(range);
        const std::lock_guard lock{impl.mutex};
        impl.take_answer(range, awaited);
        impl.refused.erase(range);
        impl.changed.notify_all();
    }
    if (impl.options.on_subscribed) impl.options.on_subscribed(source, range);
}

void Subscriber::Impl::OnLoop::on_refused(Subscriptions&, const Subscriptions::Source& source,
                                          const FidRange& range, Subscriptions::Refusal refusal) {
    const std::string text = "publisher " + source.name + " refuses the subscription to fids " +
                             to_string(range) + ": " + reason_of(refusal);
    log(text);
    const std::vector<FidRange> awaited = subscriptions.awaited(range);
    if (impl.options.on_refused) impl.options.on_refused(source, range, refusal);
    if (bus) return; // another publisher may accept it
    const std::lock_guard lock{impl.mutex};
    for (const FidRange& answered : impl.take_answer(range, awaited))
        impl.refused.assign(answered, {});
    impl.changed.notify_all();
    if (impl.options.on_refused) return;
    impl.refusals.push_back(text);
    impl.queue.wake();
}

void Subscriber::Impl::OnLoop::on_message(Subscriptions&, const Subscriptions::Source& source,
                                          Fid fid, std::span<const std::byte> message,
                                          std::uint8_t status) {
    add(impl.counters.messages, 1);
    const StampFormat stamps = source.stamps;
    if (!impl.options.on_message) {
        if (!turn_end.armed()) turn_end.start(Duration::zero());
        const bool is_kept =
            message.size() >= KeepPool::copied_below && subscriptions.may_keep_buffer();
        const bool goes_on =
            is_kept
                ? impl.queue.put_kept(fid,
                                      subscriptions.keep(time_stamp::with_stamp(message, stamps)),
                                      status, stamps)
                : impl.queue.put(fid, message, status, stamps);
        if (!goes_on) pause();
        return;
    }
    std::uint64_t before = 0;
    if (const std::uint64_t* const count = lost_before.find(fid)) {
        before = *count;
        lost_before.erase(fid);
    }
    impl.options.on_message(Message{fid, message, status, before, this, stamps});
}

void Subscriber::Impl::OnLoop::on_publisher_changed(Subscriptions&,
                                                    const Subscriptions::Source& source,
                                                    const pubsub::PublisherChange& change) {
    add(impl.counters.restarts, 1);
    if (!change.tail_known) {
        add(impl.counters.unknown_tails, 1);
        log("publisher " + source.name +
            " was started again; how many messages the former one published last is not known");
    }
    if (impl.options.on_publisher_changed) impl.options.on_publisher_changed(source, change);
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
    if (last != reason) log(text + (ending.retrying ? next_step() : ""));
    last = reason;
}

void Subscriber::Impl::OnLoop::on_contest(Subscriptions&, const Subscriptions::Contest& contest) {
    log("publishers " + contest.owner + " and " + contest.other + " both announce " +
        std::to_string(contest.fids) + " fids from " + to_string(contest.first.first) +
        "; the first one is used");
}

void Subscriber::Impl::OnLoop::on_ended(Subscriptions&) {
    std::string text = left;
    if (!std::exchange(closing, true)) {
        add_lost_by_totals();
        for (const auto& [publisher, why] : failures)
            text += (text.empty() ? "" : "; ") + why;
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
      resume_task{context, [this] { on_loop->resume(); }}, close_task{context,
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
    require_time("disconnect_after", options.disconnect_after);
    context.run([&] { on_loop = std::make_shared<OnLoop>(*this, std::move(publishers), bus); });
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
    const std::lock_guard lock{mutex}; // until it is posted, so that calls are begun in order
    const std::uint64_t call = ++calls;
    for (const FidRange& range : fids) {
        unanswered.assign(range, call);
        refused.erase(range);
    }
    changed.notify_all();
    context.post_always([there = std::weak_ptr{on_loop}, fids = std::move(fids), policy, call] {
        const auto own = there.lock();
        if (!own || own->closing) return;
        {
            const std::lock_guard held{own->impl.mutex};
            own->impl.begun_call = call;
        }
        own->subscriptions.subscribe(fids, policy);
    });
}

void Subscriber::Impl::unsubscribe(std::vector<FidRange> fids) {
    {
        const std::lock_guard lock{mutex};
        for (const FidRange& range : fids) {
            unanswered.erase(range);
            refused.erase(range);
        }
        changed.notify_all();
    }
    context.post_always([there = std::weak_ptr{on_loop}, fids = std::move(fids)] {
        const auto own = there.lock();
        if (!own || own->closing) return;
        for (const FidRange& range : fids)
            own->subscriptions.unsubscribe(range);
    });
}

// The mutex is held.
std::vector<FidRange> Subscriber::Impl::take_answer(const FidRange& fids,
                                                    std::span<const FidRange> awaited) {
    Fids open;
    for (const FidRange& range : awaited)
        open.assign(range, {});
    std::vector<FidRange> answered;
    for (const FidRange& part : open.absent(fids))
        for (const auto& piece : unanswered.pieces(part))
            if (piece.value <= begun_call) answered.push_back(piece.range);
    for (const FidRange& range : answered)
        unanswered.erase(range);
    return answered;
}

template <typename Done, typename Failed>
bool Subscriber::Impl::wait(std::chrono::milliseconds timeout, Done done, Failed failed) const {
    const auto time = context.is_own_thread()
                          ? std::chrono::milliseconds{0}
                          : std::clamp(timeout, std::chrono::milliseconds{0}, longest_time);
    std::unique_lock lock{mutex};
    changed.wait_for(lock, time, [&] { return done() || failed() || over; });
    return done() && !failed() && !over;
}

void Subscriber::Impl::throw_refusal() {
    const std::lock_guard lock{mutex};
    if (refusals.empty()) return;
    const std::string text = std::move(refusals.front());
    refusals.pop_front();
    throw Error{Status::closed, text};
}

void Subscriber::Impl::throw_if_failed() {
    const std::lock_guard lock{mutex};
    if (!failure.empty()) throw Error{Status::closed, failure};
}

template <typename Use>
bool Subscriber::Impl::take(std::shared_ptr<pubsub::MessageBatch>& held,
                            std::chrono::milliseconds timeout, Use use) {
    const TimePoint end = limit_of(timeout);
    std::unique_lock lock{reading.mutex};
    const auto is_free = [this] { return !reading.is_waiting; };
    if (!is_free() && !reading.free.wait_until(lock, end, is_free)) return false;
    for (;;) {
        while (reading.next < reading.batch->size()) {
            const pubsub::MessageBatch::Item item = (*reading.batch)[reading.next++];
            if (item.is_gap) continue;
            use(Message{item.fid, item.bytes, item.status, item.lost_before, reading.batch.get(),
                        item.stamps},
                reading);
            return true;
        }
        // The queue reuses the batch's memory, so no other iterator may refer to it.
        if (reading.iterators > (held == reading.batch ? 1U : 0U))
            reading.batch = std::make_shared<pubsub::MessageBatch>();
        held.reset();
        reading.iterators = 0;
        if (!read_batch(lock, end)) return false;
        reading.next = 0;
    }
}

bool Subscriber::Impl::read_batch(std::unique_lock<std::mutex>& lock, TimePoint end) {
    struct Wait {
        Wait(Reading& reading, std::unique_lock<std::mutex>& lock)
            : reading_{reading}, lock_{lock} {
            reading_.is_waiting = true;
            lock_.unlock();
        }
        ~Wait() {
            lock_.lock();
            reading_.is_waiting = false;
            reading_.free.notify_all(); // each may find a message in the batch
        }
        Wait(const Wait&) = delete;
        Wait& operator=(const Wait&) = delete;
        Reading& reading_;
        std::unique_lock<std::mutex>& lock_;
    } const wait{reading, lock};
    return take_batch(*reading.batch, end); // it may throw
}

bool Subscriber::Impl::take_batch(pubsub::MessageBatch& batch, TimePoint end) {
    for (;;) {
        throw_refusal();
        const bool was_over = over; // if so, all remaining messages were in the queue
        const TimePoint now = end == TimePoint::max() ? TimePoint{} : Clock::now();
        const auto left = end == TimePoint::max() ? longest_time
                          : end > now ? std::chrono::ceil<std::chrono::milliseconds>(end - now)
                                      : std::chrono::milliseconds{0};
        if (queue.poll(batch, left) > 0) return true;
        if (was_over) throw_if_failed();
        if (was_over || end <= now) return false;
    }
}

std::size_t Subscriber::Impl::receive(pubsub::MessageBatch& batch,
                                      std::chrono::milliseconds timeout) {
    {
        const std::lock_guard lock{reading.mutex};
        if (!reading.is_waiting && reading.next < reading.batch->size()) { // an iteration left it
            batch = *reading.batch;
            batch.drop_front(std::exchange(reading.next, batch.size()));
            reading.batch = std::make_shared<pubsub::MessageBatch>(); // releases what it keeps
            reading.iterators = 0;
            reading.next = 0;
            return batch.size();
        }
    }
    return take_batch(batch, limit_of(timeout)) ? batch.size() : 0;
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
    const Impl& impl = *impl_;
    return impl.wait(
        timeout, [&] { return impl.unanswered.empty(); }, [&] { return !impl.refused.empty(); });
}

bool Subscriber::wait_until_subscribed(const FidSet& fids,
                                       std::chrono::milliseconds timeout) const {
    const Impl& impl = *impl_;
    const auto has_some = [&](const auto& of) {
        return std::ranges::any_of(
            fids.ranges(), [&](const FidRange& range) { return !of.pieces(range).empty(); });
    };
    return impl.wait(
        timeout, [&] { return !has_some(impl.unanswered); },
        [&] { return has_some(impl.refused); });
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

std::optional<KeptMessage> Subscriber::receive_kept(std::chrono::milliseconds timeout) {
    std::optional<KeptMessage> kept;
    std::shared_ptr<pubsub::MessageBatch> nothing;
    impl_->take(nothing, timeout,
                [&](const Message& message, Impl::Reading&) { kept.emplace(message.keep()); });
    return kept;
}

std::size_t Subscriber::receive(pubsub::MessageBatch& batch, std::chrono::milliseconds timeout) {
    return impl_->receive(batch, timeout);
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
