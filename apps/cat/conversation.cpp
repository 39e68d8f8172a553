// SPDX-License-Identifier: Apache-2.0
#include "apps/cat/conversation.hpp"

#include "netio/base/option_check.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace apps::cat {

using netio::Cookie;
using netio::stream::Received;
using netio::stream::StreamSocket;

namespace {

bool is_pipe_or_socket(int descriptor) {
    struct stat status {};
    return ::fstat(descriptor, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

Input kind_of_input() {
    if (::isatty(STDIN_FILENO) == 1) return Input::terminal;
    return is_pipe_or_socket(STDIN_FILENO) ? Input::endless_pipe : Input::file;
}

// A reader of standard output that pauses at the peer does not end the connection: a peer that has
// died is noticed by its silence, and --timeout limits the rest.
StreamSocket::Options patient(StreamSocket::Options options) {
    options.session.close_timeout = options.session.close_limit = netio::longest_time;
    return options;
}

} // namespace

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
    look_timer_.start_at(inactivity_.look_end(last_look_));
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
        first_byte_timer_.cancel(); // it is in use
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
    spdlog::info("{} sends no more; this side ends with its standard input (--until peer ends it "
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
        // Of a peer that did not finish the handshake the observer has reported.
        if (is_connected_ || !settings_.listens) spdlog::error("{}", error_);
        if (const std::size_t bytes = output_.queued_bytes(); bytes > 0)
            spdlog::info("{} bytes that have arrived wait for standard output", bytes);
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

void Conversation::end_if_done() {
    const bool has_output = output_.is_done() || output_.failure() != nullptr;
    if (is_closed_ && (has_output || has_timed_out_)) end_timer_.start(netio::Duration::zero());
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
    inactivity_.on_looked(now - std::exchange(last_look_, now),
                          moved != std::exchange(seen_moved_bytes_, moved));
    if (!inactivity_.has_expired()) return look_timer_.start_at(inactivity_.look_end(now));
    has_timed_out_ = true;
    const std::size_t waiting = output_.queued_bytes();
    fail(fmt::format(
        "{}: no byte has moved for {} ms (--timeout){}", peer_, settings_.timeout.count(),
        waiting > 0 ? fmt::format("; standard output has not taken {} bytes", waiting) : ""));
}

} // namespace apps::cat
