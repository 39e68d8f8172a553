// SPDX-License-Identifier: Apache-2.0
#pragma once

// RingMemory: the oracle's model of all rings of one direction, byte by byte. Each call returns an
// error text, or null.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace netio::stream {

class RingMemory {
  public:
    explicit RingMemory(std::uint64_t bytes) { add(bytes); }

    // A ring that the receiver has created. The sender writes to it after the announcement.
    void add(std::uint64_t bytes) { rings_.emplace_back(static_cast<std::size_t>(bytes), 0); }
    void on_sender_notified() { ++sender_ring_; }
    void on_receiver_notified() { ++receiver_ring_; }

    // Writes the bytes of the stream from `position` on.
    const char* write(std::uint64_t offset, std::uint64_t bytes, std::uint64_t position) {
        Cells& ring = rings_[sender_ring_];
        if (ring.empty()) return "write into a ring that is gone"; // R15
        for (std::uint64_t i = 0; i < bytes; ++i) {
            if (offset + i >= ring.size()) return "write across the end of the ring"; // R4
            std::uint64_t& cell = ring[static_cast<std::size_t>(offset + i)];
            if (cell != 0) return "write into a ring byte that is in use"; // R4
            cell = position + i + 1;
        }
        return nullptr;
    }
    const char* copy(std::size_t number, std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t position) {
        Cells& ring = rings_.at(number);
        if (ring.empty()) return "copy from a ring that is gone"; // R15
        for (std::uint64_t i = 0; i < bytes; ++i) {
            if (offset + i >= ring.size()) return "copy across the end of the ring";
            std::uint64_t& cell = ring[static_cast<std::size_t>(offset + i)];
            if (cell != position + i + 1) return "copied a wrong byte";
            cell = 0;
        }
        return nullptr;
    }
    const char* release(std::size_t number) {
        Cells& ring = rings_.at(number);
        if (ring.empty()) return "a ring is freed twice";
        for (const std::uint64_t cell : ring) {
            if (cell != 0) return "a ring is freed while bytes are in it";
        }
        ring.clear();
        return nullptr;
    }
    // Every ring before the latest announced one is freed.
    bool is_tidy() const {
        for (std::size_t i = 0; i < receiver_ring_; ++i) {
            if (!rings_[i].empty()) return false;
        }
        return true;
    }

  private:
    using Cells = std::vector<std::uint64_t>; // stream position + 1 of the byte in each; 0: free

    std::vector<Cells> rings_; // in the order of announcement; a freed ring is empty
    std::size_t sender_ring_ = 0;
    std::size_t receiver_ring_ = 0;
};

} // namespace netio::stream
