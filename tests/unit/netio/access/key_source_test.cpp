// SPDX-License-Identifier: Apache-2.0

// Key files on a real disk.

#include "netio/access/key_source.hpp"

#include "netio/base/check.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace netio::access::key_source_test {
namespace {

// A separate folder in which no file grows beyond 4 MiB, so that an endless writer fails.
class KeyFileOnDisk : public testing::Test {
  protected:
    KeyFileOnDisk() {
        std::string name = testing::TempDir() + "netio-key-XXXXXX";
        NETIO_CHECK(::mkdtemp(name.data()) != nullptr);
        folder_ = name;
        NETIO_CHECK(::getrlimit(RLIMIT_FSIZE, &limit_before_) == 0);
        limit_files_to(4U << 20);
        handler_before_ = std::signal(SIGXFSZ, SIG_IGN);
    }
    ~KeyFileOnDisk() override {
        limit_files_to(limit_before_.rlim_cur);
        std::signal(SIGXFSZ, handler_before_);
        std::filesystem::remove_all(folder_);
    }
    KeyFileOnDisk(const KeyFileOnDisk&) = delete;
    KeyFileOnDisk& operator=(const KeyFileOnDisk&) = delete;

    void limit_files_to(rlim_t bytes) const {
        const rlimit limit{bytes, limit_before_.rlim_max};
        NETIO_CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    std::string path(const std::string& name = "site.keys") const { return folder_ / name; }
    std::size_t file_count() const {
        const std::filesystem::directory_iterator files{folder_};
        return static_cast<std::size_t>(std::distance(begin(files), end(files)));
    }

    SystemKeySource source_;

  private:
    std::filesystem::path folder_;
    rlimit limit_before_{};
    void (*handler_before_)(int) = nullptr;
};

TEST_F(KeyFileOnDisk, IsReadAsItWasWritten) {
    for (const std::size_t bytes : {0U, 1U, 4095U, 4096U, 4097U, 100'000U}) {
        std::string text(bytes, 'k');
        for (std::size_t at = 0; at < bytes; at += 7)
            text[at] = static_cast<char>('a' + at % 26);
        write_key_file(path(), text, true);
        const KeySource::Content content = source_.read(path());
        EXPECT_EQ(content.text, text) << bytes;
        EXPECT_EQ(content.error, "");
        EXPECT_EQ(content.before.bytes, bytes);
        EXPECT_EQ(content.before, content.after);
        EXPECT_EQ(content.before, source_.look(path()));
        EXPECT_EQ(file_count(), 1U) << "no other file is left in the folder";
    }
}

TEST_F(KeyFileOnDisk, IsReadableOnlyByItsOwner) {
    write_key_file(path(), "secret", false);
    const FileFacts facts = source_.look(path());
    EXPECT_TRUE(facts.exists);
    EXPECT_TRUE(facts.is_regular);
    EXPECT_EQ(facts.mode, 0600U);
    EXPECT_EQ(facts.owner, source_.user());
    EXPECT_EQ(judge(facts, source_.user(), path()), "");
}

TEST_F(KeyFileOnDisk, ReplacesAnotherOnlyWhereThatIsWanted) {
    write_key_file(path(), "first", false);
    EXPECT_THROW(write_key_file(path(), "second", false), std::system_error);
    EXPECT_EQ(source_.read(path()).text, "first");
    EXPECT_EQ(file_count(), 1U) << "the second call left no file";
    const FileFacts before = source_.look(path());
    write_key_file(path(), "third", true);
    EXPECT_EQ(source_.read(path()).text, "third");
    EXPECT_NE(source_.look(path()), before) << "the change is visible";
}

TEST_F(KeyFileOnDisk, IsNotReplacedUnderOneOfSeveralNames) {
    write_key_file(path(), "first", false);
    const std::string other = path() + ".other";
    ASSERT_EQ(::link(path().c_str(), other.c_str()), 0);
    EXPECT_THROW(write_key_file(path(), "second", true), std::runtime_error);
    EXPECT_EQ(source_.read(path()).text, "first");
    EXPECT_EQ(file_count(), 2U);
}

TEST_F(KeyFileOnDisk, StaysWithItsOwnerWhenRootAddsAKey) {
    if (::geteuid() != 0)
        GTEST_SKIP() << "needs root (as in CI): only root may change the owner of a file";
    write_key_file(path(), "first", false);
    ASSERT_EQ(::chown(path().c_str(), 1234, 1234), 0);
    write_key_file(path(), "second", true);
    EXPECT_EQ(source_.look(path()).owner, 1234U);
    EXPECT_EQ(source_.read(path()).text, "second");
}

TEST_F(KeyFileOnDisk, CanBeWrittenByAnyUserInHisOwnFolder) {
    const uid_t user = ::geteuid();
    const uid_t writer = user == 0 ? 1234 : user;
    ASSERT_EQ(::chown(path("").c_str(), writer, static_cast<gid_t>(-1)), 0);
    ASSERT_EQ(::seteuid(writer), 0);
    EXPECT_NO_THROW(write_key_file(path(), "first", false));
    EXPECT_NO_THROW(write_key_file(path(), "second", true));
    ASSERT_EQ(::seteuid(user), 0);
    EXPECT_EQ(source_.look(path()).owner, writer);
}

TEST_F(KeyFileOnDisk, ThatIsNotThereHasAReason) {
    EXPECT_FALSE(source_.look(path()).exists);
    const KeySource::Content content = source_.read(path());
    EXPECT_FALSE(content.before.exists);
    EXPECT_NE(content.error, "");
    EXPECT_EQ(content.text, "");
    EXPECT_THROW(write_key_file(path("no-such-folder/site.keys"), "text", true), std::system_error);
}

TEST_F(KeyFileOnDisk, IsNotReadIfItIsNoFileOrTooLarge) {
    std::filesystem::create_directory(path("folder"));
    const KeySource::Content folder = source_.read(path("folder"));
    EXPECT_FALSE(folder.before.is_regular);
    EXPECT_EQ(folder.text, "");
    std::ofstream{path("large")} << std::string(key_file_limit_bytes + 1, 'x');
    const KeySource::Content large = source_.read(path("large"));
    EXPECT_EQ(large.before.bytes, key_file_limit_bytes + 1);
    EXPECT_EQ(large.text, "");
    std::ofstream{path("largest")} << std::string(key_file_limit_bytes, 'x');
    EXPECT_EQ(source_.read(path("largest")).text.size(), key_file_limit_bytes);
}

// The error is that the file is not regular, not that it is missing.
TEST_F(KeyFileOnDisk, ThatCannotBeOpenedStillExists) {
    ASSERT_EQ(::mknod(path().c_str(), S_IFSOCK | 0600, 0), 0);
    const KeySource::Content content = source_.read(path());
    EXPECT_NE(content.error, "");
    EXPECT_TRUE(content.before.exists);
    EXPECT_NE(judge(content.before, source_.user(), path()).find("not a regular file"),
              std::string::npos);
}

TEST_F(KeyFileOnDisk, IsClosedAlsoWithoutStandardInput) {
    write_key_file(path(), "secret", false);
    const int input = ::dup(STDIN_FILENO);
    ::close(STDIN_FILENO);
    const std::string text = source_.read(path()).text; // read with the lowest free descriptor
    const bool is_open = ::fcntl(STDIN_FILENO, F_GETFD) >= 0;
    if (input >= 0) {
        ::dup2(input, STDIN_FILENO);
        ::close(input);
    }
    EXPECT_EQ(text, "secret");
    EXPECT_FALSE(is_open);
}

TEST_F(KeyFileOnDisk, AnIncompleteWriteKeepsTheOldFile) {
    write_key_file(path(), "first", false);
    limit_files_to(100);
    EXPECT_THROW(write_key_file(path(), std::string(200, 'x'), true), std::system_error);
    EXPECT_EQ(source_.read(path()).text, "first");
    EXPECT_EQ(file_count(), 1U);
}

} // namespace
} // namespace netio::access::key_source_test
