// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens the real network: libfabric's connection-oriented (MSG) endpoints. `verbs` carries RDMA
// hardware (InfiniBand, RoCE, iWARP), `tcp` everything else. No environment variable is needed.
//
//     netio::EventLoop loop;
//     auto transport = netio::open_fabric(loop);

#include "netio/base/export.hpp"
#include "netio/transport.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace netio::inline v0_3 {

struct FabricOptions {
    // "auto": verbs if the address belongs to an RDMA device, otherwise tcp. "tcp" or "verbs": only
    // this one. Any other provider is refused with the reason.
    std::string provider = "auto";
    // A connection request on tcp is read after it has arrived completely. A kernel that is short
    // of memory may report it too early; the loop then waits for the rest at most this long.
    std::chrono::milliseconds half_handshake_timeout{20};
    // A tcp client that connects and does not finish the provider's handshake is disconnected after
    // one to two times this.
    std::chrono::milliseconds handshake_timeout{5000};
    // Limit of unfinished handshakes from one machine. One more closes the one that has waited
    // longest. An IPv6 machine is its network of 64 bits.
    std::size_t pending_handshakes_per_host = 256;
    // Limit of unanswered attempts to connect to one address. Further sockets wait until an attempt
    // is answered or fails.
    std::size_t attempts_per_address_limit = 64;
    // Limit of the bytes of receive buffers that all sessions together may add to those with which
    // they begin (SessionOptions::window_limit).
    std::size_t windows_limit = std::size_t{256} * 1024 * 1024;
    // Limit of the bytes that all sessions together may copy for sending: frames that are encrypted
    // or have more pieces than the provider takes. Beyond it, a session has one such frame in
    // flight at a time.
    std::size_t copies_limit = std::size_t{256} * 1024 * 1024;
    // Number of endpoints that share one completion queue, and its size in entries.
    std::size_t queue_endpoint_limit = 64;
    std::size_t queue_entry_limit = 16384; // devices offer 32767 and more
};

// Throws std::invalid_argument for invalid options, and FabricError if the provider is refused or
// missing; an FI_PROVIDER in the environment may be the cause. The loop must outlive the transport.
NETIO_EXPORT std::unique_ptr<Transport> open_fabric(EventLoop& loop, FabricOptions options = {});

// The network of sockets that are given only the loop: opened with default options at the first
// call, and destroyed with the loop. Throws what open_fabric() throws.
NETIO_EXPORT Transport& network_of(EventLoop& loop);

// A provider that can be used on this machine, for display.
struct FabricDescription {
    std::string provider;
    std::string domain; // the device or interface
    std::vector<std::string> addresses;
    Capabilities capabilities;
    std::size_t send_queue_limit = 0;
    std::size_t receive_queue_limit = 0;
};

// Returns one entry for each provider and device or interface. Throws FabricError if libfabric
// cannot be loaded, or reports an error.
NETIO_EXPORT std::vector<FabricDescription> describe_fabric();
// The version of the loaded libfabric, as "MAJOR.MINOR". Throws FabricError if it cannot be loaded.
NETIO_EXPORT std::string fabric_version();
// If `host` is the name of an interface of this machine (eth0), returns its numeric address, as
// sockets take it: the first IPv4 address, else the first IPv6 address, else a link-local one with
// its zone. Otherwise returns `host` unchanged. Throws FabricError if the interface has no address.
NETIO_EXPORT std::string host_at_interface(const std::string& host);
// Returns why this library does not use a provider; empty if it does, whether or not this machine
// has the provider.
NETIO_EXPORT std::string provider_refusal(const std::string& provider);

} // namespace netio::inline v0_3
