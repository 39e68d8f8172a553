// SPDX-License-Identifier: Apache-2.0
#include "apps/common/player.hpp"

#include "apps/common/parse.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "pubsub/publisher/stamp_clock.hpp"

#include <fmt/format.h>

#include <deque>
#include <span>
#include <utility>

namespace apps::replay {

using netio::Status;

bool read_rate(const std::string& text, std::optional<double>& factor) {
    if (text == "max" || text == "recorded") {
        factor = text == "max" ? std::nullopt : std::optional{1.0};
        return true;
    }
    if (!text.ends_with('x')) return false;
    const auto number = parse_rate(text.substr(0, text.size() - 1));
    if (!number || *number < 1e-6 || *number > 1e6) return false;
    factor = *number;
    return true;
}

class Player::State {
  public:
    State(netio::EventLoop& loop, netio::RecordingReader reader, Options options,
          std::uint64_t& messages_left, std::function<void()> on_end)
        : options_{std::move(options)}, messages_left_{messages_left}, on_end_{std::move(on_end)},
          pace_{options_.factor}, ahead_{std::move(reader),
                                         {.replacements = options_.replacements,
                                          .fids = options_.fids,
                                          .repeat = options_.repeat}},
          watch_{loop, ahead_.event_descriptor(), netio::DescriptorWatch::Interest::readable,
                 [this] {
                     ahead_.clear_event();
                     pump();
                 }},
          timer_{loop, [this] { pump(); }} {}

    void begin(Socket socket) {
        socket_ = socket;
        has_begun_ = true;
        timer_.start(netio::Duration::zero());
    }
    void pump() {
        if (!has_begun_ || has_ended_) return;
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < messages_per_turn && bytes < bytes_per_turn; ++i) {
            if (messages_left_ == 0) return end();
            if (!take_block()) return;
            Taken& taken = taken_.back();
            const ReplayMessage& message = taken.block->messages[taken.next];
            const netio::TimePoint now = netio::Clock::now();
            const netio::TimePoint due = pace_.due(message.after, now);
            if (due > now) return timer_.start_at(due);
            if (!publish(taken, message)) return;
            pace_.published(due, now);
            bytes += message.bytes;
        }
        timer_.start(netio::Duration::zero());
    }
    void completed(netio::Cookie cookie) {
        --taken_
              .at(static_cast<std::size_t>(static_cast<std::uint64_t>(cookie) -
                                           options_.first_cookie - first_taken_))
              .in_flight;
        release();
    }
    void stop() {
        has_ended_ = true;
        timer_.cancel();
    }

    Options options_;
    std::uint64_t& messages_left_;
    std::function<void()> on_end_;
    Pace pace_;
    std::string failure_;
    bool has_begun_ = false;
    bool has_ended_ = false;
    std::uint64_t without_subscribers_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> published_;
    ReadAhead ahead_;

  private:
    // A turn is limited, so that the loop serves others.
    static constexpr std::size_t messages_per_turn = 4096;
    static constexpr std::size_t bytes_per_turn = std::size_t{1} << 20;

    // A block that was taken, and how many of its messages are in flight.
    struct Taken {
        std::unique_ptr<Block> block;
        std::size_t next = 0;
        std::size_t in_flight = 0;

        bool is_used_up() const { return next == block->messages.size() && in_flight == 0; }
    };

    // Makes sure that the last taken block has a message. Returns false if none is ready.
    bool take_block() {
        while (taken_.empty() || taken_.back().next == taken_.back().block->messages.size()) {
            release();
            // has_ended() first: the last block may become ready after take().
            const bool ended = ahead_.has_ended();
            std::unique_ptr<Block> block = ahead_.take();
            if (block) {
                taken_.push_back({.block = std::move(block)});
                continue;
            }
            if (ended) {
                failure_ = ahead_.failure();
                end();
            }
            return false;
        }
        return true;
    }
    void end() {
        stop();
        on_end_();
    }

    Status send(Taken& taken, const ReplayMessage& message) {
        if (socket_.buffered != nullptr) {
            const std::span<const std::byte> bytes{taken.block->memory.data() + message.offset,
                                                   message.bytes};
            return options_.sends_recorded_times
                       ? socket_.buffered->publish_at(time_of(message), message.fid, bytes,
                                                      message.status)
                       : socket_.buffered->publish(message.fid, bytes, message.status);
        }
        const netio::Slice slice = taken.block->memory.slice(message.offset, message.bytes);
        netio::pubsub::PublishSocket::Extras extras{.status = message.status, .header = {}};
        if (options_.sends_recorded_times) extras.time = time_of(message);
        const Status status = socket_.unbuffered->publishv(
            message.fid, {&slice, 1},
            netio::Cookie{options_.first_cookie + first_taken_ +
                          static_cast<std::uint64_t>(taken_.size()) - 1},
            extras);
        if (status == Status::ok) ++taken.in_flight;
        return status;
    }
    // In CLOCK_TAI of this machine.
    std::int64_t time_of(const ReplayMessage& message) const noexcept {
        return message.has_time ? message.utc_ns + tai_minus_utc_ns_ : netio::time_stamp::unknown;
    }

    // Returns whether to continue.
    bool publish(Taken& taken, const ReplayMessage& message) {
        const Status status = send(taken, message);
        if (status == Status::again) return false; // on_writable continues
        if (status == Status::no_subscribers) {
            ++without_subscribers_;
        } else if (status != Status::ok) {
            failure_ =
                fmt::format("a message of {} bytes of fid {} cannot be published ({}); increase "
                            "largest_message, or page_count if the publisher is buffered",
                            message.bytes, to_string(message.fid), to_string(status));
            end();
            return false;
        }
        if (options_.counts_fids) ++published_[to_integer(message.fid)];
        --messages_left_;
        ++taken.next;
        return true;
    }

    // Returns blocks that are used no longer, except the last one while it has messages.
    void release() {
        while (!taken_.empty() && taken_.front().is_used_up()) {
            ahead_.give(std::move(taken_.front().block));
            taken_.pop_front();
            ++first_taken_;
        }
    }

    Socket socket_;
    const std::int64_t tai_minus_utc_ns_ =
        std::int64_t{netio::time_stamp::format_here(netio::StampClock::tai).utc_offset_s} *
        1'000'000'000;
    std::deque<Taken> taken_;       // in order; only the last has messages that were not published
    std::uint64_t first_taken_ = 0; // number of the first of them
    netio::DescriptorWatch watch_;
    netio::Timer timer_;
};

Player::Player(netio::EventLoop& loop, netio::RecordingReader reader, Options options,
               std::uint64_t& messages_left, std::function<void()> on_end)
    : state_{std::make_unique<State>(loop, std::move(reader), std::move(options), messages_left,
                                     std::move(on_end))} {}
Player::~Player() = default;

void Player::begin(Socket socket) {
    state_->begin(socket);
}
void Player::resume() {
    state_->pump();
}
void Player::completed(netio::Cookie cookie) {
    state_->completed(cookie);
}
void Player::stop() {
    state_->stop();
}
bool Player::has_ended() const noexcept {
    return state_->has_ended_;
}
const std::string& Player::failure() const noexcept {
    return state_->failure_;
}
std::uint64_t Player::without_subscribers() const noexcept {
    return state_->without_subscribers_;
}
const Pace& Player::pace() const noexcept {
    return state_->pace_;
}
const std::unordered_map<std::uint64_t, std::uint64_t>& Player::published() const noexcept {
    return state_->published_;
}
const netio::RecordingReader* Player::reader() const {
    return state_->ahead_.has_ended() ? &state_->ahead_.reader() : nullptr;
}

} // namespace apps::replay
