// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/channel.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace apps::copy {

using netio::Cookie;
using netio::Status;
using netio::stream::Received;
using netio::stream::StreamSocket;
using Outcome = netio::Completion::Outcome;

namespace {

// The cookie of a buffer is its number. The following cookies are for received preludes and bodies,
// and for the slots of messages.
constexpr std::uint64_t first_own_cookie = std::uint64_t{1} << 32;
constexpr Cookie prelude_cookie{first_own_cookie};
constexpr Cookie body_cookie{first_own_cookie + 1};
constexpr std::uint64_t first_message_cookie = first_own_cookie + 2;

bool is_buffer(Cookie cookie) noexcept {
    return static_cast<std::uint64_t>(cookie) < first_own_cookie;
}

constexpr std::size_t message_count = 6; // limit of messages in flight
constexpr std::size_t message_bytes = prelude_bytes + body_limit_bytes;

// Options for both sides of a copy. The ring does not grow: the buffers cover long round trips, and
// the memory of a connection is known beforehand. A chunk is sent in several transfers, so that the
// receiver sees progress on a slow path.
StreamSocket::Options stream_options(netio::stream::RemoteWrites remote_writes,
                                     const std::string& local_host = {}) {
    constexpr std::uint64_t ring_bytes = std::uint64_t{1} << 20;
    StreamSocket::Options options{.receiver = netio::stream::improved_receiver(ring_bytes),
                                  .remote_writes = remote_writes,
                                  .local_host = local_host};
    options.sender.longest_transfer_bytes = 128 * 1024;
    return options;
}

} // namespace

// --- the connection -------------------------------------------------------------------------

void Channel::connect(netio::Transport& transport, const netio::Address& server,
                      const std::string& local_host, std::shared_ptr<const netio::ClientKey> key) {
    if (!socket_) {
        StreamSocket::Options options = stream_options(remote_writes_, local_host);
        options.key = std::move(key);
        socket_ = std::make_unique<StreamSocket>(transport, std::move(options),
                                                 static_cast<StreamSocket::Handler&>(*this));
    }
    socket_->connect(server);
}

void Channel::accept(netio::stream::IncomingStream& incoming) {
    socket_ = incoming.accept(stream_options(remote_writes_), *this);
}

std::uint64_t Channel::arrived_bytes() const {
    const netio::stream::ReceiverCounters received = socket_->counters().received;
    return received.direct_bytes + received.indirect_bytes;
}

void Channel::make_memory() {
    using netio::RegisteredBuffer;
    if (!chunks_) {
        chunks_ = std::make_unique<RegisteredBuffer>(buffer_count_ * stride_bytes,
                                                     netio::Access::remote_write);
        messages_ = std::make_unique<RegisteredBuffer>((message_count + 1) * message_bytes,
                                                       netio::Access::remote_write);
    }
    free_buffers_.clear();
    for (std::size_t i = buffer_count_; i > 0; --i)
        free_buffers_.push_back(static_cast<Buffer>(i - 1));
    free_messages_.clear();
    for (std::uint32_t i = 0; i < message_count; ++i)
        free_messages_.push_back(i);
}

void Channel::on_connected(StreamSocket&) {
    try {
        make_memory();
        expect();
    } catch (const std::exception& error) { // out of memory, or of lockable memory
        return handler_.on_no_memory(error.what());
    }
    handler_.on_open();
}

void Channel::on_end_of_stream(StreamSocket&) {
    handler_.on_end();
}

void Channel::on_closed(StreamSocket&, const netio::Closed& closed) {
    if (no_memory_.empty()) return handler_.on_closed(closed);
    handler_.on_closed(
        {.reason = netio::CloseReason::failed, .detail = std::exchange(no_memory_, {})});
}

// --- chunks ---------------------------------------------------------------------------------

Channel::Buffer Channel::take_buffer() {
    NETIO_CHECK(!free_buffers_.empty());
    const Buffer buffer = free_buffers_.back();
    free_buffers_.pop_back();
    return buffer;
}

std::span<std::byte> Channel::bytes(Buffer buffer, std::size_t size) const {
    return chunks_->memory().subspan(offset(buffer) + chunk_header_bytes, size);
}

std::span<std::byte, chunk_header_bytes> Channel::header(Buffer buffer) const {
    return chunks_->memory().subspan(offset(buffer)).first<chunk_header_bytes>();
}

void Channel::send(Buffer buffer, std::size_t size) {
    const netio::Slice slice = chunks_->slice(offset(buffer), chunk_header_bytes + size);
    static_cast<void>(socket_->send(slice, Cookie{buffer}));
}

void Channel::receive(Buffer buffer, std::size_t size) {
    const netio::Slice slice = chunks_->slice(offset(buffer), chunk_header_bytes + size);
    static_cast<void>(socket_->receive(slice, Cookie{buffer}, netio::stream::Fill::all));
}

// --- messages -------------------------------------------------------------------------------

template <class Post>
Status Channel::post(Post post) {
    try {
        return post();
    } catch (const netio::FabricError& error) {
        no_memory_ = error.what();
        socket_->abort();
        return Status::ok; // on_closed follows
    }
}

bool Channel::send(const Message& message) {
    if (free_messages_.empty()) return false;
    const std::uint32_t place = free_messages_.back();
    const netio::Slice slice = messages_->slice(place * message_bytes, message.size());
    std::ranges::copy(message, slice.data);
    const Cookie cookie{first_message_cookie + place};
    if (post([&] { return socket_->send(slice, cookie); }) != Status::ok) return false;
    free_messages_.pop_back();
    return true;
}

bool Channel::has_sent_all_messages() const noexcept {
    return free_messages_.size() == message_count;
}

void Channel::expect() {
    const netio::Slice slice = messages_->slice(message_count * message_bytes, prelude_bytes);
    // If the connection has ended, on_closed follows.
    const Status status =
        post([&] { return socket_->receive(slice, prelude_cookie, netio::stream::Fill::all); });
    NETIO_CHECK(status != Status::again);
}

std::span<const std::byte> Channel::body() const {
    return messages_->memory().subspan(message_count * message_bytes + prelude_bytes,
                                       prelude_.body_bytes);
}

void Channel::on_send_completed(StreamSocket&, Cookie cookie, Outcome outcome) {
    const auto number = static_cast<std::uint64_t>(cookie);
    if (!is_buffer(cookie)) {
        free_messages_.push_back(static_cast<std::uint32_t>(number - first_message_cookie));
        if (outcome == Outcome::done) handler_.on_message_sent();
        return;
    }
    free_buffer(static_cast<Buffer>(number));
    if (outcome == Outcome::done) handler_.on_sent(static_cast<Buffer>(number));
}

void Channel::on_received(StreamSocket&, const Received& received) {
    if (received.outcome != Outcome::done) return; // on_closed follows
    if (is_buffer(received.cookie)) {
        return handler_.on_chunk(static_cast<Buffer>(received.cookie), received.bytes);
    }
    const bool is_prelude = received.cookie == prelude_cookie;
    if (is_prelude && received.bytes == 0) return; // on_end_of_stream follows
    if (received.bytes < (is_prelude ? prelude_bytes : prelude_.body_bytes)) {
        return handler_.on_flaw(to_string(Flaw::bad_length));
    }
    is_prelude ? take_prelude() : handler_.on_message();
}

void Channel::take_prelude() {
    const auto bytes = messages_->memory().subspan(message_count * message_bytes, prelude_bytes);
    const Flaw flaw = decode(bytes, prelude_);
    if (flaw != Flaw::none) return handler_.on_flaw(to_string(flaw));
    const netio::Slice slice =
        messages_->slice(message_count * message_bytes + prelude_bytes, prelude_.body_bytes);
    const Status status =
        post([&] { return socket_->receive(slice, body_cookie, netio::stream::Fill::all); });
    NETIO_CHECK(status != Status::again);
}

} // namespace apps::copy
