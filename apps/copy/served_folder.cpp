// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/served_folder.hpp"

#include "apps/common/io.hpp"
#include "netio/base/control_characters.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace apps::copy {
namespace {

constexpr std::string_view partial_suffix = ".netio-part";
static_assert(component_limit_bytes + 1 + partial_suffix.size() == 255);

PathFlaw check_component(std::string_view component) {
    if (component.empty()) return PathFlaw::empty;
    if (component == "." || component == "..") return PathFlaw::upwards;
    if (component.size() > component_limit_bytes) return PathFlaw::too_long;
    if (component.ends_with(partial_suffix)) return PathFlaw::partial;
    return PathFlaw::none;
}

} // namespace

PathFlaw check_path(std::string_view path) {
    if (path.empty()) return PathFlaw::empty;
    if (path.front() == '/') return PathFlaw::absolute;
    if (path.size() > name_limit_bytes) return PathFlaw::too_long;
    if (netio::has_unprintable(path)) return PathFlaw::control_character;
    for (;;) {
        const std::size_t slash = path.find('/');
        const PathFlaw flaw = check_component(path.substr(0, slash));
        if (flaw != PathFlaw::none || slash == std::string_view::npos) return flaw;
        path.remove_prefix(slash + 1);
    }
}

std::string_view to_string(PathFlaw flaw) {
    switch (flaw) {
    case PathFlaw::none:
        return "is valid";
    case PathFlaw::empty:
        return "is empty or has an empty component";
    case PathFlaw::absolute:
        return "begins with '/'; names are relative to the served folder";
    case PathFlaw::upwards:
        return "has a component '.' or '..'";
    case PathFlaw::too_long:
        return "is too long; allowed: 1024 bytes, 243 in a component";
    case PathFlaw::control_character:
        return "has a control character, or an invisible one: zero-width, or one that changes the "
               "direction of writing";
    case PathFlaw::partial:
        return "ends in .netio-part, which is reserved for partial files";
    }
    return "is not allowed";
}

SplitPath split_path(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return {.folder = {}, .leaf = std::string{path}};
    return {.folder = std::string{path.substr(0, slash)},
            .leaf = std::string{path.substr(slash + 1)}};
}

std::string partial_name(std::string_view leaf) {
    return "." + std::string{leaf} + std::string{partial_suffix};
}

namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

int open_beneath(int root, const std::string& relative) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(folder_flags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    // The call returns EAGAIN if a rename happens at the same time.
    for (int tries = 0; tries < 100; ++tries) {
        const long fd = ::syscall(SYS_openat2, root, relative.c_str(), &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN) return static_cast<int>(fd);
    }
    return -1;
}

Descriptor open_step_by_step(int root, const std::string& relative) {
    Descriptor folder{::openat(root, ".", folder_flags)};
    for (std::size_t begin = 0; begin < relative.size() && folder.is_open();) {
        const std::size_t end = std::min(relative.find('/', begin), relative.size());
        const std::string component = relative.substr(begin, end - begin);
        if (component == "..") errno = EXDEV;
        folder = Descriptor{component == ".." ? -1
                                              : ::openat(folder.get(), component.c_str(),
                                                         folder_flags | O_NOFOLLOW)};
        begin = end + 1;
    }
    if (!folder.is_open()) throw_errno("cannot open the folder " + relative);
    return folder;
}

// `beyond` is the folder to name in the error if the path leads out of the root.
Descriptor open_in(int root, const std::string& relative, const std::string& beyond) {
    Descriptor folder{open_beneath(root, relative.empty() ? "." : relative)};
    // EPERM: a sandbox that does not allow the call.
    if (!folder.is_open() && (errno == ENOSYS || errno == EPERM)) {
        return open_step_by_step(root, relative);
    }
    if (!folder.is_open() && errno == EXDEV) {
        throw std::system_error{errno, std::generic_category(),
                                "the folder " + relative + " leads out of " + beyond};
    }
    if (!folder.is_open()) throw_errno("cannot open the folder " + relative);
    return folder;
}

} // namespace

ServedFolder::ServedFolder(const std::string& path) : root_{::open(path.c_str(), folder_flags)} {
    if (!root_.is_open()) throw_errno("cannot serve the folder " + path);
    if (::faccessat(root_.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
        throw_errno("cannot write to the folder " + path);
    }
    // A shared lock, because NFS requires a descriptor open for writing for an exclusive lock, and
    // a folder cannot be.
    if (::flock(root_.get(), LOCK_SH | LOCK_NB) == 0) {
        ::flock(root_.get(), LOCK_UN);
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
        limitation_ = no_locks_text(path, errno, "run only one server on this folder");
    }
}

Descriptor ServedFolder::open_folder(const std::string& relative, const std::string& within) const {
    if (within.empty() || within == ".") return open_in(root_.get(), relative, "the served folder");
    const Descriptor permitted = open_in(root_.get(), within, "the served folder");
    const std::string rest =
        relative.size() > within.size() ? relative.substr(within.size() + 1) : "";
    return open_in(permitted.get(), rest, "the folder " + within + ", which the key permits");
}

} // namespace apps::copy
