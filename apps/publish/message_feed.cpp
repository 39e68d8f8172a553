// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/message_feed.hpp"

#include "apps/common/pattern.hpp"
#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <system_error>
#include <utility>

namespace apps {
namespace {

class PatternSource final : public Source {
  public:
    explicit PatternSource(netio::pubsub::Fid fid) : fid_{fid} {}

    Result fill(std::span<std::byte> memory) override {
        fill_pattern(memory, fid_, sequence_);
        return {.outcome = Outcome::message, .bytes = memory.size()};
    }
    void accept() override { ++sequence_; }
    std::uint64_t number() const noexcept override { return sequence_; }

  private:
    netio::pubsub::Fid fid_;
    std::uint64_t sequence_ = 0;
};

class FaultySource final : public Source {
  public:
    FaultySource(netio::pubsub::Fid fid, const FaultConfig& faults, std::uint64_t seed)
        : fid_{fid}, plan_{faults, seed} {}

    Result fill(std::span<std::byte> memory) override {
        const FaultPlan::Step& step = plan_.step();
        fill_pattern(memory, fid_, step.sequence);
        constexpr std::size_t head = whole_pattern_bytes;
        std::size_t bytes = memory.size();
        if (step.damage != FaultPlan::Step::Damage::none) {
            NETIO_CHECK(bytes > head);
            const std::size_t place = head + step.place % (bytes - head);
            if (step.damage == FaultPlan::Step::Damage::truncated) {
                bytes = place;
            } else {
                memory[place] ^= std::byte{0x10};
            }
        }
        return {.outcome = Outcome::message, .bytes = bytes};
    }
    void accept() override { plan_.accept(); }
    std::uint64_t number() const noexcept override { return plan_.step().sequence; }
    FaultCounts faults() const override { return plan_.counts(); }

  private:
    netio::pubsub::Fid fid_;
    FaultPlan plan_;
};

class FileSource final : public Source {
  public:
    FileSource(std::string path, bool repeat) : path_{std::move(path)}, repeat_{repeat} {}

    Result fill(std::span<std::byte> memory) override {
        if (ended_) return {};
        if (!file_) open();
        if (std::exchange(filled_, 0) > 0) seek(); // the data read last was not published
        std::size_t bytes = read(memory);
        if (bytes == 0 && repeat_ && any_) {
            offset_ = 0;
            seek();
            bytes = read(memory);
        }
        if (bytes == 0) {
            ended_ = true;
            file_.reset();
            return {};
        }
        any_ = true;
        filled_ = bytes;
        return {.outcome = Outcome::message, .bytes = bytes};
    }
    void accept() override {
        offset_ += static_cast<off_t>(std::exchange(filled_, 0));
        ++accepted_;
    }
    std::uint64_t number() const noexcept override { return accepted_; }

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };

    void open() {
        // Opening a pipe would stop the loop until another program opens it for writing.
        const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor < 0) throw std::system_error{errno, std::generic_category(), path_};
        struct stat status {};
        if (::fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode)) {
            ::close(descriptor);
            throw std::system_error{
                ESPIPE, std::generic_category(),
                path_ + " is a pipe: redirect it to standard input and use 'source: pipe'"};
        }
        file_.reset(::fdopen(descriptor, "rb"));
        if (!file_) {
            const int error = errno;
            ::close(descriptor);
            throw std::system_error{error, std::generic_category(), path_};
        }
    }
    void seek() {
        if (::fseeko(file_.get(), offset_, SEEK_SET) != 0)
            throw std::system_error{errno, std::generic_category(), path_};
    }
    std::size_t read(std::span<std::byte> memory) {
        const std::size_t bytes = std::fread(memory.data(), 1, memory.size(), file_.get());
        if (bytes < memory.size() && std::ferror(file_.get()) != 0) {
            throw std::system_error{errno, std::generic_category(), path_};
        }
        return bytes;
    }

    std::string path_;
    off_t offset_ = 0;       // end of the published data
    std::size_t filled_ = 0; // bytes after it that are not published yet
    std::uint64_t accepted_ = 0;
    bool repeat_;
    bool any_ = false;
    bool ended_ = false;
    std::unique_ptr<std::FILE, Close> file_;
};

class PipeSource final : public Source {
  public:
    explicit PipeSource(int fd) : fd_{fd} {}

    Result fill(std::span<std::byte> memory) override {
        // Bytes of an incomplete message are collected here, because the memory differs from call
        // to call.
        if (collected_.size() < memory.size()) collected_.resize(memory.size());
        while (!ended_ && filled_ < memory.size()) {
            pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
            if (::poll(&readable, 1, 0) == 0) return {.outcome = Outcome::not_ready};
            const ssize_t got = ::read(fd_, collected_.data() + filled_, memory.size() - filled_);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw std::system_error{errno, std::generic_category(), "standard input"};
            ended_ = got == 0;
            filled_ += static_cast<std::size_t>(got);
        }
        const std::size_t bytes = std::min(filled_, memory.size());
        if (bytes == 0) return {};
        std::copy_n(collected_.begin(), bytes, memory.begin());
        given_ = bytes;
        return {.outcome = Outcome::message, .bytes = bytes};
    }
    void accept() override {
        std::copy(collected_.begin() + static_cast<std::ptrdiff_t>(given_),
                  collected_.begin() + static_cast<std::ptrdiff_t>(filled_), collected_.begin());
        filled_ -= std::exchange(given_, 0);
        ++accepted_;
    }
    std::uint64_t number() const noexcept override { return accepted_; }
    int wait_fd() const noexcept override { return fd_; }

  private:
    int fd_;
    bool ended_ = false;
    std::vector<std::byte> collected_;
    std::size_t filled_ = 0;
    std::size_t given_ = 0; // the first bytes, not published yet
    std::uint64_t accepted_ = 0;
};

} // namespace

std::unique_ptr<Source> make_pattern_source(netio::pubsub::Fid fid) {
    return std::make_unique<PatternSource>(fid);
}
std::unique_ptr<Source> make_faulty_source(netio::pubsub::Fid fid, const FaultConfig& faults,
                                           std::uint64_t seed) {
    return std::make_unique<FaultySource>(fid, faults, seed);
}
std::unique_ptr<Source> make_file_source(std::string path, bool repeat) {
    return std::make_unique<FileSource>(std::move(path), repeat);
}
std::unique_ptr<Source> make_pipe_source(int fd) {
    return std::make_unique<PipeSource>(fd);
}

namespace {

std::unique_ptr<Source> make_source(const StreamConfig& stream, netio::pubsub::Fid fid,
                                    std::size_t position) {
    if (const auto* file = std::get_if<FileConfig>(&stream.source)) {
        const std::size_t which = file->paths.size() == 1 ? 0 : position;
        return make_file_source(file->paths[which], file->repeat);
    }
    if (std::holds_alternative<PipeConfig>(stream.source)) return make_pipe_source(STDIN_FILENO);
    const auto& pattern = std::get<PatternConfig>(stream.source);
    if (!pattern.faults.any()) return make_pattern_source(fid);
    return make_faulty_source(fid, pattern.faults, Draw{stream.seed ^ to_integer(fid)}.next());
}

} // namespace

MessageFeed::MessageFeed(const std::vector<StreamConfig>& configs,
                         const std::vector<TriggerConfig>& triggers) {
    for (const TriggerConfig& trigger : triggers)
        triggers_.push_back({.config = trigger, .clock = {}, .events = 0, .streams = {}});
    for (const StreamConfig& config : configs) {
        Stream& stream = streams_.emplace_back(config);
        if (config.trigger) {
            stream.trigger = &triggers_.at(*config.trigger);
            stream.trigger->streams.push_back(&stream);
        }
        for (const netio::pubsub::FidRange& range : config.fids) {
            for (std::uint64_t i = to_integer(range.first);; ++i) {
                const netio::pubsub::Fid fid{i};
                stream.ready.push_back(static_cast<std::uint32_t>(stream.flows.size()));
                stream.flows.push_back(
                    {.fid = fid,
                     .source = make_source(config, fid, stream.flows.size()),
                     .left = config.count.value_or(std::numeric_limits<std::uint64_t>::max())});
                if (fid == range.last) break;
            }
        }
        largest_bytes_ = std::max(largest_bytes_, largest(config.sizes));
    }
}

void MessageFeed::begin(netio::TimePoint now) {
    for (Trigger& trigger : triggers_)
        trigger.clock.emplace(trigger.config.rate, trigger.config.seed, now);
    for (Stream& stream : streams_)
        if (stream.config.rate) stream.clock.emplace(*stream.config.rate, stream.config.seed, now);
}

MessageFeed::Outcome MessageFeed::next(std::span<std::byte> memory, netio::TimePoint now) {
    next_due_ = netio::TimePoint::max();
    wait_fds_.clear();
    bool all_ended = true;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        Stream& stream = streams_[turn_];
        if (++turn_ == streams_.size()) turn_ = 0;
        const Outcome outcome = next_of(stream, memory, now);
        if (outcome == Outcome::message) return outcome;
        if (outcome == Outcome::waiting) all_ended = false;
    }
    return all_ended ? Outcome::ended : Outcome::waiting;
}

bool MessageFeed::is_due(std::optional<TriggerClock>& clock, netio::TimePoint now) {
    if (clock->take(now)) return true;
    next_due_ = std::min(next_due_, clock->next());
    return false;
}

bool MessageFeed::is_due(Stream& stream, netio::TimePoint now) {
    if (stream.trigger != nullptr) return stream.owed > 0 || fire(*stream.trigger, now);
    if (stream.clock && !stream.granted) stream.granted = is_due(stream.clock, now);
    return !stream.clock || stream.granted;
}

// Starts the next event, after all fids that are not blocked had their message of the last one.
bool MessageFeed::fire(Trigger& trigger, netio::TimePoint now) {
    for (const Stream* const stream : trigger.streams)
        if (stream->owed > 0) return false;
    if (!is_due(trigger.clock, now)) return false;
    ++trigger.events;
    for (Stream* const stream : trigger.streams)
        stream->owed = stream->ready.size();
    return true;
}

MessageFeed::Outcome MessageFeed::next_of(Stream& stream, std::span<std::byte> memory,
                                          netio::TimePoint now) {
    // Fids whose source has no data now lose their turn.
    for (std::size_t not_ready = 0; not_ready < stream.ready.size();) {
        if (!is_due(stream, now)) return Outcome::waiting;
        const std::uint32_t turn = stream.ready.front();
        Flow& flow = stream.flows[turn];
        if (stream.trigger != nullptr && flow.source->number() >= stream.trigger->events) {
            // The fid has no message for this event: one is missing or late on purpose.
            stream.ready.pop_front();
            stream.ready.push_back(turn);
            --stream.owed;
            continue;
        }
        if (!stream.wanted) stream.wanted = stream.sizes.next();
        const Source::Result result = flow.source->fill(memory.first(*stream.wanted));
        if (result.outcome == Source::Outcome::message) {
            current_ = &stream;
            describe(stream, flow, result.bytes);
            return Outcome::message;
        }
        stream.ready.pop_front();
        if (result.outcome == Source::Outcome::not_ready) { // a pipe, the only fid of its stream
            wait_fds_.push_back(flow.source->wait_fd());
            stream.ready.push_back(turn);
            ++not_ready;
        } else {
            end(flow);
            if (stream.trigger != nullptr) --stream.owed;
        }
    }
    return stream.ready.empty() && stream.waiting.empty() ? Outcome::ended : Outcome::waiting;
}

void MessageFeed::describe(const Stream& stream, const Flow& flow, std::size_t bytes) {
    message_ = {.fid = flow.fid,
                .bytes = bytes,
                .status = stream.config.status,
                .slices = stream.config.slices};
    const HeaderConfig& header = stream.config.header;
    if (header.event) {
        netio::wire::store(message_.header.data(), flow.source->number());
        message_.header_bytes = message_.header.size();
    } else {
        std::ranges::copy(header.bytes, message_.header.begin());
        message_.header_bytes = header.bytes.size();
    }
}

void MessageFeed::end(Flow& flow) {
    ended_faults_ += flow.source->faults();
    flow.source.reset();
}

void MessageFeed::accept() {
    Stream& stream = *std::exchange(current_, nullptr);
    const std::uint32_t turn = stream.ready.front();
    Flow& flow = stream.flows[turn];
    stream.ready.pop_front();
    stream.wanted.reset();
    stream.granted = false;
    flow.source->accept();
    ++flow.published;
    const bool goes_on = --flow.left > 0;
    // A fid with an older event catches up.
    const bool is_behind =
        goes_on && stream.trigger != nullptr && flow.source->number() < stream.trigger->events;
    if (is_behind) {
        stream.ready.push_front(turn);
    } else if (goes_on) {
        stream.ready.push_back(turn);
    } else {
        end(flow);
    }
    if (stream.trigger != nullptr && !is_behind) --stream.owed;
    // The message was accepted, so blocked fids are retried, too: if none was refused since, no
    // notification follows.
    if (!refused_) retry();
}

std::vector<PublishedFid> MessageFeed::published() const {
    std::vector<PublishedFid> list;
    for (const Stream& stream : streams_)
        for (const Flow& flow : stream.flows)
            list.push_back({.fid = flow.fid, .messages = flow.published});
    std::ranges::sort(list, {}, &PublishedFid::fid);
    return list;
}

FaultCounts MessageFeed::faults() const {
    FaultCounts counts = ended_faults_;
    for (const Stream& stream : streams_) {
        for (const Flow& flow : stream.flows)
            if (flow.source) counts += flow.source->faults();
    }
    return counts;
}

std::vector<TriggerReport> MessageFeed::triggers() const {
    std::vector<TriggerReport> reports;
    for (const Trigger& trigger : triggers_) {
        const netio::Duration put_off =
            trigger.clock ? trigger.clock->put_off() : netio::Duration::zero();
        reports.push_back({.name = trigger.config.name,
                           .events = trigger.events,
                           .put_off_s = std::chrono::duration<double>(put_off).count()});
    }
    return reports;
}

void MessageFeed::refuse() {
    refused_ = true;
    Stream& stream = *std::exchange(current_, nullptr);
    stream.waiting.push_back(stream.ready.front());
    stream.ready.pop_front();
    if (stream.trigger != nullptr) --stream.owed;
}

void MessageFeed::retry() {
    refused_ = false;
    for (Stream& stream : streams_) {
        for (std::size_t i = 0; i < retries_at_once && !stream.waiting.empty(); ++i) {
            stream.ready.push_front(stream.waiting.front());
            stream.waiting.pop_front();
            if (stream.trigger != nullptr) ++stream.owed; // it is still due
        }
    }
}

} // namespace apps
