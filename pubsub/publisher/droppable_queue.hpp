// SPDX-License-Identifier: Apache-2.0
#pragma once

// A queue of which some may be dropped: what entered last of that is found at once and taken out
// from where it stands. Nothing else is looked at or moved, however much waits around it: whoever
// takes much out does so in one call of the user's. It keeps the memory of a few items from one to
// the next. An item says in `handling` whether it continues the one before it.

#include "netio/base/check.hpp"
#include "netio/base/ring_queue.hpp"

#include <cstddef>
#include <iterator>
#include <list>

namespace netio::pubsub::inline v0_2 {

template <class Item>
class DroppableQueue {
  public:
    static constexpr std::size_t kept_count = 64; // of places that nothing stands in
    // It stays what it is until its item has left, whatever else enters or leaves.
    using Place = typename std::list<Item>::iterator;

    std::size_t size() const noexcept { return items_.size(); }
    bool empty() const noexcept { return items_.empty(); }
    Place begin() noexcept { return items_.begin(); }
    Place end() noexcept { return items_.end(); }
    auto begin() const noexcept { return items_.begin(); }
    auto end() const noexcept { return items_.end(); }
    Item& front() noexcept { return items_.front(); }
    const Item& front() const noexcept { return items_.front(); }
    Item& back() noexcept { return items_.back(); }

    // An Item{} behind all others.
    Item& emplace_back() {
        if (spare_.empty()) return items_.emplace_back();
        items_.splice(items_.end(), spare_, spare_.begin());
        return items_.back();
    }
    // The last one may be dropped, with those that come and continue it.
    void mark_back() { droppable_.emplace_back() = std::prev(items_.end()); }
    // The first one was marked, and is not any more.
    void unmark_front() {
        NETIO_CHECK(!droppable_.empty() && droppable_.front() == items_.begin());
        droppable_.pop_front();
    }
    // What was marked last and those that continue it, not marked any more; none: nothing is.
    struct Taken {
        Place first;
        Place end;
    };
    Taken unmark_last() {
        if (droppable_.empty()) return {.first = items_.end(), .end = items_.end()};
        const Place first = droppable_.back();
        droppable_.pop_back();
        Place end = std::next(first);
        while (end != items_.end() && end->handling.continues)
            ++end;
        return {.first = first, .end = end};
    }
    // Of what is not marked.
    void pop_front() {
        NETIO_CHECK(!items_.empty());
        erase(items_.begin(), std::next(items_.begin()));
    }
    void erase(Place first, Place end) {
        while (first != end) {
            *first = Item{};
            spare_.splice(spare_.begin(), items_, first++);
            if (spare_.size() > kept_count) spare_.pop_front();
        }
    }
    void clear() { *this = {}; }

  private:
    std::list<Item> items_;
    std::list<Item> spare_;
    RingQueue<Place> droppable_; // the first of each message, in order
};

} // namespace netio::pubsub::inline v0_2
