// SPDX-License-Identifier: Apache-2.0
#pragma once

// The connected subscribers by their ids. The upper half of an id is never used twice, the lower
// half is a place in the table.

#include "netio/base/slot_pool.hpp"
#include "pubsub/publisher/subscriber.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace netio::pubsub::inline v0_2 {

class SubscriberTable {
  public:
    // Enters what make(id) returns; what that throws is passed on, and nobody has entered.
    template <class Make>
    void enter(Make make) {
        const std::uint32_t place = places_.take(nullptr);
        const SubscriberId id{next_serial_++ << 32 | place};
        try {
            places_[place] = make(id);
        } catch (...) {
            places_.release(place);
            throw;
        }
    }
    std::unique_ptr<Subscriber> take(SubscriberId id) { return places_.release(place_of(id)); }

    Subscriber& operator[](SubscriberId id) noexcept { return *places_[place_of(id)]; }
    std::size_t size() const noexcept { return places_.size(); }

    template <class Visit>
    void for_each(Visit visit) const {
        for (std::uint32_t i = 0; i < places_.end(); ++i)
            if (places_[i]) visit(*places_[i]);
    }

    // Slices that every subscriber's session sends from where they lie.
    std::size_t segment_limit() const noexcept {
        std::size_t limit = slice_limit;
        for_each([&](const Subscriber& each) {
            if (each.announced) limit = std::min(limit, each.session().segment_limit());
        });
        return limit;
    }

  private:
    static std::uint32_t place_of(SubscriberId id) noexcept {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
    }

    std::uint64_t next_serial_ = 1;
    SlotPool<std::unique_ptr<Subscriber>> places_;
};

} // namespace netio::pubsub::inline v0_2
