// SPDX-License-Identifier: Apache-2.0
#include "apps/common/device_counters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <utility>

namespace apps {
namespace {

namespace fs = std::filesystem;

// InfiniBand's own, and those of mlx5, bnxt_re, irdma and rxe.
constexpr auto troubles = std::to_array<std::pair<std::string_view, Trouble>>({
    {"VL15_dropped", Trouble::port_error},
    {"excessive_buffer_overrun_errors", Trouble::port_error},
    {"link_downed", Trouble::port_error},
    {"link_error_recovery", Trouble::port_error},
    {"local_link_integrity_errors", Trouble::port_error},
    {"port_rcv_constraint_errors", Trouble::port_error},
    {"port_rcv_errors", Trouble::port_error},
    {"port_rcv_remote_physical_errors", Trouble::port_error},
    {"port_rcv_switch_relay_errors", Trouble::port_error},
    {"port_xmit_constraint_errors", Trouble::port_error},
    {"port_xmit_discards", Trouble::port_error},
    {"symbol_error", Trouble::port_error},
    {"rx_icrc_encapsulated", Trouble::port_error},
    {"out_of_buffer", Trouble::receiver_not_ready},
    {"rcvd_rnr_err", Trouble::receiver_not_ready},
    {"retry_rnr_exceeded_err", Trouble::receiver_not_ready},
    {"rnr_nak_retry_err", Trouble::receiver_not_ready},
    {"rnr_naks_rcvd", Trouble::receiver_not_ready},
    {"send_rnr_err", Trouble::receiver_not_ready},
    {"completer_retry_err", Trouble::retransmission},
    {"duplicate_request", Trouble::retransmission},
    {"implied_nak_seq_err", Trouble::retransmission},
    {"local_ack_timeout_err", Trouble::retransmission},
    {"max_retry_exceeded", Trouble::retransmission},
    {"out_of_sequence", Trouble::retransmission},
    {"packet_seq_err", Trouble::retransmission},
    {"rcvd_seq_err", Trouble::retransmission},
    {"retry_exceeded_err", Trouble::retransmission},
    {"seq_err_naks_rcvd", Trouble::retransmission},
    {"tcpRetransSegs", Trouble::retransmission},
    {"to_retransmits", Trouble::retransmission},
});

void read_folder(const fs::path& folder, PortCounters& counters) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator{folder, error}) {
        const std::string name = entry.path().filename().string();
        if (name == "lifespan") continue; // how often the driver asks the device
        std::ifstream file{entry.path()};
        std::string text;
        std::getline(file, text);
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, problem] = std::from_chars(text.data(), end, value);
        if (problem == std::errc{} && rest == end) counters.emplace(name, value);
    }
}

} // namespace

std::string_view to_string(Trouble trouble) noexcept {
    switch (trouble) {
    case Trouble::port_error:
        return "port error";
    case Trouble::receiver_not_ready:
        return "receiver not ready";
    case Trouble::retransmission:
        return "retransmission";
    case Trouble::none:
        break;
    }
    return "none";
}

Trouble trouble_of(std::string_view counter) noexcept {
    const auto* const found =
        std::ranges::find(troubles, counter, &std::pair<std::string_view, Trouble>::first);
    return found == troubles.end() ? Trouble::none : found->second;
}

PortCounters read_counters(const fs::path& port) {
    PortCounters counters;
    read_folder(port / "counters", counters);
    read_folder(port / "hw_counters", counters);
    return counters;
}

std::uint64_t count_of(const PortCounters& counters, Trouble trouble) {
    std::uint64_t sum = 0;
    for (const auto& [name, value] : counters)
        if (trouble_of(name) == trouble) sum += value;
    return sum;
}

} // namespace apps
