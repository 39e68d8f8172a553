// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all parts of the Python module share: waiting without the interpreter's lock, reading
// options, and the end of the interpreter.
//
// Rules: the library's threads never run Python code. All state of the module is protected by the
// interpreter's lock (GIL) unless a comment names another lock. A thread that waits for the GIL
// holds no other lock.

#include "netio/base/address_list.hpp"
#include "netio/base/kept_bytes.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/time.hpp"
#include "netio/context.hpp"
#include "netio/loop/process.hpp"
#include "netio/messages/message_socket.hpp"
#include "netio/session/session_options.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {
class ClientKey;
class ServerKeys;
} // namespace netio::inline v0_3

namespace netio::python {

namespace py = pybind11;
using std::chrono::milliseconds;

// --- waiting ----------------------------------------------------------------------------------

// Holds no GIL between its construction and acquire(). acquire() is no destructor, because Python
// ends a thread there while the interpreter ends.
class ReleasedGil {
  public:
    ReleasedGil();
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;
    // Never returns on a daemon thread after the end of the interpreter has begun.
    void acquire();

  private:
    bool was_ending_;
    PyThreadState* state_;
};

// Runs the function without the GIL.
template <typename Function>
auto without_gil(Function function) {
    using Result = decltype(function());
    std::exception_ptr failure;
    ReleasedGil released;
    if constexpr (std::is_void_v<Result>) {
        try {
            function();
        } catch (...) {
            failure = std::current_exception();
        }
        released.acquire();
        if (failure) std::rethrow_exception(failure);
    } else {
        std::optional<Result> result;
        try {
            result.emplace(function());
        } catch (...) {
            failure = std::current_exception();
        }
        released.acquire();
        if (failure) std::rethrow_exception(failure);
        return std::move(*result);
    }
}

// nullopt: without a limit.
using Timeout = std::optional<milliseconds>;
inline constexpr milliseconds step_time{50};

// Runs the handlers of Python for signals that have arrived, which may throw.
void check_signals();

// Calls step(time) without the GIL until it returns true; it may wait for this time. Returns false
// after the time-out. Ctrl-C ends it within step_time.
template <typename Step>
bool wait_in_steps(Timeout timeout, Step step) {
    const TimePoint end =
        timeout ? Clock::now() + std::min(*timeout, longest_time) : TimePoint::max();
    for (;;) {
        const TimePoint now = Clock::now();
        const milliseconds left =
            now >= end ? milliseconds{0}
                       : std::min(step_time, std::chrono::ceil<milliseconds>(end - now));
        if (without_gil([&] { return step(left); })) return true;
        check_signals();
        if (Clock::now() >= end) return false;
    }
}

// The same for a wait of the library that returns false early if it would never return true.
template <typename Wait>
bool wait_for_true(Timeout timeout, Wait wait) {
    bool is_true = false;
    wait_in_steps(timeout, [&](milliseconds time) {
        const TimePoint begin = Clock::now();
        is_true = wait(time);
        return is_true || Clock::now() - begin < time;
    });
    return is_true;
}

// Waits until the condition holds, which no library call waits for.
bool poll_until(Timeout timeout, const std::function<bool()>& condition);

// --- objects ----------------------------------------------------------------------------------

// An object that a child process must not use if it has inherited it by fork().
class OfProcess {
  public:
    explicit OfProcess(const char* type) noexcept : type_{type} {}
    // Throws an Error in such a process.
    void check_process() const;
    bool is_inherited() const noexcept { return process_.is_inherited(); }

  private:
    const char* type_;
    netio::ProcessMark process_;
};

// An object of the library with a connection or a thread. At the end of the interpreter each is
// closed.
class Connected : public OfProcess {
  public:
    explicit Connected(const char* type);
    virtual ~Connected();
    Connected(const Connected&) = delete;
    Connected& operator=(const Connected&) = delete;

    // Closes and waits; an exception of a signal handler ends the wait, and so does the limit.
    // After both, neither the destructor nor the end of the interpreter waits.
    void close(Timeout limit = {});

    virtual void begin_close() = 0;              // without waiting
    virtual bool is_closed() const noexcept = 0; // and nothing is left to wait for

  protected:
    // Whether close() was interrupted, so that the destructor must not wait either.
    bool is_abandoned() const noexcept { return is_abandoned_; }

  private:
    friend void close_all_at_exit();
    bool is_abandoned_ = false;
};

// Closes all objects, and waits. After it, only the calling thread returns from library calls.
void close_all_at_exit();

// A loop and its thread, which objects share.
struct SharedContext final : OfProcess {
    explicit SharedContext(Context its) : OfProcess{"Context"}, context{std::move(its)} {}

    const Context context;
};

// Descriptors that become readable when something has changed, for asyncio. Any thread.
class Watches {
  public:
    Watches() = default;
    Watches(const Watches&) = delete;
    Watches& operator=(const Watches&) = delete;

    // The caller closes it, after remove().
    int add();
    void remove(int descriptor);
    void notify();

  private:
    std::mutex mutex_;
    std::vector<int> descriptors_;
    std::atomic<bool> is_empty_{true};
};

// Destroys an object of the library without the GIL; `at_once`: on the thread of its context, where
// its destructor does not wait.
template <typename Object>
void destroy(std::unique_ptr<Object>& object, const Context& context, bool at_once) {
    const py::error_scope keep_error;
    without_gil([&] { at_once ? context.run([&] { object.reset(); }) : object.reset(); });
}

// --- values -----------------------------------------------------------------------------------

// Seconds as a number, or a datetime.timedelta. `what` names it in the exception.
std::chrono::nanoseconds to_time(py::handle value, const std::string& what);
milliseconds to_milliseconds(py::handle value, const std::string& what); // rounded up
Timeout to_timeout(py::handle value);                                    // None: without a limit
// An integer, a pair (first, last), a range, a FidSet, or an iterable of them.
FidSet to_fids(py::handle value);
Fid to_fid(py::handle value);
std::uint8_t to_status(py::handle value); // of a message
// `what` names it in the exception.
std::size_t to_count(py::handle value, const std::string& what, std::size_t least);
// "HOST:PORT", or a list of them.
AddressList to_addresses(py::handle value);
std::string to_address_text(py::handle value); // "HOST:PORT"
// The name of a file, as os.fsencode() has it. `what` names it in the exception.
std::string to_path(py::handle value, const std::string& what);
py::str from_path(const std::string& path);
// A text of the library, which may have bytes of a peer or of a path that are no UTF-8.
py::str to_text(std::string_view text);
std::optional<pubsub::SlowPolicy> to_policy(py::handle value, const std::string& what);
py::object to_python(const FidSet& fids); // a list of pairs

// The contiguous memory of a bytes-like object, or of a text in UTF-8. Throws TypeError if it has
// references to Python objects, which mean nothing elsewhere.
class Bytes {
  public:
    explicit Bytes(py::handle object, bool writable = false);
    ~Bytes();
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    std::span<std::byte> span() const noexcept;

  private:
    Py_buffer view_{};
};

// Whether a `with` that Ctrl-C leaves waits as long as close() does, or at most interrupted_limit.
enum class AtInterrupt { close_in_time, close };
inline constexpr milliseconds interrupted_limit{1000};

// `with` closes the object.
template <typename Class>
void add_with(Class& its_class, AtInterrupt at_interrupt = AtInterrupt::close_in_time) {
    using Its = typename Class::type;
    its_class.def("__enter__", [](py::object self) { return self; })
        .def("__exit__", [at_interrupt](const py::object& self, const py::object& kind,
                                        const py::object&, const py::object&) {
            if constexpr (std::derived_from<Its, Connected>) {
                const bool is_interrupted =
                    !kind.is_none() &&
                    PyErr_GivenExceptionMatches(kind.ptr(), PyExc_KeyboardInterrupt) != 0;
                if (is_interrupted && at_interrupt == AtInterrupt::close_in_time) {
                    auto& its = self.cast<Its&>();
                    its.check_process();
                    return its.Connected::close(interrupted_limit);
                }
            }
            self.attr("close")();
        });
}

// The argument of a constructor with this usage, which is removed from the options if it is given
// by its name.
py::object only_argument(const py::args& given, const py::kwargs& options,
                         const std::string& usage);

// The constructor with one argument and options. Other arguments are refused with a text that has
// `usage`, such as "Sender(receiver, **options)".
template <typename Its, typename Class>
void add_init(Class& its_class, const char* usage) {
    its_class.def(py::init([usage](const py::args& given, const py::kwargs& options) {
                      const py::object argument = only_argument(given, options, usage);
                      return std::make_unique<Its>(argument, options);
                  }),
                  "The argument without a name, and the options of the class by their names.");
}

void make_read_only(py::array& array);

// A read-only array of bytes whose memory `owner` keeps.
py::array bytes_array(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

// The same, as a memoryview.
py::memoryview view_of(const KeptBytes& bytes);

// The class is a bytes-like object: bytes_of(its) is a span, which is valid as long as `its`.
template <typename Its, typename BytesOf>
void add_bytes(py::class_<Its>& its_class, BytesOf bytes_of) {
    its_class
        .def_buffer([bytes_of](Its& its) {
            const std::span<const std::byte> bytes = bytes_of(its);
            static const std::byte none{};
            const std::byte* const data = bytes.data() == nullptr ? &none : bytes.data();
            return py::buffer_info{const_cast<std::byte*>(data), 1,
                                   py::format_descriptor<std::uint8_t>::format(),
                                   static_cast<py::ssize_t>(bytes.size()), true};
        })
        .def_property_readonly(
            "size", [bytes_of](const Its& its) { return bytes_of(its).size(); },
            "The number of its bytes.")
        .def("__len__", [bytes_of](const Its& its) { return bytes_of(its).size(); })
        .def_property_readonly(
            "data", [](const py::object& self) { return py::memoryview{self}; },
            "A memoryview of the bytes.")
        .def("__bytes__", [bytes_of](const Its& its) {
            const std::span<const std::byte> bytes = bytes_of(its);
            return py::bytes{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        });
}

// --- options ----------------------------------------------------------------------------------

// Keyword arguments with the names of the options in C++. Those of a nested group are a dict.
class Options {
  public:
    Options(py::dict values, std::string owner)
        : values_{std::move(values)}, owner_{std::move(owner)} {}

    // The value and the full name of an option, if it is given.
    std::optional<std::pair<py::object, std::string>> take(const char* name);
    // An option that is an object of this class; nullptr: not given, or None.
    template <typename Its>
    py::object take_object(const char* name) {
        const auto given = take(name);
        if (!given || given->first.is_none()) return {};
        if (py::isinstance<Its>(given->first)) return given->first;
        refuse_type(*given, py::type::of<Its>());
    }
    template <typename Value>
    Options& read(const char* name, Value& value) {
        if (const auto given = take(name)) assign(given->first, given->second, value);
        return *this;
    }
    // The options of a nested group.
    template <typename Function>
    Options& group(const char* name, Function read_group) {
        if (const auto given = take(name)) {
            Options nested{as_dict(given->first, given->second), given->second};
            read_group(nested);
            nested.finish();
        }
        return *this;
    }
    // Throws TypeError if an option is left that does not exist.
    void finish() const;

  private:
    [[noreturn]] static void refuse_type(const std::pair<py::object, std::string>& given,
                                         py::handle type);
    static py::dict as_dict(const py::object& value, const std::string& name);
    static void assign(const py::object& value, const std::string& name, bool& to);
    static void assign(const py::object& value, const std::string& name, std::string& to);
    static void assign(const py::object& value, const std::string& name, pubsub::SlowPolicy& to);
    static std::uint64_t to_unsigned(const py::object& value, const std::string& name,
                                     std::uint64_t largest);
    template <std::unsigned_integral Number>
    static void assign(const py::object& value, const std::string& name, Number& to) {
        to = static_cast<Number>(to_unsigned(value, name, std::numeric_limits<Number>::max()));
    }
    template <typename Period>
    static void assign(const py::object& value, const std::string& name,
                       std::chrono::duration<std::int64_t, Period>& to) {
        using Duration = std::chrono::duration<std::int64_t, Period>;
        to = std::chrono::ceil<Duration>(to_time(value, name));
    }

    py::dict values_;
    std::string owner_; // in exceptions
    std::set<std::string> known_;
};

void read_session(Options& options, SessionOptions& to);
// All but `reconnect`, `key` and `protocol`.
void read_message_socket(Options& options, MessageSocket::Options& to);
// What a Publisher has in the group socket.publisher.
void read_publish_socket(Options& options, pubsub::PublishSocketBase::Options& to);
// The option `context`, or a new context.
Context read_context(Options& options);
// The option `keys` of a listener with this context, and `key` of a client; null: none.
std::shared_ptr<ServerKeys> read_keys(Options& options, const Context& context);
std::shared_ptr<const ClientKey> read_key(Options& options);

// --- errors -----------------------------------------------------------------------------------

// Throws an exception of netio_daq.errors, with a value for the attribute `status`.
[[noreturn]] void raise(const char* name, const std::string& text, std::string_view status);
// The same with one more attribute.
[[noreturn]] void raise(const char* name, const std::string& text, std::string_view status,
                        const char* attribute, const py::object& value);
void translate_exceptions();
std::string name_of(Status status); // as the enumerator

// For all classes of the module: makes calls of objects that were not created an exception, refuses
// to copy and pickle objects, and lets other threads collect garbage while an object ends.
void protect_classes(const py::module_& module);

// --- the parts of the module ------------------------------------------------------------------

void add_messages(py::module_& module);
void add_publish_socket(py::module_& module);
void add_pubsub(py::module_& module);
void add_recording(py::module_& module);
void add_requests(py::module_& module);
void add_stream(py::module_& module);

} // namespace netio::python
