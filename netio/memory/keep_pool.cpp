// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/keep_pool.hpp"
#include "netio/base/copy.hpp"

#include <algorithm>

namespace netio::inline v0_3 {

// A receive buffer, or the memory of a joined message, while it is lent.
class KeepPool::Loan {
  public:
    Loan(std::shared_ptr<KeepPool> pool, TimePoint now)
        : pool_{std::move(pool)}, entry_{pool_->add({.bytes = pool_->buffer_bytes_,
                                                     .is_buffer = true,
                                                     .since = now})} {}
    Loan(std::shared_ptr<KeepPool> pool, std::vector<std::byte> message, TimePoint now)
        : pool_{std::move(pool)}, message_{std::move(message)}, entry_{pool_->add(
                                                                    {.bytes = message_.capacity(),
                                                                     .since = now})} {}
    ~Loan() { pool_->give_back(entry_, std::move(buffer_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    void set(Buffer buffer) noexcept { buffer_ = std::move(buffer); }
    std::span<const std::byte> message() const noexcept { return message_; }

  private:
    std::shared_ptr<KeepPool> pool_;
    Buffer buffer_;
    std::vector<std::byte> message_;
    Entries::iterator entry_;
};

class KeepPool::Slab {
  public:
    Slab(std::shared_ptr<KeepPool> pool, TimePoint now)
        : pool_{std::move(pool)}, memory_{std::make_unique_for_overwrite<std::byte[]>(slab_bytes)},
          entry_{pool_->add({.bytes = slab_bytes, .since = now})} {}
    ~Slab() { pool_->give_back(entry_, {}); }
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;

    bool has_room(std::size_t bytes) const noexcept { return slab_bytes - used_ >= bytes; }
    std::span<const std::byte> add(std::span<const std::byte> bytes) noexcept {
        std::byte* const at = memory_.get() + used_;
        copy_bytes(at, bytes);
        used_ += bytes.size();
        return {at, bytes.size()};
    }

  private:
    std::shared_ptr<KeepPool> pool_;
    std::unique_ptr<std::byte[]> memory_;
    std::size_t used_ = 0;
    Entries::iterator entry_;
};

std::shared_ptr<const void> KeepPool::lend(const std::function<Buffer()>& take, TimePoint now) {
    auto loan = std::make_shared<Loan>(shared_from_this(), now);
    loan->set(take());
    return loan;
}

KeptBytes KeepPool::copy(std::span<const std::byte> bytes, TimePoint now) {
    std::shared_ptr<Slab> slab = slab_.lock();
    if (!slab || !slab->has_room(bytes.size())) {
        slab = std::make_shared<Slab>(shared_from_this(), now);
        slab_ = slab;
    }
    const std::span<const std::byte> copy = slab->add(bytes);
    return {std::move(slab), copy};
}

KeptBytes KeepPool::adopt(std::vector<std::byte> bytes, TimePoint now) {
    auto loan = std::make_shared<Loan>(shared_from_this(), std::move(bytes), now);
    const std::span<const std::byte> message = loan->message();
    return {std::move(loan), message};
}

std::size_t KeepPool::lent_bytes() const {
    const std::lock_guard lock{mutex_};
    return bytes_;
}

std::size_t KeepPool::take_returned(std::vector<Buffer>& buffers) {
    buffers.clear();
    const std::lock_guard lock{mutex_};
    // The capacity stays on both sides: give_back() needs it.
    for (Buffer& buffer : returned_)
        buffers.push_back(std::move(buffer));
    returned_.clear();
    return extra_bytes_;
}

void KeepPool::wake_on_return(std::function<void()> wake) {
    const std::lock_guard lock{mutex_};
    wake_ = std::move(wake);
}

void KeepPool::detach() {
    const std::lock_guard lock{mutex_};
    is_detached_ = true;
    wake_ = nullptr;
    returned_.clear();
}

KeepStats KeepPool::stats(TimePoint now) const {
    const std::lock_guard lock{mutex_};
    return {.buffers = entries_.size(),
            .bytes = bytes_,
            .oldest = entries_.empty() ? Duration{0} : now - entries_.front().since};
}

KeepPool::Entries::iterator KeepPool::add(const Entry& entry) {
    const std::lock_guard lock{mutex_};
    if (returned_.capacity() <= entries_.size()) // so that give_back() cannot fail
        returned_.reserve(std::max<std::size_t>(16, 2 * entries_.size()));
    bytes_ += entry.bytes;
    if (!entry.is_buffer) extra_bytes_ += entry.bytes;
    return entries_.insert(entries_.end(), entry);
}

// Any thread. In a child process the session that waits for memory is its parent's, and a thread of
// the parent may have held the lock during the fork.
void KeepPool::give_back(Entries::iterator entry, Buffer buffer) {
    if (process_.is_inherited()) return;
    const std::lock_guard lock{mutex_};
    bytes_ -= entry->bytes;
    if (!entry->is_buffer) extra_bytes_ -= entry->bytes;
    entries_.erase(entry);
    const bool is_ours = buffer.memory && !buffer.is_users;
    if (is_ours && !is_detached_) returned_.push_back(std::move(buffer));
    // With the lock, so that the session and its loop cannot end meanwhile: detach() waits for it.
    if (const auto wake = std::exchange(wake_, nullptr)) wake();
}

} // namespace netio::inline v0_3
