// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells what happens to the RDMA devices of this machine: a port that goes down or comes up, a
// device that fails.
//
//     netio::DeviceWatch watch{loop}; // tells the loop's observer: on_device_event
//
// The devices are asked through libibverbs, which is loaded where there is a device. Without
// either nothing is told, and it costs nothing. What a device has counted, and how its ports are,
// stands in /sys/class/infiniband. Belongs to the loop's thread.

#include "netio/base/export.hpp"
#include "netio/base/observer.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstddef>
#include <memory>

namespace netio::inline v0_3 {

class NETIO_EXPORT DeviceWatch {
  public:
    // Devices that cannot be opened are left out.
    explicit DeviceWatch(EventLoop& loop);
    ~DeviceWatch();
    DeviceWatch(const DeviceWatch&) = delete;
    DeviceWatch& operator=(const DeviceWatch&) = delete;

    // That are watched.
    std::size_t device_count() const noexcept;

  private:
    class Devices;
    std::unique_ptr<Devices> devices_; // null: there are none
};

} // namespace netio::inline v0_3
