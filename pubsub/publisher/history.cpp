// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/history.hpp"

#include "netio/base/check.hpp"
#include "netio/base/copy.hpp"
#include "netio/base/option_check.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace netio::pubsub::inline v0_3 {
namespace {

// In front of each message.
struct StoredHead {
    std::uint64_t bytes_and_status = 0; // status in the highest byte
    Fid fid{};
    std::uint64_t number = 0;
    TimePoint time{};
};
static_assert(sizeof(StoredHead) == HistoryLog::overhead_bytes);
constexpr unsigned status_shift = 56;

} // namespace

HistoryLog::HistoryLog(const Limits& limits)
    : limits_{limits}, memory_{std::make_unique_for_overwrite<std::byte[]>(limits.bytes)} {
    NETIO_CHECK(limits.bytes >= overhead_bytes);
}

HistoryLog::Message HistoryLog::at(Place place) const noexcept {
    NETIO_CHECK(begin_ <= place && place < end_);
    std::array<std::byte, sizeof(StoredHead)> bytes;
    read(place, bytes);
    StoredHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    Message message;
    message.fid = head.fid;
    message.status = static_cast<std::uint8_t>(head.bytes_and_status >> status_shift);
    message.number = head.number;
    message.time = head.time;
    message.bytes = head.bytes_and_status & ((std::uint64_t{1} << status_shift) - 1);
    message.next = place + bytes_for(message.bytes);
    const std::size_t from = offset(place + overhead_bytes);
    const std::size_t first = std::min(message.bytes, limits_.bytes - from);
    message.parts = {std::span{memory_.get() + from, first},
                     std::span{memory_.get(), message.bytes - first}};
    return message;
}

void HistoryLog::drop_front() {
    const Message front = at(begin_);
    first_[front.fid] = front.number + 1;
    begin_ = front.next;
    --messages_;
}

void HistoryLog::append(const Head& head, MessageParts parts) {
    const std::size_t size = size_of(parts);
    NETIO_CHECK(has_room(size));
    const StoredHead stored{.bytes_and_status = size | std::uint64_t{head.status} << status_shift,
                            .fid = head.fid,
                            .number = head.number,
                            .time = head.time};
    write(end_, std::as_bytes(std::span{&stored, 1}));
    Place at = end_ + overhead_bytes;
    for (const std::span<const std::byte> part : parts) {
        write(at, part);
        at += part.size();
    }
    end_ += bytes_for(size);
    ++messages_;
}

void HistoryLog::write(Place place, std::span<const std::byte> bytes) noexcept {
    if (bytes.empty()) return;
    const std::size_t from = offset(place);
    const std::size_t first = std::min(bytes.size(), limits_.bytes - from);
    copy_bytes(memory_.get() + from, bytes.first(first));
    copy_bytes(memory_.get(), bytes.subspan(first));
}

void HistoryLog::read(Place place, std::span<std::byte> out) const noexcept {
    const std::size_t from = offset(place);
    const std::size_t first = std::min(out.size(), limits_.bytes - from);
    copy_bytes(out.data(), {memory_.get() + from, first});
    copy_bytes(out.data() + first, {memory_.get(), out.size() - first});
}

namespace {

constexpr std::size_t least_bytes = 4096;
constexpr std::size_t bytes_with_time = std::size_t{64} * 1024 * 1024;

} // namespace

void History::check(std::size_t limit_bytes, std::chrono::milliseconds time) {
    require_option(limit_bytes == 0 || limit_bytes >= least_bytes,
                   "history_limit_bytes is " + std::to_string(limit_bytes) +
                       "; it must be 0 (no history) or at least " + std::to_string(least_bytes));
    require_option(time.count() >= 0 && time <= longest_time,
                   "history_time must be from 0 (no limit of time) to a year");
}

std::unique_ptr<History> History::make(std::size_t limit_bytes, std::chrono::milliseconds time) {
    if (limit_bytes == 0 && time.count() == 0) return nullptr;
    const std::size_t bytes = limit_bytes == 0 ? bytes_with_time : limit_bytes;
    return std::make_unique<History>(HistoryLog::Limits{.bytes = bytes, .time = time});
}

bool History::find(CatchUp& late, std::size_t& steps) const {
    for (; late.next < log_.end() && steps > 0; --steps) {
        const HistoryLog::Message message = log_.at(late.next);
        if (late.wants(message.fid)) return true;
        late.next = message.next;
    }
    return false;
}

void History::fill(CatchUp& late, PageWriter& page, std::size_t& steps) const {
    for (; late.next < log_.end() && steps > 0; --steps) {
        const HistoryLog::Message message = log_.at(late.next);
        if (late.wants(message.fid)) {
            std::byte* const out = page.append(message.fid, message.status, message.bytes);
            if (out == nullptr) return;
            copy_parts(message.parts, 0, {out, message.bytes});
        }
        late.next = message.next;
    }
}

void History::end(SubscriberId subscriber, std::span<const FidRange> fids) {
    std::size_t steps = 0;
    for (CatchUp& each : late_)
        if (each.subscriber == subscriber) each.fids = without(each.fids, fids, steps);
    std::erase_if(late_, [](const CatchUp& each) { return each.fids.empty(); });
}

} // namespace netio::pubsub::inline v0_3
