// SPDX-License-Identifier: Apache-2.0
#include "apps/file/export.hpp"

#include "apps/common/io.hpp"
#include "apps/file/hdf5_export.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace apps::file {
namespace {

// Standard output, or a new file, removed by the destructor unless it was finished.
class Output {
  public:
    explicit Output(const std::string& path) : path_{path} {
        if (path == "-") {
            out_ = stdout;
            return;
        }
        out_ = std::fopen(path.c_str(), "wxb");
        if (out_ == nullptr && errno == EEXIST)
            throw netio::RecordingError{
                path + ": exists; nothing is overwritten: give the name of a new file"};
        if (out_ == nullptr) throw_errno(path);
    }
    ~Output() {
        if (out_ == nullptr || out_ == stdout) return;
        std::fclose(out_);
        ::unlink(path_.c_str());
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void write(std::string_view text) {
        if (std::fwrite(text.data(), 1, text.size(), out_) != text.size()) throw_errno(path_);
    }
    void write(std::span<const std::byte> bytes) {
        write(std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    void finish() {
        if (std::fflush(out_) != 0) throw_errno(path_);
        if (out_ == stdout) return;
        std::FILE* const closed = std::exchange(out_, nullptr);
        if (std::fclose(closed) == 0) return;
        ::unlink(path_.c_str());
        throw_errno(path_);
    }

  private:
    std::string path_;
    std::FILE* out_ = nullptr;
};

std::string csv_line(const netio::RecordedMessage& message) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string line = fmt::format(
        "{},{},{},{},{},{},", message.arrival_time.time_since_epoch().count(),
        message.has_publish_time ? std::to_string(message.publish_time.time_since_epoch().count())
                                 : std::string{},
        to_string(message.fid), message.sequence, message.status, message.bytes.size());
    for (const std::byte each : message.bytes) {
        line += digits[std::to_integer<std::size_t>(each >> 4)];
        line += digits[std::to_integer<std::size_t>(each & std::byte{15})];
    }
    return line + "\n";
}

} // namespace

ExportReport export_recording(netio::RecordingReader& reader, ExportForm form,
                              const std::string& path, const std::function<void()>& on_progress) {
    if (form == ExportForm::hdf5) return export_hdf5(reader, path, on_progress);
    Output out{path};
    ExportReport report;
    std::set<netio::Fid> fids;
    if (form == ExportForm::csv)
        out.write("arrival_time_ns,publish_time_ns,fid,sequence,status,size,bytes\n");
    while (reader.next()) {
        on_progress();
        if (reader.event() != nullptr) continue;
        const netio::RecordedMessage& message = reader.message();
        fids.insert(message.fid);
        if (form == ExportForm::raw && fids.size() > 1)
            throw std::invalid_argument{
                fmt::format("--as raw is for one fid, but {} and {} are selected; choose one with "
                            "--fid, or export as csv or hdf5",
                            to_string(*fids.begin()), to_string(*fids.rbegin()))};
        ++report.messages;
        report.bytes += message.bytes.size();
        if (form == ExportForm::csv) {
            out.write(csv_line(message));
        } else {
            out.write(message.bytes);
        }
    }
    report.fids = fids.size();
    out.finish();
    return report;
}

} // namespace apps::file
