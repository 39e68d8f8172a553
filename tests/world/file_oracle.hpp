// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a world, in a folder that goes with it: what each process has to copy, with every
// state that it was ever in, and what has come to the servers' folders.

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

    // Where a process keeps its own; made when it is first asked for.
    std::filesystem::path folder_of(std::uint32_t process);
    // The file has this size and bytes of its own from now on.
    void write(std::uint32_t process, const std::string& name, std::uint64_t bytes);
    // Somebody was told that the file is there.
    void said_copied(std::uint32_t server, const std::string& name);
    // Whatever has a name there is one of the states of that file.
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
