// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/exit_status.hpp"

#include <optional>

namespace CLI {
class App;
}

namespace apps {

// Reads the command line. Nothing: a sub-command is to be run. Else the program ends with this
// status: the help or the version was shown, or one line has said which word is wrong, and which
// may have been meant.
std::optional<ExitStatus> parse_command_line(CLI::App& program, int argc, char** argv);

} // namespace apps
