// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unbuffered publishing: every message leaves zero-copy from the user's registered memory to
// everybody who wants its fid. The memory is lent until on_publish_completed(cookie, outcome),
// which comes exactly once for every publication that was answered with ok: when the last
// subscriber's send is complete, or the subscriber is gone. The outcome says to how many it was
// sent, who missed it, and whose session ended.
//
//     pubsub::PublishSocket socket{*transport, {.publisher = {.addresses = {{"10.0.0.1", 1234}}}},
//                                  handler};
//     Status status = socket.publish(Fid{7}, buffer.slice(0, 65536), Cookie{1});
//
// A message larger than a subscriber's receive buffer is sent to it in fragments and arrives whole.
// Messages of up to 48 KiB (8 KiB on a device, which reads them itself) that come faster than
// frames leave share one: they are copied into it, as for those a frame costs more than a copy, and
// a subscriber has only so many receive buffers. What comes alone leaves at once and is not copied.
//
// publish is the default form: it is all or nothing, and the library finishes what some sessions
// cannot take yet. try_publish is the explicit one (NetIO's): it queues nothing for a session
// without room. What only some sessions could take is partial, and the caller decides when to go
// on:
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
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class LentPublisher;

class NETIO_EXPORT PublishSocket final : public Publisher {
  public:
    struct Options {
        Publisher::Options publisher{};
        // Publications whose memory is lent at once; beyond: again.
        std::size_t outstanding_limit = 256;
        // Publications that may wait for one subscriber beyond what its session takes; then its
        // slow_policy decides. At most half of outstanding_limit. 0: a quarter of it, and 64 at
        // most.
        std::size_t remainder_limit = 0;
    };

    class Handler : public Publisher::Handler {
      public:
        // The memory behind `cookie` may be used again; `outcome` is what became of the message.
        virtual void on_publish_completed(PublishSocket& publisher, Cookie cookie,
                                          const PublicationOutcome& outcome) = 0;

      protected:
        ~Handler() = default;
    };

    // Throws std::invalid_argument: an option; FabricError: an address is in use, not local, or
    // served by no provider.
    PublishSocket(Transport& transport, const Options& options, Handler& handler);
    ~PublishSocket() override;

    // What goes in front of the message's memory, and with it.
    struct Extras {
        std::uint8_t status = 0;
        std::span<const std::byte> header; // up to 8 bytes, copied: the message's first bytes
    };
    static constexpr std::size_t header_limit = 8;

    // Registers memory with the devices that subscribers come in over. Without it, that happens in
    // the first publication to each of them: it takes as long as pinning the memory takes, and
    // where that fails, it ends the subscriber's session. Throws FabricError, which names the
    // remedy.
    void prepare(RegisteredBuffer& buffer);

    // ok: on_publish_completed follows. no_subscribers: nobody wants the fid; nothing
    // follows. again: no subscriber got it; on_writable says when to try again. too_large
    // (also a header above its limit), too_many_segments: never possible. closed: after close().
    // not_owned: the fid is another loop's (Publisher::Options::owned).
    // While a frame is under way to a subscriber, the next messages that may share one wait for it,
    // or until they are enough for a frame (32 KiB), though there is room; try_publish() lets each
    // leave.
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
    // The explicit form. ok: every subscriber has it, as far as this side is concerned. partial:
    // those without room do not; on_writable says when resume() is worth trying. While the ticket
    // is open, publishing this fid says again (a newer message would overtake), the memory stays
    // lent and the publication does not complete. again: nobody got it, and it may be repeated as
    // it is. The other statuses are those of publish.
    Attempt try_publish(Fid fid, const Slice& slice, Cookie cookie) {
        return try_publishv(fid, {&slice, 1}, cookie, Extras{});
    }
    Attempt try_publishv(Fid fid, std::span<const Slice> slices, Cookie cookie,
                         const Extras& extras);
    // Offers the publication to the subscribers that are left; who came after the first attempt is
    // not among them. ok: all have it, the ticket is closed. partial: as above. stale_ticket: the
    // ticket is not open, or not of this socket.
    Status resume(PublishTicket& ticket);

    // Publisher::close(): what was published arrives, every subscriber learns how much it was, then
    // on_closed. Open tickets are closed; the library finishes their publications.
    void close() override;
    void abort() override;

    std::vector<Endpoint> endpoints() const override;
    const Counters& counters() noexcept override;
    using Publisher::snapshot;
    PublisherSnapshot snapshot(const SnapshotLimits& limits) override;
    std::size_t outstanding() const noexcept;
    // Slices of a message that leave from where they lie to every subscriber there is: as many as
    // the provider takes beside a header (3 on tcp, up to 28 on verbs; none where frames are
    // encrypted). Of a longer list those behind are copied for whom it concerns, which changes
    // nothing else.
    std::size_t segment_limit() const noexcept;

  private:
    std::unique_ptr<LentPublisher> publisher_;
};

} // namespace netio::pubsub::inline v0_2
