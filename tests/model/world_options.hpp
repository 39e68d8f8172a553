// SPDX-License-Identifier: Apache-2.0
#pragma once

// WorldOptions: the parts of a World (tests/model/world.hpp), and the possible actions.

#include "stream/core/options.hpp"

#include <cstddef>
#include <cstdint>

namespace netio::stream {

enum class WaitAll : std::uint8_t { never, either, always };

struct WorldOptions {
    SenderOptions sender{};
    ReceiverOptions receiver{};
    std::uint64_t stream_bytes = 0;
    std::uint64_t longest_send_bytes = 2;
    std::uint64_t longest_receive_bytes = 2;
    std::size_t queued_send_limit = 1;
    std::size_t open_receive_limit = 2;
    std::size_t piece_limit = 1;
    WaitAll wait_all = WaitAll::either;
    bool empty_operations = false;  // users also send and receive 0 bytes
    bool eager = true;              // both sides act at once; only channels and users may wait
    bool separate_done = false;     // writes complete at a separate time
    bool partial_copies = false;    // the ring is emptied in pieces of any size
    bool prompt_copies = false;     // ... or as soon as there is a receive
    bool check_efficiency = false;  // a quiet system with a valid advert must use direct transfers
    bool data_checks_only = false;  // check only where the bytes go, not numbers and phases
    bool look_from_outside = false; // do not check the internal consistency of the state machines
    std::uint64_t frame_bytes = 0;  // size of the frames that carry bytes (R16); 0: remote writes
    bool refuses_rings = false;     // there is never memory for a larger ring (P11)
    // A ring of this size is a violation, for a search of its trace. 0: no such size.
    std::uint64_t forbidden_ring_bytes = 0;
};

} // namespace netio::stream
