// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/report.hpp"

#include "apps/common/report.hpp"
#include "pubsub/discovery/bounded_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <chrono>

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

} // namespace apps::pump
