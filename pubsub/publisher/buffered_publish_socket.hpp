// SPDX-License-Identifier: Apache-2.0
#pragma once

// Buffered publishing: messages are copied into pages, each for several messages and fids. A page
// is sent to the subscribers of its fids when it is full, when it reaches the watermark, after the
// flush time, when their sessions are idle (flush_when_idle), or on flush().
//
//     pubsub::BufferedPublishSocket socket{*transport,
//         {.publisher = {.listen = {{"10.0.0.1", 1234}}}, .flush_time = 100us}, handler};
//     Status status = socket.publish(Fid{7}, bytes);
//
// The bytes are copied before publish() returns. A message that is larger than a page is sent in
// several pages and arrives whole, in order. Belongs to the loop's thread; may be destroyed in any
// of its handlers.

#include "netio/base/copy.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/base/wire.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/loop/check_caller.hpp"
#include "pubsub/core/fid_table.hpp"
#include "pubsub/core/time_stamp.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class BufferedPublisher;

class NETIO_EXPORT BufferedPublishSocket final : public Publisher {
  public:
    struct Options {
        Publisher::Options publisher{};
        // The largest size of a page. Subscribers need receive buffers that are a little larger.
        // Pages of the default size need few calls per byte, and all pages in flight fit into a
        // processor's cache.
        std::size_t page_size_bytes = 256 * 1024;
        // All messages that are queued or in flight use at most page_count * page_size_bytes of
        // memory. A page that is not full uses only the bytes that it contains.
        std::size_t page_count = 128;
        // The queue limit: at this many bytes queued or in flight for one subscriber, its
        // slow_policy decides about the next page. At most half of the memory.
        // 0: 1 MiB if the policy blocks, 4 MiB if it is drop, but at least four pages and at most
        // half of the memory.
        std::size_t queue_limit_bytes = 0;
        // Memory per subscriber with slow_policy `newest`, in addition to that of the pages: for
        // the last message of each fid. When it is full, the messages of the fids that have had
        // none for the longest time are dropped, and reported to the subscriber as lost.
        std::size_t newest_bytes = std::size_t{4} * 1024 * 1024;
        // Memory for the last messages, which are kept for subscribers that ask for history
        // (SubscribeSocket::Options::history). Such a subscriber gets the kept messages of its
        // fids, oldest first, and then the new messages, without a gap or a duplicate. A message
        // uses 32 bytes more than its size. 0: no messages are kept; with history_time: 64 MiB.
        std::size_t history_limit_bytes = 0;
        // Older messages are not kept. 0: no limit of time.
        std::chrono::milliseconds history_time{0};
        // A page with this many bytes is sent. 0: at about 64 KiB while its subscribers are idle,
        // and when full while they are busy.
        std::size_t watermark_bytes = 0;
        // How long a message waits for its page to fill; 0: no timer. Such pages are sent once per
        // flush_time, the first after a pause at once, and later if most would be nearly empty.
        std::chrono::microseconds flush_time{40};
        bool flush_when_idle = false; // a page is sent when its sessions have nothing to send
    };

    // Throws std::invalid_argument for an invalid option, and FabricError if an address is in use,
    // not local, or served by no provider.
    BufferedPublishSocket(Transport& transport, const Options& options, Handler& handler);
    ~BufferedPublishSocket() override;

    // Copies the message into a page. ok: it will be sent. no_subscribers: the fid has no
    // subscriber. again: nothing was copied; on_writable follows when it is worth trying again.
    // too_large: above message_limit(). closed: after close(). not_owned: the fid belongs to
    // another loop (Publisher::Options::fids).
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status = 0) {
        // Usually this takes a few dozen instructions: the fid's group has an open page with space.
        // No page is open after close().
        NETIO_CHECK_FREQUENT_CALLER(*this, "BufferedPublishSocket");
        detail::FidState* const state = fids_->find_current(fid);
        if (state == nullptr || message.size() >= plain_end_) {
            return publishv(fid, {&message, 1}, status);
        }
        std::byte* const out = state->group->writer.append(fid, status, message.size());
        if (out == nullptr) return publishv(fid, {&message, 1}, status);
        // Before the copy: no value must be saved across it.
        ++state->published;
        ++counters_.messages;
        counters_.bytes += message.size();
        copy_bytes(out, message);
        return Status::ok;
    }
    // The same with a time, in the unit of Publisher::Options::time_stamps. If this is none, the
    // time is not sent.
    Status publish_at(std::int64_t time, Fid fid, std::span<const std::byte> message,
                      std::uint8_t status = 0) {
        NETIO_CHECK_FREQUENT_CALLER(*this, "BufferedPublishSocket");
        detail::FidState* const state = fids_->find_current(fid);
        if (state == nullptr || message.size() >= stamped_end_) {
            return publishv_at(time, fid, {&message, 1}, status);
        }
        std::byte* const out =
            state->group->writer.append(fid, status, time_stamp::bytes + message.size());
        if (out == nullptr) return publishv_at(time, fid, {&message, 1}, status);
        ++state->published;
        ++counters_.messages;
        counters_.bytes += message.size();
        wire::store(out, time);
        copy_bytes(out + time_stamp::bytes, message);
        return Status::ok;
    }
    // The parts together are one message.
    Status publishv(Fid fid, std::span<const std::span<const std::byte>> parts,
                    std::uint8_t status = 0);
    Status publishv_at(std::int64_t time, Fid fid,
                       std::span<const std::span<const std::byte>> parts, std::uint8_t status = 0);

    // Sends all coalesced messages, or those of the fid together with the others on its page.
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

    // Ends the program if another thread runs the loop now; debug builds check each call.
    void check_caller(const char* type, const char* call) const noexcept;

  private:
    Counters counters_;
    std::unique_ptr<BufferedPublisher> publisher_;
    detail::FidTable* fids_; // the publisher's
    std::size_t message_limit_;
    StampClock time_stamps_;
    // publish() itself takes a message of fewer bytes. 0: none, because messages have time stamps,
    // or are kept.
    std::size_t plain_end_;
    std::size_t stamped_end_; // the same for publish_at()
};

} // namespace netio::pubsub::inline v0_3
