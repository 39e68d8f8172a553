// SPDX-License-Identifier: Apache-2.0
// netio cat: sends standard input to a stream, and writes the stream to standard output.

#include "apps/cat/cat.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/base/option_check.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/buffer.hpp"
#include "stream/core/inactivity_timer.hpp"
#include "stream/socket/stream_listener.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace apps::cat {
namespace {

// One run of netio cat after the peer is known: standard input to the stream, and the stream to
// standard output. The loop never waits for either: threads read and write them. While standard
// output is blocked, no more is received from the stream, so the peer stops sending.

struct Settings {
    netio::stream::StreamSocket::Options stream;
    Until until = Until::automatic;
    bool listens = false;
    std::chrono::milliseconds timeout{0}; // time limit without a transferred byte; 0: none
};

// One connection. Calls `on_end` once, when nothing is left to do; `on_end` may destroy this
// object.
class Conversation final : private netio::stream::StreamSocket::Handler {
  public:
    struct Events {
        std::function<void(Conversation&)> on_connected;
        std::function<void()> on_end;
    };
    // Connects to a peer.
    Conversation(netio::EventLoop& loop, netio::Transport& transport, const netio::Address& peer,
                 const Settings& settings, Events events);
    // Accepts a peer.
    Conversation(netio::EventLoop& loop, netio::stream::IncomingStream& incoming,
                 const Settings& settings, Events events);
    ~Conversation();

    // The error; empty if it did not fail.
    const std::string& error() const noexcept { return error_; }

  private:
    using StreamSocket = netio::stream::StreamSocket;

    static constexpr std::size_t receive_bytes = std::size_t{128} << 10;
    static constexpr std::size_t receive_count = 2;
    static constexpr std::size_t send_count = 4; // pieces of standard input in flight
    // How long standard input may stay silent after the end of the peer's data (cat.hpp).
    static constexpr std::chrono::seconds first_byte_wait{2};

    Conversation(netio::EventLoop& loop, const Settings& settings, std::string peer, Events events);

    void begin();
    void take_input();
    void input_ended();
    void stop_input();
    void receive();
    void output_changed();
    void fail_output();
    void first_byte_is_late();
    void end_in_order();
    void fail(const std::string& what);
    void end_if_done();
    std::uint64_t moved_bytes() const;
    void look();

    void on_connected(StreamSocket& socket) override;
    void on_send_completed(StreamSocket& socket, netio::Cookie cookie,
                           netio::Completion::Outcome outcome) override;
    void on_received(StreamSocket& socket, const netio::stream::Received& received) override;
    void on_end_of_stream(StreamSocket& socket) override;
    void on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) override;
    void on_closed(StreamSocket& socket, const netio::Closed& closed) override;

    struct Memory { // registered once connected
        std::deque<netio::RegisteredBuffer> receives;
        std::deque<netio::RegisteredBuffer> sends;
        std::vector<std::size_t> free_receives;
        std::vector<std::size_t> free_sends;
    };

    netio::EventLoop& loop_;
    Settings settings_;
    std::string peer_; // for log lines
    Events events_;
    std::string error_;
    Memory memory_;
    DescriptorOutput standard_output_;
    BackgroundWriter output_;
    netio::DescriptorWatch output_watch_;
    std::unique_ptr<BackgroundReader> input_; // null: it has ended, or is not used
    std::optional<netio::DescriptorWatch> input_watch_;
    Situation situation_;
    bool is_connected_ = false;
    bool peer_has_ended_ = false;
    bool is_lost_ = false; // received data is taken even if standard output is blocked
    bool is_closed_ = false;
    bool has_unsent_input_ = false; // input was read, but the connection had ended
    bool has_timed_out_ = false;
    netio::stream::InactivityTimer inactivity_;
    std::uint64_t seen_moved_bytes_ = 0;
    netio::TimePoint last_look_;
    netio::Timer look_timer_;
    netio::Timer first_byte_timer_;
    netio::Timer end_timer_;
    std::unique_ptr<StreamSocket> socket_; // last: destroyed first
};

using netio::Cookie;
using netio::stream::Received;
using netio::stream::StreamSocket;

bool is_pipe_or_socket(int descriptor) {
    struct stat status {};
    return ::fstat(descriptor, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

Input kind_of_input() {
    if (::isatty(STDIN_FILENO) == 1) return Input::terminal;
    return is_pipe_or_socket(STDIN_FILENO) ? Input::endless_pipe : Input::file;
}

// A blocked reader of the peer's standard output does not end the connection: a dead peer is
// detected by missing heartbeats, and --timeout limits the rest.
StreamSocket::Options patient(StreamSocket::Options options) {
    options.session.close_timeout = options.session.close_limit = netio::longest_time;
    return options;
}

// --- the beginning --------------------------------------------------------------------------

Conversation::Conversation(netio::EventLoop& loop, const Settings& settings, std::string peer,
                           Events events)
    : loop_{loop}, settings_{settings}, peer_{std::move(peer)}, events_{std::move(events)},
      standard_output_{STDOUT_FILENO, "cannot write to standard output"},
      output_{standard_output_.write()}, output_watch_{loop, output_.event_descriptor(),
                                                       netio::DescriptorWatch::Interest::readable,
                                                       [this] { output_changed(); }},
      situation_{.until = settings.until,
                 .listens = settings.listens,
                 .input = kind_of_input(),
                 .output_has_reader = is_pipe_or_socket(STDOUT_FILENO)},
      inactivity_{settings.timeout}, last_look_{netio::Clock::now()},
      look_timer_{loop, [this] { look(); }}, first_byte_timer_{loop,
                                                               [this] { first_byte_is_late(); }},
      end_timer_{loop, [this] { events_.on_end(); }} {
    look_timer_.start_at(inactivity_.poll_deadline(last_look_));
}

Conversation::Conversation(netio::EventLoop& loop, netio::Transport& transport,
                           const netio::Address& peer, const Settings& settings, Events events)
    : Conversation{loop, settings, to_string(peer), std::move(events)} {
    socket_ = std::make_unique<StreamSocket>(transport, patient(settings.stream),
                                             static_cast<StreamSocket::Handler&>(*this));
    socket_->connect(peer);
}

Conversation::Conversation(netio::EventLoop& loop, netio::stream::IncomingStream& incoming,
                           const Settings& settings, Events events)
    : Conversation{loop, settings, incoming.peer_address(), std::move(events)} {
    socket_ = incoming.accept(patient(settings.stream), *this);
}

Conversation::~Conversation() = default;

void Conversation::on_connected(StreamSocket&) {
    is_connected_ = true;
    if (events_.on_connected) events_.on_connected(*this);
    try {
        begin();
    } catch (const std::exception& error) { // no memory, or no thread
        fail(error.what());
    }
}

void Conversation::begin() {
    for (std::size_t at = 0; at < receive_count; ++at) {
        memory_.receives.emplace_back(receive_bytes, netio::Access::remote_write);
        memory_.free_receives.push_back(at);
    }
    for (std::size_t at = 0; at < send_count; ++at) {
        memory_.sends.emplace_back(BackgroundReader::piece_bytes, netio::Access::send);
        memory_.free_sends.push_back(at);
    }
    auto reader = std::make_unique<BackgroundReader>(STDIN_FILENO, "cannot read standard input");
    const int event = reader->event_descriptor();
    input_ = std::move(reader);
    input_watch_.emplace(loop_, event, netio::DescriptorWatch::Interest::readable, [this] {
        input_->clear_event();
        take_input();
    });
    receive();
}

// --- standard input -------------------------------------------------------------------------

void Conversation::take_input() {
    while (input_ && !memory_.free_sends.empty()) {
        const auto piece = input_->take();
        if (piece.empty()) break;
        situation_.input_bytes += piece.size();
        first_byte_timer_.cancel(); // standard input is in use
        const std::size_t at = memory_.free_sends.back();
        const netio::Slice slice = memory_.sends[at].slice(0, piece.size());
        std::memcpy(slice.data, piece.data(), piece.size());
        if (socket_->send(slice, Cookie{at}) != netio::Status::ok) {
            has_unsent_input_ = true;
            return; // on_closed follows
        }
        memory_.free_sends.pop_back();
    }
    if (input_ && input_->has_ended()) input_ended();
}

void Conversation::input_ended() {
    const std::string failure = input_->failure();
    if (!failure.empty()) return fail(failure);
    stop_input();
    socket_->shutdown_send();
}

void Conversation::stop_input() {
    first_byte_timer_.cancel();
    input_watch_.reset();
    input_.reset();
}

void Conversation::on_send_completed(StreamSocket&, Cookie cookie, netio::Completion::Outcome) {
    memory_.free_sends.push_back(static_cast<std::size_t>(cookie));
    take_input();
}

// --- standard output ------------------------------------------------------------------------

void Conversation::receive() {
    while (!memory_.free_receives.empty() && (is_lost_ || !output_.is_full())) {
        const std::size_t at = memory_.free_receives.back();
        const netio::Slice slice = memory_.receives[at].slice();
        if (socket_->receive(slice, Cookie{at}, netio::stream::Fill::some) != netio::Status::ok)
            return; // it has ended
        memory_.free_receives.pop_back();
    }
}

void Conversation::on_received(StreamSocket&, const Received& received) {
    const auto at = static_cast<std::size_t>(received.cookie);
    const auto bytes = static_cast<std::size_t>(received.bytes);
    output_.put(memory_.receives[at].memory().first(bytes));
    situation_.received_bytes += bytes;
    memory_.free_receives.push_back(at);
    if (!received.end_of_stream && received.outcome == netio::Completion::Outcome::done) receive();
}

void Conversation::output_changed() {
    output_.clear_event();
    if (output_.failure()) return fail_output();
    if (is_connected_ && !is_closed_ && !peer_has_ended_) receive();
    end_if_done();
}

void Conversation::fail_output() {
    try {
        std::rethrow_exception(output_.failure());
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

// --- the end --------------------------------------------------------------------------------

void Conversation::on_end_of_stream(StreamSocket&) {
    peer_has_ended_ = true;
    output_.finish([output = standard_output_] { output.close(); });
    if (!input_) return;
    switch (after_peers_end(situation_)) {
    case AfterPeersEnd::end:
        return end_in_order();
    case AfterPeersEnd::wait_for_first_byte:
    case AfterPeersEnd::wait_for_input:
        first_byte_timer_.start(first_byte_wait);
    }
}

void Conversation::first_byte_is_late() {
    if (!input_) return;
    if (after_peers_end(situation_) == AfterPeersEnd::wait_for_first_byte) return end_in_order();
    spdlog::info("{} has ended its data; this side ends with its standard input (--until peer: end "
                 "with the peer)",
                 peer_);
}

void Conversation::end_in_order() {
    stop_input();
    socket_->close();
}

void Conversation::on_lost(StreamSocket&, std::uint64_t) {
    is_lost_ = true;
    receive();
}

void Conversation::on_closed(StreamSocket&, const netio::Closed& closed) {
    is_closed_ = true;
    stop_input();
    const bool is_orderly = closed.reason == netio::CloseReason::orderly;
    if ((!is_orderly || has_unsent_input_) && error_.empty()) {
        error_ = is_orderly
                     ? fmt::format("{} has closed before all of standard input was sent", peer_)
                     : fmt::format("{}: {}", peer_, to_string(closed));
        // The observer has already reported a peer that did not finish the handshake.
        if (is_connected_ || !settings_.listens) spdlog::error("{}", error_);
        if (const std::size_t bytes = output_.queued_bytes(); bytes > 0)
            spdlog::info("{} received bytes wait for standard output", bytes);
    }
    output_.finish([output = standard_output_] { output.close(); });
    end_if_done();
}

void Conversation::fail(const std::string& what) {
    if (error_.empty()) {
        error_ = what;
        spdlog::error("{}", error_);
    }
    stop_input();
    if (!is_closed_) return socket_->abort(); // on_closed follows
    end_timer_.start(netio::Duration::zero());
}

// The thread that writes may have failed just now: then its event is still to come, and without its
// failure this would look like an end in order.
void Conversation::end_if_done() {
    if (!is_closed_) return;
    if (output_.failure() && error_.empty()) return fail_output();
    const bool has_output = output_.is_done() || output_.failure() != nullptr;
    if (has_output || has_timed_out_) end_timer_.start(netio::Duration::zero());
}

// --- the time-out ---------------------------------------------------------------------------

std::uint64_t Conversation::moved_bytes() const {
    const StreamSocket::Counters counters = socket_->counters();
    return counters.sent.direct_bytes + counters.sent.indirect_bytes +
           counters.received.direct_bytes + counters.received.indirect_bytes +
           situation_.input_bytes + output_.written_bytes();
}

void Conversation::look() {
    const netio::TimePoint now = netio::Clock::now();
    const std::uint64_t moved = moved_bytes();
    inactivity_.on_polled(now - std::exchange(last_look_, now),
                          moved != std::exchange(seen_moved_bytes_, moved));
    if (!inactivity_.has_expired()) return look_timer_.start_at(inactivity_.poll_deadline(now));
    has_timed_out_ = true;
    const std::size_t waiting = output_.queued_bytes();
    fail(fmt::format(
        "{}: no byte was transferred for {} ms (--timeout){}", peer_, settings_.timeout.count(),
        waiting > 0 ? fmt::format("; standard output is blocked with {} queued bytes", waiting)
                    : ""));
}

struct Arguments {
    std::string peer;
    std::string listen;
    bool allow_remote_anonymous = false;
    Until until = Until::automatic;
    std::string provider = "auto";
    netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
    double timeout_s = 0;
    KeyArguments keys;
};

Settings settings_of(const Arguments& arguments) {
    Settings settings{.until = arguments.until,
                      .listens = !arguments.listen.empty(),
                      .timeout =
                          std::chrono::milliseconds{static_cast<long>(1000 * arguments.timeout_s)}};
    settings.stream.remote_writes = arguments.remote_writes;
    settings.stream.key = client_key(arguments.keys);
    return settings;
}

// The connection of a run: to the given peer, or with the first peer that connects.
class Run final : private netio::stream::StreamListener::Handler {
  public:
    explicit Run(const Arguments& arguments)
        : settings_{settings_of(arguments)}, keys_{server_keys(loop_, arguments.keys)},
          transport_{netio::open_fabric(loop_, {.provider = arguments.provider})} {
        if (!settings_.listens) {
            conversation_ = std::make_unique<Conversation>(
                loop_, *transport_, peer_address(arguments.peer), settings_,
                Conversation::Events{.on_connected = {}, .on_end = [this] { loop_.stop(); }});
            return;
        }
        listener_.emplace(*transport_,
                          netio::stream::StreamListener::Options{
                              .listen = {netio::parse_address(arguments.listen)},
                              .allow_remote_anonymous = arguments.allow_remote_anonymous,
                              .keys = keys_},
                          static_cast<netio::stream::StreamListener::Handler&>(*this));
        tell_listening(listener_->endpoints());
        if (settings_.timeout.count() > 0) nobody_came_.start(settings_.timeout);
    }

    int run() {
        loop_.run();
        return to_integer(error_.empty() && conversation_ && conversation_->error().empty()
                              ? ExitStatus::done
                              : ExitStatus::failed);
    }

  private:
    // Limit of peers that have connected but not finished the handshake of the stream.
    static constexpr std::size_t candidate_limit = 64;

    void on_incoming(netio::stream::IncomingStream& incoming) override {
        if (candidates_.size() >= candidate_limit)
            return incoming.reject("too many peers are connecting at once");
        const auto place = candidates_.insert(candidates_.end(), nullptr);
        try {
            *place = std::make_unique<Conversation>(
                loop_, incoming, settings_,
                Conversation::Events{
                    .on_connected = [this, place](Conversation&) { choose(place); },
                    .on_end =
                        [this, place] {
                            if (conversation_) return loop_.stop();
                            candidates_.erase(place);
                        }});
        } catch (...) {
            candidates_.erase(place);
            throw;
        }
    }
    // From now on all other peers are refused.
    void choose(std::list<std::unique_ptr<Conversation>>::iterator place) {
        conversation_ = std::move(*place);
        candidates_.clear();
        nobody_came_.cancel();
        listener_.reset();
    }
    void on_accept_failed(const std::string& peer, const netio::FabricError& why) override {
        fail(fmt::format("cannot accept {}: {}", peer, why.what()));
    }
    void fail(std::string what) {
        error_ = std::move(what);
        spdlog::error("{}", error_);
        loop_.stop();
    }

    Settings settings_;
    netio::EventLoop loop_;
    const LogObserver observer_{loop_};
    std::shared_ptr<netio::ServerKeys> keys_;
    std::unique_ptr<netio::Transport> transport_;
    std::optional<netio::stream::StreamListener> listener_;
    std::list<std::unique_ptr<Conversation>> candidates_;
    std::unique_ptr<Conversation> conversation_;
    std::string error_;
    netio::Timer nobody_came_{loop_, [this] {
                                  fail(fmt::format("no peer has connected within {} ms (--timeout)",
                                                   settings_.timeout.count()));
                              }};
};

Command add(CLI::App& program) {
    auto* command = program.add_subcommand(
        "cat", "Send standard input to a stream, and write the stream to standard output");
    const auto arguments = std::make_shared<Arguments>();
    auto* const peer = command->add_option("peer", arguments->peer, "HOST:PORT to connect to");
    auto* const listen = command->add_option("--listen", arguments->listen,
                                             "Listen at HOST:PORT for one peer instead");
    listen->excludes(peer);
    add_allow_remote_anonymous(*command, arguments->allow_remote_anonymous)->needs(listen);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_remote_writes(*command, arguments->remote_writes);
    add_seconds(*command, "--timeout", arguments->timeout_s,
                "Abort if no byte was transferred for this long; 0: never", Zero::taken);
    add_words(
        *command, "--until", {"auto", "peer", "both"},
        [arguments](std::size_t at) { arguments->until = static_cast<Until>(at); },
        "When to end: peer (at the end of the peer's data), both (when both directions have "
        "ended), or auto (as both, but after a transfer do not wait for a terminal or a silent "
        "pipe on standard input)");
    add_key(*command, arguments->keys);
    add_keys(*command, arguments->keys);
    return [arguments] {
        if (arguments->peer.empty() && arguments->listen.empty()) {
            throw std::invalid_argument{"netio cat needs the peer's HOST:PORT, or --listen"};
        }
        return Run{*arguments}.run();
    };
}

} // namespace
} // namespace apps::cat

apps::Command apps::add_cat(CLI::App& program) {
    return cat::add(program);
}
