// SPDX-License-Identifier: Apache-2.0

// The extension module netio_daq._core, and its smaller classes: sets of fids, contexts, keys, the
// sender, the bus, the log.

#include "netio/access/protection.hpp"
#include "netio/base/version.hpp"
#include "netio/loop/process.hpp"
#include "netio/messages/sender.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/discovery/bus.hpp"
#include "python/docstrings.hpp"
#include "python/support.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

namespace netio::python {
namespace {

access::Protection to_protection(const std::string& name) {
    for (const auto protection :
         {access::Protection::none, access::Protection::integrity, access::Protection::privacy}) {
        if (access::to_string(protection) == name) return protection;
    }
    throw py::value_error{"a protection is 'none', 'integrity' or 'privacy', and not '" + name +
                          "'"};
}

// --- Sender -----------------------------------------------------------------------------------

class PythonSender final : public Connected {
  public:
    PythonSender(const py::object& address, const py::kwargs& values) : Connected{"Sender"} {
        const std::string receiver = to_address_text(address);
        Options options{values, "Sender"};
        Sender::Options its;
        its.context = read_context(options);
        options.read("send_timeout", its.send_timeout)
            .read("queue_limit_bytes", its.queue_limit_bytes)
            .read("close_timeout", its.close_timeout)
            .read("close_limit", its.close_limit);
        its.key = read_key(options);
        options.finish();
        context_ = its.context;
        send_timeout_ = its.send_timeout;
        receiver_ = receiver;
        sender_ = without_gil(
            [&] { return std::make_unique<Sender>(AddressList{receiver}, std::move(its)); });
    }
    ~PythonSender() override {
        if (sender_ && !is_inherited()) destroy(sender_, *context_, is_abandoned());
    }

    void send(const py::object& message, const py::object& timeout) {
        check_process();
        const Bytes bytes{message};
        const milliseconds limit = timeout.is_none() ? send_timeout_ : *to_timeout(timeout);
        Status status = Status::again;
        poll_until(limit, [&] {
            status = sender_->try_send(bytes.span());
            return status != Status::again;
        });
        if (status == Status::ok) return;
        if (status == Status::again) {
            raise("TimeoutError",
                  "sender to " + receiver_ + ": no space for the message for " +
                      std::to_string(limit.count()) + " ms (" +
                      (timeout.is_none() ? "send_timeout" : "timeout") + ")",
                  "again");
        }
        without_gil([&] { sender_->send(bytes.span()); }); // throws the reason without waiting
    }
    std::string try_send(const py::object& message) {
        check_process();
        const Bytes bytes{message};
        const Status status = without_gil([&] { return sender_->try_send(bytes.span()); });
        return name_of(status);
    }
    py::dict stats() const {
        check_process();
        const Sender::Stats all = sender_->stats();
        return py::dict(py::arg("sent") = all.sent, py::arg("unsent") = all.unsent,
                        py::arg("unconfirmed_frames") = all.unconfirmed_frames,
                        py::arg("connected") = all.connected);
    }
    void close_in_order() {
        check_process();
        close();
    }
    bool closed() const {
        check_process();
        return sender_->is_closed();
    }

    void begin_close() override {
        if (!sender_->is_closed())
            context_->post_always([sender = sender_.get()] { sender->close(); });
    }
    bool is_closed() const noexcept override { return sender_->is_closed(); }

  private:
    std::optional<Context> context_;
    milliseconds send_timeout_{};
    std::string receiver_;
    std::unique_ptr<Sender> sender_;
};

// --- the bus ----------------------------------------------------------------------------------

// The first look at a bus.
struct Look final : pubsub::Discovery::Handler {
    void on_announced(const pubsub::Announcement& announcement) override {
        const std::lock_guard lock{mutex};
        found[announcement.name] = announcement;
    }
    void on_gone(const std::string& name) override {
        const std::lock_guard lock{mutex};
        found.erase(name);
    }
    void on_warning(const std::string& what) override {
        const std::lock_guard lock{mutex};
        trouble = what;
        changed.notify_all();
    }
    void on_caught_up() override {
        const std::lock_guard lock{mutex};
        is_complete = true;
        changed.notify_all();
    }

    std::mutex mutex; // of what follows
    std::condition_variable changed;
    std::map<std::string, pubsub::Announcement> found;
    std::string trouble;
    bool is_complete = false;
};

py::dict to_dict(const pubsub::Announcement& its) {
    py::list fids;
    for (const pubsub::AnnouncedFids& each : its.fids)
        fids.append(
            py::make_tuple(to_integer(each.fids.first), to_integer(each.fids.last), each.meaning));
    return py::dict(py::arg("name") = its.name, py::arg("instance") = its.instance,
                    py::arg("fids") = fids, py::arg("addresses") = its.addresses,
                    py::arg("mode") = its.mode, py::arg("parameters") = its.parameters,
                    py::arg("host") = its.host, py::arg("pid") = its.pid,
                    py::arg("started") = its.started, py::arg("metrics") = its.metrics);
}

py::list publishers(const Bus& bus, const py::object& timeout) {
    const Timeout limit = to_timeout(timeout);
    Look look;
    std::optional<Context> context;
    std::unique_ptr<pubsub::Discovery> discovery;
    without_gil([&] {
        context.emplace();
        context->run([&] {
            discovery = pubsub::open_bus(context->loop(), bus.where, bus.options);
            discovery->watch(look);
        });
    });
    const auto end = [&] { context->run([&] { discovery.reset(); }); };
    bool is_complete = false;
    try {
        is_complete = wait_in_steps(limit, [&](milliseconds time) {
            std::unique_lock lock{look.mutex};
            return look.changed.wait_for(lock, time,
                                         [&] { return look.is_complete || !look.trouble.empty(); });
        });
    } catch (...) {
        end();
        throw;
    }
    without_gil(end);
    if (!look.trouble.empty()) raise("Error", look.trouble, "failed");
    if (!is_complete) {
        raise("TimeoutError",
              "the bus " + bus.where + " was not read completely within the timeout", "again");
    }
    py::list all;
    for (const auto& [name, announcement] : look.found)
        all.append(to_dict(announcement));
    return all;
}

// --- the log ----------------------------------------------------------------------------------

// Lines of the library's threads, for a thread of Python.
class LogLines {
  public:
    void put(std::string_view line) {
        const std::lock_guard lock{mutex_};
        if (lines_.size() >= line_limit) {
            ++dropped_;
        } else {
            lines_.emplace_back(line);
        }
        changed_.notify_all();
    }
    std::vector<std::string> take(milliseconds time) {
        std::unique_lock lock{mutex_};
        changed_.wait_for(lock, time, [this] { return !lines_.empty(); });
        std::vector<std::string> taken{lines_.begin(), lines_.end()};
        lines_.clear();
        if (const std::size_t dropped = std::exchange(dropped_, 0); dropped > 0) {
            taken.push_back(std::to_string(dropped) + " log lines were dropped: more than " +
                            std::to_string(line_limit) + " were waiting");
        }
        return taken;
    }

  private:
    static constexpr std::size_t line_limit = 1000;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::string> lines_;
    std::size_t dropped_ = 0;
};

LogLines& log_lines() {
    static PerProcess<LogLines> lines;
    return *lines;
}

void bind_log(py::module_& module) {
    module.def("_log_to_queue", [] {
        without_gil([] { set_log([](std::string_view line) { log_lines().put(line); }); });
    });
    module.def("_log_to_nothing", [] { without_gil([] { set_log({}); }); });
    module.def("_write_log",
               [](const std::string& line) { without_gil([&] { write_log(line); }); });
    module.def("_take_log", [](double seconds) {
        std::vector<std::string> lines;
        wait_in_steps(to_timeout(py::float_{seconds}), [&](milliseconds time) {
            lines = log_lines().take(time);
            return !lines.empty();
        });
        py::list texts;
        for (const std::string& line : lines)
            texts.append(to_text(line));
        return texts;
    });
}

// --- the smaller classes ----------------------------------------------------------------------

void bind_values(py::module_& module) {
    py::class_<FidSet>{module, "FidSet", doc::fid_set}
        .def(py::init([](const py::object& fids) { return to_fids(fids); }),
             py::arg("fids") = py::tuple{})
        .def("__contains__",
             [](const FidSet& its, const py::object& fid) { return its.contains(to_fid(fid)); })
        .def("__iter__", [](const FidSet& its) { return py::iter(to_python(its)); })
        .def("__len__", [](const FidSet& its) { return its.ranges().size(); })
        .def(
            "__eq__", [](const FidSet& its, const FidSet& other) { return its == other; },
            py::is_operator{})
        .def("__reduce_ex__",
             [](const FidSet& its, const py::object&) {
                 return py::make_tuple(py::type::of<FidSet>(), py::make_tuple(to_python(its)));
             })
        .def("__repr__", [](const FidSet& its) {
            return "FidSet(" + py::repr(to_python(its)).cast<std::string>() + ")";
        });
    py::class_<Bus>{module, "Bus", doc::bus}.def(
        py::init([](const py::object& where, const py::kwargs& values) {
            Options options{values, "Bus"};
            Bus bus{.where = to_path(where, "where")};
            options.read("lease", bus.options.lease)
                .read("poll", bus.options.poll)
                .read("publisher_limit", bus.options.publisher_limit)
                .finish();
            return bus;
        }),
        py::arg("where"));
    py::class_<SharedContext>{module, "Context", doc::context}.def(
        py::init([](const py::kwargs& values) {
            Options options{values, "Context"};
            Context::Options its;
            FabricOptions& fabric = its.fabric;
            options
                .group(
                    "fabric",
                    [&](Options& group) {
                        group.read("provider", fabric.provider)
                            .read("half_handshake_timeout", fabric.half_handshake_timeout)
                            .read("handshake_timeout", fabric.handshake_timeout)
                            .read("pending_handshakes_per_host", fabric.pending_handshakes_per_host)
                            .read("attempts_per_address_limit", fabric.attempts_per_address_limit)
                            .read("windows_limit", fabric.windows_limit)
                            .read("copies_limit", fabric.copies_limit)
                            .read("queue_endpoint_limit", fabric.queue_endpoint_limit)
                            .read("queue_entry_limit", fabric.queue_entry_limit);
                    })
                .finish();
            return std::make_unique<SharedContext>(
                without_gil([&] { return Context{std::move(its)}; }));
        }));
}

void bind_keys(py::module_& module) {
    py::class_<ServerKeys::Options>{module, "ServerKeys", doc::server_keys}.def(
        py::init(
            [](const py::object& file, const std::string& protection, const py::kwargs& values) {
                Options options{values, "ServerKeys"};
                ServerKeys::Options its;
                its.file = to_path(file, "file");
                its.min_protection = to_protection(protection);
                options.read("connections_per_host", its.connections_per_host)
                    .read("look_interval", its.look_interval);
                if (const auto given = options.take("advertised_addresses"))
                    its.advertised_addresses = to_addresses(given->first);
                options.finish();
                return its;
            }),
        py::arg("file"), py::arg("min_protection") = "none");
    py::class_<ClientKey, std::shared_ptr<ClientKey>>{module, "ClientKey", doc::client_key}.def(
        py::init([](const py::object& file, const std::string& protection) {
            const ClientKey::Options its{.file = to_path(file, "file"),
                                         .protection = to_protection(protection)};
            return without_gil([&] { return std::make_shared<ClientKey>(its); });
        }),
        py::arg("file"), py::arg("protection") = "none");
}

void bind_sender(py::module_& module) {
    py::class_<PythonSender> its{module, "Sender", doc::sender};
    add_with(its);
    add_init<PythonSender>(its, "Sender(receiver, **options)");
    its.def("send", &PythonSender::send, py::arg("message"), py::arg("timeout") = py::none{},
            doc::send)
        .def("try_send", &PythonSender::try_send, py::arg("message"), doc::try_send)
        .def("_stats", &PythonSender::stats)
        .def("close", &PythonSender::close_in_order, doc::sender_close)
        .def_property_readonly("closed", &PythonSender::closed, doc::closed);
}

} // namespace

// pybind11 has one state for all interpreters of a process; an exception in another one waits for a
// lock that is never released.
void require_main_interpreter() {
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return;
    throw py::import_error{"netio_daq cannot be used in a sub-interpreter: use threads, or "
                           "processes of multiprocessing"};
}

PYBIND11_MODULE(_core, module) {
    require_main_interpreter();
    translate_exceptions();
    module.attr("__version__") = version();
    bind_values(module);
    bind_keys(module);
    bind_sender(module);
    bind_log(module);
    add_pubsub(module);
    add_publish_socket(module);
    add_messages(module);
    add_requests(module);
    add_recording(module);
    add_stream(module);
    module.def("_publishers", &publishers, py::arg("bus"), py::arg("timeout"));
    module.def("_close_all_at_exit", &close_all_at_exit);
    module.def("_require_main_interpreter", &require_main_interpreter);
    protect_classes(module);
}

} // namespace netio::python
