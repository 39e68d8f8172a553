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
        // The record before, if its length may be damaged and reach into a whole chunk.
        std::optional<std::uint64_t> unchecked;
        read_summary();
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
            if (is_known || (record && record->opcode >= Opcode{0x80})) {
                unchecked = mcap::has_unchecked_length(record->opcode) ? std::optional{offset}
                                                                       : std::nullopt;
                offset = copy(*record);
            } else {
                offset = skip(offset, std::exchange(unchecked, std::nullopt).value_or(offset));
            }
        }
        if (!has_header) write_header(std::nullopt);
        name_lost_channels();
        write_end();
        out_.finish();
        return report_;
    }

  private:
    void write_header(const std::optional<McapInput::Record>& record) {
        if (record && record->opcode == Opcode::header) {
            out_.write(in_.whole(*record));
        } else {
            mcap::Bytes header;
            append(header, mcap::Header{.profile = std::string{mcap::profile},
                                        .library = mcap::library_text()});
            out_.write(header);
        }
        out_.write(schemas_); // of the summary
        out_.write(channels_);
    }

    // A checksum protects the schemas and channels of a summary, but not those between chunks.
    void read_summary() {
        const auto end = in_.end();
        if (!end || end->footer.summary_start == 0 || end->footer.summary_crc == 0) return;
        mcap::Bytes whole;
        static_cast<void>(in_.visit_summary(*end, [&](Opcode opcode, ByteSpan content) {
            if (opcode != Opcode::schema && opcode != Opcode::channel) return;
            whole.assign(mcap::record_head_bytes, static_cast<std::byte>(opcode));
            netio::wire::store(whole.data() + 1, std::uint64_t{content.size()});
            whole.insert(whole.end(), content.begin(), content.end());
            keep(opcode, whole);
        }));
    }

    // Messages of a channel whose record is lost stay in the file, which would not be valid without
    // the record of each channel.
    void name_lost_channels() {
        for (const auto& [id, messages] : counts_) {
            if (channel_ids_.contains(id)) continue;
            mcap::Bytes channel;
            append(channel, mcap::Channel{.id = id,
                                          .topic = fmt::format("lost/{}", id),
                                          .message_encoding = "unknown",
                                          .metadata = {}});
            out_.write(channel);
            keep(Opcode::channel, channel);
            ++report_.lost_channels;
            report_.lost_channel_messages += messages;
        }
    }

    // Returns whether it was kept: the first one with its id, and not damaged.
    bool keep_outside_chunk(const McapInput::Record& record) {
        if (record.opcode == Opcode::channel) {
            const auto channel = mcap::parse_channel(in_.content(record));
            if (!channel ||
                (channel->message_encoding == mcap::fid_encoding && !mcap::fid_of(*channel))) {
                ++report_.skipped_places;
                report_.skipped_bytes += mcap::record_head_bytes + record.length;
                return false;
            }
        }
        return keep(record.opcode, in_.whole(record));
    }

    // Returns where the next whole chunk is, or the end of the file.
    // `from`: where it may be, at `offset` or before.
    std::uint64_t skip(std::uint64_t offset, std::uint64_t from) {
        const auto chunk = in_.find_chunk(from + 1);
        const std::uint64_t next = chunk ? chunk->offset : in_.size();
        ++report_.skipped_places;
        report_.skipped_bytes += next - (chunk ? from : offset);
        return next;
    }

    std::uint64_t copy(const McapInput::Record& record) {
        switch (record.opcode) {
        case Opcode::chunk:
            return copy_chunk(record);
        case Opcode::schema:
        case Opcode::channel:
            if (keep_outside_chunk(record)) out_.write(in_.whole(record));
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
            if (record.opcode >= Opcode{0x80}) out_.write(in_.whole(record)); // of other programs
            break;
        }
        return record.end();
    }

    std::uint64_t copy_chunk(const McapInput::Record& record) {
        std::string problem;
        const auto records = in_.chunk_records(record, problem);
        if (!records) return skip(record.offset, record.offset);
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

    // Keeps a record for the summary, once for each id. Returns whether it was the first one.
    bool keep(Opcode opcode, ByteSpan whole) {
        mcap::RecordParser parser{whole.subspan(mcap::record_head_bytes)};
        const std::uint16_t id = parser.u16();
        const bool is_schema = opcode == Opcode::schema;
        if (!(is_schema ? schema_ids_ : channel_ids_).insert(id).second) return false;
        mcap::Bytes& kept = is_schema ? schemas_ : channels_;
        kept.insert(kept.end(), whole.begin(), whole.end());
        if (is_schema)
            ++statistics_.schema_count;
        else
            ++statistics_.channel_count;
        return true;
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

namespace {

class BetweenChunks {
  public:
    using Damage = netio::RecordingReader::Damage;

    BetweenChunks(const netio::RecordingReader::File& file, std::size_t limit_bytes)
        : in_{file.path, limit_bytes, file.bytes} {}

    std::vector<Damage> run(const std::function<void(std::uint64_t)>& on_progress) {
        const auto end = in_.end();
        if (end && end->footer.summary_start != 0) read_summary(*end);
        std::uint64_t offset = McapInput::first_record;
        while (offset < in_.size()) {
            on_progress(offset);
            const auto record = in_.record_at(offset);
            if (record && record->opcode == Opcode::data_end) {
                if (!end || end->footer.summary_start == 0 ||
                    record->end() == end->footer.summary_start)
                    break;
            } else if (record && record->opcode != Opcode::footer &&
                       (record->opcode < Opcode::data_end || record->opcode >= Opcode{0x80})) {
                check(*record);
                offset = record->end();
                continue;
            }
            if (!end) return std::move(found_); // torn, which the reader reports
            const auto chunk = in_.find_chunk(offset + 1);
            const std::uint64_t next = chunk ? chunk->offset : end->offset;
            add(offset, next - offset, "a record's kind or length is damaged");
            if (!chunk) break;
            offset = next;
        }
        for (const auto& [key, content] : declared_)
            if (!seen_.contains(key))
                add(end->footer.summary_start, 0,
                    fmt::format("the {} {} of the summary is not between the chunks",
                                key.first == Opcode::channel ? "channel" : "schema", key.second));
        return std::move(found_);
    }

  private:
    using Entries = std::vector<std::pair<std::uint64_t, std::uint64_t>>; // time and offset

    void read_summary(const McapInput::End& end) {
        const bool is_whole = in_.visit_summary(end, [&](Opcode opcode, ByteSpan content) {
            if (opcode == Opcode::channel || opcode == Opcode::schema)
                declared_[key_of(opcode, content)].assign(content.begin(), content.end());
        });
        if (!is_whole) declared_.clear(); // the reader reports that
    }
    static std::pair<Opcode, std::uint16_t> key_of(Opcode opcode, ByteSpan content) {
        return {opcode, mcap::RecordParser{content}.u16()};
    }

    void check(const McapInput::Record& record) {
        if (record.opcode == Opcode::chunk) return read_chunk(record);
        const ByteSpan content = in_.content(record);
        if (record.opcode == Opcode::message_index) return check_index(record, content);
        if (record.opcode != Opcode::channel && record.opcode != Opcode::schema) return;
        seen_.insert(key_of(record.opcode, content));
        const auto found = declared_.find(key_of(record.opcode, content));
        const bool differs = found == declared_.end() ? !declared_.empty()
                                                      : !std::ranges::equal(found->second, content);
        if (differs)
            add(record.offset, mcap::record_head_bytes + record.length,
                "a channel or schema differs from that of the summary");
    }

    void read_chunk(const McapInput::Record& record) {
        entries_.clear();
        std::string problem;
        const auto records = in_.chunk_records(record, problem);
        is_chunk_whole_ = records.has_value();
        if (!records) return add(record.offset, mcap::record_head_bytes + record.length, problem);
        std::uint64_t offset = 0;
        for (mcap::RecordParser parser{*records}; !parser.rest().empty();
             offset = records->size() - parser.rest().size()) {
            const Opcode opcode{parser.u8()};
            const ByteSpan content = parser.bytes(parser.u64());
            if (!parser.is_whole()) return;
            if (opcode == Opcode::channel || opcode == Opcode::schema)
                seen_.insert(key_of(opcode, content));
            if (opcode != Opcode::message) continue;
            if (const auto message = mcap::parse_message(content))
                entries_[message->channel_id].emplace_back(message->log_time, offset);
        }
    }

    void check_index(const McapInput::Record& record, ByteSpan content) {
        if (!is_chunk_whole_) return;
        mcap::RecordParser parser{content};
        const std::uint16_t channel = parser.u16();
        Entries written;
        for (mcap::RecordParser list{parser.bytes(parser.u32())};
             list.is_whole() && !list.rest().empty();) {
            const std::uint64_t time = list.u64();
            written.emplace_back(time, list.u64());
        }
        Entries& expected = entries_[channel];
        std::ranges::sort(written, {}, [](const auto& entry) { return entry.second; });
        if (!parser.is_whole() || !parser.rest().empty() || written != expected)
            add(record.offset, mcap::record_head_bytes + record.length,
                "the index of a channel contradicts its chunk");
    }

    void add(std::uint64_t offset, std::uint64_t bytes, std::string problem) {
        found_.push_back({in_.path(), offset, bytes, std::move(problem)});
    }

    McapInput in_;
    std::vector<Damage> found_;
    std::map<std::pair<Opcode, std::uint16_t>, mcap::Bytes> declared_; // in the summary
    std::set<std::pair<Opcode, std::uint16_t>> seen_;                  // before it
    std::map<std::uint16_t, Entries> entries_;                         // of the last chunk
    bool is_chunk_whole_ = false;
};

} // namespace

std::vector<netio::RecordingReader::Damage>
check_between_chunks(const netio::RecordingReader::File& file, std::size_t chunk_limit_bytes,
                     const std::function<void(std::uint64_t)>& on_progress) {
    return BetweenChunks{file, chunk_limit_bytes}.run(on_progress);
}

RepairReport repair(const std::string& from, const std::string& to, std::size_t chunk_limit_bytes,
                    const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
    return Repair{from, to, chunk_limit_bytes}.run(on_progress);
}

} // namespace apps::file
