// SPDX-License-Identifier: Apache-2.0
#include "apps/common/standard_output.hpp"

#include "apps/common/background_writer.hpp"
#include "apps/common/printable.hpp"

#include <spdlog/spdlog.h>

#include <stdexcept>
#include <string>

namespace apps {

void print_report(std::string_view text, int descriptor) {
    constexpr std::string_view failure = "cannot write the report to standard output";
    spdlog::default_logger_raw()->flush();
    BackgroundWriter writer{DescriptorOutput{descriptor, failure}.write()};
    if (is_printable(text, Lines::several)) {
        writer.put(text);
    } else {
        writer.put(printable(text, std::string::npos, Lines::several));
    }
    if (!writer.wait())
        throw std::runtime_error{std::string{failure} +
                                 ": its reader takes nothing, and a signal has ended the wait"};
}

} // namespace apps
