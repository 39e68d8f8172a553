// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages of fids that the publisher had no room for, in order within each fid, and whose turn
// it is to be tried. One message of each at a time: so each has its part of what room there is. No
// I/O.

#include "pubsub/core/fid.hpp"

#include <deque>
#include <iterator>
#include <list>
#include <unordered_map>
#include <utility>

namespace netio::pubsub::inline v0_2 {

// An Item has a `fid`.
template <typename Item>
class WaitingFids {
  public:
    bool empty() const noexcept { return fids_.empty(); }
    bool has(Fid fid) const { return fids_.count(fid) > 0; }
    // Behind those of its fid; if there are none, it has been refused just now.
    void put(Item item) {
        const Fid fid = item.fid;
        const auto found = fids_.find(fid);
        if (found != fids_.end()) return found->second->push_back(std::move(item));
        refused_.emplace_back().push_back(std::move(item));
        fids_.emplace(fid, std::prev(refused_.end()));
    }

    // There may be room again, for any of them.
    void wake() noexcept { to_try_.splice(to_try_.end(), refused_); }
    bool is_to_try() const noexcept { return !to_try_.empty(); }
    // If there is one to try.
    const Item& next() const noexcept { return to_try_.front().front(); }
    // There was no room for it, nor is there for the others of its fid.
    void refuse() noexcept { refused_.splice(refused_.end(), to_try_, to_try_.begin()); }
    // It has found room; another fid is next.
    void take() {
        Queue& queue = to_try_.front();
        const Fid fid = queue.front().fid;
        queue.pop_front();
        if (!queue.empty()) return to_try_.splice(to_try_.end(), to_try_, to_try_.begin());
        fids_.erase(fid);
        to_try_.pop_front();
    }

  private:
    using Queue = std::deque<Item>; // of a fid, never empty

    std::list<Queue> to_try_;
    std::list<Queue> refused_; // since they were woken last
    std::unordered_map<Fid, typename std::list<Queue>::iterator> fids_;
};

} // namespace netio::pubsub::inline v0_2
