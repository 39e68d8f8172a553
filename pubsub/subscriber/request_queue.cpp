// SPDX-License-Identifier: Apache-2.0
#include "pubsub/subscriber/request_queue.hpp"

#include <algorithm>
#include <array>

namespace netio::pubsub::inline v0_2 {
namespace {

constexpr std::uint32_t place_count = 4;
constexpr std::size_t place_bytes = 4096; // what publishers' receive buffers hold, or less

std::size_t request_bytes(const SubscriptionBook::Request& request) {
    return request_header_bytes + request.ranges.size() * range_bytes;
}

} // namespace

void RequestQueue::begin(Session& session) {
    const std::size_t bytes = std::min(session.body_limit(), place_bytes);
    book_.begin((bytes - request_header_bytes) / range_bytes);
    send(session);
}

void RequestQueue::end() {
    book_.end();
    totals_answer_due_ = false;
    free_places_.clear();
    if (!memory_) return;
    for (std::uint32_t i = 0; i < place_count; ++i)
        free_places_.push_back(i);
}

void RequestQueue::answer_totals(Session& session) {
    totals_answer_due_ = true;
    send(session);
}

void RequestQueue::send(Session& session) {
    while (const SubscriptionBook::Request* const request = book_.next()) {
        if (!send_request(session, *request)) return;
        book_.sent();
    }
    if (!totals_answer_due_) return;
    const Status status = session.send(
        {.kind = totals_answer_kind, .flags = 0, .extension = {}, .slices = {}}, std::nullopt);
    totals_answer_due_ = status != Status::ok;
}

// False: not now; on_sent, on_writable or the end of the connection follows.
bool RequestQueue::send_request(Session& session, const SubscriptionBook::Request& request) {
    const std::size_t bytes = request_bytes(request);
    const bool positions = positions_ && request.subscribe;
    OutgoingFrame frame{.kind = request.subscribe ? subscribe_kind : unsubscribe_kind,
                        .flags = positions ? positions_flag : std::uint8_t{0},
                        .extension = {},
                        .slices = {}};
    if (bytes <= frame_extension_limit) {
        std::array<std::byte, frame_extension_limit> body;
        encode_request(request.number, request.ranges, body, request.policy);
        frame.extension = std::span{body}.first(bytes);
        return session.send(frame, std::nullopt) == Status::ok;
    }
    if (!memory_) {
        memory_ = std::make_unique<RegisteredBuffer>(place_count * place_bytes, Access::send);
        for (std::uint32_t i = 0; i < place_count; ++i)
            free_places_.push_back(i);
    }
    if (free_places_.empty()) return false;
    const std::uint32_t place = free_places_.back();
    const Slice slice = memory_->slice(place * place_bytes, bytes);
    encode_request(request.number, request.ranges, {slice.data, slice.size}, request.policy);
    frame.slices = {&slice, 1};
    if (session.send(frame, Cookie{place}) != Status::ok) return false;
    free_places_.pop_back();
    return true;
}

} // namespace netio::pubsub::inline v0_2
