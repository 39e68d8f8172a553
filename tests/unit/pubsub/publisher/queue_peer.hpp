// SPDX-License-Identifier: Apache-2.0
#pragma once

// A peer that receives the frames of a SendQueue.

#include "pubsub/publisher/send_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace netio::pubsub::test {

inline constexpr std::size_t body_limit = 4096;

// The received frames, and the cookies in flight.
struct QueuePeer {
    SendQueue queue{};
    std::size_t frame_bytes = body_limit;
    bool by_device = false;
    std::size_t slices = 0; // slices that are sent without a copy
    std::vector<std::uint8_t> kinds;
    std::vector<std::size_t> slice_counts;
    std::vector<FidCount> counts;
    std::vector<Cookie> under_way;
    bool more = false;

    bool take_one(std::size_t post_limit = SIZE_MAX) {
        ReadyFrame frame;
        const SendQueue::Room room{.post_limit = post_limit,
                                   .body_limit = frame_bytes,
                                   .slice_limit = slices,
                                   .by_device = by_device};
        if (!queue.prepare(room, frame)) return false;
        kinds.push_back(frame.kind);
        slice_counts.push_back(frame.slice_count);
        more = frame.flags == more_flag;
        const bool positions = frame.kind == positions_kind;
        if (frame.kind == gap_kind || frame.kind == totals_kind || positions) {
            const OutgoingFrame out = frame.outgoing();
            std::vector<std::byte> body{out.extension.begin(), out.extension.end()};
            for (const Slice& slice : out.slices)
                body.insert(body.end(), slice.data, slice.data + slice.size);
            const std::size_t skip = positions ? positions_extension_bytes : 0;
            const auto told = decode_counts(std::span{body}.subspan(skip));
            counts.insert(counts.end(), told->begin(), told->end());
        }
        if (frame.cookie) under_way.push_back(*frame.cookie);
        queue.posted();
        return true;
    }
    void take_all(std::size_t post_limit = SIZE_MAX) {
        while (take_one(post_limit)) {
        }
    }
    std::vector<SendQueue::Returned> complete_one() {
        const Cookie cookie = under_way.front();
        under_way.erase(under_way.begin());
        std::vector<SendQueue::Returned> returned;
        queue.on_sent(cookie, Fate::sent, returned);
        return returned;
    }
};

} // namespace netio::pubsub::test
