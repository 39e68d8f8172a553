// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unbuffered publishing: every message is sent without a copy from the user's registered memory to
// all subscribers of its fid. The memory is in flight until on_publish_completed(cookie, outcome),
// which is called exactly once for every publication with status ok: when the last subscriber's
// send is complete, or the subscriber is gone. The outcome counts the subscribers that were sent
// it, for which it was dropped, and whose session ended.
//
//     pubsub::PublishSocket socket{*transport, {.publisher = {.listen = {{"10.0.0.1", 1234}}}},
//                                  handler};
//     Status status = socket.publish(Fid{7}, buffer.slice(0, 65536), Cookie{1});
//
// A message that is larger than a subscriber's receive buffer is sent in fragments and arrives
// whole. Messages of up to 48 KiB (8 KiB on a device, which reads them itself) that are published
// faster than frames are sent share a frame: they are copied into it, because a frame costs more
// than the copy, and a subscriber has a limited number of receive buffers. A single message is sent
// at once and not copied.
//
// publish is the default form: it is all or nothing, and the library queues the message for
// sessions without capacity. try_publish is the explicit form (NetIO's): it queues nothing. If only
// some sessions had capacity the status is partial, and the caller decides when to continue:
//
//     auto [status, ticket] = socket.try_publish(Fid{7}, slice, Cookie{2});
//     if (status == Status::partial) waiting = std::move(ticket);
//     // in on_writable:
//     if (waiting.is_open()) status = socket.resume(waiting);
//
// Belongs to the loop's thread; may be destroyed in any of its handlers.

#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "pubsub/core/publication_outcome.hpp"
#include "pubsub/core/publish_ticket.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class ZeroCopyPublisher;

class NETIO_EXPORT PublishSocket final : public Publisher {
  public:
    struct Options {
        Publisher::Options publisher{};
        // Limit of publications whose memory is in flight; at the limit publish() returns again.
        std::size_t outstanding_limit = 256;
        // The queue limit: at this many publications queued for one subscriber, its slow_policy
        // decides about the next one. At most half of outstanding_limit. 0: a quarter of
        // outstanding_limit, at most 64.
        std::size_t queue_limit_messages = 0;
    };

    class Handler : public Publisher::Handler {
      public:
        // The memory of `cookie` may be used again; `outcome`: how many subscribers were sent it.
        virtual void on_publish_completed(PublishSocket& publisher, Cookie cookie,
                                          const PublicationOutcome& outcome) = 0;

      protected:
        ~Handler() = default;
    };

    // Throws std::invalid_argument for an invalid option, and FabricError if an address is in use,
    // not local, or served by no provider.
    PublishSocket(Transport& transport, const Options& options, Handler& handler);
    ~PublishSocket() override;

    // What is sent with the message.
    struct Extras {
        std::uint8_t status = 0;
        std::span<const std::byte> header; // up to 8 bytes, copied: the message's first bytes
        // In the unit of Publisher::Options::time_stamps; nullopt: with tai, the time of the call.
        std::optional<std::int64_t> time{};
    };
    static constexpr std::size_t header_limit = 8;

    // Registers memory with the devices that subscribers use. Otherwise the first publication over
    // each device does that: it takes as long as pinning the memory, and a failure ends the
    // subscriber's session. Throws FabricError, which names the remedy.
    void prepare(RegisteredBuffer& buffer);

    // ok: on_publish_completed follows. no_subscribers: the fid has no subscriber; nothing follows.
    // again: no subscriber got it; on_writable follows when it is worth trying again. too_large
    // (also a header above its limit), too_many_segments: never possible. closed: after close().
    // not_owned: the fid is another loop's (Publisher::Options::fids).
    // While a frame is in flight to a subscriber, the next messages that may share one wait for its
    // completion, or for enough bytes (32 KiB), even if the session has capacity; try_publish()
    // sends each at once.
    Status publish(Fid fid, const Slice& slice, Cookie cookie) {
        return publishv(fid, {&slice, 1}, cookie, Extras{});
    }
    // Up to slice_limit slices, of one or several buffers, are one message.
    Status publishv(Fid fid, std::span<const Slice> slices, Cookie cookie, const Extras& extras);
    Status publishv(Fid fid, std::span<const Slice> slices, Cookie cookie) {
        return publishv(fid, slices, cookie, Extras{});
    }

    struct [[nodiscard]] Attempt {
        Status status = Status::ok;
        PublishTicket ticket; // open with partial
    };
    // The explicit form. ok: it is being sent to every subscriber. partial: only to those whose
    // session has capacity; on_writable follows when resume() is worth trying. While the ticket is
    // open, publishing this fid returns again (a newer message would overtake it), the memory stays
    // in flight and the publication does not complete. again: no subscriber got it, and the call
    // may be repeated. The other statuses are those of publish.
    Attempt try_publish(Fid fid, const Slice& slice, Cookie cookie) {
        return try_publishv(fid, {&slice, 1}, cookie, Extras{});
    }
    Attempt try_publishv(Fid fid, std::span<const Slice> slices, Cookie cookie,
                         const Extras& extras);
    // Sends the publication to those of its subscribers that it was not sent to yet; later
    // subscribers do not get it. ok: it is being sent to all of them, and the ticket is closed.
    // partial: as above. stale_ticket: the ticket is not open, or belongs to another socket.
    Status resume(PublishTicket& ticket);

    // As Publisher::close(). Open tickets are closed; the library finishes their publications.
    void close() override;
    void abort() override;

    std::vector<Endpoint> endpoints() const override;
    const Counters& counters() noexcept override;
    using Publisher::snapshot;
    PublisherSnapshot snapshot(const SnapshotLimits& limits) override;
    // The number of publications whose memory is in flight.
    std::size_t outstanding() const noexcept;
    // The number of slices of a message that are sent to every subscriber without a copy: as many
    // as the provider takes in addition to a header (3 on tcp, up to 28 on verbs; 0 if frames are
    // encrypted). Further slices are copied for the subscribers whose provider takes fewer.
    std::size_t segment_limit() const noexcept;

  private:
    std::unique_ptr<ZeroCopyPublisher> publisher_;
};

} // namespace netio::pubsub::inline v0_3
