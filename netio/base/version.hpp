// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace netio::inline v0_2 {

// Of this library, as "MAJOR.MINOR.PATCH".
const char* version() noexcept;

} // namespace netio::inline v0_2
