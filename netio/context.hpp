// SPDX-License-Identifier: Apache-2.0
#pragma once

// An event loop with its own thread, and the network opened for it. Each netio::Publisher,
// netio::Subscriber and netio::Sender creates a Context, unless several of them are given the same
// one:
//
//     netio::Context context;
//     netio::Publisher publisher{"127.0.0.1:12345", {.context = context}};
//     netio::Subscriber subscriber{"127.0.0.1:12346", {.context = context}};
//
// Copies of a Context refer to the same loop. The thread ends when the last copy and the last
// object that uses it are destroyed. Any thread may call it. A Context may be a global object. A
// forked child process must not use a Context of its parent; its destructor does nothing there.
//
// A program with an event loop of its own needs no further thread: Context{transport} is for the
// loop of that transport.

#include "netio/base/export.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/event_loop.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace netio::inline v0_3 {

class Observer;

class NETIO_EXPORT Context final {
  public:
    struct Options {
        // Without an observer, the loop gets one that writes to the log (set_log, below).
        EventLoop::Options loop{};
        FabricOptions fabric{};
    };

    // Starts the thread, with all signals blocked in it. Throws what EventLoop and open_fabric()
    // throw.
    Context();
    explicit Context(Options options);
    // For a loop that the calling thread runs. The transport and its loop must outlive all objects
    // with this context. Calls of such objects on this thread do not wait, because only this thread
    // can run the loop.
    explicit Context(Transport& transport);

    // Runs the task on the loop's thread, in the order of the calls. Returns false if
    // loop.post_limit tasks are waiting already; the task will not run. The task must not throw,
    // and must not destroy the last reference to this context.
    [[nodiscard]] bool post(std::function<void()> task) const;
    // The same without the limit: for callers that have few tasks waiting at a time.
    void post_always(std::function<void()> task) const;
    // Runs the task on the loop's thread and waits until it has returned. Rethrows what the task
    // throws. If called on the loop's thread, the task runs at once.
    void run(const std::function<void()>& task) const;
    bool is_own_thread() const noexcept;
    // Only for use in tasks: both belong to the loop's thread.
    EventLoop& loop() const noexcept;
    Transport& transport() const noexcept;

  private:
    struct Thread;
    Thread& thread() const noexcept;
    std::shared_ptr<Thread> thread_;
};

// Sets the function that receives log lines about problems: a publisher that cannot be reached, a
// slow subscriber, a rejected peer. Context, Publisher and Subscriber write such lines; sockets on
// a loop of the user's own report to the loop's Observer instead. The default writes "netio: LINE"
// to standard error; an empty function discards the lines. The function is called from any thread,
// one call at a time. It must not throw, and must not call set_log(). Any thread. A forked child
// starts with the default.
//
//     netio::set_log([](std::string_view line) { std::cerr << line << std::endl; });
NETIO_EXPORT void set_log(std::function<void(std::string_view line)> log);
// Passes a line to that function, with \uXXXX for characters that act on a terminal or are not
// visible.
NETIO_EXPORT void write_log(std::string_view line);
// An observer that writes the events of one loop to that function, as a Context does.
NETIO_EXPORT std::shared_ptr<Observer> make_log_observer();

} // namespace netio::inline v0_3
