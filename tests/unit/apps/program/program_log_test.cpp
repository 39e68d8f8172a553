// SPDX-License-Identifier: Apache-2.0

#include "apps/common/logging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace apps::program_log_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class BackgroundLogs : public testing::Test {
  protected:
    BackgroundLogs() { EXPECT_EQ(::pipe(ends_.data()), 0); }
    ~BackgroundLogs() override {
        for (const int end : ends_)
            if (end >= 0) ::close(end);
    }
    // Fills the pipe, so that the next line waits for a reader.
    void fill() {
        ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
        const std::string page(4096, 'x');
        while (::write(ends_[1], page.data(), page.size()) > 0) {
        }
        ::fcntl(ends_[1], F_SETFL, 0);
    }
    std::string read_all() {
        std::string all;
        std::array<char, 65536> part{};
        while (!all.ends_with("last\n")) {
            const ssize_t size = ::read(ends_[0], part.data(), part.size());
            if (size <= 0) break;
            all.append(part.data(), static_cast<std::size_t>(size));
        }
        return all.substr(all.find_first_not_of('x'));
    }
    void log_through(const std::shared_ptr<BackgroundLog>& log) {
        logger_ = std::make_unique<spdlog::logger>("test", log);
        logger_->set_pattern("%v");
    }

    std::array<int, 2> ends_{-1, -1};
    std::unique_ptr<spdlog::logger> logger_;
};

TEST_F(BackgroundLogs, WriteEveryLineInOrder) {
    const auto log = std::make_shared<BackgroundLog>(ends_[1], BackgroundLog::Style::plain);
    log_through(log);
    logger_->info("one");
    logger_->warn("two");
    logger_->info("last");
    EXPECT_TRUE(log->finish(hours{1}));
    EXPECT_EQ(read_all(), "one\ntwo\nlast\n");
    EXPECT_EQ(log->left_out(), 0U);
}

TEST_F(BackgroundLogs, HaveWrittenEveryLineAfterAFlush) {
    constexpr int lines = 5000; // of two bytes; the pipe has room for all
    log_through(std::make_shared<BackgroundLog>(::dup(ends_[1]), BackgroundLog::Style::plain));
    for (int line = 0; line < lines; ++line)
        logger_->info("x");
    logger_->flush();
    int written = 0;
    ASSERT_EQ(::ioctl(ends_[0], FIONREAD, &written), 0);
    EXPECT_EQ(written, 2 * lines);
}

TEST_F(BackgroundLogs, GoOnInAnotherFileWithTheNextLine) {
    std::array<int, 2> second{};
    ASSERT_EQ(::pipe(second.data()), 0);
    const auto log = std::make_shared<BackgroundLog>(::dup(ends_[1]), BackgroundLog::Style::plain);
    log_through(log);
    logger_->info("last");
    EXPECT_TRUE(log->finish(hours{1}));
    EXPECT_EQ(read_all(), "last\n");
    log->go_on_in(second[1]);
    logger_->info("next");
    EXPECT_TRUE(log->finish(hours{1}));
    std::array<char, 64> got{};
    EXPECT_EQ(::read(second[0], got.data(), got.size()), 5);
    EXPECT_STREQ(got.data(), "next\n");
    ::close(std::exchange(ends_[1], -1));
    EXPECT_EQ(::read(ends_[0], got.data(), got.size()), 0) << "the first file is still open";
    ::close(second[0]);
}

// Text from a peer, a server or a file cannot control a terminal, nor forge a line.
TEST_F(BackgroundLogs, WriteOneLineWhateverTheTextContains) {
    for (const auto style : {BackgroundLog::Style::plain, BackgroundLog::Style::journal}) {
        const auto log = std::make_shared<BackgroundLog>(ends_[1], style);
        log_through(log);
        logger_->error("etcd answers 500 ({})", "\x1b[2J\nFAKE \xe2\x80\xae \xc2\x9b \x9b");
        logger_->error("{}", std::string(20'000, 'x'));
        logger_->info("last");
        EXPECT_TRUE(log->finish(hours{1}));
        const std::string all = read_all();
        const std::string mark = style == BackgroundLog::Style::journal ? "<3>" : "";
        EXPECT_THAT(all, testing::StartsWith(mark + "etcd answers 500 (\\u001b[2J\\nFAKE "
                                                    "\\u202e \\u009b \\x9b)\n"));
        EXPECT_THAT(all, testing::HasSubstr("xx ... (20000 bytes in total)\n"));
        EXPECT_LT(all.size(), 9000U);
    }
}

TEST_F(BackgroundLogs, NeverBlockAndCountTheLostLines) {
    fill();
    const auto log = std::make_shared<BackgroundLog>(ends_[1], BackgroundLog::Style::plain, 10);
    log_through(log);
    for (int i = 0; i < 1000; ++i)
        logger_->info("line {}", i);
    logger_->info("last");
    EXPECT_FALSE(log->finish(milliseconds{1})) << "without a reader";
    const std::uint64_t left_out = log->left_out();
    EXPECT_GE(left_out, 990U);
    const std::string all = read_all();
    std::uint64_t told = 0; // in one line, or two: before and after the line in progress
    std::istringstream lines{all};
    for (std::string line; std::getline(lines, line);)
        if (line.ends_with(" lines of the log are lost here")) told += std::stoull(line);
    EXPECT_EQ(told, left_out);
    EXPECT_THAT(all, testing::EndsWith("line 998\nline 999\nlast\n"));
}

TEST_F(BackgroundLogs, SurviveAReaderWhoHasGone) {
    ::close(std::exchange(ends_[0], -1));
    const auto log = std::make_shared<BackgroundLog>(ends_[1], BackgroundLog::Style::plain);
    log_through(log);
    logger_->info("one");
    EXPECT_TRUE(log->finish(hours{1}));
    EXPECT_EQ(log->left_out(), 1U);
}

TEST_F(BackgroundLogs, ReportAFullDiskOnceAndCountLostLines) {
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    ASSERT_GE(full, 0);
    std::vector<int> told;
    const std::uint64_t before = lines_left_out_of_log();
    const auto log = std::make_shared<BackgroundLog>(full, BackgroundLog::Style::plain, 10,
                                                     [&](int error) { told.push_back(error); });
    log_through(log);
    for (int i = 0; i < 3; ++i)
        logger_->info("line");
    EXPECT_TRUE(log->finish(hours{1}));
    EXPECT_THAT(told, testing::ElementsAre(ENOSPC));
    EXPECT_EQ(log->left_out(), 3U);
    EXPECT_EQ(lines_left_out_of_log(), before + 3) << "the counter for /metrics";
    // With room again, the log reports all lost lines at the right place.
    EXPECT_EQ(::dup2(ends_[1], full), full);
    logger_->info("last");
    EXPECT_TRUE(log->finish(hours{1}));
    EXPECT_EQ(read_all(), "3 lines of the log are lost here\nlast\n");
    ::close(full);
}

// Like a disk that becomes full in the middle of a line.
TEST_F(BackgroundLogs, ContinueOnANewLineAfterAPartialWrite) {
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit full{.rlim_cur = 9, .rlim_max = before.rlim_max};
    const auto log = std::make_shared<BackgroundLog>(::fileno(file), BackgroundLog::Style::plain);
    log_through(log);
    ::setrlimit(RLIMIT_FSIZE, &full);
    logger_->info("first");
    logger_->info("second");
    logger_->info("third");
    EXPECT_TRUE(log->finish(hours{1}));
    ::setrlimit(RLIMIT_FSIZE, &before);
    logger_->info("fourth");
    logger_->info("last");
    EXPECT_TRUE(log->finish(hours{1}));
    std::array<char, 200> all{};
    const ssize_t size = ::pread(::fileno(file), all.data(), all.size(), 0);
    EXPECT_EQ(std::string(all.data(), static_cast<std::size_t>(size)),
              "first\nsec\n2 lines of the log are lost here\nfourth\nlast\n");
    std::fclose(file);
}

TEST_F(BackgroundLogs, GiveTheJournalAPriority) {
    const auto log = std::make_shared<BackgroundLog>(ends_[1], BackgroundLog::Style::journal);
    log_through(log);
    logger_->error("one");
    logger_->warn("two");
    logger_->info("last");
    EXPECT_TRUE(log->finish(hours{1}));
    EXPECT_EQ(read_all(), "<3>one\n<4>two\n<6>last\n");
}

} // namespace
} // namespace apps::program_log_test
