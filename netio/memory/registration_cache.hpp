// SPDX-License-Identifier: Apache-2.0
#pragma once

// Registrations of memory that the user has not put into a RegisteredBuffer. The cache keeps them
// after use and finds them again by address, because registering costs more than sending a few
// hundred kilobytes.
//
//     RegistrationCache::Borrowed borrowed = cache.borrow({data, size}, Access::remote_write);
//     Status status = stream_socket.receive(borrowed.slice(), cookie, stream::Fill::some);
//     // keep `borrowed` until the completion
//
// A registration pins the pages that lie at an address when it is made. Call forget() before memory
// that was borrowed is unmapped or returned to the system. Otherwise a later use of the same
// addresses sends from, and receives into, pages that are no longer mapped there. (A heap keeps
// small pieces mapped; it may return pieces of 128 KiB and more at each free().) When the limit is
// exceeded, registrations that are not borrowed are dropped, the longest unused first.
//
// Belongs to the loop's thread; must outlive everything borrowed from it, and is destroyed before
// the transport.

#include "netio/base/export.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>

namespace netio::inline v0_3 {

class NETIO_EXPORT RegistrationCache {
  private:
    struct Entry;

  public:
    struct Counters {
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;
        std::uint64_t evictions = 0;
    };

    // A piece of memory and the right to use its registration. Movable.
    class Borrowed {
      public:
        Borrowed(Borrowed&& other) noexcept;
        Borrowed& operator=(Borrowed&& other) noexcept;
        ~Borrowed();

        Slice slice() const noexcept { return slice_; }

      private:
        friend class RegistrationCache;
        Borrowed(RegistrationCache& cache, Entry& entry, const Slice& slice) noexcept
            : cache_{&cache}, entry_{&entry}, slice_{slice} {}

        RegistrationCache* cache_;
        Entry* entry_;
        Slice slice_;
    };

    // `limit_bytes`: registered memory that is kept for later use, in addition to what is borrowed.
    explicit RegistrationCache(std::size_t limit_bytes = 256 * 1024 * 1024);
    ~RegistrationCache();
    RegistrationCache(const RegistrationCache&) = delete;
    RegistrationCache& operator=(const RegistrationCache&) = delete;

    // Uses a registration that covers the memory and allows the access, or creates one at first
    // use: posting the slice may throw FabricError. The memory must not be empty (checked).
    Borrowed borrow(std::span<std::byte> memory, Access access);
    // Drops every registration that overlaps the memory. None of them may be borrowed (checked).
    void forget(std::span<const std::byte> memory);

    std::size_t registered_bytes() const noexcept { return registered_bytes_; }
    const Counters& counters() const noexcept { return counters_; }

  private:
    struct Entry {
        Entry(std::span<std::byte> memory, Access access) : buffer{memory, access} {}

        RegisteredBuffer buffer;
        std::size_t borrow_count = 0;
    };
    using Entries = std::list<Entry>; // the longest unused first

    void return_entry(Entry& entry) noexcept;
    void erase(Entries::iterator entry) noexcept;
    void evict() noexcept;

    std::size_t limit_bytes_;
    std::size_t registered_bytes_ = 0;
    Counters counters_;
    Entries entries_;
    // By end address (exclusive); several entries may overlap.
    std::multimap<const std::byte*, Entries::iterator> by_end_;
};

} // namespace netio::inline v0_3
