// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/ring_set.hpp"

#include "netio/base/check.hpp"

#include <utility>

namespace netio::stream::inline v0_2 {

RemoteRing RingSet::add(std::uint64_t bytes, const Lending& lending, MemoryDomain& domain) {
    auto ring =
        std::make_unique<RegisteredBuffer>(static_cast<std::size_t>(bytes), Access::remote_write);
    const RemoteSlice place = lending.place(ring->slice(), domain);
    rings_.push_back(std::move(ring));
    return {.address = place.address, .key = place.key, .bytes = bytes};
}

void RingSet::drop(std::uint32_t number) {
    NETIO_CHECK_MSG(number == first_, "rings are released in the order of their making");
    rings_.pop_front();
    ++first_;
}

std::byte* RingSet::at(std::uint32_t number) const {
    NETIO_CHECK(number >= first_);
    return rings_[number - first_]->data();
}

} // namespace netio::stream::inline v0_2
