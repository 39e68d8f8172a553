// SPDX-License-Identifier: Apache-2.0
#include "apps/file/repair.hpp"

#include "apps/file/export.hpp"
#include "pubsub/recording/mcap.hpp"
#include "pubsub/recording/mcap_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace apps::file {
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
