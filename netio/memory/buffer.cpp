// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/buffer.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/status.hpp"

#include <cerrno>
#include <cstdint>
#include <linux/mman.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace netio::inline v0_3 {

namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20U;

void* map(std::size_t bytes, int flags) noexcept {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
                  0);
}

// No provider registers memory of 0 bytes.
void require_bytes(std::size_t bytes) {
    require_option(bytes > 0, "a registered buffer needs at least one byte");
}

} // namespace

RegisteredBuffer::RegisteredBuffer(std::size_t bytes, Access access, Pages pages)
    : access_{access} {
    require_bytes(bytes);
    // Pages directly from the kernel: zeroed, aligned for any device, and returned as a whole.
    void* memory = MAP_FAILED;
    if (pages == Pages::huge && bytes <= SIZE_MAX - huge_page_bytes) {
        mapped_bytes_ = (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
        memory = map(mapped_bytes_, MAP_HUGETLB | MAP_HUGE_2MB);
        on_huge_pages_ = memory != MAP_FAILED;
    }
    if (memory == MAP_FAILED) {
        mapped_bytes_ = bytes;
        memory = map(bytes, 0);
    }
    if (memory == MAP_FAILED) {
        throw FabricError{{errno, std::system_category()},
                          "cannot allocate a buffer of " + std::to_string(bytes) + " bytes"};
    }
    memory_ = {static_cast<std::byte*>(memory), bytes};
}

RegisteredBuffer::RegisteredBuffer(std::span<std::byte> memory, Access access)
    : memory_{memory}, access_{access} {
    require_bytes(memory.size());
}

RegisteredBuffer RegisteredBuffer::of_constant(std::span<const std::byte> memory) {
    // With Access::send the memory is never written through its slices.
    return RegisteredBuffer{
        std::span{const_cast<std::byte*>(memory.data()), memory.size()}, // NOLINT
        Access::send};
}

RegisteredBuffer::~RegisteredBuffer() {
    entries_.clear(); // deregister before the memory is unmapped
    if (mapped_bytes_ > 0) ::munmap(memory_.data(), mapped_bytes_);
}

void RegisteredBuffer::refuse_slice(std::size_t offset, std::size_t size) const noexcept {
    detail::misused(("RegisteredBuffer::slice: " + std::to_string(size) + " bytes from offset " +
                     std::to_string(offset) + " are not within the buffer, which has " +
                     std::to_string(memory_.size()))
                        .c_str());
}

Slice RegisteredBuffer::slice(std::size_t offset, std::size_t size) noexcept {
    if (offset > memory_.size() || size > memory_.size() - offset) refuse_slice(offset, size);
    return {this, memory_.data() + offset, size};
}

void RegisteredBuffer::release(std::size_t offset, std::size_t size) noexcept {
    if (mapped_bytes_ == 0 || on_huge_pages_ || !entries_.empty()) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t begin = (offset + page - 1) / page * page;
    const std::size_t end = (offset + size) / page * page;
    // If it fails, the memory is freed with the buffer.
    if (begin < end) static_cast<void>(::madvise(data() + begin, end - begin, MADV_DONTNEED));
}

bool RegisteredBuffer::contains(const std::byte* data, std::size_t size) const noexcept {
    return data >= memory_.data() && data <= memory_.data() + memory_.size() &&
           size <= static_cast<std::size_t>(memory_.data() + memory_.size() - data);
}

void check_slice(const Slice& slice) noexcept {
    NETIO_CHECK_MSG(slice.size == 0 ||
                        (slice.buffer != nullptr && slice.buffer->contains(slice.data, slice.size)),
                    "a slice must lie within its registered buffer");
}

std::size_t checked_size(std::span<const Slice> slices) noexcept {
    std::size_t size = 0;
    for (const Slice& slice : slices) {
        check_slice(slice);
        size += slice.size;
    }
    return size;
}

const Registration& RegisteredBuffer::registration(MemoryDomain& domain) {
    for (const Entry& entry : entries_) {
        if (entry.domain == &domain) return *entry.registration;
    }
    entries_.push_back({&domain, domain.register_memory(memory_, access_)});
    return *entries_.back().registration;
}

} // namespace netio::inline v0_3
