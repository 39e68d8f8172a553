// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/export.hpp"

#include <stdexcept>

namespace netio::inline v0_3 {

// A recording cannot be read or written. The text names the file, the offset if there is one, the
// problem and the remedy.
class NETIO_EXPORT RecordingError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

} // namespace netio::inline v0_3
