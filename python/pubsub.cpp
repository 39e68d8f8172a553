// SPDX-License-Identifier: Apache-2.0

// Publisher, Subscriber, Message and Batch of the Python module.

#include "netio/loop/process.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/client/publisher.hpp"
#include "pubsub/client/subscriber.hpp"
#include "python/docstrings.hpp"
#include "python/received.hpp"
#include "python/support.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

namespace netio::python {
void read_publish_socket(Options& options, pubsub::PublishSocketBase::Options& to) {
    options.group("session", [&](Options& group) { read_session(group, to.session); })
        .read("disconnect_after", to.disconnect_after)
        .read("subscriber_limit", to.subscriber_limit)
        .read("connections_per_host", to.connections_per_host)
        .read("ranges_per_subscriber_limit", to.ranges_per_subscriber_limit)
        .read("pending_reply_limit", to.pending_reply_limit)
        .read("largest_message_bytes", to.largest_message_bytes);
}

namespace {

// --- Publisher --------------------------------------------------------------------------------

void read_buffered_socket(Options& options, pubsub::BufferedPublishSocket::Options& to) {
    options.group("publisher", [&](Options& group) { read_publish_socket(group, to.publisher); })
        .read("page_size_bytes", to.page_size_bytes)
        .read("page_count", to.page_count)
        .read("queue_limit_bytes", to.queue_limit_bytes)
        .read("newest_bytes", to.newest_bytes)
        .read("watermark_bytes", to.watermark_bytes)
        .read("flush_time", to.flush_time)
        .read("flush_when_idle", to.flush_when_idle)
        .read("history_limit_bytes", to.history_limit_bytes)
        .read("history_time", to.history_time);
}

Publisher::Options read_publisher(Options& options) {
    Publisher::Options to;
    to.context = read_context(options);
    options.read("publish_timeout", to.publish_timeout)
        .read("queue_limit_bytes", to.queue_limit_bytes)
        .read("slow_policy", to.slow_policy)
        .read("close_timeout", to.close_timeout)
        .read("close_limit", to.close_limit)
        .read("allow_remote_anonymous", to.allow_remote_anonymous)
        .read("name", to.name)
        .group("socket", [&](Options& group) { read_buffered_socket(group, to.socket); });
    if (const py::object given = options.take_object<Bus>("bus")) to.bus = given.cast<const Bus&>();
    if (const auto given = options.take("fids"); given && !given->first.is_none())
        to.fids = to_fids(given->first);
    to.keys = read_keys(options, *to.context);
    options.finish();
    return to;
}

class PythonPublisher final : public Connected {
  public:
    PythonPublisher(const py::object& addresses, const py::kwargs& values)
        : Connected{"Publisher"} {
        Options options{values, "Publisher"};
        Publisher::Options given = read_publisher(options);
        context_ = given.context;
        publish_timeout_ = given.publish_timeout;
        AddressList listen = to_addresses(addresses);
        publisher_ = without_gil(
            [&] { return std::make_unique<Publisher>(std::move(listen), std::move(given)); });
    }
    ~PythonPublisher() override {
        if (publisher_ && !is_inherited()) destroy(publisher_, *context_, is_abandoned());
    }

    bool publish(const py::object& fid, const py::object& message, const py::object& status,
                 const py::object& timeout) {
        its();
        const Bytes bytes{message};
        const Publisher::Outgoing one{
            .fid = to_fid(fid), .status = to_status(status), .bytes = bytes.span()};
        const auto attempt = [&] {
            return publisher_->try_publish(one.fid, one.bytes, one.status);
        };
        // To copy few bytes takes less time than to release the GIL.
        const Status outcome = bytes.span().size() <= few_bytes ? attempt() : without_gil(attempt);
        if (outcome == Status::ok || outcome == Status::no_subscribers)
            return outcome == Status::ok;
        publish_all({&one, 1}, timeout); // waits, or throws the reason
        return true;
    }
    std::string try_publish(const py::object& fid, const py::object& message,
                            const py::object& status) {
        const Bytes bytes{message};
        const Fid to = to_fid(fid);
        const std::uint8_t its_status = to_status(status);
        its();
        const Status outcome =
            without_gil([&] { return publisher_->try_publish(to, bytes.span(), its_status); });
        return name_of(outcome);
    }
    std::size_t publish_batch(const py::object& fids, const py::object& data,
                              const py::object& offsets, const py::object& status,
                              const py::object& timeout);
    bool wait_for_subscribers(const py::object& subscribers, const py::object& timeout) {
        const std::size_t count = to_count(subscribers, "count", 0);
        its();
        return wait_for_true(to_timeout(timeout), [&](milliseconds time) {
            return publisher_->wait_for_subscribers(count, time);
        });
    }
    void announce(const Bus& bus, std::string name, const py::object& fids,
                  std::map<std::string, std::string> parameters);
    std::string address() const { return to_string(its().address()); }
    std::vector<std::string> endpoints() const {
        std::vector<std::string> texts;
        for (const Endpoint& endpoint : its().endpoints())
            texts.push_back(pubsub::to_announced_address(endpoint));
        return texts;
    }
    py::dict stats() const {
        const Publisher::Stats all = its().stats();
        return py::dict(py::arg("published") = all.published,
                        py::arg("without_subscribers") = all.without_subscribers,
                        py::arg("unpublished") = all.unpublished,
                        py::arg("subscribers") = all.subscribers);
    }
    void close_in_order() {
        its();
        close();
    }
    bool closed() const { return its().is_closed(); }

    void begin_close() override {
        if (!publisher_->is_closed())
            context_->post_always([publisher = publisher_.get()] { publisher->close(); });
    }
    bool is_closed() const noexcept override { return publisher_->is_closed(); }

  private:
    Publisher& its() const {
        check_process();
        return *publisher_;
    }
    void publish_all(std::span<const Publisher::Outgoing> messages, const py::object& timeout);

    static constexpr std::size_t few_bytes = 65536;

    std::optional<Context> context_;
    milliseconds publish_timeout_{};
    std::unique_ptr<Publisher> publisher_;
};

void PythonPublisher::publish_all(std::span<const Publisher::Outgoing> messages,
                                  const py::object& timeout) {
    std::size_t accepted = 0;
    const auto go_on = [&](milliseconds time) {
        accepted += publisher_->publish_batch(messages.subspan(accepted), time);
        return accepted == messages.size();
    };
    const auto fail = [&](const char* name, const std::string& text, std::string_view status) {
        try {
            raise(name, text, status);
        } catch (py::error_already_set& error) {
            error.value().attr("accepted") = accepted;
            throw;
        }
    };
    const std::string counted =
        messages.size() == 1 ? "" : " of " + std::to_string(messages.size()) + " messages";
    try {
        const bool is_default = timeout.is_none();
        const milliseconds limit = is_default ? publish_timeout_ : *to_timeout(timeout);
        if (wait_in_steps(limit, go_on)) return;
        fail("TimeoutError",
             "publisher " + to_string(publisher_->address()) + ", fid " +
                 to_string(messages[accepted].fid) + ": no space for the message for " +
                 std::to_string(limit.count()) + " ms (" +
                 (is_default ? "publish_timeout" : "timeout") + "): subscribers are too slow" +
                 (counted.empty() ? "" : "; accepted " + std::to_string(accepted) + counted),
             "again");
    } catch (const Error& error) {
        if (accepted == 0) throw;
        fail("ClosedError",
             std::string{error.what()} + "; accepted " + std::to_string(accepted) + counted,
             name_of(error.status()));
    }
}

// An array of integers of this type, for one message each, or one value for all.
template <typename Number>
class PerMessage {
  public:
    PerMessage(const py::object& values, const std::string& name, std::size_t count) {
        py::array given = py::array::ensure(values);
        char kind = given ? given.dtype().kind() : ' ';
        if (!given || (given.size() > 0 && kind != 'i' && kind != 'u')) {
            const py::object exact = exact_integers(values, name);
            if (!exact) throw py::type_error{name + " must be an integer or an array of integers"};
            given = exact;
            kind = 'u';
        }
        is_one_ = given.ndim() == 0;
        const auto size = static_cast<std::size_t>(given.size());
        if (!is_one_ && (given.ndim() != 1 || size != count)) {
            throw py::value_error{name + " must have one element for each of " +
                                  std::to_string(count) + " messages, and has " +
                                  std::to_string(size)};
        }
        kind == 'i' ? read<std::int64_t>(given, name) : read<std::uint64_t>(given, name);
    }
    Number operator[](std::size_t index) const noexcept { return values_[is_one_ ? 0 : index]; }

  private:
    // NumPy makes floating-point numbers of integers if one of them is above 2^63. Null: there are
    // other values.
    static py::object exact_integers(const py::object& values, const std::string& name) {
        const bool is_one = PyIndex_Check(values.ptr()) != 0;
        if (py::isinstance<py::array>(values) ||
            (!is_one && !py::isinstance<py::list>(values) && !py::isinstance<py::tuple>(values)))
            return {};
        const py::tuple all = is_one ? py::make_tuple(values) : py::tuple{values};
        py::array_t<std::uint64_t> integers{static_cast<py::ssize_t>(all.size())};
        std::uint64_t* to = integers.mutable_data();
        for (const py::handle each : all) {
            if (PyIndex_Check(each.ptr()) == 0 || PyBool_Check(each.ptr()) != 0) return {};
            const py::int_ integer{py::reinterpret_borrow<py::object>(each)};
            *to++ = PyLong_AsUnsignedLongLong(integer.ptr());
            if (PyErr_Occurred() == nullptr) continue;
            PyErr_Clear();
            throw py::value_error{name + " must be from 0 to 2^64 - 1, and not " +
                                  py::str(py::handle{integer}).cast<std::string>()};
        }
        return is_one ? integers.attr("reshape")(py::tuple{}) : integers;
    }
    template <typename Wide>
    void read(const py::array& given, const std::string& name) {
        const auto wide =
            py::array_t<Wide, py::array::c_style | py::array::forcecast>::ensure(given);
        const std::span<const Wide> all{wide.data(), static_cast<std::size_t>(wide.size())};
        values_.reserve(all.size());
        for (const Wide each : all) {
            if (std::cmp_less(each, 0)) throw py::value_error{name + " must not be negative"};
            if (std::cmp_greater(each, std::numeric_limits<Number>::max())) {
                throw py::value_error{name + " must be at most " +
                                      std::to_string(std::numeric_limits<Number>::max())};
            }
            values_.push_back(static_cast<Number>(each));
        }
    }

    std::vector<Number> values_;
    bool is_one_ = false;
};

// Divides the memory into messages: at the offsets, or in equal parts along the first axis.
std::vector<Publisher::Outgoing> divide(const py::object& data, std::span<const std::byte> bytes,
                                        const py::object& offsets) {
    std::vector<Publisher::Outgoing> messages;
    if (offsets.is_none()) {
        const py::array array = py::array::ensure(data);
        if (!array || array.ndim() == 0) {
            throw py::value_error{"without offsets, data must be an array whose first axis has the "
                                  "messages"};
        }
        const auto count = static_cast<std::size_t>(array.shape(0));
        const std::size_t size = count == 0 ? 0 : bytes.size() / count;
        messages.reserve(count);
        for (std::size_t i = 0; i < count; ++i)
            messages.push_back({.bytes = bytes.subspan(i * size, size)});
        return messages;
    }
    if (PySequence_Check(offsets.ptr()) == 0)
        throw py::type_error{"offsets must be an array or a list of integers"};
    const auto count = static_cast<std::size_t>(py::len(offsets));
    if (count == 0)
        throw py::value_error{"offsets must have one element more than there are messages"};
    const PerMessage<std::uint64_t> bounds{offsets, "offsets", count};
    messages.reserve(count - 1);
    for (std::size_t i = 0; i + 1 < count; ++i) {
        const std::uint64_t begin = bounds[i];
        const std::uint64_t end = bounds[i + 1];
        if (begin > end || end > bytes.size()) {
            throw py::value_error{"offsets must ascend and end within the data: message " +
                                  std::to_string(i) + " would be bytes " + std::to_string(begin) +
                                  " to " + std::to_string(end) + " of " +
                                  std::to_string(bytes.size())};
        }
        messages.push_back({.bytes = bytes.subspan(begin, end - begin)});
    }
    return messages;
}

std::size_t PythonPublisher::publish_batch(const py::object& fids, const py::object& data,
                                           const py::object& offsets, const py::object& status,
                                           const py::object& timeout) {
    its();
    const Bytes bytes{data};
    std::vector<Publisher::Outgoing> messages = divide(data, bytes.span(), offsets);
    const PerMessage<std::uint64_t> each_fid{fids, "fids", messages.size()};
    const PerMessage<std::uint8_t> each_status{status, "status", messages.size()};
    for (std::size_t i = 0; i < messages.size(); ++i) {
        messages[i].fid = each_fid[i];
        messages[i].status = each_status[i];
    }
    if (!messages.empty()) publish_all(messages, timeout);
    return messages.size();
}

void PythonPublisher::announce(const Bus& bus, std::string name, const py::object& fids,
                               std::map<std::string, std::string> parameters) {
    its();
    pubsub::Announcement own;
    own.name = std::move(name);
    own.parameters = std::move(parameters);
    const bool has_meanings = py::isinstance<py::dict>(fids); // meaning -> fids
    const auto add = [&](py::handle value, const std::string& meaning) {
        const FidSet set = to_fids(value);
        for (const FidRange& range : set.ranges())
            own.fids.push_back({.fids = range, .meaning = meaning});
    };
    if (has_meanings) {
        for (const auto& [meaning, value] : py::reinterpret_borrow<py::dict>(fids))
            add(value, py::str(meaning));
    } else {
        add(fids, "");
    }
    without_gil([&] { publisher_->announce(bus, std::move(own)); });
}

// --- messages ---------------------------------------------------------------------------------

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// Any thread: the last reference may end on each.
class TakenPool : public std::enable_shared_from_this<TakenPool> {
  public:
    std::shared_ptr<Taken> take() {
        std::unique_ptr<Taken> taken;
        if (const std::unique_lock lock{mutex_, std::try_to_lock}; lock && !spare_.empty()) {
            taken = std::move(spare_.back());
            spare_.pop_back();
        }
        if (!taken) taken = std::make_unique<Taken>();
        return {taken.release(), [pool = shared_from_this()](Taken* used) { pool->keep(used); }};
    }

  private:
    void keep(Taken* used) {
        std::unique_ptr<Taken> taken{used};
        taken->batch.clear();
        taken->next = 0;
        // In a forked child process the lock may never be released: a thread of the parent held it.
        if (const std::unique_lock lock{mutex_, std::try_to_lock};
            lock && spare_.size() < spare_limit && taken->batch.capacity() <= spare_bytes) {
            spare_.push_back(std::move(taken));
        }
    }

    static constexpr std::size_t spare_limit = 4;
    static constexpr std::size_t spare_bytes = std::size_t{2} << 20; // of each
    std::mutex mutex_;
    std::vector<std::unique_ptr<Taken>> spare_;
};

// --- Subscriber -------------------------------------------------------------------------------

void read_subscribe_socket(Options& options, pubsub::SubscribeSocket::Options& to) {
    options.group("session", [&](Options& group) { read_session(group, to.session); })
        .read("local_host", to.local_host)
        .read("receive_buffer_limit_bytes", to.receive_buffer_limit_bytes)
        .read("largest_message_bytes", to.largest_message_bytes)
        .read("fid_limit", to.fid_limit)
        .read("wait_for_publisher", to.wait_for_publisher)
        .read("retry_interval", to.retry_interval)
        .read("retry_limit", to.retry_limit)
        .read("history", to.history);
    if (const auto given = options.take("fallback_addresses"))
        to.fallback_addresses = to_addresses(given->first);
}

Subscriber::Options read_subscriber(Options& options) {
    Subscriber::Options to;
    to.context = read_context(options);
    options.read("queue_limit_messages", to.queue_limit_messages)
        .read("queue_limit_bytes", to.queue_limit_bytes)
        .read("when_full", to.when_full)
        .read("disconnect_after", to.disconnect_after)
        .read("silence_hint", to.silence_hint)
        .group("socket", [&](Options& group) { read_subscribe_socket(group, to.socket); });
    if (const auto given = options.take("reconnect")) {
        const std::string name = py::str(given->first);
        if (name != "on_loss" && name != "always" && name != "never") {
            throw py::value_error{
                given->second + " must be 'on_loss', 'always' or 'never', and not '" + name + "'"};
        }
        to.reconnect = name == "always"  ? Reconnect::always
                       : name == "never" ? Reconnect::never
                                         : Reconnect::on_loss;
    }
    to.key = read_key(options);
    options.finish();
    return to;
}

class PythonSubscriber final : public Connected {
  public:
    PythonSubscriber(const py::object& publishers, const py::kwargs& values)
        : Connected{"Subscriber"} {
        Options options{values, "Subscriber"};
        Subscriber::Options given = read_subscriber(options);
        context_ = given.context;
        if (py::isinstance<Bus>(publishers)) {
            const Bus& bus = publishers.cast<const Bus&>();
            subscriber_ =
                without_gil([&] { return std::make_unique<Subscriber>(bus, std::move(given)); });
        } else {
            AddressList addresses = to_addresses(publishers);
            subscriber_ = without_gil([&] {
                return std::make_unique<Subscriber>(std::move(addresses), std::move(given));
            });
        }
    }
    ~PythonSubscriber() override {
        if (subscriber_ && !is_inherited()) destroy(subscriber_, *context_, is_abandoned());
    }

    void subscribe(const py::object& fids, const py::object& policy) {
        const FidSet set = to_fids(fids);
        const auto to = to_policy(policy, "policy");
        if (its().is_closed()) {
            raise("ClosedError",
                  "subscribe: the subscriber is closed, by close() or because its publishers have "
                  "closed; create another one",
                  "closed");
        }
        subscriber_->subscribe(set, to);
    }
    void unsubscribe(const py::object& fids) { its().unsubscribe(to_fids(fids)); }
    bool wait_until_subscribed(const py::args& unnamed, const py::object& fids,
                               const py::object& timeout) {
        its();
        if (!unnamed.empty()) {
            throw py::type_error{"wait_until_subscribed() takes its arguments by name: "
                                 "wait_until_subscribed(timeout=1), or with fids=..."};
        }
        std::optional<FidSet> these;
        if (!fids.is_none()) these = to_fids(fids);
        return wait_for_true(to_timeout(timeout), [&](milliseconds time) {
            return these ? subscriber_->wait_until_subscribed(*these, time)
                         : subscriber_->wait_until_subscribed(time);
        });
    }
    std::optional<PythonMessage> receive(const py::object& timeout) {
        std::optional<PythonMessage> message;
        take(to_timeout(timeout), message);
        return message;
    }
    PythonMessage next() {
        std::optional<PythonMessage> message;
        if (!take({}, message)) throw py::stop_iteration{};
        return std::move(*message);
    }
    // For asyncio: the next message, None if none is there now, or the end.
    std::optional<PythonMessage> next_now() {
        std::optional<PythonMessage> message;
        if (take(milliseconds{0}, message) || !is_at_end_) return message;
        PyErr_SetNone(PyExc_StopAsyncIteration);
        throw py::error_already_set{};
    }
    std::optional<PythonBatch> receive_batch(const py::object& limit, const py::object& timeout) {
        return take_batch(limit, to_timeout(timeout));
    }
    // For asyncio, as next_now().
    std::optional<PythonBatch> next_batch_now(const py::object& limit) {
        std::optional<PythonBatch> batch = take_batch(limit, milliseconds{0});
        if (batch || !is_at_end_) return batch;
        PyErr_SetNone(PyExc_StopAsyncIteration);
        throw py::error_already_set{};
    }
    // Nothing more arrives, and no message is left in the queue.
    bool ended() const {
        its();
        return is_at_end_;
    }
    int fileno() const { return its().pollable_fd(); }
    int watch() {
        check_process();
        return watches_->add();
    }
    void unwatch(int descriptor) { watches_->remove(descriptor); }
    py::dict stats() const {
        const Subscriber::Stats all = its().stats();
        return py::dict(py::arg("messages") = all.messages, py::arg("lost") = all.lost,
                        py::arg("lost_at_end") = all.lost_at_end, py::arg("dropped") = all.dropped,
                        py::arg("restarts") = all.restarts,
                        py::arg("unknown_tails") = all.unknown_tails,
                        py::arg("publishers") = all.publishers);
    }
    void close_in_order() {
        its();
        close();
    }
    bool closed() const { return its().is_closed(); }

    void begin_close() override {
        if (!subscriber_->is_closed())
            context_->post_always([subscriber = subscriber_.get()] { subscriber->close(); });
    }
    bool is_closed() const noexcept override { return subscriber_->is_closed(); }

  private:
    Subscriber& its() const {
        check_process();
        return *subscriber_;
    }
    std::optional<PythonBatch> take_batch(const py::object& limit, Timeout timeout) {
        const std::size_t most =
            limit.is_none() ? std::numeric_limits<std::size_t>::max() : to_count(limit, "max", 1);
        std::optional<PythonBatch> batch;
        take_pending(timeout, [&](const std::shared_ptr<Taken>& taken) {
            batch.emplace(taken, most);
            return true;
        });
        return batch;
    }
    bool take(Timeout timeout, std::optional<PythonMessage>& message) {
        return take_pending(timeout, [&](const std::shared_ptr<Taken>& taken) {
            while (taken->left() > 0) {
                const std::size_t index = taken->next++;
                if (taken->batch[index].is_gap) continue;
                message.emplace(message_of(*taken, index));
                return true;
            }
            return false;
        });
    }
    template <typename Use>
    bool take_pending(Timeout timeout, Use use);
    bool refill(milliseconds time);

    std::optional<Context> context_;
    std::unique_ptr<Subscriber> subscriber_;
    // Of what the descriptor does not show: messages in pending_, and the end, after one thread has
    // seen it.
    const std::shared_ptr<Watches> watches_ = std::make_shared<Watches>();
    const std::shared_ptr<TakenPool> pool_ = std::make_shared<TakenPool>();
    std::timed_mutex reading_;       // held while a thread waits for messages, without the GIL
    std::shared_ptr<Taken> pending_; // of reading_
    std::atomic<bool> is_at_end_{false};
};

// Calls use(taken) with a batch that has items left until it returns true. Returns false after the
// time-out or at the end.
template <typename Use>
bool PythonSubscriber::take_pending(Timeout timeout, Use use) {
    its();
    const auto use_pending = [&] {
        const bool used = pending_ && pending_->left() > 0 && use(pending_);
        if (pending_ && pending_->left() == 0) pending_.reset();
        if (pending_) watches_->notify();
        return used;
    };
    if (const std::unique_lock lock{reading_, std::try_to_lock}; lock && use_pending()) return true;
    bool used = false;
    wait_in_steps(timeout, [&](milliseconds time) {
        const std::unique_lock lock{reading_, time};
        if (!lock) return false;
        used = use_pending() || (refill(time) && use_pending());
        return used || is_at_end_;
    });
    return used;
}

// Takes the next batch of the queue; reading_ is held.
bool PythonSubscriber::refill(milliseconds time) {
    const bool was_closed = subscriber_->is_closed(); // if so, all messages were in the queue
    const std::shared_ptr<Taken> taken = pool_->take();
    if (subscriber_->receive(taken->batch, time) == 0) {
        if (was_closed && !is_at_end_.exchange(true)) watches_->notify();
        return false;
    }
    taken->time_ns = now_ns();
    pending_ = taken;
    return true;
}

std::string describe(const PythonMessage& message) {
    return "<Message fid=" + to_string(message.fid) +
           " size=" + std::to_string(message.bytes.size()) +
           " status=" + std::to_string(message.status) +
           " lost_before=" + std::to_string(message.lost_before) + ">";
}

void bind_publisher(py::module_& module) {
    const py::arg fid{"fid"};
    py::class_<PythonPublisher> its{module, "Publisher", doc::publisher};
    add_with(its);
    add_init<PythonPublisher>(its, "Publisher(addresses, **options)");
    its.def("publish", &PythonPublisher::publish, fid, py::arg("message"), py::arg("status") = 0,
            py::kw_only{}, py::arg("timeout") = py::none{}, doc::publish)
        .def("try_publish", &PythonPublisher::try_publish, fid, py::arg("message"),
             py::arg("status") = 0, doc::try_publish)
        .def("publish_batch", &PythonPublisher::publish_batch, py::arg("fids"), py::arg("data"),
             py::arg("offsets") = py::none{}, py::kw_only{}, py::arg("status") = 0,
             py::arg("timeout") = py::none{}, doc::publish_batch)
        .def("wait_for_subscribers", &PythonPublisher::wait_for_subscribers, py::arg("count") = 1,
             py::arg("timeout") = py::none{}, doc::wait_for_subscribers)
        .def("announce", &PythonPublisher::announce, py::arg("bus"), py::arg("name"),
             py::arg("fids"), py::arg("parameters") = std::map<std::string, std::string>{},
             doc::announce)
        .def_property_readonly("address", &PythonPublisher::address, doc::publisher_address)
        .def_property_readonly("endpoints", &PythonPublisher::endpoints, doc::publisher_endpoints)
        .def("_stats", &PythonPublisher::stats)
        .def("close", &PythonPublisher::close_in_order, doc::publisher_close)
        .def_property_readonly("closed", &PythonPublisher::closed, doc::closed);
}

void bind_subscriber(py::module_& module) {
    const py::arg_v timeout{"timeout", py::none{}};
    py::class_<PythonSubscriber> its{module, "Subscriber", doc::subscriber};
    add_with(its);
    add_init<PythonSubscriber>(its, "Subscriber(publishers, **options)");
    its.def("subscribe", &PythonSubscriber::subscribe, py::arg("fids"),
            py::arg("policy") = py::none{}, doc::subscribe)
        .def("unsubscribe", &PythonSubscriber::unsubscribe, py::arg("fids"), doc::unsubscribe)
        .def("wait_until_subscribed", &PythonSubscriber::wait_until_subscribed,
             py::arg("fids") = py::none{}, timeout, doc::wait_until_subscribed)
        .def("receive", &PythonSubscriber::receive, timeout, doc::receive)
        .def("receive_batch", &PythonSubscriber::receive_batch, py::arg("max") = py::none{},
             timeout, doc::receive_batch)
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &PythonSubscriber::next)
        .def("_next_now", &PythonSubscriber::next_now)
        .def("_next_batch_now", &PythonSubscriber::next_batch_now, py::arg("max"))
        .def("_watch", &PythonSubscriber::watch)
        .def("_unwatch", &PythonSubscriber::unwatch, py::arg("descriptor"))
        .def("fileno", &PythonSubscriber::fileno, doc::fileno)
        .def("_stats", &PythonSubscriber::stats)
        .def("close", &PythonSubscriber::close_in_order, doc::subscriber_close)
        .def_property_readonly("closed", &PythonSubscriber::closed, doc::subscriber_closed)
        .def_property_readonly("ended", &PythonSubscriber::ended, doc::ended);
}

void bind_messages(py::module_& module) {
    using Message = PythonMessage;
    py::class_<Message> message{module, "Message", py::buffer_protocol(), doc::message};
    add_bytes(message, [](const Message& its) { return its.bytes.bytes(); });
    message
        .def_property_readonly(
            "fid", [](const Message& its) { return to_integer(its.fid); }, doc::message_fid)
        .def_readonly("status", &Message::status, doc::message_status)
        .def_readonly("lost_before", &Message::lost_before, doc::message_lost_before)
        .def_readonly("time", &Message::time_ns, doc::message_time)
        .def_readonly("publish_time", &Message::publish_ns, doc::message_publish_time)
        .def_readonly("copied", &Message::is_copied, doc::message_copied)
        .def("__repr__", &describe);
    PYBIND11_NUMPY_DTYPE(Record, fid, offset, lost_before, time, size, status);
    py::class_<PythonBatch>{module, "Batch", doc::batch}
        .def("__len__", &PythonBatch::size)
        .def("__getitem__", &PythonBatch::at, py::arg("index"))
        .def_property_readonly("records", &PythonBatch::records, doc::batch_records)
        .def_property_readonly("buffer", &PythonBatch::buffer, doc::batch_buffer)
        .def_property_readonly("gaps", &PythonBatch::gaps, doc::batch_gaps)
        .def("view", &PythonBatch::view, py::arg("index"), doc::view)
        .def("as_array", &PythonBatch::as_array, py::arg("dtype"), doc::as_array);
}

} // namespace

void add_pubsub(py::module_& module) {
    bind_messages(module);
    bind_publisher(module);
    bind_subscriber(module);
}

} // namespace netio::python
