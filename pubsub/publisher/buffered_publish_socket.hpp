// SPDX-License-Identifier: Apache-2.0
#pragma once

// Buffered publishing: messages are copied into pages, several messages and fids in one, and a page
// leaves for everybody in its group when it is full, at the watermark, after the flush time, when
// its sessions are idle (option), or on flush().
//
//     pubsub::BufferedPublishSocket socket{*transport,
//         {.publisher = {.addresses = {{"10.0.0.1", 1234}}}, .flush_time = 100us}, handler};
//     Status status = socket.publish(Fid{7}, bytes);
//
// The bytes are copied before publish() returns. A message larger than a page travels in several
// and arrives whole, in order. Belongs to the loop's thread; may be destroyed in any of its
// handlers.

#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/coalescing/message_parts.hpp"
#include "netio/loop/check_caller.hpp"
#include "pubsub/core/fid_table.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class BufferedPublisher;

class NETIO_EXPORT BufferedPublishSocket final : public Publisher {
  public:
    struct Options {
        Publisher::Options publisher{};
        // A subscriber's receive buffers are a little larger. Pages of this size cost few calls per
        // byte, and few enough are under way for all of them to stay in a processor's cache.
        std::size_t page_bytes = 256 * 1024;
        // The memory of all messages that wait or are being sent, in pages. A page takes as much of
        // it as it holds.
        std::size_t page_count = 128;
        // Bytes that one subscriber may hold, waiting or being sent, when the next page comes; then
        // its slow_policy decides. At most half of the memory.
        // 0: 1 MiB where the policy is to wait, 4 MiB where it is to drop, or four pages, or half
        // of the memory.
        std::size_t share_bytes = 0;
        // What is kept for a subscriber whose slow_policy is `newest`, beside the memory of all: of
        // each fid the last message. Where it does not suffice, those of the fids go, and are told
        // as missed, that have had none for the longest time.
        std::size_t newest_bytes = std::size_t{4} * 1024 * 1024;
        // A page leaves when it holds this many bytes. 0: at about 64 KiB if its subscribers are
        // idle, and when it is full if they are busy.
        std::size_t watermark_bytes = 0;
        // How long a message waits for its page to fill; 0: no timer. Pages leave for this reason
        // once in so long, the first after a pause at once; later where most would be nearly empty.
        std::chrono::microseconds flush_time{40};
        bool flush_when_idle = false; // a page leaves as soon as its sessions have nothing
    };

    // Throws std::invalid_argument: an option; FabricError: an address is in use, not local, or
    // served by no provider.
    BufferedPublishSocket(Transport& transport, const Options& options, Handler& handler);
    ~BufferedPublishSocket() override;

    // ok: it will be sent. no_subscribers: nobody wants the fid. again: nothing was taken;
    // on_writable says when to try again. too_large: never possible. closed: after close().
    // not_owned: the fid is another loop's (Publisher::Options::owned).
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status = 0) {
        // The usual case is a few dozen instructions: the fid's group has an open page with room.
        // None is open after close().
        NETIO_CHECK_FREQUENT_CALLER(*this, "BufferedPublishSocket");
        detail::FidState* const state = fids_->find_current(fid);
        if (state == nullptr || message.size() > message_limit_) {
            return publishv(fid, {&message, 1}, status);
        }
        std::byte* const out = state->lane->writer.append(fid, status, message.size());
        if (out == nullptr) return publishv(fid, {&message, 1}, status);
        // Before the copy: nothing has to be kept across it.
        ++state->published;
        ++counters_.messages;
        counters_.bytes += message.size();
        netio::copy_message(out, message);
        return Status::ok;
    }
    // The parts, one behind the other, are one message.
    Status publishv(Fid fid, std::span<const std::span<const std::byte>> parts,
                    std::uint8_t status = 0);

    // Sends what is coalesced now; of that fid alone, with what shares its page.
    void flush();
    void flush(Fid fid);
    void close() override;
    void abort() override;

    std::vector<Endpoint> endpoints() const override;
    const Counters& counters() noexcept override;
    using Publisher::snapshot;
    PublisherSnapshot snapshot(const SnapshotLimits& limits) override;
    // The largest message that publish() takes.
    std::size_t message_limit() const noexcept { return message_limit_; }

    // Ends the program if another thread runs the loop now; in builds for debugging each call does.
    void check_caller(const char* type, const char* call) const noexcept;

  private:
    Counters counters_;
    std::unique_ptr<BufferedPublisher> publisher_;
    detail::FidTable* fids_; // the publisher's
    std::size_t message_limit_;
};

} // namespace netio::pubsub::inline v0_2
