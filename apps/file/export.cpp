// SPDX-License-Identifier: Apache-2.0
#include "apps/file/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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

constexpr std::size_t largest_message_bytes = std::size_t{1} << 30;

[[noreturn]] void refuse(std::string_view field, std::string_view why) {
    throw std::invalid_argument{
        fmt::format("--layout: '{}': {}; allowed: fields as NAME:TYPE or NAME:TYPE:UNIT, separated "
                    "by commas; a type is i8, i16, i32, i64, u8, u16, u32, u64, f32 or f64, and "
                    "u16[8] is an array",
                    field, why)};
}

bool read_number(std::string_view text, std::size_t& number) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    return !text.empty() && result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

void read_type(std::string_view text, std::string_view whole, LayoutField& field) {
    const std::size_t bracket = text.find('[');
    if (bracket != std::string_view::npos) {
        if (!text.ends_with(']') ||
            !read_number(text.substr(bracket + 1, text.size() - bracket - 2), field.count) ||
            field.count == 0 || field.count > largest_message_bytes)
            refuse(whole, "the number of elements is wrong");
        text = text.substr(0, bracket);
    }
    std::size_t bits = 0;
    if (text.empty() || !read_number(text.substr(1), bits) ||
        (bits != 8 && bits != 16 && bits != 32 && bits != 64) ||
        std::string_view{"iuf"}.find(text.front()) == std::string_view::npos ||
        (text.front() == 'f' && bits < 32))
        refuse(whole, "the type is unknown");
    field.kind = text.front() == 'i'   ? LayoutField::Kind::signed_integer
                 : text.front() == 'u' ? LayoutField::Kind::unsigned_integer
                                       : LayoutField::Kind::real;
    field.element_bytes = bits / 8;
}

} // namespace

std::vector<LayoutField> parse_layout(std::string_view text) {
    std::vector<LayoutField> layout;
    while (true) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view whole = text.substr(0, comma);
        const std::size_t colon = whole.find(':');
        if (colon == std::string_view::npos || colon == 0)
            refuse(whole, "there is no name and type");
        const std::size_t second = std::min(whole.find(':', colon + 1), whole.size());
        LayoutField field{.name = std::string{whole.substr(0, colon)}, .unit = {}};
        read_type(whole.substr(colon + 1, second - colon - 1), whole, field);
        if (second < whole.size()) field.unit = whole.substr(second + 1);
        if (std::ranges::find(layout, field.name, &LayoutField::name) != layout.end())
            refuse(whole, "the name is given twice");
        layout.push_back(std::move(field));
        if (bytes_of(layout) > largest_message_bytes) refuse(whole, "a message has at most 1 GiB");
        if (comma == text.size()) return layout;
        text.remove_prefix(comma + 1);
    }
}

std::size_t bytes_of(const std::vector<LayoutField>& layout) noexcept {
    std::size_t bytes = 0;
    for (const LayoutField& field : layout)
        bytes += field.bytes();
    return bytes;
}

ExportReport export_recording(netio::RecordingReader& reader, ExportForm form,
                              const std::string& path, const std::vector<LayoutField>& layout,
                              const std::function<void()>& on_progress) {
    if (form == ExportForm::hdf5) return export_hdf5(reader, path, layout, on_progress);
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
