// SPDX-License-Identifier: Apache-2.0

// MessageSocket and MessageListener of the Python module. They live on the thread of their context,
// and put what arrives into queues.

#include "netio/completion_queue.hpp"
#include "netio/messages/message_socket.hpp"
#include "netio/session/connector.hpp"
#include "python/docstrings.hpp"
#include "python/support.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

namespace netio::python {
namespace {

template <typename Result, typename Function>
Result run_on(const Context& context, Function function) {
    std::optional<Result> result;
    without_gil([&] { context.run([&] { result.emplace(function()); }); });
    return std::move(*result);
}

// --- MessageSocket ----------------------------------------------------------------------------

struct Incoming {
    KeptBytes bytes;
    std::optional<std::uint64_t> immediate;
};

// A message socket on its loop, and what it shares with the threads of Python.
class Link {
  public:
    explicit Link(const CompletionQueue::Options& limits) : queue{limits} {}

    // --- any thread
    CompletionQueue queue; // of messages; closed after the last one
    std::atomic<bool> is_connected{false};
    std::atomic<bool> is_over{false}; // and no other attempt follows
    // How the last connection or attempt has ended; empty: none has.
    std::string end() const {
        const std::lock_guard lock{mutex_};
        return end_;
    }
    bool has_failed() const {
        const std::lock_guard lock{mutex_};
        return is_over && !ended_well_ && !has_peer_finished_;
    }

    // --- the loop's thread
    void connect(Transport& transport, MessageSocket::Options options, const Address& remote) {
        begin(transport.loop(), options);
        socket = std::make_unique<MessageSocket>(transport, std::move(options), functions());
        socket->connect(remote);
    }
    void accept(EventLoop& loop, IncomingPeer& incoming, MessageSocket::Options options) {
        begin(loop, options);
        peer = incoming.peer_address();
        socket = incoming.accept(std::move(options), functions());
    }
    Status send(MessageParts parts) {
        if (!is_connected && !is_over && !is_ending) return Status::again; // connecting
        return socket->send_parts(parts);
    }
    void finish() {
        is_ending |= is_connected;
        socket->finish();
    }
    void close() {
        is_ending = true;
        socket->close();
    }
    void abort() {
        is_ending = true;
        socket->abort();
    }
    void destroy() {
        socket.reset();
        writer_.reset();
    }

    std::unique_ptr<MessageSocket> socket;
    std::string peer; // its address, if it was accepted

  private:
    void begin(EventLoop& loop, const MessageSocket::Options& options) {
        reconnects_ = options.reconnect;
        writer_ = std::make_unique<QueueWriter>(queue, loop, 0, [this] {
            if (std::exchange(is_paused_, false)) socket->resume();
        });
    }
    MessageSocket::Functions functions() {
        return {.on_connected = [this] { is_connected = true; },
                .on_message = [this](const IncomingMessage& message) { take(message); },
                .on_peer_finished =
                    [this] {
                        if (reconnects_) return;
                        has_peer_finished_ = true;
                        queue.close();
                    },
                .on_closed = [this](const Closed& closed) { on_closed(closed); }};
    }
    void take(const IncomingMessage& message) {
        const bool has_space = writer_->push({.kind = QueueEvent::Kind::message,
                                              .immediate = message.immediate(),
                                              .bytes = message.keep()});
        if (has_space || is_paused_) return;
        is_paused_ = true;
        socket->pause();
    }
    void on_closed(const Closed& closed) {
        is_connected = false;
        {
            const std::lock_guard lock{mutex_};
            end_ = explain(closed);
            ended_well_ =
                closed.reason == CloseReason::orderly || closed.reason == CloseReason::local;
        }
        if (socket->is_retrying()) return;
        is_over = true;
        queue.close();
    }

    bool is_ending = false; // this side sends no more
    bool is_paused_ = false;
    bool reconnects_ = false;
    std::atomic<bool> has_peer_finished_{false};
    std::unique_ptr<QueueWriter> writer_;
    mutable std::mutex mutex_; // of what follows
    std::string end_;
    bool ended_well_ = false;
};

class PythonMessageSocket final : public Connected {
  public:
    PythonMessageSocket(const py::object& its_address, const py::kwargs& values)
        : Connected{"MessageSocket"} {
        const std::string address = to_address_text(its_address);
        name_ = "message socket to " + address;
        Options options{values, "MessageSocket"};
        MessageSocket::Options its;
        CompletionQueue::Options limits;
        read_message_socket(options, its);
        its.key = read_key(options);
        context_ = read_context(options);
        options.read("reconnect", its.reconnect)
            .read("protocol", its.protocol)
            .read("queue_limit_events", limits.queue_limit_events)
            .read("queue_limit_bytes", limits.queue_limit_bytes)
            .finish();
        const Address remote = parse_address(address);
        require_remote(remote);
        validate(its);
        link_ = std::make_unique<Link>(limits);
        on_loop([&] { link_->connect(context_->transport(), std::move(its), remote); });
    }
    // Accepted by a listener.
    PythonMessageSocket(const Context& context, std::unique_ptr<Link> link)
        : Connected{"MessageSocket"}, name_{"message socket of " + link->peer}, context_{context},
          link_{std::move(link)} {}
    ~PythonMessageSocket() override {
        if (is_inherited()) {
            static_cast<void>(link_.release()); // its loop does not exist here
        } else if (link_) {
            const py::error_scope keep_error;
            on_loop([&] { link_->destroy(); });
        }
    }

    void send(const py::object& message, const py::object& timeout) {
        its();
        const Bytes bytes{message};
        const Timeout limit = to_timeout(timeout);
        Status status = Status::again;
        poll_until(limit, [&] {
            status = attempt(bytes.span());
            return status != Status::again;
        });
        if (status != Status::ok) fail(status, bytes.span().size(), limit);
    }
    std::string try_send(const py::object& message) {
        its();
        const Bytes bytes{message};
        return name_of(without_gil([&] { return attempt(bytes.span()); }));
    }
    std::optional<Incoming> receive(const py::object& timeout) {
        return first(take(to_timeout(timeout), 1));
    }
    std::vector<Incoming> receive_batch(const py::object& limit, const py::object& timeout) {
        return take(to_timeout(timeout), to_count(limit, "max", 1));
    }
    Incoming next() {
        std::optional<Incoming> message = first(take({}, 1));
        if (!message) throw py::stop_iteration{};
        return std::move(*message);
    }
    // For asyncio: the next message, None if none is there now, or the end.
    std::optional<Incoming> next_now() {
        const bool was_closed = its().queue.is_closed();
        std::optional<Incoming> message = first(take(milliseconds{0}, 1));
        if (message || !was_closed) return message;
        PyErr_SetNone(PyExc_StopAsyncIteration);
        throw py::error_already_set{};
    }
    bool wait_until_connected(const py::object& timeout) {
        its();
        poll_until(to_timeout(timeout), [&] { return link_->is_connected || link_->is_over; });
        return link_->is_connected;
    }
    void finish() {
        its();
        on_loop([&] { link_->finish(); });
    }
    void abort() {
        its();
        on_loop([&] { link_->abort(); });
    }
    void close_in_order() {
        its();
        close();
    }
    int fileno() const { return its().queue.pollable_fd(); }
    bool connected() const { return its().is_connected; }
    bool closed() const { return its().is_over; }
    py::object end() const {
        const std::string text = its().end();
        return text.empty() ? py::object{py::none{}} : to_text(text);
    }
    std::string peer_address() const {
        its();
        return run_on<std::string>(*context_, [&] { return link_->socket->peer_address(); });
    }
    std::size_t message_limit() const {
        its();
        return run_on<std::size_t>(*context_, [&] {
            return link_->is_connected ? link_->socket->message_limit() : std::size_t{0};
        });
    }
    py::dict counters() const {
        its();
        const auto all =
            run_on<MessageSocket::Counters>(*context_, [&] { return link_->socket->counters(); });
        return py::dict(py::arg("messages_sent") = all.messages_sent,
                        py::arg("bytes_sent") = all.bytes_sent, py::arg("again") = all.again,
                        py::arg("messages_received") = all.messages_received,
                        py::arg("bytes_received") = all.bytes_received,
                        py::arg("connections") = all.connections);
    }
    std::string describe() const { return "<MessageSocket: " + name_ + ">"; }

    void begin_close() override {
        if (!link_->is_over) context_->post_always([link = link_.get()] { link->close(); });
    }
    bool is_closed() const noexcept override { return link_->is_over; }

  private:
    Link& its() const {
        check_process();
        return *link_;
    }
    template <typename Function>
    void on_loop(Function function) const {
        without_gil([&] { context_->run(function); });
    }
    // Without the GIL.
    Status attempt(std::span<const std::byte> message) const {
        Status status = Status::again;
        context_->run([&] { status = link_->send({&message, 1}); });
        return status;
    }
    std::vector<Incoming> take(Timeout timeout, std::size_t most);
    static std::optional<Incoming> first(std::vector<Incoming> messages) {
        if (messages.empty()) return std::nullopt;
        return std::move(messages.front());
    }
    [[noreturn]] void fail(Status status, std::size_t bytes, Timeout limit) const;

    std::string name_;
    std::optional<Context> context_;
    std::unique_ptr<Link> link_; // its loop's part is destroyed on the loop
};

// Takes up to `most` messages. Returns none after the time-out and at the end. Raises ClosedError
// if the connection has failed, after its last message.
std::vector<Incoming> PythonMessageSocket::take(Timeout timeout, std::size_t most) {
    its();
    std::array<QueueEvent, 64> events;
    const auto space = std::span{events}.first(std::min(most, events.size()));
    std::size_t count = 0;
    bool is_at_end = false;
    wait_in_steps(timeout, [&](milliseconds time) {
        const bool was_closed = link_->queue.is_closed(); // if so, all messages were in the queue
        count = link_->queue.dequeue(space, time);
        is_at_end = count == 0 && was_closed;
        return count > 0 || is_at_end;
    });
    if (is_at_end && link_->has_failed())
        raise("ClosedError", name_ + ": " + link_->end(), "closed");
    std::vector<Incoming> messages;
    messages.reserve(count);
    for (QueueEvent& event : space.first(count))
        messages.push_back({.bytes = std::move(event.bytes), .immediate = event.immediate});
    return messages;
}

void PythonMessageSocket::fail(Status status, std::size_t bytes, Timeout limit) const {
    if (status == Status::again) {
        raise("TimeoutError",
              name_ + ": " + (link_->is_connected ? "no space for the message" : "not connected") +
                  " for " + std::to_string(limit->count()) + " ms (timeout)",
              "again");
    }
    if (status == Status::too_large) {
        raise("Error",
              name_ + ": the message has " + std::to_string(bytes) + " bytes; the limit is " +
                  std::to_string(message_limit()) + " (largest_message_bytes of the peer)",
              "too_large");
    }
    const std::string why = link_->end();
    raise("ClosedError", name_ + ": " + (why.empty() ? "finish() or close() was called" : why),
          "closed");
}

// --- MessageListener --------------------------------------------------------------------------

class PythonMessageListener final : public Connected {
  public:
    PythonMessageListener(const py::object& addresses, const py::kwargs& values)
        : Connected{"MessageListener"} {
        Options options{values, "MessageListener"};
        MessageListener::Options its;
        MessageSocket::Options accepted;
        CompletionQueue::Options limits;
        std::size_t accept_limit = 128;
        its.listen = to_addresses(addresses);
        context_ = read_context(options);
        its.keys = read_keys(options, *context_);
        options.read("allow_remote_anonymous", its.allow_remote_anonymous)
            .read("peer_limit", its.peer_limit)
            .read("connections_per_host", its.connections_per_host)
            .read("protocol", its.protocol)
            .read("accept_limit", accept_limit)
            .read("queue_limit_events", limits.queue_limit_events)
            .read("queue_limit_bytes", limits.queue_limit_bytes)
            .group("socket", [&](Options& group) { read_message_socket(group, accepted); })
            .finish();
        if (accept_limit == 0) throw py::value_error{"accept_limit must be at least 1"};
        validate(accepted);
        static_cast<void>(CompletionQueue{limits}); // throws for an invalid option
        incoming_ = std::make_unique<Waiting>(accept_limit);
        without_gil(
            [&] { context_->run([&] { listen(std::move(its), std::move(accepted), limits); }); });
    }
    ~PythonMessageListener() override {
        if (is_inherited()) {
            static_cast<void>(incoming_.release());
        } else if (incoming_) {
            const py::error_scope keep_error;
            without_gil([&] { context_->run([&] { incoming_->destroy(); }); });
        }
    }

    std::unique_ptr<PythonMessageSocket> accept(const py::object& timeout) {
        auto socket = take(to_timeout(timeout));
        if (socket) return socket;
        if (is_stopped_) raise("ClosedError", "accept: the listener is closed", "closed");
        raise("TimeoutError", "accept: no peer has connected within the timeout", "again");
    }
    std::unique_ptr<PythonMessageSocket> next() {
        auto socket = take({});
        if (!socket) throw py::stop_iteration{};
        return socket;
    }
    // For asyncio, as that of a socket.
    std::unique_ptr<PythonMessageSocket> next_now() {
        const bool was_stopped = is_stopped_;
        auto socket = take(milliseconds{0});
        if (socket || !was_stopped) return socket;
        PyErr_SetNone(PyExc_StopAsyncIteration);
        throw py::error_already_set{};
    }
    std::string address() const {
        check_process();
        return to_string(endpoints_.front().address);
    }
    int fileno() const {
        check_process();
        return incoming_->arrivals.pollable_fd();
    }
    void stop() {
        check_process();
        without_gil([&] { context_->run([&] { incoming_->listener.reset(); }); });
        is_stopped_ = true;
        incoming_->arrivals.close();
    }
    bool closed() const noexcept { return is_stopped_; }

    void begin_close() override {
        context_->post_always([waiting = incoming_.get()] { waiting->listener.reset(); });
        is_stopped_ = true;
        incoming_->arrivals.close();
    }
    bool is_closed() const noexcept override { return is_stopped_; }

  private:
    // The listener on its loop, and the sockets that wait for accept().
    struct Waiting {
        explicit Waiting(std::size_t accept_limit)
            : arrivals{{.queue_limit_events = accept_limit}}, limit{accept_limit} {}
        void destroy() {
            listener.reset();
            writer.reset();
            for (const std::unique_ptr<Link>& link : links)
                link->destroy();
        }

        CompletionQueue arrivals; // one event for each
        const std::size_t limit;
        std::mutex mutex; // of what follows
        std::deque<std::unique_ptr<Link>> links;
        // Of the loop's thread:
        std::unique_ptr<QueueWriter> writer;
        std::unique_ptr<MessageListener> listener;
    };

    void listen(MessageListener::Options options, MessageSocket::Options accepted,
                CompletionQueue::Options limits) {
        EventLoop& loop = context_->loop();
        incoming_->writer =
            std::make_unique<QueueWriter>(incoming_->arrivals, loop, 0, [] { /* no one waits */ });
        const auto take_peer = [waiting = incoming_.get(), &loop, accepted = std::move(accepted),
                                limits](IncomingPeer& peer) {
            {
                const std::lock_guard lock{waiting->mutex};
                if (waiting->links.size() >= waiting->limit) {
                    return peer.reject(std::to_string(waiting->limit) +
                                       " connections wait for accept() (accept_limit)");
                }
            }
            auto link = std::make_unique<Link>(limits);
            link->accept(loop, peer, accepted);
            {
                const std::lock_guard lock{waiting->mutex};
                waiting->links.push_back(std::move(link));
            }
            static_cast<void>(waiting->writer->push({.kind = QueueEvent::Kind::connected}));
        };
        incoming_->listener =
            std::make_unique<MessageListener>(context_->transport(), std::move(options), take_peer);
        endpoints_ = incoming_->listener->endpoints();
    }
    // Returns null after the time-out, and if none is left after stop().
    std::unique_ptr<PythonMessageSocket> take(Timeout timeout) {
        check_process();
        std::array<QueueEvent, 1> event;
        const bool has_one = wait_for_arrival(timeout, event);
        if (!has_one) return nullptr;
        std::unique_ptr<Link> link;
        {
            const std::lock_guard lock{incoming_->mutex};
            link = std::move(incoming_->links.front());
            incoming_->links.pop_front();
        }
        return std::make_unique<PythonMessageSocket>(*context_, std::move(link));
    }
    bool wait_for_arrival(Timeout timeout, std::span<QueueEvent> event) {
        bool has_one = false;
        wait_in_steps(timeout, [&](milliseconds time) {
            const bool was_closed = incoming_->arrivals.is_closed();
            has_one = incoming_->arrivals.dequeue(event, time) == 1;
            return has_one || was_closed;
        });
        return has_one;
    }

    std::optional<Context> context_;
    std::vector<Endpoint> endpoints_;
    std::unique_ptr<Waiting> incoming_; // its loop's part is destroyed on the loop
    std::atomic<bool> is_stopped_{false};
};

} // namespace

void add_messages(py::module_& module) {
    const py::arg_v timeout{"timeout", py::none{}};
    const py::arg message{"message"};
    using Socket = PythonMessageSocket;
    py::class_<Incoming> incoming{module, "IncomingMessage", py::buffer_protocol(),
                                  doc::incoming_message};
    add_bytes(incoming, [](const Incoming& its) { return its.bytes.bytes(); });
    incoming.def_readonly("immediate", &Incoming::immediate, doc::immediate)
        .def("__repr__", [](const Incoming& its) {
            return "<IncomingMessage size=" + std::to_string(its.bytes.size()) + ">";
        });
    py::class_<Socket> its{module, "MessageSocket", py::dynamic_attr(), doc::message_socket};
    add_with(its);
    add_init<Socket>(its, "MessageSocket(address, **options)");
    its.def("send", &Socket::send, message, timeout, doc::message_socket_send)
        .def("try_send", &Socket::try_send, message, doc::message_socket_try_send)
        .def("receive", &Socket::receive, timeout, doc::message_socket_receive)
        .def("receive_batch", &Socket::receive_batch, py::arg("max") = 64, timeout,
             doc::message_socket_receive_batch)
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &Socket::next)
        .def("_next_now", &Socket::next_now)
        .def("wait_until_connected", &Socket::wait_until_connected, timeout,
             doc::wait_until_connected)
        .def("finish", &Socket::finish, doc::finish)
        .def("abort", &Socket::abort, doc::abort)
        .def("close", &Socket::close_in_order, doc::message_socket_close)
        .def("fileno", &Socket::fileno, doc::message_socket_fileno)
        .def("counters", &Socket::counters, doc::message_socket_counters)
        .def_property_readonly("connected", &Socket::connected, doc::message_socket_connected)
        .def_property_readonly("closed", &Socket::closed, doc::closed)
        .def_property_readonly("end", &Socket::end, doc::message_socket_end)
        .def_property_readonly("peer_address", &Socket::peer_address, doc::peer_address)
        .def_property_readonly("message_limit", &Socket::message_limit, doc::message_limit)
        .def("__repr__", &Socket::describe);
    using Listener = PythonMessageListener;
    py::class_<Listener> listener{module, "MessageListener", py::dynamic_attr(),
                                  doc::message_listener};
    add_with(listener);
    add_init<Listener>(listener, "MessageListener(addresses, **options)");
    listener.def("accept", &Listener::accept, timeout, doc::message_listener_accept)
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &Listener::next)
        .def("_next_now", &Listener::next_now)
        .def("fileno", &Listener::fileno, doc::message_listener_fileno)
        .def("stop", &Listener::stop, doc::message_listener_stop)
        .def("close", &Listener::stop, doc::message_listener_stop)
        .def_property_readonly("address", &Listener::address, doc::publisher_address)
        .def_property_readonly("closed", &Listener::closed, doc::closed);
}

} // namespace netio::python
