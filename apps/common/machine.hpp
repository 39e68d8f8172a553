// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a machine has that matters to RDMA: read once, from sysfs, from the process's limits and
// from libfabric. Says nothing of whether it is good; that is apps/doctor/diagnosis.hpp.

#include "apps/common/device_counters.hpp"
#include "netio/fabric.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace apps {

struct Version {
    unsigned major = 0;
    unsigned minor = 0;

    friend auto operator<=>(const Version&, const Version&) = default;
};
// The first two numbers of a text such as "6.1.0-13-amd64". Throws std::invalid_argument.
Version parse_version(const std::string& text);
std::string to_string(const Version& version);

struct RdmaPort {
    unsigned number = 1;
    std::string state;      // ACTIVE, DOWN, INIT, ...
    std::string link_layer; // InfiniBand, Ethernet
    std::string rate;
    std::string interface; // the network interface that belongs to it; empty: none known
    std::optional<unsigned> interface_mtu;
    PortCounters counters;
};

struct RdmaDevice {
    std::string name;
    bool software = false;  // rxe, siw: no hardware behind it
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
    std::map<std::string, std::string> picked; // address: the provider that is used there, or none
    std::optional<std::uint64_t> locked_bytes_limit; // absent: unlimited
    std::optional<std::uint64_t> descriptor_limit;   // the hard one, which the program takes
    std::optional<HugePages> huge_pages;             // absent: the kernel has none
};

// The provider that a publisher listening at each address, and nothing forced, uses.
std::map<std::string, std::string>
picked_providers(const std::vector<netio::FabricDescription>& descriptions);

// An empty one is a choice: of none.
std::optional<std::string> provider_choice();
// What such a choice keeps libfabric from offering on a machine with these devices; empty: nothing.
std::string withheld_providers(const std::optional<std::string>& choice,
                               const std::vector<netio::FabricDescription>& offered,
                               const std::vector<RdmaDevice>& devices);

// The devices under ROOT/sys/class/infiniband, in order of their names. What cannot be read is left
// empty.
std::vector<RdmaDevice> read_devices(const std::filesystem::path& root);
std::optional<HugePages> read_huge_pages(const std::filesystem::path& root);

Machine read_machine();

} // namespace apps
