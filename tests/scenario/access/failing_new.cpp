// SPDX-License-Identifier: Apache-2.0
#include "tests/scenario/access/failing_new.hpp"

#include <cstdlib>
#include <new>

namespace netio::test {
namespace {

thread_local std::size_t fails_at = 0;

} // namespace

void fail_new_at(std::size_t call) noexcept {
    fails_at = call;
}

static bool fails_now() noexcept {
    return fails_at > 0 && --fails_at == 0;
}

} // namespace netio::test

void* operator new(std::size_t bytes) {
    void* const memory = netio::test::fails_now() ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
    if (memory == nullptr) throw std::bad_alloc{};
    return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return netio::test::fails_now() ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
