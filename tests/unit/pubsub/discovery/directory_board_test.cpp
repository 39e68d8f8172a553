// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/directory_board.hpp"

#include "pubsub/discovery/announcement.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/pubsub/discovery/seen_board.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <fstream>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace netio::pubsub {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::SeenBoard;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;

class Directory : public testing::Test {
  protected:
    SeenBoard look() {
        SeenBoard seen;
        reader.look(seen);
        return seen;
    }
    void write(const std::string& file, const std::string& text) const {
        std::ofstream{folder.path() / file} << text;
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator{folder.path()})
            names.push_back(entry.path().filename().string());
        return names;
    }
    std::string refusal_of_put(Board& board) const {
        try {
            board.put("a", std::string(100'000, 'x'));
        } catch (const BoardError& error) {
            return error.what();
        }
        return "it is written";
    }

    netio::test::TemporaryFolder folder;
    DirectoryBoard writer{folder.path().string(), seconds{3600}};
    // It looks at everything once, and then relies on inotify alone.
    DirectoryBoard reader{folder.path().string(), seconds{3600}};
};

TEST_F(Directory, EachTextIsAFileThatIsThereAsAWholeOrNotAtAll) {
    writer.put("a", "text");
    EXPECT_THAT(files(), ElementsAre("a.netio"));
    EXPECT_EQ(writer.get("a"), "text");
    EXPECT_EQ(writer.get("b"), std::nullopt);
    writer.remove("a");
    writer.remove("a");
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(Directory, ADirectoryThatIsMissingIsMade) {
    DirectoryBoard deeper{(folder.path() / "bus").string(), seconds{1}};
    deeper.put("a", "text");
    EXPECT_EQ(deeper.get("a"), "text");
}

TEST_F(Directory, OnlyWhatHasChangedIsReadAgain) {
    writer.put("a", "1");
    writer.put("b", "1");
    EXPECT_THAT(look().texts, ElementsAre(Pair("a", "1"), Pair("b", "1")));
    EXPECT_THAT(look().texts, IsEmpty());
    writer.put("b", "2");
    EXPECT_THAT(look().texts, ElementsAre(Pair("b", "2")));
    writer.remove("a");
    EXPECT_THAT(look().removed, ElementsAre("a"));
}

TEST_F(Directory, AChangeEndsTheWait) {
    look();
    std::thread publisher{[&] { writer.put("a", "1"); }};
    reader.wait(Clock::now() + seconds{50});
    publisher.join();
    EXPECT_THAT(look().texts, ElementsAre(Key("a")));
}

TEST_F(Directory, AnInterruptEndsTheWaitEvenIfItCameBefore) {
    look();
    reader.interrupt();
    const TimePoint begin = Clock::now();
    reader.wait(begin + seconds{50});
    EXPECT_LT(Clock::now() - begin, seconds{40});
}

TEST_F(Directory, WhereNothingTellsWhatChangesThePollFindsTheSame) {
    DirectoryBoard poller{folder.path().string(), milliseconds{10}, DirectoryBoard::Notice::none};
    SeenBoard seen;
    poller.look(seen);
    writer.put("a", "1");
    while (seen.texts.empty()) {
        poller.wait(Clock::now() + seconds{50});
        poller.look(seen);
    }
    EXPECT_THAT(seen.texts, ElementsAre(Key("a")));
}

TEST_F(Directory, WithoutADescriptorToWatchWithNothingIsLost) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    DirectoryBoard poor{folder.path().string(), milliseconds{10}};
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(next) + 1;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    SeenBoard seen;
    EXPECT_THROW(poor.look(seen), BoardError);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    writer.put("a", "1");
    poor.look(seen);
    EXPECT_THAT(seen.texts, ElementsAre(Key("a")));
}

// What has changed meanwhile may be known to nobody but the look that failed.
TEST_F(Directory, AfterALookThatFailedTheNextOneIsAtEverythingAgain) {
    const milliseconds poll{50};
    DirectoryBoard poor{folder.path().string(), poll, DirectoryBoard::Notice::none};
    SeenBoard seen;
    const TimePoint begin = Clock::now();
    poor.look(seen);
    writer.put("a", "1");
    while (Clock::now() < begin + 2 * poll)
        poor.wait(begin + 2 * poll);
    {
        const netio::test::DescriptorLimit one{1}; // and it cannot be listed
        EXPECT_THROW(poor.look(seen), BoardError);
    }
    EXPECT_THAT(seen.texts, IsEmpty());
    poor.look(seen);
    EXPECT_THAT(seen.texts, ElementsAre(Key("a")));
}

TEST_F(Directory, AnotherDirectoryUnderThePathIsWatchedInstead) {
    const fs::path path = folder.path() / "bus";
    DirectoryBoard inner{path.string(), seconds{3600}};
    DirectoryBoard looking{path.string(), milliseconds{10}};
    inner.put("a", "1");
    SeenBoard seen;
    looking.look(seen);
    fs::remove_all(path);
    SeenBoard gone;
    EXPECT_THROW(looking.look(gone), BoardError);
    inner.put("b", "1");
    while (!seen.texts.contains("b")) {
        looking.wait(Clock::now() + milliseconds{10});
        looking.look(seen);
    }
    EXPECT_THAT(seen.removed, ElementsAre("a"));
}

TEST_F(Directory, ForeignFilesAreNotOpenedOrToldInOneLine) {
    write("notes.txt", "x");
    write("-.netio", "x");
    write(".hidden.netio", "x");
    fs::create_directory(folder.path() / "d.netio");
    fs::create_symlink("/etc/hostname", folder.path() / "s.netio");
    ASSERT_EQ(::mkfifo((folder.path() / "pipe.netio").c_str(), 0600), 0);
    write("large.netio", std::string(announcement_bytes_limit + 1, 'x'));
    write("good.netio", "text");
    const SeenBoard seen = look();
    EXPECT_THAT(seen.texts, ElementsAre(Pair("good", "text")));
    EXPECT_THAT(seen.unreadable, ElementsAre(HasSubstr("'d.netio' is no file"),
                                             HasSubstr("'large.netio' is too large"),
                                             HasSubstr("'pipe.netio' is no file"),
                                             HasSubstr("'s.netio' cannot be read")));
}

TEST_F(Directory, MoreFilesThanItTakesAreToldAndPassedOver) {
    auto fill_up_to = [this, made = std::size_t{0}](std::size_t count) mutable {
        for (; made < count; ++made)
            write(std::to_string(made) + ".netio", "");
    };
    fill_up_to(DirectoryBoard::file_limit);
    const SeenBoard all = look();
    EXPECT_EQ(all.texts.size(), DirectoryBoard::file_limit);
    EXPECT_THAT(all.unreadable, IsEmpty());
    fill_up_to(DirectoryBoard::file_limit + 2);
    DirectoryBoard later{folder.path().string(), seconds{3600}};
    SeenBoard most;
    later.look(most);
    EXPECT_EQ(most.texts.size(), DirectoryBoard::file_limit);
    EXPECT_THAT(most.unreadable, ElementsAre(HasSubstr("more than 65536 announcements")));
}

TEST_F(Directory, ADirectoryThatCannotBeWrittenIsNamedWithTheReason) {
    DirectoryBoard none{"/proc/netio-bus", seconds{1}};
    EXPECT_THAT(refusal_of_put(none), HasSubstr("cannot announce in '/proc/netio-bus': No such"));
    DirectoryBoard read_only{"/proc", seconds{1}};
    EXPECT_THAT(refusal_of_put(read_only), HasSubstr("cannot announce in '/proc': "));
    write("file", "x");
    DirectoryBoard file{(folder.path() / "file").string(), seconds{1}};
    EXPECT_THAT(refusal_of_put(file), HasSubstr("Not a directory"));
}

TEST_F(Directory, AFullDirectoryKeepsTheAnnouncementThatWasThere) {
    writer.put("a", "old");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = 4096;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string refusal = refusal_of_put(writer);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, handler);
    EXPECT_THAT(refusal, HasSubstr("cannot announce in"));
    EXPECT_EQ(writer.get("a"), "old");
    EXPECT_THAT(files(), ElementsAre("a.netio"));
}

TEST_F(Directory, WhatACrashLeftLongAgoIsSweptAndNothingElse) {
    const std::string old = to_text({.name = "dead", .instance = 1, .counter = 1});
    write("dead.netio", old);
    write(".dead.netio.123.netio-tmp", "half");
    write("foreign.netio", "x");
    write("readme", "x");
    for (const std::string& file : files())
        fs::last_write_time(folder.path() / file,
                            fs::file_time_type::clock::now() - std::chrono::hours{2});
    write("young.netio", to_text({.name = "young", .instance = 1, .counter = 1}));
    writer.put("a", "text");
    EXPECT_THAT(files(),
                testing::UnorderedElementsAre("a.netio", "foreign.netio", "readme", "young.netio"));
}

} // namespace
} // namespace netio::pubsub
