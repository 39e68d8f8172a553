// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reports events of the RDMA devices of this machine to the loop's observer: a port goes down or
// comes up, a device fails.
//
//     netio::DeviceWatch watch{loop}; // calls on_device_event of the loop's observer
//
// It uses libibverbs, which is loaded if the machine has a device. Without libibverbs or a device
// nothing is reported, and the watch costs nothing. The counters of a device and the state of its
// ports are in /sys/class/infiniband. Belongs to the loop's thread.

#include "netio/base/export.hpp"
#include "netio/base/observer.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstddef>
#include <memory>

namespace netio::inline v0_3 {

class NETIO_EXPORT DeviceWatch {
  public:
    // Skips devices that cannot be opened.
    explicit DeviceWatch(EventLoop& loop);
    ~DeviceWatch();
    DeviceWatch(const DeviceWatch&) = delete;
    DeviceWatch& operator=(const DeviceWatch&) = delete;

    // The number of watched devices.
    std::size_t device_count() const noexcept;

  private:
    class Devices;
    std::unique_ptr<Devices> devices_; // null: no devices
};

} // namespace netio::inline v0_3
