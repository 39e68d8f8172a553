// SPDX-License-Identifier: Apache-2.0
#pragma once

// State of one process. After fork(), the child shares with its parent the kernel objects of all
// inherited descriptors: an epoll instance, an eventfd, the position in a directory, the
// connections. A child that used or closed them would disturb its parent. Therefore each object of
// this library knows the process that created it and does nothing in a child.

#include "netio/base/export.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <memory>

namespace netio::inline v0_3 {

// A number that differs between a process and its forked children. Any thread.
NETIO_EXPORT unsigned process_generation() noexcept;

// Makes fork() wait while an object of it lives: for calls into libraries whose internal locks a
// child must not inherit in a locked state.
class ForkBlocked {
  public:
    ForkBlocked() noexcept;
    ~ForkBlocked();
    ForkBlocked(const ForkBlocked&) = delete;
    ForkBlocked& operator=(const ForkBlocked&) = delete;
};

// Ends the program, because a child process uses an object that it has inherited.
[[noreturn]] NETIO_EXPORT void refuse_inherited(const char* what) noexcept;

// A member of objects that a child process may inherit.
class ProcessMark {
  public:
    // Whether this is a child of the process that created the object.
    bool is_inherited() const noexcept { return generation_ != process_generation(); }
    // Ends the program in such a child.
    void check(const char* what) const noexcept {
        if (is_inherited()) refuse_inherited(what);
    }

  private:
    unsigned generation_ = process_generation();
};

// Deletes only in the process that created the object; a child does nothing.
struct DeleteInOwnProcess {
    template <typename Object>
    void operator()(Object* object) const noexcept {
        if (!process.is_inherited()) delete object;
    }
    ProcessMark process{};
};
template <typename Object>
using ProcessOwned = std::unique_ptr<Object, DeleteInOwnProcess>;

// An owner for objects that any thread may use, with the same deletion. A use in a child process
// ends the program with one line that names the `Type`.
template <typename Object, const char* Type>
class ProcessBound {
  public:
    explicit ProcessBound(Object* object) noexcept : object_{object} {}

    Object& operator*() const noexcept {
        object_.get_deleter().process.check(Type);
        return *object_;
    }
    Object* operator->() const noexcept { return &**this; }

  private:
    ProcessOwned<Object> object_;
};

// A static object of which each process has its own, created at first use. A child gets a new one,
// because a thread may have been using the parent's object during the fork. Its destructor never
// runs (see netio/base/never_destroyed.hpp).
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
        while (node == nullptr || node->process.is_inherited()) {
            auto fresh = std::make_unique<Node>();
            fresh->inherited = node;
            if (newest_.compare_exchange_strong(node, fresh.get())) node = fresh.release();
        }
        return node->object;
    }

  private:
    struct Node {
        ProcessMark process;
        Node* inherited = nullptr; // still referenced, so that leak checkers do not report it
        Object object;
    };
    std::atomic<Node*> newest_{nullptr};
};

// Debian's libfabric loads libinfinipath, whose constructor installs handlers for crashes and for
// SIGINT and SIGTERM in every process. With them, even SIGTERM ends in a backtrace and status 1.
inline constexpr std::array signals_that_libraries_take{SIGSEGV, SIGBUS,  SIGILL, SIGABRT,
                                                        SIGINT,  SIGTERM, SIGFPE};

// Restores the default for those signals whose handler lies in that library, and only for those.
void undo_foreign_signal_handlers() noexcept;

// To be kept while libfabric is loaded. The destructor restores the program's handlers of the
// signals that the library has replaced.
class KeptSignalHandlers {
  public:
    KeptSignalHandlers() noexcept;
    ~KeptSignalHandlers();
    KeptSignalHandlers(const KeptSignalHandlers&) = delete;
    KeptSignalHandlers& operator=(const KeptSignalHandlers&) = delete;

  private:
    std::array<struct sigaction, signals_that_libraries_take.size()> before_{};
};

} // namespace netio::inline v0_3
