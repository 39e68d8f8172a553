// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/count_frames.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// Frames that one peer may have under way in memory, and the most of each.
constexpr unsigned frame_limit = 4;
constexpr std::size_t counts_bytes = 4096;

} // namespace

std::size_t CountFrames::most(std::size_t body_limit, const ReadyFrame& frame) const noexcept {
    return std::min(counts_bytes, body_limit - frame.extension_bytes) / fid_count_bytes;
}

std::optional<CountFrames::Places> CountFrames::prepare(GapLedger& gaps, std::size_t body_limit,
                                                        ReadyFrame& frame) {
    if (!has_begun()) {
        telling_ = gaps.take();
        told_ = 0;
    }
    return write(most(body_limit, frame), frame);
}

std::optional<CountFrames::Places> CountFrames::prepare(const CountList& list,
                                                        std::size_t body_limit, ReadyFrame& frame) {
    const std::size_t at_most = most(body_limit, frame);
    if (!has_begun() && !list_ends_) {
        telling_.resize(at_most);
        const TotalsPart part = list(telling_);
        telling_.resize(part.count);
        list_ends_ = part.last;
        told_ = 0;
    }
    const auto place = write(at_most, frame);
    if (told_ + part_ < telling_.size() || !list_ends_) frame.flags = more_flag;
    return place;
}

std::optional<CountFrames::Places> CountFrames::write(std::size_t at_most, ReadyFrame& frame) {
    part_ = std::min(at_most, telling_.size() - told_);
    const auto counts = std::span{telling_}.subspan(told_, part_);
    frame.slice_count = 0;
    const auto behind = std::span{frame.extension}.subspan(frame.extension_bytes);
    if (counts.size_bytes() <= behind.size()) {
        frame.extension_bytes += encode(counts, behind);
        return Places{0};
    }
    const auto free = static_cast<unsigned>(std::countr_one(used_));
    if (free >= frame_limit) return std::nullopt;
    if (!memory_)
        memory_ = std::make_unique<RegisteredBuffer>(frame_limit * counts_bytes, Access::send);
    const Slice memory = memory_->slice(free * counts_bytes, counts_bytes);
    frame.slices[0] = {memory.buffer, memory.data, encode(counts, {memory.data, memory.size})};
    frame.slice_count = 1;
    return Places{1} << free;
}

bool CountFrames::posted(Places place, const GapLedger* gaps) {
    used_ |= place;
    told_ += part_;
    const bool told = !has_begun() && (gaps != nullptr ? gaps->empty() : list_ends_);
    if (told) list_ends_ = false;
    return told;
}

} // namespace netio::pubsub::inline v0_2
