// SPDX-License-Identifier: Apache-2.0
#pragma once

// The wire format of publish/subscribe (docs/wire-formats.md): frames, pages of several messages,
// and the reassembly of fragmented messages. Encoders return the number of bytes written; decoders
// return `nullopt` for a malformed frame. No I/O.

#include "netio/base/frame.hpp"
#include "netio/base/wire.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/coalescing/reassembly.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/time_stamp.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Bit of a hello (Hello::features): this side reads time stamps.
inline constexpr std::uint8_t time_stamps_feature = 1;

// --- frames ---------------------------------------------------------------------------------

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

// Flag of subscribe: requests the positions before the answer.
inline constexpr std::uint8_t positions_flag = 1;
// Flag of totals, positions and fids answers: the list continues in the next frame.
inline constexpr std::uint8_t more_flag = 1;
// Flag of a page: an unbuffered publisher packed small queued messages into it.
inline constexpr std::uint8_t gathered_flag = 1;

// The header of a message that has a frame of its own.
struct MessageExtension {
    Fid fid{};
    std::uint8_t status = 0;
};
inline constexpr std::size_t message_extension_bytes = 16;
std::size_t encode(const MessageExtension& extension, std::span<std::byte> out);
std::optional<MessageExtension> decode_message(std::span<const std::byte> body);

// The header of a fragment of a message that is larger than a frame. No other message comes between
// the fragments of a message.
struct FragmentExtension {
    Fid fid{};
    std::uint32_t message_number = 0; // different for consecutive messages
    std::uint32_t offset = 0;
    std::uint32_t total = 0; // bytes of the whole message
    std::uint8_t status = 0;
};
inline constexpr std::size_t fragment_extension_bytes = 24;
std::size_t encode(const FragmentExtension& extension, std::span<std::byte> out);
std::optional<FragmentExtension> decode_fragment(std::span<const std::byte> body);

// Subscribe and unsubscribe: the number of the request, the requested policy (subscribe only;
// `nullopt`: the policy of the publisher), the bytes of the options, the options
// (netio/base/wire.hpp), then ranges.
inline constexpr std::size_t request_header_bytes = 8;
inline constexpr std::size_t range_bytes = 16;
// An option of subscribe: the kept messages are wanted, unless this publish socket is the one with
// this number (PositionsExtension::instance), whose messages have arrived already; 0: none.
inline constexpr std::uint16_t history_option = 1;
inline constexpr std::size_t history_option_bytes = wire_options::header_bytes + 8;
using HistoryWish = std::optional<std::uint64_t>;
constexpr std::size_t request_bytes(std::size_t ranges, const HistoryWish& history) noexcept {
    return request_header_bytes + (history ? history_option_bytes : 0) + ranges * range_bytes;
}
std::size_t encode_request(std::uint32_t request, std::span<const FidRange> ranges,
                           std::span<std::byte> out, std::optional<SlowPolicy> policy = {},
                           HistoryWish history = {});
struct SubscriptionRequest {
    std::uint32_t request = 0;
    std::optional<SlowPolicy> policy;
    HistoryWish history;
    std::vector<FidRange> ranges;
    // Decoded only: the first mandatory option that this version does not know; 0: none.
    std::uint16_t unknown_option = 0;
};
// Rejects an empty list, and a range whose last fid is below its first.
std::optional<SubscriptionRequest> decode_request(std::span<const std::byte> body);

enum class SubscriptionResult : std::uint32_t {
    accepted = 0,
    // The other codes: no part of the request was carried out.
    table_full = 1,
    policy_refused = 2, // it blocks the publisher more than the policy of the publisher does, or it
                        // is `newest` and the publisher does not conflate
    not_permitted = 3,  // the key of this subscriber does not have the right
    unknown_option = 4, // it requires an option that the publisher does not know
};
struct SubscriptionAnswer {
    std::uint32_t request = 0;
    SubscriptionResult result = SubscriptionResult::accepted;
    // An option of the answer, if there are any: what the time stamps mean of all messages that
    // follow in this connection.
    StampFormat stamps{};
    // An option of the answer to a request for history: this publisher keeps messages.
    bool keeps_history = false;
};
inline constexpr std::size_t answer_bytes = 8; // without options
inline constexpr std::size_t answer_limit_bytes = 20;
inline constexpr std::uint16_t time_stamps_option = wire_options::mandatory | 1;
inline constexpr std::uint16_t keeps_history_option = 2; // without a value
std::size_t encode(const SubscriptionAnswer& answer, std::span<std::byte> out);
std::optional<SubscriptionAnswer> decode_answer(std::span<const std::byte> body);

// The header of a list of positions: the number of messages of each fid that this publish socket
// had published when it accepted the request.
struct PositionsExtension {
    std::uint64_t instance = 0; // of the publish socket; positions of another one do not compare
    std::uint32_t request = 0;
};
inline constexpr std::size_t positions_extension_bytes = 16;
std::size_t encode(const PositionsExtension& extension, std::span<std::byte> out);
std::optional<PositionsExtension> decode_positions(std::span<const std::byte> body);

// Asks which fids are published. The answer has up to `limit` ranges of fids that the subscriber
// may read, ascending: first the nearest range that begins below `from`, then the following ones.
// Fewer than `limit` ranges mean that no more follow.
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

// A part of the totals: the number of entries written, and whether it is the last part.
struct TotalsPart {
    std::size_t count = 0;
    bool last = false;
};
// Gaps, totals and positions: a list of (fid, number of messages).
inline constexpr std::size_t fid_count_bytes = 16;
std::size_t encode(std::span<const FidCount> counts, std::span<std::byte> out);
std::optional<std::vector<FidCount>> decode_counts(std::span<const std::byte> body);

// --- pages ----------------------------------------------------------------------------------

// Several messages with their fids in one page (netio/coalescing/page.hpp). The message header is
// the one that netio3 documents, so that a stream can be bridged.
//
//     0               4   (5)           (13)
//     +---------------+---+-------------+- - - - - -
//     |F S    size    |sta|     fid     | message
//     +---------------+---+-------------+- - - - - -
//
// Bit 31 (F): a fid follows; without it the message has the fid of the message before. Bit 30 (S):
// a status byte follows. Bits 29 to 0: the size of the message.
namespace page {
inline constexpr std::uint32_t fid_present = std::uint32_t{1} << 31;
inline constexpr std::uint32_t status_present = std::uint32_t{1} << 30;
// The largest header of a message.
inline constexpr std::size_t header_bytes = netio::page::record_header_bytes + 1 + 8;

constexpr std::size_t prefix_bytes(std::uint32_t marks) noexcept {
    return ((marks & status_present) != 0 ? 1U : 0U) + ((marks & fid_present) != 0 ? 8U : 0U);
}
} // namespace page

// Fills a page. A status of 0 is not written; it is the default of the reader.
class PageWriter {
  public:
    PageWriter() = default;
    explicit PageWriter(std::span<std::byte> memory) noexcept : writer_{memory} {}

    // Writes the header and returns the address for the `size` bytes of the message, or nullptr if
    // the page is full.
    std::byte* append(Fid fid, std::uint8_t status, std::size_t size) noexcept {
        const bool with_fid = writer_.used() == 0 || fid != fid_;
        const std::uint32_t marks =
            (with_fid ? page::fid_present : 0U) | (status != 0 ? page::status_present : 0U);
        std::byte* out = writer_.append(marks, page::prefix_bytes(marks), size);
        if (out == nullptr) return nullptr;
        if (status != 0) *out++ = std::byte{status};
        if (with_fid) {
            wire::store(out, fid);
            out += 8;
            fid_ = fid;
        }
        return out;
    }

    // Changes the limit of the page, but not below used(). The memory has at least `bytes`.
    void resize(std::size_t bytes) noexcept { writer_.resize(bytes); }

    std::size_t used() const noexcept { return writer_.used(); }
    std::size_t messages() const noexcept { return writer_.messages(); }

  private:
    netio::PageWriter writer_;
    Fid fid_{};
};

// Calls visit(fid, message, status) for each message in order, until it returns false. Returns
// false if the page is malformed after the visited messages. `before`: the bytes are the rest of a
// page; the fid of the message before them.
template <typename Visit>
bool visit_page(std::span<const std::byte> bytes, Visit visit, std::optional<Fid> before = {}) {
    Fid fid = before.value_or(Fid{});
    std::uint32_t required = page::fid_present; // of the first
    if (before) required = 0;
    return netio::visit_records(
        bytes,
        [&](std::uint32_t marks) {
            return (marks & required) == required ? page::prefix_bytes(marks)
                                                  : netio::page::no_such_record;
        },
        [&](std::uint32_t marks, const std::byte* prefix, std::span<const std::byte> message) {
            required = 0;
            if (marks == 0) return visit(fid, message, std::uint8_t{0});
            std::uint8_t status = 0;
            if ((marks & page::status_present) != 0)
                status = std::to_integer<std::uint8_t>(*prefix++);
            if ((marks & page::fid_present) != 0) fid = wire::load<Fid>(prefix);
            return visit(fid, message, status);
        });
}

// --- fragments ------------------------------------------------------------------------------

// Reassembles a message from its fragments (netio/coalescing/reassembly.hpp), and checks that all
// of them belong to the same message.
class Reassembly {
  public:
    using Outcome = netio::Reassembly::Outcome;

    // `largest_bytes`: the largest message, and so the limit of the memory.
    explicit Reassembly(std::size_t largest_bytes) noexcept : bytes_{largest_bytes} {}

    Outcome take(const FragmentExtension& fragment, std::span<const std::byte> bytes);

    // Discards an incomplete message.
    void abandon() noexcept { bytes_.abandon(); }
    bool in_progress() const noexcept { return bytes_.in_progress(); }
    std::span<const std::byte> message() const noexcept { return bytes_.message(); }
    template <typename Lend>
    std::optional<KeptBytes> keep(std::span<const std::byte> part, Lend lend) {
        return bytes_.keep(part, lend);
    }
    void end_of_message() noexcept { bytes_.end_of_message(); }

  private:
    netio::Reassembly bytes_;
    FragmentExtension current_;
};

} // namespace netio::pubsub::inline v0_3
