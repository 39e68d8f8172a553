// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/flow.hpp"

#include "apps/pump/byte_pattern.hpp"

#include <algorithm>
#include <numeric>

namespace apps::pump {
namespace {

// Filled in one turn of the loop, which others share; but a message at least.
constexpr std::size_t fill_step_bytes = std::size_t{1} << 20U;

std::vector<std::uint64_t> all_pieces(std::size_t count) {
    std::vector<std::uint64_t> pieces(count);
    std::iota(pieces.rbegin(), pieces.rend(), std::uint64_t{0});
    return pieces;
}

} // namespace

Source::Source(netio::stream::StreamSocket& socket, const Plan& plan)
    : socket_{socket}, plan_{plan}, sizes_{UniformSize{plan.size_min, plan.size_max}, plan.seed},
      memory_{plan.outstanding * plan.size_max, netio::Access::send}, free_{all_pieces(
                                                                          plan.outstanding)} {}

bool Source::drive() {
    std::size_t filled_bytes = 0;
    while (!free_.empty() && submitted_ < plan_.bytes) {
        if (filled_bytes >= fill_step_bytes) return false;
        const std::uint64_t piece = free_.back();
        const std::uint64_t size = std::min<std::uint64_t>(sizes_.next(), plan_.bytes - submitted_);
        const netio::Slice slice =
            memory_.slice(piece * plan_.size_max, static_cast<std::size_t>(size));
        if (plan_.verify) {
            fill_stream({slice.data, slice.size}, plan_.seed, submitted_);
            filled_bytes += slice.size;
        }
        // Anything else: the connection has ended, and on_closed says why.
        if (socket_.send(slice, netio::Cookie{piece}) != netio::Status::ok) return true;
        free_.pop_back();
        submitted_ += size;
    }
    return true;
}

void Source::on_send_completed(netio::Cookie key) {
    free_.push_back(static_cast<std::uint64_t>(key));
}

Sink::Sink(netio::stream::StreamSocket& socket, const Plan& plan)
    : socket_{socket}, plan_{plan}, sizes_{UniformSize{plan.size_min, plan.size_max}, plan.seed},
      memory_{plan.outstanding * plan.size_max, netio::Access::remote_write},
      free_{all_pieces(plan.outstanding)}, asked_(plan.outstanding) {}

// Never asks for more than is still to come, for what follows belongs to somebody else. Asks for a
// quarter of its memory at a time: what is asked for together is announced in one control message.
void Sink::drive() {
    const std::size_t batch = std::max<std::size_t>(1, plan_.outstanding / 4);
    if (asked_bytes_ > 0 && free_.size() < batch) return;
    while (!free_.empty() && received_ + asked_bytes_ < plan_.bytes) {
        const std::uint64_t piece = free_.back();
        const std::uint64_t size =
            std::min<std::uint64_t>(sizes_.next(), plan_.bytes - received_ - asked_bytes_);
        const netio::Slice slice =
            memory_.slice(piece * plan_.size_max, static_cast<std::size_t>(size));
        if (socket_.receive(slice, netio::Cookie{piece}, plan_.fill) != netio::Status::ok) return;
        free_.pop_back();
        asked_[piece] = size;
        asked_bytes_ += size;
    }
}

void Sink::on_received(const netio::stream::Received& received) {
    const auto piece = static_cast<std::uint64_t>(received.cookie);
    const std::byte* const data = memory_.data() + piece * plan_.size_max;
    if (plan_.verify && !wrong_at_) {
        const auto wrong = find_wrong_byte({data, static_cast<std::size_t>(received.bytes)},
                                           plan_.seed, received_);
        if (wrong) wrong_at_ = received_ + *wrong;
    }
    received_ += received.bytes;
    asked_bytes_ -= asked_[piece];
    free_.push_back(piece);
}

} // namespace apps::pump
