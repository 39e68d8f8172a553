// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/requester.hpp"

#include "netio/base/copy.hpp"
#include "netio/base/line_limiter.hpp"
#include "netio/base/option_check.hpp"
#include "netio/coalesced_task.hpp"
#include "netio/loop/process.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/messages/ready_notice.hpp"
#include "netio/messages/request_table.hpp"
#include "netio/session/connector.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

using requests::Header;

std::string_view to_string(RequestEnd end) noexcept {
    switch (end) {
    case RequestEnd::open:
        return "open";
    case RequestEnd::replied:
        return "replied";
    case RequestEnd::timed_out:
        return "timed_out";
    case RequestEnd::canceled:
        return "canceled";
    case RequestEnd::disconnected:
        return "disconnected";
    case RequestEnd::no_reply:
        return "no_reply";
    case RequestEnd::failed:
        return "failed";
    case RequestEnd::too_large:
        return "too_large";
    }
    return "?";
}

namespace {

// From this size on, a reply is kept in its receive buffer instead of copied.
constexpr std::size_t keep_bytes = 8192;
constexpr std::size_t failure_text_bytes = 4096;

} // namespace

// What a Requester shares with its replies, which may outlive it. Any thread.
struct RequesterCore {
    RequesterCore(std::size_t outstanding_limit, std::string its_name)
        : name{std::move(its_name)}, table{outstanding_limit} {}

    struct Outgoing {
        Header header;
        std::vector<std::byte> message; // with the header
        std::size_t cost() const noexcept { return message.size() + per_message_bytes; }
    };
    static constexpr std::size_t per_message_bytes = 64;

    void push(Outgoing outgoing) {
        queued_bytes += outgoing.cost();
        outbox.push_back(std::move(outgoing));
    }
    void push_cancel(std::uint64_t number) {
        const Header header{.number = number, .kind = Header::Kind::cancel};
        const auto head = requests::encode(header);
        push({.header = header, .message = {head.begin(), head.end()}});
        wake();
    }
    void pop() {
        queued_bytes -= outbox.front().cost();
        outbox.pop_front();
    }
    // Ends an open request. Returns null if it had ended before.
    std::shared_ptr<ReplyState> end(std::uint64_t number);
    // The request has ended, and its message is still in the outbox.
    void add_ended(std::size_t cost) {
        ended_bytes += cost;
        if (must_drop_ended() && !closed) wake();
    }
    bool must_drop_ended() const noexcept {
        return ended_bytes > 0 && 2 * ended_bytes >= queued_bytes;
    }
    // The loop's thread, while it sends no message. Removes the messages of ended requests.
    void drop_ended() {
        if (!must_drop_ended()) return;
        std::erase_if(outbox, [this](const Outgoing& outgoing) {
            const bool has_ended = outgoing.header.kind == Header::Kind::request &&
                                   table.find(outgoing.header.number) == nullptr;
            if (has_ended) queued_bytes -= outgoing.cost();
            return has_ended;
        });
        ended_bytes = 0;
        if (waiters > 0) space.notify_all();
    }
    void count(RequestEnd end) noexcept {
        switch (end) {
        case RequestEnd::replied:
            ++ended.replied;
            break;
        case RequestEnd::timed_out:
            ++ended.timed_out;
            break;
        case RequestEnd::canceled:
            ++ended.canceled;
            break;
        case RequestEnd::disconnected:
            ++ended.disconnected;
            break;
        default:
            ++ended.failed;
        }
        if (waiters > 0) space.notify_all();
    }
    void cancel(std::uint64_t number);

    const std::string name; // of the responder, for texts
    const ProcessMark process;
    std::thread::id own_thread;
    std::atomic<std::size_t> reply_bytes{0};
    std::mutex mutex; // of what follows
    RequestTable<std::shared_ptr<ReplyState>> table;
    std::deque<Outgoing> outbox;
    std::size_t queued_bytes = 0; // of the outbox
    std::size_t ended_bytes = 0;  // of those, messages of requests that have ended
    std::condition_variable space;
    std::size_t waiters = 0;
    bool closed = false;
    std::function<void()> wake; // the loop; valid until `closed`
    std::string complaint;      // why there is no connection
    Requester::Stats ended;     // numbers of ended requests
};

struct ReplyState {
    explicit ReplyState(std::shared_ptr<RequesterCore> its_core) : core{std::move(its_core)} {}
    ~ReplyState() { core->reply_bytes -= bytes; }
    // What a message counts: the responder decides how many there are, and may send empty ones.
    static std::size_t cost_of_message(std::size_t message_bytes) noexcept {
        return message_bytes + RequesterCore::per_message_bytes;
    }
    ReplyState(const ReplyState&) = delete;
    ReplyState& operator=(const ReplyState&) = delete;

    bool is_ready() const noexcept { return first < messages.size() || end != RequestEnd::open; }
    // The caller of these two has a share in the ownership, so it may notify without the lock, for
    // which the woken thread would wait.
    void add(KeptBytes message, bool is_last) {
        {
            const std::lock_guard lock{mutex};
            bytes += cost_of_message(message.size());
            core->reply_bytes += cost_of_message(message.size());
            messages.push_back(std::move(message));
            if (is_last) end = RequestEnd::replied;
        }
        changed.notify_all();
    }
    void finish(RequestEnd its_end, std::string its_reason) {
        {
            const std::lock_guard lock{mutex};
            end = its_end;
            why = std::move(its_reason);
        }
        changed.notify_all();
    }

    const std::shared_ptr<RequesterCore> core;
    std::uint64_t number = 0; // set before it is shared, as the next one
    std::size_t cost = 0;     // of its message in the outbox
    mutable std::mutex mutex; // of what follows
    std::condition_variable changed;
    std::vector<KeptBytes> messages;
    std::size_t first = 0; // of the messages that were not taken
    std::size_t bytes = 0; // what those messages count
    RequestEnd end = RequestEnd::open;
    std::string why;
};

std::shared_ptr<ReplyState> RequesterCore::end(std::uint64_t number) {
    const bool is_sent = table.is_sent(number);
    std::shared_ptr<ReplyState> state = table.end(number).value_or(nullptr);
    if (state && !is_sent) add_ended(state->cost);
    return state;
}

void RequesterCore::cancel(std::uint64_t number) {
    std::shared_ptr<ReplyState> state;
    {
        const std::lock_guard lock{mutex};
        const bool is_sent = table.is_sent(number);
        state = end(number);
        if (!state) return;
        count(RequestEnd::canceled);
        if (is_sent && !closed) push_cancel(number);
    }
    state->finish(RequestEnd::canceled, "canceled");
}

// --- replies --------------------------------------------------------------------------------

Reply::Reply(std::shared_ptr<ReplyState> state) noexcept : state_{std::move(state)} {}

// Does nothing in a child process: the request is its parent's.
Reply::~Reply() {
    if (state_ && !state_->core->process.is_inherited()) cancel();
}

Reply& Reply::operator=(Reply&& other) noexcept {
    if (this == &other) return *this;
    const Reply former{std::move(*this)};
    state_ = std::move(other.state_);
    return *this;
}

std::optional<KeptBytes> Reply::next() {
    if (!state_) throw Error{Status::closed, "this Reply belongs to no request"};
    ReplyState& state = *state_;
    state.core->process.check("Reply");
    std::unique_lock lock{state.mutex};
    if (!state.is_ready() && std::this_thread::get_id() == state.core->own_thread)
        throw Error{Status::again, state.core->name +
                                       "the reply has not arrived; the context's own thread does "
                                       "not wait"};
    state.changed.wait(lock, [&] { return state.is_ready(); });
    if (state.first < state.messages.size()) {
        KeptBytes message = std::move(state.messages[state.first++]);
        state.bytes -= ReplyState::cost_of_message(message.size());
        state.core->reply_bytes -= ReplyState::cost_of_message(message.size());
        if (state.first == state.messages.size()) {
            state.messages.clear();
            state.first = 0;
        }
        return message;
    }
    if (state.end == RequestEnd::replied) return std::nullopt;
    throw RequestError{state.end, state.core->name + state.why};
}

bool Reply::wait_for(std::chrono::milliseconds timeout) const {
    if (!state_) return true;
    state_->core->process.check("Reply");
    std::unique_lock lock{state_->mutex};
    const auto ready = [&] { return state_->is_ready(); };
    if (timeout <= std::chrono::milliseconds{0} ||
        std::this_thread::get_id() == state_->core->own_thread)
        return ready();
    return state_->changed.wait_for(lock, std::min(timeout, longest_time), ready);
}

void Reply::cancel() {
    if (!state_) return;
    state_->core->process.check("Reply");
    state_->core->cancel(state_->number);
}

RequestEnd Reply::end() const {
    if (!state_) return RequestEnd::canceled;
    state_->core->process.check("Reply");
    const std::lock_guard lock{state_->mutex};
    return state_->end;
}

// --- the loop's thread ----------------------------------------------------------------------

// OnLoop is created, used and destroyed on the context's thread.
struct Requester::Impl {
    struct OnLoop;

    Impl(const AddressList& responder, Options its_options);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    Status put(std::span<const std::byte> message, std::chrono::milliseconds timeout,
               std::shared_ptr<ReplyState>& state);
    bool is_full(std::size_t cost) const {
        return core->table.size() >= options.outstanding_limit ||
               (core->queued_bytes > 0 && core->queued_bytes + cost > options.queue_limit_bytes);
    }
    void close();

    const Options options;
    const Address remote;
    Context context;
    std::shared_ptr<RequesterCore> core;
    std::atomic<bool> connected{false};
    CoalescedTask serve_task;
    std::unique_ptr<OnLoop> on_loop;
};

struct Requester::Impl::OnLoop {
    explicit OnLoop(Impl& its_impl);

    void serve();
    void connect();
    void send_what_waits();
    enum class Sent : std::uint8_t { all, one, blocked };
    Sent send_one();
    void expire();
    void await_deadline(); // with the core's lock
    void take(const IncomingMessage& message);
    void take_reply(const IncomingMessage& message, const Header& header);
    void cancel_at_responder(std::uint64_t number);
    void end(std::uint64_t number, RequestEnd end, std::string why);
    void on_connected();
    void on_closed(const Closed& closed);
    void log(const std::string& line) { lines.pass(core.name + line, loop.now(), write_log); }

    Impl& impl;
    RequesterCore& core;
    EventLoop& loop;
    LineLimiter lines;
    Timer go_on;
    Timer again; // connects even after a final refusal, but not soon
    Timer deadline_timer;
    ReadyNotice ready;
    TimePoint armed_for = TimePoint::max();
    bool tries = false; // there is a connection or an attempt, whose end follows
    std::optional<MessageSocket> socket;
};

Requester::Impl::OnLoop::OnLoop(Impl& its_impl)
    : impl{its_impl}, core{*impl.core}, loop{impl.context.loop()}, go_on{loop, [this] { serve(); }},
      again{loop, [this] { connect(); }}, deadline_timer{loop, [this] { expire(); }},
      ready{loop, impl.options.on_ready, [this] { serve(); }} {
    core.own_thread = std::this_thread::get_id();
}

void Requester::Impl::OnLoop::serve() {
    bool is_wanted = false; // a connection
    {
        const std::lock_guard lock{core.mutex};
        core.drop_ended();
        await_deadline();
        is_wanted = !core.closed && core.table.size() > 0;
    }
    if (!tries && !again.armed() && is_wanted) connect();
    if (socket && socket->is_connected()) send_what_waits();
}

void Requester::Impl::OnLoop::connect() {
    try {
        if (!socket) {
            MessageSocket::Options options = impl.options.socket;
            options.key = impl.options.key;
            options.reconnect = true;
            options.receive_into_posted = false;
            options.protocol = messages::request_protocol;
            socket.emplace(
                impl.context.transport(), options,
                MessageSocket::Functions{
                    .on_connected = [this] { on_connected(); },
                    .on_message = [this](const IncomingMessage& message) { take(message); },
                    .on_writable = [this] { send_what_waits(); },
                    .on_closed = [this](const Closed& closed) { on_closed(closed); }});
        }
        socket->connect(impl.remote);
        tries = true;
    } catch (const std::exception& error) {
        log(error.what());
        socket.reset();
        again.start(impl.options.socket.retry_limit);
    }
}

void Requester::Impl::OnLoop::send_what_waits() {
    for (;;) {
        if (send_one() != Sent::one) return; // on_writable, serve() or on_closed follows
        if (loop.time_is_up()) return go_on.start(Duration::zero());
    }
}

// Only this thread removes messages from the queue, so the first one stays valid.
Requester::Impl::OnLoop::Sent Requester::Impl::OnLoop::send_one() {
    std::unique_lock lock{core.mutex};
    if (core.outbox.empty()) return Sent::all;
    const RequesterCore::Outgoing& first = core.outbox.front();
    const std::uint64_t number = first.header.number;
    const auto has_ended = [&] {
        return first.header.kind == Header::Kind::request && core.table.find(number) == nullptr;
    };
    Status status = Status::ok;
    if (has_ended()) {
        core.ended_bytes -= first.cost();
    } else {
        core.table.set_sent(number, true);
        lock.unlock();
        status = socket->send(first.message);
        lock.lock();
    }
    if (status == Status::again || status == Status::closed) {
        core.table.set_sent(number, false);
        if (has_ended()) core.add_ended(first.cost()); // during send()
        return Sent::blocked;
    }
    const std::size_t bytes = first.message.size() - requests::header_bytes;
    core.pop();
    // When much space is free, so that not every sent message wakes a thread.
    if (core.waiters > 0 && core.queued_bytes <= impl.options.queue_limit_bytes / 2)
        core.space.notify_all();
    lock.unlock();
    if (status != Status::ok)
        end(number, RequestEnd::too_large,
            "the request has " + std::to_string(bytes) + " bytes; the limit is " +
                std::to_string(socket->message_limit() - requests::header_bytes));
    return Sent::one;
}

void Requester::Impl::OnLoop::end(std::uint64_t number, RequestEnd end, std::string why) {
    std::shared_ptr<ReplyState> state;
    {
        const std::lock_guard lock{core.mutex};
        state = core.end(number);
        if (state) core.count(end);
        if (!state) ++core.ended.late;
    }
    if (!state) return;
    state->finish(end, std::move(why));
    ready.call_soon();
}

void Requester::Impl::OnLoop::await_deadline() {
    const auto next = core.table.next_deadline();
    if (!next || *next >= armed_for) return;
    armed_for = *next;
    deadline_timer.start_at(armed_for);
}

void Requester::Impl::OnLoop::expire() {
    armed_for = TimePoint::max();
    std::string why;
    for (;;) {
        std::optional<RequestTable<std::shared_ptr<ReplyState>>::Expired> expired;
        {
            const std::lock_guard lock{core.mutex};
            expired = core.table.take_expired(loop.now());
            if (!expired) return await_deadline();
            core.count(RequestEnd::timed_out);
            if (!expired->was_sent) {
                core.add_ended(expired->value->cost);
            } else if (!core.closed) {
                core.push_cancel(expired->number);
            }
            why = "no reply in time";
            if (!core.complaint.empty()) {
                why += "; " + core.complaint;
            } else if (!impl.connected) {
                why += "; not connected: there is no answer yet to the attempt to connect";
            }
        }
        expired->value->finish(RequestEnd::timed_out, why);
        ready.call_soon();
    }
}

void Requester::Impl::OnLoop::take(const IncomingMessage& message) {
    const std::optional<Header> header = requests::decode(message.bytes());
    const bool is_for_requester =
        header && header->kind != Header::Kind::request && header->kind != Header::Kind::cancel;
    if (!is_for_requester) {
        log("it sent a malformed reply; the connection is closed");
        return socket->abort();
    }
    switch (header->kind) {
    case Header::Kind::reply:
        return take_reply(message, *header);
    case Header::Kind::no_reply:
        return end(header->number, RequestEnd::no_reply,
                   "the responder has given up the request without a reply");
    default:
        return end(header->number, RequestEnd::failed,
                   std::string{message.text().substr(requests::header_bytes, failure_text_bytes)});
    }
}

void Requester::Impl::OnLoop::take_reply(const IncomingMessage& message, const Header& header) {
    const auto body = message.bytes().subspan(requests::header_bytes);
    if (core.reply_bytes + ReplyState::cost_of_message(body.size()) >
        impl.options.reply_limit_bytes) {
        if (header.more) cancel_at_responder(header.number);
        return end(header.number, RequestEnd::too_large,
                   "the reply exceeds reply_limit_bytes (" +
                       std::to_string(impl.options.reply_limit_bytes) +
                       ") together with replies that were not taken");
    }
    std::shared_ptr<ReplyState> state;
    {
        const std::lock_guard lock{core.mutex};
        if (header.more) {
            std::shared_ptr<ReplyState>* const open = core.table.find(header.number);
            if (open != nullptr) state = *open;
        } else {
            state = core.end(header.number);
            if (state) core.count(RequestEnd::replied);
        }
        if (!state) ++core.ended.late;
    }
    if (!state) return;
    // Replies that the user does not destroy must not block the connection.
    const bool may_keep =
        body.size() >= keep_bytes &&
        socket->kept().bytes + body.size() <= impl.options.socket.session.keep_limit_bytes / 2;
    const KeptBytes whole = may_keep ? message.keep() : KeptBytes{}; // perhaps a copy
    state->add(may_keep ? whole.part(whole.bytes().subspan(requests::header_bytes))
                        : KeptBytes::copy_of(body),
               !header.more);
    ready.call_for_message();
}

// The rest of its reply is not wanted.
void Requester::Impl::OnLoop::cancel_at_responder(std::uint64_t number) {
    const std::lock_guard lock{core.mutex};
    if (core.table.find(number) != nullptr && !core.closed) core.push_cancel(number);
}

void Requester::Impl::OnLoop::on_connected() {
    impl.connected = true;
    bool had_complaint = false;
    {
        const std::lock_guard lock{core.mutex};
        had_complaint = !std::exchange(core.complaint, {}).empty();
    }
    if (had_complaint) log("connected (" + socket->provider() + ")");
    send_what_waits();
}

void Requester::Impl::OnLoop::on_closed(const Closed& closed) {
    impl.connected = false;
    std::vector<std::shared_ptr<ReplyState>> lost;
    const std::string why = "disconnected: " + explain(closed);
    bool is_news = false;
    {
        const std::lock_guard lock{core.mutex};
        lost = core.table.take_all(false);
        for (std::size_t i = 0; i < lost.size(); ++i)
            core.count(RequestEnd::disconnected);
        std::erase_if(core.outbox, [&](const RequesterCore::Outgoing& outgoing) {
            const bool is_cancel = outgoing.header.kind == Header::Kind::cancel;
            if (is_cancel) core.queued_bytes -= outgoing.cost();
            return is_cancel;
        });
        is_news = core.complaint.empty() && !core.closed;
        core.complaint = "not connected: " + explain(closed);
    }
    if (is_news) log(explain(closed) + "; trying again");
    for (const std::shared_ptr<ReplyState>& state : lost)
        state->finish(RequestEnd::disconnected, why);
    if (!lost.empty()) ready.call_soon();
    tries = socket->is_retrying();
    if (!tries) again.start(impl.options.socket.retry_limit);
}

// --- any thread -----------------------------------------------------------------------------

namespace {

Address only_responder(const AddressList& responder) {
    require_option(responder.size() == 1, "a requester needs the address of one responder");
    require_remote(responder.front());
    return responder.front();
}

Requester::Options checked(Requester::Options options) {
    require_time("request_timeout", options.request_timeout);
    require_between("outstanding_limit", options.outstanding_limit, 1, std::uint64_t{1} << 24);
    validate(options.socket);
    return options;
}

} // namespace

Requester::Impl::Impl(const AddressList& responder, Options its_options)
    : options{checked(std::move(its_options))}, remote{only_responder(responder)},
      context{options.context ? *options.context : Context{}}, core{std::make_shared<RequesterCore>(
                                                                   options.outstanding_limit,
                                                                   "responder " +
                                                                       to_string(remote) + ": ")},
      serve_task{context, [this] { on_loop->serve(); }} {
    core->wake = [this] {
        // serve() follows on_ready.
        if (context.is_own_thread() && on_loop->ready.is_in_call()) return;
        serve_task.request();
    };
    context.run([this] { on_loop = std::make_unique<OnLoop>(*this); });
}

Requester::Impl::~Impl() {
    close();
    context.run([this] { on_loop.reset(); });
}

// ok, again, closed.
Status Requester::Impl::put(std::span<const std::byte> message, std::chrono::milliseconds timeout,
                            std::shared_ptr<ReplyState>& state) {
    const bool is_own = context.is_own_thread();
    const TimePoint now = is_own ? context.loop().now() : Clock::now();
    const TimePoint until = now + std::clamp(timeout, std::chrono::milliseconds{0}, longest_time);
    RequesterCore::Outgoing outgoing;
    outgoing.message.resize(requests::header_bytes + message.size());
    copy_bytes(outgoing.message.data() + requests::header_bytes, message);
    auto made = std::make_shared<ReplyState>(core);
    std::unique_lock lock{core->mutex};
    const auto may_go_on = [&] { return core->closed || !is_full(outgoing.cost()); };
    if (!may_go_on()) {
        if (is_own) return Status::again;
        ++core->waiters;
        const bool has_space = core->space.wait_until(lock, until, may_go_on);
        --core->waiters;
        if (!has_space) return Status::again;
    }
    if (core->closed) return Status::closed;
    made->cost = outgoing.cost();
    made->number = *core->table.add(until, made);
    outgoing.header = {.number = made->number, .kind = Header::Kind::request};
    std::ranges::copy(requests::encode(outgoing.header), outgoing.message.begin());
    core->push(std::move(outgoing));
    core->wake();
    state = std::move(made);
    return Status::ok;
}

void Requester::Impl::close() {
    std::vector<std::shared_ptr<ReplyState>> open;
    {
        const std::lock_guard lock{core->mutex};
        if (core->closed) return;
        core->closed = true;
        core->wake = nullptr;
        open = core->table.take_all(true);
        for (std::size_t i = 0; i < open.size(); ++i)
            core->count(RequestEnd::canceled);
        core->space.notify_all();
    }
    for (const std::shared_ptr<ReplyState>& state : open)
        state->finish(RequestEnd::canceled, "the requester was closed");
    context.run([this] {
        on_loop->again.cancel();
        on_loop->go_on.cancel();
        on_loop->deadline_timer.cancel();
        on_loop->ready.cancel();
        on_loop->socket.reset();
        on_loop->tries = true; // makes no other one
        connected = false;
        const std::lock_guard lock{core->mutex};
        core->outbox.clear();
        core->queued_bytes = 0;
        core->ended_bytes = 0;
    });
}

Requester::Requester(const AddressList& responder) : Requester{responder, Options{}} {}

Requester::Requester(const AddressList& responder, Options options)
    : impl_{new Impl{responder, std::move(options)}} {}

Requester::~Requester() = default;

Reply Requester::send(std::span<const std::byte> message, std::chrono::milliseconds timeout) {
    Impl& impl = *impl_;
    std::shared_ptr<ReplyState> state;
    const Status put = impl.put(message, timeout, state);
    if (put == Status::ok) return Reply{std::move(state)};
    throw Error{put, impl.core->name + (put == Status::closed
                                            ? "the requester is closed"
                                            : "no space for the request (outstanding_limit, "
                                              "queue_limit_bytes)")};
}

Reply Requester::send(std::span<const std::byte> message) {
    return send(message, impl_->options.request_timeout);
}

KeptBytes Requester::request(std::span<const std::byte> message,
                             std::chrono::milliseconds timeout) {
    Impl& impl = *impl_;
    if (impl.context.is_own_thread())
        throw Error{Status::again,
                    impl.core->name + "request() would wait on the context's own thread"};
    return send(message, timeout).next().value(); // a reply has a message
}

KeptBytes Requester::request(std::span<const std::byte> message) {
    return request(message, impl_->options.request_timeout);
}

void Requester::close() {
    impl_->close();
}

Requester::Stats Requester::stats() const {
    RequesterCore& core = *impl_->core;
    const std::lock_guard lock{core.mutex};
    Stats stats = core.ended;
    stats.outstanding = core.table.size();
    stats.queued_bytes = core.queued_bytes;
    stats.reply_bytes = core.reply_bytes;
    stats.connected = impl_->connected;
    return stats;
}

} // namespace netio::inline v0_3
