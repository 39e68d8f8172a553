// SPDX-License-Identifier: Apache-2.0
#include "apps/common/machine.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace apps {
namespace {

namespace fs = std::filesystem;

// Standard counters of InfiniBand, and counters of mlx5, bnxt_re, irdma and rxe.
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
        if (name == "lifespan") continue; // the polling interval of the driver, not a counter
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

namespace {

namespace fs = std::filesystem;

// Returns the first line; empty if there is none.
std::string read_line(const fs::path& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

template <typename Number>
std::optional<Number> read_number(const fs::path& path) {
    const std::string text = read_line(path);
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    return number;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> entries;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator{folder, error})
        entries.push_back(entry.path());
    std::ranges::sort(entries);
    return entries;
}

// Returns "ACTIVE" for "4: ACTIVE".
std::string after_colon(const std::string& text) {
    const auto colon = text.find(": ");
    return colon == std::string::npos ? text : text.substr(colon + 2);
}

RdmaPort read_port(const fs::path& path, const fs::path& root) {
    RdmaPort port;
    const std::string number = path.filename().string();
    std::from_chars(number.data(), number.data() + number.size(), port.number);
    port.state = after_colon(read_line(path / "state"));
    port.link_layer = read_line(path / "link_layer");
    port.rate = read_line(path / "rate");
    port.interface = read_line(path / "gid_attrs" / "ndevs" / "0");
    if (!port.interface.empty()) {
        port.interface_mtu = read_number<unsigned>(root / "sys/class/net" / port.interface / "mtu");
    }
    port.counters = read_counters(path);
    return port;
}

// The kernel's verbs give each device a node with the same number; the process must be able to open
// it.
bool may_be_opened(const std::string& device, const fs::path& root) {
    for (const fs::path& verbs : entries_of(root / "sys/class/infiniband_verbs")) {
        if (read_line(verbs / "ibdev") != device) continue;
        const fs::path node = root / "dev/infiniband" / verbs.filename();
        return ::access(node.c_str(), R_OK | W_OK) == 0;
    }
    return false;
}

// CAP_IPC_LOCK lifts the limit; it is bit 14 of the effective capabilities (capabilities(7)).
bool may_lock_without_limit() {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("CapEff:")) continue;
        const auto digits = line.find_first_of("0123456789abcdef", 7);
        std::uint64_t rights = 0;
        std::from_chars(line.data() + digits, line.data() + line.size(), rights, 16);
        return (rights >> 14U & 1U) != 0;
    }
    return false;
}

std::optional<std::uint64_t> limit_of(__rlimit_resource resource, bool hard) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) return std::nullopt;
    const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
    if (value == RLIM_INFINITY) return std::nullopt;
    return value;
}

Version running_kernel() {
    utsname name{};
    return ::uname(&name) == 0 ? parse_version(name.release) : Version{};
}

} // namespace

Version parse_version(const std::string& text) {
    Version version;
    const char* const end = text.data() + text.size();
    const auto [dot, error] = std::from_chars(text.data(), end, version.major);
    if (error == std::errc{} && dot != end && *dot == '.' &&
        std::from_chars(dot + 1, end, version.minor).ec == std::errc{}) {
        return version;
    }
    throw std::invalid_argument{"'" + text + "' is not a version"};
}

std::string to_string(const Version& version) {
    return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::map<std::string, std::string>
picked_providers(const std::vector<netio::FabricDescription>& descriptions) {
    // Providers in the order of preference, each with all addresses that it serves. A query for
    // each address would need time that grows with the square of the number of addresses.
    std::map<std::string, std::string> picked;
    for (const auto& description : descriptions) {
        for (const std::string& address : description.addresses)
            picked.try_emplace(address, description.provider);
    }
    return picked;
}

std::optional<std::string> provider_choice() {
    const char* const choice = std::getenv("FI_PROVIDER");
    if (choice == nullptr) return std::nullopt;
    return choice;
}

std::string withheld_providers(const std::optional<std::string>& choice,
                               const std::vector<netio::FabricDescription>& offered,
                               const std::vector<RdmaDevice>& devices) {
    if (!choice) return {};
    const auto is_missing = [&](const char* provider) {
        return std::ranges::find(offered, provider, &netio::FabricDescription::provider) ==
               offered.end();
    };
    const bool verbs = !devices.empty() && is_missing("verbs");
    if (is_missing("tcp")) return verbs ? "tcp and verbs" : "tcp";
    return verbs ? "verbs" : "";
}

std::vector<RdmaDevice> read_devices(const fs::path& root) {
    std::vector<RdmaDevice> devices;
    for (const fs::path& path : entries_of(root / "sys/class/infiniband")) {
        RdmaDevice device;
        device.name = path.filename().string();
        device.software = !fs::exists(path / "device"); // the link to a device on a bus
        device.accessible = may_be_opened(device.name, root);
        for (const fs::path& port : entries_of(path / "ports"))
            device.ports.push_back(read_port(port, root));
        devices.push_back(std::move(device));
    }
    return devices;
}

std::optional<HugePages> read_huge_pages(const fs::path& root) {
    const fs::path folder = root / "sys/kernel/mm/hugepages/hugepages-2048kB";
    const auto free_count = read_number<std::uint64_t>(folder / "free_hugepages");
    if (!free_count) return std::nullopt;
    return HugePages{.bytes_each = 2048 * 1024, .free_count = *free_count};
}

Machine read_machine() {
    Machine machine;
    machine.kernel = running_kernel();
    machine.libfabric = parse_version(netio::fabric_version());
    machine.devices = read_devices("/");
    machine.connection_manager_accessible = ::access("/dev/infiniband/rdma_cm", R_OK | W_OK) == 0;
    machine.provider_choice = provider_choice();
    machine.fabric = netio::describe_fabric();
    machine.picked = picked_providers(machine.fabric);
    if (!may_lock_without_limit()) machine.locked_bytes_limit = limit_of(RLIMIT_MEMLOCK, false);
    machine.descriptor_limit = limit_of(RLIMIT_NOFILE, true);
    machine.huge_pages = read_huge_pages("/");
    return machine;
}

namespace {

constexpr std::string_view trust = "admit trusted peers only";

constexpr std::array<FabricFault, 6> faults{{
    {"a peer can crash the process with an unsolicited acknowledgement",
     trust,
     "unasked-ack",
     {1, 17}},
    {"a peer can crash the process with a tagged message", trust, "tagged-without-srx", {1, 17}},
    {"a peer can write beyond memory that was registered for it", trust, "mr-bounds", {1, 17}},
    {"a peer can write beyond an entry of the provider's tables if it has keys of memory",
     trust,
     "rma-iov-count",
     {1, 17}},
    {"a peer can make the provider allocate memory with empty packets",
     "netio closes such a connection",
     "",
     {1, 17}},
    {"child processes inherit the provider's descriptors",
     "netio sets the close-on-exec flag itself",
     "close-on-exec",
     {1, 17}},
}};

bool is_reached_from_elsewhere(const netio::Endpoint& endpoint) {
    const std::string& host = endpoint.address.host;
    return endpoint.provider == "tcp" && !host.starts_with("127.") && host != "::1";
}

} // namespace

std::vector<FabricFault> faults_of(const Version& libfabric) {
    std::vector<FabricFault> found;
    std::ranges::copy_if(faults, std::back_inserter(found),
                         [&](const FabricFault& fault) { return fault.first <= libfabric; });
    return found;
}

std::string named_with_doubt(const Version& libfabric) {
    std::string name = "libfabric " + to_string(libfabric);
    if (libfabric <= newest_looked_at) return name;
    return fmt::format("{} (newer than {}, the newest version that was checked: it may be fixed)",
                       name, to_string(newest_looked_at));
}

std::string fault_warning(const std::vector<netio::Endpoint>& endpoints, const Version& libfabric) {
    if (faults_of(libfabric).empty() || std::ranges::none_of(endpoints, is_reached_from_elsewhere))
        return {};
    return fmt::format("a peer that is admitted over tcp can crash this process through faults of "
                       "{}; run netio doctor for details",
                       named_with_doubt(libfabric));
}

void tell_listening(const std::vector<netio::Endpoint>& endpoints) {
    for (const netio::Endpoint& endpoint : endpoints)
        spdlog::info("listening at {} ({})", to_string(endpoint.address), endpoint.provider);
    const std::string warning = fault_warning(endpoints, parse_version(netio::fabric_version()));
    if (!warning.empty()) spdlog::warn("{}", warning);
}

} // namespace apps
