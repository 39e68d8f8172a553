// SPDX-License-Identifier: Apache-2.0
#include "apps/common/printable.hpp"

#include "netio/base/unseen.hpp"

#include <algorithm>

namespace apps {

std::string printable(std::string_view text, std::size_t limit_bytes) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = std::max<std::size_t>(1, netio::utf8_length(text));
        if (out.size() + length > limit_bytes) break;
        const std::string_view sequence = text.substr(0, length);
        const bool shown = netio::utf8_length(text) > 0 && !netio::is_unseen(sequence);
        out += shown ? sequence : std::string_view{"?"};
        text.remove_prefix(length);
    }
    return out;
}

} // namespace apps
