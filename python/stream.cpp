// SPDX-License-Identifier: Apache-2.0

// Stream and StreamListener of the Python module, over BlockingStream and BlockingListener, which
// only one thread may use at a time.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "python/docstrings.hpp"
#include "python/support.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>

namespace netio::python {
namespace {

using stream::BlockingListener;
using stream::BlockingStream;
using stream::StreamError;

// Gives the loop of a listener and its streams, or of a connected stream, to one thread at a time.
// A thread that waits for its peer lets others run first. Used without the GIL.
class Turn {
  public:
    Turn() : fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (fd_ < 0) throw FabricError{{errno, std::system_category()}, "cannot create an eventfd"};
    }
    ~Turn() { ::close(fd_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    int descriptor() const noexcept { return fd_; } // readable: another thread waits for its turn

    // Calls use(time) in this thread's turn; returns false if there was none in time. `first`:
    // before threads that wait for their peers, which are interrupted.
    template <typename Use>
    bool take(milliseconds time, bool first, Use use) {
        const TimePoint end = Clock::now() + time;
        std::unique_lock lock{mutex_};
        const auto is_free = [&] { return !is_taken_ && (first || waiting_first_ == 0); };
        if (!is_free()) {
            static_cast<void>(::eventfd_write(fd_, 1));
            ++waiting_;
            waiting_first_ += first ? 1U : 0U;
            const bool has_turn = changed_.wait_until(lock, end, is_free);
            --waiting_;
            waiting_first_ -= first ? 1U : 0U;
            if (!has_turn) return false;
        }
        is_taken_ = true;
        eventfd_t count = 0;
        static_cast<void>(::eventfd_read(fd_, &count));
        const milliseconds left = std::chrono::ceil<milliseconds>(end - Clock::now());
        const milliseconds limit{waiting_ > 0 ? 5 : 1000};
        lock.unlock();
        const Release release{*this};
        return use(std::clamp(left, milliseconds{1}, limit));
    }

  private:
    struct Release {
        Turn& turn;
        ~Release() {
            const std::lock_guard lock{turn.mutex_};
            turn.is_taken_ = false;
            turn.changed_.notify_all();
        }
    };

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_taken_ = false;
    unsigned waiting_ = 0;
    unsigned waiting_first_ = 0;
    int fd_;
};

struct Limits {
    milliseconds call{0};
    milliseconds progress{0};
};

// The time limit of one call.
class CallTime {
  public:
    CallTime(const Limits& limits, const py::object& timeout)
        : progress_{limits.progress}, name_{timeout.is_none() ? "call_timeout" : "timeout"} {
        if (!timeout.is_none()) {
            call_ = *to_timeout(timeout);
        } else if (limits.call.count() > 0) {
            call_ = limits.call;
        }
        if (call_) end_ = Clock::now() + std::min(*call_, longest_time);
    }

    // Until a byte must move.
    Timeout step() const {
        Timeout left;
        if (call_)
            left = std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(end_ - Clock::now()));
        if (progress_.count() > 0) left = left ? std::min(*left, progress_) : progress_;
        return left;
    }
    [[noreturn]] void fail(const std::string& call, const std::string& effect,
                           std::size_t accepted = 0) const {
        const bool is_call = call_ && (progress_.count() == 0 || Clock::now() >= end_);
        const std::string limit =
            is_call ? std::to_string(call_->count()) + " ms (" + name_ + ")"
                    : std::to_string(progress_.count()) + " ms (progress_timeout)";
        try {
            raise("TimeoutError", call + ": not finished within " + limit + "; " + effect, "again");
        } catch (py::error_already_set& error) {
            error.value().attr("accepted") = accepted;
            throw;
        }
    }

  private:
    milliseconds progress_;
    Timeout call_;
    TimePoint end_ = TimePoint::max();
    const char* name_;
};

// Calls of a stream that ended only because their step was over.
template <typename Call>
bool in_time(Call call) {
    try {
        call();
        return true;
    } catch (const StreamError& error) {
        if (error.kind() != StreamError::Kind::timed_out) throw;
        return false;
    }
}

BlockingStream::Options read_stream(Options& options, Limits& limits, bool listens) {
    BlockingStream::Options to;
    options.read("provider", to.provider)
        .read("call_timeout", limits.call)
        .read("progress_timeout", limits.progress)
        .read("farewell_timeout", to.farewell_timeout);
    if (listens) {
        options.read("allow_remote_anonymous", to.allow_remote_anonymous);
        if (const py::object given = options.take_object<ServerKeys::Options>("keys"))
            to.keys = given.cast<const ServerKeys::Options&>();
    } else {
        options.read("local_host", to.stream.local_host);
        to.stream.key = read_key(options);
    }
    options.finish();
    return to;
}

// --- Stream -----------------------------------------------------------------------------------

class PythonStream final : public Connected {
  public:
    PythonStream(BlockingStream stream, std::shared_ptr<Turn> turn, const Limits& limits)
        : Connected{"Stream"}, stream_{std::move(stream)}, turn_{std::move(turn)}, limits_{limits} {
    }
    ~PythonStream() override {
        if (is_inherited() || !stream_) return;
        const py::error_scope keep_error;
        without_gil([&] {
            while (!turn_->take(step_time, true,
                                [&](milliseconds) { return stream_.reset(), true; })) {
            }
        });
    }

    static std::unique_ptr<PythonStream> connect(const py::object& its_address,
                                                 const py::kwargs& values);
    py::bytes read(const py::object& size, const py::object& timeout) {
        std::vector<std::byte> memory(std::min(to_count(size, "size", 0), most_read_bytes));
        const std::size_t count = read_some(memory, timeout, "read");
        return {reinterpret_cast<const char*>(memory.data()), count};
    }
    std::size_t readinto(const py::object& buffer, const py::object& timeout) {
        const Bytes bytes{buffer, true};
        return read_some(bytes.span(), timeout, "readinto");
    }
    py::bytes read_exactly(const py::object& bytes, const py::object& timeout);
    void write(const py::object& data, const py::object& timeout);
    void shutdown_send() {
        check_process();
        wait_in_steps({}, [&](milliseconds time) {
            return turn_->take(time, true,
                               [&](milliseconds) { return its().shutdown_send(), true; });
        });
    }
    void close_in_order(const py::object& timeout);
    std::string peer_address() {
        return in_turn([&] { return its().peer_address(); });
    }
    py::dict counters();
    bool closed() const noexcept { return is_closed_; }

    // It is aborted, as in C++.
    void begin_close() override { is_closed_ = true; }
    bool is_closed() const noexcept override { return is_closed_; }

  private:
    static constexpr std::size_t most_read_bytes = std::size_t{1} << 20;
    static constexpr std::size_t copied_bytes = std::size_t{64}
                                                << 10; // such a write can be repeated

    BlockingStream& its() {
        if (!stream_) throw StreamError{StreamError::Kind::closed, "the stream is closed"};
        return *stream_;
    }
    template <typename Get>
    std::invoke_result_t<Get> in_turn(Get get) {
        check_process();
        std::optional<std::invoke_result_t<Get>> value;
        wait_in_steps({}, [&](milliseconds time) {
            return turn_->take(time, true,
                               [&](milliseconds) { return value.emplace(get()), true; });
        });
        return std::move(*value);
    }
    std::size_t read_some(std::span<std::byte> memory, const py::object& timeout,
                          const char* call) {
        const CallTime time{limits_, timeout};
        std::size_t count = 0;
        if (!read_step(memory, time, count)) time.fail(call, "nothing was read");
        return count;
    }
    bool read_step(std::span<std::byte> memory, const CallTime& call, std::size_t& count);

    std::optional<BlockingStream> stream_; // used in turns
    std::shared_ptr<Turn> turn_;
    Limits limits_;
    std::vector<std::byte> unread_; // of a read_exactly() that failed; used in turns
    bool has_ended_ = false;        // the same
    bool is_closed_ = false;
};

std::unique_ptr<PythonStream> PythonStream::connect(const py::object& its_address,
                                                    const py::kwargs& values) {
    const std::string address = to_address_text(its_address);
    Options options{values, "Stream.connect"};
    Limits limits;
    BlockingStream::Options its = read_stream(options, limits, false);
    its.call_timeout = limits.call;
    its.progress_timeout = limits.progress;
    // Only in a thread of its own can the call be left.
    struct Attempt {
        std::promise<BlockingStream> promise;
        std::future<BlockingStream> stream = promise.get_future();
    };
    const auto attempt = std::make_shared<Attempt>();
    std::thread{[attempt, address, its = std::move(its)] {
        try {
            attempt->promise.set_value(BlockingStream::connect(address, its));
        } catch (...) {
            attempt->promise.set_exception(std::current_exception());
        }
    }}.detach();
    wait_in_steps({}, [&](milliseconds time) {
        return attempt->stream.wait_for(time) == std::future_status::ready;
    });
    BlockingStream stream = attempt->stream.get();
    stream.set_progress_timeout(milliseconds{0});
    return std::make_unique<PythonStream>(std::move(stream), std::make_shared<Turn>(), limits);
}

// Reads what has arrived. Returns false after the time-out.
bool PythonStream::read_step(std::span<std::byte> memory, const CallTime& call,
                             std::size_t& count) {
    check_process();
    return wait_in_steps(call.step(), [&](milliseconds step) {
        return turn_->take(step, false, [&](milliseconds time) {
            if (!unread_.empty()) {
                count = std::min(memory.size(), unread_.size());
                std::copy_n(unread_.begin(), count, memory.begin());
                unread_.erase(unread_.begin(),
                              unread_.begin() + static_cast<std::ptrdiff_t>(count));
                return true;
            }
            if (memory.empty() || has_ended_) return true;
            its().set_call_timeout(time);
            auto ready = BlockingStream::Ready::descriptor;
            if (!in_time([&] { ready = its().wait_for(turn_->descriptor()); })) return false;
            if (ready != BlockingStream::Ready::peer) return false;
            its().set_call_timeout(milliseconds{0});
            count = its().read(memory);
            has_ended_ = count == 0; // wait_for() reports it only once
            return true;
        });
    });
}

py::bytes PythonStream::read_exactly(const py::object& bytes, const py::object& timeout) {
    const std::size_t size = to_count(bytes, "size", 0);
    const CallTime call{limits_, timeout};
    std::vector<std::byte> memory;
    const auto give_back = [&] {
        without_gil([&] {
            while (!turn_->take(step_time, true, [&](milliseconds) {
                unread_.insert(unread_.begin(), memory.begin(), memory.end());
                return true;
            })) {
            }
        });
    };
    try {
        while (memory.size() < size) {
            const std::size_t had = memory.size();
            memory.resize(had + std::min(size - had, most_read_bytes));
            std::size_t count = 0;
            bool in_step = false;
            try {
                in_step = read_step(std::span{memory}.subspan(had), call, count);
            } catch (...) {
                memory.resize(had);
                throw;
            }
            memory.resize(had + count);
            if (in_step && count > 0) continue;
            const std::string arrived = std::to_string(memory.size()) + " of " +
                                        std::to_string(size) +
                                        " bytes have arrived, and the next read returns them";
            if (!in_step) call.fail("read_exactly", arrived);
            throw StreamError{StreamError::Kind::ended,
                              "read_exactly: the stream has ended; " + arrived};
        }
    } catch (...) {
        give_back();
        throw;
    }
    return {reinterpret_cast<const char*>(memory.data()), memory.size()};
}

void PythonStream::write(const py::object& data, const py::object& timeout) {
    check_process();
    const Bytes bytes{data};
    const CallTime call{limits_, timeout};
    const std::span<const std::byte> all = bytes.span();
    for (std::size_t done = 0; done < all.size();) {
        const auto piece = all.subspan(done, std::min(copied_bytes, all.size() - done));
        bool first = true; // then readers get their turn, too: the peer may wait for them
        const bool written = wait_in_steps(call.step(), [&](milliseconds step) {
            return turn_->take(step, std::exchange(first, false), [&](milliseconds time) {
                its().set_call_timeout(time);
                return in_time([&] { its().write(piece); });
            });
        });
        if (!written) {
            call.fail("write",
                      std::to_string(done) + " of " + std::to_string(all.size()) +
                          " bytes were written, and the stream can be used further",
                      done);
        }
        done += piece.size();
    }
}

void PythonStream::close_in_order(const py::object& timeout) {
    check_process();
    if (is_closed_) return;
    const CallTime call{limits_, timeout};
    const bool done = wait_in_steps(call.step(), [&](milliseconds step) {
        return turn_->take(step, true, [&](milliseconds time) {
            its().set_call_timeout(time);
            return in_time([&] { its().close(); });
        });
    });
    if (!done) call.fail("close", "the stream is still closing: call close() again");
    is_closed_ = true;
}

py::dict PythonStream::counters() {
    const auto all = in_turn([&] { return its().counters(); });
    const auto& out = all.sent;
    const auto& in = all.received;
    return py::dict(
        py::arg("sent") = py::dict(py::arg("direct_bytes") = out.direct_bytes,
                                   py::arg("indirect_bytes") = out.indirect_bytes,
                                   py::arg("direct_transfers") = out.direct_transfers,
                                   py::arg("indirect_transfers") = out.indirect_transfers),
        py::arg("received") = py::dict(py::arg("direct_bytes") = in.direct_bytes,
                                       py::arg("indirect_bytes") = in.indirect_bytes,
                                       py::arg("direct_transfers") = in.direct_transfers,
                                       py::arg("indirect_transfers") = in.indirect_transfers));
}

// --- StreamListener ---------------------------------------------------------------------------

// Shared with the accepted streams, which it must outlive.
struct Listening {
    std::unique_ptr<BlockingListener> listener;
    Turn turn;
};

class PythonListener final : public Connected {
  public:
    PythonListener(const py::object& its_address, const py::kwargs& values)
        : Connected{"StreamListener"} {
        const std::string address = to_address_text(its_address);
        Options options{values, "StreamListener"};
        BlockingStream::Options its = read_stream(options, limits_, true);
        its.call_timeout = accept_step; // of each accept(), which is repeated
        without_gil(
            [&] { listening_->listener = std::make_unique<BlockingListener>(address, its); });
    }
    ~PythonListener() override {
        if (is_inherited() || !listening_->listener) return;
        const py::error_scope keep_error;
        without_gil([&] {
            listening_->listener->stop();
            listening_.reset();
        });
    }

    std::unique_ptr<PythonStream> accept(const py::object& timeout) {
        check_process();
        const CallTime call{limits_, timeout};
        std::optional<BlockingStream> stream;
        const bool accepted = wait_in_steps(call.step(), [&](milliseconds step) {
            return listening_->turn.take(step, false, [&](milliseconds) {
                return in_time([&] { stream.emplace(listening_->listener->accept()); });
            });
        });
        if (!accepted) call.fail("accept", "no peer has connected");
        return std::make_unique<PythonStream>(
            std::move(*stream), std::shared_ptr<Turn>{listening_, &listening_->turn}, limits_);
    }
    std::string address() const {
        check_process();
        return to_string(listening_->listener->address());
    }
    void stop() {
        check_process();
        is_stopped_ = true;
        without_gil([&] { listening_->listener->stop(); });
    }
    bool closed() const noexcept { return is_stopped_; }

    void begin_close() override {
        is_stopped_ = true;
        listening_->listener->stop();
    }
    bool is_closed() const noexcept override { return is_stopped_; }

  private:
    static constexpr milliseconds accept_step{20};

    Limits limits_;
    std::shared_ptr<Listening> listening_ = std::make_shared<Listening>();
    bool is_stopped_ = false;
};

// --- docstrings -------------------------------------------------------------------------------

namespace stream_doc {

constexpr char stream[] =
    R"(A byte stream in both directions; Stream.connect() or accept() of a
StreamListener creates it. Threads may use it at the same time. Bytes are transferred during calls
only: while one side waits, the other one must be in a call, too.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept() as server:
...         server.write(server.read_exactly(8))
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     client.write(b"question")
...     client.read_exactly(8), client.read()
(b'question', b'')
>>> thread.join()
)";
constexpr char connect[] =
    R"(Connects to a listener, which must be in a call. Options: call_timeout
(of each call in total) and progress_timeout (while no byte moves), farewell_timeout, provider,
local_host, key.

>>> import netio_daq as netio
>>> try:
...     netio.Stream.connect("127.0.0.1:9", call_timeout=30)
... except netio.ClosedError:
...     print("nothing listens there")
nothing listens there
)";
constexpr char read[] =
    R"(Returns what has arrived, from 1 to `size` bytes; b'' at the end of the stream.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept(timeout=60) as server:
...         server.write(b"bytes")
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     b"".join(iter(client.read, b""))
b'bytes'
>>> thread.join()
)";
constexpr char read_exactly[] =
    R"(Returns `size` bytes. If it cannot, the next read returns those that have arrived.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept(timeout=60) as server:
...         server.write(b"abcdef")
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     client.read_exactly(2), client.read_exactly(4)
(b'ab', b'cdef')
>>> thread.join()
)";
constexpr char readinto[] =
    R"(Reads into a writable buffer what has arrived; returns the number of bytes, 0 at the end.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept(timeout=60) as server:
...         server.write(b"bytes")
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     memory = bytearray(64)
...     memory[:client.readinto(memory)][:1]
bytearray(b'b')
>>> thread.join()
)";
constexpr char write[] =
    R"(Writes all bytes. After a time-out, `accepted` of the exception is the number of written bytes.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept(timeout=60) as server:
...         server.write(b"bytes", timeout=60)
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     client.read_exactly(5)
b'bytes'
>>> thread.join()
)";
constexpr char shutdown_send[] =
    R"(Ends this direction; the peer reads the end of the stream.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept(timeout=60) as server:
...         server.write(bytes(reversed(b"".join(iter(server.read, b"")))))
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     client.write(b"abc")
...     client.shutdown_send()
...     client.read_exactly(3)
b'cba'
>>> thread.join()
)";
constexpr char stream_close[] =
    R"(Ends this direction, and waits until the peer has received everything.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept(timeout=60) as server:
...         server.write(b"bytes")
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     data = client.read_exactly(5)
...     client.close(timeout=60)
...     data, client.closed
(b'bytes', True)
>>> thread.join()
)";
constexpr char counters[] =
    R"(The counters of both directions, as a dict of dicts.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept(timeout=60) as server:
...         server.write(b"bytes")
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     data = client.read_exactly(5)
...     sorted(client.counters())
['received', 'sent']
>>> thread.join()
)";
constexpr char accept[] =
    R"(Returns the next peer that connects. Raises TimeoutError.

>>> import netio_daq as netio
>>> try:
...     netio.StreamListener("127.0.0.1:0").accept(timeout=0)
... except netio.TimeoutError:
...     print("no peer has connected")
no peer has connected
)";
constexpr char stop[] =
    R"(Stops listening; a waiting accept() raises ClosedError.

>>> import netio_daq as netio
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> listener.stop()
>>> listener.closed
True
)";
constexpr char stream_listener[] =
    R"(Listens for byte streams. Options as Stream.connect(), and
allow_remote_anonymous and keys. The listener and its streams share one loop, which runs during
their calls: a call of one of them may delay another by some milliseconds.

>>> import netio_daq as netio
>>> with netio.StreamListener("127.0.0.1:0") as listener:
...     try:
...         listener.accept(timeout=0)
...     except netio.TimeoutError:
...         print("no peer has connected")
no peer has connected
)";

} // namespace stream_doc

} // namespace

void add_stream(py::module_& module) {
    const py::arg_v timeout{"timeout", py::none{}};
    const py::arg size{"size"};
    py::class_<PythonStream> its{module, "Stream", stream_doc::stream};
    add_with(its);
    its.def_static("connect", &PythonStream::connect, py::arg("address"), stream_doc::connect)
        .def("read", &PythonStream::read, py::arg("size") = 65536, timeout, stream_doc::read)
        .def("readinto", &PythonStream::readinto, py::arg("buffer"), timeout, stream_doc::readinto)
        .def("read_exactly", &PythonStream::read_exactly, size, timeout, stream_doc::read_exactly)
        .def("write", &PythonStream::write, py::arg("data"), timeout, stream_doc::write)
        .def("shutdown_send", &PythonStream::shutdown_send, stream_doc::shutdown_send)
        .def("close", &PythonStream::close_in_order, timeout, stream_doc::stream_close)
        .def_property_readonly("closed", &PythonStream::closed, doc::closed)
        .def_property_readonly("peer_address", &PythonStream::peer_address, doc::peer_address)
        .def("counters", &PythonStream::counters, stream_doc::counters);
    py::class_<PythonListener> listener{module, "StreamListener", stream_doc::stream_listener};
    add_with(listener);
    add_init<PythonListener>(listener, "StreamListener(address, **options)");
    listener.def("accept", &PythonListener::accept, timeout, stream_doc::accept)
        .def("stop", &PythonListener::stop, stream_doc::stop)
        .def("close", &PythonListener::stop, stream_doc::stop)
        .def_property_readonly("address", &PythonListener::address, doc::publisher_address)
        .def_property_readonly("closed", &PythonListener::closed, doc::closed);
}

} // namespace netio::python
