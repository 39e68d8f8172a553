// SPDX-License-Identifier: Apache-2.0
#include "python/support.hpp"

#include "netio/access/key_file.hpp"
#include "netio/messages/requester.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_options.hpp"
#include "pubsub/discovery/announcement.hpp"
#include "pubsub/recording/recording_error.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <system_error>
#include <thread>
#include <typeinfo>

namespace netio::python {
namespace {

std::atomic<bool> is_ending{false};
std::atomic<std::thread::id> ending_thread{};

// Not destroyed, because objects may exist until the process ends.
std::set<Connected*>& all_connected() {
    static std::set<Connected*>& all = *new std::set<Connected*>;
    return all;
}

bool must_not_return(bool was_ending) {
    if (is_ending && ending_thread.load() != std::this_thread::get_id()) return true;
    return !was_ending && _Py_IsFinalizing() != 0;
}

} // namespace

// --- waiting ----------------------------------------------------------------------------------

ReleasedGil::ReleasedGil() : was_ending_{_Py_IsFinalizing() != 0}, state_{PyEval_SaveThread()} {}

void ReleasedGil::acquire() {
    // Otherwise Python would end this thread inside of functions that must not throw.
    while (must_not_return(was_ending_))
        ::pause();
    PyEval_RestoreThread(state_);
}

void check_signals() {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set{};
}

bool poll_until(Timeout timeout, const std::function<bool()>& condition) {
    return wait_in_steps(timeout, [&](milliseconds time) {
        const TimePoint end = Clock::now() + time;
        std::chrono::microseconds interval{50};
        while (!condition()) {
            if (Clock::now() + interval >= end) return condition();
            std::this_thread::sleep_for(interval);
            interval = std::min(2 * interval, std::chrono::microseconds{5000});
        }
        return true;
    });
}

// --- objects ----------------------------------------------------------------------------------

void OfProcess::check_process() const {
    if (!is_inherited()) return;
    raise("Error",
          std::string{type_} +
              " is used in a child process that has inherited it by fork(); create loops, sockets "
              "and clients in the process that uses them, after fork()",
          "closed");
}

Connected::Connected(const char* type) : OfProcess{type} {
    all_connected().insert(this);
}

Connected::~Connected() {
    all_connected().erase(this);
}

void Connected::close(Timeout limit) {
    begin_close();
    is_abandoned_ = true;
    if (poll_until(limit, [this] { return is_closed(); })) is_abandoned_ = false;
}

void close_all_at_exit() {
    ending_thread = std::this_thread::get_id();
    is_ending = true;
    std::vector<Connected*> all;
    for (Connected* const each : all_connected()) {
        if (each->is_inherited() || each->is_abandoned_) continue;
        each->begin_close();
        each->is_abandoned_ = true;
        all.push_back(each);
    }
    poll_until({}, [&] {
        return std::ranges::all_of(all, [](const Connected* each) { return each->is_closed(); });
    });
    for (Connected* const each : all)
        each->is_abandoned_ = false;
}

int Watches::add() {
    const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0)
        throw FabricError{{errno, std::system_category()}, "cannot create an eventfd"};
    const std::lock_guard lock{mutex_};
    descriptors_.push_back(descriptor);
    is_empty_ = false;
    return descriptor;
}

void Watches::remove(int descriptor) {
    const std::lock_guard lock{mutex_};
    std::erase(descriptors_, descriptor);
    is_empty_ = descriptors_.empty();
}

void Watches::notify() {
    if (is_empty_) return;
    const std::lock_guard lock{mutex_};
    for (const int each : descriptors_)
        static_cast<void>(::eventfd_write(each, 1));
}

// --- values -----------------------------------------------------------------------------------

namespace {

std::string type_of(py::handle value) {
    return py::str(py::type::handle_of(value).attr("__name__")).cast<std::string>();
}

// Infinity for an integer that no double can hold.
double to_seconds(py::handle value, const std::string& rule) {
    if (PyBool_Check(value.ptr()) != 0) throw py::type_error{rule};
    const double seconds = PyFloat_AsDouble(value.ptr());
    if (PyErr_Occurred() == nullptr) return seconds;
    const bool is_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    if (!is_large && PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set{};
    PyErr_Clear();
    if (!is_large) throw py::type_error{rule};
    constexpr double most = std::numeric_limits<double>::infinity();
    return py::reinterpret_borrow<py::object>(value) < py::int_{0} ? -most : most;
}

} // namespace

std::chrono::nanoseconds to_time(py::handle value, const std::string& what) {
    double seconds = 0;
    if (py::hasattr(value, "total_seconds")) {
        seconds = value.attr("total_seconds")().cast<double>();
    } else {
        seconds = to_seconds(value, what + " must be a number of seconds or a datetime.timedelta");
    }
    if (std::isnan(seconds)) throw py::value_error{what + " must be a number, and not nan"};
    if (seconds < 0) throw py::value_error{what + " must not be negative"};
    constexpr double most = 9e9; // seconds, nearly the range of the nanoseconds
    return std::chrono::nanoseconds{std::llround(std::ceil(std::min(seconds, most) * 1e9))};
}

milliseconds to_milliseconds(py::handle value, const std::string& what) {
    return std::chrono::ceil<milliseconds>(to_time(value, what));
}

Timeout to_timeout(py::handle value) {
    if (value.is_none()) return {};
    return to_milliseconds(value, "timeout");
}

Fid to_fid(py::handle value) {
    if (PyIndex_Check(value.ptr()) == 0) {
        throw py::type_error{"a fid is an integer from 0 to 2^64 - 1, and not " +
                             py::repr(value).cast<std::string>()};
    }
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!number) throw py::error_already_set{};
    const std::uint64_t fid = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred() == nullptr) return fid;
    PyErr_Clear();
    throw py::value_error{"a fid is an integer from 0 to 2^64 - 1, and not " +
                          py::str(number).cast<std::string>()};
}

std::uint8_t to_status(py::handle value) {
    const std::string rule = "status is an integer from 0 to 255, and not ";
    if (PyIndex_Check(value.ptr()) == 0)
        throw py::type_error{rule + py::repr(value).cast<std::string>()};
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!number) throw py::error_already_set{};
    int overflow = 0;
    const long long status = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0 && status >= 0 && status <= 255) return static_cast<std::uint8_t>(status);
    throw py::value_error{rule + py::str(number).cast<std::string>()};
}

std::size_t to_count(py::handle value, const std::string& what, std::size_t least) {
    const std::string rule =
        what + " must be an integer of at least " + std::to_string(least) + ", and not ";
    if (PyIndex_Check(value.ptr()) == 0)
        throw py::type_error{rule + py::repr(value).cast<std::string>()};
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!number) throw py::error_already_set{};
    const std::size_t count = PyLong_AsSize_t(number.ptr());
    const bool fits = PyErr_Occurred() == nullptr;
    PyErr_Clear();
    if (fits && count >= least) return count;
    throw py::value_error{rule + py::str(number).cast<std::string>()};
}

namespace {

constexpr const char* fids_rule =
    "fids are an integer, a pair (first, last), a range, a FidSet, or "
    "a list of them, and not ";

bool is_pair(py::handle value) {
    if (!py::isinstance<py::tuple>(value) || py::len(value) == 0) return false;
    if (PyIndex_Check(py::reinterpret_borrow<py::tuple>(value)[0].ptr()) == 0) return false;
    if (py::len(value) == 2) return true;
    throw py::type_error{
        "a tuple of integers is a pair (first, last), which includes both, and not " +
        py::repr(value).cast<std::string>() + "; give several fids as a list"};
}

// A list may be within itself.
struct Recursion {
    Recursion() {
        if (Py_EnterRecursiveCall(" in a list of fids") != 0) throw py::error_already_set{};
    }
    ~Recursion() { Py_LeaveRecursiveCall(); }
    Recursion(const Recursion&) = delete;
    Recursion& operator=(const Recursion&) = delete;
};

// NumPy's scalars and arrays without a dimension are integers, too.
bool is_integer(py::handle value) {
    if (PyIndex_Check(value.ptr()) == 0) return false;
    if (PyObject_Length(value.ptr()) >= 0) return false;
    PyErr_Clear();
    return true;
}

void add_fids(FidSet& fids, py::handle value) {
    const Recursion recursion;
    if (py::isinstance<FidSet>(value)) {
        for (const FidRange& range : value.cast<const FidSet&>().ranges())
            fids.add(range);
    } else if (PyRange_Check(value.ptr())) {
        if (PyObject_IsTrue(value.ptr()) == 0) return;
        if (!py::object{value.attr("step")}.equal(py::int_{1})) {
            for (const py::handle each : value) {
                check_signals();
                fids.add(to_fid(each));
            }
            return;
        }
        fids.add({.first = to_fid(value.attr("start")),
                  .last = to_fid(value.attr("stop").attr("__sub__")(1))});
    } else if (is_pair(value)) {
        const auto pair = py::reinterpret_borrow<py::tuple>(value);
        fids.add({.first = to_fid(pair[0]), .last = to_fid(pair[1])});
    } else if (is_integer(value)) {
        fids.add(to_fid(value));
    } else if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value) ||
               !py::hasattr(value, "__iter__")) {
        throw py::type_error{fids_rule + py::repr(value).cast<std::string>()};
    } else {
        for (const py::handle each : py::reinterpret_borrow<py::object>(value)) {
            check_signals();
            add_fids(fids, each);
        }
    }
}

} // namespace

FidSet to_fids(py::handle value) {
    FidSet fids;
    add_fids(fids, value);
    return fids;
}

py::object to_python(const FidSet& fids) {
    py::list pairs;
    for (const FidRange& range : fids.ranges())
        pairs.append(py::make_tuple(to_integer(range.first), to_integer(range.last)));
    return pairs;
}

std::string to_address_text(py::handle value) {
    if (py::isinstance<py::str>(value)) return value.cast<std::string>();
    throw py::type_error{"an address is a text 'HOST:PORT', such as '127.0.0.1:5555', and not " +
                         py::repr(value).cast<std::string>()};
}

AddressList to_addresses(py::handle value) {
    const bool is_list = !py::isinstance<py::str>(value) && !py::isinstance<py::bytes>(value) &&
                         py::hasattr(value, "__iter__");
    AddressList addresses;
    if (!is_list) {
        addresses.push_back(parse_address(to_address_text(value)));
        return addresses;
    }
    for (const py::handle each : py::reinterpret_borrow<py::object>(value))
        addresses.push_back(parse_address(to_address_text(each)));
    return addresses;
}

std::string to_path(py::handle value, const std::string& what) {
    if (!py::isinstance<py::str>(value) && !py::isinstance<py::bytes>(value) &&
        !py::hasattr(value, "__fspath__")) {
        throw py::type_error{what + " must be a text or a path, and not " +
                             py::repr(value).cast<std::string>()};
    }
    auto path = py::module_::import("os").attr("fsencode")(value).cast<std::string>();
    if (path.find('\0') != std::string::npos)
        throw py::value_error{what + " must not have a null character"};
    return path;
}

py::str from_path(const std::string& path) {
    return py::reinterpret_steal<py::str>(
        PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<py::ssize_t>(path.size())));
}

py::str to_text(std::string_view text) {
    return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
        text.data(), static_cast<py::ssize_t>(text.size()), "backslashreplace"));
}

std::optional<pubsub::SlowPolicy> to_policy(py::handle value, const std::string& what) {
    if (value.is_none()) return {};
    constexpr std::pair<std::string_view, pubsub::SlowPolicy> policies[] = {
        {"block", pubsub::SlowPolicy::block},
        {"drop", pubsub::SlowPolicy::drop},
        {"newest", pubsub::SlowPolicy::newest},
        {"disconnect", pubsub::SlowPolicy::disconnect}};
    const std::string name = py::str(value);
    for (const auto& [text, policy] : policies)
        if (name == text) return policy;
    throw py::value_error{what + " must be 'block', 'drop', 'newest' or 'disconnect', and not '" +
                          name + "'"};
}

namespace {

// Whether a format of a buffer has a reference to an object or a pointer. The names of fields,
// which are between colons, may have any letter.
bool has_references(std::string_view format) {
    bool is_name = false;
    for (const char each : format) {
        if (each == ':') is_name = !is_name;
        if (!is_name && (each == 'O' || each == '&')) return true;
    }
    return false;
}

[[noreturn]] void refuse_references(py::handle source) {
    throw py::type_error{"the elements of this " + type_of(source) +
                         " are Python objects, whose addresses mean nothing to others; convert "
                         "them: numpy.asarray(x, dtype=float), json.dumps(x)"};
}

} // namespace

Bytes::Bytes(py::handle object, bool writable) {
    py::object source = py::reinterpret_borrow<py::object>(object);
    if (!writable && py::isinstance<py::str>(object)) source = object.attr("encode")("utf-8");
    if (PyObject_CheckBuffer(source.ptr()) == 0) {
        throw py::type_error{
            writable ? "expected a writable buffer, such as a bytearray or an array, and not '" +
                           type_of(source) + "'"
                     : "expected a bytes-like object, an array or a text, and not '" +
                           type_of(source) + "'; convert it: numpy.asarray(x), json.dumps(x)"};
    }
    const int flags = writable ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(source.ptr(), &view_, flags | PyBUF_ND | PyBUF_FORMAT) == 0) {
        if (view_.format == nullptr || !has_references(view_.format)) return;
        PyBuffer_Release(&view_);
        refuse_references(source);
    }
    PyErr_Clear();
    // Types such as datetime64 have no format.
    const py::object type = py::getattr(source, "dtype", py::none{});
    if (py::getattr(type, "hasobject", py::bool_{false}).equal(py::bool_{true}))
        refuse_references(source);
    if (PyObject_GetBuffer(source.ptr(), &view_, flags) == 0) return;
    py::error_already_set error;
    if (std::string_view{error.what()}.find("contiguous") == std::string_view::npos) throw error;
    PyErr_SetString(PyExc_BufferError, ("the memory of this " + type_of(source) +
                                        " is not contiguous: use numpy.ascontiguousarray(x)")
                                           .c_str());
    throw py::error_already_set{};
}

Bytes::~Bytes() {
    PyBuffer_Release(&view_);
}

std::span<std::byte> Bytes::span() const noexcept {
    return {static_cast<std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
}

py::object only_argument(const py::args& given, const py::kwargs& options,
                         const std::string& usage) {
    const std::size_t begin = usage.find('(') + 1;
    const py::str name{usage.substr(begin, usage.find(',') - begin)};
    if (given.size() == 1 && !options.contains(name)) return given[0];
    if (given.empty() && options.contains(name)) return options.attr("pop")(name);
    throw py::type_error{usage + ": " + std::to_string(given.size()) +
                         " arguments without a name were given; it has one, and options are given "
                         "by name, such as context=..."};
}

void make_read_only(py::array& array) {
    // As setflags(write=False), which takes half of the time of a view.
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
}

py::array bytes_array(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
    auto* const held = new std::shared_ptr<const void>{std::move(owner)};
    const py::capsule base{
        held, [](void* pointer) { delete static_cast<std::shared_ptr<const void>*>(pointer); }};
    py::array_t<std::uint8_t> array{static_cast<py::ssize_t>(bytes.size()),
                                    reinterpret_cast<const std::uint8_t*>(bytes.data()), base};
    make_read_only(array);
    return array;
}

py::memoryview view_of(const KeptBytes& bytes) {
    return py::memoryview{bytes_array(bytes.bytes(), std::make_shared<const KeptBytes>(bytes))};
}

// --- options ----------------------------------------------------------------------------------

std::optional<std::pair<py::object, std::string>> Options::take(const char* name) {
    known_.insert(name);
    if (!values_.contains(name)) return {};
    return std::pair{py::object{values_[name]}, owner_ + ", option " + name};
}

void Options::finish() const {
    const auto refuse = [this](const std::string& name) {
        std::string names;
        for (const std::string& each : known_)
            names.append(names.empty() ? "" : ", ").append(each);
        throw py::type_error{owner_ + " has no option '" + name + "'; there are: " + names};
    };
    for (const auto& [key, value] : values_)
        if (const std::string name = py::str(key); !known_.contains(name)) refuse(name);
}

void Options::refuse_type(const std::pair<py::object, std::string>& given, py::handle type) {
    throw py::type_error{given.second + " must be a netio_daq." +
                         type.attr("__name__").cast<std::string>() + ", and not " +
                         py::repr(given.first).cast<std::string>()};
}

py::dict Options::as_dict(const py::object& value, const std::string& name) {
    if (!py::isinstance<py::dict>(value)) throw py::type_error{name + " must be a dict of options"};
    return py::reinterpret_borrow<py::dict>(value);
}

void Options::assign(const py::object& value, const std::string& name, bool& to) {
    if (PyBool_Check(value.ptr()) == 0) throw py::type_error{name + " must be True or False"};
    to = value.ptr() == Py_True;
}

void Options::assign(const py::object& value, const std::string& name, std::string& to) {
    if (!py::isinstance<py::str>(value)) throw py::type_error{name + " must be a text"};
    to = value.cast<std::string>();
}

void Options::assign(const py::object& value, const std::string& name, pubsub::SlowPolicy& to) {
    const auto policy = to_policy(value, name);
    if (!policy) throw py::type_error{name + " must be a text"};
    to = *policy;
}

std::uint64_t Options::to_unsigned(const py::object& value, const std::string& name,
                                   std::uint64_t largest) {
    if (PyIndex_Check(value.ptr()) == 0 || PyBool_Check(value.ptr()) != 0)
        throw py::type_error{name + " must be an integer"};
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    const std::uint64_t result = PyLong_AsUnsignedLongLong(number.ptr());
    const bool fits = PyErr_Occurred() == nullptr && result <= largest;
    PyErr_Clear();
    if (!fits) throw py::value_error{name + " must be from 0 to " + std::to_string(largest)};
    return result;
}

void read_session(Options& options, SessionOptions& to) {
    options.read("receive_buffer_bytes", to.receive_buffer_bytes)
        .read("receive_count", to.receive_count)
        .read("window_limit", to.window_limit)
        .read("keep_limit_bytes", to.keep_limit_bytes)
        .read("send_count", to.send_count)
        .read("heartbeat", to.heartbeat)
        .read("dead_after", to.dead_after)
        .read("connect_timeout", to.connect_timeout)
        .read("handshake_timeout", to.handshake_timeout)
        .read("close_timeout", to.close_timeout)
        .read("close_limit", to.close_limit)
        .read("rekey_after_bytes", to.rekey_after_bytes);
}

void read_message_socket(Options& options, MessageSocket::Options& to) {
    options.group("session", [&](Options& group) { read_session(group, to.session); })
        .read("local_host", to.local_host)
        .read("retry_interval", to.retry_interval)
        .read("retry_limit", to.retry_limit)
        .read("largest_message_bytes", to.largest_message_bytes)
        .read("page_size_bytes", to.page_size_bytes)
        .read("page_count", to.page_count);
}

Context read_context(Options& options) {
    if (const py::object given = options.take_object<SharedContext>("context")) {
        const auto& shared = given.cast<const SharedContext&>();
        shared.check_process();
        return shared.context;
    }
    return without_gil([] { return Context{}; });
}

std::shared_ptr<ServerKeys> read_keys(Options& options, const Context& context) {
    const py::object given = options.take_object<ServerKeys::Options>("keys");
    if (!given) return nullptr;
    const auto& its = given.cast<const ServerKeys::Options&>();
    std::shared_ptr<ServerKeys> keys;
    without_gil(
        [&] { context.run([&] { keys = std::make_shared<ServerKeys>(context.loop(), its); }); });
    return keys;
}

std::shared_ptr<const ClientKey> read_key(Options& options) {
    const py::object given = options.take_object<ClientKey>("key");
    return given ? given.cast<std::shared_ptr<ClientKey>>() : nullptr;
}

// --- errors -----------------------------------------------------------------------------------

namespace {

[[noreturn]] void raise_with(const char* name, const std::string& text, const py::dict& values) {
    const py::object type = py::module_::import("netio_daq.errors").attr(name);
    const py::object error = type(to_text(text));
    for (const auto& [key, value] : values)
        error.attr(key) = value;
    PyErr_SetObject(type.ptr(), error.ptr());
    throw py::error_already_set{};
}

} // namespace

void raise(const char* name, const std::string& text, std::string_view status) {
    raise_with(name, text, py::dict(py::arg("status") = status));
}

void raise(const char* name, const std::string& text, std::string_view status,
           const char* attribute, const py::object& value) {
    raise_with(name, text, py::dict(py::arg("status") = status, py::arg(attribute) = value));
}

std::string name_of(Status status) {
    std::string name{to_string(status)};
    std::ranges::replace(name, ' ', '_');
    return name;
}

// --- objects that do not exist ----------------------------------------------------------------

namespace {

// pybind11 would give a method memory without an object.
void* refuse_missing(std::size_t) {
    throw py::type_error{"this object does not exist: its __init__() has not been called, or has "
                         "failed; a subclass calls super().__init__() before it uses the object"};
}

} // namespace

namespace {

// As that of pybind11 2.10, which leaves the object to the garbage collector of other threads,
// while a destructor of this module has released the GIL.
void deallocate(PyObject* self) {
    PyObject_GC_UnTrack(self);
    reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base)->tp_dealloc(self);
}

} // namespace

void protect_classes(const py::module_& module) {
    const auto* const base =
        reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
    for (const auto& [name, value] : py::dict{module.attr("__dict__")}) {
        if (!py::isinstance<py::type>(value)) continue;
        auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
        py::detail::type_info* const its = py::detail::get_type_info(type);
        if (its == nullptr) continue;
        its->operator_new = &refuse_missing;
        if (PyType_HasFeature(type, Py_TPFLAGS_HAVE_GC) != 0) type->tp_dealloc = &deallocate;
        // Without an __init__() of its own: only the library creates such objects.
        if (type->tp_init == base->tp_init) type->tp_new = nullptr;
        if (py::dict{value.attr("__dict__")}.contains("__reduce_ex__")) continue;
        // pickle would call the base class of pybind11, which ends the process.
        const std::string text = "a " + name.cast<std::string>() +
                                 " cannot be copied or pickled: it belongs to its process";
        value.attr("__reduce_ex__") = py::cpp_function(
            [text](const py::object&, const py::object&) { throw py::type_error{text}; },
            py::name("__reduce_ex__"), py::is_method(value));
    }
}

void translate_exceptions() {
    py::register_exception_translator([](std::exception_ptr failure) {
        try {
            try {
                std::rethrow_exception(std::move(failure));
            } catch (const RequestError& error) {
                raise("RequestError", error.what(), "closed", "end",
                      py::str{std::string{to_string(error.end())}});
            } catch (const RecordingError& error) {
                raise("RecordingError", error.what(), "failed");
            } catch (const Error& error) {
                const char* const name = error.status() == Status::again    ? "TimeoutError"
                                         : error.status() == Status::closed ? "ClosedError"
                                                                            : "Error";
                raise(name, error.what(), name_of(error.status()));
            } catch (const stream::StreamError& error) {
                using Kind = stream::StreamError::Kind;
                const bool late = error.kind() == Kind::timed_out;
                raise(late ? "TimeoutError" : "ClosedError", error.what(),
                      late ? "again" : "closed");
            } catch (const FabricError& error) {
                raise("FabricError", error.what(), "failed");
            } catch (const access::KeyFileError& error) {
                raise("Error", error.what(), "failed");
            } catch (const pubsub::AnnouncementError& error) {
                throw py::value_error{error.what()};
            }
        } catch (py::error_already_set& error) {
            error.restore();
        } catch (const py::builtin_exception& error) {
            error.set_error();
        }
    });
}

} // namespace netio::python
