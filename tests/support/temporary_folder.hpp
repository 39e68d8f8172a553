// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder for one test, removed with its content; not by a forked child.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace netio::test {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string form = (std::filesystem::temp_directory_path() / "netio-XXXXXX").string();
        if (::mkdtemp(form.data()) == nullptr) throw std::runtime_error{"mkdtemp " + form};
        path_ = form;
    }
    ~TemporaryFolder() {
        if (::getpid() != process_) return;
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }

  private:
    const pid_t process_ = ::getpid();
    std::filesystem::path path_;
};

} // namespace netio::test
