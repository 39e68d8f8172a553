// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/answer_check.hpp"

#include <algorithm>
#include <cerrno>

namespace netio::fabric {
namespace {

// The header of a connection message: version, type, and the size of its data, most significant
// byte first. Run with libfabric 1.17; the source of 2.5 has the same.
constexpr auto protocol_version = std::byte{3};
constexpr auto accept_type = std::byte{1};

std::size_t data_bytes(std::span<const std::byte> header) noexcept {
    return std::to_integer<std::size_t>(header[2]) << 8U | std::to_integer<std::size_t>(header[3]);
}

} // namespace

AnswerCheck::AnswerCheck(const KernelSocket& socket) noexcept : socket_{socket} {
    static_cast<void>(socket_.report_from(tcp_message_header_bytes));
}

AnswerCheck::Next AnswerCheck::look() noexcept {
    if (state_ == State::open || state_ == State::passed) return Next::read;
    if (state_ == State::judging) return Next::judge;
    // Once the request has left, the next read of the provider takes the answer.
    if (state_ == State::asking && !socket_.has_sent()) return Next::read;
    state_ = State::waiting;
    return look_at_answer();
}

AnswerCheck::Next AnswerCheck::look_at_answer() noexcept {
    const long count = socket_.peek(bytes_);
    if (count == -EAGAIN || count == -EINTR) return Next::wait;
    const auto there = static_cast<std::size_t>(std::max(count, 0L));
    std::size_t needed = tcp_message_header_bytes;
    if (there >= needed) needed += std::min(data_bytes(bytes_), tcp_message_data_bytes);
    if (there < needed) {
        const bool is_over = count <= 0 || socket_.is_at_end();
        if (!is_over) static_cast<void>(socket_.report_from(needed));
        error_ = static_cast<int>(count < 0 ? -count : 0);
        return is_over ? Next::ended : Next::wait;
    }
    // Of anything else the provider makes an error, or a rejection, and reads no further.
    if (bytes_[0] != protocol_version || bytes_[1] != accept_type) {
        let_read(State::passed);
        return Next::read;
    }
    size_ = needed;
    state_ = State::judging;
    return Next::judge;
}

std::span<const std::byte> AnswerCheck::answer() const noexcept {
    return std::span{bytes_}.first(size_).subspan(tcp_message_header_bytes);
}

void AnswerCheck::let_read(State state) noexcept {
    state_ = state;
    static_cast<void>(socket_.report_all());
}

} // namespace netio::fabric
