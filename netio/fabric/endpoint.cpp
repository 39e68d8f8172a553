// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/endpoint.hpp"

#include "netio/fabric/kernel_socket.hpp"
#include "netio/fabric/provider.hpp"
#include "netio/fabric/socket_address.hpp"
#include "netio/fabric/soft_iwarp.hpp"

#include <algorithm>
#include <rdma/fi_rma.h>
#include <utility>

namespace netio::fabric {
namespace {

std::string for_operations(const QueueLimits& limits) {
    return " for " + std::to_string(limits.send_count) + " sends and " +
           std::to_string(limits.receive_count) + " receives";
}

} // namespace

std::size_t entries_for(const QueueLimits& limits) {
    return 1 + limits.send_count + limits.receive_count;
}

EndpointHandle Endpoint::open(Domain& domain, ::fi_info& info, const QueueLimits& limits) {
    require_segments(info);
    // What was asked for at fi_getinfo counts for a connector; an accepting endpoint gets its
    // sizes here, since the request carries the listener's.
    info.tx_attr->size = send_queue_size(info.fabric_attr->prov_name, limits);
    info.rx_attr->size = receive_queue_size(info, limits);
    ::fid_ep* endpoint = nullptr;
    require(::fi_endpoint(&domain.handle(), &info, &endpoint, nullptr),
            "cannot open an endpoint" + for_operations(limits));
    return EndpointHandle{endpoint};
}

Endpoint::Endpoint(Domain& domain, Info info, EndpointHandle handle)
    : domain_{domain}, info_{std::move(info)},
      capabilities_{capabilities_of(*info_)}, handle_{std::move(handle)} {}

void Endpoint::enable(::fid_eq& events, ::fid_cq& completions, const QueueLimits& limits) {
    require(::fi_ep_bind(handle_.get(), &events.fid, 0),
            "cannot bind an endpoint to its event queue");
    require(::fi_ep_bind(handle_.get(), &completions.fid, FI_TRANSMIT | FI_RECV),
            "cannot bind an endpoint to its completion queue");
    require_memory(::fi_enable(handle_.get()), "cannot enable an endpoint" + for_operations(limits),
                   domain_.needs_registration());
}

std::string Endpoint::peer_address() const {
    if (info_->dest_addr == nullptr) return "unknown peer";
    return to_string(to_address(info_->dest_addr));
}

// A listener over kernel sockets waits for the longest request there can be
// (netio/fabric/kernel_socket.hpp).
int Endpoint::connect(std::span<const std::byte> data) noexcept {
    std::array<std::byte, tcp_message_data_bytes> padded{};
    std::ranges::copy(data, padded.begin());
    const bool pads = domain_.fabric().uses_kernel_sockets();
    const int result = ::fi_connect(handle_.get(), info_->dest_addr, padded.data(),
                                    pads ? padded.size() : data.size());
    is_unanswered_ = result == 0;
    return result;
}

int Endpoint::accept(std::span<const std::byte> data) noexcept {
    const int result = ::fi_accept(handle_.get(), data.data(), data.size());
    is_unanswered_ = result == 0;
    return result;
}

void Endpoint::gather(std::span<const Slice> slices, std::size_t limit, Vectors& vectors) {
    NETIO_CHECK_MSG(slices.size() <= limit && slices.size() <= vectors.pieces.size(),
                    "more slices than the provider takes corrupt memory silently");
    for (const Slice& slice : slices) {
        // An empty piece among others brings down a kernel (siw, Linux 6.1), and means 2 GiB to
        // some hardware. One alone is a message without bytes.
        if (slice.size == 0 && slices.size() > 1) continue;
        vectors.pieces[vectors.count] = {slice.data, slice.size};
        vectors.descriptors[vectors.count] = nullptr;
        // Also where the provider would do without: what works on one must not abort on another.
        NETIO_CHECK_MSG(slice.buffer != nullptr, "a slice without its registered buffer");
        if (domain_.needs_registration()) {
            vectors.descriptors[vectors.count] = slice.buffer->registration(domain_).descriptor();
        }
        ++vectors.count;
    }
    if (vectors.count == 1 && domain_.splits_at_pages()) {
        vectors.count = split_at_page(vectors.pieces, vectors.descriptors);
    }
}

long Endpoint::send(std::span<const Slice> slices, void* context) {
    Vectors vectors;
    gather(slices, capabilities_.segment_limit, vectors);
    return ::fi_sendv(handle_.get(), vectors.pieces.data(), vectors.descriptors.data(),
                      vectors.count, 0, context);
}

long Endpoint::receive(std::span<const Slice> slices, void* context) {
    Vectors vectors;
    gather(slices, info_->rx_attr->iov_limit, vectors);
    return ::fi_recvv(handle_.get(), vectors.pieces.data(), vectors.descriptors.data(),
                      vectors.count, 0, context);
}

long Endpoint::write(std::span<const Slice> slices, const RemoteSlice& target,
                     std::optional<std::uint32_t> immediate, void* context) {
    Vectors vectors;
    gather(slices, capabilities_.segment_limit, vectors);
    ::fi_rma_iov remote{};
    remote.addr = target.address;
    remote.key = target.key;
    for (const Slice& slice : slices)
        remote.len += slice.size;
    ::fi_msg_rma message{};
    message.msg_iov = vectors.pieces.data();
    message.desc = vectors.descriptors.data();
    message.iov_count = vectors.count;
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.context = context;
    message.data = immediate.value_or(0);
    return ::fi_writemsg(handle_.get(), &message,
                         FI_COMPLETION | (immediate ? FI_REMOTE_CQ_DATA : 0));
}

long Endpoint::write_nothing(void* context) noexcept {
    const ::fi_rma_iov nowhere{};
    ::fi_msg_rma message{};
    message.rma_iov = &nowhere;
    message.rma_iov_count = 1;
    message.context = context;
    return ::fi_writemsg(handle_.get(), &message, FI_COMPLETION);
}

void Endpoint::close(bool was_used) noexcept {
    // Without it verbs leaves that to a time-out. Fails if not connected: fine.
    if (was_used) ::fi_shutdown(handle_.get(), 0);
    handle_.reset();
}

} // namespace netio::fabric
