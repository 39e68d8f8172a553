// SPDX-License-Identifier: Apache-2.0
#pragma once

// A libfabric MSG endpoint: the provider's calls, with our slices in its terms. What they mean for
// a connection, and what is outstanding, is the connection's (netio/fabric/connection.hpp).

#include "netio/fabric/domain.hpp"
#include "netio/transport.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace netio::fabric {

// The entries of a completion queue that a connection may need: see send_queue_size().
std::size_t entries_for(const QueueLimits& limits);

class Endpoint {
  public:
    // From an info of fi_getinfo (to connect) or of a connection request (to accept); such a
    // request is used up only if this succeeds. The info is changed, and stays the caller's. Throws
    // FabricError.
    static EndpointHandle open(Domain& domain, ::fi_info& info, const QueueLimits& limits);

    Endpoint(Domain& domain, Info info, EndpointHandle handle);

    // To these queues; from then on it may be used. Throws FabricError.
    void enable(::fid_eq& events, ::fid_cq& completions, const QueueLimits& limits);
    bool is_open() const noexcept { return handle_ != nullptr; }
    ::fid_ep& handle() const noexcept { return *handle_; }
    const Capabilities& capabilities() const noexcept { return capabilities_; }
    // Receives that may be outstanding, as far as the provider is concerned.
    std::size_t receive_limit() const noexcept { return info_->rx_attr->size; }
    std::string peer_address() const;
    const void* remote() const noexcept { return info_->dest_addr; }

    // What these return is libfabric's: 0, or a negative error. `context` names the operation.
    int connect(std::span<const std::byte> data) noexcept;
    int accept(std::span<const std::byte> data) noexcept;
    long send(std::span<const Slice> slices, void* context);
    long receive(std::span<const Slice> slices, void* context);
    long write(std::span<const Slice> slices, const RemoteSlice& target,
               std::optional<std::uint32_t> immediate, void* context);
    // A write of nothing, which the peer's device acknowledges.
    long write_nothing(void* context) noexcept;

    // The peer has answered, or the attempt has failed.
    void on_answer() noexcept { is_unanswered_ = false; }
    // With iWARP who closes it waits for the answer (netio/fabric/abandoned_endpoint.hpp).
    bool waits_to_close() const noexcept {
        return is_unanswered_ && capabilities_.connector_speaks_first;
    }
    EndpointHandle release() noexcept { return std::move(handle_); }
    // Tells the peer, if it has heard of this endpoint.
    void close(bool was_used) noexcept;

  private:
    // The pieces of one post in libfabric's terms.
    struct Vectors {
        std::array<::iovec, 32> pieces;
        std::array<void*, 32> descriptors;
        std::size_t count = 0;
    };
    void gather(std::span<const Slice> slices, std::size_t limit, Vectors& vectors);

    Domain& domain_;
    Info info_;
    Capabilities capabilities_;
    EndpointHandle handle_;
    bool is_unanswered_ = false; // connect() or accept() was called
};

} // namespace netio::fabric
