// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes MCAP files in memory, chunk by chunk, also ones that netio's writer would not make.

#include "pubsub/recording/mcap.hpp"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netio {

class RecordingMaker {
  public:
    explicit RecordingMaker(std::string compression = {}) : compression_{std::move(compression)} {
        file_.assign(mcap::magic.begin(), mcap::magic.end());
        append(file_, mcap::Header{.profile = "netio", .library = "test"});
        append(file_, mcap::Metadata{.name = "netio", .metadata = {{"run", "7"}, {"part", "1"}}});
        ++statistics_.metadata_count;
    }

    // A channel for the fid is made at its first message.
    RecordingMaker& message(Fid fid, std::uint64_t sequence, std::uint64_t time,
                            std::string_view text, std::uint8_t status = 0) {
        std::uint16_t& channel = channel_of_[fid];
        if (channel == 0)
            channel = add_channel(mcap::fid_topic(fid), std::string{mcap::fid_encoding},
                                  {{"fid", to_string(fid)}, {"publisher", "10.0.0.1:1"}});
        mcap::Bytes data(mcap::fid_prefix_bytes);
        mcap::store_fid_prefix(data.data(), {.status = status, .sequence = sequence});
        const auto bytes = std::as_bytes(std::span{text});
        data.insert(data.end(), bytes.begin(), bytes.end());
        return raw_message(channel, time, data);
    }
    RecordingMaker& event(std::uint64_t time, std::string_view json) {
        if (events_ == 0)
            events_ = add_channel(std::string{mcap::events_topic},
                                  std::string{mcap::events_encoding}, {});
        const auto bytes = std::as_bytes(std::span{json});
        return raw_message(events_, time, bytes);
    }
    std::uint16_t add_channel(std::string topic, std::string encoding, mcap::Texts metadata) {
        const auto id = static_cast<std::uint16_t>(++statistics_.channel_count);
        mcap::Bytes record;
        append(record, mcap::Channel{.id = id,
                                     .topic = std::move(topic),
                                     .message_encoding = std::move(encoding),
                                     .metadata = std::move(metadata)});
        records_.insert(records_.end(), record.begin(), record.end());
        channels_.insert(channels_.end(), record.begin(), record.end());
        return id;
    }
    RecordingMaker& raw_message(std::uint16_t channel, std::uint64_t time,
                                std::span<const std::byte> data) {
        indexes_[channel].push_back({.log_time = time, .offset = records_.size()});
        const std::size_t at = records_.size();
        records_.resize(at + mcap::message_head_bytes);
        mcap::store_message_head(records_.data() + at,
                                 {.channel_id = channel, .log_time = time, .publish_time = time},
                                 data.size());
        records_.insert(records_.end(), data.begin(), data.end());
        begin_ = has_messages_ ? std::min(begin_, time) : time;
        end_ = has_messages_ ? std::max(end_, time) : time;
        has_messages_ = true;
        if (statistics_.message_count++ == 0) statistics_.message_start_time = time;
        statistics_.message_end_time = std::max(statistics_.message_end_time, time);
        ++counts_[channel];
        return *this;
    }

    RecordingMaker& end_chunk() {
        const mcap::Bytes stored = compressed();
        const std::uint64_t offset = file_.size();
        append(file_, mcap::ChunkFields{.message_start_time = begin_,
                                        .message_end_time = end_,
                                        .uncompressed_size = records_.size(),
                                        .uncompressed_crc = mcap::crc32(records_),
                                        .compression = compression_,
                                        .records_size = stored.size()});
        file_.insert(file_.end(), stored.begin(), stored.end());
        mcap::ChunkIndex index{.message_start_time = begin_,
                               .message_end_time = end_,
                               .chunk_start_offset = offset,
                               .chunk_length = file_.size() - offset,
                               .compression = compression_,
                               .compressed_size = stored.size(),
                               .uncompressed_size = records_.size()};
        const std::uint64_t indexes_begin = file_.size();
        for (const auto& [channel, entries] : indexes_) {
            index.message_index_offsets.emplace_back(channel, file_.size());
            append(file_, mcap::MessageIndex{.channel_id = channel, .entries = entries});
        }
        index.message_index_length = file_.size() - indexes_begin;
        append(chunk_indexes_, index);
        chunk_offsets.push_back(offset);
        ++statistics_.chunk_count;
        indexes_.clear();
        records_.clear();
        has_messages_ = false;
        return *this;
    }

    // What a killed writer leaves.
    const mcap::Bytes& unfinished() const { return file_; }
    mcap::Bytes finished() {
        mcap::Bytes file = file_;
        append(file, mcap::DataEnd{});
        const std::uint64_t summary = file.size();
        file.insert(file.end(), channels_.begin(), channels_.end());
        statistics_.channel_message_counts.assign(counts_.begin(), counts_.end());
        append(file, statistics_);
        file.insert(file.end(), chunk_indexes_.begin(), chunk_indexes_.end());
        mcap::Footer footer{.summary_start = summary};
        const std::size_t at = file.size();
        append(file, footer);
        footer.summary_crc = mcap::crc32(
            std::span{file}.subspan(static_cast<std::size_t>(summary),
                                    file.size() - static_cast<std::size_t>(summary) - 4));
        file.resize(at);
        append(file, footer);
        file.insert(file.end(), mcap::magic.begin(), mcap::magic.end());
        return file;
    }

    std::vector<std::uint64_t> chunk_offsets;

    static void write(const std::string& path, std::span<const std::byte> bytes) {
        std::ofstream out{path, std::ios::binary | std::ios::trunc};
        out.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
    }

  private:
    mcap::Bytes compressed() const {
        if (compression_.empty()) return records_;
        mcap::Bytes out(std::max(LZ4F_compressFrameBound(records_.size(), nullptr),
                                 ZSTD_compressBound(records_.size())));
        out.resize(
            compression_ == "lz4"
                ? LZ4F_compressFrame(out.data(), out.size(), records_.data(), records_.size(),
                                     nullptr)
                : ZSTD_compress(out.data(), out.size(), records_.data(), records_.size(), 1));
        return out;
    }

    std::string compression_;
    mcap::Bytes file_;
    mcap::Bytes records_; // of the open chunk
    mcap::Bytes channels_;
    mcap::Bytes chunk_indexes_;
    std::map<Fid, std::uint16_t> channel_of_;
    std::uint16_t events_ = 0;
    std::map<std::uint16_t, std::vector<mcap::MessageIndexEntry>> indexes_;
    std::map<std::uint16_t, std::uint64_t> counts_;
    mcap::Statistics statistics_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    bool has_messages_ = false;
};

} // namespace netio
