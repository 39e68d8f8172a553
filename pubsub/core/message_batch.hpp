// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages in one piece of memory, for those who take many at a time: nothing is allocated for each
// of them, and what a batch has grown to it keeps (pubsub/client/client.hpp shows it in use).

#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class MessageBatch {
  public:
    struct Item {
        Fid fid{};
        std::uint8_t status = 0;
        std::uint64_t missed = 0; // of this fid, in front of this one: there was no room for them
        std::span<const std::byte> bytes; // valid until the batch changes
    };

    std::size_t size() const noexcept { return heads_.size() - first_; }
    bool empty() const noexcept { return size() == 0; }
    Item operator[](std::size_t index) const noexcept {
        const Head& head = heads_[first_ + index];
        return {.fid = head.fid,
                .status = head.status,
                .missed = head.missed,
                .bytes = {bytes_.data() + head.offset, head.size}};
    }

    class Iterator {
      public:
        Iterator(const MessageBatch& batch, std::size_t index) noexcept
            : batch_{&batch}, index_{index} {}
        Item operator*() const noexcept { return (*batch_)[index_]; }
        Iterator& operator++() noexcept { return ++index_, *this; }
        friend bool operator==(const Iterator&, const Iterator&) = default;

      private:
        const MessageBatch* batch_;
        std::size_t index_;
    };
    Iterator begin() const noexcept { return {*this, 0}; }
    Iterator end() const noexcept { return {*this, size()}; }

    // Bytes of its messages.
    std::size_t bytes() const noexcept {
        return empty() ? 0 : bytes_.size() - heads_[first_].offset;
    }
    std::size_t capacity() const noexcept {
        return bytes_.capacity() + heads_.capacity() * sizeof(Head);
    }

    void append(const Item& item) {
        heads_.push_back({.fid = item.fid,
                          .missed = item.missed,
                          .offset = bytes_.size(),
                          .size = static_cast<std::uint32_t>(item.bytes.size()),
                          .status = item.status});
        bytes_.insert(bytes_.end(), item.bytes.begin(), item.bytes.end());
    }
    // The first ones have been taken.
    void drop_front(std::size_t count) noexcept { first_ += count; }
    // Keeps its memory.
    void clear() noexcept {
        heads_.clear();
        bytes_.clear();
        first_ = 0;
    }

  private:
    struct Head {
        Fid fid{};
        std::uint64_t missed = 0;
        std::size_t offset = 0; // in bytes_
        std::uint32_t size = 0;
        std::uint8_t status = 0;
    };

    std::vector<Head> heads_;
    std::vector<std::byte> bytes_;
    std::size_t first_ = 0; // that has not been taken
};

} // namespace netio::pubsub::inline v0_2
