// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/apps/common/refused_calls.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace apps::test {

RefusedCalls& refused_calls() {
    static RefusedCalls calls;
    return calls;
}

namespace {

template <typename Function>
Function of_the_library(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool refuse(const std::atomic<int>& call) {
    errno = call;
    return errno != 0;
}

} // namespace
} // namespace apps::test

// The linker prefers these functions to those of the C library.
extern "C" {

int flock(int fd, int operation) noexcept {
    using namespace apps::test;
    static const auto real = of_the_library<int (*)(int, int)>("flock");
    return refuse(refused_calls().flock) ? -1 : real(fd, operation);
}

int fchmod(int fd, mode_t mode) noexcept {
    using namespace apps::test;
    static const auto real = of_the_library<int (*)(int, mode_t)>("fchmod");
    return refuse(refused_calls().fchmod) ? -1 : real(fd, mode);
}

int futimens(int fd, const timespec times[2]) noexcept {
    using namespace apps::test;
    static const auto real = of_the_library<int (*)(int, const timespec*)>("futimens");
    return refuse(refused_calls().futimens) ? -1 : real(fd, times);
}

int link(const char* from, const char* to) noexcept {
    using namespace apps::test;
    static const auto real = of_the_library<int (*)(const char*, const char*)>("link");
    return refuse(refused_calls().link) ? -1 : real(from, to);
}

off_t lseek(int fd, off_t offset, int whence) noexcept {
    using namespace apps::test;
    static const auto real = of_the_library<off_t (*)(int, off_t, int)>("lseek");
    const bool sparse = whence == SEEK_DATA || whence == SEEK_HOLE;
    return sparse && refuse(refused_calls().seek_data) ? -1 : real(fd, offset, whence);
}
}
