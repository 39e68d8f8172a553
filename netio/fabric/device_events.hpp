// SPDX-License-Identifier: Apache-2.0
#pragma once

// The asynchronous events of the RDMA devices of this machine: the implementation of DeviceWatch.

#include "netio/device_watch.hpp"
#include "netio/loop/descriptor_watch.hpp"

#include <functional>
#include <infiniband/verbs.h>
#include <memory>
#include <string>
#include <vector>

namespace netio::fabric {

// The functions of libibverbs that are used here. The library is loaded on demand, so machines
// without it work as well.
struct VerbsLibrary {
    ::ibv_device** (*get_device_list)(int* count) = nullptr;
    void (*free_device_list)(::ibv_device** list) = nullptr;
    const char* (*get_device_name)(::ibv_device* device) = nullptr;
    ::ibv_context* (*open_device)(::ibv_device* device) = nullptr;
    int (*close_device)(::ibv_context* context) = nullptr;
    int (*get_async_event)(::ibv_context* context, ::ibv_async_event* event) = nullptr;
    void (*ack_async_event)(::ibv_async_event* event) = nullptr;
    const char* (*event_type_str)(::ibv_event_type type) = nullptr;
};

// Returns null if the library is missing or lacks one of these functions.
const VerbsLibrary* verbs_library();

class DeviceEvents {
  public:
    // The library must outlive this object. The handler may destroy it.
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
