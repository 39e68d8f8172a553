// SPDX-License-Identifier: Apache-2.0

// RecordingReader and RecordingWriter of the Python module. A reader is used by one thread at a
// time; a writer has a thread of its own.

#include "pubsub/recording/recording_reader.hpp"
#include "pubsub/recording/recording_writer.hpp"
#include "python/docstrings.hpp"
#include "python/received.hpp"
#include "python/support.hpp"

#include <atomic>
#include <future>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace netio::python {
namespace {

// --- times ------------------------------------------------------------------------------------

std::int64_t to_integer(RecordingTime time) {
    return time.time_since_epoch().count();
}

// Nanoseconds since 1970 (UTC), or a datetime with a time zone.
std::int64_t to_nanoseconds(const py::object& value, const std::string& what) {
    if (PyIndex_Check(value.ptr()) != 0 && PyBool_Check(value.ptr()) == 0) {
        const std::int64_t time = PyLong_AsLongLong(py::int_{value}.ptr());
        if (PyErr_Occurred() == nullptr) return time;
        PyErr_Clear();
        throw py::value_error{what + " must be within 292 years of 1970, in nanoseconds, and not " +
                              py::str(value).cast<std::string>()};
    }
    const py::module_ datetime = py::module_::import("datetime");
    if (!py::isinstance(value, datetime.attr("datetime")) || value.attr("tzinfo").is_none()) {
        throw py::type_error{what + " must be nanoseconds since 1970 (UTC) as an integer, or a "
                                    "datetime with a time zone"};
    }
    const py::object epoch = datetime.attr("datetime")(
        1970, 1, 1, py::arg("tzinfo") = datetime.attr("timezone").attr("utc"));
    const py::object passed = value.attr("__sub__")(epoch);
    const auto microseconds =
        passed.attr("__floordiv__")(datetime.attr("timedelta")(py::arg("microseconds") = 1));
    return microseconds.cast<std::int64_t>() * 1000;
}

std::optional<RecordingTime> to_recording_time(const py::object& value, const std::string& what) {
    if (value.is_none()) return {};
    return RecordingTime{std::chrono::nanoseconds{to_nanoseconds(value, what)}};
}

// --- RecordingReader --------------------------------------------------------------------------

struct PythonRecorded {
    Fid fid{};
    std::uint8_t status = 0;
    std::uint64_t sequence = 0;
    std::int64_t arrival_ns = 0;
    std::optional<std::int64_t> publish_ns;
    std::string publisher;
    KeptBytes bytes;
};

PythonRecorded copy_of(const RecordedMessage& message) {
    return {.fid = message.fid,
            .status = message.status,
            .sequence = message.sequence,
            .arrival_ns = to_integer(message.arrival_time),
            .publish_ns = message.has_publish_time ? std::optional{to_integer(message.publish_time)}
                                                   : std::nullopt,
            .publisher = std::string{message.publisher},
            .bytes = KeptBytes::copy_of(message.bytes)};
}

py::list damage_list(std::span<const RecordingReader::Damage> damage) {
    py::list all;
    for (const RecordingReader::Damage& each : damage) {
        all.append(py::dict(py::arg("path") = from_path(each.path), py::arg("offset") = each.offset,
                            py::arg("bytes") = each.bytes,
                            py::arg("problem") = to_text(each.problem)));
    }
    return all;
}

class PythonReader {
  public:
    PythonReader(const py::object& paths, const py::kwargs& values) {
        Options options{values, "RecordingReader"};
        RecordingReader::Options its;
        options.read("chunk_memory_limit_bytes", its.chunk_memory_limit_bytes)
            .read("refuse_torn", its.refuse_torn);
        if (const auto given = options.take("on_damage")) {
            const std::string name = py::str(given->first);
            if (name != "refuse" && name != "skip") {
                throw py::value_error{given->second + " must be 'refuse' or 'skip', and not '" +
                                      name + "'"};
            }
            its.on_damage = name == "skip" ? RecordingReader::OnDamage::skip
                                           : RecordingReader::OnDamage::refuse;
        }
        options.finish();
        std::vector<std::string> all;
        const bool is_one = py::isinstance<py::bytes>(paths) || py::isinstance<py::str>(paths) ||
                            !py::hasattr(paths, "__iter__");
        if (is_one) {
            all.push_back(to_path(paths, "path"));
        } else {
            for (const py::handle each : paths)
                all.push_back(to_path(each, "path"));
        }
        reader_ = without_gil([&] {
            return is_one ? std::make_unique<RecordingReader>(all.front(), its)
                          : std::make_unique<RecordingReader>(all, its);
        });
    }

    void select(const py::object& fids, const py::object& from, const py::object& until) {
        RecordingReader::Selection selection;
        if (!fids.is_none()) selection.fids = to_fids(fids);
        selection.from = to_recording_time(from, "from_");
        selection.until = to_recording_time(until, "until");
        use([&](RecordingReader& reader) { reader.select(std::move(selection)); });
    }
    void rewind() {
        use([](RecordingReader& reader) { reader.rewind(); });
    }
    py::object next() {
        std::optional<PythonRecorded> message;
        std::optional<RecordedEvent> event;
        use([&](RecordingReader& reader) {
            if (!reader.next()) return;
            if (const RecordedEvent* const its = reader.event()) {
                event = *its;
            } else {
                message = copy_of(reader.message());
            }
        });
        if (message) return py::cast(std::move(*message));
        if (event) return py::cast(std::move(*event));
        return py::none{};
    }
    PythonRecorded next_message() {
        std::optional<PythonRecorded> message;
        wait_in_steps({}, [&](milliseconds time) {
            const std::lock_guard lock{mutex_};
            const TimePoint end = Clock::now() + time;
            while (open().next()) {
                if (!reader_->event()) return message.emplace(copy_of(reader_->message())), true;
                if (Clock::now() >= end) return false; // looks at signals
            }
            return true;
        });
        if (!message) throw py::stop_iteration{};
        return std::move(*message);
    }
    py::list files() {
        py::list all;
        std::vector<RecordingReader::File> files;
        use([&](RecordingReader& reader) {
            files.assign(reader.files().begin(), reader.files().end());
        });
        for (const RecordingReader::File& each : files) {
            py::dict properties;
            for (const auto& [name, value] : each.properties)
                properties[to_text(name)] = to_text(value);
            all.append(
                py::dict(py::arg("path") = from_path(each.path), py::arg("bytes") = each.bytes,
                         py::arg("has_summary") = each.has_summary,
                         py::arg("profile") = to_text(each.profile),
                         py::arg("library") = to_text(each.library),
                         py::arg("properties") = properties, py::arg("messages") = each.messages));
        }
        return all;
    }
    std::optional<std::int64_t> begin_time() {
        std::optional<RecordingTime> time;
        use([&](RecordingReader& reader) { time = reader.begin_time(); });
        return time ? std::optional{to_integer(*time)} : std::nullopt;
    }
    py::list damage() {
        std::vector<RecordingReader::Damage> all;
        use([&](RecordingReader& reader) {
            all.assign(reader.damage().begin(), reader.damage().end());
        });
        return damage_list(all);
    }
    py::list torn() {
        std::vector<RecordingReader::Damage> all;
        use([&](RecordingReader& reader) {
            all.assign(reader.torn().begin(), reader.torn().end());
        });
        return damage_list(all);
    }
    template <auto Member>
    std::uint64_t number() {
        std::uint64_t value = 0;
        use([&](RecordingReader& reader) { value = (reader.*Member)(); });
        return value;
    }
    void close() {
        without_gil([&] {
            const std::lock_guard lock{mutex_};
            reader_.reset();
        });
    }
    bool closed() {
        return without_gil([&] {
            const std::lock_guard lock{mutex_};
            return !reader_;
        });
    }

  private:
    RecordingReader& open() {
        if (!reader_) throw Error{Status::closed, "the reader of the recording is closed"};
        return *reader_;
    }
    template <typename Use>
    void use(Use use_it) {
        without_gil([&] {
            const std::lock_guard lock{mutex_};
            use_it(open());
        });
    }

    std::mutex mutex_; // of the reader; without the GIL
    std::unique_ptr<RecordingReader> reader_;
};

// --- RecordingWriter --------------------------------------------------------------------------

RecordingWriter::Options read_writer(Options& options) {
    RecordingWriter::Options to;
    options.read("chunk_size_bytes", to.chunk_size_bytes)
        .read("rotate_size_bytes", to.rotate_size_bytes)
        .read("rotate_interval", to.rotate_interval)
        .read("min_free_bytes", to.min_free_bytes)
        .read("index_limit_bytes", to.index_limit_bytes)
        .read("fsync", to.fsync)
        .read("direct_io", to.direct_io)
        .read("queue_limit_bytes", to.queue_limit_bytes)
        .read("flush_interval", to.flush_interval);
    if (const auto given = options.take("compress")) {
        const std::string name = py::str(given->first);
        if (name != "none" && name != "lz4" && name != "zstd") {
            throw py::value_error{given->second + " must be 'none', 'lz4' or 'zstd', and not '" +
                                  name + "'"};
        }
        using Compression = RecordingWriter::Compression;
        to.compress = name == "lz4"    ? Compression::lz4
                      : name == "zstd" ? Compression::zstd
                                       : Compression::none;
    }
    options.finish();
    return to;
}

// Calls the function; the writer's errors are a RecordingError of Python.
template <typename Function>
auto with_errors_of_writer(Function function) {
    try {
        return function();
    } catch (const std::system_error& error) {
        raise("RecordingError", error.what(), "failed", "errno", py::int_{error.code().value()});
    } catch (const std::invalid_argument&) {
        throw;
    } catch (const py::error_already_set&) {
        throw;
    } catch (const std::runtime_error& error) {
        raise("RecordingError", error.what(), "failed");
    }
}

class PythonWriter final : public Connected {
  public:
    PythonWriter(const py::object& path, const py::kwargs& values) : Connected{"RecordingWriter"} {
        Options options{values, "RecordingWriter"};
        RecordingWriter::Options its = read_writer(options);
        path_ = to_path(path, "path");
        writer_ = with_errors_of_writer([&] {
            return without_gil([&] { return std::make_unique<Closing>(path_, std::move(its)); });
        });
    }
    ~PythonWriter() override {
        // Neither in a child process, where its thread does not exist, nor after Ctrl-C.
        if (!writer_ || is_inherited() || is_abandoned()) {
            static_cast<void>(writer_.release());
            return;
        }
        const py::error_scope keep_error;
        without_gil([&] { writer_.reset(); });
    }

    void write(const PythonMessage& message, const py::object& timeout) {
        put(timeout, [&](RecordingWriter& writer) {
            return writer.write({.fid = message.fid,
                                 .bytes = message.bytes.bytes(),
                                 .status = message.status,
                                 .lost_before = message.lost_before,
                                 .arrival_ns = static_cast<std::uint64_t>(message.time_ns),
                                 .publish_ns = to_unsigned(message.publish_ns)},
                                message.bytes);
        });
    }
    void write_recorded(const PythonRecorded& message, const py::object& timeout) {
        put(timeout, [&](RecordingWriter& writer) {
            return writer.write({.fid = message.fid,
                                 .bytes = message.bytes.bytes(),
                                 .status = message.status,
                                 .sequence = message.sequence,
                                 .arrival_ns = static_cast<std::uint64_t>(message.arrival_ns),
                                 .publish_ns = to_unsigned(message.publish_ns),
                                 .publisher = message.publisher},
                                message.bytes);
        });
    }
    void write_event(const std::string& event, const std::string& publisher, const py::object& fids,
                     const py::object& its_count, const std::string& reason, const py::object& time,
                     const py::object& timeout) {
        std::optional<std::uint64_t> count;
        if (!its_count.is_none()) count = to_count(its_count, "count", 0);
        const RecordingWriter::Event its_event{
            .event = event,
            .publisher = publisher,
            .fids = fids.is_none() ? FidSet{} : to_fids(fids),
            .count = count,
            .reason = reason,
            .arrival_ns = time.is_none() ? std::uint64_t{0} : to_unsigned_time(time)};
        put(timeout, [&](RecordingWriter& writer) { return writer.write(its_event); });
    }
    void write_bytes(const py::object& fid, const py::object& data, const py::object& status,
                     const py::object& time, const py::object& timeout) {
        const Bytes bytes{data};
        const RecordingWriter::Entry entry{.fid = to_fid(fid),
                                           .bytes = bytes.span(),
                                           .status = to_status(status),
                                           .arrival_ns = time.is_none() ? std::uint64_t{0}
                                                                        : to_unsigned_time(time)};
        put(timeout, [&](RecordingWriter& writer) { return writer.write(entry); });
    }
    std::size_t write_batch(const PythonBatch& batch, const py::object& timeout) {
        const Timeout limit = to_timeout(timeout);
        its();
        std::size_t written = 0;
        const bool in_time = wait_in_steps(limit, [&](milliseconds time) {
            while (written < batch.size()) {
                const Status status = write_one(batch, written);
                if (status == Status::ok) {
                    ++written;
                } else if (status != Status::again) {
                    return true;
                } else if (!writer_->writer.wait_until_writable(time) &&
                           writer_->writer.is_full()) {
                    return false;
                }
            }
            return true;
        });
        if (written < batch.size()) fail(in_time, limit, written);
        for (const auto& [fid, count] : batch.gaps())
            writer_->writer.skip(Fid{fid}, count);
        return written;
    }
    void skip(const py::object& fid, const py::object& count) {
        const std::uint64_t messages = to_count(count, "count", 0);
        its().skip(to_fid(fid), messages);
    }
    bool is_full() const { return its().is_full(); }
    bool wait_until_writable(const py::object& timeout) {
        its();
        return wait_for_true(to_timeout(timeout), [&](milliseconds time) {
            return writer_->writer.wait_until_writable(time);
        });
    }
    void flush() {
        its();
        with_errors_of_writer([&] { without_gil([&] { writer_->writer.flush(); }); });
    }
    void close_in_order() {
        its();
        close();
        // The first call reports a failure.
        if (!std::exchange(is_reported_, true))
            with_errors_of_writer([&] { writer_->closing.get(); });
    }
    bool closed() const {
        its();
        return is_closed();
    }
    py::dict stats() const {
        const RecordingWriter::Stats all = its().stats();
        py::list files;
        for (const std::string& each : all.files)
            files.append(from_path(each));
        return py::dict(
            py::arg("messages") = all.messages, py::arg("bytes") = all.bytes,
            py::arg("written") = all.written, py::arg("discarded") = all.discarded,
            py::arg("events") = all.events, py::arg("chunks") = all.chunks,
            py::arg("file_bytes") = all.file_bytes, py::arg("clock_steps") = all.clock_steps,
            py::arg("queued_bytes") = all.queued_bytes, py::arg("direct_io") = all.direct_io,
            py::arg("files") = files, py::arg("failure") = to_text(all.failure));
    }

    void begin_close() override {
        if (writer_->closing.valid()) return;
        // It waits for the disk.
        writer_->closing =
            std::async(std::launch::async, [writer = &writer_->writer] { writer->close(); });
    }
    bool is_closed() const noexcept override {
        return writer_->closing.valid() &&
               writer_->closing.wait_for(milliseconds{0}) == std::future_status::ready;
    }

  private:
    struct Closing {
        Closing(std::string path, RecordingWriter::Options options)
            : writer{std::move(path), std::move(options)} {}
        RecordingWriter writer;
        std::shared_future<void> closing; // destroyed first: waits until the writer is closed
    };

    RecordingWriter& its() const {
        check_process();
        return writer_->writer;
    }
    static std::uint64_t to_unsigned_time(const py::object& time) {
        const std::int64_t value = to_nanoseconds(time, "time");
        if (value < 0) throw py::value_error{"time must not be before 1970"};
        return static_cast<std::uint64_t>(value);
    }
    Status write_one(const PythonBatch& batch, std::size_t index) {
        const pubsub::MessageBatch::Item item = batch.item(index);
        const RecordingWriter::Entry entry{.fid = item.fid,
                                           .bytes = item.bytes,
                                           .status = item.status,
                                           .lost_before = item.lost_before,
                                           .arrival_ns =
                                               static_cast<std::uint64_t>(batch.time_ns()),
                                           .publish_ns = to_unsigned(publish_ns(item))};
        return item.is_kept ? writer_->writer.write(entry, batch.memory(index))
                            : writer_->writer.write(entry);
    }
    static std::optional<std::uint64_t> to_unsigned(std::optional<std::int64_t> time) {
        if (!time || *time < 0) return std::nullopt; // a peer may send any time
        return static_cast<std::uint64_t>(*time);
    }
    // Calls put_it until it is not `again`.
    template <typename Put>
    void put(const py::object& timeout, Put put_it) {
        RecordingWriter& writer = its();
        const Timeout limit = to_timeout(timeout);
        Status status = put_it(writer); // copies at most a chunk
        if (status == Status::ok) return;
        const bool in_time = wait_in_steps(limit, [&](milliseconds time) {
            static_cast<void>(writer.wait_until_writable(time));
            status = put_it(writer);
            return status != Status::again;
        });
        if (status != Status::ok) fail(in_time, limit, 0);
    }
    [[noreturn]] void fail(bool in_time, Timeout limit, std::size_t accepted) const {
        const std::string failure = writer_->writer.stats().failure;
        if (!failure.empty()) raise("RecordingError", failure, "failed");
        if (in_time)
            raise("ClosedError", "recording " + path_ + ": the writer is closed", "closed");
        raise("TimeoutError",
              "recording " + path_ + ": no space for the message for " +
                  std::to_string(limit->count()) +
                  " ms (timeout): the disk is too slow (queue_limit_bytes)",
              "again", "accepted", py::int_{accepted});
    }

    std::string path_;
    std::unique_ptr<Closing> writer_;
    bool is_reported_ = false;
};

// --- the classes ------------------------------------------------------------------------------

std::string describe(const PythonRecorded& message) {
    return "<RecordedMessage fid=" + to_string(message.fid) +
           " size=" + std::to_string(message.bytes.size()) +
           " status=" + std::to_string(message.status) +
           " sequence=" + std::to_string(message.sequence) + ">";
}

namespace recording_doc {
constexpr char recording_reader[] =
    R"(Reads recordings (docs/recording.md) in the order in which they were recorded: a file, a folder,
the name of a rotated set without its numbers, or a list of them. Iterate over it for the messages.
Options: chunk_memory_limit_bytes, on_damage ('refuse', 'skip'), refuse_torn.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     for number in range(10):
...         writer.write_bytes(number % 2, f"message {number}", time=1000 + number)
>>> with netio.RecordingReader("run7.mcap") as reader:
...     reader.select(fids=1, from_=1004)
...     [bytes(message) for message in reader]
[b'message 5', b'message 7', b'message 9']
)";
constexpr char select[] =
    R"(Starts again from the beginning, with these fids only, and arrival times from `from_` until, and
without, `until`: nanoseconds since 1970 (UTC), or a datetime with a time zone. None: all. Events
are selected by their time.

>>> import netio_daq as netio
>>> from datetime import datetime, timezone
>>> netio.RecordingWriter("run7.mcap").close()
>>> reader = netio.RecordingReader("run7.mcap")
>>> reader.select(fids=range(64), from_=datetime(2026, 11, 27, 12, tzinfo=timezone.utc))
)";
constexpr char rewind[] =
    R"(Starts again from the beginning.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, "a text", time=1000)
>>> reader = netio.RecordingReader("run7.mcap")
>>> [len(list(reader)), reader.rewind(), len(list(reader))]
[1, None, 1]
)";
constexpr char reader_next[] =
    R"(Returns the next message, a RecordedMessage, or event, a RecordedEvent; None at the end. Raises
RecordingError for damage, unless it is skipped.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_event("lost", fids=5, count=3)
>>> netio.RecordingReader("run7.mcap").next()
<RecordedEvent lost>
)";
constexpr char begin_time[] =
    R"(The time of the first message or event, in nanoseconds since 1970 (UTC); None if there is none.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, "a text", time=1000)
>>> reader = netio.RecordingReader("run7.mcap")
>>> reader.begin_time()
1000
)";
constexpr char damage_count[] =
    R"(The number of skipped parts since the last rewind().

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, "a text", time=1000)
>>> reader = netio.RecordingReader("run7.mcap")
>>> list(reader), reader.damage_count()
([<RecordedMessage fid=0x7 size=6 status=0 sequence=0>], 0)
)";
constexpr char foreign_messages[] =
    R"(Messages of channels that are not netio's.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, "a text", time=1000)
>>> reader = netio.RecordingReader("run7.mcap")
>>> list(reader), reader.foreign_messages()
([<RecordedMessage fid=0x7 size=6 status=0 sequence=0>], 0)
)";
constexpr char backward_steps[] =
    R"(Messages and events whose time was before that of the previous one.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     for time in (1000, 2000):
...         writer.write_bytes(7, "a text", time=time)
>>> reader = netio.RecordingReader("run7.mcap")
>>> [message.arrival_time for message in reader], reader.backward_steps()
([1000, 2000], 0)
)";
constexpr char total_bytes[] =
    R"(The size of the files.

>>> import netio_daq as netio, os
>>> netio.RecordingWriter("run7.mcap").close()
>>> netio.RecordingReader("run7.mcap").total_bytes() == os.path.getsize("run7.mcap")
True
)";
constexpr char passed_bytes[] =
    R"(How many of these bytes have been passed.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, "a text", time=1000)
>>> reader = netio.RecordingReader("run7.mcap")
>>> message = next(reader)
>>> 0 < reader.passed_bytes() <= reader.total_bytes()
True
)";
constexpr char reader_close[] =
    R"(Closes the files.

>>> import netio_daq as netio
>>> netio.RecordingWriter("run7.mcap").close()
>>> reader = netio.RecordingReader("run7.mcap")
>>> reader.close()
>>> reader.closed
True
)";
constexpr char reader_closed[] = "Whether close() was called.";
constexpr char recorded_message[] =
    R"(A message of a recording: a bytes-like object with fid, status, publisher (HOST:PORT), and
`sequence`: numbers that are absent within the fid are lost messages. `arrival_time` and
`publish_time` are in nanoseconds since 1970 (UTC); the latter is None if the publisher sent none.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, b"bytes", status=1)
>>> message = next(netio.RecordingReader("run7.mcap"))
>>> message, bytes(message)
(<RecordedMessage fid=0x7 size=5 status=1 sequence=0>, b'bytes')
)";
constexpr char recorded_event[] =
    R"(What happened during a recording: time (nanoseconds since 1970, UTC), event, publisher, fids,
reason, count. Those that do not apply are empty or None.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_event("lost", fids=(5, 6), count=3)
>>> event = netio.RecordingReader("run7.mcap").next()
>>> event.event, event.fids, event.count
('lost', '5-6', 3)
)";
constexpr char recording_writer[] =
    R"(Records messages into a file; its name must end in ".mcap", and it must not exist. A thread of
its own writes to the disk. Any thread may call it.

The options have the names and defaults of the C++ class (docs/options.md): chunk_size_bytes,
compress ('none', 'lz4', 'zstd'), rotate_size_bytes, rotate_interval, min_free_bytes,
index_limit_bytes, fsync, direct_io, queue_limit_bytes, flush_interval. As a context manager it is
closed at the end.

>>> import netio_daq as netio
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(7)
>>> _ = publisher.wait_for_subscribers(1, timeout=60)
>>> _ = publisher.publish_batch(7, b"abcdef", offsets=range(7))
>>> publisher.close()
>>> with netio.RecordingWriter("run7.mcap", compress="lz4") as writer:
...     for batch in subscriber.batches():
...         _ = writer.write_batch(batch)
>>> sum(1 for message in netio.RecordingReader("run7.mcap"))
6
)";
constexpr char write_message[] =
    R"(Records a Message of a Subscriber, with its losses and time, or a RecordedMessage of another
recording. Waits while queue_limit_bytes are queued, at most for `timeout`; then it raises
TimeoutError. Raises RecordingError if the disk has failed.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, b"bytes")
>>> with netio.RecordingWriter("copy.mcap") as copy:
...     for message in netio.RecordingReader("run7.mcap"):
...         copy.write(message)
)";
constexpr char write_bytes[] =
    R"(The same for a bytes-like object or a text. `time` is the arrival time: nanoseconds since 1970
(UTC), or a datetime with a time zone; None: now.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, "a text", status=1)
)";
constexpr char write_batch[] =
    R"(The same for all messages of a Batch, and for its losses. Returns the number of messages;
`accepted` of a TimeoutError is the number of those that were accepted.

>>> import netio_daq as netio
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(range(4))
>>> _ = publisher.wait_for_subscribers(1, timeout=60)
>>> _ = publisher.publish_batch(1, b"abcdef", offsets=[0, 2, 6])
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_batch(subscriber.receive_batch(timeout=60)) > 0
True
)";
constexpr char write_event[] =
    R"(Records an event, one of the words in docs/recording.md.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_event("disconnected", publisher="127.0.0.1:9", reason="it was restarted")
)";
constexpr char skip[] =
    R"(Reports that `count` messages of the fid were lost: the sequence of its next message is larger
by `count`.

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.skip(7, 5)
...     writer.write_bytes(7, "a text")
>>> next(netio.RecordingReader("run7.mcap")).sequence
5
)";
constexpr char wait_until_writable[] =
    R"(Waits until less than half of queue_limit_bytes is queued, if it was full. Returns False after
the time-out, a failure or close().

>>> import netio_daq as netio
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.full, writer.wait_until_writable(timeout=60)
(False, True)
)";
constexpr char full[] =
    "True from when queue_limit_bytes are queued until half of them are written.";
constexpr char flush_recording[] =
    R"(Waits until everything is in the file.

>>> import netio_daq as netio, os
>>> with netio.RecordingWriter("run7.mcap") as writer:
...     writer.write_bytes(7, bytes(5000))
...     writer.flush()
...     os.path.getsize("run7.mcap") > 5000
True
)";
constexpr char writer_close[] =
    R"(Writes what is queued and the index of the file, and waits; Ctrl-C ends the wait. Raises
RecordingError if a message could not be written; what was written before can be read.

>>> import netio_daq as netio
>>> writer = netio.RecordingWriter("run7.mcap")
>>> writer.close()
>>> writer.stats().files
['run7.mcap']
)";
constexpr char writer_closed[] = "Whether it is closed, and nothing more is written.";

constexpr char recorded_fid[] = "The fid under which it was published.";
constexpr char recorded_status[] = "The status that the publisher gave it, 0 to 255.";
constexpr char recorded_sequence[] = "Its number within the fid; absent numbers are lost messages.";
constexpr char recorded_arrival_time[] = "When it was received, in nanoseconds since 1970 (UTC).";
constexpr char recorded_publish_time[] =
    "The publisher's time in nanoseconds since 1970 (UTC); None if it sent none.";
constexpr char recorded_publisher[] = "HOST:PORT of the publisher; empty if it is not known.";
constexpr char event_time[] = "When it happened, in nanoseconds since 1970 (UTC).";
constexpr char event_word[] = "What happened: one of the words in docs/recording.md.";
constexpr char event_fids[] =
    R"(The fids that it is about, as a text such as "5-6"; otherwise empty.)";
constexpr char event_reason[] = "The reason, as a text; empty if there is none.";
constexpr char event_count[] = "The number of messages that it is about; otherwise None.";

} // namespace recording_doc

void bind_reader(py::module_& module) {
    using Message = PythonRecorded;
    py::class_<Message> message{module, "RecordedMessage", py::buffer_protocol(),
                                recording_doc::recorded_message};
    add_bytes(message, [](const Message& its) { return its.bytes.bytes(); });
    message
        .def_property_readonly(
            "fid", [](const Message& its) { return pubsub::to_integer(its.fid); },
            recording_doc::recorded_fid)
        .def_readonly("status", &Message::status, recording_doc::recorded_status)
        .def_readonly("sequence", &Message::sequence, recording_doc::recorded_sequence)
        .def_readonly("arrival_time", &Message::arrival_ns, recording_doc::recorded_arrival_time)
        .def_readonly("publish_time", &Message::publish_ns, recording_doc::recorded_publish_time)
        .def_property_readonly(
            "publisher", [](const Message& its) { return to_text(its.publisher); },
            recording_doc::recorded_publisher)
        .def("__repr__", &describe);
    py::class_<RecordedEvent>{module, "RecordedEvent", recording_doc::recorded_event}
        .def_property_readonly(
            "time", [](const RecordedEvent& its) { return to_integer(its.time); },
            recording_doc::event_time)
        .def_property_readonly(
            "event", [](const RecordedEvent& its) { return to_text(its.event); },
            recording_doc::event_word)
        .def_property_readonly(
            "publisher", [](const RecordedEvent& its) { return to_text(its.publisher); },
            recording_doc::recorded_publisher)
        .def_property_readonly(
            "fids", [](const RecordedEvent& its) { return to_text(its.fids); },
            recording_doc::event_fids)
        .def_property_readonly(
            "reason", [](const RecordedEvent& its) { return to_text(its.reason); },
            recording_doc::event_reason)
        .def_readonly("count", &RecordedEvent::count, recording_doc::event_count)
        .def("__repr__",
             [](const RecordedEvent& its) { return to_text("<RecordedEvent " + its.event + ">"); });
    using Its = PythonReader;
    py::class_<Its> its{module, "RecordingReader", recording_doc::recording_reader};
    add_with(its);
    add_init<Its>(its, "RecordingReader(path, **options)");
    its.def("select", &Its::select, py::arg("fids") = py::none{}, py::arg("from_") = py::none{},
            py::arg("until") = py::none{}, recording_doc::select)
        .def("rewind", &Its::rewind, recording_doc::rewind)
        .def("next", &Its::next, recording_doc::reader_next)
        .def("__iter__", [](py::object self) { return self; })
        .def("__next__", &Its::next_message)
        .def("begin_time", &Its::begin_time, recording_doc::begin_time)
        .def("_files", &Its::files)
        .def("_damage", &Its::damage)
        .def("_torn", &Its::torn)
        .def("damage_count", &Its::number<&RecordingReader::damage_count>,
             recording_doc::damage_count)
        .def("foreign_messages", &Its::number<&RecordingReader::foreign_messages>,
             recording_doc::foreign_messages)
        .def("backward_steps", &Its::number<&RecordingReader::backward_steps>,
             recording_doc::backward_steps)
        .def("total_bytes", &Its::number<&RecordingReader::total_bytes>, recording_doc::total_bytes)
        .def("passed_bytes", &Its::number<&RecordingReader::passed_bytes>,
             recording_doc::passed_bytes)
        .def("close", &Its::close, recording_doc::reader_close)
        .def_property_readonly("closed", &Its::closed, recording_doc::reader_closed);
}

void bind_writer(py::module_& module) {
    const py::arg_v timeout{"timeout", py::none{}};
    using Its = PythonWriter;
    py::class_<Its> its{module, "RecordingWriter", recording_doc::recording_writer};
    add_with(its, AtInterrupt::close); // otherwise the file would have no index
    add_init<Its>(its, "RecordingWriter(path, **options)");
    its.def("write", &Its::write, py::arg("message"), py::kw_only{}, timeout,
            recording_doc::write_message)
        .def("write", &Its::write_recorded, py::arg("message"), py::kw_only{}, timeout)
        .def("write_event", &Its::write_event, py::arg("event"), py::kw_only{},
             py::arg("publisher") = "", py::arg("fids") = py::none{}, py::arg("count") = py::none{},
             py::arg("reason") = "", py::arg("time") = py::none{}, timeout,
             recording_doc::write_event)
        .def("write_bytes", &Its::write_bytes, py::arg("fid"), py::arg("data"),
             py::arg("status") = 0, py::kw_only{}, py::arg("time") = py::none{}, timeout,
             recording_doc::write_bytes)
        .def("write_batch", &Its::write_batch, py::arg("batch"), py::kw_only{}, timeout,
             recording_doc::write_batch)
        .def("skip", &Its::skip, py::arg("fid"), py::arg("count"), recording_doc::skip)
        .def("wait_until_writable", &Its::wait_until_writable, timeout,
             recording_doc::wait_until_writable)
        .def("flush", &Its::flush, recording_doc::flush_recording)
        .def("_stats", &Its::stats)
        .def("close", &Its::close_in_order, recording_doc::writer_close)
        .def_property_readonly("full", &Its::is_full, recording_doc::full)
        .def_property_readonly("closed", &Its::closed, recording_doc::writer_closed);
}

} // namespace

void add_recording(py::module_& module) {
    bind_reader(module);
    bind_writer(module);
}

} // namespace netio::python
