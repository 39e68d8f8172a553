// SPDX-License-Identifier: Apache-2.0
#include "apps/file/export.hpp"

#include "apps/file/hdf5_export.hpp"
#include "apps/file/new_file.hpp"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace apps::file {
namespace {

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
    NewFile out{path};
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
