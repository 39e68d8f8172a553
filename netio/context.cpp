// SPDX-License-Identifier: Apache-2.0
#include "netio/context.hpp"

#include "netio/base/check.hpp"
#include "netio/base/control_characters.hpp"
#include "netio/base/line_limiter.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/loop/process.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace netio::inline v0_3 {
namespace {

// --- the log --------------------------------------------------------------------------------

void write_to_standard_error(std::string_view line) {
    const std::string text = "netio: " + std::string{line} + "\n"; // one write per line
    std::fputs(text.c_str(), stderr);
}

struct Log {
    std::mutex mutex;
    std::function<void(std::string_view)> write = write_to_standard_error;
};

// Not destroyed: global publishers write to it while the program ends.
Log& the_log() {
    static PerProcess<Log> log;
    return *log;
}

// Peers decide how often some of these events happen, so each kind has a limit.
class LogObserver final : public Observer {
  public:
    void on_peer_rejected(const PeerRejected& event) override {
        rejected_.write(event.peer + " is rejected: " + event.why);
    }
    void on_accept_failed(const AcceptFailed& event) override {
        rejected_.write(event.peer + " cannot be accepted: " + event.why.what());
    }
    void on_not_admitted(const NotAdmitted& event) override {
        rejected_.write(event.peer + " is not admitted: " + event.why);
    }
    void on_request_refused(const RequestRefused& event) override {
        refused_.write(event.peer + " is refused a subscription: " + event.why);
    }
    void on_no_history(const NoHistory& event) override {
        refused_.write(event.peer + " keeps no history: only new messages arrive");
    }
    void on_key_file_problem(const std::string& problem) override { keys_.write(problem); }
    void on_key_revoked(const KeyRevoked& event) override {
        keys_.write("key " + std::to_string(event.key) +
                    " is revoked: " + std::to_string(event.sessions) + " of its connections end");
    }
    void on_peer_stalled(const PeerStalled& event) override {
        slow_.write(event.peer + " is slow: it has received nothing for " + seconds(event.stalled) +
                    (event.blocks_publisher ? ", and publishing waits for it" : ""));
    }
    void on_peer_recovered(const PeerRecovered& event) override {
        slow_.write(event.peer + " receives again after " + seconds(event.stalled));
    }
    void on_device_event(const DeviceEvent& event) override {
        if (event.kind != DeviceEvent::Kind::changed)
            devices_.write("device " + event.device + ": " + event.what);
    }

  private:
    struct Lines {
        LineLimiter limiter;
        void write(const std::string& line) { limiter.pass(line, Clock::now(), write_log); }
    };

    static std::string seconds(Duration time) {
        char text[32];
        std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
        return text;
    }

    Lines rejected_;
    Lines refused_;
    Lines keys_;
    Lines slow_;
    Lines devices_;
};

} // namespace

void set_log(std::function<void(std::string_view line)> log) {
    const std::lock_guard lock{the_log().mutex};
    the_log().write = std::move(log);
}

// A part of the line may come from a peer or a file, and the log may be a terminal.
void write_log(std::string_view line) {
    const std::string shown = printable(line);
    const std::lock_guard lock{the_log().mutex};
    if (the_log().write) the_log().write(shown);
}

std::shared_ptr<Observer> make_log_observer() {
    return std::make_shared<LogObserver>();
}

// --- the thread -----------------------------------------------------------------------------

struct Context::Thread {
    explicit Thread(Options options)
        : own_loop{std::make_unique<EventLoop>(observed(options.loop, observer))},
          own_transport{open_fabric(*own_loop, std::move(options.fabric))}, loop{*own_loop},
          transport{*own_transport} {
        const AllSignalsBlocked blocked;
        thread = std::thread{[this] { run(); }};
        id = thread.get_id();
    }
    explicit Thread(Transport& of_user)
        : loop{of_user.loop()}, transport{of_user}, id{std::this_thread::get_id()} {}
    ~Thread() {
        if (!thread.joinable()) return;
        NETIO_CHECK_MSG(!is_own(), "a context is not destroyed on its own thread");
        loop.stop();
        thread.join();
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    static EventLoop::Options observed(EventLoop::Options options, LogObserver& observer) {
        if (options.observer == nullptr) options.observer = &observer;
        return options;
    }
    bool is_own() const noexcept { return std::this_thread::get_id() == id; }
    // Runs tasks that were posted before the end, too.
    void run() {
        loop.run();
        bool done = false;
        loop.post_always([&] { done = true; });
        while (!done)
            loop.run_once();
    }

    const ProcessMark process;
    LogObserver observer;
    std::unique_ptr<EventLoop> own_loop; // null: the loop of the user
    std::unique_ptr<Transport> own_transport;
    EventLoop& loop;
    Transport& transport;
    std::thread::id id;
    std::thread thread; // the last member, because it uses the others
};

Context::Context() : Context{Options{}} {}

Context::Context(Options options) : thread_{new Thread{std::move(options)}, DeleteInOwnProcess{}} {}

Context::Context(Transport& transport) : thread_{new Thread{transport}, DeleteInOwnProcess{}} {}

Context::Thread& Context::thread() const noexcept {
    thread_->process.check("Context");
    return *thread_;
}

bool Context::post(std::function<void()> task) const {
    return thread().loop.post(std::move(task));
}

void Context::post_always(std::function<void()> task) const {
    thread().loop.post_always(std::move(task));
}

void Context::run(const std::function<void()>& task) const {
    if (is_own_thread()) return task();
    // Shared, because set_value() may still use it after the result has arrived.
    const auto done = std::make_shared<std::promise<void>>();
    std::future<void> result = done->get_future();
    post_always([&task, done] {
        try {
            task();
            done->set_value();
        } catch (...) {
            done->set_exception(std::current_exception());
        }
    });
    result.get();
}

bool Context::is_own_thread() const noexcept {
    return thread().is_own();
}

EventLoop& Context::loop() const noexcept {
    return thread().loop;
}

Transport& Context::transport() const noexcept {
    return thread().transport;
}

} // namespace netio::inline v0_3
