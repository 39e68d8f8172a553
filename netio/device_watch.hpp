// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells what happens to the RDMA devices of this machine: a port that goes down or comes up, a
// device that fails.
//
//     netio::DeviceWatch watch{loop, [&](const netio::DeviceEvent& event) {
//         if (event.kind == netio::DeviceEvent::Kind::port_down) loop.stop();
//     }};
//
// The devices are asked through libibverbs, which is loaded where there is a device. Without
// either nothing is told, and it costs nothing. What a device has counted, and how its ports are,
// stands in /sys/class/infiniband. Belongs to the loop's thread.

#include "netio/base/export.hpp"
#include "netio/loop/event_loop.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace netio::inline v0_2 {

struct DeviceEvent {
    enum class Kind : std::uint8_t {
        port_up,
        port_down,
        device_failed, // nothing goes over it any more
        changed,       // addresses, keys, the subnet's manager
    };
    Kind kind = Kind::changed;
    std::string device;
    unsigned port = 0; // 0: all of the device
    std::string what;  // in libibverbs' words
};

class NETIO_EXPORT DeviceWatch {
  public:
    // The handler may destroy the watch. Devices that cannot be opened are left out.
    DeviceWatch(EventLoop& loop, std::function<void(const DeviceEvent&)> handler);
    ~DeviceWatch();
    DeviceWatch(const DeviceWatch&) = delete;
    DeviceWatch& operator=(const DeviceWatch&) = delete;

    // That are watched.
    std::size_t device_count() const noexcept;

  private:
    class Devices;
    std::unique_ptr<Devices> devices_; // null: there are none
};

} // namespace netio::inline v0_2
