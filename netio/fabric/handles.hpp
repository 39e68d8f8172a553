// SPDX-License-Identifier: Apache-2.0
#pragma once

// Owners for libfabric's handles. Member order is closing order: a handle that others still refer
// to cannot be closed (-FI_EBUSY, fi_cq(3), fi_domain(3)), so owners declare fabric, domain,
// queues, endpoints in this order.

#include "netio/base/status.hpp"
#include "netio/fabric/library.hpp"
#include "netio/loop/process.hpp"

#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <string>

namespace netio::fabric {

// Aborts when the provider refuses: something still refers to the handle, which is a bug here.
void close_handle(::fid& handle) noexcept;

// Closing also takes the handle out of kernel objects that a child process shares with its parent,
// so a child that has inherited a handle leaves it open.
struct HandleCloser {
    template <typename Handle>
    void operator()(Handle* handle) const noexcept {
        if (generation == process_generation()) close_handle(handle->fid);
    }
    unsigned generation = process_generation();
};
struct InfoCloser {
    void operator()(::fi_info* info) const noexcept { library().freeinfo(info); }
};

using FabricHandle = std::unique_ptr<::fid_fabric, HandleCloser>;
using DomainHandle = std::unique_ptr<::fid_domain, HandleCloser>;
using EventQueueHandle = std::unique_ptr<::fid_eq, HandleCloser>;
using CompletionQueueHandle = std::unique_ptr<::fid_cq, HandleCloser>;
using EndpointHandle = std::unique_ptr<::fid_ep, HandleCloser>;
using PassiveEndpointHandle = std::unique_ptr<::fid_pep, HandleCloser>;
using MemoryHandle = std::unique_ptr<::fid_mr, HandleCloser>;
using Info = std::unique_ptr<::fi_info, InfoCloser>;

// libfabric returns negative errno values, some of its own (fi_errno(3)).
std::string fabric_error_text(long code);
const std::error_category& fabric_category() noexcept;

// Throws FabricError if the call failed; `what` says what was being done, and to what.
void require(long code, const std::string& what);
// The same for what locks memory on a device: names the remedy where a limit may be the reason.
void require_memory(long code, const std::string& what, bool locks);

} // namespace netio::fabric
