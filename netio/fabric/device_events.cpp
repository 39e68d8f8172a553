// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/device_events.hpp"

#include "netio/loop/process.hpp"

#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <utility>

namespace netio::fabric {

// --- libibverbs ------------------------------------------------------------------------------

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlvsym(library, name, "IBVERBS_1.1"));
    return function != nullptr;
}

std::optional<VerbsLibrary> load() {
    const KeptSignalHandlers kept;
    void* const opened = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (opened == nullptr) return std::nullopt;
    VerbsLibrary found;
    const bool complete = find(opened, "ibv_get_device_list", found.get_device_list) &&
                          find(opened, "ibv_free_device_list", found.free_device_list) &&
                          find(opened, "ibv_get_device_name", found.get_device_name) &&
                          find(opened, "ibv_open_device", found.open_device) &&
                          find(opened, "ibv_close_device", found.close_device) &&
                          find(opened, "ibv_get_async_event", found.get_async_event) &&
                          find(opened, "ibv_ack_async_event", found.ack_async_event) &&
                          find(opened, "ibv_event_type_str", found.event_type_str);
    if (!complete) return std::nullopt;
    return found;
}

} // namespace

const VerbsLibrary* verbs_library() {
    static const std::optional<VerbsLibrary> loaded = load();
    return loaded ? &*loaded : nullptr;
}

// --- the events ------------------------------------------------------------------------------

namespace {

// An event of a queue is reported to the queue's owner, not here.
std::optional<DeviceEvent::Kind> kind_of(::ibv_event_type type) {
    using Kind = DeviceEvent::Kind;
    switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
        return Kind::port_up;
    case IBV_EVENT_PORT_ERR:
        return Kind::port_down;
    case IBV_EVENT_DEVICE_FATAL:
        return Kind::device_failed;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        return Kind::changed;
    default:
        return std::nullopt;
    }
}

} // namespace

DeviceEvents::DeviceEvents(EventLoop& loop, const VerbsLibrary& library,
                           std::function<void(const DeviceEvent&)> handler)
    : loop_{loop}, library_{library}, handler_{std::move(handler)} {
    int count = 0;
    ::ibv_device** const list = library_.get_device_list(&count);
    if (list == nullptr) return;
    for (int i = 0; i < count; ++i)
        open(*list[i]);
    library_.free_device_list(list);
}

DeviceEvents::~DeviceEvents() {
    for (const auto& device : devices_) {
        device->watch.reset();
        library_.close_device(device->context);
    }
}

void DeviceEvents::open(::ibv_device& device) {
    ::ibv_context* const context = library_.open_device(&device);
    if (context == nullptr) return;
    const int flags = ::fcntl(context->async_fd, F_GETFL);
    if (flags < 0 || ::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        library_.close_device(context);
        return;
    }
    auto& opened = *devices_.emplace_back(std::make_unique<Device>());
    opened.name = library_.get_device_name(&device);
    opened.context = context;
    opened.watch = std::make_unique<DescriptorWatch>(loop_, context->async_fd,
                                                     DescriptorWatch::Interest::readable,
                                                     [this, &opened] { take(opened); });
}

// Takes one event; the loop calls again while there are more.
void DeviceEvents::take(Device& device) {
    ::ibv_async_event event{};
    if (library_.get_async_event(device.context, &event) != 0) {
        // A device that was removed reports no further events.
        if (errno != EAGAIN && errno != EINTR) device.watch.reset();
        return;
    }
    const auto kind = kind_of(event.event_type);
    DeviceEvent told{.kind = kind.value_or(DeviceEvent::Kind::changed),
                     .device = device.name,
                     .port = 0,
                     .what = library_.event_type_str(event.event_type)};
    if (kind && *kind != DeviceEvent::Kind::device_failed)
        told.port = static_cast<unsigned>(event.element.port_num);
    library_.ack_async_event(&event);
    if (kind) handler_(told); // may destroy this
}

} // namespace netio::fabric

namespace netio::inline v0_3 {

class DeviceWatch::Devices final : public fabric::DeviceEvents {
  public:
    using DeviceEvents::DeviceEvents;
};

DeviceWatch::DeviceWatch(EventLoop& loop) {
    std::error_code error;
    const std::filesystem::directory_iterator devices{"/sys/class/infiniband", error};
    if (error || devices == std::filesystem::directory_iterator{}) return;
    const fabric::VerbsLibrary* const library = fabric::verbs_library();
    if (library == nullptr) return;
    devices_ = std::make_unique<Devices>(loop, *library, [&loop](const DeviceEvent& event) {
        if (Observer* const observer = loop.observer) observer->on_device_event(event);
    });
}

DeviceWatch::~DeviceWatch() {
    if (devices_ && !devices_->loop().may_destroy("DeviceWatch"))
        static_cast<void>(devices_.release());
}

std::size_t DeviceWatch::device_count() const noexcept {
    return devices_ ? devices_->device_count() : 0;
}

} // namespace netio::inline v0_3
