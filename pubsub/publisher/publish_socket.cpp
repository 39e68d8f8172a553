// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/publish_socket.hpp"

#include "pubsub/publisher/lent_publisher.hpp"

namespace netio::pubsub::inline v0_2 {

PublishSocket::PublishSocket(Transport& transport, const Options& options, Handler& handler)
    : publisher_{std::make_unique<LentPublisher>(transport, options, handler, *this)} {}

PublishSocket::~PublishSocket() = default;

Status PublishSocket::publishv(Fid fid, std::span<const Slice> slices, Cookie cookie,
                               const Extras& extras) {
    return publisher_->publish(fid, slices, cookie, extras);
}

PublishSocket::Attempt PublishSocket::try_publishv(Fid fid, std::span<const Slice> slices,
                                                   Cookie cookie, const Extras& extras) {
    return publisher_->try_publish(fid, slices, cookie, extras);
}

Status PublishSocket::resume(PublishTicket& ticket) {
    return publisher_->resume(ticket);
}

void PublishSocket::prepare(RegisteredBuffer& buffer) {
    publisher_->prepare(buffer);
}

void PublishSocket::close() {
    publisher_->close();
}

void PublishSocket::abort() {
    publisher_->abort();
}

std::vector<Endpoint> PublishSocket::endpoints() const {
    return publisher_->endpoints();
}

const Publisher::Counters& PublishSocket::counters() noexcept {
    return publisher_->counters();
}

PublisherSnapshot PublishSocket::snapshot(const SnapshotLimits& limits) {
    return publisher_->take_snapshot(limits);
}

std::size_t PublishSocket::outstanding() const noexcept {
    return publisher_->outstanding();
}

std::size_t PublishSocket::segment_limit() const noexcept {
    return publisher_->segment_limit();
}

} // namespace netio::pubsub::inline v0_2
