// SPDX-License-Identifier: Apache-2.0
#pragma once

// The receiving half of a session: receive buffers, whose number follows the load, and arrivals
// that the user has not received yet, in order. While the user pauses, an arrival keeps its
// receive, so the peer gets no credit for it and stops sending when it has no more. Not
// thread-safe.

#include "netio/access/frame_seal.hpp"
#include "netio/base/byte_budget.hpp"
#include "netio/base/frame.hpp"
#include "netio/base/time.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/memory/keep_pool.hpp"
#include "netio/memory/receive_memory.hpp"
#include "netio/session/session_options.hpp"
#include "netio/transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// The memory of receives, by number: the initial piece, and pieces that are added while the window
// grows. A piece is removed as a whole, the last one first, once none of its receives is posted.
// Added pieces count against a budget that all sessions of a transport share.
//
// A buffer that the user keeps is lent. A spare buffer takes its place until it is back; spare
// buffers have a limit of their own. Without one the receive cannot be posted.
//
// With memory of the user, all buffers are parts of that memory, and so are the spare ones.
class ReceiveBuffers {
  public:
    struct Limits {
        std::size_t receive_bytes = 0;
        std::uint32_t count = 0; // of the initial piece
    };
    // Throws FabricError if not enough of the user's memory is free.
    ReceiveBuffers(const Limits& limits, ByteBudget& budget,
                   std::shared_ptr<ReceiveMemory> users = nullptr)
        : receive_bytes_{limits.receive_bytes}, slots_(limits.count), users_{std::move(users)},
          first_{users_ ? nullptr
                        : std::make_shared<RegisteredBuffer>(receive_bytes_ * limits.count)},
          first_count_{limits.count}, share_{budget} {
        if (users_) take_from_user();
    }
    // What is lent outlives this object, but not the devices that it is registered with.
    ~ReceiveBuffers() {
        if (users_) users_->forget(this);
        if (first_) release(first_, 0, first_count_);
        for (const Piece& piece : pieces_)
            release(piece.memory, piece.begin, buffers_in(piece));
        for (const auto& spare : all_spares_)
            spare->deregister();
    }
    ReceiveBuffers(const ReceiveBuffers&) = delete;
    ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;

    void register_memory(MemoryDomain& domain) {
        (users_ ? users_->buffer() : *first_).registration(domain);
    }
    std::size_t receive_bytes() const noexcept { return receive_bytes_; }
    // Number of receives with memory.
    std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }

    Slice slice(std::uint32_t index) noexcept {
        if (const KeepPool::Buffer& spare = slots_[index].spare; spare.memory)
            return spare.memory->slice(spare.offset, receive_bytes_);
        const Home home = home_of(index);
        return home.memory->slice(home.offset, receive_bytes_);
    }

    // Adds memory for more receives, with the next numbers. Returns false if the budget is
    // exhausted or the memory cannot be registered.
    [[nodiscard]] bool add(std::uint32_t more, MemoryDomain& domain) {
        const std::size_t bytes = more * receive_bytes_;
        if (!share_.take(bytes)) return false;
        const std::size_t before = slots_.size();
        try {
            auto memory = std::make_shared<RegisteredBuffer>(bytes);
            memory->registration(domain);
            const std::uint32_t begin = count();
            slots_.resize(slots_.size() + more);
            pieces_.push_back({.memory = std::move(memory), .begin = begin, .left = more});
        } catch (const std::exception&) { // the session continues with the memory that it has
            slots_.resize(before);
            share_.give(bytes);
            return false;
        }
        return true;
    }

    // Starts to remove the last piece. Nothing can be added until it is removed.
    void begin_to_drop() noexcept { dropping_ = !pieces_.empty(); }
    bool is_dropping() const noexcept { return dropping_; }
    // Whether this receive, which is not posted now, must not be posted again.
    bool is_dropped(std::uint32_t index) const noexcept {
        return dropping_ && index >= pieces_.back().begin;
    }
    // Takes a receive of the last piece out of use. Returns true if that removed the piece.
    bool drop(std::uint32_t index) {
        if (slots_[index].spare.memory)
            spares_.push_back(std::exchange(slots_[index].spare, {}).memory);
        if (--pieces_.back().left > 0) return false;
        const std::size_t bytes = pieces_.back().memory->size();
        release(pieces_.back().memory, pieces_.back().begin, buffers_in(pieces_.back()));
        slots_.resize(pieces_.back().begin);
        pieces_.pop_back();
        share_.give(bytes);
        dropping_ = false;
        return true;
    }

    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max() / 2;

    // Takes the buffer away from a receive that is not posted: the user keeps it.
    KeepPool::Buffer lend(std::uint32_t index) {
        Slot& slot = slots_[index];
        if (slot.spare.memory) return std::exchange(slot.spare, {});
        slot.is_home_lent = true;
        return {.memory = home_of(index).memory, .home = index};
    }
    // Gives a receive its own buffer or, while that is lent, a spare one, if all spare buffers in
    // use have at most `spare_bytes`. Returns false if there is none, or if a new one cannot be
    // registered. The user's memory is its own limit; with no_limit, memory of the library is used
    // when that is exhausted.
    [[nodiscard]] bool supply(std::uint32_t index, MemoryDomain& domain, std::size_t spare_bytes) {
        Slot& slot = slots_[index];
        if (!slot.is_home_lent) {
            if (slot.spare.memory) spares_.push_back(std::exchange(slot.spare, {}).memory);
            return true;
        }
        if (slot.spare.memory) return true;
        if (users_) {
            if (auto part = users_->take(receive_bytes_)) slot.spare = *std::move(part);
            if (slot.spare.memory || spare_bytes < no_limit) return slot.spare.memory != nullptr;
        }
        const std::size_t in_use = all_spares_.size() - spares_.size();
        if ((in_use + 1) * receive_bytes_ > spare_bytes) return false;
        if (spares_.empty()) {
            try {
                auto spare = std::make_shared<RegisteredBuffer>(receive_bytes_);
                spare->registration(domain);
                all_spares_.push_back(spare);
                spares_.push_back(std::move(spare));
            } catch (const std::exception&) { // the user will return the own one
                return false;
            }
        }
        slot.spare.memory = std::move(spares_.back());
        spares_.pop_back();
        return true;
    }
    bool has_free_spare() const noexcept { return !spares_.empty(); }
    // `wake` as in KeepPool: also for memory that other sessions return.
    void wake_on_return(const std::function<void()>& wake) {
        if (users_) users_->wake_on_return(this, wake);
    }
    // The bytes that may be lent: `keep_limit`, or the part of the user's memory beyond the
    // receives if that is less.
    std::size_t lend_limit(std::size_t keep_limit) const noexcept {
        return users_ ? std::min(keep_limit, users_->size() - count() * receive_bytes_)
                      : keep_limit;
    }
    // Takes a buffer that was lent and has been returned.
    void take_back(KeepPool::Buffer buffer) {
        if (!buffer.home) return spares_.push_back(std::move(buffer.memory));
        // Its piece may have been removed meanwhile, and another one added.
        if (*buffer.home < count() && home_of(*buffer.home).memory == buffer.memory)
            slots_[*buffer.home].is_home_lent = false;
    }

  private:
    struct Piece {
        std::shared_ptr<RegisteredBuffer> memory;
        std::uint32_t begin = 0; // number of its first receive
        std::uint32_t left = 0;  // receives that are still in use
    };
    struct Slot {
        KeepPool::Buffer spare;    // in place of the buffer in its piece
        bool is_home_lent = false; // also set if there is none: the memory is the user's
    };
    struct Home {
        std::shared_ptr<RegisteredBuffer>& memory;
        std::size_t offset = 0;
    };

    void take_from_user() {
        for (Slot& slot : slots_) {
            auto part = users_->take(receive_bytes_);
            if (!part) {
                throw FabricError{std::make_error_code(std::errc::not_enough_memory),
                                  "receive_memory has " + std::to_string(users_->size()) +
                                      " bytes, and not enough of it is free for " +
                                      std::to_string(slots_.size()) + " buffers of " +
                                      std::to_string(receive_bytes_) +
                                      " bytes; give it more, or keep less"};
            }
            slot.spare = *std::move(part);
            slot.is_home_lent = true;
        }
    }
    std::uint32_t buffers_in(const Piece& piece) const noexcept {
        return static_cast<std::uint32_t>(piece.memory->size() / receive_bytes_);
    }
    // The session no longer needs this memory. The part of it that is not lent is returned to the
    // system, even if a message in it is kept for a long time.
    void release(const std::shared_ptr<RegisteredBuffer>& memory, std::uint32_t begin,
                 std::uint32_t buffers) noexcept {
        memory->deregister();
        if (memory.use_count() == 1) return; // all of it is freed
        for (std::uint32_t i = 0; i < buffers; ++i) {
            std::uint32_t end = i;
            while (end < buffers && !slots_[begin + end].is_home_lent)
                ++end;
            if (end > i) memory->release(i * receive_bytes_, (end - i) * receive_bytes_);
            i = end;
        }
    }

    Home home_of(std::uint32_t index) noexcept {
        if (index < first_count_) return {first_, index * receive_bytes_};
        // Each piece is as large as all before it, so there are few.
        std::size_t at = pieces_.size() - 1;
        while (pieces_[at].begin > index)
            --at;
        return {pieces_[at].memory, (index - pieces_[at].begin) * receive_bytes_};
    }

    std::size_t receive_bytes_;
    std::vector<Slot> slots_; // by number of the receive
    std::shared_ptr<ReceiveMemory> users_;
    std::shared_ptr<RegisteredBuffer> first_;
    std::uint32_t first_count_;
    ByteShare share_;
    std::vector<Piece> pieces_;
    bool dropping_ = false;
    std::vector<std::shared_ptr<RegisteredBuffer>> all_spares_;
    std::vector<std::shared_ptr<RegisteredBuffer>> spares_; // not in use
};

// How many receives a session should have posted: more if the peer waits for credits over a long
// round trip, fewer if they are not used. It knows what was granted, what has arrived, and how long
// this side was idle; no clock, no memory. A plain value.
//
//     on_granted(16, rested)   the peer may have sent 16 messages since the session began
//     on_arrived(...)          a message arrived; whether it had waited for a credit
//     wanted()                 doubles once two consecutive waits exceeded a millisecond
//
// A wait counts from the grant of the credit, and only while this side is idle: while it is busy,
// the peer does not wait because of the distance. What the peer reports is only a hint: the limit
// of this side holds.
class ReceiveWindowAutotuner {
  public:
    // With round trips up to this, the initial window suffices.
    static constexpr Duration short_trip = std::chrono::milliseconds{1};
    // A single long wait may be due to this machine.
    static constexpr unsigned trips_to_grow = 2;
    // A window that is unused for this time shrinks.
    static constexpr Duration period = std::chrono::seconds{10};

    // The initial and the maximum number of receives.
    ReceiveWindowAutotuner(std::uint32_t least, std::uint32_t most) noexcept
        : least_{least}, most_{std::max(least, most)}, count_{least}, granted_{least} {}

    // Call it when this side has granted credits. `granted`: how many messages the peer may have
    // sent in total since the session began (initially the number of receives). `rested`: the total
    // idle time of this side.
    void on_granted(std::uint64_t granted, Duration rested) noexcept {
        if (granted == granted_) return;
        if (!asked_) asked_ = Question{.before = granted_, .rested = rested};
        granted_ = granted;
    }

    // Call it for each message. `waited`: it had to wait for a credit. `rested`, `now`: of this
    // side's loop.
    void on_arrived(bool waited, Duration rested, TimePoint now) noexcept {
        const std::uint64_t number = arrived_++;
        if (waited) last_wait_ = now;
        if (asked_ && number + 1 >= asked_->before) answer(number, waited, rested);
        look_back(now);
    }

    // The number of receives that there should be.
    std::uint32_t wanted() const noexcept { return wanted_.value_or(count_); }
    // Call it when the number of receives was changed to wanted(), or could not be changed.
    // `count`: their number now.
    void on_changed(std::uint32_t count) noexcept {
        count_ = count;
        wanted_.reset();
        asked_.reset();
        long_trips_ = 0;
    }

  private:
    // A measurement: when does the first message arrive that this grant permits?
    struct Question {
        std::uint64_t before = 0; // granted without it
        Duration rested{};
    };

    void answer(std::uint64_t number, bool waited, Duration rested) noexcept {
        // The last credit is reserved for the session itself, so a service waits with one left. A
        // message that did not wait, or not for this grant, was sent later than possible.
        const Duration trip = rested - asked_->rested;
        const bool is_answer = waited && number <= asked_->before;
        asked_.reset();
        if (!is_answer) return;
        long_trips_ = trip > short_trip ? long_trips_ + 1 : 0;
        if (long_trips_ < trips_to_grow) return;
        trip_ = trip;
        long_trips_ = 0;
        if (count_ < most_) wanted_ = count_ > most_ / 2 ? most_ : 2 * count_;
    }

    // Shrinks the window if no message waited for a whole period, and a quarter of it would have
    // sufficed.
    void look_back(TimePoint now) noexcept {
        if (count_ == least_ || now - begin_ < period) {
            if (count_ == least_) begin_ = now, begin_arrived_ = arrived_;
            return;
        }
        const auto in_a_trip = static_cast<double>(arrived_ - begin_arrived_) *
                               static_cast<double>(trip_.count()) /
                               static_cast<double>((now - begin_).count());
        if (last_wait_ < begin_ && in_a_trip < static_cast<double>(count_) / 4) {
            wanted_ = std::max(least_, (count_ + 1) / 2);
        }
        begin_ = now;
        begin_arrived_ = arrived_;
    }

    std::uint32_t least_;
    std::uint32_t most_;
    std::uint32_t count_;
    std::optional<std::uint32_t> wanted_;
    std::uint64_t granted_;
    std::uint64_t arrived_ = 0;
    std::optional<Question> asked_;
    unsigned long_trips_ = 0;
    Duration trip_{};
    TimePoint last_wait_ = TimePoint::min();
    TimePoint begin_{}; // of the period
    std::uint64_t begin_arrived_ = 0;
};

class ReceiveWindow {
  public:
    // One message from the peer.
    struct Arrival {
        std::optional<std::uint32_t> receive; // that it used
        std::uint8_t kind = 0;                // FrameKind::written: `notice`, and no content
        std::uint8_t flags = 0;
        std::uint32_t notice = 0;
        std::span<const std::byte> body; // the part that is still to be delivered
        bool continued = false;
    };

    ReceiveWindow(std::size_t receive_bytes, const SessionOptions& options, ByteBudget& budget);
    ~ReceiveWindow();
    ReceiveWindow(const ReceiveWindow&) = delete;
    ReceiveWindow& operator=(const ReceiveWindow&) = delete;

    void register_memory(MemoryDomain& domain) { memory_.register_memory(domain); }
    std::uint32_t receive_count() const noexcept { return memory_.count(); }
    std::span<std::byte> content(std::uint32_t index, std::size_t bytes) noexcept {
        return {memory_.slice(index).data, bytes};
    }
    // Posts a receive. Throws FabricError as Connection::post_receive. Returns false if the
    // connection has broken.
    bool post(Connection& connection, std::uint32_t index) {
        const Slice slice = memory_.slice(index);
        return connection.post_receive({&slice, 1}, Cookie{index}) == Status::ok;
    }

    // --- size: as the autotuner wants it, limited by memory and by the connection

    ReceiveWindowAutotuner& autotuner() noexcept { return autotuner_; }
    // Starts to shrink if the autotuner wants it. Returns true if grow() is to be called.
    bool is_to_grow() noexcept {
        if (autotuner_.wanted() < memory_.count()) memory_.begin_to_drop();
        return autotuner_.wanted() > memory_.count() && !memory_.is_dropping();
    }
    // Returns how many more receives are posted; 0: nothing changed, or the connection has broken.
    std::uint32_t grow(Connection& connection);
    // Whether a processed receive is posted again. If not, retire() it: the window shrinks.
    bool is_posted_again(std::uint32_t index) const noexcept { return !memory_.is_dropped(index); }
    void retire(std::uint32_t index);
    // The number of receives, if the peer does not know it yet. Resets that.
    std::optional<std::uint32_t> take_news() noexcept {
        return told_ == memory_.count() ? std::nullopt : std::optional{told_ = memory_.count()};
    }

    // Whether the peer's next frame has this number. If so, advances to the next number.
    bool is_next(std::uint32_t sequence) noexcept {
        if (sequence != expected_sequence_) return false;
        ++expected_sequence_;
        return true;
    }
    bool has_received() const noexcept { return expected_sequence_ > 0; }

    // Call it before the first sealed frame: from now on all frames are sealed.
    void open_with(access::FrameOpener opener) { opener_.emplace(std::move(opener)); }
    // Verifies the seal, decrypts in place, and removes the tag. Returns false if this is not the
    // peer's next frame.
    [[nodiscard]] bool open(std::span<std::byte>& frame) {
        return !opener_ || opener_->open(frame);
    }

    // Appends an arrival. There is space for each receive that the peer knows of.
    void push(const Arrival& arrival) noexcept {
        if (is_of_service(arrival)) {
            ++frames_;
            bytes_ += arrival.body.size();
        }
        arrivals_[(first_ + count_) % arrivals_.size()] = arrival;
        ++count_;
    }
    Arrival& front() noexcept { return arrivals_[first_]; }
    void pop() noexcept {
        loan_.reset();
        first_ = (first_ + 1) % arrivals_.size();
        --count_;
    }
    void clear() noexcept { count_ = 0; }
    bool is_empty() const noexcept { return count_ == 0; }

    // Keeps the front, so that `rest`, the undelivered end of its body, is delivered later. If
    // `rest` is empty and the body is not, all of it was delivered.
    void put_back(std::span<const std::byte> rest) noexcept {
        front().continued = has_rest_ = !rest.empty() || front().body.empty();
        front().body = rest;
    }
    // Whether put_back() was called. Resets it.
    bool take_rest() noexcept { return std::exchange(has_rest_, false); }

    // --- keeping: the user holds what has arrived longer than its handler runs

    // Called on any thread, while is_starved(), when memory is returned.
    void wake_on_return(std::function<void()> wake) { wake_ = std::move(wake); }
    // Removes the limit of kept bytes: the connection ends in order, and must receive for that.
    void lift_keep_limit() {
        keep_limit_ = std::numeric_limits<std::size_t>::max();
        if (is_starved()) wake_();
    }
    // Whether the lent memory stays within half of the limit if one more receive buffer is lent.
    bool may_keep_buffer() const {
        return !pool_ ||
               pool_->lent_bytes() + memory_.receive_bytes() <= memory_.lend_limit(keep_limit_) / 2;
    }
    // Keeps bytes of the front.
    KeptBytes keep(std::span<const std::byte> bytes, TimePoint now);
    // Keeps the memory of a message that was put together from fragments.
    KeptBytes keep(std::vector<std::byte> message, TimePoint now);
    KeepStats kept(TimePoint now) const { return pool_ ? pool_->stats(now) : KeepStats{}; }
    // Call it when the message of this receive was processed. Returns whether the receive can be
    // posted again: it has a buffer, and not too much is lent. If not, it is starved until memory
    // is returned.
    [[nodiscard]] bool supply(std::uint32_t index, MemoryDomain& domain);
    // The receives that are starved; the caller processes them again.
    std::vector<std::uint32_t> take_starved() noexcept { return std::exchange(starved_, {}); }
    bool is_starved() const noexcept { return !starved_.empty(); }
    std::uint32_t starved_count() const noexcept {
        return static_cast<std::uint32_t>(starved_.size());
    }
    // A starved receive for which a spare buffer is free now; the caller processes it again.
    std::optional<std::uint32_t> take_one_starved() noexcept {
        if (starved_.empty() || !memory_.has_free_spare()) return std::nullopt;
        const std::uint32_t index = starved_.back();
        starved_.pop_back();
        return index;
    }

    void pause() noexcept { paused_ = true; }
    // Returns whether it was paused.
    bool resume() noexcept {
        const bool was_paused = paused_;
        paused_ = false;
        return was_paused;
    }
    bool is_paused() const noexcept { return paused_; }
    // Whether an arrival can be delivered. While paused, messages of the service wait, and so do
    // later messages of the session itself.
    bool has_work() const noexcept {
        return count_ > 0 && (!paused_ || !is_of_service(arrivals_[first_]));
    }

    // Messages of the service so far.
    std::uint64_t frames() const noexcept { return frames_; }
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    bool has_buffer(std::uint32_t index, MemoryDomain& domain);
    static bool is_of_service(const Arrival& arrival) noexcept {
        return arrival.kind >= first_service_kind ||
               arrival.kind == static_cast<std::uint8_t>(FrameKind::written);
    }

    ReceiveBuffers memory_;
    std::vector<Arrival> arrivals_; // a ring
    ReceiveWindowAutotuner autotuner_;
    std::uint32_t told_; // number of receives that the peer knows
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::uint32_t expected_sequence_ = 0;
    std::optional<access::FrameOpener> opener_;
    std::uint64_t frames_ = 0;
    std::uint64_t bytes_ = 0;
    bool paused_ = false;
    bool has_rest_ = false;
    std::size_t keep_limit_;
    std::shared_ptr<KeepPool> pool_;         // made when something is kept
    std::shared_ptr<const void> loan_;       // of the front's buffer
    std::vector<KeepPool::Buffer> returned_; // used by has_buffer()
    std::vector<std::uint32_t> starved_;
    std::function<void()> wake_;
};

} // namespace netio::inline v0_3
