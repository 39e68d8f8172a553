// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/responder.hpp"

#include "netio/base/line_limiter.hpp"
#include "netio/base/option_check.hpp"
#include "netio/coalesced_task.hpp"
#include "netio/loop/process.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/messages/ready_notice.hpp"
#include "netio/messages/request_table.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

using requests::Header;

namespace {

constexpr std::size_t longest_failure_bytes = 4096;

// A connected requester.
struct RequesterPeer {
    struct Outgoing {
        std::vector<std::byte> message; // with the header
        std::size_t cost() const noexcept { return message.size() + 64; }
    };
    std::string address;
    // All members below belong to the core's mutex.
    bool is_connected = true;
    bool is_too_slow = false;
    bool is_ready = false; // in the core's list of peers with replies
    std::size_t message_limit = 0;
    std::deque<Outgoing> replies;
    std::size_t reply_bytes = 0;
    std::optional<TimePoint> blocked_since{}; // replies on the context's thread
    std::unordered_map<std::uint64_t, std::weak_ptr<OpenRequest>> open;
};

// What a Responder shares with its requests, which may outlive it. Any thread.
struct ResponderCore {
    explicit ResponderCore(const Responder::Options& options)
        : reply_queue_limit_bytes{options.reply_queue_limit_bytes}, send_timeout{
                                                                        options.send_timeout} {}

    // With the lock: the peer has replies, or is too slow.
    void make_ready(const std::shared_ptr<RequesterPeer>& peer) {
        if (!std::exchange(peer->is_ready, true)) ready.push_back(peer);
    }

    const std::size_t reply_queue_limit_bytes;
    const std::chrono::milliseconds send_timeout;
    const ProcessMark process;
    std::thread::id own_thread;
    const EventLoop* loop = nullptr; // for use on that thread
    std::mutex mutex;                // of what follows
    std::condition_variable arrived;
    std::condition_variable space;
    std::size_t waiters = 0; // for space
    std::deque<std::shared_ptr<OpenRequest>> waiting;
    std::vector<std::shared_ptr<RequesterPeer>> ready;
    std::size_t open_bytes = 0;
    bool closed = false;
    std::function<void()> wake; // the loop; valid until `over`
    bool over = false;          // no connection is left, and none follows
    std::condition_variable ended;
    Responder::Stats stats;
};

} // namespace

struct OpenRequest {
    OpenRequest(std::shared_ptr<ResponderCore> its_core, std::shared_ptr<RequesterPeer> its_peer,
                std::uint64_t its_number, KeptBytes its_body) noexcept
        : core{std::move(its_core)}, peer{std::move(its_peer)}, number{its_number}, body{std::move(
                                                                                        its_body)} {
    }

    bool send(const Header& header, std::span<const std::byte> message);
    // With the core's lock.
    template <typename MayGoOn>
    bool wait_for_space(std::unique_lock<std::mutex>& lock, MayGoOn may_go_on);
    void push_reply(const Header& header, std::span<const std::byte> message);
    // With the core's lock: its requester does not want it any more. While a user has it, it
    // counts.
    void cancel() {
        canceled = true;
        ++core->stats.canceled;
        if (!is_taken) leave();
    }
    // With the core's lock: the request no longer counts.
    void leave() {
        if (std::exchange(has_left, true)) return;
        --core->stats.open;
        core->open_bytes -= body.size();
        peer->open.erase(number);
        if (core->wake) core->wake(); // a paused peer may go on
    }

    const std::shared_ptr<ResponderCore> core;
    const std::shared_ptr<RequesterPeer> peer;
    const std::uint64_t number;
    const KeptBytes body;
    std::atomic<bool> canceled{false};
    bool is_taken = false; // by a Request; with the core's lock
    bool has_left = false; // with the core's lock
};

bool OpenRequest::send(const Header& header, std::span<const std::byte> message) {
    core->process.check("Request");
    std::unique_lock lock{core->mutex};
    // After close() nothing more is sent; the end of the connection cancels the request.
    const auto is_gone = [&] { return !peer->is_connected || canceled || core->closed; };
    const auto may_go_on = [&] {
        return is_gone() || peer->reply_bytes < core->reply_queue_limit_bytes;
    };
    if (has_left || is_gone()) return false;
    const std::size_t limit = peer->message_limit - requests::header_bytes;
    if (header.kind == Header::Kind::failed)
        message = message.first(std::min({message.size(), limit, longest_failure_bytes}));
    if (message.size() > limit)
        throw Error{Status::too_large, "the reply to " + peer->address + " has " +
                                           std::to_string(message.size()) +
                                           " bytes; the limit is " + std::to_string(limit)};
    if (!may_go_on() && !wait_for_space(lock, may_go_on)) return false;
    if (is_gone()) return false;
    peer->blocked_since.reset();
    push_reply(header, message);
    if (header.more) return true;
    if (header.kind == Header::Kind::reply) ++core->stats.replied;
    if (header.kind == Header::Kind::failed) ++core->stats.failed;
    leave();
    return true;
}

// Returns false if the requester is too slow, and is therefore disconnected. On the context's
// thread it throws instead of waiting.
template <typename MayGoOn>
bool OpenRequest::wait_for_space(std::unique_lock<std::mutex>& lock, MayGoOn may_go_on) {
    if (std::this_thread::get_id() == core->own_thread) {
        const TimePoint now = core->loop->now();
        if (!peer->blocked_since) peer->blocked_since = now;
        if (now - *peer->blocked_since < core->send_timeout)
            throw Error{Status::again, "no space for the reply to " + peer->address +
                                           "; the context's own thread does not wait"};
    } else {
        ++core->waiters;
        const bool in_time = core->space.wait_for(lock, core->send_timeout, may_go_on);
        --core->waiters;
        if (in_time) return true;
    }
    peer->is_too_slow = true;
    core->make_ready(peer);
    core->wake();
    return false;
}

void OpenRequest::push_reply(const Header& header, std::span<const std::byte> message) {
    const auto head = requests::encode(header);
    RequesterPeer::Outgoing outgoing;
    outgoing.message.reserve(head.size() + message.size());
    outgoing.message.insert(outgoing.message.end(), head.begin(), head.end());
    outgoing.message.insert(outgoing.message.end(), message.begin(), message.end());
    peer->reply_bytes += outgoing.cost();
    peer->replies.push_back(std::move(outgoing));
    core->make_ready(peer);
    core->wake();
}

// --- requests -------------------------------------------------------------------------------

Request::Request(std::shared_ptr<OpenRequest> open) noexcept : open_{std::move(open)} {}

Request& Request::operator=(Request&& other) noexcept {
    if (this == &other) return *this;
    const Request former{std::move(*this)};
    open_ = std::move(other.open_);
    return *this;
}

// The notification is small, and must not wait. Does nothing in a child process: the request is its
// parent's.
Request::~Request() {
    if (!open_) return;
    ResponderCore& core = *open_->core;
    if (core.process.is_inherited()) return;
    const std::lock_guard lock{core.mutex};
    if (open_->has_left) return;
    if (open_->canceled) {
        open_->leave();
        return;
    }
    ++core.stats.no_reply;
    if (open_->peer->is_connected && core.wake)
        open_->push_reply({.number = open_->number, .kind = Header::Kind::no_reply}, {});
    open_->leave();
}

std::span<const std::byte> Request::bytes() const noexcept {
    return open_->body.bytes();
}

const std::string& Request::peer_address() const noexcept {
    return open_->peer->address;
}

bool Request::is_canceled() const noexcept {
    return open_->canceled;
}

bool Request::reply(std::span<const std::byte> message) {
    return open_->send({.number = open_->number, .kind = Header::Kind::reply}, message);
}

bool Request::reply_part(std::span<const std::byte> message) {
    return open_->send({.number = open_->number, .kind = Header::Kind::reply, .more = true},
                       message);
}

bool Request::fail(std::string_view why) {
    return open_->send({.number = open_->number, .kind = Header::Kind::failed},
                       std::as_bytes(std::span{why}));
}

// --- the loop's thread ----------------------------------------------------------------------

// OnLoop is created, used and destroyed on the context's thread.
struct Responder::Impl {
    struct OnLoop;

    Impl(AddressList its_addresses, Options its_options);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    std::optional<Request> take(std::optional<std::chrono::milliseconds> timeout);
    void close();

    Options options;
    const AddressList addresses;
    Context context;
    std::shared_ptr<ResponderCore> core;
    CoalescedTask serve_task;
    std::unique_ptr<OnLoop> on_loop;
    std::vector<Endpoint> endpoints;
};

struct Responder::Impl::OnLoop {
    // A connection, and what belongs to the loop only.
    struct Link {
        std::shared_ptr<RequesterPeer> peer;
        std::unique_ptr<MessageSocket> socket;
        bool paused = false;
    };

    explicit OnLoop(Impl& its_impl);

    void accept(IncomingPeer& incoming);
    void on_connected(RequesterPeer* peer);
    void take(RequesterPeer* peer, const IncomingMessage& message);
    void cancel(RequesterPeer& peer, std::uint64_t number);
    void on_closed(RequesterPeer* peer);
    void serve();
    void send_replies(Link& link);
    // With the core's lock.
    bool is_full() const noexcept {
        return core.stats.open >= impl.options.request_limit ||
               core.open_bytes >= impl.options.request_limit_bytes;
    }
    bool must_pause(const RequesterPeer& peer) const noexcept {
        const std::size_t half = std::max<std::size_t>(impl.options.request_limit / 2, 1);
        return is_full() || peer.open.size() >= half ||
               peer.reply_bytes >= impl.options.reply_queue_limit_bytes;
    }
    void pace(Link& link);
    void pace_all();
    void close();
    void end_if_closed();

    Impl& impl;
    ResponderCore& core;
    EventLoop& loop;
    LineLimiter lines;
    Timer go_on;
    Timer give_up; // close()
    ReadyNotice ready;
    bool was_full = false;
    std::size_t paused_links = 0;
    bool closing = false;
    std::unordered_map<RequesterPeer*, Link> links;
    std::vector<std::shared_ptr<RequesterPeer>> with_replies; // used by serve()
    std::optional<MessageListener> listener;
};

Responder::Impl::OnLoop::OnLoop(Impl& its_impl)
    : impl{its_impl}, core{*impl.core}, loop{impl.context.loop()}, go_on{loop, [this] { serve(); }},
      give_up{loop,
              [this] {
                  for (const auto& [peer, link] : links)
                      link.socket->abort();
              }},
      ready{loop, impl.options.on_ready, [this] { serve(); }} {
    core.own_thread = std::this_thread::get_id();
    core.loop = &loop;
    listener.emplace(
        impl.context.transport(),
        MessageListener::Options{.listen = impl.addresses,
                                 .allow_remote_anonymous = impl.options.allow_remote_anonymous,
                                 .peer_limit = impl.options.peer_limit,
                                 .connections_per_host = impl.options.connections_per_host,
                                 .keys = impl.options.keys,
                                 .protocol = messages::request_protocol},
        [this](IncomingPeer& incoming) { accept(incoming); });
    impl.endpoints = listener->endpoints();
}

void Responder::Impl::OnLoop::accept(IncomingPeer& incoming) {
    auto peer = std::make_shared<RequesterPeer>();
    peer->address = incoming.peer_address();
    RequesterPeer* const key = peer.get();
    MessageSocket::Options options = impl.options.socket;
    options.receive_into_posted = false;
    auto socket = incoming.accept(
        options, {.on_connected = [this, key] { on_connected(key); },
                  .on_message = [this, key](const IncomingMessage& message) { take(key, message); },
                  .on_writable = [this, key] { send_replies(links.at(key)); },
                  .on_peer_finished = [this, key] { links.at(key).socket->close(); },
                  .on_closed = [this, key](const Closed&) { on_closed(key); }});
    links.emplace(key, Link{.peer = std::move(peer), .socket = std::move(socket)});
}

void Responder::Impl::OnLoop::on_connected(RequesterPeer* peer) {
    Link& link = links.at(peer);
    {
        const std::lock_guard lock{core.mutex};
        ++core.stats.peers;
        peer->message_limit = link.socket->message_limit();
    }
    pace(link);
}

void Responder::Impl::OnLoop::take(RequesterPeer* peer, const IncomingMessage& message) {
    Link& link = links.at(peer);
    const std::optional<Header> header = requests::decode(message.bytes());
    const bool is_request = header && header->kind == Header::Kind::request;
    if (!is_request && !(header && header->kind == Header::Kind::cancel)) {
        lines.pass(peer->address + " sent a malformed request; its connection is closed",
                   loop.now(), write_log);
        return link.socket->abort();
    }
    if (!is_request) return cancel(*peer, header->number);
    const auto body = message.bytes().subspan(requests::header_bytes);
    auto open = std::make_shared<OpenRequest>(impl.core, link.peer, header->number,
                                              KeptBytes::copy_of(body));
    bool is_again = false;
    {
        const std::lock_guard lock{core.mutex};
        is_again = !peer->open.emplace(header->number, open).second;
        if (!is_again) {
            ++core.stats.open;
            ++core.stats.requests;
            core.open_bytes += body.size();
            if (core.closed) {
                ++core.stats.no_reply;
                open->leave();
                return;
            }
            core.waiting.push_back(std::move(open));
        }
    }
    core.arrived.notify_one(); // a woken thread needs the lock
    if (is_again) {
        lines.pass(peer->address + " sent a request twice; its connection is closed", loop.now(),
                   write_log);
        return link.socket->abort();
    }
    ready.call_for_message();
    pace(link);
}

void Responder::Impl::OnLoop::cancel(RequesterPeer& peer, std::uint64_t number) {
    const std::lock_guard lock{core.mutex};
    const auto found = peer.open.find(number);
    if (found == peer.open.end()) return; // its reply is under way
    const std::shared_ptr<OpenRequest> open = found->second.lock();
    if (!open) return; // it is being destroyed
    if (open->canceled) return;
    open->cancel();
    if (!open->is_taken) std::erase(core.waiting, open);
    if (core.waiters > 0) core.space.notify_all();
    ready.call_soon();
}

void Responder::Impl::OnLoop::on_closed(RequesterPeer* peer) {
    std::vector<std::shared_ptr<OpenRequest>> over;
    {
        const std::lock_guard lock{core.mutex};
        if (peer->message_limit > 0) --core.stats.peers; // it was connected
        peer->is_connected = false;
        for (const auto& [number, weak] : peer->open)
            if (auto open = weak.lock()) over.push_back(std::move(open));
        for (const std::shared_ptr<OpenRequest>& open : over)
            if (!open->canceled) open->cancel();
        std::erase_if(core.waiting, [&](const auto& open) { return open->peer.get() == peer; });
        peer->replies.clear();
        peer->reply_bytes = 0;
        core.space.notify_all();
    }
    if (links.at(peer).paused) --paused_links;
    links.erase(peer); // destroys the socket, and perhaps the peer
    pace_all();
    if (!over.empty()) ready.call_soon();
    end_if_closed();
}

void Responder::Impl::OnLoop::pace(Link& link) {
    bool pauses = false;
    bool is_full_now = false;
    {
        const std::lock_guard lock{core.mutex};
        pauses = must_pause(*link.peer);
        is_full_now = is_full();
    }
    if (pauses != std::exchange(link.paused, pauses)) {
        pauses ? link.socket->pause() : link.socket->resume();
        pauses ? ++paused_links : --paused_links;
    }
    if (is_full_now && !was_full) pace_all();
}

void Responder::Impl::OnLoop::pace_all() {
    {
        const std::lock_guard lock{core.mutex};
        was_full = is_full();
    }
    for (auto& [peer, link] : links)
        pace(link);
}

void Responder::Impl::OnLoop::serve() {
    bool no_longer_full = false;
    {
        const std::lock_guard lock{core.mutex};
        with_replies.swap(core.ready);
        for (const std::shared_ptr<RequesterPeer>& peer : with_replies)
            peer->is_ready = false;
        no_longer_full = was_full && !is_full();
    }
    for (const std::shared_ptr<RequesterPeer>& peer : with_replies) {
        const auto found = links.find(peer.get());
        if (found != links.end()) send_replies(found->second);
    }
    with_replies.clear(); // keeps its memory
    if (no_longer_full || paused_links > 0) pace_all();
}

// Only this thread removes replies from the queue, so the first one stays valid.
void Responder::Impl::OnLoop::send_replies(Link& link) {
    RequesterPeer& peer = *link.peer;
    for (bool is_first = true;; is_first = false) {
        std::unique_lock lock{core.mutex};
        if (peer.is_too_slow) {
            ++core.stats.too_slow;
            peer.is_too_slow = false;
            lock.unlock();
            lines.pass(peer.address + " receives no replies for " +
                           std::to_string(core.send_timeout.count()) +
                           " ms (send_timeout); it is disconnected",
                       loop.now(), write_log);
            return link.socket->abort();
        }
        if (peer.replies.empty()) break;
        if (!is_first && loop.time_is_up()) {
            core.make_ready(link.peer);
            lock.unlock();
            return go_on.start(Duration::zero());
        }
        const RequesterPeer::Outgoing& first = peer.replies.front();
        lock.unlock();
        if (link.socket->send(first.message) != Status::ok) return; // on_writable or on_closed
        lock.lock();
        peer.reply_bytes -= first.cost();
        peer.replies.pop_front();
        if (peer.reply_bytes < core.reply_queue_limit_bytes) peer.blocked_since.reset();
        if (core.waiters > 0 && peer.reply_bytes <= core.reply_queue_limit_bytes / 2)
            core.space.notify_all();
    }
    if (link.paused) pace(link);
    if (closing) link.socket->close();
}

void Responder::Impl::OnLoop::close() {
    if (std::exchange(closing, true)) return;
    listener.reset();
    give_up.start(impl.options.socket.session.close_limit);
    for (auto& [peer, link] : links)
        send_replies(link); // closes the connection after the last reply
    end_if_closed();
}

void Responder::Impl::OnLoop::end_if_closed() {
    if (!closing || !links.empty()) return;
    give_up.cancel();
    const std::lock_guard lock{core.mutex};
    core.over = true;
    core.ended.notify_all();
    ready.call_soon();
}

// --- any thread -----------------------------------------------------------------------------

namespace {

Responder::Options checked(Responder::Options options) {
    require_between("request_limit", options.request_limit, 1, std::uint64_t{1} << 20);
    require_between("request_limit_bytes", options.request_limit_bytes, 1, std::uint64_t{1} << 40);
    require_between("reply_queue_limit_bytes", options.reply_queue_limit_bytes, 1,
                    std::uint64_t{1} << 40);
    require_time("send_timeout", options.send_timeout);
    validate(options.socket);
    return options;
}

} // namespace

Responder::Impl::Impl(AddressList its_addresses, Options its_options)
    : options{checked(std::move(its_options))}, addresses{std::move(its_addresses)},
      context{options.context ? *options.context : Context{}}, core{std::make_shared<ResponderCore>(
                                                                   options)},
      serve_task{context, [this] { on_loop->serve(); }} {
    core->wake = [this] {
        // serve() follows on_ready.
        if (context.is_own_thread() && on_loop->ready.is_in_call()) return;
        serve_task.request();
    };
    context.run([this] { on_loop = std::make_unique<OnLoop>(*this); });
}

Responder::Impl::~Impl() {
    close();
    {
        const std::lock_guard lock{core->mutex};
        core->wake = nullptr; // before the last task, so that none follows it
        core->over = true;
        core->space.notify_all();
    }
    context.run([this] { on_loop.reset(); });
}

std::optional<Request> Responder::Impl::take(std::optional<std::chrono::milliseconds> timeout) {
    std::unique_lock lock{core->mutex};
    const auto ready = [&] { return core->closed || !core->waiting.empty(); };
    if (!ready()) {
        if (context.is_own_thread()) return std::nullopt;
        if (!timeout) {
            core->arrived.wait(lock, ready);
        } else if (*timeout > std::chrono::milliseconds{0}) {
            core->arrived.wait_for(lock, std::min(*timeout, longest_time), ready);
        }
    }
    if (core->waiting.empty()) return std::nullopt;
    std::shared_ptr<OpenRequest> open = std::move(core->waiting.front());
    core->waiting.pop_front();
    open->is_taken = true;
    return Request{std::move(open)};
}

void Responder::Impl::close() {
    std::deque<std::shared_ptr<OpenRequest>> waiting;
    {
        const std::lock_guard lock{core->mutex};
        core->closed = true;
        waiting.swap(core->waiting);
        core->arrived.notify_all();
        core->space.notify_all(); // a reply that waits is not sent
    }
    for (std::shared_ptr<OpenRequest>& open : waiting)
        static_cast<void>(Request{std::move(open)}); // no_reply
    context.run([this] { on_loop->close(); });
    if (context.is_own_thread()) return;
    std::unique_lock lock{core->mutex};
    core->ended.wait(lock, [this] { return core->over; });
}

Responder::Responder(AddressList addresses) : Responder{std::move(addresses), Options{}} {}

Responder::Responder(AddressList addresses, Options options)
    : impl_{new Impl{std::move(addresses), std::move(options)}} {}

Responder::~Responder() = default;

std::vector<Endpoint> Responder::endpoints() const {
    return impl_->endpoints;
}

std::optional<Request> Responder::receive(std::chrono::milliseconds timeout) {
    return impl_->take(timeout);
}

void Responder::Iterator::take_next() {
    request_.reset(); // ends it, before the next one is awaited
    if (auto next = responder_->impl_->take(std::nullopt)) request_.emplace(*std::move(next));
}

void Responder::close() {
    impl_->close();
}

bool Responder::is_closed() const noexcept {
    const std::lock_guard lock{impl_->core->mutex};
    return impl_->core->over;
}

Responder::Stats Responder::stats() const {
    const std::lock_guard lock{impl_->core->mutex};
    Stats stats = impl_->core->stats;
    stats.waiting = impl_->core->waiting.size();
    return stats;
}

} // namespace netio::inline v0_3
