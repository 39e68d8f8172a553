// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a world, in a folder removed with this object: what each process has to copy, in
// every state that it ever had, and what has arrived in the servers' folders.

#include "tests/world/oracle.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace netio::world {

class FileOracle {
  public:
    explicit FileOracle(Oracle& oracle) : oracle_{oracle} {}
    ~FileOracle();
    FileOracle(const FileOracle&) = delete;
    FileOracle& operator=(const FileOracle&) = delete;

    // The folder of a process; created on first use.
    std::filesystem::path folder_of(std::uint32_t process);
    // From now on the file has this size and unique content.
    void write(std::uint32_t process, const std::string& name, std::uint64_t bytes);
    // The copier was notified that the file is there.
    void said_copied(std::uint32_t server, const std::string& name);
    // Each file on the server must be one of the states of that name.
    void check_all(std::uint32_t server);

  private:
    struct State {
        std::uint64_t bytes;
        std::uint64_t salt;
    };
    static std::string content(const State& state);
    bool is_whole(const std::filesystem::path& file) const;

    Oracle& oracle_;
    std::filesystem::path root_; // empty: no files yet
    std::uint64_t next_salt_ = 1;
    std::map<std::string, std::vector<State>> states_; // by the file's name
};

} // namespace netio::world
