// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/blocking_stream.hpp"

#include "netio/base/option_check.hpp"
#include "stream/socket/blocking_connection.hpp"

#include <stdexcept>
#include <utility>

namespace netio::stream::inline v0_2 {
namespace {

std::chrono::milliseconds checked(const char* name, std::chrono::milliseconds time) {
    require_option(time.count() >= 0, std::string{name} + " is " + std::to_string(time.count()) +
                                          " ms; it must be 0 (no limit) or more");
    return time;
}

} // namespace

void validate(const BlockingStream::Options& options) {
    validate(options.stream);
    checked("call_timeout", options.call_timeout);
    checked("progress_timeout", options.progress_timeout);
    checked("farewell_timeout", options.farewell_timeout);
}

BlockingStream::BlockingStream(std::unique_ptr<BlockingConnection> connection)
    : connection_{std::move(connection)} {}
BlockingStream::~BlockingStream() = default;
BlockingStream::BlockingStream(BlockingStream&&) noexcept = default;
BlockingStream& BlockingStream::operator=(BlockingStream&&) noexcept = default;

BlockingConnection& BlockingStream::connection() const {
    if (!connection_) throw std::logic_error{"this BlockingStream was moved from"};
    return *connection_;
}

BlockingStream BlockingStream::connect(std::string_view address, const Options& options) {
    validate(options);
    return BlockingStream{std::make_unique<BlockingConnection>(
        std::make_shared<BlockingEngine>(options.provider), address, options)};
}

BlockingStream BlockingStream::connect(std::string_view address) {
    return connect(address, Options{});
}

std::size_t BlockingStream::read(std::span<std::byte> memory) {
    return connection().read(memory);
}

void BlockingStream::read_exactly(std::span<std::byte> memory) {
    connection().read_exactly(memory);
}

void BlockingStream::write(std::span<const std::byte> memory) {
    connection().write(memory);
}

bool BlockingStream::has_capacity() const noexcept {
    return connection_ && connection_->has_capacity();
}

BlockingStream::Ready BlockingStream::wait_for(int descriptor) {
    return connection().wait_for(descriptor);
}

void BlockingStream::shutdown_send() {
    connection().shutdown_send();
}

void BlockingStream::close() {
    connection().close();
}

void BlockingStream::set_call_timeout(std::chrono::milliseconds timeout) {
    connection().limits.call = checked("call_timeout", timeout);
}

void BlockingStream::set_progress_timeout(std::chrono::milliseconds timeout) {
    connection().limits.progress = checked("progress_timeout", timeout);
}

std::string BlockingStream::peer_address() const {
    return connection().peer_address();
}

StreamSocket::Counters BlockingStream::counters() const {
    return connection().counters();
}

} // namespace netio::stream::inline v0_2
