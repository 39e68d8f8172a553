// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages of a chunk while they are collected: their records are as in the file. No I/O.

#include "netio/base/kept_bytes.hpp"
#include "pubsub/recording/mcap.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace netio::mcap::inline v0_3 {

class Chunk {
  public:
    // Of a message, for the message indexes.
    struct Item {
        std::uint64_t log_time;
        std::uint64_t offset;
        std::uint16_t channel;
    };
    // Memory of the user, which follows the first `at` bytes of own memory.
    struct Piece {
        std::size_t at;
        KeptBytes bytes;
    };

    // Allocates memory for that many bytes of records, so that the chunk does not grow by copies:
    // their page faults take longer than recording small messages.
    void reserve(std::size_t bytes) {
        if (bytes > capacity_) grow_to(bytes);
    }
    // Appends the head of a message of `data_bytes` bytes, and returns where to store the first
    // `stored_bytes` of them. The caller must append the others with append_piece().
    std::byte* append_message(const MessageFields& fields, std::size_t data_bytes,
                              std::size_t stored_bytes) {
        items_.push_back({fields.log_time, size_, fields.channel_id});
        std::byte* const out = extend(message_head_bytes + stored_bytes);
        store_message_head(out, fields, data_bytes);
        return out + message_head_bytes;
    }
    void append_piece(KeptBytes bytes) {
        size_ += bytes.size();
        pieces_.push_back({used_, std::move(bytes)});
    }
    // The channel must be in the file before the chunk.
    void declare(Channel channel) { channels_.push_back(std::move(channel)); }
    void clear() noexcept {
        items_.clear();
        pieces_.clear();
        channels_.clear();
        used_ = size_ = 0;
    }

    bool empty() const noexcept { return items_.empty(); }
    std::size_t size() const noexcept { return size_; }         // of the records
    std::size_t capacity() const noexcept { return capacity_; } // bytes of own memory
    std::span<const Item> items() const noexcept { return items_; }
    std::vector<Channel>& channels() noexcept { return channels_; }
    // Calls visit(span) for the parts of the records, in order.
    template <typename Visit>
    void for_each_part(Visit visit) const {
        std::size_t at = 0;
        for (const Piece& piece : pieces_) {
            visit(std::span<const std::byte>{memory_.get() + at, piece.at - at});
            visit(piece.bytes.bytes());
            at = piece.at;
        }
        visit(std::span<const std::byte>{memory_.get() + at, used_ - at});
    }

  private:
    std::byte* extend(std::size_t bytes) {
        if (bytes > capacity_ - used_) grow_to(std::max(2 * capacity_, used_ + bytes));
        std::byte* const out = memory_.get() + used_;
        used_ += bytes;
        size_ += bytes;
        return out;
    }
    void grow_to(std::size_t capacity) {
        auto memory = std::make_unique_for_overwrite<std::byte[]>(capacity);
        if (used_ > 0) std::memcpy(memory.get(), memory_.get(), used_);
        memory_ = std::move(memory);
        capacity_ = capacity;
    }

    std::unique_ptr<std::byte[]> memory_;
    std::size_t capacity_ = 0;
    std::size_t used_ = 0;
    std::size_t size_ = 0;
    std::vector<Item> items_;
    std::vector<Piece> pieces_;
    std::vector<Channel> channels_;
};

} // namespace netio::mcap::inline v0_3
