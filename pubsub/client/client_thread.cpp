// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client_thread.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "pubsub/discovery/bus.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// Only one thread changes it.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

void answer(const std::vector<Client::OnAnswer>& waiters, Client::Answer answer) {
    for (const Client::OnAnswer& each : waiters)
        each(answer);
}

void tell(const Client::Options& options, const std::string& event) {
    if (options.on_event) options.on_event(event);
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

// With room for the errands: of each destination, of the publisher, and of the client.
EventLoop::Options with_room(const Client::Options& options) {
    constexpr std::size_t of_others = 64;
    const std::size_t room = std::min(options.destination_limit, SIZE_MAX / 2) + of_others;
    EventLoop::Options loop = options.loop;
    loop.post_limit += std::min(room, SIZE_MAX - loop.post_limit);
    return loop;
}

} // namespace

ClientThread::ClientThread(Client::Options options, Client::Events events)
    : options_{std::move(options)}, events_{std::move(events)}, loop_{with_room(options_)},
      close_{[this](auto task) { return post_errand(std::move(task)); },
             [this] { begin_to_close(); }},
      resume_{[this](auto task) { return post_errand(std::move(task)); }, [this] { go_on(); }},
      queue_{{.limit = {.messages = options_.queue_messages, .bytes = options_.queue_bytes},
              .when_full = options_.when_full.policy},
             [this] { resume_.ask(); }},
      destinations_{{.socket = options_.send,
                     .queue_bytes = options_.send_queue_bytes,
                     .limit = options_.destination_limit},
                    {.post = [this](auto task) { return post_errand(std::move(task)); },
                     .tell = [this](const std::string& line) { tell(options_, line); },
                     .ended = [this] { check_closed(); }}} {
    require_at_least("loop.post_limit", static_cast<std::int64_t>(options_.loop.post_limit), 1);
    require_at_least("queue_messages", static_cast<std::int64_t>(options_.queue_messages), 1);
    require_at_least("queue_bytes", static_cast<std::int64_t>(options_.queue_bytes), 1);
    require_time("when_full.disconnect_after", options_.when_full.disconnect_after);
    sockets_.transport = open_fabric(loop_, options_.fabric);
    destinations_.set_transport(*sockets_.transport);
    if (options_.publish) {
        sockets_.publisher = std::make_unique<ClientPublisher>(
            *sockets_.transport, *options_.publish, options_.publish_queue_bytes,
            ClientPublisher::Calls{
                .post = [this](auto task) { return post_errand(std::move(task)); },
                .tell = [this](const std::string& line) { tell(options_, line); },
                .ended =
                    [this] {
                        endings_.publisher = false;
                        check_closed();
                    }});
    }
    if (!options_.bus.empty()) sockets_.bus = open_bus(loop_, options_.bus);
    if (sockets_.bus || !options_.publishers.empty()) {
        Subscriptions::Options all;
        all.publishers = options_.publishers;
        all.bus = sockets_.bus.get();
        all.socket = options_.socket;
        all.socket.reconnect = all.socket.wait_for_publisher = true;
        sockets_.subscriptions = std::make_unique<Subscriptions>(
            *sockets_.transport, std::move(all), static_cast<Subscriptions::Handler&>(*this));
    }
    endings_ = {.subscriptions = sockets_.subscriptions != nullptr,
                .publisher = sockets_.publisher != nullptr};
    thread_ = std::thread{[this] { run(); }};
}

ClientThread::~ClientThread() {
    NETIO_CHECK_MSG(!is_own_thread(), "a client is not destroyed on its own thread");
    loop_.stop();
    if (thread_.joinable()) thread_.join();
    sockets_.subscriptions.reset(); // before the bus that it watches
}

void ClientThread::run() {
    loop_.run();
    if (sockets_.publisher) sockets_.publisher->take_no_more();
    destinations_.take_no_more();
    // What was posted before the end is done, and what it asks for is answered.
    sockets_.closing = true;
    {
        const std::lock_guard lock{tasks_.mutex};
        tasks_.ended = true;
    }
    bool done = false;
    while (!loop_.post([&] { done = true; }))
        loop_.run_once();
    while (!done)
        loop_.run_once();
    answer(answers_.take_all(), Client::Answer::closed);
    queue_.end(); // whoever waits for the end goes on
}

// --- any thread -----------------------------------------------------------------------------

bool ClientThread::post(std::function<void()> task) {
    const std::lock_guard lock{tasks_.mutex};
    if (tasks_.ended || tasks_.waiting.load() >= options_.loop.post_limit) return false;
    ++tasks_.waiting;
    const bool posted = loop_.post([this, task = std::move(task)] {
        --tasks_.waiting;
        task();
    });
    if (!posted) --tasks_.waiting;
    return posted;
}

bool ClientThread::post_errand(std::function<void()> task) {
    const std::lock_guard lock{tasks_.mutex};
    return !tasks_.ended && loop_.post(std::move(task));
}

bool ClientThread::subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                             Client::OnAnswer answer, TimePoint end) {
    for (const FidRange& range : fids)
        require_option(range.first <= range.last, "a range of fids ends before it begins");
    return post([this, fids = std::move(fids), policy, answer = std::move(answer), end] {
        ask(fids, policy, answer, end);
    });
}

bool ClientThread::unsubscribe(const FidRange& fids) {
    return post([this, fids] {
        if (sockets_.closing || !sockets_.subscriptions) return;
        sockets_.subscriptions->unsubscribe(fids);
        answer(answers_.end(fids), Client::Answer::canceled);
    });
}

Status ClientThread::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    if (!sockets_.publisher) return Status::no_subscribers;
    return sockets_.publisher->publish(fid, message, status);
}

void ClientThread::announce(Announcement announcement) {
    require_option(sockets_.publisher != nullptr,
                   "a client that publishes nothing is not announced");
    require_option(!options_.bus.empty(), "a client without a bus is not announced");
    sockets_.publisher->announce(options_.bus, std::move(announcement));
}

std::vector<Endpoint> ClientThread::endpoints() const {
    return sockets_.publisher ? sockets_.publisher->endpoints() : std::vector<Endpoint>{};
}

void ClientThread::close() {
    if (sockets_.publisher) sockets_.publisher->take_no_more();
    destinations_.take_no_more();
    close_.ask();
    if (is_own_thread()) return;
    queue_.wait_for_end();
}

Client::Counters ClientThread::counters() const {
    return {.messages = counted_.messages.load(std::memory_order_relaxed),
            .dropped = queue_.dropped(),
            .missed = counted_.missed.load(std::memory_order_relaxed),
            .restarts = counted_.restarts.load(std::memory_order_relaxed),
            .unknown_tails = counted_.unknown_tails.load(std::memory_order_relaxed),
            .refused = counted_.refused.load(std::memory_order_relaxed),
            .disconnected = counted_.disconnected.load(std::memory_order_relaxed),
            .published = sockets_.publisher ? sockets_.publisher->published() : 0,
            .sent = destinations_.counted().sent.load(std::memory_order_relaxed),
            .unsent = destinations_.counted().unsent.load(std::memory_order_relaxed),
            .unconfirmed_frames =
                destinations_.counted().unconfirmed_frames.load(std::memory_order_relaxed)};
}

// --- its own thread -------------------------------------------------------------------------

void ClientThread::ask(const std::vector<FidRange>& fids, std::optional<SlowPolicy> policy,
                       const Client::OnAnswer& answer, TimePoint end) {
    if (sockets_.closing || sockets_.left || !sockets_.subscriptions)
        return answer(Client::Answer::closed);
    if (fids.empty()) return answer(Client::Answer::accepted);
    const bool waits = end > Clock::now();
    if (answers_.is_full()) drop_expired(); // their timer may come a turn later
    if (waits && answers_.is_full()) return answer(Client::Answer::closed);
    if (waits) {
        const bool is_first = end != TimePoint::max() && end < answers_.next_end();
        answers_.add(fids, answer, end);
        if (is_first) first_expires_.start_at(end);
    }
    sockets_.subscriptions->subscribe(fids, policy);
    if (!waits) answer(Client::Answer::pending);
}

void ClientThread::drop_expired() {
    answer(answers_.expire(Clock::now()), Client::Answer::pending);
    first_expires_.start_at(answers_.next_end());
}

void ClientThread::begin_to_close() {
    if (std::exchange(sockets_.closing, true)) return;
    answer(answers_.take_all(), Client::Answer::closed);
    if (sockets_.subscriptions) {
        sockets_.subscriptions->close();
        sockets_.subscriptions->resume(); // what waits is not wanted any more
    }
    if (sockets_.publisher) sockets_.publisher->close();
    destinations_.close();
    check_closed();
}

void ClientThread::hold_up() {
    sockets_.subscriptions->pause();
    if (options_.when_full.policy == SlowPolicy::disconnect && !patience_.armed())
        patience_.start(options_.when_full.disconnect_after);
}

void ClientThread::go_on() {
    if (!queue_.hand_over()) return;
    patience_.cancel();
    if (sockets_.subscriptions) sockets_.subscriptions->resume();
}

void ClientThread::leave() {
    if (sockets_.closing || std::exchange(sockets_.left, true)) return;
    add(counted_.disconnected, 1);
    tell(options_, "its queue was full for " +
                       std::to_string(options_.when_full.disconnect_after.count()) +
                       " ms: it leaves the publishers");
    answer(answers_.take_all(), Client::Answer::closed);
    sockets_.subscriptions->close();
    sockets_.subscriptions->resume();
}

void ClientThread::check_closed() {
    if (sockets_.closing && !endings_.subscriptions && !endings_.publisher &&
        destinations_.is_over())
        loop_.stop();
}

void ClientThread::on_connected(Subscriptions&, const Subscriptions::Source& source,
                                const std::string& provider) {
    tell(options_, "connected to " + source.name + " (" + provider + ")");
}

void ClientThread::on_subscribed(Subscriptions&, const Subscriptions::Source&,
                                 const FidRange& range) {
    answer(answers_.accept(range), Client::Answer::accepted);
}

void ClientThread::on_refused(Subscriptions&, const Subscriptions::Source& source,
                              const FidRange& range, Subscriptions::Refusal refusal) {
    add(counted_.refused, 1);
    const Denial denial = denial_of(refusal);
    tell(options_, source.name + " refuses " + to_string(range) + ": " + denial.why);
    if (events_.on_refused) events_.on_refused(source, range, refusal);
    answer(answers_.end(range), denial.answer);
}

void ClientThread::on_message(Subscriptions&, Fid fid, std::span<const std::byte> message,
                              std::uint8_t status) {
    add(counted_.messages, 1);
    if (options_.on_message) return options_.on_message(fid, message, status);
    put(fid, message, status);
}

// Apart from the function's way, which would pay for what this one keeps in registers.
[[gnu::noinline]] void ClientThread::put(Fid fid, std::span<const std::byte> message,
                                         std::uint8_t status) {
    if (!turn_end_.armed()) turn_end_.start(Duration::zero());
    if (!queue_.put(fid, message, status)) hold_up();
}

void ClientThread::add_missed(Fid fid, std::uint64_t count) {
    add(counted_.missed, count);
    if (events_.on_missed) events_.on_missed(fid, count);
    if (!options_.on_message) queue_.add_missed(fid, count);
}

void ClientThread::on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                                        const PublisherChange& change) {
    add(counted_.restarts, 1);
    if (!change.tail_known) add(counted_.unknown_tails, 1);
    tell(options_, source.name +
                       " is another publisher than before; what the former one published at its "
                       "end is " +
                       (change.tail_known ? "known" : "not known"));
    if (events_.on_publisher_changed) events_.on_publisher_changed(source, change);
}

void ClientThread::on_closed(Subscriptions&, const Subscriptions::Source& source,
                             const Subscriptions::Ending& ending) {
    tell(options_, source.name + ": " + to_string(ending.closed));
}

void ClientThread::on_contest(Subscriptions&, const Subscriptions::Contest& contest) {
    tell(options_, contest.owner + " and " + contest.other + " both announce " +
                       std::to_string(contest.fids) + " fids from " +
                       to_string(contest.first.first) + " on");
}

void ClientThread::on_trouble(Subscriptions&, const std::string& what) {
    tell(options_, what);
}

void ClientThread::on_ended(Subscriptions&) {
    if (sockets_.closing || sockets_.left) {
        endings_.subscriptions = false;
        return check_closed();
    }
    tell(options_, "no publisher that was given lets us in; they are asked again with the next "
                   "subscription");
    answer(answers_.take_all(), Client::Answer::refused);
}

} // namespace netio::pubsub::inline v0_2
