// SPDX-License-Identifier: Apache-2.0
#include "apps/file/export.hpp"

#include "pubsub/recording/mcap.hpp"
#include "pubsub/recording/mcap_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

namespace {

namespace mcap = netio::mcap;
using mcap::ByteSpan;
using mcap::McapInput;
using mcap::Opcode;

class Repair {
  public:
    Repair(const std::string& from, const std::string& to, std::size_t limit_bytes)
        : in_{from, limit_bytes}, out_{to} {}

    RepairReport run(const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
        out_.write(mcap::magic);
        std::uint64_t offset = McapInput::first_record;
        bool has_header = false;
        while (offset < in_.size()) {
            on_progress(offset, in_.size());
            const auto record = in_.record_at(offset);
            const bool is_end =
                record && (record->opcode == Opcode::data_end || record->opcode == Opcode::footer);
            if (is_end && !in_.find_chunk(offset + 1)) break; // else the kind is damaged
            if (!has_header) {
                write_header(record);
                has_header = true;
                if (record && record->opcode == Opcode::header) {
                    offset = record->end();
                    continue;
                }
            }
            const bool is_known = record && !is_end && record->opcode <= Opcode::data_end;
            offset = is_known || (record && record->opcode >= Opcode{0x80}) ? copy(*record)
                                                                            : skip(offset);
        }
        if (!has_header) write_header(std::nullopt);
        write_end();
        out_.finish();
        return report_;
    }

  private:
    void write_header(const std::optional<McapInput::Record>& record) {
        if (record && record->opcode == Opcode::header) return out_.write(in_.whole(*record));
        mcap::Bytes header;
        append(header, mcap::Header{.profile = std::string{mcap::profile},
                                    .library = mcap::library_text()});
        out_.write(header);
    }

    // Returns where the next whole chunk is, or the end of the file.
    std::uint64_t skip(std::uint64_t offset) {
        const auto chunk = in_.find_chunk(offset + 1);
        const std::uint64_t next = chunk ? chunk->offset : in_.size();
        ++report_.skipped_places;
        report_.skipped_bytes += next - offset;
        return next;
    }

    std::uint64_t copy(const McapInput::Record& record) {
        switch (record.opcode) {
        case Opcode::chunk:
            return copy_chunk(record);
        case Opcode::schema:
        case Opcode::channel:
            keep(record.opcode, in_.whole(record));
            out_.write(in_.whole(record));
            break;
        case Opcode::message:
            count(in_.content(record));
            out_.write(in_.whole(record));
            break;
        case Opcode::metadata: {
            mcap::RecordParser parser{in_.content(record)};
            metadata_.push_back({.offset = out_.size(),
                                 .length = mcap::record_head_bytes + record.length,
                                 .name = std::string{parser.text()}});
            out_.write(in_.whole(record));
            break;
        }
        case Opcode::attachment:
            ++statistics_.attachment_count;
            out_.write(in_.whole(record));
            break;
        default: // message indexes, which copy_chunk() writes, and kinds of later versions
            break;
        }
        return record.end();
    }

    std::uint64_t copy_chunk(const McapInput::Record& record) {
        std::string problem;
        const auto records = in_.chunk_records(record, problem);
        if (!records) return skip(record.offset);
        indexes_.clear();
        visit(*records);
        const auto head = in_.chunk(record);
        mcap::ChunkIndex index{.message_start_time = head->message_start_time,
                               .message_end_time = head->message_end_time,
                               .chunk_start_offset = out_.size(),
                               .chunk_length = mcap::record_head_bytes + record.length,
                               .compression = head->compression,
                               .compressed_size = head->records_size,
                               .uncompressed_size = head->uncompressed_size};
        out_.write(in_.whole(record));
        const std::uint64_t begin = out_.size();
        mcap::Bytes encoded;
        for (const auto& [channel, entries] : indexes_) {
            index.message_index_offsets.emplace_back(channel, begin + encoded.size());
            append(encoded, mcap::MessageIndex{.channel_id = channel, .entries = entries});
        }
        index.message_index_length = encoded.size();
        out_.write(encoded);
        append(chunk_indexes_, index);
        ++statistics_.chunk_count;
        ++report_.chunks;
        return record.end();
    }

    void visit(ByteSpan records) {
        std::uint64_t offset = 0;
        mcap::RecordParser parser{records};
        while (!parser.rest().empty()) {
            const Opcode opcode{parser.u8()};
            const std::uint64_t length = parser.u64();
            const ByteSpan content = parser.bytes(length);
            if (!parser.is_whole()) break;
            const auto whole = records.subspan(static_cast<std::size_t>(offset),
                                               mcap::record_head_bytes + content.size());
            if (opcode == Opcode::schema || opcode == Opcode::channel) keep(opcode, whole);
            if (opcode == Opcode::message) {
                if (const auto message = count(content))
                    indexes_[message->channel_id].push_back(
                        {.log_time = message->log_time, .offset = offset});
            }
            offset += whole.size();
        }
    }

    // Keeps a record for the summary, once for each id.
    void keep(Opcode opcode, ByteSpan whole) {
        mcap::RecordParser parser{whole.subspan(mcap::record_head_bytes)};
        const std::uint16_t id = parser.u16();
        const bool is_schema = opcode == Opcode::schema;
        if (!(is_schema ? schema_ids_ : channel_ids_).insert(id).second) return;
        mcap::Bytes& kept = is_schema ? schemas_ : channels_;
        kept.insert(kept.end(), whole.begin(), whole.end());
        if (is_schema)
            ++statistics_.schema_count;
        else
            ++statistics_.channel_count;
    }

    std::optional<mcap::MessageRecord> count(ByteSpan content) {
        const auto message = mcap::parse_message(content);
        if (!message) return message;
        if (statistics_.message_count == 0) {
            statistics_.message_start_time = statistics_.message_end_time = message->log_time;
        }
        statistics_.message_start_time =
            std::min(statistics_.message_start_time, message->log_time);
        statistics_.message_end_time = std::max(statistics_.message_end_time, message->log_time);
        ++statistics_.message_count;
        ++counts_[message->channel_id];
        ++report_.messages;
        return message;
    }

    void write_end() {
        statistics_.metadata_count = static_cast<std::uint32_t>(metadata_.size());
        statistics_.channel_message_counts.assign(counts_.begin(), counts_.end());
        mcap::Bytes statistics;
        append(statistics, statistics_);
        mcap::Bytes metadata;
        for (const mcap::MetadataIndex& each : metadata_)
            append(metadata, each);
        const std::array<mcap::SummaryGroup, 5> groups{{{Opcode::schema, schemas_},
                                                        {Opcode::channel, channels_},
                                                        {Opcode::statistics, statistics},
                                                        {Opcode::chunk_index, chunk_indexes_},
                                                        {Opcode::metadata_index, metadata}}};
        mcap::Bytes end;
        append_end(end, out_.size(), groups);
        out_.write(end);
    }

    McapInput in_;
    NewFile out_;
    RepairReport report_;
    std::map<std::uint16_t, std::vector<mcap::MessageIndexEntry>> indexes_; // of the chunk
    std::map<std::uint16_t, std::uint64_t> counts_;
    std::set<std::uint16_t> schema_ids_;
    std::set<std::uint16_t> channel_ids_;
    mcap::Bytes schemas_;
    mcap::Bytes channels_;
    mcap::Bytes chunk_indexes_;
    std::vector<mcap::MetadataIndex> metadata_;
    mcap::Statistics statistics_;
};

} // namespace

RepairReport repair(const std::string& from, const std::string& to, std::size_t chunk_limit_bytes,
                    const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
    return Repair{from, to, chunk_limit_bytes}.run(on_progress);
}

} // namespace apps::file
