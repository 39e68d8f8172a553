// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages in contiguous memory, for reading many at a time: Subscriber::receive(batch). A message
// needs no allocation of its own, and a batch keeps its memory.

#include "netio/base/copy.hpp"
#include "netio/base/kept_bytes.hpp"
#include "netio/coalescing/page.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/time_stamp.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class MessageBatch final : public MessageKeeper {
  public:
    struct Item {
        Fid fid{};
        std::uint8_t status = 0;
        // Lost messages of this fid before this one: dropped here or by the publisher, or published
        // between two connections.
        std::uint64_t lost_before = 0;
        bool is_gap = false; // no message: the losses after the last message of the fid
        std::span<const std::byte> bytes; // valid until the batch changes
        // If the connection has time stamps, that of the message is in memory before its bytes.
        StampFormat stamps{};
        // The bytes have memory of their own. Those of all other messages are adjacent, in order,
        // each after its time stamp if there are any.
        bool is_kept = false;

        std::optional<TimeStamp> time() const noexcept { return time_stamp::of(bytes, stamps); }
    };

    MessageBatch() = default;
    MessageBatch(const MessageBatch&) = default;
    MessageBatch& operator=(const MessageBatch&) = default;
    // Leaves the other one empty.
    MessageBatch(MessageBatch&& other) noexcept
        : heads_{std::exchange(other.heads_, {})}, bytes_{std::exchange(other.bytes_, {})},
          first_{std::exchange(other.first_, 0)}, end_{std::exchange(other.end_, 0)},
          used_{std::exchange(other.used_, 0)}, kept_{std::exchange(other.kept_, {})},
          kept_bytes_{std::exchange(other.kept_bytes_, 0)} {}
    MessageBatch& operator=(MessageBatch&& other) noexcept {
        MessageBatch taken{std::move(other)};
        heads_.swap(taken.heads_);
        bytes_.swap(taken.bytes_);
        first_ = taken.first_;
        end_ = taken.end_;
        used_ = taken.used_;
        kept_.swap(taken.kept_);
        kept_bytes_ = taken.kept_bytes_;
        return *this;
    }
    ~MessageBatch() = default;

    std::size_t size() const noexcept { return end_ - first_; }
    bool empty() const noexcept { return size() == 0; }
    Item operator[](std::size_t index) const noexcept {
        const Head& head = heads_[first_ + index];
        const std::span<const std::byte> all =
            head.is_kept() ? kept_[head.size].bytes()
                           : std::span<const std::byte>{bytes_.data() + head.offset, head.size};
        return {.fid = head.fid,
                .status = head.status,
                .lost_before = head.lost_before,
                .is_gap = head.is_gap(),
                .bytes = all.subspan(time_stamp::bytes_of(head.stamps())),
                .stamps = head.stamps(),
                .is_kept = head.is_kept()};
    }
    // Returns the bytes of a message, with its time stamp, in memory that outlives the batch: a
    // copy, unless the batch itself has kept them.
    KeptBytes keep(std::span<const std::byte> message) const override {
        for (const KeptBytes& each : kept_) // few: a batch is handed over at 256 KiB
            if (!each.empty() && each.bytes().data() == message.data()) return each.part(message);
        return KeptBytes::copy_of(message);
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

    // The bytes of all messages, with their time stamps.
    std::size_t bytes() const noexcept {
        return empty() ? 0 : used_ - heads_[first_].offset + kept_bytes_;
    }
    // The bytes of memory that the batch holds, also while it is empty.
    std::size_t capacity() const noexcept { return bytes_.size() + heads_.size() * sizeof(Head); }

    void append(const Item& item) {
        const std::span<const std::byte> all = time_stamp::with_stamp(item.bytes, item.stamps);
        append(item, all);
    }
    // Appends all messages of another batch.
    void append(const MessageBatch& other) {
        for (std::size_t i = 0; i < other.size(); ++i) {
            const Head& head = other.heads_[other.first_ + i];
            head.is_kept() ? append(other[i], other.kept_[head.size]) : append(other[i]);
        }
    }
    // Appends a message whose bytes, with its time stamp, are not copied.
    void append(const Item& item, KeptBytes bytes) {
        kept_.push_back(std::move(bytes));
        append(item, std::span<const std::byte>{});
        Head& head = heads_[end_ - 1];
        head.marks |= Head::kept;
        head.size = static_cast<std::uint32_t>(kept_.size() - 1);
        kept_bytes_ += kept_.back().size();
    }
    // Removes the first messages.
    void drop_front(std::size_t count) noexcept {
        for (; count > 0; --count) {
            const Head& head = heads_[first_++];
            if (!head.is_kept()) continue;
            kept_bytes_ -= kept_[head.size].size();
            kept_[head.size] = {};
        }
    }
    // Keeps its memory.
    void clear() noexcept {
        first_ = 0;
        end_ = 0;
        used_ = 0;
        kept_.clear();
        kept_bytes_ = 0;
    }

  private:
    struct Head {
        Fid fid{};
        std::uint64_t lost_before = 0;
        std::size_t offset = 0; // in bytes_
        std::uint32_t size = 0; // in bytes_; if is_kept, the place in kept_
        std::uint8_t status = 0;
        std::uint8_t marks = 0; // the clock, gap, kept
        std::int16_t utc_offset_s = 0;

        static_assert(static_cast<unsigned>(StampClock::own) < 4);
        static constexpr std::uint8_t gap = 4;
        static constexpr std::uint8_t kept = 8;
        static std::uint8_t marks_of(const Item& item) noexcept {
            const auto clock = static_cast<std::uint8_t>(item.stamps.clock);
            return item.is_gap ? clock | gap : clock;
        }
        bool is_gap() const noexcept { return (marks & gap) != 0; }
        bool is_kept() const noexcept { return (marks & kept) != 0; }
        StampFormat stamps() const noexcept {
            return {.clock = static_cast<StampClock>(marks & 3U), .utc_offset_s = utc_offset_s};
        }
    };
    static_assert(sizeof(Head) == 32);

    // `bytes`: those to be copied, with the time stamp.
    void append(const Item& item, std::span<const std::byte> bytes) {
        const std::size_t size = bytes.size();
        if (end_ == heads_.size() || size > bytes_.size() - used_) grow(size);
        // Written in place. A copy of a whole Head would wait for all earlier stores.
        Head& head = heads_[end_++];
        head.fid = item.fid;
        head.lost_before = item.lost_before;
        head.offset = used_;
        head.size = static_cast<std::uint32_t>(size);
        head.status = item.status;
        head.marks = Head::marks_of(item);
        head.utc_offset_s = item.stamps.utc_offset_s;
        copy_bytes(bytes_.data() + used_, bytes);
        used_ += size;
    }

    // Does not initialise new elements, which are written before they are read: initialising them
    // would cost as much as writing the messages.
    template <typename T>
    struct Unwritten : std::allocator<T> {
        template <typename Other>
        struct rebind {
            using other = Unwritten<Other>;
        };
        template <typename Other>
        void construct(Other* at) noexcept {
            ::new (static_cast<void*>(at)) Other;
        }
    };

    // Makes space for one more message of this size.
    [[gnu::noinline]] void grow(std::size_t size) {
        if (end_ == heads_.size()) heads_.resize(std::max<std::size_t>(64, 2 * heads_.size()));
        if (size <= bytes_.size() - used_) return;
        bytes_.resize(std::max({std::size_t{4096}, 2 * bytes_.size(), used_ + size}));
    }

    // Both vectors have the size of their allocated memory; the members below define which part is
    // used.
    std::vector<Head> heads_;
    std::vector<std::byte, Unwritten<std::byte>> bytes_;
    std::size_t first_ = 0; // the first message
    std::size_t end_ = 0;
    std::size_t used_ = 0; // of bytes_
    std::vector<KeptBytes> kept_;
    std::size_t kept_bytes_ = 0;
};

} // namespace netio::pubsub::inline v0_3
