// SPDX-License-Identifier: Apache-2.0

// PublishSocket of the Python module, which publishes from arrays of buffer() without a copy. It
// lives on the thread of its context; there, a completion only releases the memory.

#include "pubsub/publisher/publish_socket.hpp"
#include "netio/memory/buffer.hpp"
#include "python/docstrings.hpp"
#include "python/support.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <unordered_set>
#include <vector>

namespace netio::python {
namespace {

constexpr char memory_name[] = "memory of netio_daq.buffer";

// Registered memory, which arrays and publications share.
class Memory final : public OfProcess {
  public:
    Memory(const Context& context, std::size_t bytes)
        : OfProcess{"buffer"}, context_{context}, buffer_{
                                                      std::make_unique<RegisteredBuffer>(bytes)} {}
    ~Memory() {
        if (is_inherited()) {
            static_cast<void>(buffer_.release());
        } else {
            context_.run([this] { buffer_.reset(); }); // its registrations belong to the loop
        }
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    RegisteredBuffer& buffer() const noexcept { return *buffer_; }
    bool is_of(const Context& context) const noexcept {
        return &context_.loop() == &context.loop();
    }

  private:
    const Context context_;
    std::unique_ptr<RegisteredBuffer> buffer_;
};

py::array new_array(const py::object& shape, const py::object& type, const SharedContext& shared) {
    shared.check_process();
    const Context& context = shared.context;
    const py::dtype element = py::dtype::from_args(type);
    std::vector<py::ssize_t> sizes;
    const auto add = [&](py::handle size) {
        if (PyIndex_Check(size.ptr()) == 0) {
            throw py::type_error{"the shape of a buffer is an integer or a tuple of integers, and "
                                 "not " +
                                 py::repr(shape).cast<std::string>()};
        }
        sizes.push_back(PyNumber_AsSsize_t(size.ptr(), nullptr)); // the nearest one
        if (PyErr_Occurred() != nullptr) throw py::error_already_set{};
    };
    if (py::isinstance<py::str>(shape) || !py::hasattr(shape, "__iter__")) {
        add(shape);
    } else {
        for (const py::handle size : shape)
            add(size);
    }
    if (element.attr("hasobject").cast<bool>())
        throw py::type_error{"a buffer has no elements that are Python objects"};
    py::ssize_t bytes = element.itemsize();
    for (const py::ssize_t size : sizes) {
        if (size <= 0 || bytes > (py::ssize_t{1} << 46) / size)
            throw py::value_error{"a buffer must have from 1 byte to 64 TiB"};
        bytes *= size;
    }
    if (bytes <= 0) throw py::value_error{"a buffer must have from 1 byte to 64 TiB"};
    auto memory = without_gil(
        [&] { return std::make_shared<Memory>(context, static_cast<std::size_t>(bytes)); });
    std::byte* const data = memory->buffer().data();
    const py::capsule base{new std::shared_ptr<Memory>{std::move(memory)}, memory_name,
                           [](PyObject* capsule) {
                               delete static_cast<std::shared_ptr<Memory>*>(
                                   PyCapsule_GetPointer(capsule, memory_name));
                           }};
    return py::array{element, sizes, data, base};
}

// The memory that an array of buffer(), or a part or view of it, refers to; null: of none.
std::shared_ptr<Memory> memory_of(const py::object& array) {
    py::object owner = array;
    while (!owner.is_none()) {
        if (PyCapsule_IsValid(owner.ptr(), memory_name) != 0) {
            return *static_cast<std::shared_ptr<Memory>*>(
                PyCapsule_GetPointer(owner.ptr(), memory_name));
        }
        if (PyMemoryView_Check(owner.ptr())) {
            owner = owner.attr("obj");
        } else if (py::isinstance<py::array>(owner)) {
            owner = owner.attr("base");
        } else { // also others have a `base`, such as a dtype, whose base is itself
            return nullptr;
        }
    }
    return nullptr;
}

// One publication, until its memory may be used again. Any thread.
class Publication final : public OfProcess {
  public:
    Publication() : OfProcess{"Publication"} {}

    void complete(const std::optional<pubsub::PublicationOutcome>& outcome) {
        const std::lock_guard lock{mutex_};
        is_done_ = true;
        outcome_ = outcome;
        changed_.notify_all();
    }
    bool done() {
        check_process();
        const std::lock_guard lock{mutex_};
        return is_done_;
    }
    bool wait(const py::object& timeout) {
        check_process();
        return wait_in_steps(to_timeout(timeout), [this](milliseconds time) {
            std::unique_lock lock{mutex_};
            return changed_.wait_for(lock, time, [this] { return is_done_; });
        });
    }
    py::object outcome() {
        check_process();
        const std::lock_guard lock{mutex_};
        if (!outcome_) return py::none{};
        return py::dict(py::arg("sent") = outcome_->sent, py::arg("dropped") = outcome_->dropped,
                        py::arg("unsubscribed") = outcome_->unsubscribed,
                        py::arg("lost") = outcome_->lost);
    }

  private:
    std::mutex mutex_; // of what follows
    std::condition_variable changed_;
    bool is_done_ = false;
    std::optional<pubsub::PublicationOutcome> outcome_;
};

// A message on its way to the loop, and in flight.
struct Outgoing {
    Fid fid{};
    std::uint8_t status = 0;
    std::span<const std::byte> bytes;
    std::shared_ptr<Memory> memory;
    std::shared_ptr<Publication> publication;
};

// The socket on its loop.
//
// A thread does not wait for a turn of the loop if the socket is sure to take its message: the fid
// had a subscriber when the socket took the last one, the size is allowed, and fewer messages are
// outstanding than may wait for one subscriber. It hands the message over in a task of the loop, as
// all others, so that they stay in order.
class OnLoop final : private pubsub::PublishSocket::Handler {
  public:
    OnLoop(Transport& transport, const pubsub::PublishSocket::Options& options)
        : hand_over_limit_{hand_over_limit(options)},
          largest_message_bytes_{options.publisher.largest_message_bytes},
          close_timeout_{options.publisher.close_timeout}, close_limit_{transport.loop(),
                                                                        [this] { close_now(); }},
          socket{std::make_unique<pubsub::PublishSocket>(
              transport, options, static_cast<pubsub::PublishSocket::Handler&>(*this))} {}
    ~OnLoop() {
        socket.reset();
        for (auto& [cookie, each] : in_flight_)
            each.publication->complete({});
        for (Outgoing& each : waiting_)
            each.publication->complete({});
    }
    OnLoop(const OnLoop&) = delete;
    OnLoop& operator=(const OnLoop&) = delete;

    // --- any thread

    // Whether the message may be handed over; then take_over() must follow.
    bool begin_hand_over(Fid fid, std::size_t bytes) {
        const std::lock_guard lock{mutex_};
        if (bytes > largest_message_bytes_ || outstanding_ >= hand_over_limit_ ||
            !wanted_.contains(fid))
            return false;
        ++outstanding_;
        return true;
    }

    // --- the loop's thread

    void take_over(Outgoing message) {
        if (!waiting_.empty() || settle(message) == Status::again)
            waiting_.push_back(std::move(message));
    }
    // Moves from the message if it returns ok.
    Status publish(Outgoing& message) {
        if (!waiting_.empty()) return Status::again;
        const Fid fid = message.fid;
        const Status outcome = attempt(message);
        if (outcome == Status::ok) {
            const std::lock_guard lock{mutex_};
            ++outstanding_;
            if (wanted_.size() >= wanted_limit) wanted_.clear();
            wanted_.insert(fid);
        }
        return outcome;
    }
    // After what was handed over.
    void close() {
        if (waiting_.empty()) return socket->close();
        is_closing_ = true;
        close_limit_.start(close_timeout_);
    }

  private:
    static constexpr std::size_t hand_over_most = 64;  // messages
    static constexpr std::size_t wanted_limit = 65536; // fids

    static std::size_t hand_over_limit(const pubsub::PublishSocket::Options& options) {
        const std::size_t most = std::min(hand_over_most, options.outstanding_limit / 4);
        return options.queue_limit_messages == 0 ? most
                                                 : std::min(most, options.queue_limit_messages);
    }
    Status attempt(Outgoing& message) {
        RegisteredBuffer& buffer = message.memory->buffer();
        const auto offset = static_cast<std::size_t>(message.bytes.data() - buffer.data());
        const Slice slice = buffer.slice(offset, message.bytes.size());
        const Status outcome =
            socket->publishv(message.fid, {&slice, 1}, Cookie{next_}, {.status = message.status});
        if (outcome == Status::ok) in_flight_.emplace(next_++, std::move(message));
        return outcome;
    }
    // The same for a message that was handed over, which is over if its subscribers have gone.
    Status settle(Outgoing& message) {
        const Status outcome = attempt(message);
        if (outcome == Status::no_subscribers) {
            end(std::move(message), pubsub::PublicationOutcome{});
        } else if (outcome != Status::ok && outcome != Status::again) {
            end(std::move(message), {});
        }
        return outcome;
    }
    // Its memory ends here, and not with the task, which may be after the context.
    void end(Outgoing&& message, const std::optional<pubsub::PublicationOutcome>& outcome) {
        const Outgoing ended = std::move(message);
        {
            const std::lock_guard lock{mutex_};
            --outstanding_;
        }
        ended.publication->complete(outcome);
    }
    void close_now() {
        while (!waiting_.empty()) {
            end(std::move(waiting_.front()), {});
            waiting_.pop_front();
        }
        socket->close();
    }
    void forget_wanted() {
        const std::lock_guard lock{mutex_};
        wanted_.clear();
    }

    void on_publish_completed(pubsub::PublishSocket&, Cookie cookie,
                              const pubsub::PublicationOutcome& outcome) override {
        auto over = in_flight_.extract(static_cast<std::uint64_t>(cookie));
        end(std::move(over.mapped()), outcome);
    }
    void on_writable(pubsub::PublishSocketBase&) override {
        for (; !waiting_.empty(); waiting_.pop_front())
            if (settle(waiting_.front()) == Status::again) return;
        if (is_closing_) socket->close();
    }
    void on_subscribed(pubsub::PublishSocketBase&, const pubsub::SubscriberPeer& peer,
                       const FidRange&) override {
        subscribed_.insert(peer.id);
        subscribers = subscribed_.size();
    }
    void on_unsubscribed(pubsub::PublishSocketBase&, const pubsub::SubscriberPeer&,
                         const FidRange&) override {
        forget_wanted();
    }
    void on_subscriber_closed(pubsub::PublishSocketBase&, const pubsub::SubscriberPeer& peer,
                              const Closed&) override {
        forget_wanted();
        subscribed_.erase(peer.id);
        subscribers = subscribed_.size();
    }
    void on_closed(pubsub::PublishSocketBase&, const Closed&) override {
        forget_wanted();
        is_over = true;
    }

    const std::size_t hand_over_limit_;
    const std::size_t largest_message_bytes_;
    std::mutex mutex_; // of what follows
    std::size_t outstanding_ = 0;
    std::unordered_set<Fid> wanted_; // with a subscriber
    // Of the loop's thread:
    std::uint64_t next_ = 0;
    std::map<std::uint64_t, Outgoing> in_flight_; // by cookie
    std::deque<Outgoing> waiting_; // handed over, and the socket did not take the first one
    std::set<pubsub::SubscriberId> subscribed_;
    bool is_closing_ = false;
    const milliseconds close_timeout_;
    Timer close_limit_;

  public:
    std::unique_ptr<pubsub::PublishSocket> socket;
    std::atomic<std::size_t> subscribers{0}; // with a subscription
    std::atomic<bool> is_over{false};
};

class PythonPublishSocket final : public Connected {
  public:
    PythonPublishSocket(const py::object& addresses, const py::kwargs& values)
        : Connected{"PublishSocket"} {
        Options options{values, "PublishSocket"};
        pubsub::PublishSocket::Options its;
        its.publisher.listen = to_addresses(addresses);
        context_ = read_context(options);
        its.publisher.keys = read_keys(options, *context_);
        read_publish_socket(options, its.publisher);
        options.read("allow_remote_anonymous", its.publisher.allow_remote_anonymous)
            .read("slow_policy", its.publisher.slow_policy)
            .read("close_timeout", its.publisher.close_timeout)
            .read("close_limit", its.publisher.close_limit)
            .read("outstanding_limit", its.outstanding_limit)
            .read("queue_limit_messages", its.queue_limit_messages)
            .finish();
        without_gil([&] {
            context_->run([&] {
                on_loop_ = std::make_unique<OnLoop>(context_->transport(), its);
                address_ = to_string(on_loop_->socket->endpoints().front().address);
            });
        });
    }
    ~PythonPublishSocket() override {
        if (is_inherited()) {
            static_cast<void>(on_loop_.release());
        } else if (on_loop_) {
            destroy(on_loop_, *context_, true);
        }
    }

    // Returns null if the fid has no subscriber.
    std::shared_ptr<Publication> publish(const py::object& fid, const py::object& array,
                                         const py::object& its_status, const py::object& timeout) {
        check_process();
        const std::uint8_t status = to_status(its_status);
        const Fid to = to_fid(fid);
        const Timeout limit = to_timeout(timeout);
        const std::shared_ptr<Memory> memory = memory_of(array);
        if (!memory) {
            throw py::type_error{"a message of a PublishSocket is an array of netio_daq.buffer(), "
                                 "or a part of one; Publisher.publish() copies any other"};
        }
        memory->check_process();
        if (!memory->is_of(*context_)) {
            throw py::value_error{
                "the array is of another context: netio_daq.buffer(..., context=...) needs the "
                "context of the PublishSocket"};
        }
        const Bytes bytes{array};
        if (!memory->buffer().contains(bytes.span().data(), bytes.span().size()))
            throw py::value_error{"the array is not within the memory of its buffer"};
        auto publication = std::make_shared<Publication>();
        Outgoing message{.fid = to,
                         .status = status,
                         .bytes = bytes.span(),
                         .memory = memory,
                         .publication = publication};
        if (!is_closing_ && on_loop_->begin_hand_over(to, bytes.span().size())) {
            context_->post_always([its = on_loop_.get(), message = std::move(message)]() mutable {
                its->take_over(std::move(message));
            });
            return publication;
        }
        Status outcome = Status::again;
        poll_until(limit, [&] {
            context_->run([&] { outcome = on_loop_->publish(message); });
            return outcome != Status::again;
        });
        if (outcome == Status::ok) return publication;
        if (outcome == Status::no_subscribers) return nullptr;
        fail(outcome, to, limit);
    }
    bool wait_for_subscribers(const py::object& subscribers, const py::object& timeout) {
        const std::size_t count = to_count(subscribers, "count", 0);
        check_process();
        poll_until(to_timeout(timeout),
                   [&] { return on_loop_->subscribers >= count || on_loop_->is_over; });
        return on_loop_->subscribers >= count;
    }
    std::string address() const {
        check_process();
        return address_;
    }
    py::dict counters() const {
        check_process();
        pubsub::PublishSocketBase::Counters all;
        std::size_t outstanding = 0;
        without_gil([&] {
            context_->run([&] {
                all = on_loop_->socket->counters();
                outstanding = on_loop_->socket->outstanding();
            });
        });
        return py::dict(py::arg("messages") = all.messages, py::arg("bytes") = all.bytes,
                        py::arg("without_subscribers") = all.without_subscribers,
                        py::arg("again") = all.again, py::arg("dropped") = all.dropped,
                        py::arg("subscribers") = all.subscribers,
                        py::arg("outstanding") = outstanding);
    }
    void close_in_order() {
        check_process();
        close();
    }
    bool closed() const {
        check_process();
        return on_loop_->is_over;
    }

    void begin_close() override {
        if (on_loop_->is_over || is_closing_.exchange(true)) return;
        context_->post_always([its = on_loop_.get()] { its->close(); });
    }
    bool is_closed() const noexcept override { return on_loop_->is_over; }

  private:
    [[noreturn]] void fail(Status status, Fid fid, Timeout limit) const {
        const std::string where = "publish socket " + address_ + ", fid " + to_string(fid) + ": ";
        if (status == Status::again) {
            raise("TimeoutError",
                  where + "no space for the message for " + std::to_string(limit->count()) +
                      " ms (timeout): subscribers are too slow, or outstanding_limit is reached",
                  "again");
        }
        if (status == Status::closed)
            raise("ClosedError", where + "the publish socket is closed", "closed");
        raise("Error",
              where + (status == Status::too_large
                           ? "the message is larger than largest_message_bytes"
                           : std::string{to_string(status)}),
              name_of(status));
    }

    std::optional<Context> context_;
    std::string address_;
    std::unique_ptr<OnLoop> on_loop_;
    std::atomic<bool> is_closing_{false};
};

} // namespace

void add_publish_socket(py::module_& module) {
    const py::arg_v timeout{"timeout", py::none{}};
    module.def("buffer", &new_array, py::arg("shape"), py::arg("dtype") = "u1", py::kw_only{},
               py::arg("context"), doc::buffer);
    py::class_<Publication, std::shared_ptr<Publication>>{module, "Publication", doc::publication}
        .def("wait", &Publication::wait, timeout, doc::publication_wait)
        .def_property_readonly("done", &Publication::done, doc::publication_done)
        .def_property_readonly("outcome", &Publication::outcome, doc::publication_outcome);
    using Its = PythonPublishSocket;
    py::class_<Its> its{module, "PublishSocket", doc::publish_socket};
    add_with(its);
    add_init<Its>(its, "PublishSocket(addresses, **options)");
    its.def("publish", &Its::publish, py::arg("fid"), py::arg("array"), py::arg("status") = 0,
            py::kw_only{}, timeout, doc::publish_array)
        .def("wait_for_subscribers", &Its::wait_for_subscribers, py::arg("count") = 1, timeout,
             doc::wait_for_subscribers)
        .def("counters", &Its::counters, doc::publish_socket_counters)
        .def("close", &Its::close_in_order, doc::publisher_close)
        .def_property_readonly("address", &Its::address, doc::publisher_address)
        .def_property_readonly("closed", &Its::closed, doc::closed);
}

} // namespace netio::python
