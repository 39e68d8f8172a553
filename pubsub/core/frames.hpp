// SPDX-License-Identifier: Apache-2.0
#pragma once

// The frames of publish/subscribe (docs/wire-formats.md, "Publish/subscribe"). No I/O. Encoders
// return the number of bytes written; decoders return nothing for bytes that are not such a frame.

#include "netio/base/frame.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

inline constexpr std::uint8_t page_kind = 16;
inline constexpr std::uint8_t message_kind = 17;
inline constexpr std::uint8_t fragment_kind = 18;
inline constexpr std::uint8_t gap_kind = 19;
inline constexpr std::uint8_t subscribe_kind = 20;
inline constexpr std::uint8_t unsubscribe_kind = 21;
inline constexpr std::uint8_t subscription_answer_kind = 22;
inline constexpr std::uint8_t totals_kind = 23;
inline constexpr std::uint8_t totals_answer_kind = 24;
inline constexpr std::uint8_t positions_kind = 25;
inline constexpr std::uint8_t fids_question_kind = 26;
inline constexpr std::uint8_t fids_answer_kind = 27;
static_assert(page_kind == first_service_kind);

// Flag of subscribe: the positions are wanted in front of the answer.
inline constexpr std::uint8_t positions_flag = 1;
// Flag of totals, positions and fids answers: the list goes on in the next frame.
inline constexpr std::uint8_t more_flag = 1;
// Flag of a page: it was made of messages whose memory is lent, which waited for the peer.
inline constexpr std::uint8_t gathered_flag = 1;

// In front of a message that has a frame to itself.
struct MessageExtension {
    Fid fid{};
    std::uint8_t status = 0;
};
inline constexpr std::size_t message_extension_bytes = 16;
std::size_t encode(const MessageExtension& extension, std::span<std::byte> out);
std::optional<MessageExtension> decode_message(std::span<const std::byte> body);

// In front of a piece of a message that is larger than a frame. The pieces of one message follow
// one another without another message between them.
struct FragmentExtension {
    Fid fid{};
    std::uint32_t message_number = 0; // differs between one message and the next
    std::uint32_t offset = 0;
    std::uint32_t total = 0; // bytes of the whole message
    std::uint8_t status = 0;
};
inline constexpr std::size_t fragment_extension_bytes = 24;
std::size_t encode(const FragmentExtension& extension, std::span<std::byte> out);
std::optional<FragmentExtension> decode_fragment(std::span<const std::byte> body);

// Subscribe and unsubscribe: the request's number, the policy that is asked for (subscribe only;
// none: the publisher's own), then ranges.
inline constexpr std::size_t request_header_bytes = 8;
inline constexpr std::size_t range_bytes = 16;
std::size_t encode_request(std::uint32_t request, std::span<const FidRange> ranges,
                           std::span<std::byte> out, std::optional<SlowPolicy> policy = {});
struct SubscriptionRequest {
    std::uint32_t request = 0;
    std::optional<SlowPolicy> policy;
    std::vector<FidRange> ranges;
};
// Refuses an empty list, and a range whose last fid is below its first.
std::optional<SubscriptionRequest> decode_request(std::span<const std::byte> body);

enum class SubscriptionResult : std::uint32_t {
    accepted = 0,
    table_full = 1,     // nothing of the request was carried out
    policy_refused = 2, // nothing either: it would hold the publisher up more than its own does, or
                        // it is `newest`, and the publisher keeps nothing
    not_permitted = 3,  // nothing either: the key of this subscriber does not give it that
};
struct SubscriptionAnswer {
    std::uint32_t request = 0;
    SubscriptionResult result = SubscriptionResult::accepted;
};
inline constexpr std::size_t answer_bytes = 8;
std::size_t encode(const SubscriptionAnswer& answer, std::span<std::byte> out);
std::optional<SubscriptionAnswer> decode_answer(std::span<const std::byte> body);

// In front of a list of positions: how many messages of each fid this publish socket had published
// when it accepted the request.
struct PositionsExtension {
    std::uint64_t instance = 0; // of the publish socket: another number is another account
    std::uint32_t request = 0;
};
inline constexpr std::size_t positions_extension_bytes = 16;
std::size_t encode(const PositionsExtension& extension, std::span<std::byte> out);
std::optional<PositionsExtension> decode_positions(std::span<const std::byte> body);

// Which fids are published? The answer has up to `limit` ranges of those that the subscriber may
// read, ascending: first the nearest one that begins below `from`, then those from there on. Fewer
// than `limit`: there are no more.
struct FidsQuestion {
    Fid from{};
    std::uint32_t limit = 0; // 1 to fids_answer_limit
    std::uint32_t number = 0;
};
inline constexpr std::uint32_t fids_answer_limit = 252; // ranges; fit into a frame of 4 KiB
inline constexpr std::size_t fids_question_bytes = 16;
std::size_t encode(const FidsQuestion& question, std::span<std::byte> out);
std::optional<FidsQuestion> decode_fids_question(std::span<const std::byte> body);
struct FidsAnswer {
    std::uint32_t number = 0; // of the question
    std::vector<FidRange> ranges;
};
inline constexpr std::size_t fids_answer_extension_bytes = 8;
std::size_t encode_fids_answer(std::uint32_t number, std::span<std::byte> out);
std::optional<FidsAnswer> decode_fids_answer(std::span<const std::byte> body);

// Gaps, totals and positions: a list of (fid, number of messages).
// Some of the totals: how many were written, and whether there are no more.
struct TotalsPart {
    std::size_t count = 0;
    bool last = false;
};
inline constexpr std::size_t fid_count_bytes = 16;
std::size_t encode(std::span<const FidCount> counts, std::span<std::byte> out);
std::optional<std::vector<FidCount>> decode_counts(std::span<const std::byte> body);

} // namespace netio::pubsub::inline v0_2
