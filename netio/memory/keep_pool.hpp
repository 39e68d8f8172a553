// SPDX-License-Identifier: Apache-2.0
#pragma once

// Received bytes that the user keeps longer than a handler runs (docs/guide.md, "Keep a message").
// A large message stays in its receive buffer, which is lent to the user; the session receives into
// another one meanwhile. A small one is copied, so that it does not hold a whole buffer.

#include "netio/base/kept_bytes.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/process.hpp"
#include "netio/memory/buffer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// The memory that one session has lent. Returned buffers wait here until the session takes them.
// The user's threads return memory; everything else happens on the loop's thread.
class KeepPool : public std::enable_shared_from_this<KeepPool> {
  public:
    // A receive buffer that is lent, or is back.
    struct Buffer {
        std::shared_ptr<RegisteredBuffer> memory;
        std::optional<std::uint32_t> home; // the receive that it belongs to; none: a spare buffer
        std::size_t offset = 0;            // of a spare buffer in `memory`
        bool is_users = false;             // a part of a ReceiveMemory, which takes it back itself
    };

    // Messages below this size are always copied: a copy costs less than lending a buffer.
    static constexpr std::size_t copied_below = 8192;
    static constexpr std::size_t slab_bytes = std::size_t{64} * 1024;

    // `buffer_bytes`: of a receive buffer.
    explicit KeepPool(std::size_t buffer_bytes) noexcept
        : buffer_bytes_{buffer_bytes}, copied_below_{std::min(copied_below, buffer_bytes / 8)} {}

    // Whether a message of this size is copied instead of lending its receive buffer.
    bool copies(std::size_t bytes) const noexcept { return bytes < copied_below_; }

    // Lends a receive buffer, until the last copy of the result is destroyed.
    // `take` returns it, and is called when nothing can fail any more.
    std::shared_ptr<const void> lend(const std::function<Buffer()>& take, TimePoint now);
    // Copies bytes into a slab, which is lent until all copies in it are destroyed.
    KeptBytes copy(std::span<const std::byte> bytes, TimePoint now);
    // Takes over the memory of a message that was put together from fragments.
    KeptBytes adopt(std::vector<std::byte> bytes, TimePoint now);

    // Replaces `buffers` by those that were returned since the last call. Returns the bytes of
    // slabs and joined messages that are lent: what is not in receive buffers.
    std::size_t take_returned(std::vector<Buffer>& buffers);
    std::size_t lent_bytes() const;
    // `wake` is called once, on any thread, when memory is returned; not after detach(). It must
    // not call this object.
    void wake_on_return(std::function<void()> wake);
    // Call it when the session ends: what is returned from now on is freed.
    void detach();
    KeepStats stats(TimePoint now) const;

  private:
    class Loan;
    class Slab;

    // An entry of what is lent.
    struct Entry {
        std::size_t bytes = 0;
        bool is_buffer = false;
        TimePoint since{};
    };
    using Entries = std::list<Entry>;
    Entries::iterator add(const Entry& entry);
    void give_back(Entries::iterator entry, Buffer buffer);

    const std::size_t buffer_bytes_;
    const std::size_t copied_below_;
    const ProcessMark process_;
    std::weak_ptr<Slab> slab_; // that is being filled
    mutable std::mutex mutex_; // of what follows
    Entries entries_;          // the oldest first
    std::size_t bytes_ = 0;    // of all of them
    std::size_t extra_bytes_ = 0;
    std::vector<Buffer> returned_;
    std::function<void()> wake_;
    bool is_detached_ = false;
};

} // namespace netio::inline v0_3
