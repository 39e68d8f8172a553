// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/wire.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>

namespace netio::pubsub::inline v0_3 {
namespace {

using wire::load;
using wire::store;

} // namespace

std::size_t encode(const MessageExtension& extension, std::span<std::byte> out) {
    NETIO_CHECK(out.size() >= message_extension_bytes);
    store(out.data(), extension.fid);
    store(out.data() + 8, std::uint64_t{extension.status});
    return message_extension_bytes;
}

std::optional<MessageExtension> decode_message(std::span<const std::byte> body) {
    if (body.size() < message_extension_bytes) return std::nullopt;
    const auto status = load<std::uint64_t>(body.data() + 8);
    if (status > UINT8_MAX) return std::nullopt; // seven reserved bytes
    return MessageExtension{.fid = load<Fid>(body.data()),
                            .status = static_cast<std::uint8_t>(status)};
}

std::size_t encode(const FragmentExtension& extension, std::span<std::byte> out) {
    NETIO_CHECK(out.size() >= fragment_extension_bytes);
    store(out.data(), extension.fid);
    store(out.data() + 8, extension.message_number);
    store(out.data() + 12, extension.offset);
    store(out.data() + 16, extension.total);
    store(out.data() + 20, std::uint32_t{extension.status});
    return fragment_extension_bytes;
}

std::optional<FragmentExtension> decode_fragment(std::span<const std::byte> body) {
    if (body.size() < fragment_extension_bytes) return std::nullopt;
    const auto status = load<std::uint32_t>(body.data() + 20);
    const FragmentExtension extension{.fid = load<Fid>(body.data()),
                                      .message_number = load<std::uint32_t>(body.data() + 8),
                                      .offset = load<std::uint32_t>(body.data() + 12),
                                      .total = load<std::uint32_t>(body.data() + 16),
                                      .status = static_cast<std::uint8_t>(status)};
    if (status > UINT8_MAX) return std::nullopt; // three reserved bytes
    return extension;
}

std::size_t encode_request(std::uint32_t request, std::span<const FidRange> ranges,
                           std::span<std::byte> out, std::optional<SlowPolicy> policy,
                           HistoryWish history) {
    const std::size_t bytes = request_bytes(ranges.size(), history);
    NETIO_CHECK(out.size() >= bytes);
    const std::uint64_t asked = policy ? static_cast<std::uint64_t>(*policy) + 1 : 0;
    const std::uint64_t option_bytes = history ? history_option_bytes : 0;
    store(out.data(), std::uint64_t{request} | asked << 32 | option_bytes << 48);
    std::byte* at = out.data() + request_header_bytes;
    if (history) {
        store(at, history_option);
        store(at + 2, std::uint16_t{8}); // the bytes of its value
        store(at + wire_options::header_bytes, *history);
        at += history_option_bytes;
    }
    for (const FidRange& range : ranges) {
        store(at, range.first);
        store(at + 8, range.last);
        at += range_bytes;
    }
    return bytes;
}

std::optional<SubscriptionRequest> decode_request(std::span<const std::byte> body) {
    if (body.size() < request_header_bytes || body[5] != std::byte{0}) return std::nullopt;
    const std::size_t option_bytes = load<std::uint16_t>(body.data() + 6);
    if (body.size() < request_header_bytes + option_bytes + range_bytes ||
        (body.size() - request_header_bytes - option_bytes) % range_bytes != 0) {
        return std::nullopt;
    }
    SubscriptionRequest request{.request = load<std::uint32_t>(body.data())};
    const auto outcome =
        wire_options::visit(body.subspan(request_header_bytes, option_bytes),
                            [&](std::uint16_t type, std::span<const std::byte> value) {
                                if (type != history_option) return wire_options::Use::unknown;
                                if (value.size() != 8) return wire_options::Use::malformed;
                                request.history = load<std::uint64_t>(value.data());
                                return wire_options::Use::taken;
                            });
    if (!outcome.is_valid) return std::nullopt;
    request.unknown_option = outcome.refused;
    const auto asked = std::to_integer<std::uint8_t>(body[4]);
    if (asked > static_cast<std::uint8_t>(SlowPolicy::newest) + 1) return std::nullopt;
    if (asked > 0) request.policy = static_cast<SlowPolicy>(asked - 1);
    for (auto list = body.subspan(request_header_bytes + option_bytes); !list.empty();
         list = list.subspan(range_bytes)) {
        const FidRange range{.first = load<Fid>(list.data()), .last = load<Fid>(list.data() + 8)};
        if (range.last < range.first) return std::nullopt;
        request.ranges.push_back(range);
    }
    return request;
}

std::size_t encode(const SubscriptionAnswer& answer, std::span<std::byte> out) {
    NETIO_CHECK(out.size() >= answer_bytes);
    store(out.data(), answer.request);
    store(out.data() + 4, answer.result);
    std::byte* at = out.data() + answer_bytes;
    if (answer.stamps.clock != StampClock::none) {
        NETIO_CHECK(out.size() >= answer_bytes + 8);
        store(at, time_stamps_option);
        store(at + 2, std::uint16_t{4}); // the bytes of its value
        store(at + 4, answer.stamps.clock);
        at[5] = std::byte{0};
        store(at + 6, answer.stamps.utc_offset_s);
        at += 8;
    }
    if (answer.keeps_history) {
        NETIO_CHECK(out.data() + out.size() >= at + wire_options::header_bytes);
        store(at, keeps_history_option);
        store(at + 2, std::uint16_t{0}); // no value
        at += wire_options::header_bytes;
    }
    return static_cast<std::size_t>(at - out.data());
}

std::optional<SubscriptionAnswer> decode_answer(std::span<const std::byte> body) {
    if (body.size() < answer_bytes) return std::nullopt;
    SubscriptionAnswer answer{.request = load<std::uint32_t>(body.data()),
                              .result = load<SubscriptionResult>(body.data() + 4)};
    if (answer.result > SubscriptionResult::unknown_option) return std::nullopt;
    const auto take = [&](std::uint16_t type, std::span<const std::byte> value) {
        if (type == keeps_history_option) {
            answer.keeps_history = true;
            return value.empty() ? wire_options::Use::taken : wire_options::Use::malformed;
        }
        if (type != time_stamps_option) return wire_options::Use::unknown;
        if (value.size() != 4 || value[1] != std::byte{0}) return wire_options::Use::malformed;
        answer.stamps = {.clock = load<StampClock>(value.data()),
                         .utc_offset_s = load<std::int16_t>(value.data() + 2)};
        const bool is_known =
            answer.stamps.clock == StampClock::tai || answer.stamps.clock == StampClock::own;
        return is_known ? wire_options::Use::taken : wire_options::Use::malformed;
    };
    const auto outcome = wire_options::visit(body.subspan(answer_bytes), take);
    if (!outcome.is_valid || outcome.refused != 0) return std::nullopt;
    return answer;
}

std::size_t encode(const PositionsExtension& extension, std::span<std::byte> out) {
    NETIO_CHECK(out.size() >= positions_extension_bytes);
    store(out.data(), extension.instance);
    store(out.data() + 8, std::uint64_t{extension.request});
    return positions_extension_bytes;
}

std::optional<PositionsExtension> decode_positions(std::span<const std::byte> body) {
    if (body.size() < positions_extension_bytes) return std::nullopt;
    const auto request = load<std::uint64_t>(body.data() + 8);
    if (request > UINT32_MAX) return std::nullopt; // four reserved bytes
    return PositionsExtension{.instance = load<std::uint64_t>(body.data()),
                              .request = static_cast<std::uint32_t>(request)};
}

std::size_t encode(const FidsQuestion& question, std::span<std::byte> out) {
    NETIO_CHECK(out.size() >= fids_question_bytes);
    store(out.data(), question.from);
    store(out.data() + 8, question.limit);
    store(out.data() + 12, question.number);
    return fids_question_bytes;
}

std::optional<FidsQuestion> decode_fids_question(std::span<const std::byte> body) {
    if (body.size() != fids_question_bytes) return std::nullopt;
    const FidsQuestion question{.from = load<Fid>(body.data()),
                                .limit = load<std::uint32_t>(body.data() + 8),
                                .number = load<std::uint32_t>(body.data() + 12)};
    if (question.limit == 0 || question.limit > fids_answer_limit) return std::nullopt;
    return question;
}

std::size_t encode_fids_answer(std::uint32_t number, std::span<std::byte> out) {
    NETIO_CHECK(out.size() >= fids_answer_extension_bytes);
    store(out.data(), std::uint64_t{number}); // four reserved bytes
    return fids_answer_extension_bytes;
}

std::optional<FidsAnswer> decode_fids_answer(std::span<const std::byte> body) {
    if (body.size() < fids_answer_extension_bytes ||
        (body.size() - fids_answer_extension_bytes) % range_bytes != 0)
        return std::nullopt;
    const auto number = load<std::uint64_t>(body.data());
    if (number > UINT32_MAX) return std::nullopt;
    FidsAnswer answer{.number = static_cast<std::uint32_t>(number), .ranges = {}};
    for (body = body.subspan(fids_answer_extension_bytes); !body.empty();
         body = body.subspan(range_bytes)) {
        const FidRange range{.first = load<Fid>(body.data()), .last = load<Fid>(body.data() + 8)};
        const bool ascends = answer.ranges.empty() || answer.ranges.back().last < range.first;
        if (range.last < range.first || !ascends) return std::nullopt;
        answer.ranges.push_back(range);
    }
    return answer;
}

std::size_t encode(std::span<const FidCount> counts, std::span<std::byte> out) {
    NETIO_CHECK(out.size() >= counts.size() * fid_count_bytes);
    std::byte* at = out.data();
    for (const FidCount& count : counts) {
        store(at, count.fid);
        store(at + 8, count.count);
        at += fid_count_bytes;
    }
    return counts.size() * fid_count_bytes;
}

std::optional<std::vector<FidCount>> decode_counts(std::span<const std::byte> body) {
    if (body.size() % fid_count_bytes != 0) return std::nullopt;
    std::vector<FidCount> counts;
    counts.reserve(body.size() / fid_count_bytes);
    for (; !body.empty(); body = body.subspan(fid_count_bytes)) {
        counts.push_back(
            {.fid = load<Fid>(body.data()), .count = load<std::uint64_t>(body.data() + 8)});
    }
    return counts;
}

Reassembly::Outcome Reassembly::take(const FragmentExtension& fragment,
                                     std::span<const std::byte> bytes) {
    const bool first = !bytes_.in_progress();
    const bool same = first || (fragment.fid == current_.fid &&
                                fragment.message_number == current_.message_number &&
                                fragment.status == current_.status);
    if (!same) return Outcome::out_of_order;
    if (first) current_ = fragment;
    return bytes_.take({.offset = fragment.offset, .total = fragment.total}, bytes);
}

} // namespace netio::pubsub::inline v0_3
