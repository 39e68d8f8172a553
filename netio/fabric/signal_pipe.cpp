// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/signal_pipe.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <sys/epoll.h>

namespace netio::fabric {
namespace {

struct FileCloser {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

// The only descriptor that an epoll waits for; -1: it waits for none, for several, or is none.
int only_target_of(int epoll) noexcept {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", epoll);
    const std::unique_ptr<std::FILE, FileCloser> file{std::fopen(path.data(), "re")};
    if (!file) return -1;
    int found = -1;
    std::array<char, 256> line{};
    while (std::fgets(line.data(), static_cast<int>(line.size()), file.get()) != nullptr) {
        int target = -1;
        if (std::sscanf(line.data(), "tfd: %d", &target) != 1) continue;
        if (found >= 0) return -1;
        found = target;
    }
    return found;
}

} // namespace

bool take_out_signal_pipe(int wait_fd) noexcept {
    const int pipe = only_target_of(wait_fd);
    return pipe >= 0 && ::epoll_ctl(wait_fd, EPOLL_CTL_DEL, pipe, nullptr) == 0;
}

} // namespace netio::fabric
