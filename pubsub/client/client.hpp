// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publish/subscribe client that any thread may use: it has a loop and a thread of its own.
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
// Messages go to a function on the client's thread, or else into a bounded queue that any number
// of threads take from. What does not fit there follows `when_full`: the publishers are held up, as
// by any slow subscriber, for ever or for a while, or the last of each fid is kept, or it is
// dropped, counted and told with the next message of its fid, as
// is what publishers dropped, and what was published between two connections.

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

namespace netio::pubsub::inline v0_2 {

class NETIO_EXPORT Client final {
  public:
    // On the client's thread; the bytes are valid during the call. It may call the client, but for
    // what waits, and must not destroy it.
    using OnMessage =
        std::function<void(Fid fid, std::span<const std::byte> message, std::uint8_t status)>;

    // What becomes of messages that the queue has no room for.
    struct WhenFull {
        // disconnect: as block, for so long; then the client leaves its publishers for good.
        WhenFull(SlowPolicy its_policy, // NOLINT: a policy is one
                 std::chrono::milliseconds after = std::chrono::milliseconds{10000})
            : policy{its_policy}, disconnect_after{after} {}

        SlowPolicy policy;
        std::chrono::milliseconds disconnect_after;
    };

    struct Options {
        AddressList publishers{};
        std::string bus{};                 // empty: none
        SubscribeSocket::Options socket{}; // of each connection; it comes back whatever this says
        std::optional<BufferedPublishSocket::Options> publish{}; // where it publishes itself
        FabricOptions fabric{};
        EventLoop::Options loop{}; // post_limit: of all calls that wait for the client's thread
        OnMessage on_message{};    // empty: into the queue
        // As SubscribeSocket's, in place of what `socket` says; on_event has the line.
        std::chrono::milliseconds silence_hint{5000};
        // One line for people, on the client's thread: who came and went, troubles of the bus.
        std::function<void(const std::string&)> on_event{};
        std::size_t queue_messages = 65536;
        std::size_t queue_bytes = std::size_t{64} << 20; // half as much stays for what comes next
        WhenFull when_full = SlowPolicy::block;
        // What publish() has taken and the thread has not published. One half; the other is for
        // the fids that go on while some wait for a slow subscriber.
        std::size_t publish_queue_bytes = std::size_t{16} << 20;
        // Of each connection that send() makes; it comes back whatever this says.
        BufferedSendSocket::Options send{};
        std::size_t send_queue_bytes = std::size_t{16} << 20; // of each address, all of it
        std::size_t destination_limit = 256;                  // addresses that send() is given
        // Calls of subscribe() that wait for their answer; beyond: Answer::closed.
        std::size_t answer_limit = 65536;
    };

    // What programs want to know beside messages. All of it on the client's thread, in order with
    // on_message; it may call the client as that may.
    struct Events {
        // So many of this fid are missing here: the publisher has dropped them for us, or they were
        // published between two connections. In the queue the next message of the fid tells it.
        std::function<void(Fid fid, std::uint64_t count)> on_missed;
        // Nothing of these comes from this publisher: it did not accept them, or not again behind a
        // connection that was lost. They are not asked of it any more.
        std::function<void(const Subscriptions::Source&, const FidRange&, Subscriptions::Refusal)>
            on_refused;
        // Another one answers in its place, and counts from the beginning.
        std::function<void(const Subscriptions::Source&, const PublisherChange&)>
            on_publisher_changed;
    };

    // Throws what the sockets throw.
    explicit Client(Options options);
    Client(Options options, Events events);
    // Ends at once what close() has not ended. Not on the client's thread.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // All of these may be called from any thread.

    enum class Answer : std::uint8_t {
        accepted, // a publisher has accepted all of them
        // None of those that were given lets us in, for good: on_event has the reason of each. They
        // are asked again with the next subscribe(), then for these, too. Who is found on a bus is
        // asked again by itself.
        refused,
        pending,  // the time is over; they are wanted all the same, and may be accepted later
        closed,   // the client has ended, or too many calls wait for it; nothing was done
        canceled, // unsubscribe() has taken some of them back before that
        // A publisher has refused some of them, as Subscriptions::Refusal says.
        no_room,
        policy,
        not_permitted,
    };
    using OnAnswer = std::function<void(Answer)>; // on the client's thread
    // The answer to no fids at all is accepted. False: as Answer::closed, and nobody is called.
    [[nodiscard]] bool subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                                 OnAnswer answer);
    std::future<Answer> subscribe(std::vector<FidRange> fids,
                                  std::optional<SlowPolicy> policy = {});
    // Waits for the answer: not at all with a time-out of 0 or less, and at most a year. On the
    // client's thread it is pending at once.
    Answer subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                     std::chrono::milliseconds timeout);
    template <typename Period>
    Answer subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                     std::chrono::duration<std::int64_t, Period> timeout) {
        return subscribe(std::move(fids), policy, clamped_milliseconds(timeout));
    }
    bool unsubscribe(const FidRange& fids); // false: as Answer::closed

    // ok: it will be published, in order with the others of its fid that this thread publishes.
    // no_subscribers: the same, but no subscriber wanted the fid at the moment of the call, or the
    // client does not publish at all. again: there is no room for it now, and for another fid there
    // may be. too_large, not_owned, closed.
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status = 0);
    // Waits until at least `count` subscribers have a subscription here. False: the time is over,
    // or the client is closed or does not publish. On the client's thread it does not wait.
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const;
    // Announces on the bus what it publishes: a name and fids, and what else is not known of
    // itself, as its addresses are. Called again it says something else, until close() withdraws
    // it. What the bus says is told by on_event. Throws std::invalid_argument: it has no bus, or
    // does not publish; AnnouncementError.
    void announce(Announcement announcement);
    // A message to a ListenSocket, which is connected to with the first one. ok: it will be sent,
    // in order with the others of this thread to that address, once there is a connection; what a
    // connection that breaks has not confirmed is counted and not sent again. again: its queue is
    // full, or its place not free yet. too_large, closed. Throws std::length_error:
    // destination_limit; but those that are away, and that nothing waits for, make room.
    Status send(const Address& to, std::span<const std::byte> message);
    // Ends the connection in order, as close() does, and no later; the next message connects anew.
    void disconnect(const Address& from);
    // Runs it on the client's thread. False: as Answer::closed.
    [[nodiscard]] bool post(std::function<void()> task);

    // A batch of what waits in the queue, in place of what it had, or waits for something; how
    // many. 0: nothing came, or the client has ended. No message is copied, and the batch's memory
    // is used again.
    std::size_t poll(MessageBatch& batch,
                     std::chrono::milliseconds timeout = std::chrono::milliseconds{0});
    template <typename Period>
    std::size_t poll(MessageBatch& batch, std::chrono::duration<std::int64_t, Period> timeout) {
        return poll(batch, clamped_milliseconds(timeout));
    }
    // The same, so many at most, each in memory of its own, behind those that are there.
    std::size_t poll(std::vector<Message>& out, std::size_t at_most,
                     std::chrono::milliseconds timeout = std::chrono::milliseconds{0});
    template <typename Period>
    std::size_t poll(std::vector<Message>& out, std::size_t at_most,
                     std::chrono::duration<std::int64_t, Period> timeout) {
        return poll(out, at_most, clamped_milliseconds(timeout));
    }
    // Readable while something waits in the queue, for loops of one's own.
    int pollable_fd() const noexcept;

    // Ends in order: what was published arrives, and so does what was sent to who is there.
    // Waits for it, and for the end of the thread. What is still in a queue when nothing of it was
    // taken for close_timeout of its socket, or not all within close_limit, is given up, counted
    // and told (on_event); then an address of send() ends at once, and who subscribes has as long
    // again.
    void close();

    struct Counters {
        std::uint64_t messages = 0;      // arrived
        std::uint64_t dropped = 0;       // of those, for want of room in the queue
        std::uint64_t missed = 0;        // told missing by publishers, and between connections
        std::uint64_t restarts = 0;      // another publisher answered where one had
        std::uint64_t unknown_tails = 0; // of those, so many had not told how much they published
        std::uint64_t refused = 0;       // ranges, by publishers; also behind a lost connection
        std::uint64_t disconnected = 0;  // 1: nobody read what came, and it has left the publishers
        std::uint64_t published = 0;
        std::uint64_t unpublished = 0;        // taken, and there was no room for it until the end
        std::uint64_t sent = 0;               // given to a connection
        std::uint64_t unsent = 0;             // too large for it, or it did not take it at the end
        std::uint64_t unconfirmed_frames = 0; // of connections that broke; pages of what was sent
    };
    Counters counters() const;
    // Where it publishes.
    std::vector<Endpoint> endpoints() const;

  private:
    struct Impl;
    static constexpr char type[] = "Client";
    ProcessBound<Impl, type> impl_;
};

} // namespace netio::pubsub::inline v0_2
