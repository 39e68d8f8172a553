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
    // "auto": verbs where the address belongs to an RDMA device, then tcp. "tcp" or "verbs": that
    // one only. Any other provider is refused with the reason.
    std::string provider = "auto";
    // A connection request on tcp is read when all of it is there. Where a kernel that is short of
    // memory says so too early, the loop waits for the rest so long at most.
    std::chrono::milliseconds half_handshake_timeout{20};
    // A tcp client that has connected and not finished the provider's handshake is cut off after
    // one to two times this.
    std::chrono::milliseconds stranger_timeout{5000};
    // So many of one machine may be there that have not finished it; when one more comes, the one
    // that has waited longest is cut off. An IPv6 machine is its network of 64 bits.
    std::size_t strangers_per_host_limit = 256;
    // Attempts to connect to one address that may be without an answer at a time. Further sockets
    // wait until one of these is answered or given up.
    std::size_t attempts_per_address_limit = 64;
    // Bytes of receive buffers that all sessions may have together beyond what each begins with
    // (SessionOptions::window_limit).
    std::size_t windows_limit = std::size_t{256} * 1024 * 1024;
    // Bytes that all sessions together may have copied to send them: what is encrypted, or in more
    // pieces than the provider takes. Beyond, a session has one such frame under way at a time.
    std::size_t copies_limit = std::size_t{256} * 1024 * 1024;
    // Endpoints that share one completion queue, and its size in entries.
    std::size_t queue_endpoint_limit = 64;
    std::size_t queue_entry_limit = 16384; // devices take 32767 and more
};

// Throws std::invalid_argument for options, and FabricError: the provider is refused or not there,
// which a FI_PROVIDER in the environment may be the reason of. The loop must outlive the transport.
NETIO_EXPORT std::unique_ptr<Transport> open_fabric(EventLoop& loop, FabricOptions options = {});

// The network that sockets use which are given the loop alone: opened with default options when it
// is first asked for, and destroyed with the loop. Throws as open_fabric().
NETIO_EXPORT Transport& network_of(EventLoop& loop);

// What can be used on this machine, for people.
struct FabricDescription {
    std::string provider;
    std::string domain; // the device or interface
    std::vector<std::string> addresses;
    Capabilities capabilities;
    std::size_t send_queue_limit = 0;
    std::size_t receive_queue_limit = 0;
};

NETIO_EXPORT std::vector<FabricDescription> describe_fabric();
// The version of libfabric that is loaded.
NETIO_EXPORT std::string fabric_version();
// Where `host` is the name of an interface of this machine (eth0), its address in numbers, as
// sockets take it: the first of IPv4, else of IPv6, else a link-local one with its zone. Else
// `host` as it is. Throws FabricError: the interface has none.
NETIO_EXPORT std::string host_at_interface(const std::string& host);
// Why a provider cannot be chosen; empty if it can.
NETIO_EXPORT std::string provider_refusal(const std::string& provider);

} // namespace netio::inline v0_3
