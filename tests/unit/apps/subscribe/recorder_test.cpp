// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/recorder.hpp"

#include "tests/unit/apps/common/refused_calls.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

namespace apps::subscribe::recorder_test {
namespace {

using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using testing::HasSubstr;

constexpr std::string_view one = "0000000000000001";

class RecorderTest : public testing::Test {
  protected:
    ~RecorderTest() override { std::filesystem::remove_all(folder); }
    static std::span<const std::byte> bytes(const std::string& text) {
        return std::as_bytes(std::span{text});
    }
    static bool whole(Fid) { return true; }
    std::string content(std::string_view name, std::string_view suffix = {}) const {
        std::ifstream in{path(name, suffix), std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    bool exists(std::string_view name, std::string_view suffix = {}) const {
        return std::filesystem::exists(path(name, suffix));
    }
    std::string path(std::string_view name, std::string_view suffix = {}) const {
        return folder + "/" + std::string{name} + std::string{suffix};
    }
    void record(const std::string& text, bool is_whole = true,
                Existing existing = Existing::refuse) const {
        Recorder recorder{folder, all, existing};
        recorder.write(Fid{1}, bytes(text));
        recorder.finish([&](Fid) { return is_whole; });
    }
    // The text of the refusal.
    std::string refusal(Existing existing = Existing::refuse) const {
        try {
            const Recorder recorder{folder, all, existing};
        } catch (const std::system_error& error) {
            return error.what();
        }
        return {};
    }

    std::vector<FidRange> all{{.first = Fid{0}, .last = Fid{UINT64_MAX}}};
    std::string folder = testing::TempDir() + "netio_recorder_" + std::to_string(::getpid()) + "/a";
};

TEST_F(RecorderTest, RecordsWhereLocksOrFsyncOfFoldersAreUnavailable) {
    constexpr int dvs = 524; // kernel-internal ENOTSUPP, which some network file systems return
    for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EPERM, EBADF, dvs}) {
        const apps::test::Refusal refusal{apps::test::refused_calls().flock, error};
        record("one", true, Existing::overwrite);
        EXPECT_EQ(content(one), "one") << error;
        std::filesystem::remove_all(folder);
    }
    const apps::test::Refusal refusal{apps::test::refused_calls().fsync_of_folder, EINVAL};
    record("two");
    EXPECT_EQ(content(one), "two");
}

TEST_F(RecorderTest, WritesOneFileAFidAndNamesItAtTheEnd) {
    Recorder recorder{folder, all};
    recorder.write(Fid{0xabc}, bytes("one "));
    recorder.write(Fid{1}, bytes("other"));
    recorder.write(Fid{0xabc}, bytes("two"));
    EXPECT_TRUE(exists("0000000000000abc.part"));
    EXPECT_FALSE(exists("0000000000000abc"));
    recorder.finish(whole);
    EXPECT_EQ(content("0000000000000abc"), "one two");
    EXPECT_EQ(content(one), "other");
    EXPECT_FALSE(exists("0000000000000abc.part"));
}

TEST_F(RecorderTest, AnUnfinishedFileKeepsItsTemporaryName) {
    {
        Recorder recorder{folder, all};
        recorder.write(Fid{1}, bytes("half"));
    }
    EXPECT_TRUE(exists(one, ".part"));
    EXPECT_FALSE(exists(one));
}

TEST_F(RecorderTest, AFileWithAGapNeverGetsTheFinalName) {
    Recorder recorder{folder, all};
    recorder.write(Fid{1}, bytes("with a hole"));
    recorder.write(Fid{2}, bytes("without"));
    recorder.finish([](Fid fid) { return fid != Fid{1}; });
    EXPECT_EQ(content(one, ".gap"), "with a hole");
    EXPECT_FALSE(exists(one));
    EXPECT_EQ(content("0000000000000002"), "without");
}

TEST_F(RecorderTest, RefusesAFolderWithARecordingOfTheseFids) {
    for (const std::string_view suffix : {"", ".part", ".gap"}) {
        std::filesystem::create_directories(folder);
        std::ofstream{path(one, suffix)} << "precious";
        EXPECT_THAT(refusal(), HasSubstr(path(one, suffix))) << suffix;
        const std::vector<FidRange> others{{.first = Fid{2}, .last = Fid{9}}};
        EXPECT_NO_THROW((Recorder{folder, others}));
        EXPECT_EQ(content(one, suffix), "precious");
        std::filesystem::remove(path(one, suffix));
    }
}

TEST_F(RecorderTest, ARecordingThatAppearsLaterIsNotOverwritten) {
    Recorder recorder{folder, all};
    std::ofstream{path(one, ".part")} << "precious";
    EXPECT_THROW(recorder.write(Fid{1}, bytes("x")), std::system_error);
    EXPECT_EQ(content(one, ".part"), "precious");
}

TEST_F(RecorderTest, AFileThatTakesTheFinalNameIsNotReplaced) {
    Recorder recorder{folder, all};
    recorder.write(Fid{1}, bytes("x"));
    std::ofstream{path(one)} << "precious";
    EXPECT_THROW(recorder.finish([](Fid) { return true; }), std::system_error);
    EXPECT_EQ(content(one), "precious");
    EXPECT_EQ(content(one, ".part"), "x");
}

TEST_F(RecorderTest, AFolderBelongsToOneRecorderAtATime) {
    std::optional<Recorder> first{std::in_place, folder, all};
    EXPECT_THAT(refusal(Existing::overwrite), HasSubstr("another recorder"));
    first.reset();
    EXPECT_EQ(refusal(), "");
}

TEST_F(RecorderTest, AppendingContinuesTheFileAndItsGap) {
    record("first ");
    record("second", true, Existing::append);
    EXPECT_EQ(content(one), "first second");
    record(" third", false, Existing::append);
    record(" fourth", true, Existing::append);
    EXPECT_EQ(content(one, ".gap"), "first second third fourth");
    EXPECT_FALSE(exists(one));
    std::ofstream{path(one, ".part")} << "left behind";
    EXPECT_THAT(refusal(Existing::append), HasSubstr(path(one, ".part")));
}

// Opening a pipe without a reader would block.
TEST_F(RecorderTest, NothingIsAppendedToAPipeOrABrokenLink) {
    std::filesystem::create_directories(folder);
    ASSERT_EQ(::mkfifo(path(one).c_str(), 0600), 0);
    EXPECT_THAT(refusal(Existing::append), HasSubstr(path(one) + ", which is not a regular file"));
    std::filesystem::remove(path(one));
    std::filesystem::create_symlink(path("nowhere"), path(one));
    EXPECT_THAT(refusal(Existing::append), HasSubstr(path(one) + ", which is not a regular file"));
    std::filesystem::remove(path(one));
    std::ofstream{path("elsewhere")} << "first ";
    std::filesystem::create_symlink(path("elsewhere"), path(one));
    record("second", true, Existing::append);
    EXPECT_EQ(content("elsewhere"), "first second");
}

TEST_F(RecorderTest, OverwritingReplacesOnlyWhenTheNewOneIsFinished) {
    record("old");
    {
        Recorder recorder{folder, all, Existing::overwrite};
        recorder.write(Fid{1}, bytes("new"));
        EXPECT_EQ(content(one), "old");
    }
    EXPECT_EQ(content(one), "old");
    record("with a hole", false, Existing::overwrite);
    EXPECT_FALSE(exists(one)) << "it would seem to belong to the same run";
    EXPECT_EQ(content(one, ".gap"), "with a hole");
    record("newest", true, Existing::overwrite);
    EXPECT_EQ(content(one), "newest");
    EXPECT_FALSE(exists(one, ".gap"));
    EXPECT_FALSE(exists(one, ".part"));
}

TEST_F(RecorderTest, OldPartsAreRemovedOnlyWhenTheNewFileIsComplete) {
    for (const std::string text : {"first", "second", "third"}) {
        Recorder recorder{folder, all, Existing::overwrite};
        recorder.write(Fid{1}, bytes(text));
    }
    EXPECT_EQ(content(one, ".part"), "first");
    EXPECT_EQ(content(one, ".2.part"), "second");
    EXPECT_EQ(content(one, ".3.part"), "third");
    EXPECT_THAT(refusal(), HasSubstr("part; give another folder")) << "the files are recordings";
    EXPECT_THAT(refusal(Existing::append), HasSubstr("part; give it another name"));
    record("fourth", true, Existing::overwrite);
    EXPECT_EQ(content(one), "fourth");
    for (const auto* suffix : {".part", ".2.part", ".3.part", ".4.part"})
        EXPECT_FALSE(exists(one, suffix)) << suffix;
}

TEST_F(RecorderTest, OverwritingFollowsNoLink) {
    std::filesystem::create_directories(folder);
    std::ofstream{path("elsewhere")} << "precious";
    std::filesystem::create_symlink(path("elsewhere"), path(one, ".part"));
    record("new", true, Existing::overwrite);
    EXPECT_EQ(content("elsewhere"), "precious");
    EXPECT_EQ(content(one), "new");
    EXPECT_FALSE(exists(one, ".part"));
}

TEST_F(RecorderTest, MoreFidsThanDescriptorsAreWrittenWhole) {
    Recorder recorder{folder, all, Existing::refuse, 3};
    for (int round = 0; round < 3; ++round)
        for (std::uint64_t fid = 0; fid < 10; ++fid)
            recorder.write(Fid{fid}, bytes(std::to_string(round)));
    recorder.finish(whole);
    for (std::uint64_t fid = 0; fid < 10; ++fid)
        EXPECT_EQ(content("000000000000000" + std::to_string(fid)), "012");
}

TEST_F(RecorderTest, AFullDiskIsAnErrorThatNamesTheFile) {
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink("/dev/full", path(one));
    Recorder recorder{folder, all, Existing::append};
    try {
        recorder.write(Fid{1}, bytes("x"));
        recorder.finish(whole);
        FAIL() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::no_space_on_device);
        EXPECT_THAT(error.what(), HasSubstr("0000000000000001.part"));
    }
    EXPECT_FALSE(exists(one));
}

TEST_F(RecorderTest, AFolderThatCannotBeMadeIsNamed) {
    try {
        const Recorder recorder{"/dev/null/folder", all};
        FAIL() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("/dev/null/folder"));
    }
}

} // namespace
} // namespace apps::subscribe::recorder_test
