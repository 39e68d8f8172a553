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
#include "netio/coalescing/flush_pace.hpp"
#include "netio/coalescing/message_parts.hpp"
#include "pubsub/publisher/open_pages.hpp"
#include "pubsub/publisher/page_store.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "pubsub/publisher/subscriber_sessions.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class NETIO_EXPORT BufferedPublishSocket final : public Publisher,
                                                 private SubscriberSessions::Owner {
  public:
    struct Options {
        Publisher::Options publisher;
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
        std::size_t watermark_bytes = 0; // a page leaves when it holds so much; 0: when full
        // The longest that a message waits for its page to fill; 0: no timer. Pages leave for this
        // reason once in so long: the first after a pause leaves at the end of the loop's turn.
        std::chrono::microseconds flush_time{40};
        bool flush_when_idle = false; // a page leaves as soon as its sessions have nothing
    };

    // Throws std::invalid_argument: an option; FabricError: an address is in use, not local, or
    // served by no provider.
    BufferedPublishSocket(Transport& transport, const Options& options, Handler& handler);
    ~BufferedPublishSocket() override;

    // ok: it will be sent. no_subscribers: nobody wants the fid. again: nothing was taken;
    // on_writable says when to try again. too_large: never possible. closed: after close().
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status = 0) {
        // The usual case is a few dozen instructions: an open page has room. None is open after
        // close().
        FanOut::FidState* const state = sessions_.find_current(fid);
        if (state == nullptr || message.size() > message_limit_) {
            return publishv(fid, {&message, 1}, status);
        }
        const std::size_t place = state->group->place;
        if (place == Group::nowhere) return publishv(fid, {&message, 1}, status);
        PageWriter& writer = open_.writer(place);
        std::byte* const out = writer.append(fid, status, message.size());
        if (out == nullptr) return publishv(fid, {&message, 1}, status);
        copy_message(out, message);
        count(*state, message.size());
        if (writer.used() >= options_.watermark_bytes) flush_page(place);
        return Status::ok;
    }
    // The parts, one behind the other, are one message.
    Status publishv(Fid fid, std::span<const std::span<const std::byte>> parts,
                    std::uint8_t status = 0);

    // Sends what is coalesced now.
    void flush();
    void close() override;
    void abort() override;

    std::vector<Endpoint> endpoints() const override;
    const Counters& counters() noexcept override;
    // The largest message that publish() takes.
    std::size_t message_limit() const noexcept { return message_limit_; }

  private:
    void before_change() override { flush(); }
    void on_returned(const SendQueue::Returned& returned) override;
    void on_taken_back(const Subscriber& subscriber, Cookie page, GapLedger& gap) override;
    void on_progress() override;

    void count(FanOut::FidState& state, std::size_t bytes) noexcept {
        ++state.published;
        ++counters_.messages;
        counters_.bytes += bytes;
    }
    std::byte* reserve(Group& group, Fid fid, std::uint8_t status, std::size_t bytes);
    bool open_page(Group& group, std::size_t record_bytes);
    bool block_for_slow(const Group& group);
    std::size_t share_of(SlowPolicy policy) const noexcept;
    bool has_its_share(const Interest& member);
    Status publish_large(Group& group, Fid fid, std::span<const std::span<const std::byte>> parts,
                         std::size_t bytes, std::uint8_t status);
    std::vector<std::uint32_t> take_pages(std::size_t bytes);
    std::vector<Interest> takers_of(const Group& group, Fid fid);
    void send_page(std::uint32_t page, Subscriber& subscriber, const Interest& member,
                   std::span<const std::byte> extension);
    void tell_missed(std::uint32_t page, GapLedger& gap);
    void drop_page(std::uint32_t page, Subscriber& subscriber);
    void flush_page(std::size_t place);
    void flush_old();
    void flush_idle();
    bool is_idle(const Group& group);
    Status refuse();

    Options options_;
    Handler& handler_;
    EventLoop& loop_;
    std::size_t message_limit_;
    PageStore pages_;
    OpenPages open_;
    FlushPace flush_pace_;
    std::uint32_t next_number_ = 0;
    Counters counters_;
    bool capacity_wanted_ = false;
    Timer flush_timer_;
    Timer idle_timer_;
    SubscriberSessions sessions_; // last: goes first
};

} // namespace netio::pubsub::inline v0_2
