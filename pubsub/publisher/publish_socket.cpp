// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/publish_socket.hpp"

#include "netio/loop/check_caller.hpp"
#include "pubsub/publisher/lent_publisher.hpp"

namespace netio::pubsub::inline v0_2 {

PublishSocket::PublishSocket(Transport& transport, const Options& options, Handler& handler)
    : publisher_{std::make_unique<LentPublisher>(transport, options, handler, *this)} {}

PublishSocket::~PublishSocket() {
    check_destructor(publisher_->loop(), "PublishSocket", publisher_);
}

Status PublishSocket::publishv(Fid fid, std::span<const Slice> slices, Cookie cookie,
                               const Extras& extras) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->publish(fid, slices, cookie, extras);
}

PublishSocket::Attempt PublishSocket::try_publishv(Fid fid, std::span<const Slice> slices,
                                                   Cookie cookie, const Extras& extras) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->try_publish(fid, slices, cookie, extras);
}

Status PublishSocket::resume(PublishTicket& ticket) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->resume(ticket);
}

void PublishSocket::prepare(RegisteredBuffer& buffer) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    publisher_->listener().prepare(buffer);
}

void PublishSocket::close() {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    publisher_->close();
}

void PublishSocket::abort() {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    publisher_->abort();
}

std::vector<Endpoint> PublishSocket::endpoints() const {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->listener().endpoints();
}

const Publisher::Counters& PublishSocket::counters() noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->counters();
}

PublisherSnapshot PublishSocket::snapshot(const SnapshotLimits& limits) {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->take_snapshot(limits);
}

std::size_t PublishSocket::outstanding() const noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->outstanding();
}

std::size_t PublishSocket::segment_limit() const noexcept {
    NETIO_CHECK_CALLER(publisher_->loop(), "PublishSocket");
    return publisher_->segment_limit();
}

} // namespace netio::pubsub::inline v0_2
