// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include "netio/loop/check_caller.hpp"
#include "pubsub/publisher/buffered_publisher.hpp"

namespace netio::pubsub::inline v0_2 {

BufferedPublishSocket::BufferedPublishSocket(Transport& transport, const Options& options,
                                             Handler& handler)
    : publisher_{std::make_unique<BufferedPublisher>(transport, options, handler, *this,
                                                     counters_)},
      fids_{&publisher_->sessions().fan_out().fids()}, message_limit_{publisher_->message_limit()} {
}

BufferedPublishSocket::~BufferedPublishSocket() {
    check_destructor(publisher_->loop(), "BufferedPublishSocket", publisher_);
}

Status BufferedPublishSocket::publishv(Fid fid, std::span<const std::span<const std::byte>> parts,
                                       std::uint8_t status) {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    return publisher_->publish(fid, parts, status);
}

void BufferedPublishSocket::flush() {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->flush();
}

void BufferedPublishSocket::flush(Fid fid) {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->flush(fid);
}

void BufferedPublishSocket::close() {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->close();
}

void BufferedPublishSocket::abort() {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->abort();
}

std::vector<Endpoint> BufferedPublishSocket::endpoints() const {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    return publisher_->sessions().listener().endpoints();
}

const Publisher::Counters& BufferedPublishSocket::counters() noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    publisher_->sessions().count(counters_);
    return counters_;
}

PublisherSnapshot BufferedPublishSocket::snapshot(const SnapshotLimits& limits) {
    NETIO_CHECK_CALLER(publisher_->loop(), "BufferedPublishSocket");
    return publisher_->take_snapshot(limits);
}

void BufferedPublishSocket::check_caller(const char* type, const char* call) const noexcept {
    publisher_->loop().check_caller(type, call);
}

} // namespace netio::pubsub::inline v0_2
