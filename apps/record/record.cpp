// SPDX-License-Identifier: Apache-2.0

// netio record: records fids of several publishers into MCAP files.

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/families.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/program/commands.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/memory/keep_pool.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/recording/recording_writer.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace apps {
namespace record {
namespace {

using netio::RecordingWriter;
using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using netio::pubsub::SubscribeSocket;
using netio::pubsub::Subscriptions;

// In the order of SlowPolicy.
constexpr std::array<std::string_view, 4> policy_words{"block", "drop", "disconnect", "newest"};

struct Arguments {
    std::vector<std::string> publishers;
    std::string bus; // empty: none
    bool reconnect = false;
    std::vector<std::string> fids;
    std::string decode; // layout of fids in the log; may be empty
    std::string output;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::optional<netio::pubsub::SlowPolicy> policy; // nullopt: the publishers' own
    std::string local;
    KeyArguments key;
    MetricsArguments metrics;
    std::string provider = "auto";
    netio::LoopMode loop = netio::LoopMode::blocking;
    SubscribeSocket::Options socket; // except the options above
    RecordingWriter::Options writer;
    std::optional<netio::Duration> rotate_interval;
    std::optional<netio::Duration> flush_interval;
    bool json = false;
    bool progress = false;
};

// The time of arrival. The clock is read once for a burst, because reading it costs as much as
// recording a small message.
class ArrivalClock {
  public:
    std::uint64_t at(netio::TimePoint turn) {
        if (turn != turn_ || ++messages_ >= messages_limit) {
            turn_ = turn;
            messages_ = 0;
            ns_ = wall_clock();
        }
        return ns_;
    }

  private:
    static constexpr unsigned messages_limit = 64;

    netio::TimePoint turn_ = netio::TimePoint::min();
    unsigned messages_ = 0;
    std::uint64_t ns_ = 0;
};

// Losses that are not in the file yet, summed up because a slow subscriber has many in a second.
class PendingLosses {
  public:
    struct Loss {
        const std::string& publisher;
        std::string_view reason;
        Fid fid{};
        std::uint64_t count = 0;
    };
    void add(const std::string& publisher, std::string_view reason, Fid fid, std::uint64_t count) {
        losses_[{publisher, reason}][fid] += count;
    }
    bool empty() const { return losses_.empty(); }
    // Calls take(Loss) for each until it returns false.
    template <typename Take>
    void take_each(Take take) {
        while (!losses_.empty()) {
            const auto& from = losses_.begin()->first;
            auto& counts = losses_.begin()->second;
            std::vector<Fid> done;
            bool goes_on = true;
            counts.for_each([&](Fid fid, std::uint64_t count) {
                goes_on = goes_on && take(Loss{from.first, from.second, fid, count});
                if (goes_on) done.push_back(fid);
            });
            if (!goes_on) {
                for (const Fid fid : done)
                    counts.erase(fid);
                return;
            }
            losses_.erase(losses_.begin());
        }
    }

  private:
    std::map<std::pair<std::string, std::string_view>, netio::pubsub::FidMap<std::uint64_t>>
        losses_;
};

// "netio-20260131T120000Z": the time of the start.
std::string name_of_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    return fmt::format("netio-{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900,
                       parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// In a folder, the recording is named after the time, and another one of this second by a number.
std::unique_ptr<RecordingWriter> open_writer(const std::string& output,
                                             const RecordingWriter::Options& options) {
    constexpr std::string_view suffix = ".mcap";
    if (output.ends_with(suffix)) return std::make_unique<RecordingWriter>(output, options);
    if (::mkdir(output.c_str(), 0777) != 0 && errno != EEXIST)
        throw std::system_error{errno, std::generic_category(),
                                "cannot create the folder " + output};
    constexpr unsigned names_limit = 100;
    const std::string name = output + "/" + name_of_now();
    for (unsigned number = 1;; ++number) {
        const std::string path =
            name + (number > 1 ? fmt::format("-{}", number) : "") + std::string{suffix};
        try {
            return std::make_unique<RecordingWriter>(path, options);
        } catch (const std::system_error& error) {
            if (error.code().value() != EEXIST || number == names_limit) throw;
        }
    }
}

class Run final : public Subscriptions::Handler {
  public:
    Run(netio::EventLoop& loop, netio::Transport& transport, const Arguments& arguments);
    ExitStatus run();

  private:
    void end(std::string_view why);
    void on_writer_event();
    void check_writer();
    void record(const RecordingWriter::Event& event);
    void record_losses();
    void write_losses();
    void note_loss(const Subscriptions::Source& source, std::string_view reason, Fid fid,
                   std::uint64_t count);
    void finish();
    void write_rest();
    [[noreturn]] void abandon();
    ExitStatus report();
    std::function<void(Exposition&)> metrics();

    void on_connected(Subscriptions&, const Subscriptions::Source& source,
                      const std::string& provider) override;
    void on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                       const FidRange& range) override;
    void on_refused(Subscriptions&, const Subscriptions::Source& source, const FidRange& range,
                    Subscriptions::Refusal why) override;
    void on_message(Subscriptions&, const Subscriptions::Source& source, Fid fid,
                    std::span<const std::byte> message, std::uint8_t status) override;
    void on_gap(Subscriptions&, const Subscriptions::Source& source, Fid fid,
                std::uint64_t count) override;
    void on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source& source, Fid fid,
                                    std::uint64_t count) override;
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                              const netio::pubsub::PublisherChange& change) override;
    void on_closed(Subscriptions&, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override;
    void on_warning(Subscriptions&, const std::string& what) override;
    void on_ended(Subscriptions&) override;

    struct Ended { // the reason; empty: not yet
        std::string how;
        std::string detail;
        std::string lost; // how a publisher ended, if not in order
    };
    struct Reached {
        bool any = false;              // a publisher has accepted a subscription
        std::set<std::string> awaited; // given addresses without an accepted subscription
    };

    const Arguments& arguments_;
    netio::EventLoop& loop_;
    Ended ended_;
    Reached reached_;
    PeerLog log_;
    std::set<std::string> connected_;  // names of publishers
    std::set<std::string> waiting_;    // that the log already reported as awaited
    std::set<std::string> own_clocks_; // of publishers whose time stamps are not recorded
    ArrivalClock arrival_;
    std::uint64_t first_ns_ = 0; // of the messages
    std::uint64_t last_ns_ = 0;
    std::uint64_t messages_left_;
    std::uint64_t losses_seen_ = 0;
    PendingLosses losses_;
    bool is_paused_ = false;   // until the writer's queue has space
    std::uint64_t pauses_ = 0; // not in the file yet
    netio::Timer record_losses_;
    netio::Timer duration_timer_;
    std::unique_ptr<RecordingWriter> writer_;
    bool takes_memory_;
    std::unique_ptr<netio::pubsub::Discovery> bus_; // null: none
    Subscriptions all_;
    std::unique_ptr<MetricsServer> metrics_;
    netio::SignalWatch signals_;
};

constexpr std::chrono::milliseconds loss_interval{200};
constexpr std::chrono::milliseconds repeated_signal_time{500};

std::string shown(const Subscriptions::Source& source) {
    return source.name == source.address ? source.name
                                         : fmt::format("{} at {}", source.name, source.address);
}

const std::string& address_of(const Subscriptions::Source& source) {
    return source.address.empty() ? source.name : source.address;
}

Subscriptions::Options options_of(const Arguments& arguments, netio::pubsub::Discovery* bus) {
    Subscriptions::Options options;
    for (const std::string& publisher : arguments.publishers)
        options.publishers.push_back(peer_address(publisher));
    options.bus = bus;
    options.socket = arguments.socket;
    options.socket.local_host = arguments.local;
    options.socket.key = client_key(arguments.key);
    // A publisher found on the bus is removed when its lease ends, not when its connection ends.
    options.socket.reconnect = arguments.reconnect || bus != nullptr;
    return options;
}

// The writer's thread calls `notify`.
RecordingWriter::Options writer_options(const Arguments& arguments,
                                        const std::function<void()>& notify) {
    RecordingWriter::Options options = arguments.writer;
    options.rotate_interval = arguments.rotate_interval.value_or(options.rotate_interval);
    options.flush_interval = arguments.flush_interval.value_or(options.flush_interval);
    options.on_writable = notify;
    options.on_failure = [notify](const std::string&) { notify(); };
    return options;
}

Run::Run(netio::EventLoop& loop, netio::Transport& transport, const Arguments& arguments)
    : arguments_{arguments}, loop_{loop}, log_{loop}, messages_left_{arguments.messages.value_or(
                                                          UINT64_MAX)},
      record_losses_{loop, [this] { record_losses(); }}, duration_timer_{loop,
                                                                         [this] {
                                                                             end("duration");
                                                                         }},
      writer_{open_writer(
          arguments.output,
          writer_options(arguments, [this] { loop_.post_always([this] { on_writer_event(); }); }))},
      takes_memory_{writer_->writes_from_memory()},
      bus_{arguments.bus.empty() ? nullptr : netio::pubsub::open_bus(loop, arguments.bus)},
      all_{transport, options_of(arguments, bus_.get()), *this}, metrics_{show_metrics(
                                                                     loop, arguments.metrics,
                                                                     [this] { return metrics(); })},
      signals_{loop, end_signals(), [this](int) {
                   if (!ended_.how.empty()) return loop_.stop(); // the second signal does not wait
                   end("interrupted");
               }} {
    spdlog::info("recording to {}", writer_->stats().files.front());
    if (arguments.writer.direct_io && !writer_->stats().direct_io)
        spdlog::warn("the file system does not permit direct I/O; writing through the page cache");
    for (const std::string& publisher : arguments.publishers)
        reached_.awaited.insert(to_string(peer_address(publisher)));
    all_.subscribe(parse_fids(arguments.fids), arguments.policy);
    if (arguments.duration) duration_timer_.start(*arguments.duration);
}

ExitStatus Run::run() {
    {
        const LiveDisplay display{loop_, live_form(arguments_.json, arguments_.progress), [this] {
                                      const Subscriptions::Sums sums = all_.sums();
                                      return LiveDisplay::Sums{.messages = sums.messages,
                                                               .bytes = sums.bytes,
                                                               .lost = losses_seen_};
                                  }};
        loop_.run();
    }
    finish();
    return report();
}

// The first reason counts; later ones are consequences of closing.
void Run::end(std::string_view why) {
    if (!ended_.how.empty()) return;
    ended_.how = why;
    duration_timer_.cancel();
    if (is_paused_) all_.resume(); // the end of each publisher arrives after its messages
    is_paused_ = false;
    if (all_.connected_count() == 0) return loop_.stop();
    all_.close();
}

// Everything that arrived is in the file afterwards, or the failure is reported. A thread waits for
// the disk, so that a further signal ends the program, also if the disk never answers.
void Run::finish() {
    std::atomic<bool> is_done = false;
    std::exception_ptr failure;
    const auto close = [&] {
        try {
            write_rest();
        } catch (...) {
            failure = std::current_exception();
        }
        is_done = true;
    };
    std::thread closing;
    try {
        closing = std::thread{close};
    } catch (const std::system_error&) { // the system grants no thread: signals wait
        close();
    }
    sigset_t signals;
    ::sigemptyset(&signals); // they are blocked: signals_
    for (const int number : end_signals())
        ::sigaddset(&signals, number);
    const netio::TimePoint begin = netio::Clock::now();
    bool is_reported = false;
    while (!is_done) {
        if (!is_reported && netio::Clock::now() > begin + repeated_signal_time) {
            is_reported = true;
            spdlog::warn("{:.1f} MiB wait for the disk; a further signal ends without them",
                         static_cast<double>(writer_->stats().queued_bytes) / (1 << 20));
        }
        const timespec short_time{.tv_sec = 0, .tv_nsec = 2'000'000};
        // Within that time it repeats the one that ended the recording: timeout(1) sends two.
        if (::sigtimedwait(&signals, nullptr, &short_time) > 0 && is_reported) abandon();
    }
    if (closing.joinable()) closing.join();
    try {
        if (failure) std::rethrow_exception(failure);
    } catch (const std::exception& error) {
        if (ended_.how != "failed") spdlog::error("{}", error.what());
        ended_.how = "failed";
        ended_.detail = error.what();
    }
}

// The loop does not run.
void Run::write_rest() {
    for (bool done = false; !done;) { // events have space of their own once the queue moves
        write_losses();
        done = losses_.empty();
        if (!done) writer_->flush();
    }
    writer_->close();
}

// The writer's thread may wait for the disk without a limit, so nothing is destroyed.
void Run::abandon() {
    const RecordingWriter::Stats stats = writer_->stats();
    ended_.how = "failed";
    ended_.detail = fmt::format(
        "a second signal ended the recording while {:.1f} MiB waited for the disk: {} messages are "
        "not written, and {} has no index; it can be read without one",
        static_cast<double>(stats.queued_bytes) / (1 << 20), stats.messages - stats.written,
        stats.files.back());
    spdlog::error("{}", ended_.detail);
    const ExitStatus status = report();
    spdlog::shutdown();
    std::_Exit(to_integer(status));
}

void Run::on_writer_event() {
    const std::string failure = writer_->stats().failure;
    if (!failure.empty() && ended_.how.empty()) {
        ended_.detail = failure;
        spdlog::error("{}", failure);
        return end("failed");
    }
    if (!writer_->is_full() && std::exchange(is_paused_, false)) all_.resume();
}

// While the queue is full this side receives nothing: the publishers' policies for a slow
// subscriber decide.
void Run::check_writer() {
    if (!writer_->is_full() || is_paused_ || !ended_.how.empty()) return;
    is_paused_ = true;
    ++pauses_;
    if (!record_losses_.armed()) record_losses_.start(loss_interval);
    all_.pause();
}

// A failure of the writer is reported by on_writer_event(). An event may be what fills the queue.
void Run::record(const RecordingWriter::Event& event) {
    (void)writer_->write(event);
    check_writer();
}

void Run::record_losses() {
    write_losses();
    check_writer();
    if (!losses_.empty()) record_losses_.start(loss_interval);
}

void Run::write_losses() {
    if (pauses_ > 0) {
        (void)writer_->write(RecordingWriter::Event{
            .event = "disk_slow",
            .count = pauses_,
            .reason = fmt::format("the queue was full; {} MiB are not written yet",
                                  writer_->stats().queued_bytes >> 20)});
        pauses_ = 0;
    }
    losses_.take_each([&](const PendingLosses::Loss& loss) {
        return writer_->write(RecordingWriter::Event{.event = "lost",
                                                     .publisher = loss.publisher,
                                                     .fids = netio::FidSet{{loss.fid, loss.fid}},
                                                     .count = loss.count,
                                                     .reason = loss.reason}) !=
               netio::Status::again;
    });
}

void Run::note_loss(const Subscriptions::Source& source, std::string_view reason, Fid fid,
                    std::uint64_t count) {
    writer_->skip(fid, count);
    losses_seen_ += count;
    losses_.add(address_of(source), reason, fid, count);
    if (!record_losses_.armed()) record_losses_.start(loss_interval);
}

// --- events of the publishers -----------------------------------------------------------------

void Run::on_connected(Subscriptions&, const Subscriptions::Source& source,
                       const std::string& provider) {
    waiting_.erase(source.name);
    connected_.insert(source.name);
    record({.event = "connected", .publisher = address_of(source)});
    log_.info(fmt::format("connected to {} ({})", shown(source), provider));
}

void Run::on_subscribed(Subscriptions&, const Subscriptions::Source& source, const FidRange&) {
    if (source.stamps.clock == netio::StampClock::own && own_clocks_.insert(source.name).second)
        log_.warn(fmt::format("{} sends time stamps of its own clock, which are not recorded; send "
                              "them in the messages, or StampClock::tai",
                              shown(source)));
    reached_.any = true;
    reached_.awaited.erase(source.name);
}

// A publisher on a bus refuses for itself; the others are recorded.
void Run::on_refused(Subscriptions&, const Subscriptions::Source& source, const FidRange& range,
                     Subscriptions::Refusal why) {
    constexpr std::array<std::string_view, 3> reasons{
        "the publisher has reached its limit of subscriptions",
        "the publisher's policy for slow subscribers does not permit this --policy",
        "the key does not permit these fids, or not with this --policy"};
    const std::string_view reason = reasons.at(static_cast<std::size_t>(why));
    record({.event = "refused",
            .publisher = address_of(source),
            .fids = netio::FidSet{range},
            .reason = reason});
    std::string line = fmt::format("{} refuses {}: {}", shown(source),
                                   apps::shown(range, find_layout(arguments_.decode)), reason);
    if (!arguments_.bus.empty()) return log_.warn(line);
    spdlog::error("{}", line);
    if (ended_.how.empty()) ended_.detail = std::move(line);
    end("refused");
}

void Run::on_message(Subscriptions&, const Subscriptions::Source& source, Fid fid,
                     std::span<const std::byte> message, std::uint8_t status) {
    last_ns_ = arrival_.at(loop_.now());
    if (first_ns_ == 0) first_ns_ = last_ns_;
    RecordingWriter::Entry entry{.fid = fid,
                                 .bytes = message,
                                 .status = status,
                                 .arrival_ns = last_ns_,
                                 .publisher = address_of(source)};
    const auto stamp = netio::time_stamp::of(message, source.stamps);
    const std::optional<std::int64_t> published = stamp ? stamp->utc_ns() : std::nullopt;
    if (published && *published >= 0) entry.publish_ns = static_cast<std::uint64_t>(*published);
    // Smaller ones are copied by keep(), too.
    const bool keeps =
        takes_memory_ && message.size() >= netio::KeepPool::copied_below && all_.may_keep_buffer();
    const netio::Status result =
        keeps ? writer_->write(entry, all_.keep(message)) : writer_->write(entry);
    if (result == netio::Status::again) note_loss(source, "the queue is full", fid, 1);
    check_writer();
    if (--messages_left_ == 0) end("messages");
}

void Run::on_gap(Subscriptions&, const Subscriptions::Source& source, Fid fid,
                 std::uint64_t count) {
    note_loss(source, "dropped", fid, count);
}

void Run::on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source& source, Fid fid,
                                     std::uint64_t count) {
    note_loss(source, "disconnected", fid, count);
}

void Run::on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                               const netio::pubsub::PublisherChange& change) {
    const std::string_view reason =
        change.tail_known ? "the number of messages of the former publisher is known"
                          : "the number of messages of the former publisher is not known";
    record({.event = "publisher_restarted", .publisher = address_of(source), .reason = reason});
    log_.warn(fmt::format("{} has restarted; {}", shown(source), reason));
}

void Run::on_closed(Subscriptions&, const Subscriptions::Source& source,
                    const Subscriptions::Ending& ending) {
    const std::string why = to_string(ending.closed);
    if (connected_.erase(source.name) > 0)
        record({.event = ending.complete ? "publisher_ended" : "disconnected",
                .publisher = address_of(source),
                .reason = why});
    if (ending.retrying) {
        if (waiting_.insert(source.name).second)
            log_.info(fmt::format("waiting for {}: {}", shown(source), why));
        return;
    }
    if (!ended_.how.empty()) return;
    if (!arguments_.bus.empty()) return log_.warn(fmt::format("{}: {}", shown(source), why));
    if (ending.closed.reason == netio::CloseReason::orderly && ending.complete) return;
    ended_.lost = all_.sums().messages == 0 && ending.closed.reason == netio::CloseReason::rejected
                      ? "refused"
                      : "lost";
    ended_.detail = why;
    spdlog::error("{}: {}", shown(source), why);
}

void Run::on_warning(Subscriptions&, const std::string& what) {
    log_.warn("bus: " + what);
}

void Run::on_ended(Subscriptions&) {
    if (ended_.how.empty()) ended_.how = ended_.lost.empty() ? "orderly" : ended_.lost;
    loop_.stop();
}

// --- the report -------------------------------------------------------------------------------

std::function<void(Exposition&)> Run::metrics() {
    return [snapshot = all_.snapshot(arguments_.metrics.fid_limit())](Exposition& text) {
        write(snapshot, text);
    };
}

// The worst result has priority.
ExitStatus status_of(const std::string& end, bool any, std::uint64_t lost, bool is_incomplete,
                     std::uint64_t messages) {
    if (end == "failed" || end == "refused") return ExitStatus::failed;
    if (!any) return ExitStatus::unreached;
    if (lost > 0) return ExitStatus::unsound;
    if (is_incomplete) return ExitStatus::incomplete;
    return messages == 0 ? ExitStatus::nothing : ExitStatus::done;
}

ExitStatus Run::report() {
    std::uint64_t lost = 0;
    std::uint64_t connections = 0;
    std::uint64_t restarts = 0;
    std::uint64_t unknown_tails = 0;
    for (const Subscriptions::PublisherStats& stats : all_.publisher_stats()) {
        connections += stats.connections;
        restarts += stats.changes;
        unknown_tails += stats.unknown_tails;
        lost += stats.others.lost;
        stats.fids.for_each([&](Fid, const netio::pubsub::Account::Row& row) { lost += row.lost; });
    }
    const bool is_known =
        reached_.any && reached_.awaited.empty() && ended_.how != "lost" && unknown_tails == 0;
    const RecordingWriter::Stats stats = writer_->stats();
    const bool is_early =
        (ended_.how == "interrupted" && (arguments_.messages || arguments_.duration)) ||
        (arguments_.messages && ended_.how != "messages");
    const ExitStatus status =
        status_of(ended_.how, reached_.any, lost, is_early || !is_known, stats.messages);
    const Throughput rate{.messages = stats.messages,
                          .bytes = stats.bytes,
                          .seconds =
                              static_cast<double>(last_ns_ - std::min(first_ns_, last_ns_)) * 1e-9};
    if (arguments_.json) {
        nlohmann::ordered_json json{
            {"role", "recorder"},
            {"report_version", report_version},
            {"end", ended_.how},
            {"outcome", to_string(status)},
            {"detail", ended_.detail},
            {"reached", reached_.any},
            {"unreached", reached_.awaited.size()},
            {"connections", connections},
            {"restarts", restarts},
            {"unknown_tails", unknown_tails},
            {"messages", rate.messages},
            {"bytes", rate.bytes},
            {"seconds", rate.seconds},
            {"messages_per_s", rate.messages_per_s()},
            {"gbit_per_s", rate.gbit_per_s()},
            {"lost", is_known ? nlohmann::ordered_json(lost) : nlohmann::ordered_json(nullptr)},
            {"written", stats.written},
            {"discarded", stats.messages - stats.written},
            {"events", stats.events},
            {"clock_steps", stats.clock_steps},
            {"chunks", stats.chunks},
            {"file_bytes", stats.file_bytes},
            {"direct_io", stats.direct_io},
            {"files", stats.files}};
        print_report(json_line(json) + "\n");
    } else {
        std::string text = fmt::format(
            "recorder: {}{}\n  {} messages, {} bytes in {:.3f} s: {}messages/s, {:.3f} Gb/s\n",
            ended_.how, ended_.detail.empty() ? "" : ": " + ended_.detail, rate.messages,
            rate.bytes, rate.seconds, short_number(rate.messages_per_s()), rate.gbit_per_s());
        text += fmt::format("  lost: {}, written: {}, events: {}, chunks: {}\n",
                            is_known ? fmt::format("{}", lost) : "unknown", stats.written,
                            stats.events, stats.chunks);
        if (const std::uint64_t discarded = stats.messages - stats.written; discarded > 0)
            text += fmt::format("  {} messages were received and are not in the file\n", discarded);
        text += fmt::format("  {} files, {} bytes, the first: {}\n", stats.files.size(),
                            stats.file_bytes, stats.files.front());
        print_report(text);
    }
    return status;
}

ExitStatus run(const Arguments& arguments) {
    netio::EventLoop loop{{.mode = arguments.loop}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    const LogObserver observer{loop};
    const netio::DeviceWatch devices{loop};
    Run run{loop, *transport, arguments};
    return run.run();
}

void add_writing(CLI::App& command, Arguments& arguments) {
    using Options = RecordingWriter::Options;
    constexpr Limits any_bytes{.min = 4096, .max = std::uint64_t{1} << 40};
    command
        .add_option("--output", arguments.output,
                    "Write to FILE.mcap, or to a new file in this folder; nothing is overwritten")
        ->required()
        ->type_name("DIR|FILE.mcap");
    add_compression(command, arguments.writer.compress);
    command.add_flag(cli_flag<&Options::fsync>(), arguments.writer.fsync,
                     "Wait for the disk once in --flush-interval and at the end of a file");
    command.add_flag(cli_flag<&Options::direct_io>(), arguments.writer.direct_io,
                     "Bypass the page cache where the file system permits it");
    add_bytes(command, cli_flag<&Options::rotate_size_bytes>(), arguments.writer.rotate_size_bytes,
              "Begin another file before one is larger; 0: never",
              {.min = 0, .max = std::uint64_t{1} << 60});
    add_duration(command, cli_flag<&Options::rotate_interval>(), arguments.rotate_interval,
                 "Begin another file after this time");
    add_min_free(command, arguments.writer.min_free_bytes);
    add_bytes(command, cli_flag<&Options::queue_limit_bytes>(), arguments.writer.queue_limit_bytes,
              "Limit of data that is not written yet", any_bytes);
    add_bytes(command, cli_flag<&Options::chunk_size_bytes>(), arguments.writer.chunk_size_bytes,
              "Size of a chunk, which is compressed and written as a whole",
              {.min = 4096, .max = std::uint64_t{1} << 30});
    add_bytes(command, cli_flag<&Options::index_limit_bytes>(), arguments.writer.index_limit_bytes,
              "Begin another file before the index of one is larger",
              {.min = 4096, .max = std::uint64_t{1} << 32});
    add_duration(command, cli_flag<&Options::flush_interval>(), arguments.flush_interval,
                 "Write a chunk at the latest when it is this old (1s)");
}

} // namespace
} // namespace record

Command add_record(CLI::App& program) {
    using record::Arguments;
    auto* command = program.add_subcommand("record", "Record messages of publishers to MCAP files");
    const auto arguments = std::make_shared<Arguments>();
    auto* const publishers =
        command->add_option("publisher", arguments->publishers,
                            "HOST:PORT of publishers; all fids are requested from each of them");
    auto* const bus = add_bus(*command, arguments->bus);
    command->callback([publishers, bus] {
        if (publishers->empty() && bus->empty()) throw CLI::RequiredError{"publisher or --bus"};
    });
    using Socket = netio::pubsub::SubscribeSocket::Options;
    command->add_flag(cli_flag<&Socket::reconnect>(), arguments->reconnect,
                      "Reconnect after a lost connection, and record the losses in between");
    command->add_flag(cli_flag<&Socket::history>(), arguments->socket.history,
                      "First get the messages that the publisher has kept of these fids "
                      "(history_limit), then the new ones");
    command
        ->add_option("--fid", arguments->fids,
                     "Record a fid in decimal or hex, a range A-B, or a comma-separated list; may "
                     "be repeated")
        ->required();
    record::add_writing(*command, *arguments);
    add_count(*command, "--messages", arguments->messages,
              "End after this many messages of all fids together");
    add_duration(*command, "--duration", arguments->duration, "End this long after the start");
    add_words(
        *command, "--policy", {record::policy_words.begin(), record::policy_words.end()},
        [arguments](std::size_t word) {
            arguments->policy = static_cast<netio::pubsub::SlowPolicy>(word);
        },
        "Policy while the disk is slow: block, drop, disconnect, or newest (buffered publishers "
        "only); never one that blocks the publisher more than its own policy");
    add_subscriber(*command, arguments->local, arguments->socket);
    add_key(*command, arguments->key);
    add_decoding(*command, arguments->decode);
    add_metrics(*command, arguments->metrics);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_loop(*command, arguments->loop);
    add_progress(*command, arguments->progress);
    add_json(*command, arguments->json);
    return [arguments] { return to_integer(record::run(*arguments)); };
}

} // namespace apps
