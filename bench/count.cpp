// SPDX-License-Identifier: Apache-2.0

// Preloaded into a subject (LD_PRELOAD), counts what a message should not need: allocations and
// locks of all threads, while messages are in flight (bench_mark in bench/subject.hpp). The counts
// are printed with the subject's report. System calls are counted by strace (bench/run).

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
}

namespace {

std::atomic<bool> counting{false};
std::atomic<unsigned long> allocations{0};
std::atomic<unsigned long> locks{0};

void count(std::atomic<unsigned long>& what) {
    if (counting.load(std::memory_order_relaxed)) what.fetch_add(1, std::memory_order_relaxed);
}

} // namespace

extern "C" {

void* malloc(std::size_t bytes) {
    count(allocations);
    return __libc_malloc(bytes);
}

void* calloc(std::size_t number, std::size_t bytes) {
    count(allocations);
    return __libc_calloc(number, bytes);
}

void* realloc(void* memory, std::size_t bytes) {
    count(allocations);
    return __libc_realloc(memory, bytes);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
    using Lock = int (*)(pthread_mutex_t*);
    static const Lock lock = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    count(locks);
    return lock(mutex);
}

// Called by the subject when the first message is sent or received, and after the last one.
void bench_mark(int begin) {
    counting.store(begin != 0);
    if (begin == 0) {
        std::printf("{\"role\": \"count\", \"allocations\": %lu, \"locks\": %lu}\n",
                    allocations.load(), locks.load());
    }
}

} // extern "C"
