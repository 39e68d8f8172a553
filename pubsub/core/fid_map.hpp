// SPDX-License-Identifier: Apache-2.0
#pragma once

// A flat hash map from fids to small values. A look-up usually needs one cache line if a value has
// up to 24 bytes. It replaces std::unordered_map because every message needs a look-up on either
// side. Pointers and references are valid until the next insertion or removal.

#include "pubsub/core/fid.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

template <typename Value>
class FidMap {
    struct Entry {
        Fid fid{};
        Value value{};
    };
    static constexpr std::size_t slot_alignment() noexcept {
        return sizeof(Entry) <= 32 ? std::bit_ceil(sizeof(Entry)) : alignof(Entry);
    }
    struct alignas(slot_alignment()) Slot : Entry {};

  public:
    // The fid of vacant slots. Another one is chosen if a user inserts this one.
    static constexpr Fid initial_vacant{0x6a09e667f3bcc908};
    static constexpr std::size_t slot_bytes() noexcept { return sizeof(Slot); }

    // The value of a fid, inserted if it is not there.
    Value& operator[](Fid fid) {
        if (Value* const value = find(fid)) return *value;
        if (fid == vacant_) choose_vacant();
        if ((size_ + 1) * 2 > slots_.size()) grow();
        std::size_t at = free_place(fid);
        if (((at - home(fid)) & mask_) > search_limit && multiplier_ == golden_ratio) {
            scatter_anew();
            at = free_place(fid);
        }
        slots_[at].fid = fid;
        ++size_;
        return slots_[at].value;
    }

    Value* find(Fid fid) noexcept { return fid == vacant_ ? nullptr : find_or_vacant(fid); }
    // The same with fewer instructions: it may return a default value of a vacant slot instead of
    // nullptr.
    Value* find_or_vacant(Fid fid) noexcept {
        if (slots_.empty()) return nullptr;
        Slot* slot = &slots_[home(fid)];
        while (true) {
            if (slot->fid == fid) [[likely]]
                return &slot->value;
            if (is_vacant(*slot)) return nullptr;
            if (++slot == slots_.data() + slots_.size()) slot = slots_.data();
        }
    }
    const Value* find(Fid fid) const noexcept { return const_cast<FidMap*>(this)->find(fid); }

    bool erase(Fid fid) {
        if (slots_.empty()) return false;
        std::size_t at = home(fid);
        while (!is_vacant(slots_[at]) && slots_[at].fid != fid)
            at = next(at);
        if (is_vacant(slots_[at])) return false;
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

    // Makes space for this number of fids, so that inserting them does not move others.
    void reserve(std::size_t fids) {
        if (fids * 2 <= slots_.size()) return;
        resize(std::bit_ceil(std::max<std::size_t>(fids * 2, 8)));
    }

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    // The longest distance of a fid from its home slot: the cost of the worst look-up.
    std::size_t farthest() const noexcept {
        std::size_t distance = 0;
        for (std::size_t at = 0; at < slots_.size(); ++at) {
            if (is_vacant(slots_[at])) continue;
            distance = std::max(distance, (at - home(slots_[at].fid)) & mask_);
        }
        return distance;
    }
    void clear() noexcept {
        slots_.clear();
        size_ = 0;
    }

    // Calls visit(fid, value) for each, in no order. The map must not change during the call.
    template <typename Visit>
    void for_each(Visit visit) {
        for (std::size_t place = 0; place < slots_.size(); ++place) {
            Slot& slot = slots_[scattered(place)];
            if (!is_vacant(slot)) visit(slot.fid, slot.value);
        }
    }
    template <typename Visit>
    void for_each(Visit visit) const {
        for (std::size_t place = 0; place < slots_.size(); ++place) {
            const Slot& slot = slots_[scattered(place)];
            if (!is_vacant(slot)) visit(slot.fid, slot.value);
        }
    }

    // The same for a range. Examines the fids of the range or the entries, whichever are fewer.
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

    // Iterates in parts over a map that does not change in the meantime: calls visit(fid, value)
    // for the entries in the next `count` slots until it returns false, and returns the slot to
    // continue from. The first slot is 0, the end is places().
    std::size_t places() const noexcept { return slots_.size(); }
    template <typename Visit>
    std::size_t visit_places(std::size_t first, std::size_t count, Visit visit) const {
        const std::size_t end = first + std::min(count, slots_.size() - first);
        for (; first < end; ++first) {
            const Slot& slot = slots_[scattered(first)];
            if (!is_vacant(slot) && !visit(slot.fid, slot.value)) break;
        }
        return first;
    }

  private:
    static constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15; // of 2 to the 64th
    // Random fids, a million of them and at most half full, stay within 100 slots of their home.
    static constexpr std::size_t search_limit = 512;

    // Fids are regular: steps, bit fields. One multiplication distributes some of them badly (with
    // steps of 16, six in ten are not in their home slot), and each of these costs a mispredicted
    // branch, twice the rest of a look-up. Two multiplications with folded halves between them
    // distribute them as at random. The top bits depend on all bits of the fid.
    std::size_t home(Fid fid) const noexcept {
        const std::uint64_t product = to_integer(fid) * multiplier_;
        return ((product ^ (product >> 32)) * multiplier_) >> shift_;
    }
    std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask_; }
    bool is_vacant(const Slot& slot) const noexcept { return slot.fid == vacant_; }
    // Visits the slots in another order, by the golden section: inserting the entries of one map
    // into another in slot order would build long runs of occupied slots.
    std::size_t scattered(std::size_t place) const noexcept {
        return (place * ((slots_.size() * 40503 >> 16) | 1)) & mask_;
    }

    std::size_t free_place(Fid fid) const noexcept {
        std::size_t at = home(fid);
        while (!is_vacant(slots_[at]))
            at = next(at);
        return at;
    }

    void grow() { resize(slots_.empty() ? 8 : slots_.size() * 2); }
    void resize(std::size_t slots) { // a power of two
        mask_ = slots - 1;
        shift_ = static_cast<unsigned>(64 - std::countr_zero(slots));
        place_anew();
    }
    // Called if fids collide often: a peer may have chosen them to slow down each look-up. Places
    // all fids again, with a secret random multiplier. Only then, so that otherwise the order of
    // visits is the same in every run.
    void scatter_anew() {
        multiplier_ = draw() | 1;
        place_anew();
    }
    void place_anew() {
        std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(mask_ + 1));
        for (Slot& slot : slots_)
            slot.fid = vacant_;
        for (Slot& slot : old)
            if (!is_vacant(slot)) slots_[free_place(slot.fid)] = std::move(slot);
    }
    // Chooses another fid for vacant slots; at random, so that a peer cannot insert it next.
    void choose_vacant() {
        Fid other{draw()};
        while (other == vacant_ || find(other) != nullptr)
            other = Fid{draw()};
        for (Slot& slot : slots_)
            if (is_vacant(slot)) slot.fid = other;
        vacant_ = other;
    }
    static std::uint64_t draw() {
        std::random_device device;
        return std::uint64_t{device()} << 32 | device();
    }

    // Moves later entries of the same run forward, so that a search does not stop early.
    void close_hole(std::size_t hole) {
        for (std::size_t at = next(hole); !is_vacant(slots_[at]); at = next(at)) {
            const std::size_t distance = (at - home(slots_[at].fid)) & mask_;
            if (distance >= ((at - hole) & mask_)) {
                slots_[hole] = std::move(slots_[at]);
                hole = at;
            }
        }
        slots_[hole] = Slot{};
        slots_[hole].fid = vacant_;
    }

    std::vector<Slot> slots_; // a power of two, at most half full
    std::size_t mask_ = 0;    // slots_.size() - 1
    std::size_t size_ = 0;
    Fid vacant_ = initial_vacant;
    std::uint64_t multiplier_ = golden_ratio; // odd
    unsigned shift_ = 61;
};

} // namespace netio::pubsub::inline v0_3
