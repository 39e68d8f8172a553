// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the ports of RDMA devices count, as their drivers show it in sysfs, and which of it means
// trouble. Drivers have names of their own for much of it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace apps {

enum class Trouble : std::uint8_t {
    none,               // traffic, or something that is not known here
    port_error,         // damaged, lost or discarded on the link: cables, switches
    receiver_not_ready, // a message came, and no receive buffer was posted for it
    retransmission,     // packets were sent again, or came out of order
};
std::string_view to_string(Trouble trouble) noexcept;
Trouble trouble_of(std::string_view counter) noexcept;

// By the driver's name. Bytes are counted in words of 4 (port_xmit_data, port_rcv_data).
using PortCounters = std::map<std::string, std::uint64_t>;
// `port`: ROOT/sys/class/infiniband/DEVICE/ports/NUMBER. What cannot be read, or is no number, is
// left out.
PortCounters read_counters(const std::filesystem::path& port);
// The sum of those that mean it.
std::uint64_t count_of(const PortCounters& counters, Trouble trouble);

} // namespace apps
