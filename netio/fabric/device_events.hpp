// SPDX-License-Identifier: Apache-2.0
#pragma once

// The asynchronous events of a machine's RDMA devices: the inside of a DeviceWatch.

#include "netio/device_watch.hpp"
#include "netio/fabric/verbs_library.hpp"
#include "netio/loop/descriptor_watch.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::fabric {

class DeviceEvents {
  public:
    // The library outlives it. The handler may destroy it.
    DeviceEvents(EventLoop& loop, const VerbsLibrary& library,
                 std::function<void(const DeviceEvent&)> handler);
    ~DeviceEvents();
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    std::size_t device_count() const noexcept { return devices_.size(); }
    EventLoop& loop() const noexcept { return loop_; }

  private:
    struct Device {
        std::string name;
        ::ibv_context* context = nullptr;
        std::unique_ptr<DescriptorWatch> watch;
    };
    void open(::ibv_device& device);
    void take(Device& device);

    EventLoop& loop_;
    const VerbsLibrary& library_;
    std::function<void(const DeviceEvent&)> handler_;
    std::vector<std::unique_ptr<Device>> devices_;
};

} // namespace netio::fabric
