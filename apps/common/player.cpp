// SPDX-License-Identifier: Apache-2.0
#include "apps/common/player.hpp"

#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/parse.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "pubsub/publisher/stamp_clock.hpp"

#include <fmt/format.h>

#include <sys/eventfd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

namespace apps::replay {

void FidReplacements::add(std::string_view text) {
    const auto refuse = [&](const std::string& why) {
        throw std::invalid_argument{fmt::format(
            "'{}': {}; allowed: OLD=NEW, as 5=7, or equally long ranges, as 0-63=100-163", text,
            why)};
    };
    const std::size_t at = text.find('=');
    if (at == std::string_view::npos) refuse("there is no =");
    const auto range = [&](std::string_view part) {
        const std::vector<netio::FidRange> ranges = parse_fids(part);
        if (ranges.size() != 1) refuse("each side is one fid or one range");
        return ranges.front();
    };
    const netio::FidRange from = range(text.substr(0, at));
    const netio::FidRange to = range(text.substr(at + 1));
    if (to_integer(from.last) - to_integer(from.first) !=
        to_integer(to.last) - to_integer(to.first))
        refuse("the ranges have different lengths");
    ranges_.push_back({.from = from, .to = to.first});
}

netio::Fid FidReplacements::operator()(netio::Fid fid) const noexcept {
    for (const Range& each : ranges_) {
        if (contains(each.from, fid))
            return netio::Fid{to_integer(each.to) +
                              (to_integer(fid) - to_integer(each.from.first))};
    }
    return fid;
}

std::vector<netio::FidRange> FidReplacements::operator()(const netio::FidRange& range) const {
    std::vector<netio::FidRange> replaced;
    std::vector<netio::FidRange> rest{range};
    for (const Range& each : ranges_) {
        std::vector<netio::FidRange> others;
        for (const netio::FidRange& part : rest) {
            const netio::Fid first = std::max(part.first, each.from.first);
            const netio::Fid last = std::min(part.last, each.from.last);
            if (first > last) {
                others.push_back(part);
                continue;
            }
            replaced.push_back({(*this)(first), (*this)(last)});
            if (part.first < first) others.push_back({part.first, to_integer(first) - 1});
            if (last < part.last) others.push_back({to_integer(last) + 1, part.last});
        }
        rest = std::move(others);
    }
    replaced.insert(replaced.end(), rest.begin(), rest.end());
    return replaced;
}

class ReadAhead::State {
  public:
    State(netio::RecordingReader reader, Options options)
        : reader_{std::move(reader)}, options_{std::move(options)}, event_{::eventfd(
                                                                        0, EFD_CLOEXEC |
                                                                               EFD_NONBLOCK)} {
        if (!event_.is_open()) throw_errno("eventfd");
        const netio::AllSignalsBlocked blocked;
        thread_ = std::thread{[this] { run(); }};
    }
    ~State() {
        {
            const std::lock_guard lock{mutex_};
            stopped_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    std::unique_ptr<Block> take() {
        const std::lock_guard lock{mutex_};
        release_free();
        if (ready_.empty()) return nullptr;
        std::unique_ptr<Block> block = std::move(ready_.front());
        ready_.pop_front();
        return block;
    }
    void give(std::unique_ptr<Block> block) {
        const std::lock_guard lock{mutex_};
        block->messages.clear();
        if (block->memory.size() == block_bytes) {
            free_.push_back(std::move(block));
            release_free();
        } else {
            used_bytes_ -= block->memory.size(); // and it is destroyed here, on the loop's thread
        }
        changed_.notify_all();
    }
    bool has_ended() const {
        const std::lock_guard lock{mutex_};
        return ended_ && ready_.empty();
    }

    netio::RecordingReader reader_; // the thread's, until it has ended
    Options options_;
    std::string failure_; // the thread's, until it has ended
    Descriptor event_;

  private:
    // Makes memory available for a message that is larger than a block. Only the loop's thread may
    // destroy blocks that were registered.
    void release_free() {
        if (!waits_for_large_ || free_.empty()) return;
        used_bytes_ -= free_.size() * block_bytes;
        free_.clear();
        changed_.notify_all();
    }

    void run() {
        try {
            read();
            hand_over();
        } catch (const std::exception& error) {
            failure_ = error.what();
            hand_over(); // what was read before
        }
        {
            const std::lock_guard lock{mutex_};
            ended_ = true;
        }
        notify();
    }

    bool is_stopped() const {
        const std::lock_guard lock{mutex_};
        return stopped_;
    }

    void read() {
        for (std::uint64_t pass = 0; pass < options_.repeat; ++pass) {
            if (pass > 0) reader_.rewind();
            std::optional<netio::RecordingTime> begin;
            const netio::Duration offset = pass > 0 ? last_ + gap_ : netio::Duration{0};
            std::uint64_t messages = 0;
            while (reader_.next()) {
                if (reader_.event() != nullptr) continue;
                const netio::RecordedMessage& message = reader_.message();
                const netio::Fid fid = options_.replacements(message.fid);
                if (!options_.fids.empty() && !options_.fids.contains(fid)) {
                    if (is_stopped()) return;
                    continue;
                }
                if (!begin) begin = message.arrival_time;
                last_ = std::max(last_, offset + (message.arrival_time - *begin));
                if (!add(fid, message)) return;
                ++messages;
            }
            if (messages == 0) return;
            // The next pass begins an average interval after the last message.
            if (pass == 0)
                gap_ = last_ / static_cast<std::int64_t>(std::max<std::uint64_t>(messages - 1, 1));
        }
    }

    // Returns false if the reading is to stop.
    bool add(netio::Fid fid, const netio::RecordedMessage& message) {
        const std::size_t bytes = std::max<std::size_t>(message.bytes.size(), 1);
        if (block_ && used_ + bytes > block_->memory.size()) hand_over();
        if (!block_) {
            block_ = new_block(std::max(bytes, block_bytes));
            used_ = 0;
            if (!block_) return false;
        }
        // Not std::ranges::copy: that of GCC 12 copies constant bytes one at a time.
        if (!message.bytes.empty())
            std::memcpy(block_->memory.data() + used_, message.bytes.data(), message.bytes.size());
        block_->messages.push_back({.fid = fid,
                                    .status = message.status,
                                    .has_time = message.has_publish_time,
                                    .utc_ns = message.publish_time.time_since_epoch().count(),
                                    .after = last_,
                                    .offset = used_,
                                    .bytes = message.bytes.size()});
        used_ = std::min(block_->memory.size(), (used_ + bytes + 7) / 8 * 8);
        return true;
    }

    // Waits while the limit is reached; one block is always allowed. Returns null to stop.
    std::unique_ptr<Block> new_block(std::size_t bytes) {
        const bool is_large = bytes > block_bytes;
        std::unique_lock lock{mutex_};
        const auto is_allowed = [&] {
            return stopped_ || (!is_large && !free_.empty()) || used_bytes_ == 0 ||
                   used_bytes_ + bytes <= read_ahead_limit_bytes;
        };
        if (!is_allowed()) {
            waits_for_large_ = is_large;
            notify();
            changed_.wait(lock, is_allowed);
            waits_for_large_ = false;
        }
        if (stopped_) return nullptr;
        if (!is_large && !free_.empty()) {
            std::unique_ptr<Block> block = std::move(free_.back());
            free_.pop_back();
            return block;
        }
        used_bytes_ += bytes;
        lock.unlock();
        return std::make_unique<Block>(bytes);
    }

    void hand_over() {
        if (!block_) return;
        {
            const std::lock_guard lock{mutex_};
            ready_.push_back(std::move(block_));
        }
        notify();
    }
    void notify() { static_cast<void>(::eventfd_write(event_.get(), 1)); }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<Block>> ready_;
    std::vector<std::unique_ptr<Block>> free_;
    std::size_t used_bytes_ = 0; // of all blocks
    bool waits_for_large_ = false;
    bool stopped_ = false;
    bool ended_ = false;
    // The thread's.
    std::unique_ptr<Block> block_;
    std::size_t used_ = 0; // of its memory
    netio::Duration last_{0};
    netio::Duration gap_{0};
    std::thread thread_;
};

ReadAhead::ReadAhead(netio::RecordingReader reader, Options options)
    : state_{std::make_unique<State>(std::move(reader), std::move(options))} {}
ReadAhead::~ReadAhead() = default;

std::unique_ptr<Block> ReadAhead::take() {
    return state_->take();
}
void ReadAhead::give(std::unique_ptr<Block> block) {
    state_->give(std::move(block));
}
bool ReadAhead::has_ended() const {
    return state_->has_ended();
}
std::string ReadAhead::failure() const {
    return state_->failure_;
}
const netio::RecordingReader& ReadAhead::reader() const {
    return state_->reader_;
}
int ReadAhead::event_descriptor() const noexcept {
    return state_->event_.get();
}
void ReadAhead::clear_event() noexcept {
    eventfd_t value = 0;
    static_cast<void>(::eventfd_read(state_->event_.get(), &value));
}

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
