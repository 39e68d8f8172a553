// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sending half of a session, and its flow control.

// Flow control by credits: permissions to send, so that every message finds a posted receive.
//
// Every message on a connection, of either direction and of every kind, uses one receive that the
// peer has posted. One receive is reserved, so that credits can be returned when everything else
// must wait. One object per endpoint, a plain value; not thread-safe. Messages are:
//   frame   returns the credits that are owed; may use the reserve if there are any
//   write   a remote write with notification by the fabric: it has no space for credits
//   own     a frame of the session itself, with nothing but credits for example
// On a two-way connection only own frames use the reserve: a peer whose user has paused keeps the
// receive of any other frame, and then nothing could return credits for what the peer sends.
// The rules, R13 and R14 of docs/stream-protocol.md, are explored exhaustively in
// tests/model/credits_model_test.cpp: no receive queue is overrun, no endpoint waits forever, and
// idle endpoints become silent.
//
//     if (credits.can_send_frame()) { frame.credits = credits.on_frame_sent(); post(frame); }
//     else if (credits.must_return()) { ...the same, with nothing but the credits in it... }

#include "netio/access/frame_seal.hpp"
#include "netio/base/byte_budget.hpp"
#include "netio/base/check.hpp"
#include "netio/base/frame.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/session/frames.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// One receive for a message, one in reserve for credits, and one more, so that the threshold at
// which credits are returned can be reached.
inline constexpr std::uint32_t least_receive_count = 3;
inline constexpr std::uint32_t most_receive_count = 32'767; // the wire carries 15 bits

struct CreditOptions {
    std::uint32_t receive_count = 0;      // posted here, see least_receive_count
    std::uint32_t peer_receive_count = 0; // posted by the peer, as it announced when connecting
    // Credits are returned without waiting for another frame when this many are owed; from 2 to
    // receive_count - 1. With 1, two idle endpoints would return each other's credits forever. 0:
    // half of receive_count.
    std::uint32_t return_threshold_count = 0;
    bool two_way = false; // both users send messages, and either may pause
};

// A violation of the credit rules by the peer; the connection cannot be used any more.
enum class [[nodiscard]] CreditError : std::uint8_t{
    none,
    overrun,     // more credits returned than were used
    unpermitted, // a message for which the peer had no credit
};

class Credits {
  public:
    // Throws std::invalid_argument naming the value that is out of range.
    explicit Credits(const CreditOptions& options)
        : options_{options}, available_{options.peer_receive_count}, granted_{
                                                                         options.receive_count} {
        const std::uint32_t most = options_.receive_count - 1;
        require(options_.receive_count >= least_receive_count &&
                    options_.receive_count <= most_receive_count,
                "receive_count", options_.receive_count);
        require(options_.peer_receive_count >= least_receive_count &&
                    options_.peer_receive_count <= most_receive_count,
                "peer_receive_count", options_.peer_receive_count);
        std::uint32_t& threshold = options_.return_threshold_count;
        if (threshold == 0) threshold = half_of(options_.receive_count);
        require(threshold >= 2 && threshold <= most, "return_threshold_count", threshold);
        threshold_ = threshold;
    }

    bool can_send_frame() const noexcept {
        return options_.two_way ? available_ > reserve() : can_send_own_frame();
    }
    bool can_send_own_frame() const noexcept {
        return available_ > reserve() ||
               (available_ == 1 && owed_ > 0); // the peer gets a credit by it
    }
    bool can_write() const noexcept { return available_ > reserve(); }
    // Whether a credit frame must be sent now; it may use the reserve.
    bool must_return() const noexcept { return available_ > 0 && owed_ >= threshold_; }

    // Call it before the last frame of the session: that frame may use the reserve, which is not
    // needed after it.
    void give_up_reserve() noexcept { last_ = true; }

    // Returns the credits to put into the frame.
    std::uint32_t on_frame_sent() {
        NETIO_CHECK_MSG(can_send_own_frame() || must_return(), "a frame sent without a credit");
        use_one();
        const std::uint32_t returned = owed_;
        granted_ += returned;
        owed_ = 0;
        return returned;
    }
    void on_write_sent() {
        NETIO_CHECK_MSG(can_write(), "a write sent without a credit");
        use_one();
    }

    // Call it for each message; `returned`: the credits in it (a write: 0).
    CreditError on_received(std::uint32_t returned) {
        if (returned > options_.peer_receive_count - available_) return CreditError::overrun;
        if (owed_ == options_.receive_count) return CreditError::unpermitted;
        available_ += returned;
        ++received_;
        return CreditError::none;
    }
    // Call it when the receive of a message is posted again. Post it soon, whatever the user does,
    // because the peer's progress depends on it.
    void on_reposted() {
        NETIO_CHECK_MSG(owed_ < options_.receive_count, "more receives posted than there are");
        ++owed_;
    }

    // --- windows that change ---

    // Call it when `more` receives were posted; the peer is notified at once.
    void grow(std::uint32_t more) {
        NETIO_CHECK_MSG(more <= most_receive_count - options_.receive_count, "too many receives");
        options_.receive_count += more;
        granted_ += more;
        pace_returns();
    }
    // Call it when a message arrived and its receive is not posted again. Until the peer is
    // notified, it assumes that the receive is still in use.
    void on_retired() {
        NETIO_CHECK_MSG(options_.receive_count > least_receive_count, "no receive to spare");
        --options_.receive_count;
        pace_returns();
    }
    // The peer announces its number of receives. The credits of removed receives are used, and will
    // not be returned.
    CreditError on_window(std::uint32_t count) {
        if (count < least_receive_count || count > most_receive_count || available_ > count) {
            return CreditError::overrun;
        }
        if (count > options_.peer_receive_count) available_ += count - options_.peer_receive_count;
        options_.peer_receive_count = count;
        pace_returns();
        return CreditError::none;
    }
    // The user keeps the memory of `count` receives, which therefore are not posted. Credits of the
    // others are returned earlier, since fewer can be owed.
    void on_missing(std::uint32_t count) noexcept {
        if (missing_ == count) return;
        missing_ = count;
        pace_returns();
    }
    std::uint32_t receive_count() const noexcept { return options_.receive_count; }
    std::uint32_t peer_receive_count() const noexcept { return options_.peer_receive_count; }
    // Number of messages that the peer may have sent since the beginning.
    std::uint64_t granted() const noexcept { return granted_; }
    // Whether the peer, once it has what was returned to it, has more than its reserve. If not, it
    // may be silent because it has to be: this side keeps what arrived, or cannot return credits
    // because it has none itself.
    bool can_peer_send() const noexcept { return granted_ - received_ > 1; }

    std::uint32_t available() const noexcept { return available_; }
    std::uint32_t owed() const noexcept { return owed_; }

  private:
    // For returning credits only.
    std::uint32_t reserve() const noexcept { return last_ ? 0 : 1; }
    static void require(bool condition, const char* option, std::uint32_t value) {
        if (condition) return;
        throw std::invalid_argument{std::string{"credit option "} + option + " is " +
                                    std::to_string(value) +
                                    ", but receive counts go from 3 to 32767 and the threshold "
                                    "from 2 to receive_count - 1"};
    }
    static constexpr std::uint32_t most_parts = 8;
    static std::uint32_t half_of(std::uint32_t count) noexcept { return count < 4 ? 2 : count / 2; }
    // A window grows over long round trips. If credits were returned in halves, the peer would have
    // none for half of each round trip. So they are returned in eight parts, or fewer if the peer
    // has fewer receives, and not more often than before the window grew.
    void pace_returns() noexcept {
        const std::uint32_t parts = std::min(most_parts, options_.peer_receive_count - 1);
        threshold_ =
            std::min(std::max(options_.return_threshold_count, options_.receive_count / parts),
                     half_of(options_.receive_count - std::min(missing_, options_.receive_count)));
    }
    void use_one() noexcept {
        if (available_ > 0) --available_;
    }

    CreditOptions options_;
    std::uint32_t threshold_ = 0; // of owed credits
    std::uint32_t missing_ = 0;   // receives
    std::uint32_t available_;
    std::uint32_t owed_ = 0;
    std::uint64_t granted_;
    std::uint64_t received_ = 0; // messages
    bool last_ = false;
};

} // namespace netio::inline v0_3

// The sending half of a session: flow control by credits, send slots with their memory, and the
// frames that the peer has not acknowledged. It posts frames and writes to the connection. Not
// thread-safe.

namespace netio::inline v0_3 {

// Counts the messages that the peer is not known to have taken: it takes them in order and returns
// a credit for each. Only messages of the service are reported; the session's own only take part in
// the order. A plain value.
class UnackedFrames {
  public:
    void on_service_sent() noexcept {
        ++messages_;
        ++sent_;
    }
    void on_own_sent() { own_.push_back(messages_++); }
    void on_credits(std::uint64_t returned) noexcept {
        taken_ += returned;
        while (!own_.empty() && own_.front() < taken_)
            own_.pop_front();
    }

    // Messages of the service: all that were sent, and those of them without acknowledgement.
    std::uint64_t sent() const noexcept { return sent_; }
    std::uint64_t outstanding() const noexcept { return messages_ - taken_ - own_.size(); }

  private:
    std::uint64_t messages_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t sent_ = 0;
    std::deque<std::uint64_t> own_; // numbers of the session's own messages, not yet taken
};

// The session's own memory of each send slot: a header with a small body and a tag, and a larger
// buffer where a frame is gathered or encrypted. Larger buffers count against a budget that all
// sessions of a transport share. They are released when the frame was sent; a few are kept for
// later frames.
class SendBufferPool {
  public:
    // Offset of the tag in a slot, for a frame whose body lies elsewhere.
    static constexpr std::size_t tag_at = frame_header_bytes + frame_extension_limit;

    SendBufferPool(std::size_t slot_count, ByteBudget& budget)
        : heads_{slot_count * slot_bytes}, gathers_(slot_count), budget_{budget}, share_{budget} {
        kept_.reserve(slot_count);
    }

    // Called before there is an endpoint, so that a failure to register is detected early.
    void register_in(MemoryDomain& domain) { heads_.registration(domain); }
    Slice head(std::uint32_t slot) noexcept { return heads_.slice(slot * slot_bytes, slot_bytes); }
    // Returns a buffer for a slot that has none. Its size grows with the gathered frames, not with
    // the size that the peer announces. Returns null if the budget is exhausted while other slots
    // of the session have buffers. A first or a small buffer is always granted, because can_send()
    // has promised it.
    RegisteredBuffer* gather(std::uint32_t slot, std::size_t bytes, std::size_t limit);
    // Frees the slot, because its frame was sent.
    void release(std::uint32_t slot) noexcept;
    // Whether gather() has failed, and no buffer was released since.
    bool is_short() const noexcept { return is_short_; }
    // Bytes that are in use, or kept for later frames.
    std::size_t held() const noexcept { return share_.held(); }

  private:
    using Buffer = std::unique_ptr<RegisteredBuffer>;
    static constexpr std::size_t slot_bytes = tag_at + access::seal_tag_bytes;

    Buffer take_kept() noexcept;
    void drop(Buffer& memory) noexcept;
    Buffer allocate(std::size_t bytes);

    RegisteredBuffer heads_;
    std::vector<Buffer> gathers_; // by slot
    std::vector<Buffer> kept_;
    std::size_t kept_bytes_ = 0;
    std::size_t used_count_ = 0;
    bool is_short_ = false;
    ByteBudget& budget_;
    ByteShare share_;
};

class SendWindow {
  public:
    // `budget`: limits what all sessions copy in order to send it.
    SendWindow(std::size_t slot_count, ByteBudget& budget);

    // Known once the peer's hello is.
    struct Terms {
        std::size_t receive_count = 0;      // of this side
        std::size_t peer_receive_count = 0; // of the peer
        std::size_t frame_bytes = 0;        // the largest frame that peer and provider take
        std::size_t segment_limit = 1;
        bool by_immediate = false; // the fabric notifies the peer of writes
        bool two_way = false;      // as CreditOptions
    };
    void open(const Terms& terms);
    bool is_open() const noexcept { return credits_.has_value(); }
    // Seals all frames from now on. The peer has room for the seal after the largest frame.
    void seal_with(access::FrameSealer sealer) { sealer_.emplace(std::move(sealer)); }
    // Called before there is an endpoint, so that a failure to register is detected early.
    void register_memory(MemoryDomain& domain) { memory_.register_in(domain); }

    bool can_send() const noexcept;
    bool can_write() const noexcept;
    // Both return whether a send (a write) is possible now. If not, take_writable_request() returns
    // true as soon as it is.
    bool request_send() noexcept;
    bool request_write() noexcept;
    // Whether a send or write that was impossible when requested is possible now. Resets the
    // request.
    bool take_writable_request() noexcept;

    // Return ok, again, closed (the connection), too_large or too_many_segments. Both throw
    // FabricError if memory cannot be registered.
    Status send(Connection& connection, const OutgoingFrame& frame, std::optional<Cookie> cookie);
    Status write(Connection& connection, const OutgoingWrite& write, Cookie cookie);
    // A frame of the session itself, which may use the reserved slot and credit.
    bool can_send_own() const noexcept;
    Status send_own(Connection& connection, FrameKind kind, std::span<const std::byte> body = {});
    // The last frame of all. Returns `again` if there is no credit at all.
    Status send_last(Connection& connection, FrameKind kind, std::span<const std::byte> body);
    // Slices of a frame that are sent without copying; the remaining ones are gathered.
    std::size_t segment_limit() const noexcept;

    struct Released {
        std::optional<Cookie> cookie; // of the frame, if it had one
        bool own = false;             // a frame of the session itself
    };
    // Frees the slot, because the fabric has completed its frame or write. Returns whose it was.
    Released release(Cookie slot) noexcept;

    CreditError on_received(std::uint32_t credits);
    // The peer announces its number of receives.
    CreditError on_window(std::uint32_t count);
    // The credits, which the caller informs of what happens to this side's receives. Only if open.
    Credits& flow() noexcept { return *credits_; }
    // Whether a frame with nothing but credits is due: many are owed, or a heartbeat was sent. The
    // latter lets an otherwise idle peer shrink a window that has grown: after a heartbeat, such
    // frames use each of its receives once. They leave enough credits to the service.
    bool must_send_credit() const noexcept;

    bool is_idle() const noexcept { return free_slots_.size() == slots_.size(); }
    std::size_t body_limit() const noexcept { return body_limit_; }
    const UnackedFrames& unacked() const noexcept { return unacked_; }
    // Only those of sending.
    SessionCounters counters() const noexcept;

  private:
    // One frame or write in the fabric. The header of a frame lives in memory_ until it is sent.
    struct Slot {
        std::optional<Cookie> cookie;
        bool own = false;
    };
    // What the service is notified of once it is possible.
    struct Wishes {
        bool send = false;
        bool write = false;
        bool waited = false; // for credits, and no frame of the service was sent since
    };
    struct Sweep {
        std::uint32_t usual = 0; // the peer's receives at the beginning
        std::uint32_t left = 0;  // credit frames
    };

    Status post(Connection& connection, const OutgoingFrame& frame, std::size_t body_bytes,
                std::optional<Cookie> cookie);
    Status refuse(bool& wanted) noexcept;
    // Each returns the number of pieces; 0: there is no memory now.
    std::size_t lay_out(const OutgoingFrame& frame, std::uint32_t slot, std::size_t body_bytes,
                        std::span<Slice> pieces);
    std::size_t attach(std::span<const Slice> slices, std::uint32_t slot, std::span<Slice> pieces);
    std::size_t seal(const OutgoingFrame& frame, std::uint32_t slot, std::size_t body_bytes,
                     std::size_t behind, std::span<Slice> pieces);

    SendBufferPool memory_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::optional<Credits> credits_;
    UnackedFrames unacked_;
    std::optional<access::FrameSealer> sealer_;
    std::uint32_t next_sequence_ = 0;
    std::size_t body_limit_ = 0;
    std::size_t segment_limit_ = 1;
    SessionCounters counters_;
    bool by_immediate_ = false;
    Wishes wishes_;
    Sweep sweep_;
};

} // namespace netio::inline v0_3
