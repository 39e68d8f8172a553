// SPDX-License-Identifier: Apache-2.0
#include "tests/world/file_oracle.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace netio::world {

namespace fs = std::filesystem;

FileOracle::~FileOracle() {
    std::error_code ignored;
    if (!root_.empty()) fs::remove_all(root_, ignored);
}

fs::path FileOracle::folder_of(std::uint32_t process) {
    if (root_.empty()) {
        // In memory where possible: there are many worlds, and no real disk is under test.
        const fs::path memory = "/dev/shm";
        std::string made =
            ((::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path()) /
             "netio_world_XXXXXX")
                .string();
        if (::mkdtemp(made.data()) == nullptr) throw std::runtime_error{"no folder for files"};
        root_ = made;
    }
    fs::path folder = root_ / std::to_string(process);
    fs::create_directories(folder);
    return folder;
}

std::string FileOracle::content(const State& state) {
    std::string bytes(static_cast<std::size_t>(state.bytes), '\0');
    std::uint64_t word = state.salt * 0x9e3779b97f4a7c15ULL;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (at % 8 == 0) word = word * 6364136223846793005ULL + 1442695040888963407ULL;
        bytes[at] = static_cast<char>(word >> (8 * (at % 8)));
    }
    return bytes;
}

// Replaces the file atomically: a process that has it open keeps the old content.
void FileOracle::write(std::uint32_t process, const std::string& name, std::uint64_t bytes) {
    const State state{.bytes = bytes, .salt = next_salt_++};
    states_[name].push_back(state);
    const fs::path made = folder_of(process) / ".new";
    std::ofstream{made, std::ios::binary} << content(state);
    fs::rename(made, folder_of(process) / name);
}

bool FileOracle::is_whole(const fs::path& file) const {
    const auto known = states_.find(file.filename().string());
    if (known == states_.end()) return false;
    std::ifstream stream{file, std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{stream}, {}};
    return std::ranges::any_of(known->second, [&](const State& state) {
        return state.bytes == bytes.size() && content(state) == bytes;
    });
}

void FileOracle::said_copied(std::uint32_t server, const std::string& name) {
    if (is_whole(folder_of(server) / name)) return;
    oracle_.violate(RuleId::copied_is_there,
                    name + " is said to be at process " + std::to_string(server) + ", and is not");
}

void FileOracle::check_all(std::uint32_t server) {
    for (const fs::directory_entry& entry : fs::directory_iterator{folder_of(server)}) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".netio-part") || is_whole(entry.path())) continue;
        oracle_.violate(RuleId::file_is_whole, "process " + std::to_string(server) + " has " +
                                                   name + ", which nobody has ever had so");
    }
}

} // namespace netio::world
