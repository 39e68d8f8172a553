// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publish/subscribe client that any thread may use. It has its own loop and thread.
//
//     pubsub::Client client{{.publishers = {{"10.0.0.1", 1234}}}};
//     const pubsub::FidRange fids{pubsub::Fid{0}, pubsub::Fid{63}};
//     client.subscribe({fids}, {}, std::chrono::seconds{5}); // accepted, refused, pending, closed
//     pubsub::MessageBatch batch;
//     std::size_t sum = 0;
//     while (client.poll(batch, std::chrono::seconds{1}) > 0)
//         for (const pubsub::MessageBatch::Item message : batch)
//             sum += message.bytes.size();
//
// Messages go to a function on the client's thread, or into a bounded queue that any number of
// threads read. If the queue is full, `when_full` applies. The client stops reading, without a
// limit or for a limited time, so that the publishers treat it as a slow subscriber; or it keeps
// only the last message of each fid; or it drops messages. The next message of a fid reports how
// many were lost before it: dropped here or by the publisher, or published between two connections.

#include "netio/base/address_list.hpp"
#include "netio/base/export.hpp"
#include "netio/base/time.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/process.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/message_batch.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class NETIO_EXPORT Client final {
  public:
    // On the client's thread. The bytes are valid during the call. It may call functions of the
    // client that do not wait, and must not destroy it.
    using OnMessage =
        std::function<void(Fid fid, std::span<const std::byte> message, std::uint8_t status)>;

    // The policy for messages when the queue is full.
    struct WhenFull {
        // disconnect: as block for `after`; then the client leaves its publishers permanently.
        WhenFull(SlowPolicy its_policy, // NOLINT: converts
                 std::chrono::milliseconds after = std::chrono::milliseconds{10000})
            : policy{its_policy}, disconnect_after{after} {}

        SlowPolicy policy;
        std::chrono::milliseconds disconnect_after;
    };

    struct Options {
        AddressList publishers{};
        std::string bus{};                 // empty: none
        SubscribeSocket::Options socket{}; // of each connection, which always reconnects
        // For publishing; absent: it does not publish.
        std::optional<BufferedPublishSocket::Options> publish{};
        FabricOptions fabric{};
        EventLoop::Options loop{}; // post_limit: calls that wait for the client's thread
        OnMessage on_message{};    // empty: into the queue
        // As in SubscribeSocket, instead of that in `socket`; reported by on_event.
        std::chrono::milliseconds silence_hint{5000};
        // One line for people, on the client's thread: connections, their ends, problems of the
        // bus.
        std::function<void(const std::string&)> on_event{};
        std::size_t queue_messages = 65536;
        std::size_t queue_bytes = std::size_t{64} << 20; // up to half as much is kept for reuse
        WhenFull when_full = SlowPolicy::block;
        // Limit of the bytes of messages that publish() has queued. Messages of fids that a slow
        // subscriber blocks may use half of it; the other half remains for other fids.
        std::size_t publish_queue_bytes = std::size_t{16} << 20;
        // Options of each connection of send(), which always reconnects.
        BufferedSendSocket::Options send{};
        std::size_t send_queue_bytes = std::size_t{16} << 20; // per address
        std::size_t destination_limit = 256;                  // number of addresses of send()
        // Calls of subscribe() that wait for an answer; further calls return Answer::closed.
        std::size_t pending_reply_limit = 65536;
    };

    // Events other than messages, on the client's thread, in order with on_message, and with the
    // same rules.
    struct Events {
        // `count` messages of this fid were lost at this position: the publisher dropped them, or
        // they were published between two connections. With the queue, the next message of the fid
        // reports it.
        std::function<void(Fid fid, std::uint64_t count)> on_missed;
        // The publisher refused these fids, perhaps after a lost connection. They are not requested
        // from it any more.
        std::function<void(const Subscriptions::Source&, const FidRange&, Subscriptions::Refusal)>
            on_refused;
        // Another publish socket answers at the address; its counts start from the beginning.
        std::function<void(const Subscriptions::Source&, const PublisherChange&)>
            on_publisher_changed;
    };

    // Throws what the constructors of the sockets throw.
    explicit Client(Options options);
    Client(Options options, Events events);
    // Aborts connections that close() has not closed. Must not be called on the client's thread.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // All functions below may be called from any thread.

    enum class Answer : std::uint8_t {
        accepted, // a publisher has accepted all of them
        // All configured publishers have rejected the client permanently; on_event has the reasons.
        // The next subscribe() asks them again, for these fids, too. Publishers on a bus are asked
        // again after a while.
        refused,
        pending,  // the time-out has passed; the subscription remains, and may be accepted later
        closed,   // the client has ended, or too many calls are waiting; nothing was done
        canceled, // unsubscribe() was called for some of the fids before
        // A publisher has refused some of the fids, as in Subscriptions::Refusal.
        no_room,
        policy,
        not_permitted,
    };
    using OnAnswer = std::function<void(Answer)>; // on the client's thread
    // An empty list is accepted. Returns false, as Answer::closed, without calling `answer`.
    [[nodiscard]] bool subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                                 OnAnswer answer);
    std::future<Answer> subscribe(std::vector<FidRange> fids,
                                  std::optional<SlowPolicy> policy = {});
    // Waits for the answer, for a year at most. With a time-out of 0 or less, or on the client's
    // thread, it returns at once.
    Answer subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                     std::chrono::milliseconds timeout);
    template <typename Period>
    Answer subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                     std::chrono::duration<std::int64_t, Period> timeout) {
        return subscribe(std::move(fids), policy, clamped_milliseconds(timeout));
    }
    bool unsubscribe(const FidRange& fids); // false: as Answer::closed

    // ok: the message will be published, in order with those of the same fid and thread.
    // no_subscribers: the same, but the fid has no subscriber now, or the client does not publish.
    // again: no space now; another fid may have space. too_large, not_owned, closed.
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status = 0);
    // Waits until at least `count` subscribers have a subscription here. Returns false if the
    // time-out passes, or if the client is closed or does not publish. Does not wait on the
    // client's thread.
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const;
    // Announces the publisher on the bus, with a name and fids; the client fills in its addresses,
    // host and process. A further call replaces the announcement; close() withdraws it. on_event
    // reports problems. Throws std::invalid_argument if the client has no bus or does not publish;
    // AnnouncementError.
    void announce(Announcement announcement);
    // Sends a message to a ListenSocket; the first message connects. ok: it will be sent when there
    // is a connection, in order with those of the same thread and address. Messages that a broken
    // connection has not confirmed are counted and not sent again. again: its queue is full, or its
    // slot is not free yet. too_large, closed. Throws std::length_error if destination_limit is
    // reached and no destination is idle; an idle one without a connection is removed.
    Status send(const Address& to, std::span<const std::byte> message);
    // Closes the connection in order, as close() does. The next message connects again.
    void disconnect(const Address& from);
    // Runs a task on the client's thread. Returns false as Answer::closed.
    [[nodiscard]] bool post(std::function<void()> task);

    // Replaces `batch` by a batch of the queue, and waits if the queue is empty. Returns the number
    // of messages; 0 if none arrived in time or the client has ended. Copies no message, and reuses
    // the memory of the batch.
    std::size_t poll(MessageBatch& batch,
                     std::chrono::milliseconds timeout = std::chrono::milliseconds{0});
    template <typename Period>
    std::size_t poll(MessageBatch& batch, std::chrono::duration<std::int64_t, Period> timeout) {
        return poll(batch, clamped_milliseconds(timeout));
    }
    // Appends up to `at_most` messages, each in its own memory.
    std::size_t poll(std::vector<Message>& out, std::size_t at_most,
                     std::chrono::milliseconds timeout = std::chrono::milliseconds{0});
    template <typename Period>
    std::size_t poll(std::vector<Message>& out, std::size_t at_most,
                     std::chrono::duration<std::int64_t, Period> timeout) {
        return poll(out, at_most, clamped_milliseconds(timeout));
    }
    // Readable while messages are queued; for event loops of the user.
    int pollable_fd() const noexcept;

    // Closes in order, and waits until that is done and the thread has ended. Published messages
    // are delivered first, and messages to connected addresses. A queue is discarded, counted and
    // reported (on_event) if it made no progress for close_timeout of its socket, or is not empty
    // after close_limit; then the connection of an address is aborted, and subscribers get the same
    // time again.
    void close();

    struct Counters {
        std::uint64_t messages = 0;      // arrived
        std::uint64_t dropped = 0;       // of `messages`: because the queue was full
        std::uint64_t missed = 0;        // dropped by publishers, or between connections
        std::uint64_t restarts = 0;      // changes of a publisher at its address
        std::uint64_t unknown_tails = 0; // of `restarts`: the former publisher had not sent totals
        std::uint64_t refused = 0;       // ranges, by publishers; also after a lost connection
        std::uint64_t disconnected = 0;  // 1: left the publishers, because the queue stayed full
        std::uint64_t published = 0;
        std::uint64_t unpublished = 0;        // queued, and discarded at the end
        std::uint64_t sent = 0;               // passed to a connection
        std::uint64_t unsent = 0;             // too large, or discarded at the end
        std::uint64_t unconfirmed_frames = 0; // pages of broken connections
    };
    Counters counters() const;
    // The addresses of its publish socket.
    std::vector<Endpoint> endpoints() const;

  private:
    struct Impl;
    static constexpr char type[] = "Client";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::pubsub::inline v0_3
