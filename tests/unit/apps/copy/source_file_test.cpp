// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/sender.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace apps::copy::source_file_test {
namespace {

namespace fs = std::filesystem;

class SourceFileTest : public testing::Test {
  protected:
    SourceFileTest() {
        fs::create_directories(folder);
        write("0123456789");
    }
    ~SourceFileTest() override { fs::remove_all(folder); }

    void write(const std::string& text) const { std::ofstream{path, std::ios::binary} << text; }
    // Like cp -p, rsync -a and a restored backup.
    void write_and_keep_the_date(const std::string& text) const {
        struct stat before {};
        ASSERT_EQ(::stat(path.c_str(), &before), 0);
        write(text);
        const std::array times{before.st_atim, before.st_mtim};
        ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
    }
    static Digest read_half(SourceFile& file) { return file.skip(5, {}); }
    static Digest read_rest_and_finish(SourceFile& file) {
        static_cast<void>(file.skip(5, {}));
        return file.finish({});
    }
    // The clock of a file system advances in steps.
    void wait_for_its_clock() const {
        struct stat before {};
        struct stat now {};
        ASSERT_EQ(::stat(path.c_str(), &before), 0);
        const std::string other = folder + "/clock";
        do {
            std::ofstream{other} << "x";
            ASSERT_EQ(::stat(other.c_str(), &now), 0);
        } while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
                 now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    }

    std::string folder = testing::TempDir() + "netio_source_" + std::to_string(::getpid());
    std::string path = folder + "/a";
};

TEST_F(SourceFileTest, ARenamedOrLinkedFileIsUnchanged) {
    SourceFile alone{path, ChecksumKind::sha256};
    static_cast<void>(read_half(alone));
    const Digest digest = read_rest_and_finish(alone);

    SourceFile file{path, ChecksumKind::sha256};
    static_cast<void>(read_half(file));
    wait_for_its_clock();
    fs::rename(path, path + ".old");
    fs::create_hard_link(path + ".old", path);
    EXPECT_EQ(read_rest_and_finish(file), digest);
}

TEST_F(SourceFileTest, OneThatWasRenamedAndThenWrittenToIsChanged) {
    SourceFile file{path, ChecksumKind::sha256};
    static_cast<void>(read_half(file));
    wait_for_its_clock();
    fs::rename(path, path + ".old");
    path += ".old";
    write_and_keep_the_date("0123x56789");
    EXPECT_THROW(static_cast<void>(read_rest_and_finish(file)), std::runtime_error);
}

} // namespace
} // namespace apps::copy::source_file_test
