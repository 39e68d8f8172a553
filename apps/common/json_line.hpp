// SPDX-License-Identifier: Apache-2.0
#pragma once

// A JSON text on one line, without an end of line. Bytes that are not UTF-8, as a peer or a file
// name may have them, become U+FFFD; dump() alone would throw.

#include <string>

namespace apps {

template <typename Json>
std::string json_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace apps
