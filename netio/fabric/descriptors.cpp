// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/descriptors.hpp"

#include "netio/base/status.hpp"
#include "netio/loop/process.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace netio::fabric {
namespace {

// Descriptors that new peers may not use.
constexpr rlim_t descriptor_reserve = 32;

struct DirectoryCloser {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, DirectoryCloser>;

// The directory of open descriptors. Kept open, because it is needed most when no descriptor is
// free; shared by all threads. Not used by a child process: it lists the descriptors of the parent,
// and shares its position with the parent.
struct OpenDescriptors {
    std::mutex mutex;
    Directory directory{::opendir("/proc/self/fd")};
};

} // namespace

int lowest_free_descriptor() noexcept {
    const int fd = ::eventfd(0, EFD_CLOEXEC);
    if (fd >= 0) ::close(fd);
    return fd;
}

bool descriptors_are_short() noexcept {
    const int lowest_free = lowest_free_descriptor();
    if (lowest_free < 0) return true;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    return static_cast<rlim_t>(lowest_free) + descriptor_reserve > limit.rlim_cur;
}

void for_each_descriptor(const std::function<void(int fd)>& visit) {
    static PerProcess<OpenDescriptors> of_the_process;
    OpenDescriptors& open = *of_the_process;
    const std::lock_guard lock{open.mutex};
    if (!open.directory) {
        throw FabricError{{ENOENT, std::system_category()},
                          "cannot list this process's descriptors (is /proc mounted?)"};
    }
    ::rewinddir(open.directory.get());
    while (const dirent* entry = ::readdir(open.directory.get())) {
        const std::string_view name{entry->d_name};
        int fd = -1;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
        if (error == std::errc{}) visit(fd);
    }
}

CloseOnExec::CloseOnExec() {
    for_each_descriptor([this](int fd) { before_.push_back(fd); });
    std::ranges::sort(before_);
}

CloseOnExec::~CloseOnExec() {
    for_each_descriptor([this](int fd) {
        if (!std::ranges::binary_search(before_, fd)) set(fd);
    });
}

FewCloseOnExec::FewCloseOnExec() noexcept {
    next_.fill(-1);
    next_[0] = ::eventfd(0, EFD_CLOEXEC);
    for (std::size_t i = 1; i < next_.size() && next_[i - 1] >= 0; ++i)
        next_[i] = ::fcntl(next_[0], F_DUPFD_CLOEXEC, 0);
    for (const int fd : next_)
        if (fd >= 0) ::close(fd);
}

FewCloseOnExec::~FewCloseOnExec() {
    for (const int fd : next_)
        if (fd >= 0) CloseOnExec::set(fd);
}

void CloseOnExec::set(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0) ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

} // namespace netio::fabric
