// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/blocking_stream.hpp"

#include "stream/socket/blocking_connection.hpp"

#include <utility>

namespace netio::stream::inline v0_2 {

BlockingStream::BlockingStream(std::unique_ptr<Connection> connection)
    : connection_{std::move(connection)} {}
BlockingStream::~BlockingStream() = default;
BlockingStream::BlockingStream(BlockingStream&&) noexcept = default;
BlockingStream& BlockingStream::operator=(BlockingStream&&) noexcept = default;

BlockingStream BlockingStream::connect(std::string_view address, const Options& options) {
    return BlockingStream{std::make_unique<Connection>(address, options)};
}

BlockingStream BlockingStream::connect(std::string_view address) {
    return connect(address, Options{});
}

std::size_t BlockingStream::read(std::span<std::byte> memory) {
    return connection_->read(memory);
}

void BlockingStream::read_exactly(std::span<std::byte> memory) {
    const std::size_t bytes = connection_->read_all(memory);
    if (bytes == memory.size()) return;
    throw StreamError{StreamError::Kind::ended, "the stream ended after " + std::to_string(bytes) +
                                                    " of " + std::to_string(memory.size()) +
                                                    " bytes"};
}

void BlockingStream::write(std::span<const std::byte> memory) {
    connection_->write(memory);
}

bool BlockingStream::has_capacity() const noexcept {
    return connection_->has_capacity();
}

BlockingStream::Ready BlockingStream::wait_for(int descriptor) {
    return connection_->wait_for(descriptor);
}

void BlockingStream::shutdown_send() {
    connection_->shutdown_send();
}

void BlockingStream::close() {
    connection_->close();
}

void BlockingStream::set_call_timeout(std::chrono::milliseconds timeout) noexcept {
    connection_->limits.call = timeout;
}

void BlockingStream::set_progress_timeout(std::chrono::milliseconds timeout) noexcept {
    connection_->limits.progress = timeout;
}

std::string BlockingStream::peer_address() const {
    return connection_->peer_address();
}

StreamSocket::Counters BlockingStream::counters() const {
    return connection_->counters();
}

} // namespace netio::stream::inline v0_2
