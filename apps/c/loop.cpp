// SPDX-License-Identifier: Apache-2.0
#include "apps/c/loop.hpp"

#include "apps/c/call.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using netiodaq::done;
using netiodaq::guarded;
using netiodaq::on_loop;
using netiodaq::required;

namespace {

netio::EventLoop::Options observed(netio::EventLoop::Options options, netio::Observer& log) {
    options.observer = &log;
    return options;
}

} // namespace

netiodaq_loop::netiodaq_loop(netio::Context::Options options)
    : log{netio::make_log_observer()}, loop{observed(options.loop, *log)},
      transport{netio::open_fabric(loop, std::move(options.fabric))} {}

void netiodaq_loop::throw_wrong_thread() {
    throw netiodaq::Failure{NETIODAQ_WRONG_THREAD,
                            "another thread runs the loop; it may call netiodaq_loop_post, "
                            "netiodaq_loop_stop and netiodaq_signal_fire only"};
}

namespace netiodaq {

Slices::Slices(const netiodaq_loop& loop, const netiodaq_slice* slices, std::uint64_t count)
    : count_{static_cast<std::size_t>(count)} {
    if (are_too_many()) return;
    if (count > 0) required(slices, "slices");
    for (std::size_t i = 0; i < count_; ++i) {
        const netiodaq_slice& slice = slices[i];
        netiodaq_buffer& of = required(slice.buffer, "the buffer of a slice");
        if (&of.loop != &loop)
            throw Failure{NETIODAQ_INVALID_ARGUMENT, "the buffer of a slice is of another loop"};
        const std::size_t limit = of.buffer.size();
        if (slice.offset_bytes > limit || slice.size_bytes > limit - slice.offset_bytes) {
            throw Failure{NETIODAQ_INVALID_ARGUMENT,
                          "a slice of " + std::to_string(slice.size_bytes) + " bytes at " +
                              std::to_string(slice.offset_bytes) + " is not within its buffer of " +
                              std::to_string(limit) + " bytes"};
        }
        slices_[i] = of.buffer.slice(slice.offset_bytes, slice.size_bytes);
    }
}

std::shared_ptr<netio::ServerKeys>
keys_of(netiodaq_loop& loop, const std::optional<netio::ServerKeys::Options>& options) {
    return options ? std::make_shared<netio::ServerKeys>(loop.loop, *options) : nullptr;
}

} // namespace netiodaq

// --- loop ------------------------------------------------------------------------------------

namespace {

// This thread runs the loop.
class Running {
  public:
    explicit Running(netiodaq_loop& loop) : loop_{loop} {
        std::thread::id none{};
        if (loop_.runner.compare_exchange_strong(none, std::this_thread::get_id())) return;
        if (none != std::this_thread::get_id()) netiodaq_loop::throw_wrong_thread();
        throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT,
                                "the loop is running already: this is a call from a callback"};
    }
    ~Running() { loop_.runner.store({}); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

  private:
    netiodaq_loop& loop_;
};

// The largest value of the clock means that there is no limit.
netio::TimePoint time_after(std::int64_t timeout_ms) {
    const netio::TimePoint now = netio::Clock::now();
    const auto left = std::chrono::floor<std::chrono::milliseconds>(netio::TimePoint::max() - now);
    return timeout_ms < 0 || timeout_ms >= left.count()
               ? netio::TimePoint::max()
               : now + std::chrono::milliseconds{timeout_ms};
}

} // namespace

netiodaq_result netiodaq_loop_new(const netiodaq_options* options, netiodaq_loop** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_loop{netiodaq::settings_of<netiodaq::LoopSettings>(options).options};
    });
}

netiodaq_result netiodaq_loop_run(netiodaq_loop* loop) {
    return done([&] {
        const Running running{required(loop, "loop")};
        loop->loop.run();
    });
}

netiodaq_result netiodaq_loop_run_once(netiodaq_loop* loop, std::int64_t timeout_ms) {
    return done([&] {
        const Running running{required(loop, "loop")};
        loop->loop.run_once(timeout_ms == 0 ? netio::TimePoint::min() : time_after(timeout_ms));
    });
}

netiodaq_result netiodaq_loop_stop(netiodaq_loop* loop) {
    return done([&] { required(loop, "loop").loop.stop(); });
}

netiodaq_result netiodaq_loop_post(netiodaq_loop* loop, netiodaq_task task, void* user) {
    return guarded([&]() -> netiodaq_result {
        netio::EventLoop& to = required(loop, "loop").loop;
        required(task, "task");
        return to.post([task, user] { task(user); }) ? netiodaq::ok
                                                     : netiodaq::failed(NETIODAQ_AGAIN);
    });
}

std::int32_t netiodaq_loop_fd(netiodaq_loop* loop) {
    std::int32_t descriptor = -1;
    static_cast<void>(done([&] { descriptor = on_loop(loop).loop.pollable_fd(); }));
    return descriptor;
}

netiodaq_result netiodaq_loop_dispatch(netiodaq_loop* loop) {
    return done([&] {
        const Running running{required(loop, "loop")};
        loop->loop.dispatch();
    });
}

void netiodaq_loop_free(netiodaq_loop* loop) {
    delete loop;
}

// --- timers ----------------------------------------------------------------------------------

struct netiodaq_timer {
    netiodaq_timer(netiodaq_loop& its, netiodaq_timer_function its_function, void* its_user)
        : loop{its}, function{its_function}, user{its_user}, timer{its.loop, [this] {
                                                                       function(this, user);
                                                                   }} {}
    netiodaq_loop& loop;
    netiodaq_timer_function function;
    void* user;
    netio::Timer timer;
};

namespace {

template <typename Unit>
netiodaq_result start_every(netiodaq_timer* timer, std::uint64_t period,
                            const char* call = __builtin_FUNCTION()) {
    return done(
        [&] {
            constexpr auto longest = std::chrono::duration_cast<Unit>(std::chrono::hours{24 * 365});
            netio::Timer& of = on_loop(timer, "timer").timer;
            if (period == 0 || period > static_cast<std::uint64_t>(longest.count())) {
                throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT,
                                        "the period is " + std::to_string(period) +
                                            "; it must be from 1 to a year"};
            }
            of.start_every(Unit{static_cast<std::int64_t>(period)});
        },
        call);
}

} // namespace

netiodaq_result netiodaq_timer_new(netiodaq_loop* loop, netiodaq_timer_function function,
                                   void* user, netiodaq_timer** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_timer{on_loop(loop), &required(function, "function"), user};
    });
}

netiodaq_result netiodaq_timer_start_s(netiodaq_timer* timer, std::uint64_t period_s) {
    return start_every<std::chrono::seconds>(timer, period_s);
}

netiodaq_result netiodaq_timer_start_ms(netiodaq_timer* timer, std::uint64_t period_ms) {
    return start_every<std::chrono::milliseconds>(timer, period_ms);
}

netiodaq_result netiodaq_timer_start_us(netiodaq_timer* timer, std::uint64_t period_us) {
    return start_every<std::chrono::microseconds>(timer, period_us);
}

netiodaq_result netiodaq_timer_start_once_us(netiodaq_timer* timer, std::uint64_t delay_us) {
    return done([&] {
        constexpr std::uint64_t longest = std::numeric_limits<std::int64_t>::max();
        const auto delay = static_cast<std::int64_t>(std::min(delay_us, longest));
        on_loop(timer, "timer").timer.start(std::chrono::microseconds{delay});
    });
}

netiodaq_result netiodaq_timer_stop(netiodaq_timer* timer) {
    return done([&] { on_loop(timer, "timer").timer.cancel(); });
}

void netiodaq_timer_free(netiodaq_timer* timer) {
    delete timer;
}

// --- signals and watches ---------------------------------------------------------------------

struct netiodaq_signal {
    // Posted tasks may run after the signal is freed.
    struct State {
        netiodaq_signal* signal; // null: freed; for the loop's thread
        std::atomic<bool> fired{false};
    };
    netiodaq_loop& loop;
    netiodaq_signal_function function;
    void* user;
    std::shared_ptr<State> state{};
};

netiodaq_result netiodaq_signal_new(netiodaq_loop* loop, netiodaq_signal_function function,
                                    void* user, netiodaq_signal** out) {
    return netiodaq::new_object(out, [&] {
        auto signal = std::unique_ptr<netiodaq_signal>{
            new netiodaq_signal{on_loop(loop), &required(function, "function"), user}};
        signal->state = std::make_shared<netiodaq_signal::State>();
        signal->state->signal = signal.get();
        return signal.release();
    });
}

netiodaq_result netiodaq_signal_fire(netiodaq_signal* signal) {
    return done([&] {
        const auto state = required(signal, "signal").state;
        if (state->fired.exchange(true)) return;
        signal->loop.loop.post_always([state] {
            state->fired = false; // before the call: what is fired now needs another one
            if (netiodaq_signal* const its = state->signal; its != nullptr)
                its->function(its, its->user);
        });
    });
}

void netiodaq_signal_free(netiodaq_signal* signal) {
    if (signal == nullptr) return;
    signal->loop.loop.check_caller("netiodaq_signal", "netiodaq_signal_free");
    signal->state->signal = nullptr;
    delete signal;
}

struct netiodaq_watch {
    netiodaq_loop& loop;
    netiodaq_watch_function function;
    void* user;
    std::variant<std::monostate, std::unique_ptr<netio::SignalWatch>,
                 std::unique_ptr<netio::DescriptorWatch>>
        watch{};
};

netiodaq_result netiodaq_watch_new_os_signals(netiodaq_loop* loop, const std::int32_t* numbers,
                                              std::uint64_t count, netiodaq_watch_function function,
                                              void* user, netiodaq_watch** out) {
    return netiodaq::new_object(out, [&] {
        auto watch = std::unique_ptr<netiodaq_watch>{
            new netiodaq_watch{on_loop(loop), &required(function, "function"), user}};
        const std::int32_t* const first = &required(numbers, "numbers");
        if (count == 0 || count > 64)
            throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT, "count must be from 1 to 64"};
        watch->watch = std::make_unique<netio::SignalWatch>(
            loop->loop, std::vector<int>(first, first + count),
            [its = watch.get()](int number) { its->function(its, number, its->user); });
        return watch.release();
    });
}

netiodaq_result netiodaq_watch_new_descriptor(netiodaq_loop* loop, std::int32_t descriptor,
                                              std::int32_t writable,
                                              netiodaq_watch_function function, void* user,
                                              netiodaq_watch** out) {
    return netiodaq::new_object(out, [&] {
        auto watch = std::unique_ptr<netiodaq_watch>{
            new netiodaq_watch{on_loop(loop), &required(function, "function"), user}};
        using Interest = netio::DescriptorWatch::Interest;
        watch->watch = std::make_unique<netio::DescriptorWatch>(
            loop->loop, descriptor, writable != 0 ? Interest::writable : Interest::readable,
            [its = watch.get(), descriptor] { its->function(its, descriptor, its->user); });
        return watch.release();
    });
}

void netiodaq_watch_free(netiodaq_watch* watch) {
    delete watch;
}

// --- buffers ---------------------------------------------------------------------------------

netiodaq_result netiodaq_buffer_new(netiodaq_loop* loop, std::uint64_t size_bytes,
                                    netiodaq_buffer** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_buffer{on_loop(loop), netio::RegisteredBuffer{size_bytes}};
    });
}

netiodaq_result netiodaq_buffer_new_of_memory(netiodaq_loop* loop, void* memory,
                                              std::uint64_t size_bytes, netiodaq_buffer** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_buffer{
            on_loop(loop), netio::RegisteredBuffer{netiodaq::memory_of(memory, size_bytes)}};
    });
}

void* netiodaq_buffer_data(netiodaq_buffer* buffer) {
    return buffer != nullptr ? buffer->buffer.data() : nullptr;
}

std::uint64_t netiodaq_buffer_size_bytes(const netiodaq_buffer* buffer) {
    return buffer != nullptr ? buffer->buffer.size() : 0;
}

void netiodaq_buffer_free(netiodaq_buffer* buffer) {
    delete buffer;
}
