// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace netio {

// Of this library, as "MAJOR.MINOR.PATCH".
const char* version() noexcept;

} // namespace netio
