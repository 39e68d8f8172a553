// SPDX-License-Identifier: Apache-2.0
#pragma once

// A flat hash map from fids to small values: one cache line per look-up in the usual case. Every
// message costs a look-up on either side, which is why it is not std::unordered_map. Pointers and
// references are good until the next insertion or removal.

#include "pubsub/core/fid.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

template <typename Value>
class FidMap {
  public:
    // The value of a fid, made if it is not there.
    Value& operator[](Fid fid) {
        if (Value* const value = find(fid)) return *value;
        if ((size_ + 1) * 2 > slots_.size()) grow();
        std::size_t at = free_place(fid);
        if (((at - home(fid)) & mask_) > search_limit && multiplier_ == golden_ratio) {
            scatter_anew();
            at = free_place(fid);
        }
        slots_[at].used = true;
        slots_[at].fid = fid;
        ++size_;
        return slots_[at].value;
    }

    Value* find(Fid fid) noexcept {
        if (slots_.empty()) return nullptr;
        for (std::size_t at = home(fid);; at = next(at)) {
            Slot& slot = slots_[at];
            if (!slot.used) return nullptr;
            if (slot.fid == fid) return &slot.value;
        }
    }
    const Value* find(Fid fid) const noexcept { return const_cast<FidMap*>(this)->find(fid); }

    bool erase(Fid fid) {
        if (slots_.empty()) return false;
        std::size_t at = home(fid);
        while (slots_[at].used && slots_[at].fid != fid)
            at = next(at);
        if (!slots_[at].used) return false;
        --size_;
        close_hole(at);
        return true;
    }

    void erase(const FidRange& range) {
        std::vector<Fid> gone;
        for_each_in(range, [&](Fid fid, const Value&) { gone.push_back(fid); });
        for (const Fid fid : gone)
            erase(fid);
    }

    // So many fids have room, and none of them moves another.
    void reserve(std::size_t fids) {
        if (fids * 2 <= slots_.size()) return;
        resize(std::bit_ceil(std::max<std::size_t>(fids * 2, 8)));
    }

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    // How far from its home the farthest is: what the worst look-up costs.
    std::size_t farthest() const noexcept {
        std::size_t distance = 0;
        for (std::size_t at = 0; at < slots_.size(); ++at) {
            if (slots_[at].used) distance = std::max(distance, (at - home(slots_[at].fid)) & mask_);
        }
        return distance;
    }
    void clear() noexcept {
        slots_.clear();
        size_ = 0;
    }

    // Calls visit(fid, value) for each; in no order. The map must not change meanwhile.
    template <typename Visit>
    void for_each(Visit visit) {
        for (std::size_t place = 0; place < slots_.size(); ++place) {
            Slot& slot = slots_[scattered(place)];
            if (slot.used) visit(slot.fid, slot.value);
        }
    }
    template <typename Visit>
    void for_each(Visit visit) const {
        for (std::size_t place = 0; place < slots_.size(); ++place) {
            const Slot& slot = slots_[scattered(place)];
            if (slot.used) visit(slot.fid, slot.value);
        }
    }

    // The same of those in a range; whichever are fewer, its fids or ours, are looked at.
    template <typename Visit>
    void for_each_in(const FidRange& range, Visit visit) const {
        if (to_integer(range.last) - to_integer(range.first) >= size_) {
            return for_each([&](Fid fid, const Value& value) {
                if (contains(range, fid)) visit(fid, value);
            });
        }
        for (std::uint64_t fid = to_integer(range.first);; ++fid) {
            if (const Value* const value = find(Fid{fid})) visit(Fid{fid}, *value);
            if (fid == to_integer(range.last)) return;
        }
    }

    // A walk in parts over a map that does not change meanwhile: calls visit(fid, value) for what
    // is at the next `count` places, as long as it returns true, and returns the place to go on
    // from. It begins at 0 and has ended at places().
    std::size_t places() const noexcept { return slots_.size(); }
    template <typename Visit>
    std::size_t visit_places(std::size_t first, std::size_t count, Visit visit) const {
        const std::size_t end = first + std::min(count, slots_.size() - first);
        for (; first < end; ++first) {
            const Slot& slot = slots_[scattered(first)];
            if (slot.used && !visit(slot.fid, slot.value)) break;
        }
        return first;
    }

  private:
    struct Slot {
        Fid fid{};
        bool used = false;
        Value value{};
    };

    static constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15; // of 2 to the 64th
    // By chance, at most half full, a million fids have none that is 100 places from home.
    static constexpr std::size_t search_limit = 512;

    // Fids are regular: steps, bit fields. One multiplication spreads some of these badly (with
    // steps of 16, six in ten are not at home), and whoever is not at home costs a mispredicted
    // branch, which is twice the rest of a look-up. With two, and the halves folded between them,
    // they fall as by chance. The top bits depend on all bits of the fid.
    std::size_t home(Fid fid) const noexcept {
        const std::uint64_t product = to_integer(fid) * multiplier_;
        return static_cast<std::size_t>(((product ^ (product >> 32)) * multiplier_) >> shift_);
    }
    std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask_; }
    // Another order of all slots, by the golden section: whoever entered the values of one map into
    // another in their own order would find most of it in the way of the next.
    std::size_t scattered(std::size_t place) const noexcept {
        return (place * ((slots_.size() * 40503 >> 16) | 1)) & mask_;
    }

    std::size_t free_place(Fid fid) const noexcept {
        std::size_t at = home(fid);
        while (slots_[at].used)
            at = next(at);
        return at;
    }

    void grow() { resize(slots_.empty() ? 8 : slots_.size() * 2); }
    void resize(std::size_t slots) { // a power of two
        mask_ = slots - 1;
        shift_ = static_cast<unsigned>(64 - std::countr_zero(slots));
        place_anew();
    }
    // Somebody has chosen fids that meet: a peer can, and each look-up would walk past all of them.
    // It cannot choose them for a number that it does not know. Only then, since what is visited in
    // which order is otherwise the same in every run.
    void scatter_anew() {
        std::random_device device;
        multiplier_ = (std::uint64_t{device()} << 32 | device()) | 1;
        place_anew();
    }
    void place_anew() {
        std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(mask_ + 1));
        for (Slot& slot : old)
            if (slot.used) slots_[free_place(slot.fid)] = std::move(slot);
    }

    // Moves later entries of the same run forward, so that no search stops short.
    void close_hole(std::size_t hole) {
        for (std::size_t at = next(hole); slots_[at].used; at = next(at)) {
            const std::size_t distance = (at - home(slots_[at].fid)) & mask_;
            if (distance >= ((at - hole) & mask_)) {
                slots_[hole] = std::move(slots_[at]);
                hole = at;
            }
        }
        slots_[hole] = Slot{};
    }

    std::vector<Slot> slots_; // a power of two, at most half full
    std::size_t mask_ = 0;    // slots_.size() - 1
    std::size_t size_ = 0;
    std::uint64_t multiplier_ = golden_ratio; // odd
    unsigned shift_ = 61;
};

} // namespace netio::pubsub::inline v0_2
