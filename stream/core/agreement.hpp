// SPDX-License-Identifier: Apache-2.0
#pragma once

// What two sides with different options agree on: each tells the other in its hello what it does
// and needs, and bends its own options to what it is told. Pure.

#include "stream/core/options.hpp"
#include "stream/core/wire.hpp"

#include <cstdint>
#include <string_view>

namespace netio::stream::inline v0_2 {

// `lends`: its memory is written to by the peer.
Hello hello_of(const SenderOptions& sender, const ReceiverOptions& receiver, bool lends);

// Why these two cannot work together, as what the peer does; empty: they can.
std::string_view misfit(const SenderOptions& sender, const ReceiverOptions& receiver,
                        const Hello& peer);

// The options of our receiver with this peer, which writes into our memory or not.
ReceiverOptions agreed(const ReceiverOptions& options, const Hello& peer, bool lends);

// The options of our sender with this peer, whose first ring has so many bytes. The longest write
// is `message_bytes`; to a peer that lends no memory, the longest frame. Without a ring it sends
// directly only, so the options must not be indirect-only then.
SenderOptions agreed(const SenderOptions& options, const Hello& peer, std::uint64_t ring_bytes,
                     std::uint64_t message_bytes);

} // namespace netio::stream::inline v0_2
