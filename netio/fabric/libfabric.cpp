// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/libfabric.hpp"

#include "netio/base/check.hpp"
#include "netio/base/descriptor_error.hpp"
#include "netio/base/never_destroyed.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/process.hpp"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <rdma/fi_errno.h>
#include <string>

namespace netio::fabric {

// --- the library -----------------------------------------------------------------------------

namespace {

[[noreturn]] void fail(const std::string& problem, const char* remedy) {
    const char* const known = ::dlerror();
    const std::string reason = known == nullptr ? "no reason is given" : known;
    const std::string no_descriptors = std::generic_category().message(EMFILE);
    if (reason.find(no_descriptors) != std::string::npos) // the linker gives no error number
        throw FabricError{{EMFILE, std::system_category()},
                          with_descriptor_remedy(problem, EMFILE)};
    throw FabricError{{ELIBACC, std::system_category()}, problem + ": " + reason + "; " + remedy};
}

// When a device is opened, libfabric's registration cache overwrites the first instructions of the
// C library's munmap() and similar functions (prov/util/src/util_mem_hooks.c). A thread that
// executes one of them at that moment continues in the middle of the new instructions. This library
// registers memory once, so it does not need the cache. libfabric reads the variable at its first
// call (fi_mr(3)). A monitor that the user has chosen is kept.
void keep_c_library_as_it_is() {
    ::setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
}

void* open_library() {
    const ForkBlocked no_fork;
    const AllSignalsBlocked blocked;
    const KeptSignalHandlers kept; // libraries that it loads install their own handlers
    void* const opened = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (opened == nullptr) {
        fail("cannot load libfabric", "install libfabric " NETIO_LIBFABRIC_MINIMUM
                                      " or later (package libfabric1), or name its folder in "
                                      "LD_LIBRARY_PATH");
    }
    return opened;
}

// The layout of a function's parameters depends on the version of the symbol, so the newest version
// is not suitable: it must be the one that a linker would have chosen with these headers.
template <typename Function>
void find(void* library, const char* name, const char* version, Function& function) {
    void* const found = ::dlvsym(library, name, version);
    if (found == nullptr) {
        fail("libfabric does not suit",
             "this program was built with a newer libfabric than the one that it finds here");
    }
    function = reinterpret_cast<Function>(found);
}

Library load() {
    keep_c_library_as_it_is();
    void* const opened = open_library();
    Library found{};
    find(opened, "fi_dupinfo", NETIO_VERSION_OF_FI_DUPINFO, found.dupinfo);
    find(opened, "fi_fabric", NETIO_VERSION_OF_FI_FABRIC, found.fabric);
    find(opened, "fi_freeinfo", NETIO_VERSION_OF_FI_FREEINFO, found.freeinfo);
    find(opened, "fi_getinfo", NETIO_VERSION_OF_FI_GETINFO, found.getinfo);
    find(opened, "fi_strerror", NETIO_VERSION_OF_FI_STRERROR, found.strerror);
    find(opened, "fi_version", NETIO_VERSION_OF_FI_VERSION, found.version);
    return found;
}

} // namespace

const Library& library() {
    static const Library loaded = load();
    return loaded;
}

// --- handles and errors ----------------------------------------------------------------------

namespace {

class Category final : public std::error_category {
  public:
    const char* name() const noexcept override { return "fabric"; }
    std::string message(int code) const override { return library().strerror(code); }
    // Below its own range, libfabric uses the numbers of errno (fi_errno(3)).
    std::error_condition default_error_condition(int code) const noexcept override {
        if (code < FI_ERRNO_OFFSET) return {code, std::generic_category()};
        return {code, *this};
    }
};

} // namespace

void close_handle(::fid& handle) noexcept {
    const int result = ::fi_close(&handle);
    NETIO_CHECK_MSG(result == 0, library().strerror(-result));
}

const std::error_category& fabric_category() noexcept {
    static NeverDestroyed<Category> category;
    return *category;
}

std::string fabric_error_text(long code) {
    return library().strerror(static_cast<int>(std::labs(code)));
}

void require(long code, const std::string& what) {
    if (code >= 0) return;
    const int error = static_cast<int>(-code); // below libfabric's own range, an errno
    throw FabricError{{error, fabric_category()}, with_descriptor_remedy(what, error)};
}

void require_memory(long code, const std::string& what, bool locks) {
    const bool short_of_it = code == -FI_ENOMEM || code == -FI_EPERM || code == -FI_EAGAIN;
    require(code, locks && short_of_it
                      ? what + "; the limit of locked memory may be too low: ulimit -l unlimited, "
                               "or LimitMEMLOCK=infinity in the systemd unit"
                      : what);
}

} // namespace netio::fabric
