// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/copy_channel.hpp"

#include "netio/base/check.hpp"

#include <algorithm>

namespace apps {

using netio::Status;

netio::stream::StreamSocket::Options copy_stream_options(const std::string& local_host) {
    constexpr std::uint64_t ring_bytes = std::uint64_t{1} << 20;
    return {.receiver = netio::stream::improved_receiver(ring_bytes), .local_host = local_host};
}

CopyChannel::CopyChannel(std::size_t buffer_count)
    : buffer_count_{buffer_count}, chunks_{buffer_count * stride_bytes,
                                           netio::Access::remote_write},
      messages_{(message_count + 1) * message_bytes, netio::Access::remote_write} {
    reset();
}

void CopyChannel::reset() {
    free_buffers_.clear();
    for (std::size_t i = buffer_count_; i > 0; --i)
        free_buffers_.push_back(static_cast<Buffer>(i - 1));
    free_messages_.clear();
    for (std::uint32_t i = 0; i < message_count; ++i)
        free_messages_.push_back(i);
}

CopyChannel::Buffer CopyChannel::take_buffer() {
    NETIO_CHECK(!free_buffers_.empty());
    const Buffer buffer = free_buffers_.back();
    free_buffers_.pop_back();
    return buffer;
}

std::span<std::byte> CopyChannel::bytes(Buffer buffer, std::size_t size) const {
    return chunks_.memory().subspan(offset(buffer) + copy_chunk_header_bytes, size);
}

std::span<std::byte, copy_chunk_header_bytes> CopyChannel::header(Buffer buffer) const {
    return chunks_.memory().subspan(offset(buffer)).first<copy_chunk_header_bytes>();
}

netio::Slice CopyChannel::slice(Buffer buffer, std::size_t size) {
    return chunks_.slice(offset(buffer), copy_chunk_header_bytes + size);
}

bool CopyChannel::send(netio::stream::StreamSocket& socket, const CopyMessage& message) {
    if (free_messages_.empty()) return false;
    const std::uint32_t place = free_messages_.back();
    const netio::Slice slice = messages_.slice(place * message_bytes, message.size());
    std::ranges::copy(message, slice.data);
    if (socket.send(slice, netio::Cookie{first_message_cookie + place}) != Status::ok) return false;
    free_messages_.pop_back();
    return true;
}

void CopyChannel::on_sent(netio::Cookie cookie) {
    free_messages_.push_back(
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(cookie) - first_message_cookie));
}

void CopyChannel::expect(netio::stream::StreamSocket& socket) {
    const netio::Slice slice = messages_.slice(message_count * message_bytes, copy_prelude_bytes);
    // A connection that has ended says so by on_closed.
    const Status status = socket.receive(slice, prelude_cookie, netio::stream::Fill::all);
    NETIO_CHECK(status != Status::again);
}

std::span<const std::byte> CopyChannel::body() const {
    return messages_.memory().subspan(message_count * message_bytes + copy_prelude_bytes,
                                      prelude_.body_bytes);
}

CopyChannel::Progress CopyChannel::on_received(netio::stream::StreamSocket& socket,
                                               const netio::stream::Received& got) {
    const bool is_prelude = got.cookie == prelude_cookie;
    const std::size_t wanted = is_prelude ? copy_prelude_bytes : prelude_.body_bytes;
    if (got.bytes < wanted) {
        if (is_prelude && got.bytes == 0) return Progress::ended;
        flaw_ = CopyFlaw::bad_length;
        return Progress::flawed;
    }
    if (!is_prelude) return Progress::message;
    const auto bytes =
        messages_.memory().subspan(message_count * message_bytes, copy_prelude_bytes);
    flaw_ = decode(bytes, prelude_);
    if (flaw_ != CopyFlaw::none) return Progress::flawed;
    const netio::Slice slice =
        messages_.slice(message_count * message_bytes + copy_prelude_bytes, prelude_.body_bytes);
    const Status status = socket.receive(slice, body_cookie, netio::stream::Fill::all);
    NETIO_CHECK(status != Status::again);
    return Progress::incomplete;
}

} // namespace apps
