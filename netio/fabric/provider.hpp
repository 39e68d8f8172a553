// SPDX-License-Identifier: Apache-2.0
#pragma once

// All knowledge of particular providers: which may be used, what to ask libfabric for, and what
// its answer means. Everywhere else code asks Capabilities.

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
    Address address;        // the remote one to connect to, or the local one to listen at
    std::string local_host; // connect: the local address to use; empty: any
    QueueLimits limits;
};

// What libfabric offers for it; null if nothing. Throws FabricError: the host cannot be resolved.
Info query(const InfoRequest& request);
// The routes to a peer: each address of its name, over each of the providers. Blocks; any thread.
FoundRoutes find_routes(const std::vector<std::string>& providers, const Address& remote,
                        const std::string& local_host);
// A copy of what was found out about the route.
Info info_of(const Route& route);
// Everything that a provider offers on this machine (a list through fi_info::next).
Info query_all(const std::string& provider);

// Error texts for a request without an offer.
std::string cannot_reach(const std::string& provider, const Address& remote,
                         const std::string& local_host);
std::string cannot_listen(const std::string& provider, const Address& address);
// The environment's choice of providers, if it is the reason; for the end of such a sentence.
std::string foreign_choice(const std::string& provider);

Capabilities capabilities_of(const ::fi_info& info);
// Throws FabricError: a message needs more scatter-gather elements than the provider gives, one for
// the frame's header and one for the rest.
void require_segments(const ::fi_info& info);
// Includes what a connection posts in addition to its user's sends (Connection::last_sign_of_life).
std::size_t send_queue_size(std::string_view provider, const QueueLimits& limits);
// Where it costs nothing, as many as libfabric offered. Throws FabricError: that is too few.
std::size_t receive_queue_size(const ::fi_info& info, const QueueLimits& limits);
// The provider's connections are kernel TCP sockets (netio/fabric/kernel_socket.hpp).
bool uses_kernel_sockets(const ::fi_info& info);
// The "tcp" of this library is what "net" was in 1.17: libfabric 1.18 and later.
bool has_unified_tcp();
// They are kernel sockets, and any read of an event or completion queue makes the provider read all
// sockets of a domain: "net", and "tcp" of libfabric 1.18 and later. "tcp" of 1.17 reads with a
// completion queue the connected endpoints of that queue, and drives with an event queue the
// connecting ones of that queue.
bool reads_all_sockets(const ::fi_info& info);
// Transport::guards_memory. On kernel sockets libfabric checks what a peer writes to, and forgets
// that address plus length may wrap (1.17, and today's source).
bool guards_memory(std::string_view provider);

// Endpoints get no longer queues than the info had that their domain was opened with.
bool domain_limits_queues(const ::fi_info& info);

} // namespace netio::fabric
