// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/verbs_library.hpp"

#include "netio/loop/signal_handlers.hpp"

#include <dlfcn.h>
#include <optional>

namespace netio::fabric {
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

} // namespace netio::fabric
