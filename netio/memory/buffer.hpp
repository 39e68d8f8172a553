// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory that the network may read from or write to. A RegisteredBuffer is the only owner of its
// registrations; a Slice is a value that refers to a part of it. Registration happens at first use,
// once in each memory domain that a slice of the buffer is posted to (one domain per network
// device), so the same buffer can be sent over several devices at once.
//
// Lifetimes: a buffer must outlive every operation that was posted with a slice of it (from the
// call until its completion, or until the socket is destroyed) and must be destroyed before the
// transport (checked if a device has registered it). Not thread-safe: used on the loop's thread
// only.

#include "netio/base/export.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace netio::inline v0_3 {

// Registered memory in one domain. The destructor deregisters it.
class NETIO_EXPORT Registration {
  public:
    virtual ~Registration() = default;
    virtual void* descriptor() const noexcept = 0;  // for local operations; may be null
    virtual std::uint64_t key() const noexcept = 0; // for the peer, if access allows it
    // The address to which the peer adds an offset: the virtual address, or 0 if the provider
    // counts from 0.
    virtual std::uint64_t base() const noexcept = 0;
};

enum class Access : std::uint8_t {
    send,         // send from it; the memory may be read-only
    local,        // send from it and receive into it
    remote_write, // as local, and a peer that has the key may write to it
};

// The pages of a buffer. Huge pages save address translations in devices and processors; the
// administrator reserves them (sysctl vm.nr_hugepages). If too few are free, the buffer gets usual
// pages, and on_huge_pages() returns false.
enum class Pages : std::uint8_t { usual, huge };

// Registers memory: one domain per device and provider.
class NETIO_EXPORT MemoryDomain {
  public:
    // Throws FabricError, which names the remedy if the locked-memory limit is the reason.
    virtual std::unique_ptr<Registration> register_memory(std::span<std::byte> memory,
                                                          Access access) = 0;

  protected:
    ~MemoryDomain() = default;
};

class RegisteredBuffer;

// A part of a registered buffer.
struct Slice {
    RegisteredBuffer* buffer = nullptr;
    std::byte* data = nullptr;
    std::size_t size = 0;
};

class NETIO_EXPORT RegisteredBuffer {
  public:
    // Allocates zeroed, page-aligned memory. Throws FabricError if there is no memory. Each
    // constructor throws std::invalid_argument if the memory has 0 bytes.
    explicit RegisteredBuffer(std::size_t bytes, Access access = Access::local,
                              Pages pages = Pages::usual);
    // Uses memory of the user's, who keeps its ownership. Memory that is mapped read-only needs
    // Access::send.
    explicit RegisteredBuffer(std::span<std::byte> memory, Access access = Access::local);
    // For memory of the user's that is only sent and never written to.
    static RegisteredBuffer of_constant(std::span<const std::byte> memory);
    ~RegisteredBuffer();
    RegisteredBuffer(const RegisteredBuffer&) = delete;
    RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;

    std::span<std::byte> memory() const noexcept { return memory_; }
    std::size_t size() const noexcept { return memory_.size(); }
    Access access() const noexcept { return access_; }
    std::byte* data() const noexcept { return memory_.data(); }
    bool on_huge_pages() const noexcept { return on_huge_pages_; }

    Slice slice() noexcept { return {this, memory_.data(), memory_.size()}; }
    // The slice must lie within the buffer (checked).
    Slice slice(std::size_t offset, std::size_t size) noexcept;
    // Whether this range of memory lies within the buffer.
    bool contains(const std::byte* data, std::size_t size) const noexcept;

    // The registration in a domain, made at first use. Only the first call may throw FabricError.
    const Registration& registration(MemoryDomain& domain);
    // Ends all registrations. No operation with a slice of this buffer may be in flight. From then
    // on the buffer is plain memory, which any thread may destroy.
    void deregister() noexcept { entries_.clear(); }
    // Returns the whole pages of a part to the system, which loses their content: the caller must
    // not read it afterwards. Has no effect on memory of the user, on huge pages, or while the
    // buffer is registered.
    void release(std::size_t offset, std::size_t size) noexcept;

  private:
    [[noreturn]] void refuse_slice(std::size_t offset, std::size_t size) const noexcept;
    struct Entry {
        MemoryDomain* domain;
        std::unique_ptr<Registration> registration;
    };
    std::span<std::byte> memory_;
    std::size_t mapped_bytes_ = 0; // 0: the memory is the user's
    bool on_huge_pages_ = false;
    Access access_;
    std::vector<Entry> entries_; // one or two: searched linearly
};

// Ends the process if the slice is not within its buffer: a slice may have been made from an
// address.
NETIO_EXPORT void check_slice(const Slice& slice) noexcept;
// The total size of all slices. Checks each of them.
NETIO_EXPORT std::size_t checked_size(std::span<const Slice> slices) noexcept;

} // namespace netio::inline v0_3
