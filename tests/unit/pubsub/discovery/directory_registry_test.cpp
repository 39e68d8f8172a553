// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/directory_registry.hpp"

#include "pubsub/discovery/announcement.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/open_descriptors.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace netio::pubsub::directory_registry_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;

// The result of one call of Registry::look().
class SeenRegistry final : public Registry::Visitor {
  public:
    void on_text(const std::string& name, const std::string& text) override { texts[name] = text; }
    bool on_kept(const std::string& name) override {
        removed.push_back("kept " + name);
        return true;
    }
    void on_removed(const std::string& name) override { removed.push_back(name); }
    void on_unreadable(const std::string& what) override { unreadable.push_back(what); }

    std::map<std::string, std::string> texts;
    std::vector<std::string> removed;
    std::vector<std::string> unreadable;
};

class Directory : public testing::Test {
  protected:
    SeenRegistry look() {
        SeenRegistry seen;
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
    std::string refusal_of_put(Registry& board) const {
        try {
            board.put("a", std::string(100'000, 'x'));
        } catch (const RegistryError& error) {
            return error.what();
        }
        return "it is written";
    }

    netio::test::TemporaryFolder folder;
    DirectoryRegistry writer{folder.path().string(), seconds{3600}};
    // It reads everything once, and then depends on inotify alone.
    DirectoryRegistry reader{folder.path().string(), seconds{3600}};
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
    DirectoryRegistry deeper{(folder.path() / "bus").string(), seconds{1}};
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

TEST_F(Directory, WithoutNotificationsThePollFindsTheSame) {
    DirectoryRegistry poller{folder.path().string(), milliseconds{10},
                             DirectoryRegistry::Notice::none};
    SeenRegistry seen;
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
    DirectoryRegistry poor{folder.path().string(), milliseconds{10}};
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(next) + 1;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    SeenRegistry seen;
    EXPECT_THROW(poor.look(seen), RegistryError);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    writer.put("a", "1");
    poor.look(seen);
    EXPECT_THAT(seen.texts, ElementsAre(Key("a")));
}

// Changes in the meantime may be known only to the failed look.
TEST_F(Directory, AfterALookThatFailedTheNextOneIsAtEverythingAgain) {
    const milliseconds poll{50};
    DirectoryRegistry poor{folder.path().string(), poll, DirectoryRegistry::Notice::none};
    SeenRegistry seen;
    const TimePoint begin = Clock::now();
    poor.look(seen);
    writer.put("a", "1");
    while (Clock::now() < begin + 2 * poll)
        poor.wait(begin + 2 * poll);
    {
        const netio::test::DescriptorLimit one{1}; // so the directory cannot be listed
        EXPECT_THROW(poor.look(seen), RegistryError);
    }
    EXPECT_THAT(seen.texts, IsEmpty());
    poor.look(seen);
    EXPECT_THAT(seen.texts, ElementsAre(Key("a")));
}

TEST_F(Directory, AnotherDirectoryUnderThePathIsWatchedInstead) {
    const fs::path path = folder.path() / "bus";
    DirectoryRegistry inner{path.string(), seconds{3600}};
    DirectoryRegistry looking{path.string(), milliseconds{10}};
    inner.put("a", "1");
    SeenRegistry seen;
    looking.look(seen);
    fs::remove_all(path);
    SeenRegistry gone;
    EXPECT_THROW(looking.look(gone), RegistryError);
    inner.put("b", "1");
    while (!seen.texts.contains("b")) {
        looking.wait(Clock::now() + milliseconds{10});
        looking.look(seen);
    }
    EXPECT_THAT(seen.removed, ElementsAre("a"));
}

TEST_F(Directory, ForeignFilesAreNotOpenedOrReportedInOneLine) {
    write("notes.txt", "x");
    write("-.netio", "x");
    write(".hidden.netio", "x");
    fs::create_directory(folder.path() / "d.netio");
    fs::create_symlink("/etc/hostname", folder.path() / "s.netio");
    ASSERT_EQ(::mkfifo((folder.path() / "pipe.netio").c_str(), 0600), 0);
    write("large.netio", std::string(announcement_bytes_limit + 1, 'x'));
    write("good.netio", "text");
    const SeenRegistry seen = look();
    EXPECT_THAT(seen.texts, ElementsAre(Pair("good", "text")));
    EXPECT_THAT(seen.unreadable, ElementsAre(HasSubstr("'d.netio' is no file"),
                                             HasSubstr("'large.netio' is too large"),
                                             HasSubstr("'pipe.netio' is no file"),
                                             HasSubstr("'s.netio' cannot be read")));
}

TEST_F(Directory, FilesBeyondTheLimitAreReportedAndSkipped) {
    auto fill_up_to = [this, made = std::size_t{0}](std::size_t count) mutable {
        for (; made < count; ++made)
            write(std::to_string(made) + ".netio", "");
    };
    fill_up_to(DirectoryRegistry::file_limit);
    const SeenRegistry all = look();
    EXPECT_EQ(all.texts.size(), DirectoryRegistry::file_limit);
    EXPECT_THAT(all.unreadable, IsEmpty());
    fill_up_to(DirectoryRegistry::file_limit + 2);
    DirectoryRegistry later{folder.path().string(), seconds{3600}};
    SeenRegistry most;
    later.look(most);
    EXPECT_EQ(most.texts.size(), DirectoryRegistry::file_limit);
    EXPECT_THAT(most.unreadable, ElementsAre(HasSubstr("more than 65536 announcements")));
}

TEST_F(Directory, ADirectoryThatCannotBeWrittenIsNamedWithTheReason) {
    DirectoryRegistry none{"/proc/netio-bus", seconds{1}};
    EXPECT_THAT(refusal_of_put(none), HasSubstr("cannot announce in '/proc/netio-bus': No such"));
    DirectoryRegistry read_only{"/proc", seconds{1}};
    EXPECT_THAT(refusal_of_put(read_only), HasSubstr("cannot announce in '/proc': "));
    write("file", "x");
    DirectoryRegistry file{(folder.path() / "file").string(), seconds{1}};
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

TEST_F(Directory, OldFilesOfACrashAreRemovedAndNoOthers) {
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

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;
using Notice = DirectoryRegistry::Notice;

SeenRegistry look_at(DirectoryRegistry& board) {
    SeenRegistry shown;
    board.look(shown);
    return shown;
}

class DirectoryLooks : public testing::Test {
  protected:
    fs::path path() const { return folder_.path() / "bus"; }
    DirectoryRegistry board(milliseconds poll, Notice notice = Notice::inotify) const {
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
    auto reader = board(milliseconds{0}, Notice::none); // every look reads everything
    EXPECT_THAT(look_at(reader).texts, SizeIs(2));
    EXPECT_THAT(look_at(reader).texts, IsEmpty());
    writer.put("b", "2");
    EXPECT_THAT(look_at(reader).texts, ElementsAre(Key("b")));
    writer.remove("a");
    const SeenRegistry shown = look_at(reader);
    EXPECT_THAT(shown.removed, ElementsAre("a"));
    EXPECT_THAT(look_at(reader).removed, IsEmpty()) << "reported once";
}

TEST_F(DirectoryLooks, ShowNoChangeBeforeThePollWithoutNotification) {
    auto writer = board(never);
    writer.put("a", "1");
    auto reader = board(never, Notice::none);
    EXPECT_THAT(look_at(reader).texts, ElementsAre(Key("a")));
    writer.put("b", "1");
    EXPECT_THAT(look_at(reader).texts, IsEmpty());
}

TEST_F(DirectoryLooks, AFileThatCameAndWentIsNotReportedAsGone) {
    auto writer = board(never);
    writer.put("a", "1");
    auto reader = board(never);
    EXPECT_THAT(look_at(reader).texts, SizeIs(1));
    writer.put("b", "1");
    writer.remove("b");
    const SeenRegistry shown = look_at(reader);
    EXPECT_THAT(shown.texts, IsEmpty());
    EXPECT_THAT(shown.removed, IsEmpty());
}

TEST_F(DirectoryLooks, AFileWithoutANameIsIgnored) {
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
    const SeenRegistry shown = look_at(reader);
    EXPECT_EQ(shown.texts.at("exact").size(), announcement_bytes_limit);
    EXPECT_THAT(shown.unreadable, ElementsAre(HasSubstr("'large.netio' is too large")));
    EXPECT_EQ(reader.get("exact")->size(), announcement_bytes_limit);
    EXPECT_EQ(reader.get("large"), std::nullopt) << "it does not block other names";
}

TEST_F(DirectoryLooks, ReadEverythingAfterTheDirectoryWasMissing) {
    auto writer = board(never);
    writer.put("a", "1");
    writer.put("b", "1");
    auto reader = board(never, Notice::none);
    EXPECT_THAT(look_at(reader).texts, SizeIs(2));
    const fs::path elsewhere = path().string() + "-elsewhere";
    fs::rename(path(), elsewhere);
    try {
        look_at(reader);
        ADD_FAILURE() << "the directory was there";
    } catch (const RegistryError& error) {
        EXPECT_THAT(error.what(), HasSubstr("cannot read '" + path().string() +
                                            "': No such file or directory; a bus is a folder"));
    }
    fs::rename(elsewhere, path());
    writer.remove("a");
    writer.put("c", "1");
    const SeenRegistry shown = look_at(reader);
    EXPECT_THAT(shown.removed, ElementsAre("a"));
    EXPECT_THAT(shown.texts, ElementsAre(Key("c"))) << "b is known";
}

// No look has noticed the removal, and perhaps the directory was empty.
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
        const SeenRegistry shown = look_at(reader);
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
                << "wake-up, inotify";
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
    EXPECT_THROW(look_at(reader), RegistryError);
    reader.interrupt();
    reader.wait(Clock::now() + seconds{50}); // ends at once because of interrupt()
    const TimePoint until = Clock::now() + milliseconds{2};
    reader.wait(until);
    EXPECT_GE(Clock::now(), until);
}

TEST_F(DirectoryLooks, AFailedWithdrawalIsReportedWithTheReason) {
    std::ofstream{path()} << "a file";
    auto writer = board(never);
    try {
        writer.remove("a");
        ADD_FAILURE() << "no error";
    } catch (const RegistryError& error) {
        EXPECT_EQ(error.what(), "cannot withdraw from '" + path().string() + "': Not a directory");
    }
}

TEST_F(DirectoryLooks, WhereAnAnnouncementCannotTakeItsNameNothingIsLeft) {
    fs::create_directories(path() / "a.netio");
    auto writer = board(never);
    EXPECT_THROW(writer.put("a", "text"), RegistryError);
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator{path()})
        files.push_back(entry.path().filename().string());
    EXPECT_THAT(files, ElementsAre("a.netio"));
}

// At exactly the limit: file servers store times in seconds.
TEST_F(DirectoryLooks, AFileExactlyAtTheAgeLimitIsKept) {
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
    // A copy of the file under another name is not its own announcement.
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
} // namespace netio::pubsub::directory_registry_test
