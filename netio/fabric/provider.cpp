// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/provider.hpp"

#include "netio/base/check.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/fabric.hpp"
#include "netio/fabric/addresses.hpp"
#include "netio/loop/process.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <optional>
#include <rdma/fi_errno.h>

namespace netio::fabric {
namespace {

// The version whose behaviour is requested and was measured. A newer library keeps this behaviour
// for callers that request the version (fi_getinfo(3)), so it must not follow the header.
constexpr std::uint32_t api_version = FI_VERSION(1, 17);

struct ProviderTraits {
    std::string_view name;
    std::string_view refusal; // empty: not refused
    bool kernel_sockets = false;
    bool domain_limits_queues = false;
    // It offers fewer scatter-gather elements than it has, unless more are requested.
    bool hides_segments = false;
};

// Usual limits of hardware. A request above the limit is refused, not reduced.
constexpr std::array<std::size_t, 3> segment_wishes{30, 16, 8};

// Receives of a connection over kernel sockets, where they are a list and cost nothing: the largest
// size of any window (libfabric 1.17), or the provider's limit (1.18 and later).
constexpr std::array<std::size_t, 2> receive_wishes{16'384, 1'024};

// The best first. The reasons were measured with libfabric 1.17.
constexpr std::array<ProviderTraits, 6> providers{{
    {"verbs", "", false, true, true},
    {"tcp", "", true},
    {"sockets", "a port scan crashes it, and connecting blocks the event loop; use tcp", false},
    {"net", "its descriptors stay readable, so a waiting loop uses a whole core; use tcp", false},
    {"shm", "it has no connections (MSG endpoints) and no descriptor to wait for; use tcp", false},
    {"udp", "it has no connections (MSG endpoints); use tcp", false},
}};

const ProviderTraits& traits_of(std::string_view provider) {
    const auto* const found = std::ranges::find(providers, provider, &ProviderTraits::name);
    NETIO_CHECK_MSG(found != providers.end(), "a provider that was not asked for");
    return *found;
}
const ProviderTraits& traits_of(const ::fi_info& info) {
    return traits_of(info.fabric_attr->prov_name);
}

// Providers that do not use kernel sockets need a device.
std::string remedy_of(const std::string& provider) {
    if (traits_of(provider).kernel_sockets) return {};
    return " (it serves RDMA devices only; auto and tcp need none, and netio doctor reports "
           "what a device lacks)";
}

Info plain_hints(const std::string& provider, const QueueLimits& limits) {
    Info hints{library().dupinfo(nullptr)}; // empty hints
    if (!hints) throw std::bad_alloc{};
    hints->caps = FI_MSG | FI_RMA;
    // Without this mode bit, verbs carries no immediate data (fi_verbs(7)). FI_CONTEXT is left out
    // on purpose: operations are named by numbers, not by pointers
    // (netio/fabric/provider_queue.hpp).
    hints->mode = FI_RX_CQ_DATA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;           // one thread: the loop's
    hints->fabric_attr->prov_name = ::strdup(provider.c_str()); // freed by fi_freeinfo
    hints->tx_attr->size = send_queue_size(provider, limits);
    hints->rx_attr->size = limits.receive_count;
    return hints;
}

// The kernel refuses a link-local address without its zone as an invalid argument; that error names
// neither the address nor the remedy.
void require_zone(const addrinfo& entry) {
    const access::AuthAddress address = to_auth_address(entry.ai_addr);
    if (!access::is_link_local(address.host) || address.zone != 0) return;
    const std::string host = numeric_host(entry);
    throw FabricError{{EINVAL, std::system_category()},
                      "'" + host + "' is a link-local address and needs its interface: " + host +
                          "%INTERFACE"};
}

// For addresses of this family: an endpoint of another family cannot connect to them.
Info make_hints(const InfoRequest& request, int family) {
    Info hints = plain_hints(request.provider, request.limits);
    if (request.local_host.empty()) return hints;
    const AddressList all = resolve({host_at_interface(request.local_host, family), 0}, false);
    const addrinfo* local = all.get();
    while (local != nullptr && local->ai_family != family)
        local = local->ai_next;
    if (local == nullptr) {
        throw FabricError{{EADDRNOTAVAIL, std::system_category()},
                          "'" + request.local_host + "' has no " +
                              std::string{family_name(family)} + " address"};
    }
    require_zone(*local);
    hints->src_addr = std::malloc(local->ai_addrlen); // freed by fi_freeinfo
    if (hints->src_addr == nullptr) throw std::bad_alloc{};
    std::memcpy(hints->src_addr, local->ai_addr, local->ai_addrlen);
    hints->src_addrlen = local->ai_addrlen;
    hints->addr_format = family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    return hints;
}

// What libfabric offers for these hints; null if nothing. The parameters are those of
// fi_getinfo(3).
struct Place {
    const char* host = nullptr;
    const char* port = nullptr;
    std::uint64_t flags = 0;
};
Info offered(const Place& place, const ::fi_info& hints) {
    ::fi_info* found = nullptr;
    // Providers may start threads when they are asked for the first time.
    const AllSignalsBlocked blocked;
    const ForkBlocked no_fork;
    const int result =
        library().getinfo(api_version, place.host, place.port, place.flags, &hints, &found);
    if (result == 0) return Info{found};
    if (result != -FI_ENODATA) {
        require(result, "cannot ask libfabric for provider '" +
                            std::string{hints.fabric_attr->prov_name} + "'");
    }
    return nullptr;
}

// Requests receives that a connection may reserve later. The provider may offer fewer;
// receive_queue_size() reports that.
Info with_long_queue(const Place& place, ::fi_info& hints) {
    const std::size_t needed = hints.rx_attr->size;
    for (const std::size_t wish : receive_wishes) {
        hints.rx_attr->size = wish;
        Info found = offered(place, hints);
        hints.rx_attr->size = needed;
        if (found) return found;
    }
    return offered(place, hints);
}

// Requests as many scatter-gather elements for sends as there are.
Info ask(const Place& place, ::fi_info& hints) {
    const bool is_list = hints.rx_attr->size > 0 && traits_of(hints).kernel_sockets;
    Info usual = is_list ? with_long_queue(place, hints) : offered(place, hints);
    if (!usual || !traits_of(*usual).hides_segments) return usual;
    for (const std::size_t wish : segment_wishes) {
        if (wish <= usual->tx_attr->iov_limit) break;
        hints.tx_attr->iov_limit = wish;
        Info more = offered(place, hints);
        hints.tx_attr->iov_limit = 0;
        if (more) return more;
    }
    return usual;
}

// For one address of the name. Throws FabricError if there is no address to connect from.
Info ask(const InfoRequest& request, const addrinfo& entry) {
    require_zone(entry);
    const Info hints = make_hints(request, entry.ai_family);
    const std::string host = numeric_host(entry);
    const std::string port = std::to_string(request.address.port);
    return ask({.host = host.c_str(),
                .port = port.c_str(),
                .flags = request.role == Role::listen ? FI_SOURCE : 0},
               *hints);
}

struct Offer final : RouteOffer {
    explicit Offer(Info found) : info{std::move(found)} {}
    Info info;
};

} // namespace

std::vector<std::string> usable_providers() {
    std::vector<std::string> names;
    for (const auto& traits : providers) {
        if (traits.refusal.empty()) names.emplace_back(traits.name);
    }
    return names;
}

std::string refusal(std::string_view provider) {
    for (const auto& traits : providers) {
        if (traits.name == provider) return std::string{traits.refusal};
    }
    if (provider.find(';') != std::string_view::npos ||
        provider.find("rxm") != std::string_view::npos ||
        provider.find("rxd") != std::string_view::npos) {
        return "it has datagram (RDM) endpoints only, and this library needs connections (MSG); "
               "use the core provider";
    }
    return "it is not known to this library; use auto, verbs or tcp";
}

Info query(const InfoRequest& request) {
    const bool listening = request.role == Role::listen;
    const AddressList addresses = resolve(request.address, listening);
    std::optional<FabricError> flaw; // of one address; another may succeed
    for (const addrinfo* entry = addresses.get(); entry != nullptr; entry = entry->ai_next) {
        try {
            if (Info info = ask(request, *entry)) return info;
        } catch (const FabricError& error) {
            flaw = error;
        }
    }
    if (flaw) throw *flaw;
    return nullptr;
}

FoundRoutes find_routes(const std::vector<std::string>& wanted, const Address& remote,
                        const std::string& local_host) {
    FoundRoutes found;
    const auto note = [&](const std::string& problem) {
        if (found.problem.find(problem) != std::string::npos) return; // known
        found.problem += (found.problem.empty() ? "" : "; ") + problem;
    };
    const auto look = [&](const std::string& provider, const addrinfo& entry) {
        const Address address{.host = numeric_host(entry), .port = remote.port};
        auto offer = std::make_shared<Offer>(ask({.provider = provider,
                                                  .role = Role::connect,
                                                  .address = remote,
                                                  .local_host = local_host,
                                                  .limits = {}},
                                                 entry));
        if (offer->info == nullptr) return note(cannot_reach(provider, address, local_host));
        const auto dialled = to_auth_address(offer->info->dest_addr);
        found.routes.push_back({.provider = provider,
                                .remote = address,
                                .local_host = local_host,
                                .dialled = dialled,
                                .offer = std::move(offer)});
    };
    try {
        const AddressList addresses = resolve(remote, false);
        for (const std::string& provider : wanted) {
            for (const addrinfo* entry = addresses.get(); entry != nullptr;
                 entry = entry->ai_next) {
                try {
                    look(provider, *entry);
                } catch (const FabricError& error) {
                    note(error.what());
                }
            }
        }
    } catch (const FabricError& error) {
        note(error.what());
    }
    return found;
}

Info info_of(const Route& route) {
    Info copy{library().dupinfo(static_cast<const Offer&>(*route.offer).info.get())};
    if (!copy) throw std::bad_alloc{};
    return copy;
}

std::string cannot_reach(const std::string& provider, const Address& remote,
                         const std::string& local_host) {
    return "provider '" + provider + "' cannot reach " + to_string(remote) +
           (local_host.empty() ? "" : " from " + local_host) + remedy_of(provider) +
           foreign_choice(provider);
}
std::string cannot_listen(const std::string& provider, const Address& address) {
    return "provider '" + provider + "' cannot listen at " + to_string(address) +
           remedy_of(provider) + foreign_choice(provider);
}

// libfabric reads FI_PROVIDER once, before this library could change it, and then offers nothing
// else.
std::string foreign_choice(const std::string& provider) {
    const char* const choice = std::getenv("FI_PROVIDER");
    if (choice == nullptr || provider == choice) return {}; // an empty value excludes all of them
    return "; FI_PROVIDER=" + std::string{choice} +
           " in the environment prevents libfabric from offering other providers: unset it";
}

Info query_all(const std::string& provider) {
    const Info hints = plain_hints(provider, {.send_count = 0, .receive_count = 0});
    return ask({}, *hints);
}

Capabilities capabilities_of(const ::fi_info& info) {
    return {
        .provider = info.fabric_attr->prov_name,
        .segment_limit = info.tx_attr->iov_limit,
        .inject_bytes = info.tx_attr->inject_size,
        .immediate_bytes = info.domain_attr->cq_data_size,
        .message_bytes = info.ep_attr->max_msg_size,
        .write_consumes_receive = (info.mode & FI_RX_CQ_DATA) != 0,
        .connector_speaks_first = info.ep_attr->protocol == FI_PROTO_IWARP,
    };
}

void require_segments(const ::fi_info& info) {
    if (std::min(info.tx_attr->iov_limit, info.rx_attr->iov_limit) >= 2) return;
    throw FabricError{std::make_error_code(std::errc::not_supported),
                      std::string{"provider '"} + info.fabric_attr->prov_name +
                          "' takes one scatter-gather element per message, and two are needed: "
                          "unset FI_VERBS_TX_IOV_LIMIT and FI_VERBS_RX_IOV_LIMIT"};
}

std::size_t send_queue_size(std::string_view provider, const QueueLimits& limits) {
    const bool asks_itself = limits.send_count > 0 && !traits_of(provider).kernel_sockets;
    return limits.send_count + (asks_itself ? 1 : 0);
}

std::size_t receive_queue_size(const ::fi_info& info, const QueueLimits& limits) {
    if (!traits_of(info).kernel_sockets) return limits.receive_count;
    const std::size_t most = info.rx_attr->size;
    if (limits.receive_count <= most) return most;
    throw FabricError{std::make_error_code(std::errc::not_supported),
                      std::string{"provider '"} + info.fabric_attr->prov_name + "' of libfabric " +
                          fabric_version() + " holds " + std::to_string(most) +
                          " receives of a connection, and receive_count is " +
                          std::to_string(limits.receive_count)};
}

bool uses_kernel_sockets(const ::fi_info& info) {
    return traits_of(info).kernel_sockets;
}

bool has_unified_tcp() {
    return FI_VERSION_GE(library().version(), FI_VERSION(1, 18)) != 0;
}

bool reads_all_sockets(const ::fi_info& info) {
    if (!uses_kernel_sockets(info)) return false;
    return std::string_view{info.fabric_attr->prov_name} != "tcp" || has_unified_tcp();
}

bool guards_memory(std::string_view provider) {
    return !traits_of(provider).kernel_sockets;
}

bool domain_limits_queues(const ::fi_info& info) {
    return traits_of(info).domain_limits_queues;
}

} // namespace netio::fabric

namespace netio::inline v0_3 {

std::string provider_refusal(const std::string& provider) {
    return fabric::refusal(provider);
}

std::string fabric_version() {
    const std::uint32_t version = fabric::library().version();
    return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::vector<FabricDescription> describe_fabric() {
    undo_foreign_signal_handlers(); // a process under such a handler would never end
    std::vector<FabricDescription> descriptions;
    for (const auto& provider : fabric::usable_providers()) {
        const fabric::Info list = fabric::query_all(provider);
        for (const ::fi_info* info = list.get(); info != nullptr; info = info->next) {
            const std::string domain = info->domain_attr->name;
            auto same = [&](const FabricDescription& known) {
                return known.provider == provider && known.domain == domain;
            };
            auto place = std::find_if(descriptions.begin(), descriptions.end(), same);
            if (place == descriptions.end()) {
                place = descriptions.insert(place, {.provider = provider,
                                                    .domain = domain,
                                                    .addresses = {},
                                                    .capabilities = fabric::capabilities_of(*info),
                                                    .send_queue_limit = info->tx_attr->size,
                                                    .receive_queue_limit = info->rx_attr->size});
            }
            if (info->src_addr != nullptr) {
                place->addresses.push_back(fabric::to_address(info->src_addr).host);
            }
        }
    }
    return descriptions;
}

} // namespace netio::inline v0_3
