// SPDX-License-Identifier: Apache-2.0
#pragma once

// A session is an established connection that speaks our protocol: frames in both directions, flow
// control by receive credits, heartbeats, an orderly shutdown. Sockets are made of sessions; users
// of sockets do not see them.
//
//     connecting:  opening --connected, open frame sent--> open
//     accepting:   opening --connected--> awaiting the open frame --> open
//     open --close() here or there--> both shut down and confirm it --> closed
//     any --abort(), fail(), broken--> closed          (on_closed: the last word)
//
// A service may also write into memory that the peer has lent it (SessionOptions::remote_writes);
// the peer is told of each write by the fabric's immediate data, or by a frame behind the write
// where there is none.
//
// Sending never blocks and never queues: a frame either goes to the fabric at once, with its lent
// slices, or the answer is `again` and on_writable follows when it is worth trying. Every accepted
// frame that asked for it is answered by exactly one on_sent. Belongs to the loop's thread; may be
// destroyed in any of its handlers.

#include "netio/base/frame.hpp"
#include "netio/session/credits.hpp"
#include "netio/session/hello.hpp"
#include "netio/session/send_ledger.hpp"
#include "netio/session/shutdown.hpp"
#include "netio/transport.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::inline v0_2 {

struct SessionOptions {
    std::size_t receive_bytes = 66 * 1024;     // per receive buffer; the largest frame we can take
    std::size_t receive_count = 64;            // receive buffers, and so the peer's credits
    std::size_t send_count = 64;               // frames in the fabric's hands at once
    std::chrono::milliseconds heartbeat{5000}; // send something at least this often; 0: never
    std::chrono::milliseconds dead_after{30000}; // silence that makes a peer dead; 0: none does
    std::chrono::milliseconds connect_timeout{5000};
    std::chrono::milliseconds handshake_timeout{5000}; // accepted, but no open frame
    // close(): without a sign that the peer has taken anything more; a peer that has something to
    // take says so once a heartbeat, at least
    std::chrono::milliseconds close_timeout{10000};
    std::chrono::milliseconds close_limit{60000}; // close(): in all
    bool remote_writes = false;                   // the peer writes into memory here
    bool never_immediate = false; // tell of writes by frames even where the fabric could
};

// Throws std::invalid_argument naming the option and what is allowed.
void validate(const SessionOptions& options);

// A frame to send. The extension is copied; slices are lent until on_sent.
struct OutgoingFrame {
    std::uint8_t kind = first_service_kind;
    std::uint8_t flags = 0;
    std::span<const std::byte> extension; // at most frame_extension_limit bytes
    std::span<const Slice> slices;        // at most slice_limit
};
inline constexpr std::size_t frame_extension_limit = 56;
// NetIO-next's limit. More slices than the provider takes are gathered into one by copying.
inline constexpr std::size_t slice_limit = 28;

struct IncomingFrame {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::span<const std::byte> body; // extension and payload; valid during on_frame only
};

// A write into the peer's memory. Slices are lent until on_sent.
struct OutgoingWrite {
    std::span<const Slice> slices; // at most Session::write_slice_limit()
    RemoteSlice target;
    std::uint32_t notice = 0; // what the peer is told: on_written
};

class Session final : private Connection::Handler {
  public:
    class Handler {
      public:
        virtual void on_open(Session& session) = 0;
        virtual void on_frame(Session& session, const IncomingFrame& frame) = 0;
        // The peer has written here, and says so with its `notice`. Only with remote_writes.
        virtual void on_written(Session& session, std::uint32_t notice);
        virtual void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) = 0;
        // The peer has shut down: nothing more comes, and nothing more can be sent. true: the user
        // was given everything; false: confirm() follows when that is so.
        virtual bool on_shutdown(Session& session);
        // There is room again after send() said there was none.
        virtual void on_writable(Session& session) = 0;
        virtual void on_closed(Session& session, const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // Connects. Throws FabricError if the provider cannot reach the address at all, and
    // std::invalid_argument for options; every later failure is an on_closed.
    struct Target {
        std::string provider;
        Address remote;
        std::string local_host;                                   // empty: any
        std::size_t required_receive_bytes = least_receive_bytes; // of the peer's receive buffers
        std::shared_ptr<const RouteOffer> offer = nullptr;        // of the route, if there is one
    };
    Session(Transport& transport, const Target& target, const Hello& hello,
            const SessionOptions& options, Handler& handler);
    // Accepts a peer whose hello has been checked (netio/session/session_listener.hpp does). Throws
    // as ConnectionRequest::make_connection.
    Session(Transport& transport, ConnectionRequest& request, const Hello& peer, const Hello& hello,
            const SessionOptions& options, Handler& handler);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // ok, again, closed, too_large (than the peer's receive buffers), too_many_segments. A slice
    // that cannot be registered ends the session: closed, and on_closed(failed) follows. `cookie`
    // absent: no on_sent for this frame.
    Status send(const OutgoingFrame& frame, std::optional<Cookie> cookie);
    // Whether send() would find credits and a slot.
    bool has_capacity() const noexcept;
    // The same for write().
    bool has_write_capacity() const noexcept;
    // For those who ask before they make up what to send: false means that on_writable follows.
    bool request_capacity();
    bool request_write_capacity();

    // Writes, then tells the peer. It sees both in the order of all sends and writes of this
    // session. ok, again, closed.
    Status write(const OutgoingWrite& write, Cookie cookie);
    std::size_t write_slice_limit() const noexcept { return capabilities().segment_limit; }

    // Ends in order: nothing can be sent any more, what was sent arrives, then on_closed(orderly);
    // or on_closed(unconfirmed), if the peer does not confirm that. What the peer sends until it
    // has heard of it still arrives.
    void close();
    // Ends at once: outstanding sends are canceled, then on_closed(local).
    void abort();
    // Ends at once for a reason that the service found.
    void fail(CloseReason reason, std::string detail);

    // The service does not give its user so many frames of the peer's, which will be told.
    void add_unread(std::uint32_t count) noexcept { shutdown_.add_unread(count); }
    // The user was given all others; after on_shutdown() said that it was not yet so.
    bool awaits_confirmation() const noexcept {
        return state_ == State::open && shutdown_.awaits_user();
    }
    void confirm();

    // Frames may be sent.
    bool is_open() const noexcept { return state_ == State::open && shutdown_.may_send(); }
    // A frame of the peer's has come: it did not only let us in.
    bool has_heard() const noexcept { return expected_sequence_ > 0; }
    const Hello& peer() const noexcept { return peer_; }
    // Why the listener did not want us; none: it did, or did not say.
    RejectCode rejection() const noexcept { return rejection_.code; }
    const Capabilities& capabilities() const noexcept { return connection_->capabilities(); }
    // Where to register memory that the peer is to write to. It must outlive the session.
    MemoryDomain& domain() noexcept { return connection_->domain(); }
    std::string peer_address() const { return connection_->peer_address(); }
    EventLoop& loop() noexcept { return loop_; }
    // Bytes of extension and payload that fit into one frame to this peer.
    std::size_t body_limit() const noexcept;

  private:
    enum class State : std::uint8_t { opening, awaiting_open, open, closing };
    static constexpr std::size_t slot_bytes = frame_header_bytes + frame_extension_limit;
    static constexpr std::uint32_t no_gather = UINT32_MAX;

    // One frame in the fabric's hands. Its header lives in slot_memory_ until it is sent.
    struct Slot {
        std::optional<Cookie> cookie;
        std::uint32_t gather = no_gather;
    };

    Session(Transport& transport, const Hello& hello, const SessionOptions& options,
            Handler& handler);
    static QueueLimits limits_of(const SessionOptions& options);
    void post_all_receives();

    void on_connected(std::span<const std::byte> data) override;
    void on_rejected(std::span<const std::byte> data) override;
    void on_completion(const Completion& completion) override;
    void on_closed(const Closed& closed) override;

    void on_send_completion(const Completion& completion);
    void on_receive_completion(const Completion& completion);
    void on_remote_write(const Completion& completion);
    bool take_credits(std::uint32_t returned);
    // Gives the receive back to the fabric. False: the connection is broken.
    bool repost_receive(Cookie cookie);
    // False: the session was closed or destroyed, or the frame ended it.
    bool take_frame(std::span<const std::byte> bytes);
    bool take_session_frame(const FrameHeader& header, std::span<const std::byte> body);
    bool take_shutdown();
    void become_open();

    bool may_send_data() const noexcept;
    bool may_write() const noexcept;
    bool tells_by_immediate() const noexcept;
    template <class Post>
    Status post_or_fail(Post post);
    Status send_frame(const OutgoingFrame& frame, std::size_t body_bytes,
                      std::optional<Cookie> cookie);
    Status post_frame(const OutgoingFrame& frame, std::size_t body_bytes,
                      std::optional<Cookie> cookie);
    bool send_control(FrameKind kind, std::span<const std::byte> body = {});
    std::size_t attach_slices(const OutgoingFrame& frame, Slot& slot, std::span<Slice> pieces);
    bool take_gather_buffer(Slot& slot);
    std::size_t slices_kept(std::size_t slice_count) const noexcept;
    void return_credits();
    void announce_capacity();
    void advance_shutdown();
    void await_peer();
    void on_deadline();
    CreditOptions credit_options() const noexcept;
    void explain_rejection(Closed& closed) const;
    void beat();

    EventLoop& loop_;
    SessionOptions options_;
    Hello hello_;
    Hello peer_;
    Handler& handler_;
    bool accepted_ = false;
    std::size_t required_receive_bytes_ = least_receive_bytes; // what an accepting peer must have
    State state_ = State::opening;
    RegisteredBuffer slot_memory_;
    RegisteredBuffer receive_memory_;
    std::unique_ptr<RegisteredBuffer> gather_memory_; // made at first use
    std::vector<std::uint32_t> free_gathers_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::optional<Credits> credits_; // once the peer's count of receives is known
    std::uint32_t next_sequence_ = 0;
    std::uint32_t expected_sequence_ = 0;
    bool capacity_wanted_ = false;
    bool write_wanted_ = false; // it was a write that found no room
    bool sent_since_beat_ = false;
    TimePoint last_received_;
    Rejection rejection_{.code = RejectCode::none};
    std::optional<Closed> verdict_; // the reason we found ourselves
    Shutdown shutdown_;
    SendLedger ledger_;
    TimePoint close_by_ = TimePoint::max();
    bool* destroyed_ = nullptr;
    Timer deadline_; // connecting, handshake, shutdown
    Timer heartbeat_;
    std::unique_ptr<Connection> connection_; // last: goes first
};

} // namespace netio::inline v0_2
