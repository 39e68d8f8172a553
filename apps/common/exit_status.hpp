// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the program's exit status says (docs/operations.md, "Exit status").

#include <string_view>

namespace apps {

enum class ExitStatus : int {
    done = 0,        // what was asked for
    failed = 1,      // an error, which the log tells
    wrong_usage = 2, // the command line
    unreached = 3,   // the publisher was never there, or never accepted us
    nothing = 4,     // it was, and nothing came
    incomplete = 5,  // ended before what was asked for had come, or some of it is known to be lost
    unsound = 6,     // of what was verified or recorded: missing, too much, disorder, damage
};

constexpr std::string_view to_string(ExitStatus status) noexcept {
    switch (status) {
    case ExitStatus::done:
        return "done";
    case ExitStatus::failed:
        return "failed";
    case ExitStatus::wrong_usage:
        return "wrong usage";
    case ExitStatus::unreached:
        return "unreached";
    case ExitStatus::nothing:
        return "nothing";
    case ExitStatus::incomplete:
        return "incomplete";
    case ExitStatus::unsound:
        return "unsound";
    }
    return "?";
}

constexpr int to_integer(ExitStatus status) noexcept {
    return static_cast<int>(status);
}

} // namespace apps
