// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/end.hpp"

#include "apps/common/json_line.hpp"
#include "apps/pump/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace apps::pump {

using netio::Cookie;
using netio::stream::Received;
using netio::stream::StreamSocket;

namespace {

constexpr std::size_t report_limit_bytes = 64 * 1024;
constexpr std::size_t private_bytes = 2 * report_limit_bytes;

} // namespace

End::End(netio::EventLoop& loop, netio::Transport& transport, const netio::Address& server,
         const Settings& settings, const Header& header, std::function<void(End&)> when_closed)
    : loop_{loop}, is_client_{true}, settings_{settings}, header_{header},
      when_closed_{std::move(when_closed)}, idle_{loop, settings.idle_limit,
                                                  [this] { return all_bytes(); },
                                                  [this] { on_idle(); }},
      later_{loop, [this] { drive(); }}, socket_{std::make_unique<StreamSocket>(
                                             transport, settings.stream,
                                             static_cast<StreamSocket::Handler&>(*this))} {
    socket_->connect(server);
}

End::End(netio::EventLoop& loop, netio::stream::IncomingStream& incoming, const Settings& settings,
         std::function<void(End&)> when_closed)
    : loop_{loop}, is_client_{false}, settings_{settings}, when_closed_{std::move(when_closed)},
      idle_{loop, settings.idle_limit, [this] { return all_bytes(); }, [this] { on_idle(); }},
      later_{loop, [this] { drive(); }}, socket_{incoming.accept(settings.stream, *this)} {}

void End::on_connected(StreamSocket& socket) {
    provider_ = socket.provider();
    idle_.start();
    as_memory_allows([&] {
        private_memory_.emplace(private_bytes, netio::Access::remote_write);
        if (!is_client_) {
            const auto slice = private_memory_->slice(0, header_bytes);
            static_cast<void>(socket.receive(slice, private_key, netio::stream::Fill::all));
            return;
        }
        const auto bytes = encode(*header_);
        std::ranges::copy(bytes, private_memory_->data());
        static_cast<void>(socket.send(private_memory_->slice(0, bytes.size()), private_key));
        begin_flows();
    });
}

void End::as_memory_allows(const std::function<void()>& step) {
    try {
        step();
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

// A stranger decides how large a message is, but not how much memory is spent on it.
std::size_t End::piece_bytes(std::uint64_t wanted, std::size_t count) const {
    const std::size_t limit = settings_.memory_limit_bytes;
    const std::uint64_t most = limit == 0 ? wanted : std::max<std::uint64_t>(1, limit / 2 / count);
    return static_cast<std::size_t>(std::min(wanted, most));
}

void End::begin_flows() {
    measurement_.begin(loop_.now());
    const auto plan = [&](bool of_client) {
        return Plan{.bytes = header_->bytes,
                    .seed = header_->seed + (of_client ? 0 : 1),
                    .verify = header_->verify};
    };
    try {
        if (is_client_ || header_->bidirectional) {
            Plan out = plan(is_client_);
            out.outstanding = settings_.sends;
            out.size_max = piece_bytes(header_->size_max, out.outstanding);
            out.size_min = piece_bytes(header_->size_min, out.outstanding);
            flows_.source.emplace(*socket_, out);
        }
        if (!is_client_ || header_->bidirectional) {
            Plan in = plan(!is_client_);
            in.outstanding = settings_.receives;
            in.size_max = settings_.receive_size_max != 0
                              ? settings_.receive_size_max
                              : piece_bytes(header_->size_max, in.outstanding);
            in.size_min = settings_.receive_size_min != 0
                              ? std::min(settings_.receive_size_min, in.size_max)
                              : in.size_max;
            in.fill = settings_.wait_all ? netio::stream::Fill::all : netio::stream::Fill::some;
            flows_.sink.emplace(*socket_, in);
        }
    } catch (const std::exception& error) {
        return decline(fmt::format("no memory for {} sends and {} receives of {} bytes: {}",
                                   settings_.sends, settings_.receives, header_->size_max,
                                   error.what()));
    }
    if (is_client_ && (!flows_.sink || flows_.sink->is_complete())) receive_report();
    drive();
}

void End::drive() {
    if (!header_ || finished_) return;
    as_memory_allows([this] {
        if (flows_.source && !flows_.source->drive()) later_.start(netio::Duration::zero());
        if (flows_.sink) flows_.sink->drive();
    });
    if (!error_.empty()) return;
    if (flows_.source && !flows_.source->all_submitted()) return;
    if (!is_client_) {
        if (!flows_.sink->is_complete()) return;
        send_report();
        if (!error_.empty()) return;
    }
    finished_ = true;
    socket_->shutdown_send();
}

void End::on_send_completed(StreamSocket&, Cookie key, netio::Completion::Outcome outcome) {
    if (outcome != netio::Completion::Outcome::done || key == private_key) return;
    flows_.source->on_send_completed(key);
    drive();
}

void End::on_received(StreamSocket&, const Received& received) {
    if (received.outcome != netio::Completion::Outcome::done) return;
    if (received.cookie == private_key) {
        is_client_ ? take_report(received) : take_header(received);
        return;
    }
    flows_.sink->on_received(received);
    if (flows_.sink->is_complete()) {
        measure_end();
        if (is_client_) receive_report();
    }
    if (finished_) { // the other direction may have ended before this one
        as_memory_allows([this] { flows_.sink->drive(); });
    } else {
        drive();
    }
}

void End::measure_end() {
    measurement_.end(netio::Clock::now());
}

// --- header and report: the first half of the private memory is for the header ------------------

void End::take_header(const Received& received) {
    header_ = decode_header({private_memory_->data(), static_cast<std::size_t>(received.bytes)});
    if (!header_) return fail("what it sent first is no pump's header");
    begin_flows();
}

void End::receive_report() {
    as_memory_allows([this] {
        static_cast<void>(
            socket_->receive(private_memory_->slice(report_limit_bytes, report_limit_bytes),
                             private_key, netio::stream::Fill::some));
    });
}

void End::take_report(const Received& received) {
    peer_report_.append(reinterpret_cast<const char*>(private_memory_->data() + report_limit_bytes),
                        static_cast<std::size_t>(received.bytes));
    if (peer_report_.size() > report_limit_bytes) return fail("the server's report has no end");
    if (!received.end_of_stream) receive_report();
}

void End::send_report() {
    const std::string text = json_line(report());
    std::memcpy(private_memory_->data() + report_limit_bytes, text.data(), text.size());
    as_memory_allows([&] {
        static_cast<void>(
            socket_->send(private_memory_->slice(report_limit_bytes, text.size()), private_key));
    });
}

// --- the end --------------------------------------------------------------------------------

void End::fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    socket_->abort();
}

std::uint64_t End::all_bytes() const {
    const auto [sent, received] = [&] {
        const auto counters = socket_->counters();
        return std::pair{counters.sent, counters.received};
    }();
    return sent.direct_bytes + sent.indirect_bytes + received.direct_bytes +
           received.indirect_bytes;
}

void End::on_idle() {
    fail(fmt::format("nothing has moved for {} ms", settings_.idle_limit.count()));
}

// The client is told why, where it expects a report and no bytes.
void End::decline(const std::string& why) {
    if (is_client_ || header_->bidirectional) return fail(why);
    error_ = why;
    send_report();
    socket_->close();
}

void End::on_end_of_stream(StreamSocket&) {
    if (is_client_ && !flows_.sink) measure_end();
}

void End::on_closed(StreamSocket&, const netio::Closed& closed) {
    idle_.cancel();
    later_.cancel();
    if (measurement_.is_running()) measure_end();
    const bool whole = finished_ && (!flows_.sink || flows_.sink->is_complete());
    // What the server says of it comes before what became of the connection then.
    if (error_.empty() && is_client_ && !peer_report_.empty()) error_ = problem_in(peer_report_);
    if (error_.empty() && (closed.reason != netio::CloseReason::orderly || !whole)) {
        error_ = to_string(closed);
    }
    if (error_.empty()) error_ = wrong_byte();
    if (error_.empty() && is_client_) error_ = problem_in(peer_report_); // there must be one
    when_closed_(*this);                                                 // may destroy this object
}

std::uint64_t End::moved_bytes() const {
    if (flows_.sink) return flows_.sink->received_bytes();
    const netio::stream::SenderCounters sent = socket_->counters().sent;
    return sent.direct_bytes + sent.indirect_bytes;
}

StreamFigures End::figures(const std::string& peer) const {
    return {.peer = peer,
            .counters = socket_->counters(),
            .queued_bytes = socket_->is_connected() ? socket_->queued_bytes() : 0};
}

std::string End::wrong_byte() const {
    return flows_.sink && flows_.sink->wrong_at()
               ? fmt::format("a wrong byte at position {}", *flows_.sink->wrong_at())
               : std::string{};
}

nlohmann::ordered_json End::report() const {
    return to_report({.is_client = is_client_,
                      .provider = provider_,
                      .error = error_.empty() ? wrong_byte() : error_,
                      .bytes = moved_bytes(),
                      .verified = header_ && header_->verify,
                      .receives = flows_.sink.has_value(),
                      .measurement = measurement_,
                      .counters = socket_->counters(),
                      .peer_report = peer_report_});
}

} // namespace apps::pump
