// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is used of libibverbs. It is loaded when it is asked for, so that machines without it run
// all the same.

#include <infiniband/verbs.h>

namespace netio::fabric {

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

// Null: it is not there, or lacks one of these.
const VerbsLibrary* verbs_library();

} // namespace netio::fabric
