// SPDX-License-Identifier: Apache-2.0
// What a directory shows, look for look, and what a look or a wait leaves behind.

#include "pubsub/discovery/announcement.hpp"
#include "pubsub/discovery/directory_board.hpp"
#include "tests/support/open_descriptors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/pubsub/discovery/seen_board.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <sys/stat.h>
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
using testing::SizeIs;
using Notice = DirectoryBoard::Notice;

SeenBoard look_at(DirectoryBoard& board) {
    SeenBoard shown;
    board.look(shown);
    return shown;
}

class DirectoryLooks : public testing::Test {
  protected:
    fs::path path() const { return folder_.path() / "bus"; }
    DirectoryBoard board(milliseconds poll, Notice notice = Notice::inotify) const {
        return {path().string(), poll, notice};
    }
    void write(const std::string& file, const std::string& text) const {
        std::ofstream{path() / file} << text;
    }
    void resize(const std::string& file, std::size_t bytes) const {
        std::ofstream{path() / file}.close();
        fs::resize_file(path() / file, bytes);
    }

    static constexpr seconds never{3600};

  private:
    netio::test::TemporaryFolder folder_;
};

TEST_F(DirectoryLooks, AtEverythingReadOnlyWhatHasChanged) {
    auto writer = board(never);
    writer.put("a", "1");
    writer.put("b", "1");
    auto reader = board(milliseconds{0}, Notice::none); // each of its looks is at everything
    EXPECT_THAT(look_at(reader).texts, SizeIs(2));
    EXPECT_THAT(look_at(reader).texts, IsEmpty());
    writer.put("b", "2");
    EXPECT_THAT(look_at(reader).texts, ElementsAre(Key("b")));
    writer.remove("a");
    const SeenBoard shown = look_at(reader);
    EXPECT_THAT(shown.removed, ElementsAre("a"));
    EXPECT_THAT(look_at(reader).removed, IsEmpty()) << "it is told once";
}

TEST_F(DirectoryLooks, ShowNothingThatNothingHasToldBeforeThePoll) {
    auto writer = board(never);
    writer.put("a", "1");
    auto reader = board(never, Notice::none);
    EXPECT_THAT(look_at(reader).texts, ElementsAre(Key("a")));
    writer.put("b", "1");
    EXPECT_THAT(look_at(reader).texts, IsEmpty());
}

TEST_F(DirectoryLooks, WhatCameAndWentBetweenTwoIsNotToldAsGone) {
    auto writer = board(never);
    writer.put("a", "1");
    auto reader = board(never);
    EXPECT_THAT(look_at(reader).texts, SizeIs(1));
    writer.put("b", "1");
    writer.remove("b");
    const SeenBoard shown = look_at(reader);
    EXPECT_THAT(shown.texts, IsEmpty());
    EXPECT_THAT(shown.removed, IsEmpty());
}

TEST_F(DirectoryLooks, AFileWithoutANameIsNobodys) {
    auto writer = board(never);
    writer.put("a", "1");
    write(".netio", "x");
    write("readme", "x");
    auto reader = board(never);
    EXPECT_THAT(look_at(reader).texts, ElementsAre(Key("a")));
    write(".netio", "changed");
    write("readme", "changed");
    writer.put("a", "2");
    EXPECT_THAT(look_at(reader).texts, ElementsAre(Key("a")));
}

TEST_F(DirectoryLooks, ATextOfAsManyBytesAsAnAnnouncementMayHaveIsRead) {
    auto writer = board(never);
    writer.put("a", "1");
    resize("exact.netio", announcement_bytes_limit);
    resize("large.netio", announcement_bytes_limit + 1);
    auto reader = board(never);
    const SeenBoard shown = look_at(reader);
    EXPECT_EQ(shown.texts.at("exact").size(), announcement_bytes_limit);
    EXPECT_THAT(shown.unreadable, ElementsAre(HasSubstr("'large.netio' is too large")));
    EXPECT_EQ(reader.get("exact")->size(), announcement_bytes_limit);
    EXPECT_EQ(reader.get("large"), std::nullopt) << "it is in nobody's way";
}

TEST_F(DirectoryLooks, AreAtEverythingBehindOneThatFoundNoDirectory) {
    auto writer = board(never);
    writer.put("a", "1");
    writer.put("b", "1");
    auto reader = board(never, Notice::none);
    EXPECT_THAT(look_at(reader).texts, SizeIs(2));
    const fs::path elsewhere = path().string() + "-elsewhere";
    fs::rename(path(), elsewhere);
    try {
        look_at(reader);
        ADD_FAILURE() << "it was there";
    } catch (const BoardError& error) {
        EXPECT_EQ(error.what(), "cannot read '" + path().string() + "': No such file or directory");
    }
    fs::rename(elsewhere, path());
    writer.remove("a");
    writer.put("c", "1");
    const SeenBoard shown = look_at(reader);
    EXPECT_THAT(shown.removed, ElementsAre("a"));
    EXPECT_THAT(shown.texts, ElementsAre(Key("c"))) << "b is known";
}

// No look has seen that it was away, and perhaps nothing was in it that has gone.
TEST_F(DirectoryLooks, AreAtEverythingInAnotherDirectoryThatWasMadeBetweenTwo) {
    for (const bool was_empty : {false, true}) {
        SCOPED_TRACE(was_empty);
        auto writer = board(never);
        writer.put("a", "1");
        if (was_empty) fs::remove(path() / "a.netio");
        auto reader = board(never);
        EXPECT_THAT(look_at(reader).texts, SizeIs(was_empty ? 0 : 1));
        fs::remove_all(path());
        writer.put("b", "1");
        const SeenBoard shown = look_at(reader);
        EXPECT_THAT(shown.removed, SizeIs(was_empty ? 0 : 1));
        EXPECT_THAT(shown.texts, ElementsAre(Key("b")));
        fs::remove_all(path());
    }
}

TEST_F(DirectoryLooks, AndAllElseLeaveNoDescriptorOpen) {
    const std::set<int> before = netio::test::open_descriptors();
    {
        auto all = board(milliseconds{0});
        for (int i = 0; i < 3; ++i) {
            all.put("a", std::to_string(i));
            EXPECT_EQ(all.get("a"), std::to_string(i));
            EXPECT_THAT(look_at(all).texts, SizeIs(1));
            EXPECT_EQ(netio::test::open_descriptors().size(), before.size() + 2)
                << "by which it is woken, and told what changes";
        }
    }
    EXPECT_EQ(netio::test::open_descriptors(), before);
}

TEST_F(DirectoryLooks, AWaitEndsWithAChangeLongBeforeItsTime) {
    auto writer = board(never);
    writer.put("a", "1");
    auto reader = board(never);
    look_at(reader);
    writer.put("b", "1");
    const TimePoint begin = Clock::now();
    reader.wait(begin + seconds{50});
    EXPECT_LT(Clock::now() - begin, seconds{40});
}

TEST_F(DirectoryLooks, AWaitEndsNotBeforeItsTimeThoughItWasInterruptedOnce) {
    auto reader = board(never);
    EXPECT_THROW(look_at(reader), BoardError);
    reader.interrupt();
    reader.wait(Clock::now() + seconds{50}); // for that
    const TimePoint until = Clock::now() + milliseconds{2};
    reader.wait(until);
    EXPECT_GE(Clock::now(), until);
}

TEST_F(DirectoryLooks, WhatCannotBeWithdrawnIsToldWithTheReason) {
    std::ofstream{path()} << "a file";
    auto writer = board(never);
    try {
        writer.remove("a");
        ADD_FAILURE() << "it was there";
    } catch (const BoardError& error) {
        EXPECT_EQ(error.what(), "cannot withdraw from '" + path().string() + "': Not a directory");
    }
}

TEST_F(DirectoryLooks, WhereAnAnnouncementCannotTakeItsNameNothingIsLeft) {
    fs::create_directories(path() / "a.netio");
    auto writer = board(never);
    EXPECT_THROW(writer.put("a", "text"), BoardError);
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator{path()})
        files.push_back(entry.path().filename().string());
    EXPECT_THAT(files, ElementsAre("a.netio"));
}

// By the second, in which file servers tell times.
TEST_F(DirectoryLooks, WhatIsJustAsOldAsMayBeIsNotSwept) {
    fs::create_directory(path());
    const auto set_age = [this](const std::string& file, time_t then) {
        const timespec times[2] = {{.tv_sec = then, .tv_nsec = 0}, {.tv_sec = then, .tv_nsec = 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, (path() / file).c_str(), times, 0), 0);
    };
    const auto age_of = [this](const std::string& file) {
        struct stat status {};
        EXPECT_EQ(::stat((path() / file).c_str(), &status), 0);
        return status.st_mtim.tv_sec;
    };
    write("now", "x");
    const time_t hour_ago = age_of("now") - 3600;
    for (time_t second = -5; second < 60; ++second) {
        const std::string name = "p" + std::to_string(second + 5);
        write(name + ".netio", to_text({.name = name}));
        set_age(name + ".netio", hour_ago + second);
    }
    // A copy of it that somebody has put there is not its own.
    write("copy.netio", to_text({.name = "p0"}));
    set_age("copy.netio", hour_ago - 5);
    auto writer = board(never);
    writer.put("new", "text");
    const time_t oldest = age_of("new.netio") - 3600;
    for (time_t second = -5; second < 60; ++second) {
        const std::string file = "p" + std::to_string(second + 5) + ".netio";
        EXPECT_EQ(fs::exists(path() / file), hour_ago + second >= oldest) << second;
    }
    EXPECT_TRUE(fs::exists(path() / "copy.netio"));
}

} // namespace
} // namespace netio::pubsub
