// SPDX-License-Identifier: Apache-2.0

// Requester, Reply, Responder and Request of the Python module, whose classes of C++ may be called
// from any thread.

#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"
#include "python/docstrings.hpp"
#include "python/support.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace netio::python {
namespace {

// --- Requester --------------------------------------------------------------------------------

class PythonReply final : public OfProcess {
  public:
    explicit PythonReply(Reply reply) : OfProcess{"Reply"}, reply_{std::move(reply)} {}
    PythonReply(const PythonReply&) = delete;
    PythonReply& operator=(const PythonReply&) = delete;
    ~PythonReply() { // there, another thread may have held its lock
        if (is_inherited()) static_cast<void>(new Reply{std::move(reply_)});
    }

    py::object next(const py::object& timeout) {
        const Timeout limit = to_timeout(timeout);
        const auto part = take(limit);
        if (part) return *part ? py::object{view_of(**part)} : py::none{};
        raise("TimeoutError",
              "no message of the reply has arrived within " + std::to_string(limit->count()) +
                  " ms (timeout); the request goes on",
              "again");
    }
    py::object iterate() {
        const auto part = take({});
        if (!*part) throw py::stop_iteration{};
        return view_of(**part);
    }
    // For asyncio: the next message, None if none is there now, or the end.
    py::object next_now() {
        const auto part = take(milliseconds{0});
        if (!part) return py::none{};
        if (*part) return view_of(**part);
        PyErr_SetNone(PyExc_StopAsyncIteration);
        throw py::error_already_set{};
    }
    bool wait_for(const py::object& timeout) {
        check_process();
        return wait_in_steps(to_timeout(timeout),
                             [&](milliseconds time) { return reply_.wait_for(time); });
    }
    bool ready() const {
        check_process();
        return reply_.is_ready();
    }
    void cancel() {
        check_process();
        without_gil([&] { reply_.cancel(); });
    }
    std::string end() const {
        check_process();
        return std::string{to_string(reply_.end())};
    }

  private:
    // nullopt: nothing in time; an empty value: the end of the reply.
    std::optional<std::optional<KeptBytes>> take(Timeout timeout) {
        check_process();
        std::optional<std::optional<KeptBytes>> part;
        wait_in_steps(timeout, [&](milliseconds time) {
            const std::unique_lock lock{reading_, time};
            if (!lock || !reply_.wait_for(time)) return false;
            part.emplace(reply_.next());
            return true;
        });
        return part;
    }

    std::timed_mutex reading_; // held by the thread that takes a message
    Reply reply_;
};

class PythonRequester final : public Connected {
  public:
    PythonRequester(const py::object& address, const py::kwargs& values) : Connected{"Requester"} {
        const std::string responder = to_address_text(address);
        Options options{values, "Requester"};
        Requester::Options its;
        its.context = read_context(options);
        its.key = read_key(options);
        options.read("request_timeout", its.request_timeout)
            .read("outstanding_limit", its.outstanding_limit)
            .read("queue_limit_bytes", its.queue_limit_bytes)
            .read("reply_limit_bytes", its.reply_limit_bytes)
            .group("socket", [&](Options& group) { read_message_socket(group, its.socket); })
            .finish();
        its.on_ready = [watches = watches_] { watches->notify(); };
        context_ = its.context;
        request_timeout_ = its.request_timeout;
        outstanding_limit_ = its.outstanding_limit;
        queue_limit_bytes_ = its.queue_limit_bytes;
        requester_ = without_gil(
            [&] { return std::make_unique<Requester>(AddressList{responder}, std::move(its)); });
    }
    ~PythonRequester() override {
        if (requester_ && !is_inherited()) destroy(requester_, *context_, false);
    }

    py::object request(const py::object& message, const py::object& timeout) {
        Reply reply = begin(message, timeout);
        wait_in_steps({}, [&](milliseconds time) { return reply.wait_for(time); });
        return view_of(reply.next().value());
    }
    std::unique_ptr<PythonReply> send(const py::object& message, const py::object& timeout) {
        return std::make_unique<PythonReply>(begin(message, timeout));
    }
    py::dict stats() const {
        check_process();
        const Requester::Stats all = requester_->stats();
        return py::dict(py::arg("outstanding") = all.outstanding, py::arg("replied") = all.replied,
                        py::arg("timed_out") = all.timed_out, py::arg("canceled") = all.canceled,
                        py::arg("disconnected") = all.disconnected, py::arg("failed") = all.failed,
                        py::arg("late") = all.late, py::arg("queued_bytes") = all.queued_bytes,
                        py::arg("reply_bytes") = all.reply_bytes,
                        py::arg("connected") = all.connected);
    }
    int watch() {
        check_process();
        return watches_->add();
    }
    void unwatch(int descriptor) { watches_->remove(descriptor); }
    void close_at_once() {
        check_process();
        without_gil([&] { requester_->close(); });
        is_closed_ = true;
        watches_->notify();
    }
    bool closed() const noexcept { return is_closed_; }

    void begin_close() override {
        context_->post_always([this, requester = requester_.get()] {
            requester->close();
            is_closed_ = true;
            watches_->notify();
        });
    }
    bool is_closed() const noexcept override { return is_closed_; }

  private:
    // The library would wait for space without a look at signals.
    Reply begin(const py::object& message, const py::object& timeout) {
        check_process();
        const Bytes bytes{message};
        const milliseconds time = timeout.is_none() ? request_timeout_ : *to_timeout(timeout);
        const TimePoint end = Clock::now() + std::min(time, longest_time);
        std::optional<Reply> reply;
        poll_until(time, [&] {
            const std::lock_guard lock{sending_};
            if (!has_space(bytes.span().size())) return false;
            const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
            reply.emplace(requester_->send(bytes.span(), std::max(left, milliseconds{0})));
            return true;
        });
        // There it throws the reason without a wait.
        if (!reply) {
            without_gil([&] {
                context_->run([&] { reply.emplace(requester_->send(bytes.span(), time)); });
            });
        }
        return std::move(*reply);
    }
    bool has_space(std::size_t bytes) const {
        constexpr std::size_t most_overhead = 128; // of a request in the queue
        const Requester::Stats now = requester_->stats();
        return now.outstanding < outstanding_limit_ &&
               (now.queued_bytes == 0 ||
                now.queued_bytes + bytes + most_overhead <= queue_limit_bytes_);
    }

    std::optional<Context> context_;
    milliseconds request_timeout_{};
    std::size_t outstanding_limit_ = 0;
    std::size_t queue_limit_bytes_ = 0;
    const std::shared_ptr<Watches> watches_ = std::make_shared<Watches>();
    std::mutex sending_; // so that no other thread takes the space; without the GIL
    std::unique_ptr<Requester> requester_;
    std::atomic<bool> is_closed_{false};
};

// --- Responder --------------------------------------------------------------------------------

class PythonRequest final : public OfProcess {
  public:
    PythonRequest(const Context& context, Request request)
        : OfProcess{"Request"}, context_{context}, request_{std::move(request)} {}
    PythonRequest(const PythonRequest&) = delete;
    PythonRequest& operator=(const PythonRequest&) = delete;
    ~PythonRequest() { // there, another thread may have held its lock
        if (is_inherited()) static_cast<void>(new Request{std::move(request_)});
    }

    std::span<const std::byte> bytes() const { return request_.bytes(); }
    const std::string& peer_address() const { return request_.peer_address(); }
    bool canceled() const { return request_.is_canceled(); }
    bool reply(const py::object& message) {
        const Bytes bytes{message};
        return act([&] { return request_.reply(bytes.span()); });
    }
    bool reply_part(const py::object& message) {
        const Bytes bytes{message};
        return act([&] { return request_.reply_part(bytes.span()); });
    }
    bool fail(const std::string& why) {
        return act([&] { return request_.fail(why); });
    }

  private:
    // On the context's thread the library does not wait for space, so that Ctrl-C ends the wait.
    template <typename Send>
    bool act(Send send) {
        check_process();
        bool is_accepted = false;
        poll_until({}, [&] {
            bool has_space = true;
            context_.run([&] {
                try {
                    is_accepted = send();
                } catch (const Error& error) {
                    if (error.status() != Status::again) throw;
                    has_space = false;
                }
            });
            return has_space;
        });
        return is_accepted;
    }

    const Context context_;
    Request request_;
};

class PythonResponder final : public Connected {
  public:
    PythonResponder(const py::object& addresses, const py::kwargs& values)
        : Connected{"Responder"} {
        Options options{values, "Responder"};
        Responder::Options its;
        its.context = read_context(options);
        its.keys = read_keys(options, *its.context);
        options.read("request_limit", its.request_limit)
            .read("request_limit_bytes", its.request_limit_bytes)
            .read("reply_queue_limit_bytes", its.reply_queue_limit_bytes)
            .read("send_timeout", its.send_timeout)
            .read("allow_remote_anonymous", its.allow_remote_anonymous)
            .read("peer_limit", its.peer_limit)
            .read("connections_per_host", its.connections_per_host)
            .group("socket", [&](Options& group) { read_message_socket(group, its.socket); })
            .finish();
        its.on_ready = [watches = watches_] { watches->notify(); };
        context_ = its.context;
        AddressList listen = to_addresses(addresses);
        responder_ = without_gil(
            [&] { return std::make_unique<Responder>(std::move(listen), std::move(its)); });
    }
    ~PythonResponder() override {
        if (responder_ && !is_inherited()) destroy(responder_, *context_, is_abandoned());
    }

    std::unique_ptr<PythonRequest> receive(const py::object& timeout) {
        return take(to_timeout(timeout));
    }
    std::unique_ptr<PythonRequest> next() {
        auto request = take({});
        if (!request) throw py::stop_iteration{};
        return request;
    }
    // For asyncio: the next request, None if none is there now, or the end.
    std::unique_ptr<PythonRequest> next_now() {
        auto request = take(milliseconds{0});
        if (request || !is_closing_) return request;
        PyErr_SetNone(PyExc_StopAsyncIteration);
        throw py::error_already_set{};
    }
    std::string address() const { return to_string(its().endpoints().front().address); }
    py::dict stats() const {
        const Responder::Stats all = its().stats();
        return py::dict(py::arg("peers") = all.peers, py::arg("waiting") = all.waiting,
                        py::arg("open") = all.open, py::arg("requests") = all.requests,
                        py::arg("replied") = all.replied, py::arg("failed") = all.failed,
                        py::arg("no_reply") = all.no_reply, py::arg("canceled") = all.canceled,
                        py::arg("too_slow") = all.too_slow);
    }
    int watch() {
        check_process();
        return watches_->add();
    }
    void unwatch(int descriptor) { watches_->remove(descriptor); }
    void close_in_order() {
        its();
        close();
    }
    bool closed() const { return its().is_closed(); }

    void begin_close() override {
        if (is_closing_.exchange(true)) return;
        context_->post_always([watches = watches_, responder = responder_.get()] {
            responder->close();
            watches->notify();
        });
    }
    bool is_closed() const noexcept override { return responder_->is_closed(); }

  private:
    Responder& its() const {
        check_process();
        return *responder_;
    }
    std::unique_ptr<PythonRequest> take(Timeout timeout) {
        its();
        std::optional<Request> request;
        wait_in_steps(timeout, [&](milliseconds time) {
            request = responder_->receive(time);
            return request || is_closing_;
        });
        if (!request) return nullptr;
        return std::make_unique<PythonRequest>(*context_, std::move(*request));
    }

    std::optional<Context> context_;
    const std::shared_ptr<Watches> watches_ = std::make_shared<Watches>();
    std::unique_ptr<Responder> responder_;
    std::atomic<bool> is_closing_{false};
};

// --- the classes ------------------------------------------------------------------------------

void bind_requester(py::module_& module) {
    const py::arg_v timeout{"timeout", py::none{}};
    const py::arg message{"message"};
    py::class_<PythonReply>{module, "Reply", py::dynamic_attr(), doc::reply}
        .def("next", &PythonReply::next, timeout, doc::reply_next)
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &PythonReply::iterate)
        .def("_next_now", &PythonReply::next_now)
        .def("wait_for", &PythonReply::wait_for, timeout, doc::reply_wait_for)
        .def("cancel", &PythonReply::cancel, doc::reply_cancel)
        .def_property_readonly("ready", &PythonReply::ready, doc::reply_ready)
        .def_property_readonly("end", &PythonReply::end, doc::reply_end);
    using Asking = PythonRequester;
    py::class_<Asking> its{module, "Requester", doc::requester};
    add_with(its);
    add_init<Asking>(its, "Requester(responder, **options)");
    its.def("request", &Asking::request, message, timeout, doc::request)
        .def("send", &Asking::send, message, timeout)
        .def("_stats", &Asking::stats)
        .def("_watch", &Asking::watch)
        .def("_unwatch", &Asking::unwatch, py::arg("descriptor"))
        .def("close", &Asking::close_at_once, doc::requester_close)
        .def_property_readonly("closed", &Asking::closed, doc::closed);
}

void bind_responder(py::module_& module) {
    const py::arg message{"message"};
    using Asked = PythonRequest;
    py::class_<Asked> request{module, "Request", py::buffer_protocol(), doc::one_request};
    add_bytes(request, [](const Asked& its) { return its.bytes(); });
    request.def("reply", &Asked::reply, message, doc::request_reply)
        .def("reply_part", &Asked::reply_part, message, doc::reply_part)
        .def("fail", &Asked::fail, py::arg("why"), doc::request_fail)
        .def_property_readonly("peer_address", &Asked::peer_address, doc::peer_address)
        .def_property_readonly("canceled", &Asked::canceled, doc::canceled);
    using Answering = PythonResponder;
    py::class_<Answering> its{module, "Responder", doc::responder};
    add_with(its);
    add_init<Answering>(its, "Responder(addresses, **options)");
    its.def("receive", &Answering::receive, py::arg("timeout") = py::none{}, doc::responder_receive)
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &Answering::next)
        .def("_next_now", &Answering::next_now)
        .def("_stats", &Answering::stats)
        .def("_watch", &Answering::watch)
        .def("_unwatch", &Answering::unwatch, py::arg("descriptor"))
        .def("close", &Answering::close_in_order, doc::responder_close)
        .def_property_readonly("address", &Answering::address, doc::publisher_address)
        .def_property_readonly("closed", &Answering::closed, doc::closed);
}

} // namespace

void add_requests(py::module_& module) {
    bind_requester(module);
    bind_responder(module);
}

} // namespace netio::python
