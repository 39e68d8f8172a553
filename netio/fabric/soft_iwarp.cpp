// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/soft_iwarp.hpp"

#include <cstdint>
#include <string_view>

namespace netio::fabric {

bool is_soft_iwarp(const ::fi_info& info) {
    constexpr std::string_view siw_vendor = "0x626d74";
    return info.nic != nullptr && info.nic->device_attr != nullptr &&
           info.nic->device_attr->vendor_id != nullptr &&
           info.nic->device_attr->vendor_id == siw_vendor;
}

CompletionQueueHandle cover_ill_numbered_page(::fid_domain& domain) {
    constexpr std::size_t entries_of_257_pages = 32768; // 32 bytes each, and a word behind them
    ::fi_cq_attr attributes{};
    attributes.size = entries_of_257_pages;
    attributes.format = FI_CQ_FORMAT_DATA;
    attributes.wait_obj = FI_WAIT_NONE;
    ::fid_cq* queue = nullptr;
    require_memory(::fi_cq_open(&domain, &attributes, &queue, nullptr),
                   "cannot open a completion queue that guards the others", true);
    return CompletionQueueHandle{queue};
}

std::size_t split_at_page(std::span<::iovec> pieces, std::span<void*> descriptors) {
    constexpr std::uintptr_t page_bytes = 4096;
    constexpr std::size_t longest_short_message = 256; // the limit is below a hundred
    ::iovec& first = pieces[0];
    const auto address = reinterpret_cast<std::uintptr_t>(first.iov_base);
    const std::size_t to_end = page_bytes - address % page_bytes;
    if (first.iov_len > longest_short_message || first.iov_len <= to_end) return 1;
    pieces[1] = {static_cast<std::byte*>(first.iov_base) + to_end, first.iov_len - to_end};
    descriptors[1] = descriptors[0];
    first.iov_len = to_end;
    return 2;
}

} // namespace netio::fabric
