// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the program's log goes: standard error, the journal behind it, or a file.

#include "apps/program/background_log.hpp"

#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace apps {

struct LogArguments {
    std::string level = "info";
    std::string file; // empty: standard error
};
// --log-level and --log-file.
void add_log(CLI::App& command, LogArguments& arguments);

class ProgramLog {
  public:
    // Before other threads begin. With a file, SIGHUP opens the file again and does not end the
    // program: the signal is blocked in this thread, and end_signals() leaves it out. Throws
    // std::system_error: the file cannot be written.
    explicit ProgramLog(const LogArguments& arguments);
    // Waits for a short time only for a reader who does not read. Says on standard error how many
    // lines a file lacks.
    ~ProgramLog();
    ProgramLog(const ProgramLog&) = delete;
    ProgramLog& operator=(const ProgramLog&) = delete;

  private:
    std::string file_;
    std::shared_ptr<BackgroundLog> log_;
};

} // namespace apps
