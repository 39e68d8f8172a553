// SPDX-License-Identifier: Apache-2.0
#include "netio/version.hpp"

namespace netio {

const char* version() noexcept {
    return NETIO_VERSION;
}

} // namespace netio
