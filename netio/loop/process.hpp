// SPDX-License-Identifier: Apache-2.0
#pragma once

// What belongs to one process. After fork() the child shares with its parent the kernel objects
// behind all inherited descriptors: an epoll instance, an eventfd, the position in a directory, the
// connections. A child that used or closed them would disturb its parent, so each object of this
// library knows the process that created it, and in a child it is left alone.

#include "netio/base/export.hpp"

#include <atomic>
#include <memory>

namespace netio::inline v0_3 {

// Differs between a process and a child that it has forked. Any thread.
NETIO_EXPORT unsigned process_generation() noexcept;

// While one lives, fork() waits: for calls into libraries whose internal locks a child must not
// inherit in a locked state.
class ForkBlocked {
  public:
    ForkBlocked() noexcept;
    ~ForkBlocked();
    ForkBlocked(const ForkBlocked&) = delete;
    ForkBlocked& operator=(const ForkBlocked&) = delete;
};

// Ends the program: the object is used in a child process that has inherited it.
[[noreturn]] NETIO_EXPORT void refuse_inherited(const char* what) noexcept;

// Deletes in the process that created it only; a child leaves the object alone.
struct DeleteInOwnProcess {
    template <typename Object>
    void operator()(Object* object) const noexcept {
        if (generation == process_generation()) delete object;
    }
    unsigned generation = process_generation();
};
template <typename Object>
using ProcessOwned = std::unique_ptr<Object, DeleteInOwnProcess>;

// An owner for objects of any thread: the same, and a use in a child process ends the program with
// one line that names the `Type`.
template <typename Object, const char* Type>
class ProcessBound {
  public:
    explicit ProcessBound(Object* object) noexcept : object_{object} {}

    Object* operator->() const noexcept {
        if (object_.get_deleter().generation != process_generation()) refuse_inherited(Type);
        return object_.get();
    }

  private:
    ProcessOwned<Object> object_;
};

// A static object that each process has of its own, created at the first use. A child gets a new
// one, because another thread may have been in the middle of using the parent's when it forked. Its
// destructor never runs, for the reason in netio/base/never_destroyed.hpp.
//
//     static PerProcess<SocketTable> table;
//     return *table;
template <typename Object>
class PerProcess {
  public:
    constexpr PerProcess() noexcept = default;
    PerProcess(const PerProcess&) = delete;
    PerProcess& operator=(const PerProcess&) = delete;

    Object& operator*() {
        Node* node = newest_.load(std::memory_order_acquire);
        while (node == nullptr || node->generation != process_generation()) {
            auto fresh = std::make_unique<Node>();
            fresh->inherited = node;
            if (newest_.compare_exchange_strong(node, fresh.get())) node = fresh.release();
        }
        return node->object;
    }

  private:
    struct Node {
        unsigned generation = process_generation();
        Node* inherited = nullptr; // still referenced, so that it is no leak
        Object object;
    };
    std::atomic<Node*> newest_{nullptr};
};

} // namespace netio::inline v0_3
