// SPDX-License-Identifier: Apache-2.0
#pragma once

// All knowledge of particular providers: which may be used, what to request from libfabric, and how
// to interpret its answer. All other code uses Capabilities.

#include "netio/fabric/libfabric.hpp"
#include "netio/transport.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace netio::fabric {

// The providers that can be chosen, best first.
std::vector<std::string> usable_providers();
// Why a provider is refused; empty if it may be used.
std::string refusal(std::string_view provider);

enum class Role : std::uint8_t { connect, listen };

struct InfoRequest {
    std::string provider;
    Role role = Role::connect;
    Address address;        // the remote address to connect to, or the local address to listen at
    std::string local_host; // connect: the local address to use; empty: any
    QueueLimits limits;
};

// What libfabric offers for it; null if nothing. Throws FabricError if the host cannot be resolved.
Info query(const InfoRequest& request);
// The routes to a peer: each address of its name, over each of the providers. Blocks; any thread.
FoundRoutes find_routes(const std::vector<std::string>& providers, const Address& remote,
                        const std::string& local_host);
// A copy of the info that was found for the route.
Info info_of(const Route& route);
// Everything that a provider offers on this machine (a list through fi_info::next).
Info query_all(const std::string& provider);

// Error texts for a request without an offer.
std::string cannot_reach(const std::string& provider, const Address& remote,
                         const std::string& local_host);
std::string cannot_listen(const std::string& provider, const Address& address);
// If FI_PROVIDER in the environment is the reason: a text for the end of such a message.
std::string foreign_choice(const std::string& provider);

Capabilities capabilities_of(const ::fi_info& info);
// Throws FabricError if the provider has too few scatter-gather elements: a message needs one for
// the frame's header and one for the rest.
void require_segments(const ::fi_info& info);
// Includes operations that a connection posts in addition to its user's sends
// (Connection::last_sign_of_life).
std::size_t send_queue_size(std::string_view provider, const QueueLimits& limits);
// If they cost nothing, as many as libfabric offers. Throws FabricError if that is too few.
std::size_t receive_queue_size(const ::fi_info& info, const QueueLimits& limits);
// Whether the provider's connections are kernel TCP sockets (netio/fabric/kernel_socket.hpp).
bool uses_kernel_sockets(const ::fi_info& info);
// Whether "tcp" is the provider that 1.17 calls "net": libfabric 1.18 and later.
bool has_unified_tcp();
// Whether the provider uses kernel sockets and any read of an event or completion queue reads all
// sockets of a domain: "net", and "tcp" of libfabric 1.18 and later. "tcp" of 1.17 reads with a
// completion queue only the connected endpoints of that queue, and with an event queue only the
// connecting ones of that queue.
bool reads_all_sockets(const ::fi_info& info);
// Transport::guards_memory. On kernel sockets, libfabric checks the address of a peer's write, but
// ignores that address plus length may wrap (1.17, and the current source).
bool guards_memory(std::string_view provider);

// Whether endpoints cannot get longer queues than the info with which their domain was opened.
bool domain_limits_queues(const ::fi_info& info);

} // namespace netio::fabric
