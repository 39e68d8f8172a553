// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/registration_cache.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <utility>

namespace netio::inline v0_3 {

RegistrationCache::Borrowed::Borrowed(Borrowed&& other) noexcept
    : cache_{std::exchange(other.cache_, nullptr)}, entry_{other.entry_}, slice_{other.slice_} {}

RegistrationCache::Borrowed& RegistrationCache::Borrowed::operator=(Borrowed&& other) noexcept {
    std::swap(cache_, other.cache_);
    std::swap(entry_, other.entry_);
    std::swap(slice_, other.slice_);
    return *this;
}

RegistrationCache::Borrowed::~Borrowed() {
    if (cache_ != nullptr) cache_->return_entry(*entry_);
}

RegistrationCache::RegistrationCache(std::size_t limit_bytes) : limit_bytes_{limit_bytes} {}

RegistrationCache::~RegistrationCache() {
    const bool all_back =
        std::ranges::all_of(entries_, [](const Entry& entry) { return entry.borrow_count == 0; });
    NETIO_CHECK_MSG(all_back, "a registration is still borrowed");
}

RegistrationCache::Borrowed RegistrationCache::borrow(std::span<std::byte> memory, Access access) {
    NETIO_CHECK_MSG(!memory.empty(), "the memory is empty");
    const std::byte* const end = memory.data() + memory.size();
    // A registration that covers the memory ends at the end of the memory or later.
    auto found = std::find_if(by_end_.lower_bound(end), by_end_.end(), [&](const auto& candidate) {
        const RegisteredBuffer& buffer = candidate.second->buffer;
        return buffer.access() >= access && buffer.contains(memory.data(), memory.size());
    });
    if (found != by_end_.end()) {
        ++counters_.hits;
        entries_.splice(entries_.end(), entries_, found->second); // now the most recently used
    } else {
        ++counters_.misses;
        entries_.emplace_back(memory, access);
        found = by_end_.emplace(end, std::prev(entries_.end()));
        registered_bytes_ += memory.size();
    }
    Entry& entry = *found->second;
    ++entry.borrow_count;
    evict();
    return Borrowed{*this, entry, Slice{&entry.buffer, memory.data(), memory.size()}};
}

void RegistrationCache::forget(std::span<const std::byte> memory) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
        const auto here = entry++;
        const std::span<std::byte> known = here->buffer.memory();
        const bool touches = known.data() < memory.data() + memory.size() &&
                             memory.data() < known.data() + known.size();
        if (!touches) continue;
        NETIO_CHECK_MSG(here->borrow_count == 0, "this memory is still borrowed");
        erase(here);
    }
}

void RegistrationCache::return_entry(Entry& entry) noexcept {
    --entry.borrow_count;
    evict();
}

void RegistrationCache::erase(Entries::iterator entry) noexcept {
    const std::span<std::byte> memory = entry->buffer.memory();
    registered_bytes_ -= memory.size();
    auto [first, last] = by_end_.equal_range(memory.data() + memory.size());
    by_end_.erase(std::find_if(first, last, [&](const auto& one) { return one.second == entry; }));
    entries_.erase(entry);
}

void RegistrationCache::evict() noexcept {
    for (auto entry = entries_.begin();
         entry != entries_.end() && registered_bytes_ > limit_bytes_;) {
        const auto oldest = entry++;
        if (oldest->borrow_count > 0) continue;
        erase(oldest);
        ++counters_.evictions;
    }
}

} // namespace netio::inline v0_3
