// SPDX-License-Identifier: Apache-2.0
#include "netio/context.hpp"

#include "netio/base/check.hpp"
#include "netio/base/line_limiter.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/loop/process.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
    void on_key_file_problem(const std::string& problem) override { keys_.write(problem); }
    void on_key_revoked(const KeyRevoked& event) override {
        keys_.write("key " + std::to_string(event.key) +
                    " is revoked: " + std::to_string(event.sessions) + " of its connections end");
    }
    void on_peer_stalled(const PeerStalled& event) override {
        slow_.write(event.peer + " is slow: it has received nothing for " + seconds(event.stalled) +
                    (event.holds_up_publisher ? ", and publishing waits for it" : ""));
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

void write_log(std::string_view line) {
    const std::lock_guard lock{the_log().mutex};
    if (the_log().write) the_log().write(line);
}

// --- the thread -----------------------------------------------------------------------------

struct Context::Thread {
    explicit Thread(Options options)
        : post_limit{options.loop.post_limit}, loop{prepared(std::move(options.loop), observer)},
          transport{open_fabric(loop, std::move(options.fabric))} {
        const AllSignalsBlocked blocked;
        thread = std::thread{[this] { run(); }};
    }
    ~Thread() {
        NETIO_CHECK_MSG(!is_own(), "a context is not destroyed on its own thread");
        loop.stop();
        thread.join();
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // The loop gets no limit, because post_always() may exceed that of post().
    static EventLoop::Options prepared(EventLoop::Options options, LogObserver& observer) {
        require_at_least("loop.post_limit", static_cast<std::int64_t>(options.post_limit), 1);
        if (options.observer == nullptr) options.observer = &observer;
        options.post_limit = SIZE_MAX;
        return options;
    }
    bool is_own() const noexcept { return std::this_thread::get_id() == thread.get_id(); }
    // Runs tasks that were posted before the end, too.
    void run() {
        loop.run();
        bool done = false;
        while (!loop.post([&] { done = true; }))
            loop.run_once();
        while (!done)
            loop.run_once();
    }

    const unsigned generation = process_generation();
    const std::size_t post_limit;
    std::atomic<std::size_t> waiting{0};
    LogObserver observer;
    EventLoop loop;
    std::unique_ptr<Transport> transport;
    std::thread thread; // the last member, because it uses the others
};

Context::Context() : Context{Options{}} {}

Context::Context(Options options) : thread_{new Thread{std::move(options)}, DeleteInOwnProcess{}} {}

Context::Thread& Context::thread() const noexcept {
    if (thread_->generation != process_generation()) refuse_inherited("Context");
    return *thread_;
}

bool Context::post(std::function<void()> task) const {
    Thread& own = thread();
    if (own.waiting.fetch_add(1) >= own.post_limit) return --own.waiting, false;
    post_always([&own, task = std::move(task)] {
        --own.waiting;
        task();
    });
    return true;
}

void Context::post_always(std::function<void()> task) const {
    const bool posted = thread().loop.post(std::move(task));
    NETIO_CHECK(posted);
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
    return *thread().transport;
}

} // namespace netio::inline v0_3
