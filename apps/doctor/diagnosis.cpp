// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/diagnosis.hpp"

#include "apps/common/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace apps {
namespace {

// Memory for buffers of the default sizes; the largest part is a publisher's memory for unbuffered
// sources.
constexpr std::uint64_t locked_bytes_wanted = 512 << 20;
// Fifty peers with a few descriptors each, plus the reserve of a listener.
constexpr std::uint64_t descriptors_wanted = 1024;
// RoCE packets carry at most 4096 bytes of data, if the interface's MTU also has space for their
// headers.
constexpr unsigned roce_mtu_wanted = 4200;

struct BadVersions {
    Version first;
    Version last;
    std::string_view what;
    std::string_view remedy;
};
// Versions with measured or documented problems.
constexpr std::array<BadVersions, 2> bad_libfabric{{
    {{0, 0},
     {1, 16},
     "it is older than the API version that netio uses, 1.17",
     "install 1.17 or later"},
    {{1, 18},
     {2, 4},
     "the descriptors of its tcp provider stay readable, so that a waiting loop uses a full core",
     "use 1.17, or 2.5 or later"},
}};
constexpr Version oldest_kernel{5, 11}; // epoll_pwait2

using Kind = Finding::Kind;
using Findings = std::vector<Finding>;

std::string mebibytes(std::uint64_t bytes) {
    return std::to_string(bytes >> 20U) + " MiB";
}

void judge_versions(const Machine& machine, Findings& findings) {
    const std::string kernel = "Linux " + to_string(machine.kernel);
    if (machine.kernel < oldest_kernel) {
        findings.push_back({Kind::change, kernel + " has no epoll_pwait2",
                            "run Linux " + to_string(oldest_kernel) + " or later"});
    }
    for (const BadVersions& bad : bad_libfabric) {
        if (machine.libfabric < bad.first || bad.last < machine.libfabric) continue;
        findings.push_back(
            {Kind::change,
             "libfabric " + to_string(machine.libfabric) + ": " + std::string{bad.what},
             std::string{bad.remedy}});
        return;
    }
    findings.push_back({Kind::good, kernel + ", libfabric " + to_string(machine.libfabric), {}});
}

// Reported as notes only: no version without these faults is known, and most need an admitted peer.
void judge_faults(const Machine& machine, Findings& findings) {
    const bool has_tcp = std::ranges::any_of(
        machine.fabric, [](const auto& offer) { return offer.provider == "tcp"; });
    if (!has_tcp) return;
    for (const FabricFault& fault : faults_of(machine.libfabric)) {
        std::string remedy{fault.remedy};
        if (!fault.patch.empty())
            remedy += "; see the patch in docs/upstream: " + std::string{fault.patch};
        findings.push_back(
            {Kind::note,
             named_with_doubt(machine.libfabric) + ": over tcp " + std::string{fault.what},
             std::move(remedy)});
    }
}

void judge_port(const RdmaDevice& device, const RdmaPort& port, Findings& findings) {
    const std::string name = "port " + std::to_string(port.number) + " of " + device.name;
    const bool ethernet = port.link_layer == "Ethernet";
    if (port.state != "ACTIVE") {
        std::string remedy;
        if (port.state == "INIT" && !ethernet) {
            remedy = "start a subnet manager (opensm, or the switch's)";
        } else if (!port.interface.empty()) {
            remedy = "check the cable; ip link set " + port.interface + " up";
        } else {
            remedy = "check the cable and the device at its other end";
        }
        findings.push_back(
            {Kind::change,
             name + " is " + (port.state.empty() ? "in an unknown state" : port.state), remedy});
        return;
    }
    std::string what = name + " is active";
    if (!port.link_layer.empty()) what += ", " + port.link_layer;
    if (!port.rate.empty()) what += ", " + port.rate;
    findings.push_back({Kind::good, what, {}});
    if (ethernet && port.interface_mtu && *port.interface_mtu < roce_mtu_wanted) {
        findings.push_back(
            {Kind::note,
             port.interface + " has an MTU of " + std::to_string(*port.interface_mtu) + ", so " +
                 device.name + " sends small packets",
             "ip link set " + port.interface + " mtu 9000, if every switch on the way allows it"});
    }
}

// Returns the counters of this trouble that are not zero, such as "link_downed 2, symbol_error 17";
// empty if there are none.
std::string counted(const RdmaPort& port, Trouble trouble) {
    std::string list;
    for (const auto& [name, value] : port.counters) {
        if (value == 0 || trouble_of(name) != trouble) continue;
        list += (list.empty() ? "" : ", ") + name + " " + std::to_string(value);
    }
    return list;
}

// The counters count since the start of the device, which may be long ago.
void judge_counters(const RdmaDevice& device, const RdmaPort& port, Findings& findings) {
    static constexpr std::array<std::pair<Trouble, std::string_view>, 3> remedies{{
        {Trouble::port_error, "if they increase: clean or change the cable or the transceiver, "
                              "check the port of the switch"},
        {Trouble::receiver_not_ready, "if they increase: another program causes them, because "
                                      "netio sends only if the peer has a receive buffer"},
        {Trouble::retransmission, "if they increase: packets are lost in the network; on Ethernet "
                                  "enable flow control (PFC) and ECN for this traffic"},
    }};
    for (const auto& [trouble, remedy] : remedies) {
        const std::string list = counted(port, trouble);
        if (list.empty()) continue;
        findings.push_back({Kind::note,
                            fmt::format("port {} of {} has counted errors ({}): {}", port.number,
                                        device.name, to_string(trouble), list),
                            std::string{remedy}});
    }
}

const netio::FabricDescription* offered(const Machine& machine, const std::string& device) {
    for (const auto& description : machine.fabric) {
        if (description.provider == "verbs" && description.domain == device) return &description;
    }
    return nullptr;
}

std::string withheld(const Machine& machine) {
    return withheld_providers(machine.provider_choice, machine.fabric, machine.devices);
}

void judge_access(const Machine& machine, const RdmaDevice& device, Findings& findings) {
    if (!device.accessible || !machine.connection_manager_accessible) {
        findings.push_back(
            {Kind::change,
             (device.accessible ? "/dev/infiniband/rdma_cm"
                                : "the node of " + device.name + " in /dev/infiniband") +
                 " does not exist or cannot be opened",
             "load the modules rdma_ucm and ib_uverbs, and give this user read and write access "
             "(often by the group rdma)"});
        return;
    }
    const netio::FabricDescription* const offer = offered(machine, device.name);
    // Providers that the environment excludes are reported once, for the whole fabric.
    if (offer == nullptr && !withheld(machine).empty()) return;
    if (offer == nullptr || offer->addresses.empty()) {
        findings.push_back(
            {Kind::change, "libfabric does not offer " + device.name,
             "give its network interface an address (InfiniBand: by IPoIB), because connections "
             "are made by address; install ibverbs-providers and libfabric's verbs provider"});
        return;
    }
    if (offer->capabilities.immediate_bytes < sizeof(std::uint32_t)) {
        findings.push_back(
            {Kind::note,
             device.name + " has no writes with immediate data (iWARP); messages are sent instead",
             {}});
    }
}

void judge_limits(const Machine& machine, Findings& findings) {
    if (!machine.devices.empty() && machine.locked_bytes_limit &&
        *machine.locked_bytes_limit < locked_bytes_wanted) {
        findings.push_back({Kind::change,
                            "only " + mebibytes(*machine.locked_bytes_limit) +
                                " of memory may be locked; verbs locks its buffers, by default " +
                                mebibytes(locked_bytes_wanted),
                            "ulimit -l unlimited (/etc/security/limits.d), or "
                            "LimitMEMLOCK=infinity in the systemd unit"});
    }
    if (machine.descriptor_limit && *machine.descriptor_limit < descriptors_wanted) {
        findings.push_back({Kind::change,
                            "only " + std::to_string(*machine.descriptor_limit) +
                                " descriptors may be open; each peer needs a few",
                            "ulimit -Hn " + std::to_string(16 * descriptors_wanted) +
                                ", or LimitNOFILE= in the systemd unit"});
    }
    if (machine.huge_pages && machine.huge_pages->free_count == 0 && !machine.devices.empty()) {
        findings.push_back(
            {Kind::note,
             "no huge pages are free; buffers that request them get normal pages, which cost "
             "devices more address lookups",
             "sysctl vm.nr_hugepages=" +
                 std::to_string(locked_bytes_wanted / machine.huge_pages->bytes_each)});
    }
}

void judge_fabric(const Machine& machine, Findings& findings) {
    const std::string missing = withheld(machine);
    if (!missing.empty()) {
        findings.push_back(
            {Kind::change,
             fmt::format("FI_PROVIDER={} in the environment prevents libfabric from offering {}",
                         machine.provider_choice.value_or(""), missing),
             "unset FI_PROVIDER"});
    } else if (machine.fabric.empty()) {
        findings.push_back({Kind::change, "libfabric offers no usable provider",
                            "install libfabric1 with its tcp and verbs providers"});
    }
    for (const auto& [address, provider] : machine.picked) {
        findings.push_back({Kind::good, fmt::format("provider for {}: {}", address, provider), {}});
    }
}

} // namespace

std::string_view to_string(Finding::Kind kind) noexcept {
    switch (kind) {
    case Kind::good:
        return "good";
    case Kind::note:
        return "note";
    case Kind::change:
        return "change";
    }
    return "unknown";
}

std::vector<Finding> diagnose(const Machine& machine) {
    Findings findings;
    judge_versions(machine, findings);
    judge_faults(machine, findings);
    if (machine.devices.empty()) {
        findings.push_back({Kind::note, "there is no RDMA device; tcp is used instead",
                            "if the machine has an adapter, load its driver (such as mlx5_ib, "
                            "irdma, bnxt_re)"});
    }
    for (const RdmaDevice& device : machine.devices) {
        if (device.software) {
            findings.push_back(
                {Kind::note,
                 device.name + " is a software device: suitable for tests, and slower than tcp",
                 {}});
        }
        for (const RdmaPort& port : device.ports) {
            judge_port(device, port, findings);
            judge_counters(device, port, findings);
        }
        judge_access(machine, device, findings);
    }
    judge_limits(machine, findings);
    judge_fabric(machine, findings);
    return findings;
}

bool is_well(const std::vector<Finding>& findings) noexcept {
    return std::ranges::none_of(
        findings, [](const Finding& finding) { return finding.kind == Finding::Kind::change; });
}

} // namespace apps
