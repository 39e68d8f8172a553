// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/receive_memory.hpp"

#include "netio/loop/process.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

class ReceiveMemory::State {
  public:
    explicit State(std::span<std::byte> memory) : buffer{memory, Access::local} {
        free_.push_back(Piece{.offset = 0, .bytes = memory.size()});
    }

    std::size_t free_bytes() const {
        const std::lock_guard lock{mutex_};
        std::size_t sum = 0;
        for (const Piece& piece : free_)
            sum += piece.bytes;
        return sum;
    }
    // The first piece that is large enough, so that parts of one size leave no gaps.
    std::optional<std::size_t> take(std::size_t bytes) {
        const std::lock_guard lock{mutex_};
        const auto piece =
            std::ranges::find_if(free_, [&](const Piece& each) { return each.bytes >= bytes; });
        if (piece == free_.end()) return std::nullopt;
        const std::size_t offset = piece->offset;
        ++parts_;
        piece->offset += bytes;
        piece->bytes -= bytes;
        if (piece->bytes == 0) free_.erase(piece);
        free_.reserve(parts_ + 1); // so that give() cannot fail
        return offset;
    }
    void give(std::size_t offset, std::size_t bytes) {
        if (process_.is_inherited()) return; // as KeepPool::give_back()
        const std::lock_guard lock{mutex_};
        --parts_;
        auto next = std::ranges::upper_bound(free_, offset, {}, &Piece::offset);
        const bool joins_next = next != free_.end() && offset + bytes == next->offset;
        const bool joins_previous =
            next != free_.begin() && std::prev(next)->offset + std::prev(next)->bytes == offset;
        if (joins_next) {
            next->offset = offset;
            next->bytes += bytes;
            if (joins_previous) {
                std::prev(next)->bytes += next->bytes;
                free_.erase(next);
            }
        } else if (joins_previous) {
            std::prev(next)->bytes += bytes;
        } else {
            free_.insert(next, Piece{.offset = offset, .bytes = bytes});
        }
        // With the lock, so that no session can end meanwhile: forget() waits for it.
        for (const Waiter& waiter : std::exchange(waiters_, {}))
            waiter.wake();
    }

    void wake_on_return(const void* owner, std::function<void()> wake) {
        const std::lock_guard lock{mutex_};
        std::erase_if(waiters_, [&](const Waiter& each) { return each.owner == owner; });
        waiters_.push_back({.owner = owner, .wake = std::move(wake)});
    }
    void forget(const void* owner) {
        const std::lock_guard lock{mutex_};
        std::erase_if(waiters_, [&](const Waiter& each) { return each.owner == owner; });
    }

    RegisteredBuffer buffer;

  private:
    struct Piece {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };
    struct Waiter {
        const void* owner = nullptr;
        std::function<void()> wake;
    };

    const ProcessMark process_;
    mutable std::mutex mutex_;
    std::vector<Piece> free_; // ascending, with a part in use between any two
    std::size_t parts_ = 0;   // in use
    std::vector<Waiter> waiters_;
};

// A part in use.
class ReceiveMemory::Part {
  public:
    Part(std::shared_ptr<State> state, std::size_t bytes)
        : state_{std::move(state)}, offset_{state_->take(bytes)}, bytes_{bytes} {}
    ~Part() {
        if (offset_) state_->give(*offset_, bytes_);
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    std::optional<std::size_t> offset() const noexcept { return offset_; }
    RegisteredBuffer* buffer() const noexcept { return &state_->buffer; }

  private:
    std::shared_ptr<State> state_;
    std::optional<std::size_t> offset_;
    std::size_t bytes_;
};

ReceiveMemory::ReceiveMemory(std::span<std::byte> memory)
    : state_{std::make_shared<State>(memory)} {}

ReceiveMemory::~ReceiveMemory() {
    state_->buffer.deregister();
}

std::size_t ReceiveMemory::size() const noexcept {
    return state_->buffer.size();
}

std::size_t ReceiveMemory::free_bytes() const {
    return state_->free_bytes();
}

RegisteredBuffer& ReceiveMemory::buffer() noexcept {
    return state_->buffer;
}

std::optional<KeepPool::Buffer> ReceiveMemory::take(std::size_t bytes) {
    auto part = std::make_shared<Part>(state_, bytes_in_use(bytes));
    if (!part->offset()) return std::nullopt;
    const std::size_t offset = *part->offset();
    RegisteredBuffer* const buffer = part->buffer();
    return KeepPool::Buffer{.memory = std::shared_ptr<RegisteredBuffer>{std::move(part), buffer},
                            .home = {},
                            .offset = offset,
                            .is_users = true};
}

void ReceiveMemory::wake_on_return(const void* owner, std::function<void()> wake) {
    state_->wake_on_return(owner, std::move(wake));
}

void ReceiveMemory::forget(const void* owner) {
    state_->forget(owner);
}

} // namespace netio::inline v0_3
