// SPDX-License-Identifier: Apache-2.0
#pragma once

// This program once more, as a child, one of whose outputs is read. Blocks; for studies, not for
// data.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace apps {

class ChildProcess {
  public:
    enum class Listen { standard_output, standard_error };

    // The program of /proc/self/exe for an empty name, else one of the path. Throws
    // std::system_error.
    ChildProcess(std::string_view name, const std::vector<std::string>& arguments, Listen listen);
    ~ChildProcess(); // kills it if it has not been waited for
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    // The next line without its end; nothing at the end of the output.
    std::optional<std::string> read_line();
    std::string read_all();
    // The exit status, or 128 and the signal that killed it.
    int wait();

  private:
    bool fill();

    pid_t process_ = -1;
    int output_ = -1;
    std::string buffer_;
};

} // namespace apps
