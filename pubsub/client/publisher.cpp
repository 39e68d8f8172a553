// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/publisher.hpp"

#include "netio/access/host.hpp"
#include "netio/base/copy.hpp"
#include "netio/base/line_limiter.hpp"
#include "netio/base/option_check.hpp"
#include "netio/coalesced_task.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/session/drain_timer.hpp"
#include "pubsub/client/publish_queue.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/publisher/stamp_clock.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace netio::inline v0_3 {
namespace {

pubsub::BufferedPublishSocket::Options socket_options(AddressList addresses,
                                                      const Publisher::Options& options) {
    pubsub::BufferedPublishSocket::Options socket = options.socket;
    socket.publisher.listen = std::move(addresses);
    socket.publisher.allow_remote_anonymous = options.allow_remote_anonymous;
    socket.publisher.keys = options.keys;
    socket.publisher.slow_policy = options.slow_policy;
    socket.publisher.time_stamps = options.time_stamps;
    socket.publisher.close_timeout = options.close_timeout;
    socket.publisher.close_limit = options.close_limit;
    socket.publisher.fids.reset();
    if (options.fids)
        socket.publisher.fids.emplace(options.fids->ranges().begin(), options.fids->ranges().end());
    return socket;
}

// The address for subscribers: a wildcard address is replaced by the name of this host.
std::string announced_address(Endpoint endpoint) {
    const auto host = access::parse_host(endpoint.address.host);
    if (host && access::is_any(*host)) endpoint.address.host = pubsub::this_host();
    return pubsub::to_announced_address(endpoint);
}

// Unique on a bus, as long as this process has the port.
std::string default_name(const Address& address) {
    std::string name =
        pubsub::this_host() + "." + std::to_string(::getpid()) + "." + std::to_string(address.port);
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '_');
    return name;
}

} // namespace

// Everything that belongs to the loop is in OnLoop, and is created, used and destroyed on the
// context's thread. The other members may be used by any thread.
struct Publisher::Impl {
    struct OnLoop;

    Impl(AddressList addresses, Options its_options);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    pubsub::Announcement announcement() const;
    // ok, not_owned or too_large.
    Status check(Fid fid, std::size_t size) const;
    pubsub::Publication copy_of(Fid fid, std::span<const std::byte> message, std::uint8_t status,
                                std::int64_t time) const;
    Status put(pubsub::Publication& item, TimePoint until = TimePoint::min());
    bool publish(Fid fid, std::span<const std::byte> message, std::uint8_t status,
                 std::int64_t time);
    Status try_publish(Fid fid, std::span<const std::byte> message, std::uint8_t status,
                       std::int64_t time);
    std::size_t put_batch(std::span<const Outgoing> messages, TimePoint until);
    std::string refusal(Fid fid, std::size_t size, Status status) const;
    void close();

    const Options options;
    Context context;
    pubsub::PublishQueue outbox;
    pubsub::WantedFids wanted;
    CoalescedTask drain_task;
    CoalescedTask close_task;
    std::atomic<std::uint64_t> published{0};
    std::atomic<std::uint64_t> without_subscribers{0};
    std::atomic<std::uint64_t> unpublished{0};
    std::size_t message_limit = 0;
    std::vector<Endpoint> endpoints;
    std::mutex mutex; // held while `over` is set
    std::condition_variable ended;
    std::atomic<bool> over{false};
    std::unique_ptr<OnLoop> on_loop;
};

struct Publisher::Impl::OnLoop final : pubsub::PublishSocketBase::Handler,
                                       pubsub::Announcer::Handler {
    OnLoop(Impl& its_impl, const pubsub::BufferedPublishSocket::Options& socket_options)
        : impl{its_impl}, loop{impl.context.loop()}, go_on{loop, [this] { drain(); }},
          wait{loop,
               {.timeout = impl.options.close_timeout, .in_all = impl.options.close_limit},
               [this] { give_up(); }},
          limit{loop, [this] { end_now(); }}, socket{
                                                  impl.context.transport(), socket_options,
                                                  static_cast<pubsub::PublishSocketBase::Handler&>(
                                                      *this)} {}

    void announce(const Bus& bus, pubsub::Announcement announcement);
    void drain();
    bool publish(const pubsub::Publication& item);
    void give_up();
    void end_now();
    void close();

    // Before the subscriber learns that it is accepted: it may ask a thread here to publish.
    void on_subscribing(pubsub::PublishSocketBase&, const pubsub::SubscriberPeer& peer,
                        const FidRange& range) override {
        has_had_subscribers = true;
        impl.wanted.subscribe(peer.id, range);
    }
    void on_unsubscribed(pubsub::PublishSocketBase&, const pubsub::SubscriberPeer& peer,
                         const FidRange& range) override {
        impl.wanted.unsubscribe(peer.id, range);
    }
    void on_subscriber_closed(pubsub::PublishSocketBase&, const pubsub::SubscriberPeer& peer,
                              const Closed& closed) override {
        if (closed.reason == CloseReason::orderly) return;
        gone.pass("subscriber " + peer.address + " is gone: " + explain(closed), loop.now(),
                  write_log);
    }
    void on_writable(pubsub::PublishSocketBase&) override {
        impl.outbox.wake();
        drain();
    }
    void on_closed(pubsub::PublishSocketBase&, const Closed& closed) override;
    void on_warning(const std::string& what) override { write_log(what); }

    Impl& impl;
    EventLoop& loop;
    Timer go_on;
    DrainTimeout wait;     // during close(), for space
    StallAwareTimer limit; // of the whole close()
    LineLimiter gone;
    bool closing = false;
    bool has_had_subscribers = false;
    pubsub::BufferedPublishSocket socket;
    const std::uint64_t instance = pubsub::draw_instance(); // in all announcements
    std::pair<std::string, std::string> announced;          // the bus and the name
    std::unique_ptr<pubsub::Announcer> announcer;
};

// --- the loop's thread ----------------------------------------------------------------------

void Publisher::Impl::OnLoop::announce(const Bus& bus, pubsub::Announcement announcement) {
    if (closing) return;
    announcement.instance = instance;
    announcement.addresses.clear();
    for (const Endpoint& endpoint : impl.endpoints)
        announcement.addresses.push_back(announced_address(endpoint));
    announcement.mode = "buffered";
    announcement.host = pubsub::this_host();
    announcement.pid = static_cast<int>(::getpid());
    const pubsub::BufferedPublishSocket::Options& its = impl.options.socket;
    announcement.parameters.insert(
        {{"page_size", std::to_string(its.page_size_bytes)},
         {"largest_message", std::to_string(its.publisher.largest_message_bytes)}});
    validate(announcement);
    std::pair place{bus.where, announcement.name};
    if (announcer && announced == place) return announcer->update(std::move(announcement));
    announcer.reset();
    announcer = pubsub::announce(loop, bus.where, announcement,
                                 static_cast<pubsub::Announcer::Handler&>(*this), bus.options);
    announced = std::move(place);
}

void Publisher::Impl::OnLoop::drain() {
    wait.on_progress(); // space became free, or close() has begun
    using Drained = pubsub::PublishQueue::Drained;
    const Drained drained =
        impl.outbox.drain([this](const pubsub::Publication& item) { return publish(item); },
                          [this] { return loop.time_is_up(); });
    if (drained == Drained::time_is_up) {
        go_on.start(Duration::zero());
    } else if (drained == Drained::all && closing) {
        wait.end();
        socket.close();
    } // else on_writable follows
}

// Returns false if there is no space for its fid yet.
bool Publisher::Impl::OnLoop::publish(const pubsub::Publication& item) {
    const std::span<const std::byte> bytes = item.bytes.bytes();
    const Status status = impl.options.time_stamps == StampClock::none
                              ? socket.publish(item.fid, bytes, item.status)
                              : socket.publish_at(wire::load<std::int64_t>(bytes.data()), item.fid,
                                                  bytes.subspan(time_stamp::bytes), item.status);
    if (status == Status::again) return false;
    if (status == Status::no_subscribers)
        impl.without_subscribers.fetch_add(1, std::memory_order_relaxed);
    impl.published.fetch_add(1, std::memory_order_relaxed);
    return true;
}

// The socket continues with what it has taken, and checks each subscriber separately.
void Publisher::Impl::OnLoop::give_up() {
    const std::string why = wait.verdict();
    wait.end();
    go_on.cancel();
    const std::size_t left = impl.outbox.discard();
    impl.unpublished.fetch_add(left, std::memory_order_relaxed);
    write_log("publisher " + to_string(impl.endpoints.front().address) + " is closing: " +
              std::to_string(left) + " messages were not published; subscribers have " + why);
    socket.close();
}

void Publisher::Impl::OnLoop::end_now() {
    if (wait.limit()) give_up();
    socket.abort();
}

void Publisher::Impl::OnLoop::close() {
    if (std::exchange(closing, true)) return;
    announcer.reset();
    limit.start(impl.options.close_limit);
    wait.begin();
    drain();
}

void Publisher::Impl::OnLoop::on_closed(pubsub::PublishSocketBase&, const Closed& closed) {
    const std::string name = "publisher " + to_string(impl.endpoints.front().address);
    const std::uint64_t messages = impl.published.load();
    limit.cancel();
    if (closed.reason == CloseReason::local) {
        write_log(name + " did not end in order: subscribers have not received everything within " +
                  std::to_string(impl.options.close_limit.count()) + " ms (close_limit)");
    } else if (closed.reason == CloseReason::unconfirmed && messages == 0) {
        // There was nothing to confirm.
    } else if (closed.reason != CloseReason::orderly) {
        write_log(name + " did not end in order: " + explain(closed));
    } else if (messages > 0 && !has_had_subscribers) {
        write_log(name + " had no subscriber: " + std::to_string(messages) +
                  " messages were not received");
    }
    const std::lock_guard lock{impl.mutex};
    impl.over = true;
    impl.ended.notify_all();
}

// --- any thread -----------------------------------------------------------------------------

Publisher::Impl::Impl(AddressList addresses, Options its_options)
    : options{std::move(its_options)}, context{options.context ? *options.context : Context{}},
      outbox{options.queue_limit_bytes}, drain_task{context, [this] { on_loop->drain(); }},
      close_task{context, [this] { on_loop->close(); }} {
    require_option(!addresses.empty(), "a publisher needs an address to listen at");
    require_option(options.publish_timeout.count() >= 0 && options.publish_timeout <= longest_time,
                   "publish_timeout must be from 0 to a year");
    require_option(!options.bus || (options.fids && !options.fids->empty()),
                   "a publisher on a bus must say which fids it publishes (option fids)");
    const pubsub::BufferedPublishSocket::Options socket =
        socket_options(std::move(addresses), options);
    context.run([&] {
        on_loop = std::make_unique<OnLoop>(*this, socket);
        endpoints = on_loop->socket.endpoints();
        message_limit = on_loop->socket.message_limit();
        try {
            if (options.bus) on_loop->announce(*options.bus, announcement());
        } catch (...) {
            on_loop.reset();
            throw;
        }
    });
}

// That of the options.
pubsub::Announcement Publisher::Impl::announcement() const {
    pubsub::Announcement own;
    own.name = options.name.empty() ? default_name(endpoints.front().address) : options.name;
    for (const FidRange& range : options.fids->ranges())
        own.fids.push_back({.fids = range, .meaning = {}});
    return own;
}

Publisher::Impl::~Impl() {
    close();
    context.run([this] { on_loop.reset(); });
}

void Publisher::Impl::close() {
    outbox.close();
    wanted.end();
    close_task.request();
    if (context.is_own_thread()) return;
    std::unique_lock lock{mutex};
    ended.wait(lock, [this] { return over.load(); });
}

Status Publisher::Impl::check(Fid fid, std::size_t size) const {
    if (options.fids && !options.fids->contains(fid)) return Status::not_owned;
    return size > message_limit ? Status::too_large : Status::ok;
}

// With the time stamp in front, if there are any.
pubsub::Publication Publisher::Impl::copy_of(Fid fid, std::span<const std::byte> message,
                                             std::uint8_t status, std::int64_t time) const {
    const std::size_t before = time_stamp::bytes_of(options.time_stamps);
    auto memory = std::make_shared_for_overwrite<std::byte[]>(before + message.size());
    if (before > 0) wire::store(memory.get(), time);
    copy_bytes(memory.get() + before, message);
    const std::span<const std::byte> copy{memory.get(), before + message.size()};
    return {.fid = fid, .status = status, .bytes = {std::move(memory), copy}};
}

Status Publisher::Impl::put(pubsub::Publication& item, TimePoint until) {
    const Fid fid = item.fid;
    const Status put = outbox.put(item, until);
    if (put != Status::ok) return put;
    // Also without subscribers: those that were connected before learn how many messages they lost.
    drain_task.request();
    return wanted.has(fid) ? Status::ok : Status::no_subscribers;
}

bool Publisher::Impl::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status,
                              std::int64_t time) {
    Status outcome = check(fid, message.size());
    if (outcome == Status::ok) {
        pubsub::Publication item = copy_of(fid, message, status, time);
        outcome = put(item);
        if (outcome == Status::again && !context.is_own_thread())
            outcome = put(item, Clock::now() + options.publish_timeout);
    }
    if (outcome != Status::ok && outcome != Status::no_subscribers)
        throw Error{outcome, refusal(fid, message.size(), outcome)};
    return outcome == Status::ok;
}

Status Publisher::Impl::try_publish(Fid fid, std::span<const std::byte> message,
                                    std::uint8_t status, std::int64_t time) {
    if (const Status checked = check(fid, message.size()); checked != Status::ok) return checked;
    pubsub::Publication item = copy_of(fid, message, status, time);
    return put(item);
}

// In pieces: their memory is released when all of its messages were sent, and the loop's thread
// works on one piece while this thread copies the next.
std::size_t Publisher::Impl::put_batch(std::span<const Outgoing> messages, TimePoint until) {
    constexpr std::size_t piece_messages = 1024;
    constexpr std::size_t piece_bytes = std::size_t{64} << 10;
    const std::size_t before = time_stamp::bytes_of(options.time_stamps);
    const std::int64_t time = time_stamp::of_call(options.time_stamps); // of the whole batch
    std::vector<pubsub::Publication> piece;
    std::size_t accepted = 0;
    while (accepted < messages.size()) {
        std::size_t end = accepted;
        std::size_t bytes = 0;
        while (end < messages.size() && end - accepted < piece_messages && bytes < piece_bytes)
            bytes += before + messages[end++].bytes.size();
        const std::shared_ptr<std::byte[]> memory =
            std::make_shared_for_overwrite<std::byte[]>(bytes);
        piece.clear();
        std::byte* at = memory.get();
        for (const Outgoing& message : messages.subspan(accepted, end - accepted)) {
            const std::span<const std::byte> copy{at, before + message.bytes.size()};
            if (before > 0) wire::store(at, time);
            copy_bytes(at + before, message.bytes);
            at += copy.size();
            piece.push_back({.fid = message.fid,
                             .status = message.status,
                             .shares_memory = end - accepted > 1,
                             .bytes = {memory, copy}});
        }
        std::span<pubsub::Publication> rest{piece};
        while (!rest.empty()) {
            const auto [count, next] = outbox.put(rest, until);
            if (count > 0) drain_task.request();
            accepted += count;
            rest = rest.subspan(count);
            if (count > 0) continue;
            if (next == Status::closed && accepted == 0)
                throw Error{next, refusal(messages.front().fid, 0, next)};
            return accepted;
        }
    }
    return accepted;
}

std::string Publisher::Impl::refusal(Fid fid, std::size_t size, Status status) const {
    const std::string name =
        "publisher " + to_string(endpoints.front().address) + ", fid " + to_string(fid) + ": ";
    switch (status) {
    case Status::again:
        return name + "no space for the message for " +
               (context.is_own_thread() ? "now; the context's own thread does not wait"
                                        : std::to_string(options.publish_timeout.count()) +
                                              " ms (publish_timeout): subscribers are too slow");
    case Status::too_large:
        return name + "the message has " + std::to_string(size) + " bytes; the limit is " +
               std::to_string(message_limit) + " (socket.publisher.largest_message_bytes)";
    case Status::not_owned:
        return name + "not one of the publisher's fids (option fids)";
    default:
        return name + "the publisher is closed";
    }
}

Publisher::Publisher(AddressList addresses) : Publisher{std::move(addresses), Options{}} {}

Publisher::Publisher(AddressList addresses, Options options)
    : impl_{new Impl{std::move(addresses), std::move(options)}} {}

Publisher::~Publisher() = default;

bool Publisher::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    return publish_at(time_stamp::of_call(impl_->options.time_stamps), fid, message, status);
}

bool Publisher::publish_at(std::int64_t time, Fid fid, std::span<const std::byte> message,
                           std::uint8_t status) {
    return impl_->publish(fid, message, status, time);
}

Status Publisher::try_publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    return try_publish_at(time_stamp::of_call(impl_->options.time_stamps), fid, message, status);
}

Status Publisher::try_publish_at(std::int64_t time, Fid fid, std::span<const std::byte> message,
                                 std::uint8_t status) {
    return impl_->try_publish(fid, message, status, time);
}

std::size_t Publisher::publish_batch(std::span<const Outgoing> messages,
                                     std::chrono::milliseconds timeout) {
    Impl& impl = *impl_;
    for (const Outgoing& message : messages) {
        const Status checked = impl.check(message.fid, message.bytes.size());
        if (checked != Status::ok)
            throw Error{checked, impl.refusal(message.fid, message.bytes.size(), checked)};
    }
    const bool waits = timeout.count() > 0 && !impl.context.is_own_thread();
    return impl.put_batch(messages, waits ? Clock::now() + std::min(timeout, longest_time)
                                          : TimePoint::min());
}

bool Publisher::wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const {
    return impl_->wanted.wait_for_subscribers(count, impl_->context.is_own_thread()
                                                         ? std::chrono::milliseconds{0}
                                                         : std::min(timeout, longest_time));
}

void Publisher::announce(const Bus& bus, pubsub::Announcement announcement) {
    Impl& impl = *impl_;
    impl.context.run([&] { impl.on_loop->announce(bus, std::move(announcement)); });
}

void Publisher::close() {
    impl_->close();
}

bool Publisher::is_closed() const noexcept {
    return impl_->over;
}

std::vector<Endpoint> Publisher::endpoints() const {
    return impl_->endpoints;
}

Address Publisher::address() const {
    return impl_->endpoints.front().address;
}

Publisher::Stats Publisher::stats() const {
    return {.published = impl_->published.load(std::memory_order_relaxed),
            .without_subscribers = impl_->without_subscribers.load(std::memory_order_relaxed),
            .unpublished = impl_->unpublished.load(std::memory_order_relaxed),
            .subscribers = impl_->wanted.subscribers()};
}

} // namespace netio::inline v0_3
