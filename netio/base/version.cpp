// SPDX-License-Identifier: Apache-2.0
#include "netio/base/version.hpp"

#define NETIO_TEXT_OF(number) #number
#define NETIO_TEXT(number) NETIO_TEXT_OF(number)

namespace netio::inline v0_3 {

const char* version() noexcept {
    return NETIO_TEXT(NETIO_VERSION_MAJOR) "." NETIO_TEXT(NETIO_VERSION_MINOR) "." NETIO_TEXT(
        NETIO_VERSION_PATCH);
}

} // namespace netio::inline v0_3
