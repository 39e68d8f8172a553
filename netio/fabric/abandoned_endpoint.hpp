// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/fabric/handles.hpp"
#include "netio/fabric/queue_seat.hpp"

#include <memory>
#include <utility>

namespace netio::fabric {

// An endpoint whose connection is gone while the answer to its fi_connect() or fi_accept() was due.
// With iWARP whoever disconnects or destroys it waits for that answer in the kernel (Linux,
// drivers/infiniband/core/iwcm.c: IWCM_F_CONNECT_WAIT), ten seconds with siw where the peer's
// process has stopped. So it is kept, with its room in the completion queue, until it is answered.
class AbandonedEndpoint {
  public:
    AbandonedEndpoint(std::shared_ptr<QueueRoom> room, EndpointHandle endpoint)
        : room_{std::move(room)}, endpoint_{std::move(endpoint)} {}
    ~AbandonedEndpoint() { ::fi_shutdown(endpoint_.get(), 0); }
    AbandonedEndpoint(const AbandonedEndpoint&) = delete;
    AbandonedEndpoint& operator=(const AbandonedEndpoint&) = delete;

    ::fid_t handle() const noexcept { return &endpoint_->fid; }

  private:
    std::shared_ptr<QueueRoom> room_;
    EndpointHandle endpoint_; // goes before its room
};

} // namespace netio::fabric
