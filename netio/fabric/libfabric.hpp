// SPDX-License-Identifier: Apache-2.0
#pragma once

// libfabric: its functions, owners for its handles, and its errors.
//
// The library is not linked: the first call that needs it loads it, once for the process, and it
// stays loaded. Loading takes 0.2 s if Debian's libfabric is built with psm, and commands and
// programs that use no fabric should not wait for that (docs/decisions/0014). Functions that its
// headers define inline are called directly; exported functions are called through Library.

#include "netio/base/status.hpp"
#include "netio/loop/process.hpp"

#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <string>

namespace netio::fabric {

struct Library {
    decltype(&::fi_dupinfo) dupinfo;
    decltype(&::fi_fabric) fabric;
    decltype(&::fi_freeinfo) freeinfo;
    decltype(&::fi_getinfo) getinfo;
    decltype(&::fi_strerror) strerror;
    decltype(&::fi_version) version;
};

// Any thread. Throws FabricError with the remedy if libfabric cannot be loaded or is older than the
// version that this library was built with; the next call tries again.
const Library& library();

// --- handles ---------------------------------------------------------------------------------

// Members are closed in reverse order of declaration, and a handle that others still refer to
// cannot be closed (-FI_EBUSY, fi_cq(3), fi_domain(3)). So owners declare fabric, domain, queues,
// endpoints in this order.

// Aborts if the provider refuses: another object still refers to the handle, which is a bug.
void close_handle(::fid& handle) noexcept;

// Closing also removes the handle from kernel objects that a child process shares with its parent,
// so a child leaves an inherited handle open.
struct HandleCloser {
    template <typename Handle>
    void operator()(Handle* handle) const noexcept {
        if (!process.is_inherited()) close_handle(handle->fid);
    }
    ProcessMark process{};
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

// --- errors ---------------------------------------------------------------------------------

// libfabric returns negative errno values, some of its own (fi_errno(3)).
std::string fabric_error_text(long code);
const std::error_category& fabric_category() noexcept;

// Throws FabricError if the call failed; `what` describes the operation and its object.
void require(long code, const std::string& what);
// As require(), for calls that lock memory for a device: names the remedy if a limit may be the
// reason.
void require_memory(long code, const std::string& what, bool locks);

} // namespace netio::fabric
