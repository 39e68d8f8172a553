// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/path_probe.hpp"

#include "netio/base/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace apps {
namespace {

namespace wire = netio::wire;

constexpr std::uint8_t echo_kind = netio::first_service_kind;
constexpr std::uint8_t data_kind = netio::first_service_kind + 1;
constexpr std::uint8_t sum_kind = netio::first_service_kind + 2;

constexpr std::size_t frame_bytes = std::size_t{1} << 20U;
constexpr std::size_t echo_bytes = 8;
// All zeros: authentication needs the same size for every service.
constexpr std::size_t service_bytes = 4;

netio::SessionOptions session_options() {
    return {.receive_buffer_bytes = frame_bytes, .receive_count = 8, .send_count = 8};
}

netio::Hello hello() {
    netio::Hello hello{.service = probe_service, .service_data = {}};
    hello.service_data.size = service_bytes;
    return hello;
}

std::byte pattern_at(std::size_t position) {
    return static_cast<std::byte>(position * 13 + position / 251);
}

double microseconds(netio::Duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
}

} // namespace

// --- answering ------------------------------------------------------------------------------

ProbeServer::ProbeServer(netio::Transport& transport, const Options& options)
    : loop_{transport.loop()}, places_{options.peer_limit_count}, idle_limit_{options.idle_limit},
      listener_{transport,
                {.service = probe_service,
                 .listen = {options.address},
                 .allow_remote_anonymous = options.allow_remote_anonymous,
                 .service_bytes = service_bytes,
                 .keys = options.keys},
                static_cast<netio::SessionListener::Handler&>(*this)} {}

ProbeServer::~ProbeServer() = default;

void ProbeServer::on_incoming(netio::IncomingSession& incoming) {
    Peer peer;
    peer.answer = std::make_unique<netio::RegisteredBuffer>(frame_bytes);
    const std::string address = incoming.peer_address();
    if (!places_.enter(address).empty()) return incoming.reject({.code = netio::RejectCode::full});
    try {
        peer.session = incoming.accept(hello(), session_options(), *this);
    } catch (...) {
        places_.leave(address);
        throw;
    }
    netio::Session* const session = peer.session.get();
    Peer& kept = peers_.emplace(session, std::move(peer)).first->second;
    kept.idle = std::make_unique<IdleWatch>(
        loop_, idle_limit_, [&kept] { return kept.frames; },
        [session] {
            session->fail(netio::CloseReason::failed, "no request within the idle limit");
        });
    kept.idle->start();
}

void ProbeServer::on_open(netio::Session& session) {
    if (at_visit) at_visit(session.peer_address() + " is connected");
}

void ProbeServer::on_frame(netio::Session& session, const netio::IncomingFrame& frame) {
    Peer& peer = peers_.at(&session);
    ++peer.frames;
    if (frame.kind == data_kind) {
        peer.bytes += frame.body.size();
        return;
    }
    std::array<std::byte, sizeof peer.bytes> sum;
    wire::store(sum.data(), peer.bytes);
    netio::Status status = netio::Status::again;
    if (frame.kind == echo_kind) status = answer(session, peer, echo_kind, frame.body);
    if (frame.kind == sum_kind) status = answer(session, peer, sum_kind, sum);
    if (status != netio::Status::ok) {
        session.fail(netio::CloseReason::protocol_error,
                     session.peer_address() + " sent a request out of order");
    }
}

netio::Status ProbeServer::answer(netio::Session& session, Peer& peer, std::uint8_t kind,
                                  std::span<const std::byte> body) {
    if (body.size() <= netio::frame_extension_limit) { // copied
        return session.send({.kind = kind, .flags = 0, .extension = body, .slices = {}},
                            std::nullopt);
    }
    if (peer.answer_lent) return netio::Status::again;
    std::ranges::copy(body, peer.answer->data());
    const netio::Slice slice = peer.answer->slice(0, body.size());
    const netio::Status status = session.send(
        {.kind = kind, .flags = 0, .extension = {}, .slices = {&slice, 1}}, netio::Cookie{kind});
    peer.answer_lent = status == netio::Status::ok;
    return status;
}

void ProbeServer::on_sent(netio::Session& session, netio::Cookie, netio::Completion::Outcome) {
    peers_.at(&session).answer_lent = false;
}

void ProbeServer::on_closed(netio::Session& session, const netio::Closed& closed) {
    if (at_visit) {
        at_visit(session.peer_address() + " has disconnected: " + explain(closed));
    }
    places_.leave(session.peer_address());
    peers_.erase(&session);
}

// --- asking ---------------------------------------------------------------------------------

PathProbe::PathProbe(netio::Transport& transport, const netio::Address& remote,
                     const Options& options, std::function<void()> at_end)
    : transport_{transport}, options_{options}, at_end_{std::move(at_end)}, memory_{frame_bytes},
      connector_{transport, *this} {
    for (std::size_t i = 0; i < memory_.size(); ++i)
        memory_.data()[i] = pattern_at(i);
    connector_.connect(remote, {}, options.key);
}

PathProbe::~PathProbe() = default;

void PathProbe::on_route(const netio::Session::Target& target) {
    running_.provider = target.provider;
    session_ = std::make_unique<netio::Session>(transport_, target, hello(), session_options(),
                                                static_cast<netio::Session::Handler&>(*this));
}

void PathProbe::on_connect_failed(const netio::Closed& closed) {
    failure_ = to_string(closed);
    at_end_();
}

void PathProbe::on_open(netio::Session& session) {
    connector_.cancel();
    running_.largest_bytes = std::min(session.body_limit(), memory_.size());
    running_.provider_message_bytes = session.capabilities().message_bytes;
    send(echo_kind, running_.largest_bytes);
}

void PathProbe::send(std::uint8_t kind, std::size_t bytes) {
    const netio::Slice body = memory_.slice(0, bytes);
    // The send queue has space, because nothing else is in flight.
    if (session_->send({.kind = kind, .flags = 0, .extension = {}, .slices = {&body, 1}},
                       std::nullopt) != netio::Status::ok) {
        fail("a frame of " + std::to_string(bytes) + " bytes could not be sent");
    }
}

void PathProbe::send_echo() {
    sent_at_ = netio::Clock::now();
    send(echo_kind, echo_bytes);
}

void PathProbe::on_frame(netio::Session&, const netio::IncomingFrame& frame) {
    if (frame.kind == echo_kind && step_ <= Step::round_trips) return take_echo(frame.body);
    if (frame.kind == sum_kind && step_ == Step::sum) return take_sum(frame.body);
    fail("the peer sent an unexpected answer");
}

void PathProbe::take_echo(std::span<const std::byte> body) {
    const netio::TimePoint now = netio::Clock::now();
    const bool largest = step_ == Step::largest;
    const std::size_t size = largest ? running_.largest_bytes : echo_bytes;
    if (!std::ranges::equal(body, std::span{memory_.data(), size})) {
        return fail("the peer's answer differs from the sent data");
    }
    if (largest) {
        step_ = Step::round_trips;
        step_begin_ = now;
        return send_echo();
    }
    running_.round_trips.push_back(now - sent_at_);
    if (running_.round_trips.size() < options_.round_trip_count &&
        now - step_begin_ < options_.limit) {
        return send_echo();
    }
    step_ = Step::transfer;
    step_begin_ = now;
    transfer();
}

void PathProbe::transfer() {
    while (step_ == Step::transfer) {
        const bool enough = bytes_sent_ >= options_.transfer_bytes ||
                            netio::Clock::now() - step_begin_ >= options_.limit;
        const std::size_t bytes = enough ? 0 : running_.largest_bytes;
        const netio::Slice body = memory_.slice(0, bytes);
        const netio::Status status = session_->send({.kind = enough ? sum_kind : data_kind,
                                                     .flags = 0,
                                                     .extension = {},
                                                     .slices = {&body, 1}},
                                                    std::nullopt);
        if (status != netio::Status::ok) return; // on_writable or on_closed follows
        bytes_sent_ += bytes;
        if (enough) step_ = Step::sum;
    }
}

void PathProbe::on_writable(netio::Session&) {
    transfer();
}

void PathProbe::take_sum(std::span<const std::byte> body) {
    const std::chrono::duration<double> taken = netio::Clock::now() - step_begin_;
    if (body.size() != 8 || wire::load<std::uint64_t>(body.data()) != bytes_sent_) {
        return fail("the peer received a different number of bytes than were sent");
    }
    running_.gbit_per_s = static_cast<double>(bytes_sent_) * 8e-9 / taken.count();
    std::ranges::sort(running_.round_trips);
    step_ = Step::done;
    session_->close();
}

void PathProbe::fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    session_->abort();
}

void PathProbe::on_closed(netio::Session&, const netio::Closed& closed) {
    if (connector_.is_connecting()) {
        const netio::Closed last = closed; // NOLINT: needs a copy, the session is destroyed here
        session_.reset();
        return connector_.try_next(last);
    }
    if (step_ == Step::done) {
        figures_ = std::move(running_);
    } else if (failure_.empty()) {
        failure_ = to_string(closed);
    }
    at_end_();
}

std::vector<std::string> to_lines(const PathFigures& figures) {
    const auto& trips = figures.round_trips;
    const auto part = [&](std::size_t percent) {
        return microseconds(trips[(trips.size() - 1) * percent / 100]);
    };
    return {
        fmt::format("over {}", figures.provider),
        fmt::format("round trip of {} B, {} times: median {:.1f} us, 99 % within {:.1f} us, "
                    "shortest {:.1f} us",
                    echo_bytes, trips.size(), part(50), part(99), part(0)),
        fmt::format("bandwidth in frames of {} B: {:.2f} Gbit/s", figures.largest_bytes,
                    figures.gbit_per_s),
        fmt::format("a frame of {} B came back complete; the provider accepts messages up to {} B",
                    figures.largest_bytes, figures.provider_message_bytes)};
}

} // namespace apps
