// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/end.hpp"

#include "apps/common/report.hpp"
#include "netio/base/wire.hpp"
#include "pubsub/discovery/bounded_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

namespace apps::pump {

double processor_seconds() {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Measurement::begin(netio::TimePoint now) {
    begin_ = end_ = now;
    processor_begin_ = processor_seconds();
    processor_s_ = 0;
}

void Measurement::end(netio::TimePoint now) {
    end_ = now;
    processor_s_ = processor_seconds() - processor_begin_;
}

double Measurement::seconds() const {
    return std::chrono::duration<double>(end_ - begin_).count();
}

using Json = nlohmann::ordered_json;

namespace {

// Limit of a text in the peer's report.
constexpr std::size_t text_limit_bytes = 1024;
constexpr netio::pubsub::JsonLimits report_limits{.depth = 8, .values = 4096};

// Returns null if the text is not JSON or exceeds a limit.
Json document_of(const std::string& peer_report) {
    try {
        return netio::pubsub::parse_bounded<Json>(peer_report, report_limits);
    } catch (const netio::pubsub::JsonError&) {
        return nullptr;
    }
}

double share(std::uint64_t part, std::uint64_t rest) {
    return part + rest == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(part + rest);
}

} // namespace

std::string text_in(const Json& report, const char* name) {
    const auto found = report.find(name);
    return found != report.end() && found->is_string()
               ? found->get<std::string>().substr(0, text_limit_bytes)
               : std::string{};
}

double number_in(const Json& report, const char* name) {
    const auto found = report.find(name);
    return found != report.end() && found->is_number() ? found->get<double>() : 0;
}

std::string problem_in(const std::string& peer_report) {
    const Json theirs = document_of(peer_report);
    if (!theirs.is_object()) return "the server's report is invalid";
    const std::string problem = text_in(theirs, "error");
    return problem.empty() ? problem : "the server reports " + problem;
}

Json to_report(const Facts& facts) {
    const netio::stream::SenderCounters& sent = facts.counters.sent;
    const netio::stream::ReceiverCounters& received = facts.counters.received;
    const double seconds = facts.measurement.seconds();
    Json report{
        {"role", facts.is_client ? "pump" : "pump-server"},
        {"report_version", report_version},
        {"provider", facts.provider},
        {"error", facts.error},
        {"bytes", facts.bytes},
        {"seconds", seconds},
        {"gbit_per_s", seconds > 0 ? 8e-9 * static_cast<double>(facts.bytes) / seconds : 0.0},
        {"processor_s", facts.measurement.processor_s()},
        {"processor_share", facts.measurement.processor_share()},
        {"verified", facts.verified},
        {"direct_share", facts.receives ? share(received.direct_bytes, received.indirect_bytes)
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
          {"waits_for_capacity", facts.counters.waits_for_capacity}}},
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
          {"control_messages", facts.counters.controls}}}};
    const Json theirs = document_of(facts.peer_report);
    if (facts.is_client && theirs.is_object()) report["server"] = theirs;
    return report;
}

std::string as_text(const Json& report) {
    const auto line = [](const char* who, const Json& side) {
        return fmt::format(
            "{}: {:.2f} Gb/s, {:.0f} bytes in {:.3f} s, {:.0f} % of a core, {:.1f} % "
            "direct\n",
            who, number_in(side, "gbit_per_s"), number_in(side, "bytes"),
            number_in(side, "seconds"), 100 * number_in(side, "processor_share"),
            100 * number_in(side, "direct_share"));
    };
    std::string text = line(text_in(report, "role") == "pump" ? "client" : "server", report);
    if (report.contains("server")) text += line("server", report["server"]);
    return text;
}

namespace {

constexpr std::uint64_t magic = 0x0000'0150'4d55'504e; // "NPUMP", version 1
constexpr std::uint32_t verify_flag = 1;
constexpr std::uint32_t bidirectional_flag = 2;

} // namespace

std::array<std::byte, header_bytes> encode(const Header& header) noexcept {
    std::array<std::byte, header_bytes> out{};
    netio::wire::store(out.data(), magic);
    netio::wire::store(out.data() + 8, header.bytes);
    netio::wire::store(out.data() + 16, header.seed);
    netio::wire::store(out.data() + 24, header.size_min);
    netio::wire::store(out.data() + 32, header.size_max);
    netio::wire::store(out.data() + 40, (header.verify ? verify_flag : 0U) |
                                            (header.bidirectional ? bidirectional_flag : 0U));
    return out;
}

std::optional<Header> decode_header(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() != header_bytes) return std::nullopt;
    if (netio::wire::load<std::uint64_t>(bytes.data()) != magic) return std::nullopt;
    const auto flags = netio::wire::load<std::uint32_t>(bytes.data() + 40);
    const auto zero = netio::wire::load<std::uint32_t>(bytes.data() + 44);
    const Header header{.bytes = netio::wire::load<std::uint64_t>(bytes.data() + 8),
                        .seed = netio::wire::load<std::uint64_t>(bytes.data() + 16),
                        .size_min = netio::wire::load<std::uint64_t>(bytes.data() + 24),
                        .size_max = netio::wire::load<std::uint64_t>(bytes.data() + 32),
                        .verify = (flags & verify_flag) != 0,
                        .bidirectional = (flags & bidirectional_flag) != 0};
    const bool sound = (flags & ~(verify_flag | bidirectional_flag)) == 0 && zero == 0 &&
                       header.size_min >= 1 && header.size_min <= header.size_max &&
                       header.size_max <= size_limit_bytes;
    return sound ? std::optional{header} : std::nullopt;
}

namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

// Works on words instead of bytes, without state between them, so that a compiler can vectorise the
// loops.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) noexcept {
    std::uint64_t x = (seed + index) * 0x9E3779B97F4A7C15;
    return x ^ (x >> 32U);
}

std::byte byte_at(std::uint64_t seed, std::uint64_t position) noexcept {
    return static_cast<std::byte>(word_at(seed, position / word_bytes) >>
                                  (8 * (position % word_bytes)));
}

// Number of bytes before the first complete word.
std::size_t head_of(std::size_t size, std::uint64_t position) noexcept {
    return std::min<std::size_t>(size, (word_bytes - position % word_bytes) % word_bytes);
}

} // namespace

void fill_stream(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t position) noexcept {
    std::size_t at = 0;
    for (const std::size_t head = head_of(bytes.size(), position); at < head; ++at)
        bytes[at] = byte_at(seed, position + at);
    for (; at + word_bytes <= bytes.size(); at += word_bytes) {
        const std::uint64_t word = word_at(seed, (position + at) / word_bytes);
        std::memcpy(bytes.data() + at, &word, word_bytes);
    }
    for (; at < bytes.size(); ++at)
        bytes[at] = byte_at(seed, position + at);
}

std::optional<std::size_t> find_wrong_byte(std::span<const std::byte> bytes, std::uint64_t seed,
                                           std::uint64_t position) noexcept {
    const auto search = [&](std::size_t from, std::size_t to) -> std::optional<std::size_t> {
        for (std::size_t i = from; i < to; ++i)
            if (bytes[i] != byte_at(seed, position + i)) return i;
        return std::nullopt;
    };
    const std::size_t head = head_of(bytes.size(), position);
    if (const auto wrong = search(0, head)) return wrong;
    const std::size_t words = (bytes.size() - head) / word_bytes;
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + head + i * word_bytes, word_bytes);
        difference |= word ^ word_at(seed, (position + head) / word_bytes + i);
    }
    const std::size_t tail = head + words * word_bytes;
    if (difference != 0) return search(head, tail);
    return search(tail, bytes.size());
}

namespace {

// Bytes filled in one turn of the loop, which other connections share; at least one message.
constexpr std::size_t fill_step_bytes = std::size_t{1} << 20U;

std::vector<std::uint64_t> all_pieces(std::size_t count) {
    std::vector<std::uint64_t> pieces(count);
    std::iota(pieces.rbegin(), pieces.rend(), std::uint64_t{0});
    return pieces;
}

} // namespace

Source::Source(netio::stream::StreamSocket& socket, const Plan& plan)
    : socket_{socket}, plan_{plan}, sizes_{UniformSize{plan.size_min, plan.size_max}, plan.seed},
      memory_{plan.outstanding * plan.size_max, netio::Access::send}, free_{all_pieces(
                                                                          plan.outstanding)} {}

bool Source::drive() {
    std::size_t filled_bytes = 0;
    while (!free_.empty() && submitted_ < plan_.bytes) {
        if (filled_bytes >= fill_step_bytes) return false;
        const std::uint64_t piece = free_.back();
        const std::uint64_t size = std::min<std::uint64_t>(sizes_.next(), plan_.bytes - submitted_);
        const netio::Slice slice =
            memory_.slice(piece * plan_.size_max, static_cast<std::size_t>(size));
        if (plan_.verify) {
            fill_stream({slice.data, slice.size}, plan_.seed, submitted_);
            filled_bytes += slice.size;
        }
        // With any other status the connection has ended, and on_closed has the reason.
        if (socket_.send(slice, netio::Cookie{piece}) != netio::Status::ok) return true;
        free_.pop_back();
        submitted_ += size;
    }
    return true;
}

void Source::on_send_completed(netio::Cookie key) {
    free_.push_back(static_cast<std::uint64_t>(key));
}

Sink::Sink(netio::stream::StreamSocket& socket, const Plan& plan)
    : socket_{socket}, plan_{plan}, sizes_{UniformSize{plan.size_min, plan.size_max}, plan.seed},
      memory_{plan.outstanding * plan.size_max, netio::Access::remote_write},
      free_{all_pieces(plan.outstanding)}, asked_(plan.outstanding) {}

// Never requests more bytes than are still expected, because the following bytes belong to another
// reader. Requests a quarter of its memory at a time, because receives that are posted together are
// advertised in one control message.
void Sink::drive() {
    const std::size_t batch = std::max<std::size_t>(1, plan_.outstanding / 4);
    if (asked_bytes_ > 0 && free_.size() < batch) return;
    while (!free_.empty() && received_ + asked_bytes_ < plan_.bytes) {
        const std::uint64_t piece = free_.back();
        const std::uint64_t size =
            std::min<std::uint64_t>(sizes_.next(), plan_.bytes - received_ - asked_bytes_);
        const netio::Slice slice =
            memory_.slice(piece * plan_.size_max, static_cast<std::size_t>(size));
        if (socket_.receive(slice, netio::Cookie{piece}, plan_.fill) != netio::Status::ok) return;
        free_.pop_back();
        asked_[piece] = size;
        asked_bytes_ += size;
    }
}

void Sink::on_received(const netio::stream::Received& received) {
    const auto piece = static_cast<std::uint64_t>(received.cookie);
    const std::byte* const data = memory_.data() + piece * plan_.size_max;
    if (plan_.verify && !wrong_at_) {
        const auto wrong = find_wrong_byte({data, static_cast<std::size_t>(received.bytes)},
                                           plan_.seed, received_);
        if (wrong) wrong_at_ = received_ + *wrong;
    }
    received_ += received.bytes;
    asked_bytes_ -= asked_[piece];
    free_.push_back(piece);
}

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

// The client decides how large a message is, but not how much memory is used for it.
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
    if (!header_) return fail("the client sent an invalid header");
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
    if (peer_report_.size() > report_limit_bytes) return fail("the server's report is too long");
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
    fail(fmt::format("no byte was transferred for {} ms", settings_.idle_limit.count()));
}

// Sends the reason to the client, in place of a report.
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
    // The error in the server's report has priority over the reason of the close.
    if (error_.empty() && is_client_ && !peer_report_.empty()) error_ = problem_in(peer_report_);
    if (error_.empty() && (closed.reason != netio::CloseReason::orderly || !whole)) {
        error_ = to_string(closed);
    }
    if (error_.empty()) error_ = wrong_byte();
    if (error_.empty() && is_client_) error_ = problem_in(peer_report_); // the report is mandatory
    when_closed_(*this);                                                 // may destroy this object
}

std::uint64_t End::moved_bytes() const {
    if (flows_.sink) return flows_.sink->received_bytes();
    const netio::stream::SenderCounters sent = socket_->counters().sent;
    return sent.direct_bytes + sent.indirect_bytes;
}

StreamMetrics End::metrics(const std::string& peer) const {
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

Server::Server(netio::EventLoop& loop, netio::Transport& transport, Options options,
               std::function<void(const End&)> on_end)
    : loop_{loop}, options_{std::move(options)}, on_end_{std::move(on_end)},
      places_{options_.client_limit_count, options_.host_limit_count}, log_{loop},
      later_{loop, [this] { forget_ended(); }}, listener_{transport,
                                                          {.listen = options_.listen,
                                                           .allow_remote_anonymous =
                                                               options_.allow_remote_anonymous,
                                                           .keys = options_.keys},
                                                          *this} {}

void Server::on_incoming(netio::stream::IncomingStream& incoming) {
    if (when_gone_) return incoming.reject("the server is ending");
    const std::string peer = incoming.peer_address(); // not available after accepting
    std::string refusal = places_.enter(peer);
    if (!refusal.empty()) return incoming.reject(std::move(refusal));
    try {
        clients_.push_back({.address = peer,
                            .end = std::make_unique<End>(loop_, incoming, options_.settings,
                                                         [this](End& end) { on_closed(end); })});
    } catch (...) {
        places_.leave(peer);
        throw;
    }
    log_.info(peer + " is connected");
}

std::vector<Server::Client>::iterator Server::client_of(const End& end) {
    return std::ranges::find_if(clients_,
                                [&](const Client& each) { return each.end.get() == &end; });
}

void Server::on_closed(End& end) {
    ended_.push_back(&end);
    later_.start(netio::Duration::zero());
    if (!end.error().empty()) log_.error(client_of(end)->address + ": " + end.error());
    on_end_(end);
}

Server::Counters Server::counters() const {
    Counters sums = gone_;
    for (const Client& client : clients_)
        sums.bytes += client.end->moved_bytes();
    return sums;
}

std::vector<StreamMetrics> Server::metrics() const {
    std::vector<StreamMetrics> metrics;
    for (const Client& client : clients_)
        metrics.push_back(client.end->metrics(client.address));
    return metrics;
}

void Server::interrupt(std::function<void()> then) {
    forget_ended();
    when_gone_ = std::move(then);
    for (const Client& client : clients_)
        client.end->interrupt();
    later_.start(netio::Duration::zero());
}

void Server::forget_ended() {
    for (const End* const end : std::exchange(ended_, {})) {
        const auto client = client_of(*end);
        places_.leave(client->address);
        gone_.bytes += end->moved_bytes();
        ++gone_.ended;
        if (!end->error().empty()) ++gone_.failures;
        clients_.erase(client);
    }
    if (when_gone_ && clients_.empty()) when_gone_();
}

} // namespace apps::pump
