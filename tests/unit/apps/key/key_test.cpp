// SPDX-License-Identifier: Apache-2.0

// netio key on file systems that lack locks, links or fsync.

#include "apps/program/commands.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/apps/common/refused_calls.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace apps::key_test {
namespace {

int make_key(const std::string& file, const std::string& name) {
    CLI::App program;
    const Command run = add_key(program);
    program.parse("key new " + file + " --name " + name + " --rights services=all");
    return run();
}

std::size_t keys_in(const std::string& path) {
    std::ifstream in{path};
    std::size_t keys = 0;
    for (std::string line; std::getline(in, line);)
        keys += line.find(" nk1-") == std::string::npos ? 0U : 1U;
    return keys;
}

TEST(KeyCommand, MakesKeysWhereLocksAreUnavailable) {
    const netio::test::TemporaryFolder folder;
    constexpr int dvs = 524; // kernel-internal ENOTSUPP, which some network file systems return
    for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EPERM, EBADF, dvs}) {
        const test::Refusal refusal{test::refused_calls().flock, error};
        const std::string path = folder.path() / std::to_string(error);
        EXPECT_EQ(make_key(path, "one"), 0) << error;
        EXPECT_EQ(make_key(path, "two"), 0) << error;
        EXPECT_EQ(keys_in(path), 2U) << error;
    }
}

TEST(KeyCommand, ReplacesNoFileWhereLinksAreUnavailable) {
    const netio::test::TemporaryFolder folder;
    for (const int error : {EPERM, EOPNOTSUPP, ENOSYS}) {
        const test::Refusal refusal{test::refused_calls().link, error};
        const std::string path = folder.path() / std::to_string(error);
        EXPECT_EQ(make_key(path, "one"), 0) << error;
        struct stat status {};
        EXPECT_EQ(::stat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777U, 0600U);
        const std::string client = path + ".client";
        std::ofstream{client} << "mine";
        CLI::App program;
        const Command run = add_key(program);
        program.parse("key new " + path + " --name two --rights services=all --client " + client);
        EXPECT_THROW(run(), std::system_error);
        std::ifstream in{client};
        std::string first_line;
        std::getline(in, first_line);
        EXPECT_EQ(first_line, "mine");
    }
}

} // namespace
} // namespace apps::key_test
