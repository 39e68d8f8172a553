// SPDX-License-Identifier: Apache-2.0
// Prints the round trip of a cache line between the first two processors that the program may use,
// in nanoseconds (0: there is only one). On a virtual machine it changes when the host moves a
// virtual processor to another cache or socket.

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr unsigned round_trips = 1000; // of one sample
constexpr std::size_t sample_count = 21;

std::vector<std::size_t> allowed_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    std::vector<std::size_t> processors;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
    for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &allowed)) processors.push_back(i);
    return processors;
}

void run_on(std::size_t processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
}

alignas(64) std::atomic<unsigned> line{0};

// Waits until the other thread has written `value`. Gives the processor up from time to time, for
// the case that both threads share one.
void wait_for(unsigned value) {
    for (unsigned turns = 0; line.load(std::memory_order_acquire) != value; ++turns)
        if (turns % 4096 == 4095) std::this_thread::yield();
}

} // namespace

int main() {
    const std::vector<std::size_t> processors = allowed_processors();
    if (processors.size() < 2) {
        std::puts("0");
        return 0;
    }
    constexpr unsigned last = 2 * round_trips * sample_count;
    std::thread answering{[&] {
        run_on(processors[1]);
        for (unsigned value = 1; value < last; value += 2) {
            wait_for(value);
            line.store(value + 1, std::memory_order_release);
        }
    }};
    run_on(processors[0]);
    std::array<double, sample_count> samples{};
    unsigned value = 0;
    for (double& sample : samples) {
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < round_trips; ++i, value += 2) {
            line.store(value + 1, std::memory_order_release);
            wait_for(value + 2);
        }
        const auto end = std::chrono::steady_clock::now();
        sample = std::chrono::duration<double, std::nano>(end - begin).count() / round_trips;
    }
    answering.join();
    std::nth_element(samples.begin(), samples.begin() + sample_count / 2, samples.end());
    std::printf("%.0f\n", samples[sample_count / 2]);
    return 0;
}
