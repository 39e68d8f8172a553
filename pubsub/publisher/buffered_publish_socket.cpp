// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include "pubsub/publisher/buffered_publisher.hpp"

namespace netio::pubsub::inline v0_2 {

BufferedPublishSocket::BufferedPublishSocket(Transport& transport, const Options& options,
                                             Handler& handler)
    : publisher_{std::make_unique<BufferedPublisher>(transport, options, handler, *this,
                                                     counters_)},
      fids_{&publisher_->sessions().fan_out().fids()}, message_limit_{publisher_->message_limit()} {
}

BufferedPublishSocket::~BufferedPublishSocket() = default;

Status BufferedPublishSocket::publishv(Fid fid, std::span<const std::span<const std::byte>> parts,
                                       std::uint8_t status) {
    return publisher_->publish(fid, parts, status);
}

void BufferedPublishSocket::flush() {
    publisher_->flush();
}

void BufferedPublishSocket::flush(Fid fid) {
    publisher_->flush(fid);
}

void BufferedPublishSocket::close() {
    publisher_->close();
}

void BufferedPublishSocket::abort() {
    publisher_->abort();
}

std::vector<Endpoint> BufferedPublishSocket::endpoints() const {
    return publisher_->sessions().listener().endpoints();
}

const Publisher::Counters& BufferedPublishSocket::counters() noexcept {
    counters_.subscribers = publisher_->sessions().subscriber_count();
    return counters_;
}

PublisherSnapshot BufferedPublishSocket::snapshot(const SnapshotLimits& limits) {
    return publisher_->take_snapshot(limits);
}

} // namespace netio::pubsub::inline v0_2
