// SPDX-License-Identifier: Apache-2.0
#include "apps/common/standard_output.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace apps {

void print_report(std::string_view text) {
    // A terminal that is gone is told by the stream's state alone: lines leave within fwrite.
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        throw std::system_error{errno, std::generic_category(),
                                "cannot write the report to standard output"};
    }
}

} // namespace apps
