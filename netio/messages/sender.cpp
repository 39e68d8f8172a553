// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/sender.hpp"

#include "netio/base/line_limiter.hpp"
#include "netio/base/option_check.hpp"
#include "netio/coalesced_task.hpp"
#include "netio/messages/outbox.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/drain_timer.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

namespace netio::inline v0_3 {
namespace {

BufferedSendSocket::Options socket_options(const Sender::Options& options) {
    BufferedSendSocket::Options socket = options.socket;
    socket.socket.key = options.key;
    socket.socket.reconnect = true;
    socket.socket.session.close_timeout = options.close_timeout;
    socket.socket.session.close_limit = options.close_limit;
    return socket;
}

std::string limit_text(std::size_t limit) {
    return "the limit is " + std::to_string(limit) +
           ", the smaller of page_size_bytes * page_count and the receiver's largest_message_bytes";
}

Address only_one(const AddressList& receiver) {
    require_option(receiver.size() == 1, "a sender needs the address of one receiver");
    require_remote(receiver.front());
    return receiver.front();
}

} // namespace

// Everything that belongs to the loop is in OnLoop, and is created, used and destroyed on the
// context's thread. The other members may be used by any thread.
struct Sender::Impl {
    struct OnLoop;

    Impl(const AddressList& its_receiver, Options its_options);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    Status put(std::span<const std::byte> message, TimePoint until);
    std::string refusal(std::size_t size, Status status) const;
    void close();

    const Options options;
    const Address receiver;
    const std::string name;
    Context context;
    Outbox outbox;
    CoalescedTask serve_task;
    CoalescedTask close_task;
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> unsent{0};
    std::atomic<std::uint64_t> unconfirmed_frames{0};
    std::atomic<std::size_t> message_limit{SIZE_MAX}; // of the connection
    std::atomic<bool> connected{false};
    std::mutex mutex; // held while `over` is set
    std::condition_variable ended;
    std::atomic<bool> over{false};
    std::unique_ptr<OnLoop> on_loop;
};

struct Sender::Impl::OnLoop final : BufferedSendSocket::Handler {
    explicit OnLoop(Impl& its_impl)
        : impl{its_impl}, loop{impl.context.loop()}, go_on{loop, [this] { serve(); }},
          again{loop, [this] { connect(); }}, wait{loop,
                                                   {.timeout = impl.options.close_timeout,
                                                    .in_all = impl.options.close_limit},
                                                   [this] { give_up(); }} {}

    void serve();
    void connect();
    void send_what_waits();
    bool send(const Outbox::Message& message);
    void close();
    void give_up();
    void end();
    void log(const std::string& line) { lines.pass(impl.name + line, loop.now(), write_log); }

    void on_connected(BufferedSendSocket&) override;
    void on_writable(BufferedSendSocket&) override { send_what_waits(); }
    void on_closed(BufferedSendSocket&, const Closed& closed) override;

    Impl& impl;
    EventLoop& loop;
    LineLimiter lines;
    std::string complaint; // the last reason in the log why there is no connection
    Timer go_on;
    Timer again;        // connects even after a final refusal, but not soon
    DrainTimeout wait;  // during close()
    bool tries = false; // there is a connection or an attempt, whose end follows
    bool closing = false;
    bool has_given_up = false;
    std::optional<BufferedSendSocket> socket;
};

// --- the loop's thread ----------------------------------------------------------------------

void Sender::Impl::OnLoop::serve() {
    if (!tries && !again.armed() && !closing && !impl.outbox.empty()) connect();
    if (socket && socket->is_connected()) send_what_waits();
}

void Sender::Impl::OnLoop::connect() {
    try {
        if (!socket) socket.emplace(impl.context.transport(), socket_options(impl.options), *this);
        socket->connect(impl.receiver);
        tries = true;
    } catch (const std::exception& error) {
        log(error.what());
        socket.reset();
        again.start(impl.options.socket.socket.retry_limit);
    }
}

void Sender::Impl::OnLoop::send_what_waits() {
    wait.on_progress(); // except from close(), the receiver has made progress
    const Outbox::Drained drained =
        impl.outbox.drain([this](const Outbox::Message& message) { return send(message); },
                          [this] { return loop.time_is_up(); });
    if (drained == Outbox::Drained::time_is_up) {
        go_on.start(Duration::zero());
    } else if (drained == Outbox::Drained::all && closing) {
        wait.end();
        socket->close();
    } // else on_writable follows
}

// Returns false if there is no space yet.
bool Sender::Impl::OnLoop::send(const Outbox::Message& message) {
    const Status status = socket->send(message);
    if (status == Status::again || status == Status::closed) return false;
    if (status == Status::ok) {
        impl.sent.fetch_add(1, std::memory_order_relaxed);
    } else {
        impl.unsent.fetch_add(1, std::memory_order_relaxed);
        log("it takes no message of " + std::to_string(message.size()) + " bytes; " +
            limit_text(socket->message_limit()));
    }
    return true;
}

void Sender::Impl::OnLoop::close() {
    if (closing) return;
    if (!tries && !again.armed() && !impl.outbox.empty()) connect(); // serve() has not run yet
    closing = true;
    again.cancel();
    if (!tries) return end(); // nothing to send, or a refusal that will not change soon
    wait.begin();
    if (socket->is_connected()) {
        send_what_waits();
    } else if (socket->is_retrying() && impl.outbox.empty()) {
        socket->close();
    } // else a connection, the end of the attempt, or give_up() follows
}

// The receiver had the time that the socket allows for its pages, or to listen.
void Sender::Impl::OnLoop::give_up() {
    has_given_up = true;
    log(socket->is_connected() ? "it has " + wait.verdict()
                               : "no connection within close_timeout or close_limit");
    socket->is_retrying() ? socket->close() : socket->abort();
}

void Sender::Impl::OnLoop::end() {
    wait.end();
    go_on.cancel();
    const std::size_t left = impl.outbox.discard();
    impl.unsent.fetch_add(left, std::memory_order_relaxed);
    if (left > 0) log(std::to_string(left) + " messages were not sent");
    const std::lock_guard lock{impl.mutex};
    impl.over = true;
    impl.ended.notify_all();
}

void Sender::Impl::OnLoop::on_connected(BufferedSendSocket&) {
    if (!std::exchange(complaint, {}).empty()) log("connected (" + socket->provider() + ")");
    impl.message_limit.store(socket->message_limit(), std::memory_order_relaxed);
    impl.connected.store(true, std::memory_order_relaxed);
    send_what_waits();
}

void Sender::Impl::OnLoop::on_closed(BufferedSendSocket&, const Closed& closed) {
    impl.unconfirmed_frames.fetch_add(closed.unconfirmed_frames, std::memory_order_relaxed);
    impl.message_limit.store(SIZE_MAX, std::memory_order_relaxed);
    impl.connected.store(false, std::memory_order_relaxed);
    const std::string reason{to_string(closed.reason)};
    const bool is_news = closed.reason != CloseReason::local &&
                         closed.reason != CloseReason::orderly && complaint != reason;
    if (is_news) {
        log(explain(closed) + (socket->is_retrying() ? "; trying again" : ""));
        complaint = reason;
    }
    tries = socket->is_retrying();
    if (!closing) {
        if (!tries) again.start(impl.options.socket.socket.retry_limit);
    } else if (tries) {
        // close() waits for the connection while messages wait.
        if (has_given_up || impl.outbox.empty()) socket->close();
    } else {
        end();
    }
}

// --- any thread -----------------------------------------------------------------------------

Sender::Impl::Impl(const AddressList& its_receiver, Options its_options)
    : options{std::move(its_options)}, receiver{only_one(its_receiver)}, name{"receiver " +
                                                                              to_string(receiver) +
                                                                              ": "},
      context{options.context ? *options.context : Context{}}, outbox{options.queue_limit_bytes},
      serve_task{context, [this] { on_loop->serve(); }}, close_task{context,
                                                                    [this] { on_loop->close(); }} {
    require_time("send_timeout", options.send_timeout, std::chrono::milliseconds{0});
    validate(socket_options(options));
    context.run([this] { on_loop = std::make_unique<OnLoop>(*this); });
}

Sender::Impl::~Impl() {
    close();
    context.run([this] { on_loop.reset(); });
}

Status Sender::Impl::put(std::span<const std::byte> message, TimePoint until) {
    if (message.size() > message_limit.load(std::memory_order_relaxed)) return Status::too_large;
    const Status put = outbox.put(message, until);
    if (put == Status::ok) serve_task.request();
    return put;
}

std::string Sender::Impl::refusal(std::size_t size, Status status) const {
    switch (status) {
    case Status::again:
        return name + "no space for the message " +
               (context.is_own_thread()
                    ? "now; the context's own thread does not wait"
                    : "for " + std::to_string(options.send_timeout.count()) + " ms (send_timeout)");
    case Status::too_large:
        return name + "the message has " + std::to_string(size) + " bytes; " +
               limit_text(message_limit.load(std::memory_order_relaxed));
    default:
        return name + "the sender is closed";
    }
}

void Sender::Impl::close() {
    outbox.close();
    close_task.request();
    if (context.is_own_thread()) return;
    std::unique_lock lock{mutex};
    ended.wait(lock, [this] { return over.load(); });
}

Sender::Sender(const AddressList& receiver) : Sender{receiver, Options{}} {}

Sender::Sender(const AddressList& receiver, Options options)
    : impl_{new Impl{receiver, std::move(options)}} {}

Sender::~Sender() = default;

void Sender::send(std::span<const std::byte> message) {
    Impl& impl = *impl_;
    Status put = impl.put(message, TimePoint::min());
    if (put == Status::again && !impl.context.is_own_thread())
        put = impl.put(message, Clock::now() + impl.options.send_timeout);
    if (put != Status::ok) throw Error{put, impl.refusal(message.size(), put)};
}

Status Sender::try_send(std::span<const std::byte> message) {
    return impl_->put(message, TimePoint::min());
}

void Sender::close() {
    impl_->close();
}

bool Sender::is_closed() const noexcept {
    return impl_->over;
}

Sender::Stats Sender::stats() const {
    return {.sent = impl_->sent.load(std::memory_order_relaxed),
            .unsent = impl_->unsent.load(std::memory_order_relaxed),
            .unconfirmed_frames = impl_->unconfirmed_frames.load(std::memory_order_relaxed),
            .connected = impl_->connected.load(std::memory_order_relaxed)};
}

} // namespace netio::inline v0_3
