// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/endpoint.hpp"
#include "netio/fabric.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

// The state of the machine that matters to RDMA: devices and their counters, limits, libfabric and
// its known faults.

// Counters of RDMA ports in sysfs that indicate trouble. Many names depend on the driver.

enum class Trouble : std::uint8_t {
    none,               // traffic, or an unknown counter
    port_error,         // damaged, lost or discarded on the link: cables, switches
    receiver_not_ready, // a message arrived without a posted receive buffer
    retransmission,     // packets were sent again or arrived out of order
};
std::string_view to_string(Trouble trouble) noexcept;
Trouble trouble_of(std::string_view counter) noexcept;

// Key: the driver's name of the counter. Byte counters count words of 4 bytes (port_xmit_data,
// port_rcv_data).
using PortCounters = std::map<std::string, std::uint64_t>;
// `port`: ROOT/sys/class/infiniband/DEVICE/ports/NUMBER. Skips counters that cannot be read or are
// no number.
PortCounters read_counters(const std::filesystem::path& port);
// Returns the sum of the counters that indicate this trouble.
std::uint64_t count_of(const PortCounters& counters, Trouble trouble);

// Facts from sysfs, from the process's limits and from libfabric; apps/doctor/doctor.hpp
// evaluates them.
struct Version {
    unsigned major = 0;
    unsigned minor = 0;

    friend auto operator<=>(const Version&, const Version&) = default;
};
// Parses the first two numbers of a text such as "6.1.0-13-amd64". Throws std::invalid_argument.
Version parse_version(const std::string& text);
std::string to_string(const Version& version);

struct RdmaPort {
    unsigned number = 1;
    std::string state;      // ACTIVE, DOWN, INIT, ...
    std::string link_layer; // InfiniBand, Ethernet
    std::string rate;
    std::string interface; // the network interface of the port; empty if unknown
    std::optional<unsigned> interface_mtu;
    PortCounters counters;
};

struct RdmaDevice {
    std::string name;
    bool software = false;  // rxe, siw: implemented in software
    bool accessible = true; // this process may open it
    std::vector<RdmaPort> ports;
};

struct HugePages {
    std::uint64_t bytes_each = 0;
    std::uint64_t free_count = 0;
};

struct Machine {
    Version kernel;
    Version libfabric;
    std::vector<RdmaDevice> devices;
    bool connection_manager_accessible = false; // /dev/infiniband/rdma_cm
    std::optional<std::string> provider_choice; // FI_PROVIDER, which only libfabric reads
    std::vector<netio::FabricDescription> fabric;
    std::map<std::string, std::string> picked;       // address: the provider in use there, or none
    std::optional<std::uint64_t> locked_bytes_limit; // absent: unlimited
    std::optional<std::uint64_t> descriptor_limit;   // the hard limit, which the program sets
    std::optional<HugePages> huge_pages;             // absent: the kernel has none
};

// Returns for each address the provider that a publisher uses there if the user does not choose
// one.
std::map<std::string, std::string>
picked_providers(const std::vector<netio::FabricDescription>& descriptions);

// Returns the value of FI_PROVIDER. An empty value excludes all providers.
std::optional<std::string> provider_choice();
// Returns the providers that this choice hides on a machine with these devices; empty if it hides
// none.
std::string withheld_providers(const std::optional<std::string>& choice,
                               const std::vector<netio::FabricDescription>& offered,
                               const std::vector<RdmaDevice>& devices);

// Returns the devices under ROOT/sys/class/infiniband, sorted by name. Values that cannot be read
// are empty.
std::vector<RdmaDevice> read_devices(const std::filesystem::path& root);
std::optional<HugePages> read_huge_pages(const std::filesystem::path& root);

Machine read_machine();

// Faults of libfabric that a peer can exploit (docs/upstream).
struct FabricFault {
    std::string_view what;   // effect over tcp
    std::string_view remedy; // other than the patch
    std::string_view patch;  // the name of the fix in docs/upstream; empty if there is none
    Version first;           // the oldest version with the fault; all newer versions have it
};

// The newest version that was checked for these faults.
inline constexpr Version newest_looked_at{2, 6};

// Returns the faults that this version has, or may have if it was not checked.
std::vector<FabricFault> faults_of(const Version& libfabric);

// Returns "libfabric 1.17", with a remark if that version was not checked.
std::string named_with_doubt(const Version& libfabric);

// Returns the warning at the start, in one line; empty if this version has no faults, or if other
// machines cannot reach the endpoints over tcp.
std::string fault_warning(const std::vector<netio::Endpoint>& endpoints, const Version& libfabric);

// Logs the addresses where a program listens, and the warning.
void tell_listening(const std::vector<netio::Endpoint>& endpoints);

} // namespace apps
