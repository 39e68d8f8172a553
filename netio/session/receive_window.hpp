// SPDX-License-Identifier: Apache-2.0
#pragma once

// What has arrived on a session and is not done with yet, in the order of its arrival, and the
// memory that it lies in. While the user does not want more, it stays here and its receive is not
// posted again: so the peer gets no credit for it, and stops when it has no more. Not thread-safe.

#include "netio/base/frame.hpp"
#include "netio/session/frame_seal.hpp"
#include "netio/session/receive_memory.hpp"
#include "netio/session/session_options.hpp"
#include "netio/session/window_pace.hpp"
#include "netio/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::inline v0_2 {

class ReceiveWindow {
  public:
    // One message of the peer's.
    struct Arrival {
        std::optional<std::uint32_t> receive; // that it used up
        std::uint8_t kind = 0;                // FrameKind::written: `notice`, and no content
        std::uint8_t flags = 0;
        std::uint32_t notice = 0;
        std::span<const std::byte> body; // what is still to be handed over of it
        bool continued = false;
    };

    ReceiveWindow(std::size_t receive_bytes, const SessionOptions& options, ByteBudget& budget);

    void register_memory(MemoryDomain& domain) { memory_.register_memory(domain); }
    std::uint32_t receive_count() const noexcept { return memory_.count(); }
    std::span<std::byte> content(std::uint32_t index, std::size_t bytes) noexcept {
        return {memory_.slice(index).data, bytes};
    }
    // Throws FabricError as Connection::post_receive. False: the connection has broken.
    bool post(Connection& connection, std::uint32_t index) {
        const Slice slice = memory_.slice(index);
        return connection.post_receive({&slice, 1}, Cookie{index}) == Status::ok;
    }

    // --- its size: as the pace wants it, as far as there is memory and the connection takes more.

    WindowPace& pace() noexcept { return pace_; }
    // Begins to shrink, if that is wanted. True: grow() is to be called.
    bool is_to_grow() noexcept {
        if (pace_.wanted() < memory_.count()) memory_.begin_to_drop();
        return pace_.wanted() > memory_.count() && !memory_.is_dropping();
    }
    // So many more receives are posted now; 0: nothing is changed, or the connection has broken.
    std::uint32_t grow(Connection& connection);
    // What was done with is to be posted again. False: retire(), as the window shrinks.
    bool is_kept(std::uint32_t index) const noexcept { return !memory_.is_dropped(index); }
    void retire();
    // How many receives there are, if the peer does not know. Once.
    std::optional<std::uint32_t> take_news() noexcept {
        return told_ == memory_.count() ? std::nullopt : std::optional{told_ = memory_.count()};
    }

    // The next frame of the peer has this number. False: it is another one.
    bool is_next(std::uint32_t sequence) noexcept {
        if (sequence != expected_sequence_) return false;
        ++expected_sequence_;
        return true;
    }
    bool has_heard() const noexcept { return expected_sequence_ > 0; }

    // From the next frame on.
    void open_with(FrameOpener opener) { opener_.emplace(std::move(opener)); }
    // Takes off what protects it, if anything does. False: it is not what the peer has sent next.
    [[nodiscard]] bool open(std::span<std::byte>& frame) {
        return !opener_ || opener_->open(frame);
    }

    // There is a place for each receive that the peer knows of.
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
        first_ = (first_ + 1) % arrivals_.size();
        --count_;
    }
    void clear() noexcept { count_ = 0; }
    bool is_empty() const noexcept { return count_ == 0; }
    // The peer has hardly a credit left, by our doing.
    bool is_full() const noexcept { return count_ + 2 >= memory_.count(); }

    // The rest of the front's body is handed over once more.
    void keep(std::span<const std::byte> rest) noexcept {
        front().body = rest;
        front().continued = kept_ = !rest.empty();
    }
    // Whether it was so. Once.
    bool take_kept() noexcept { return std::exchange(kept_, false); }

    void pause() noexcept { paused_ = true; }
    // False: it was not paused.
    bool resume() noexcept {
        const bool was_paused = paused_;
        paused_ = false;
        return was_paused;
    }
    bool is_paused() const noexcept { return paused_; }
    // What is the session's own does not wait, unless something of the service does before it.
    bool has_work() const noexcept {
        return count_ > 0 && (!paused_ || !is_of_service(arrivals_[first_]));
    }

    // Of the service, so far.
    std::uint64_t frames() const noexcept { return frames_; }
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    static bool is_of_service(const Arrival& arrival) noexcept {
        return arrival.kind >= first_service_kind ||
               arrival.kind == static_cast<std::uint8_t>(FrameKind::written);
    }

    ReceiveMemory memory_;
    std::vector<Arrival> arrivals_; // a ring
    WindowPace pace_;
    std::uint32_t told_; // receives that the peer knows of
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::uint32_t expected_sequence_ = 0;
    std::optional<FrameOpener> opener_;
    std::uint64_t frames_ = 0;
    std::uint64_t bytes_ = 0;
    bool paused_ = false;
    bool kept_ = false;
};

} // namespace netio::inline v0_2
