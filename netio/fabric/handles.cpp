// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/handles.hpp"

#include "netio/base/check.hpp"
#include "netio/base/never_destroyed.hpp"

#include <cstdlib>
#include <rdma/fi_errno.h>

namespace netio::fabric {
namespace {

class Category final : public std::error_category {
  public:
    const char* name() const noexcept override { return "fabric"; }
    std::string message(int code) const override { return library().strerror(code); }
    // Below its own range libfabric uses the numbers of errno (fi_errno(3)).
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
    if (code < 0) throw FabricError{{static_cast<int>(-code), fabric_category()}, what};
}

void require_memory(long code, const std::string& what, bool locks) {
    const bool short_of_it = code == -FI_ENOMEM || code == -FI_EPERM || code == -FI_EAGAIN;
    require(code, locks && short_of_it
                      ? what + "; the limit of locked memory may be too low: ulimit -l unlimited, "
                               "or LimitMEMLOCK=infinity in the systemd unit"
                      : what);
}

} // namespace netio::fabric
