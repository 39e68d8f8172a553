// SPDX-License-Identifier: Apache-2.0
#include "netio/base/version.hpp"

namespace netio::inline v0_2 {

const char* version() noexcept {
    return NETIO_VERSION;
}

} // namespace netio::inline v0_2
