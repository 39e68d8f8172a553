// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/pump.hpp"

#include "apps/common/printable.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace apps {

using netio::Cookie;
using netio::stream::Received;
using netio::stream::StreamSocket;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t report_limit_bytes = 64 * 1024;
constexpr std::size_t private_bytes = 2 * report_limit_bytes;

double share(std::uint64_t part, std::uint64_t rest) {
    return part + rest == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(part + rest);
}

} // namespace

std::string text_in(const Json& report, const char* name) {
    const auto found = report.find(name);
    return found != report.end() && found->is_string() ? printable(found->get<std::string>())
                                                       : std::string{};
}

double number_in(const Json& report, const char* name) {
    const auto found = report.find(name);
    return found != report.end() && found->is_number() ? found->get<double>() : 0;
}

double processor_seconds() {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

PumpEnd::PumpEnd(netio::EventLoop& loop, netio::Transport& transport, const netio::Address& server,
                 const PumpSettings& settings, const PumpHeader& header,
                 std::function<void(PumpEnd&)> when_closed)
    : loop_{loop}, is_client_{true}, settings_{settings}, header_{header}, when_closed_{std::move(
                                                                               when_closed)},
      private_memory_{private_bytes, netio::Access::remote_write}, begin_{loop.now()}, end_{begin_},
      socket_{std::make_unique<StreamSocket>(transport, settings.stream,
                                             static_cast<StreamSocket::Handler&>(*this))} {
    socket_->connect(server);
}

PumpEnd::PumpEnd(netio::EventLoop& loop, netio::stream::IncomingStream& incoming,
                 const PumpSettings& settings, std::function<void(PumpEnd&)> when_closed)
    : loop_{loop}, is_client_{false}, settings_{settings}, when_closed_{std::move(when_closed)},
      private_memory_{private_bytes, netio::Access::remote_write}, begin_{loop.now()}, end_{begin_},
      socket_{incoming.accept(settings.stream, *this)} {}

void PumpEnd::on_connected(StreamSocket& socket) {
    provider_ = socket.provider();
    if (!is_client_) {
        const auto slice = private_memory_.slice(0, pump_header_bytes);
        static_cast<void>(socket.receive(slice, private_key, netio::stream::Fill::all));
        return;
    }
    const auto bytes = encode(*header_);
    std::ranges::copy(bytes, private_memory_.data());
    static_cast<void>(socket.send(private_memory_.slice(0, bytes.size()), private_key));
    begin_flows();
}

// A stranger decides how large a message is, but not how much memory is spent on it.
std::size_t PumpEnd::piece_bytes(std::uint64_t wanted, std::size_t count) const {
    const std::size_t limit = settings_.memory_limit_bytes;
    const std::uint64_t most = limit == 0 ? wanted : std::max<std::uint64_t>(1, limit / 2 / count);
    return static_cast<std::size_t>(std::min(wanted, most));
}

void PumpEnd::begin_flows() {
    begin_ = end_ = loop_.now();
    processor_begin_ = processor_seconds();
    const auto plan = [&](bool of_client) {
        return PumpPlan{.bytes = header_->bytes,
                        .seed = header_->seed + (of_client ? 0 : 1),
                        .verify = header_->verify};
    };
    try {
        if (is_client_ || header_->bidirectional) {
            PumpPlan out = plan(is_client_);
            out.outstanding = settings_.sends;
            out.size_max = piece_bytes(header_->size_max, out.outstanding);
            out.size_min = piece_bytes(header_->size_min, out.outstanding);
            source_.emplace(*socket_, out);
        }
        if (!is_client_ || header_->bidirectional) {
            PumpPlan in = plan(!is_client_);
            in.outstanding = settings_.receives;
            in.size_max = settings_.receive_size_max != 0
                              ? settings_.receive_size_max
                              : piece_bytes(header_->size_max, in.outstanding);
            in.size_min = settings_.receive_size_min != 0
                              ? std::min(settings_.receive_size_min, in.size_max)
                              : in.size_max;
            in.fill = settings_.wait_all ? netio::stream::Fill::all : netio::stream::Fill::some;
            sink_.emplace(*socket_, in);
        }
    } catch (const std::exception& error) {
        return fail(fmt::format("no memory for {} sends and {} receives of {} bytes: {}",
                                settings_.sends, settings_.receives, header_->size_max,
                                error.what()));
    }
    if (is_client_ && (!sink_ || sink_->is_complete())) receive_report();
    drive();
}

void PumpEnd::drive() {
    if (!header_ || finished_) return;
    if (source_) source_->drive();
    if (sink_) sink_->drive();
    if (source_ && !source_->all_submitted()) return;
    if (!is_client_) {
        if (!sink_->is_complete()) return;
        send_report();
    }
    finished_ = true;
    socket_->shutdown_send();
}

void PumpEnd::on_send_completed(StreamSocket&, Cookie key, netio::Completion::Outcome outcome) {
    if (outcome != netio::Completion::Outcome::done || key == private_key) return;
    source_->on_send_completed(key);
    drive();
}

void PumpEnd::on_received(StreamSocket& socket, const Received& received) {
    if (received.outcome != netio::Completion::Outcome::done) return;
    if (received.cookie == private_key) {
        is_client_ ? take_report(received) : take_header(socket, received);
        return;
    }
    sink_->on_received(received);
    if (sink_->is_complete()) {
        measure_end();
        if (is_client_) receive_report();
    }
    if (finished_) {
        sink_->drive(); // the other direction may have ended before this one
    } else {
        drive();
    }
}

void PumpEnd::measure_end() {
    end_ = netio::Clock::now();
    processor_s_ = processor_seconds() - processor_begin_;
}

// --- header and report: the first half of the private memory is for the header ------------------

void PumpEnd::take_header(const StreamSocket& socket, const Received& received) {
    header_ =
        decode_pump_header({private_memory_.data(), static_cast<std::size_t>(received.bytes)});
    if (!header_) return fail(socket.peer_address() + " is no pump");
    begin_flows();
}

void PumpEnd::receive_report() {
    static_cast<void>(
        socket_->receive(private_memory_.slice(report_limit_bytes, report_limit_bytes), private_key,
                         netio::stream::Fill::some));
}

void PumpEnd::take_report(const Received& received) {
    peer_report_.append(reinterpret_cast<const char*>(private_memory_.data() + report_limit_bytes),
                        static_cast<std::size_t>(received.bytes));
    if (peer_report_.size() > report_limit_bytes) return fail("the server's report has no end");
    if (!received.end_of_stream) receive_report();
}

void PumpEnd::send_report() {
    if (!sink_->is_complete()) return;
    const std::string text = report().dump();
    std::memcpy(private_memory_.data() + report_limit_bytes, text.data(), text.size());
    static_cast<void>(
        socket_->send(private_memory_.slice(report_limit_bytes, text.size()), private_key));
}

// --- the end --------------------------------------------------------------------------------

void PumpEnd::fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    socket_->abort();
}

void PumpEnd::on_end_of_stream(StreamSocket&) {
    if (is_client_ && !sink_) measure_end();
}

void PumpEnd::on_closed(StreamSocket&, const netio::Closed& closed) {
    const bool whole = finished_ && (!sink_ || sink_->is_complete());
    if (error_.empty() && (closed.reason != netio::CloseReason::orderly || !whole)) {
        error_ = closed.detail.empty() ? std::string{to_string(closed.reason)} : closed.detail;
    }
    if (error_.empty() && sink_ && sink_->wrong_at()) {
        error_ = fmt::format("a wrong byte at position {}", *sink_->wrong_at());
    }
    if (error_.empty() && is_client_) {
        const Json theirs = Json::parse(peer_report_, nullptr, false);
        if (!theirs.is_object()) {
            error_ = "the server's report cannot be read";
        } else if (const std::string problem = text_in(theirs, "error"); !problem.empty()) {
            error_ = "the server reports " + problem;
        }
    }
    when_closed_(*this); // may destroy this object
}

std::uint64_t PumpEnd::moved_bytes() const {
    if (sink_) return sink_->received_bytes();
    const netio::stream::SenderCounters sent = socket_->counters().sent;
    return sent.direct_bytes + sent.indirect_bytes;
}

Json PumpEnd::report() const {
    const netio::stream::StreamSocket::Counters counters = socket_->counters();
    const netio::stream::SenderCounters& sent = counters.sent;
    const netio::stream::ReceiverCounters& received = counters.received;
    const double seconds = std::chrono::duration<double>(end_ - begin_).count();
    const std::uint64_t bytes =
        sink_ ? sink_->received_bytes() : sent.direct_bytes + sent.indirect_bytes;
    std::string error = error_;
    if (error.empty() && sink_ && sink_->wrong_at()) {
        error = fmt::format("a wrong byte at position {}", *sink_->wrong_at());
    }
    Json report{{"role", is_client_ ? "pump" : "pump-server"},
                {"provider", provider_},
                {"error", error},
                {"bytes", bytes},
                {"seconds", seconds},
                {"gbit_per_s", seconds > 0 ? 8e-9 * static_cast<double>(bytes) / seconds : 0.0},
                {"processor_s", processor_s_},
                {"processor_share", seconds > 0 ? processor_s_ / seconds : 0.0},
                {"verified", header_ && header_->verify},
                {"direct_share", sink_ ? share(received.direct_bytes, received.indirect_bytes)
                                       : share(sent.direct_bytes, sent.indirect_bytes)},
                {"direct_share_sent", share(sent.direct_bytes, sent.indirect_bytes)},
                {"direct_share_received", share(received.direct_bytes, received.indirect_bytes)},
                {"sent",
                 {{"direct_bytes", sent.direct_bytes},
                  {"indirect_bytes", sent.indirect_bytes},
                  {"direct_transfers", sent.direct_transfers},
                  {"indirect_transfers", sent.indirect_transfers},
                  {"phase_switches", sent.phase_switches},
                  {"adverts_received", sent.adverts_received},
                  {"adverts_rejected_by_phase", sent.adverts_rejected_by_phase},
                  {"adverts_rejected_by_sequence", sent.adverts_rejected_by_sequence},
                  {"waits_for_ring", sent.waits_for_ring},
                  {"ring_bytes", sent.ring_bytes},
                  {"ring_growths", sent.ring_growths},
                  {"waits_for_advert", sent.waits_for_advert},
                  {"waits_for_capacity", counters.waits_for_capacity}}},
                {"received",
                 {{"direct_bytes", received.direct_bytes},
                  {"indirect_bytes", received.indirect_bytes},
                  {"phase_switches", received.phase_switches},
                  {"adverts", received.adverts},
                  {"adverts_revoked", received.adverts_revoked},
                  {"acknowledgements", received.acks},
                  {"ring_bytes", received.ring_bytes},
                  {"ring_growths", received.ring_growths},
                  {"ring_refusals", received.ring_refusals},
                  {"control_messages", counters.controls}}}};
    const Json theirs = Json::parse(peer_report_, nullptr, false);
    if (is_client_ && theirs.is_object()) report["server"] = theirs;
    return report;
}

} // namespace apps
