// SPDX-License-Identifier: Apache-2.0
#include "apps/file/export.hpp"

#include <stdexcept>

#ifndef NETIO_HAS_HDF5

namespace apps::file {

void require_hdf5() {
    throw std::runtime_error{"this netio was built without HDF5; install libhdf5-dev and build it "
                             "again, or export as csv or raw"};
}

ExportReport export_hdf5(netio::RecordingReader&, const std::string&,
                         const std::vector<LayoutField>&, const std::function<void()>&) {
    require_hdf5();
    return {};
}

} // namespace apps::file

#else

#include "netio/base/version.hpp"

#include <hdf5.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace apps::file {
namespace {

// Messages of all fids in memory before they are written.
constexpr std::size_t buffer_limit_bytes = std::size_t{256} << 20;
// From this size on a message of a fixed size is a chunk of its dataset, written as it is.
constexpr std::size_t direct_bytes = 16 * 1024;

// Owns an identifier of the library.
class Handle {
  public:
    using Close = herr_t (*)(hid_t);
    Handle(hid_t id, Close close, std::string_view what) : id_{id}, close_{close} {
        if (id_ < 0) throw std::runtime_error{fmt::format("HDF5 cannot create or open {}", what)};
    }
    ~Handle() {
        if (id_ >= 0) close_(id_);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    hid_t get() const noexcept { return id_; }
    // Closes it now, to see an error.
    void finish(std::string_view what) {
        if (close_(std::exchange(id_, -1)) < 0)
            throw std::runtime_error{fmt::format("HDF5 cannot write {}", what)};
    }

  private:
    hid_t id_;
    Close close_;
};

struct Sizes {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t smallest = UINT64_MAX;
    std::uint64_t largest = 0;
    std::uint64_t with_publish_time = 0;
    std::string publisher;

    bool is_fixed() const noexcept { return smallest == largest && largest > 0; }
    bool is_direct() const noexcept { return is_fixed() && largest >= direct_bytes; }
};

// What one fid has in memory, and how much of it is written.
struct Pending {
    std::vector<std::int64_t> arrival_time;
    std::vector<std::int64_t> publish_time;
    std::vector<std::uint64_t> sequence;
    std::vector<std::uint8_t> status;
    std::vector<std::uint64_t> offsets; // ends of the messages, variable sizes only
    std::vector<std::byte> bytes;
    std::uint64_t written_messages = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t end = 0; // of all bytes
};

std::string group_of(netio::Fid fid) {
    return fmt::format("/fid_0x{:016x}", to_integer(fid));
}

class Hdf5File {
  public:
    // Replaces the file, which the caller has created.
    explicit Hdf5File(const std::string& path)
        : path_{path}, file_{H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                             H5Fclose, path} {}

    const std::string& path() const noexcept { return path_; }
    void text(const std::string& object, const char* name, const std::string& value) {
        const Handle on{H5Oopen(file_.get(), object.c_str(), H5P_DEFAULT), H5Oclose, object};
        const Handle type{H5Tcopy(H5T_C_S1), H5Tclose, name};
        H5Tset_size(type.get(), H5T_VARIABLE); // of this kind h5py makes a str
        H5Tset_cset(type.get(), H5T_CSET_UTF8);
        const Handle space{H5Screate(H5S_SCALAR), H5Sclose, name};
        const Handle attribute{
            H5Acreate2(on.get(), name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
            name};
        const char* const written = value.c_str();
        check(H5Awrite(attribute.get(), type.get(), &written));
    }
    void group(const std::string& name) {
        const Handle made{
            H5Gcreate2(file_.get(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose,
            name};
    }
    // Zero columns: one dimension. `chunk_rows` 0: contiguous.
    void dataset(const std::string& name, hid_t type, hsize_t rows, hsize_t columns,
                 hsize_t chunk_rows) {
        const std::array<hsize_t, 2> size{rows, columns};
        const int rank = columns > 0 ? 2 : 1;
        const Handle space{H5Screate_simple(rank, size.data(), nullptr), H5Sclose, name};
        const Handle properties{H5Pcreate(H5P_DATASET_CREATE), H5Pclose, name};
        if (chunk_rows > 0) {
            const std::array<hsize_t, 2> chunk{chunk_rows, columns};
            check(H5Pset_chunk(properties.get(), rank, chunk.data()));
        }
        const Handle made{H5Dcreate2(file_.get(), name.c_str(), type, space.get(), H5P_DEFAULT,
                                     properties.get(), H5P_DEFAULT),
                          H5Dclose, name};
    }
    void write(const std::string& name, hid_t type, hsize_t first, hsize_t rows, hsize_t columns,
               const void* data) {
        if (rows == 0) return;
        const Handle set{H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose, name};
        const Handle there{H5Dget_space(set.get()), H5Sclose, name};
        const std::array<hsize_t, 2> start{first, 0};
        const std::array<hsize_t, 2> count{rows, columns};
        check(H5Sselect_hyperslab(there.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                                  nullptr));
        const Handle here{H5Screate_simple(columns > 0 ? 2 : 1, count.data(), nullptr), H5Sclose,
                          name};
        check(H5Dwrite(set.get(), type, here.get(), there.get(), H5P_DEFAULT, data));
    }
    void write_row_as_chunk(const std::string& name, hsize_t row, std::span<const std::byte> data) {
        const Handle set{H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose, name};
        const std::array<hsize_t, 2> start{row, 0};
        check(H5Dwrite_chunk(set.get(), H5P_DEFAULT, 0, start.data(), data.size(), data.data()));
    }
    void finish() { file_.finish(path_); }

  private:
    void check(herr_t result) const {
        if (result < 0)
            throw std::runtime_error{path_ + ": HDF5 cannot write; check the free space"};
    }

    std::string path_;
    Handle file_;
};

class Exporter {
  public:
    Exporter(netio::RecordingReader& reader, const std::string& path,
             const std::vector<LayoutField>& layout, const std::function<void()>& on_progress)
        : reader_{reader}, on_progress_{on_progress}, layout_{layout}, file_{path} {
        if (!layout_.empty()) record_type_.emplace(type_of(layout_), H5Tclose, "the layout");
    }

    ExportReport run() {
        measure();
        refuse_other_sizes();
        create();
        reader_.rewind();
        while (reader_.next()) {
            on_progress_();
            if (reader_.event() == nullptr) add(reader_.message());
        }
        flush();
        file_.finish();
        report_.fids = sizes_.size();
        return report_;
    }

  private:
    void measure() {
        while (reader_.next()) {
            on_progress_();
            if (reader_.event() != nullptr) continue;
            const netio::RecordedMessage& message = reader_.message();
            Sizes& sizes = sizes_[message.fid];
            if (sizes.messages++ == 0) sizes.publisher = message.publisher;
            sizes.bytes += message.bytes.size();
            sizes.smallest = std::min<std::uint64_t>(sizes.smallest, message.bytes.size());
            sizes.largest = std::max<std::uint64_t>(sizes.largest, message.bytes.size());
            if (message.has_publish_time) ++sizes.with_publish_time;
        }
    }

    static hid_t element_type(const LayoutField& field) {
        const std::size_t which = field.element_bytes == 1   ? 0
                                  : field.element_bytes == 2 ? 1
                                  : field.element_bytes == 4 ? 2
                                                             : 3;
        switch (field.kind) {
        case LayoutField::Kind::signed_integer:
            return std::array{H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE}.at(which);
        case LayoutField::Kind::unsigned_integer:
            return std::array{H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE}.at(which);
        case LayoutField::Kind::real:
            return which == 2 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
        }
        return H5I_INVALID_HID;
    }
    static hid_t type_of(const std::vector<LayoutField>& layout) {
        const hid_t record = H5Tcreate(H5T_COMPOUND, bytes_of(layout));
        std::size_t offset = 0;
        for (const LayoutField& field : layout) {
            if (field.count > 0) {
                const hsize_t count = field.count;
                const Handle array{H5Tarray_create2(element_type(field), 1, &count), H5Tclose,
                                   field.name};
                H5Tinsert(record, field.name.c_str(), offset, array.get());
            } else {
                H5Tinsert(record, field.name.c_str(), offset, element_type(field));
            }
            offset += field.bytes();
        }
        return record;
    }
    // With a layout all messages are records of its type.
    void refuse_other_sizes() const {
        if (layout_.empty()) return;
        for (const auto& [fid, sizes] : sizes_)
            if (sizes.smallest != bytes_of(layout_) || sizes.largest != bytes_of(layout_))
                throw std::invalid_argument{fmt::format(
                    "--layout: its fields have {} bytes, but messages of fid {} have {} to {}; "
                    "choose fids with --fid, or correct the layout",
                    bytes_of(layout_), to_string(fid), sizes.smallest, sizes.largest)};
    }

    void create_data(const std::string& data, const Sizes& sizes) {
        const hsize_t chunk_rows = sizes.is_direct() ? 1 : 0;
        if (!record_type_) {
            file_.dataset(data, H5T_STD_U8LE, sizes.messages, sizes.largest, chunk_rows);
            file_.text(data, "units", "bytes, a row for each message");
            return;
        }
        file_.dataset(data, record_type_->get(), sizes.messages, 0, chunk_rows);
        for (const LayoutField& field : layout_)
            if (!field.unit.empty()) file_.text(data, (field.name + ".units").c_str(), field.unit);
    }

    void create_times(const std::string& group, const Sizes& sizes) {
        const auto time = [&](const std::string& name, const std::string& meaning) {
            file_.dataset(group + name, H5T_STD_I64LE, sizes.messages, 0, 0);
            file_.text(group + name, "units", "ns since 1970-01-01T00:00:00Z");
            file_.text(group + name, "meaning", meaning);
        };
        time("/arrival_time", "when the message arrived at the recorder");
        if (sizes.with_publish_time > 0)
            time("/publish_time", "the publisher's time stamp; 0: it sent none");
    }

    void create() {
        file_.text("/", "creator", fmt::format("netio {}", netio::version()));
        for (const auto& [fid, sizes] : sizes_) {
            const std::string group = group_of(fid);
            file_.group(group);
            file_.text(group, "fid", to_string(fid));
            file_.text(group, "publisher", sizes.publisher);
            create_times(group, sizes);
            file_.dataset(group + "/sequence", H5T_STD_U64LE, sizes.messages, 0, 0);
            file_.text(group + "/sequence", "meaning",
                       "number of the message within its fid; absent numbers are lost messages");
            file_.dataset(group + "/status", H5T_STD_U8LE, sizes.messages, 0, 0);
            if (sizes.is_fixed()) {
                create_data(group + "/data", sizes);
            } else {
                file_.dataset(group + "/bytes", H5T_STD_U8LE, sizes.bytes, 0, 0);
                file_.dataset(group + "/offsets", H5T_STD_U64LE, sizes.messages + 1, 0, 0);
                file_.text(group + "/offsets", "units", "bytes");
                file_.text(group + "/offsets", "meaning",
                           "message i is bytes[offsets[i]:offsets[i+1]]");
            }
        }
    }

    void add(const netio::RecordedMessage& message) {
        const Sizes& sizes = sizes_.at(message.fid);
        Pending& pending = pending_[message.fid];
        pending.arrival_time.push_back(message.arrival_time.time_since_epoch().count());
        if (sizes.with_publish_time > 0)
            pending.publish_time.push_back(
                message.has_publish_time ? message.publish_time.time_since_epoch().count() : 0);
        pending.sequence.push_back(message.sequence);
        pending.status.push_back(message.status);
        buffered_bytes_ += 25;
        if (sizes.is_direct()) {
            file_.write_row_as_chunk(group_of(message.fid) + "/data",
                                     pending.written_messages + pending.sequence.size() - 1,
                                     message.bytes);
        } else {
            pending.bytes.insert(pending.bytes.end(), message.bytes.begin(), message.bytes.end());
            buffered_bytes_ += message.bytes.size();
        }
        pending.end += message.bytes.size();
        if (!sizes.is_fixed()) pending.offsets.push_back(pending.end);
        ++report_.messages;
        report_.bytes += message.bytes.size();
        if (buffered_bytes_ >= buffer_limit_bytes) flush();
    }

    void flush() {
        for (auto& [fid, pending] : pending_) {
            const Sizes& sizes = sizes_.at(fid);
            const std::string group = group_of(fid);
            const hsize_t first = pending.written_messages;
            const hsize_t rows = pending.sequence.size();
            file_.write(group + "/arrival_time", H5T_NATIVE_INT64, first, rows, 0,
                        pending.arrival_time.data());
            file_.write(group + "/publish_time", H5T_NATIVE_INT64, first,
                        pending.publish_time.size(), 0, pending.publish_time.data());
            file_.write(group + "/sequence", H5T_NATIVE_UINT64, first, rows, 0,
                        pending.sequence.data());
            file_.write(group + "/status", H5T_NATIVE_UINT8, first, rows, 0, pending.status.data());
            if (!sizes.is_fixed()) {
                // The first offset is 0, the value of an element that is not written.
                file_.write(group + "/offsets", H5T_NATIVE_UINT64, first + 1, rows, 0,
                            pending.offsets.data());
                file_.write(group + "/bytes", H5T_NATIVE_UINT8, pending.written_bytes,
                            pending.bytes.size(), 0, pending.bytes.data());
            } else if (!sizes.is_direct()) {
                file_.write(group + "/data", record_type_ ? record_type_->get() : H5T_NATIVE_UINT8,
                            first, rows, record_type_ ? 0 : sizes.largest, pending.bytes.data());
            }
            const std::uint64_t end = pending.end;
            pending = {.written_messages = first + rows, .written_bytes = end, .end = end};
        }
        buffered_bytes_ = 0;
    }

    netio::RecordingReader& reader_;
    const std::function<void()>& on_progress_;
    const std::vector<LayoutField>& layout_;
    std::optional<Handle> record_type_; // of the layout
    Hdf5File file_;
    ExportReport report_;
    std::map<netio::Fid, Sizes> sizes_;
    std::map<netio::Fid, Pending> pending_;
    std::size_t buffered_bytes_ = 0;
};

// HDF5 does not report why a file cannot be created.
void create_new(const std::string& path) {
    const Descriptor created{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
    if (created.is_open()) return;
    if (errno == EEXIST) refuse_existing(path);
    netio::mcap::throw_file_error("cannot create", path, errno);
}

} // namespace

void require_hdf5() {}

ExportReport export_hdf5(netio::RecordingReader& reader, const std::string& path,
                         const std::vector<LayoutField>& layout,
                         const std::function<void()>& on_progress) {
    // At exit the library would close a file again that could not be written, and crash.
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    create_new(path);
    try {
        return Exporter{reader, path, layout, on_progress}.run();
    } catch (...) {
        ::unlink(path.c_str());
        throw;
    }
}

} // namespace apps::file

#endif
