// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of a session's receives, by number: what it begins with, and pieces that are added
// while its window grows. A piece goes whole, the last one first, once none of its receives is
// posted any more. What is added comes out of a budget that all sessions of a transport share.

#include "netio/base/byte_budget.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace netio::inline v0_2 {

class ReceiveMemory {
  public:
    ReceiveMemory(std::size_t receive_bytes, std::uint32_t count, ByteBudget& budget)
        : receive_bytes_{receive_bytes}, count_{count}, first_{receive_bytes * count},
          first_count_{count}, share_{budget} {}

    void register_memory(MemoryDomain& domain) { first_.registration(domain); }
    // Receives that there is memory for.
    std::uint32_t count() const noexcept { return count_; }

    Slice slice(std::uint32_t index) noexcept {
        if (index < first_count_) return first_.slice(index * receive_bytes_, receive_bytes_);
        Piece& piece = piece_of(index);
        return piece.memory->slice((index - piece.begin) * receive_bytes_, receive_bytes_);
    }

    // Room for so many more, numbered behind the others. False: there is no memory for it.
    [[nodiscard]] bool add(std::uint32_t more, MemoryDomain& domain) {
        const std::size_t bytes = more * receive_bytes_;
        if (!share_.take(bytes)) return false;
        try {
            auto memory = std::make_unique<RegisteredBuffer>(bytes);
            memory->registration(domain);
            pieces_.push_back({.memory = std::move(memory), .begin = count_, .left = more});
        } catch (const std::exception&) { // the session goes on with what it has
            share_.give(bytes);
            return false;
        }
        count_ += more;
        return true;
    }

    // The last piece is to go. Until it has, nothing is added.
    void begin_to_drop() noexcept { dropping_ = !pieces_.empty(); }
    bool is_dropping() const noexcept { return dropping_; }
    // This receive, which is not posted, is not to be posted again.
    bool is_dropped(std::uint32_t index) const noexcept {
        return dropping_ && index >= pieces_.back().begin;
    }
    // It is not used any more. True: its piece has gone with it.
    bool drop() {
        if (--pieces_.back().left > 0) return false;
        count_ = pieces_.back().begin;
        const std::size_t bytes = pieces_.back().memory->size();
        pieces_.pop_back();
        share_.give(bytes);
        dropping_ = false;
        return true;
    }

  private:
    struct Piece {
        std::unique_ptr<RegisteredBuffer> memory;
        std::uint32_t begin = 0; // number of its first receive
        std::uint32_t left = 0;  // receives that are not dropped
    };

    // Each is as large as all before it: there are few.
    Piece& piece_of(std::uint32_t index) noexcept {
        std::size_t at = pieces_.size() - 1;
        while (pieces_[at].begin > index)
            --at;
        return pieces_[at];
    }

    std::size_t receive_bytes_;
    std::uint32_t count_;
    RegisteredBuffer first_;
    std::uint32_t first_count_;
    ByteShare share_;
    std::vector<Piece> pieces_;
    bool dropping_ = false;
};

} // namespace netio::inline v0_2
