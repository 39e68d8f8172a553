// SPDX-License-Identifier: Apache-2.0

// The order in which a received file is made durable: its bytes, its name, and its entry in the
// folder.

#include "apps/copy/served_folder.hpp"
#include "apps/copy/target_file.hpp"
#include "tests/unit/apps/common/refused_calls.hpp"

#include <gmock/gmock.h>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace {

// The fsync() calls, and whether the file had its final name at each of them.
struct Synced {
    std::mutex mutex;
    std::string name; // file to look for; empty: record nothing
    std::vector<std::string> all;
};
Synced& synced() {
    static Synced one;
    return one;
}

} // namespace

// The linker prefers this function to that of the C library.
extern "C" int fsync(int fd) {
    static const auto of_the_library = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
    const std::lock_guard lock{synced().mutex};
    struct stat status {};
    ::fstat(fd, &status);
    if (const int refused = apps::test::refused_calls().fsync_of_folder;
        refused != 0 && S_ISDIR(status.st_mode)) {
        errno = refused;
        return -1;
    }
    if (!synced().name.empty()) {
        synced().all.push_back(std::string{S_ISDIR(status.st_mode) ? "folder" : "file"} +
                               (std::filesystem::exists(synced().name) ? " with the name" : ""));
    }
    return of_the_library(fd);
}

namespace apps::copy::durable_test {
namespace {

TEST(Durable, AFileIsWrittenBeforeItHasItsNameAndItsFolderAfterwards) {
    const std::string root = testing::TempDir() + "netio_durable_" + std::to_string(::getpid());
    std::filesystem::create_directories(root);
    {
        const ServedFolder folder{root};
        TargetFile file{{.name = "a", .size_bytes = 4, .mode = 0644}};
        ASSERT_TRUE(file.examine(folder, {}));
        file.start(0);
        constexpr std::string_view text = "text";
        file.write(std::as_bytes(std::span{text}));
        Checksum checksum{ChecksumKind::xxh3_128};
        checksum.add(std::as_bytes(std::span{text}));
        {
            const std::lock_guard lock{synced().mutex};
            synced().name = root + "/a";
        }
        file.finish(checksum.digest());
    }
    const std::lock_guard lock{synced().mutex};
    synced().name.clear();
    EXPECT_THAT(synced().all, testing::ElementsAre("file", "folder with the name"));
    std::filesystem::remove_all(root);
}

} // namespace
} // namespace apps::copy::durable_test
