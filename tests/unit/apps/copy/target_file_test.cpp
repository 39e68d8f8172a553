// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/sender.hpp"
#include "apps/copy/served_folder.hpp"
#include "apps/copy/target_file.hpp"
#include "netio/memory/buffer.hpp"
#include "tests/unit/apps/common/refused_calls.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

namespace apps::copy::target_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TargetFileTest : public testing::Test {
  protected:
    TargetFileTest() {
        fs::create_directories(root + "/served/inner");
        folder.emplace(root + "/served");
    }
    ~TargetFileTest() override { fs::remove_all(root); }

    static std::span<const std::byte> bytes(std::string_view text) {
        return std::as_bytes(std::span{text});
    }
    static Digest digest(std::string_view text) {
        Checksum checksum{ChecksumKind::xxh3_128};
        checksum.add(bytes(text));
        return checksum.digest();
    }
    static Open open(std::string name, std::string_view content) {
        return {.name = std::move(name), .size_bytes = content.size(), .mode = 0644};
    }
    std::string path(const std::string& name) const { return root + "/served/" + name; }
    std::string content(const std::string& name) const {
        std::ifstream in{path(name), std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    void put(const std::string& name, const std::string& text) const {
        std::ofstream{path(name), std::ios::binary} << text;
    }
    std::string refusal_of(const Open& request) const {
        try {
            TargetFile file{request};
            for (int tries = 0; tries < 1000 && !file.examine(*folder, {}); ++tries) {
            }
        } catch (const std::exception& error) {
            return error.what();
        }
        return "not refused";
    }
    void receive(const Open& request, std::string_view text) const {
        TargetFile file{request};
        static_cast<void>(file.examine(*folder, {}));
        file.start(0);
        file.write(bytes(text));
        file.finish(digest(text));
    }

    std::string root = testing::TempDir() + "netio_target_" + std::to_string(::getpid());
    std::optional<ServedFolder> folder;
};

TEST_F(TargetFileTest, HasItsNameOnlyWhenItIsWhole) {
    TargetFile file{open("inner/a", "one two")};
    EXPECT_EQ(file.examine(*folder, {}).value().offset_bytes, 0U);
    file.start(0);
    file.write(bytes("one "));
    EXPECT_EQ(content("inner/.a.netio-part"), "one ");
    EXPECT_FALSE(fs::exists(path("inner/a")));
    file.write(bytes("two"));
    file.finish(digest("one two"));
    EXPECT_EQ(content("inner/a"), "one two");
    EXPECT_FALSE(fs::exists(path("inner/.a.netio-part")));
}

TEST_F(TargetFileTest, AnEmptyFileIsAFile) {
    receive(open("empty", ""), "");
    EXPECT_TRUE(fs::exists(path("empty")));
    EXPECT_EQ(fs::file_size(path("empty")), 0U);
}

TEST_F(TargetFileTest, HasTheDateAndThePermissionsOfTheSource) {
    Open request = open("a", "x");
    request.mode = 0500;
    request.modified_ns = 1'234'567'890'123'456'789;
    receive(request, "x");
    struct stat status {};
    ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0500U);
    EXPECT_EQ(status.st_mtim.tv_sec, 1'234'567'890);
    EXPECT_EQ(status.st_mtim.tv_nsec, 123'456'789);
}

TEST_F(TargetFileTest, GoesOnWhereTheLastAttemptEnded) {
    {
        TargetFile file{open("a", "one two")};
        static_cast<void>(file.examine(*folder, {}));
        file.start(0);
        file.write(bytes("one "));
    }
    TargetFile file{open("a", "one two")};
    const Answer answer = file.examine(*folder, {}).value();
    EXPECT_EQ(answer.outcome, Answer::Outcome::accepted);
    EXPECT_EQ(answer.offset_bytes, 4U);
    EXPECT_EQ(answer.digest, digest("one "));
    file.start(4);
    file.write(bytes("two"));
    file.finish(digest("one two"));
    EXPECT_EQ(content("a"), "one two");
}

// Page-aligned like the buffers of a copy.
class AlignedText {
  public:
    explicit AlignedText(std::size_t size) : memory_{size} {
        for (std::size_t i = 0; i < size; ++i)
            memory_.data()[i] = static_cast<std::byte>(i * 7 + i / 4096);
    }
    std::span<const std::byte> bytes() const { return memory_.memory(); }
    std::string_view text() const {
        return {reinterpret_cast<const char*>(memory_.data()), memory_.size()};
    }

  private:
    netio::RegisteredBuffer memory_;
};

TEST_F(TargetFileTest, ALargeOneGoesOnAtAWholeBlock) {
    const AlignedText source{(16U << 20) + 777};
    put(".a.netio-part", std::string{source.text().substr(0, 5'000'001)});
    TargetFile file{open("a", source.text())};
    const Answer answer = file.examine(*folder, {}).value();
    EXPECT_EQ(answer.offset_bytes, 4'997'120U);
    EXPECT_EQ(answer.digest, digest(source.text().substr(0, 4'997'120)));
    file.start(4'997'120);
    file.write(source.bytes().subspan(4'997'120));
    file.finish(digest(source.text()));
    EXPECT_TRUE(content("a") == source.text());
}

TEST_F(TargetFileTest, RestartsOverAPartOfAnotherFile) {
    put(".a.netio-part", "ONE two and much more");
    TargetFile file{open("a", "one")};
    EXPECT_EQ(file.examine(*folder, {}).value().offset_bytes, 0U) << "longer than the source";
    file.start(0);
    file.write(bytes("one"));
    file.finish(digest("one"));
    EXPECT_EQ(content("a"), "one");
}

TEST_F(TargetFileTest, AWrongChecksumLeavesNothing) {
    TargetFile file{open("a", "one")};
    static_cast<void>(file.examine(*folder, {}));
    file.start(0);
    file.write(bytes("one"));
    EXPECT_THROW(file.finish(digest("two")), std::runtime_error);
    EXPECT_TRUE(fs::is_empty(path("inner")));
    EXPECT_FALSE(fs::exists(path("a")));
    EXPECT_FALSE(fs::exists(path(".a.netio-part")));
}

TEST_F(TargetFileTest, AnAttemptWithoutAByteLeavesNothing) {
    {
        TargetFile file{open("a", "one")};
        static_cast<void>(file.examine(*folder, {}));
        file.start(0);
    }
    EXPECT_FALSE(fs::exists(path(".a.netio-part")));
}

TEST_F(TargetFileTest, ReplacesAFileOnlyOnRequest) {
    put("a", "old content");
    EXPECT_THAT(refusal_of(open("a", "new")), HasSubstr("--overwrite"));
    EXPECT_FALSE(fs::exists(path(".a.netio-part")));
    Open request = open("a", "new");
    request.overwrite = true;
    receive(request, "new");
    EXPECT_EQ(content("a"), "new");
}

TEST_F(TargetFileTest, AFileThatAppearsDuringTheTransferIsNotReplaced) {
    TargetFile file{open("a", "new")};
    static_cast<void>(file.examine(*folder, {}));
    file.start(0);
    file.write(bytes("new"));
    put("a", "older");
    EXPECT_THROW(file.finish(digest("new")), std::runtime_error);
    EXPECT_EQ(content("a"), "older");
}

TEST_F(TargetFileTest, ReportsTheChecksumOfAFileOfTheSameSize) {
    put("a", "same");
    TargetFile file{open("a", "same")};
    const Answer answer = file.examine(*folder, {}).value();
    EXPECT_EQ(answer.outcome, Answer::Outcome::present);
    EXPECT_EQ(answer.digest, digest("same"));
}

TEST_F(TargetFileTest, APartThatAnotherSenderWritesIsNotChanged) {
    TargetFile first{open("a", "one")};
    static_cast<void>(first.examine(*folder, {}));
    first.start(0);
    first.write(bytes("o"));
    EXPECT_THAT(refusal_of(open("a", "one")), HasSubstr("another sender"));
    EXPECT_EQ(content(".a.netio-part"), "o");
}

TEST_F(TargetFileTest, AnAbandonedPartIsUsedByTheNextAttempt) {
    auto first = std::make_unique<TargetFile>(open("a", "one"));
    static_cast<void>(first->examine(*folder, {}));
    first->start(0);
    first->write(bytes("o"));
    TargetFile second{open("a", "one")};
    EXPECT_FALSE(second.examine(*folder, {}));
    first.reset();
    const std::optional<Answer> answer = second.examine(*folder, {});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->offset_bytes, 1U);
}

TEST_F(TargetFileTest, KeepsTwoWritersApartWhereLocksAreUnavailable) {
    constexpr int dvs = 524; // kernel-internal ENOTSUPP, which some network file systems return
    for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EPERM, EBADF, dvs}) {
        const apps::test::Refusal refusal{apps::test::refused_calls().flock, error};
        const std::string name = std::to_string(error);
        {
            TargetFile first{open(name, "one")};
            ASSERT_TRUE(first.examine(*folder, {})) << error;
            first.start(0);
            first.write(bytes("one"));
            EXPECT_THAT(refusal_of(open(name, "two")), HasSubstr("another sender"));
            first.finish(digest("one"));
        }
        EXPECT_EQ(content(name), "one");
        receive(open("next", "two"), "two");
        fs::remove(path("next"));
    }
}

TEST_F(TargetFileTest, AServerWarnsWhereLocksAreUnavailable) {
    EXPECT_EQ(folder->limitation(), "");
    const apps::test::Refusal refusal{apps::test::refused_calls().flock, ENOLCK};
    EXPECT_THAT(ServedFolder{root}.limitation(), HasSubstr("run only one server on this folder"));
}

TEST_F(TargetFileTest, NeedsNoFsyncOfItsFolder) {
    for (const int error : {EINVAL, EOPNOTSUPP, ENOSYS, EBADF}) {
        const apps::test::Refusal refusal{apps::test::refused_calls().fsync_of_folder, error};
        receive(open(std::to_string(error), "one"), "one");
    }
    const apps::test::Refusal refusal{apps::test::refused_calls().fsync_of_folder, EIO};
    EXPECT_THROW(receive(open("a", "one"), "one"), std::system_error);
}

TEST_F(TargetFileTest, NothingLeadsOutOfTheFolder) {
    fs::create_directory(root + "/outside");
    fs::create_directory_symlink(root + "/outside", path("absolute"));
    fs::create_directory_symlink("../outside", path("relative"));
    fs::create_directory_symlink("../../outside", path("inner/deep"));
    for (const std::string name : {"../a", "/etc/a", "absolute/a", "relative/a", "inner/deep/a",
                                   "inner/../../outside/a", "a\n", ""}) {
        EXPECT_NE(refusal_of(open(name, "x")), "not refused") << name;
    }
    EXPECT_THAT(refusal_of(open("relative/a", "x")), HasSubstr("leads out of the served folder"));
    EXPECT_TRUE(fs::is_empty(root + "/outside"));
}

// A right to write to one folder does not extend to folders that links inside it point to.
TEST_F(TargetFileTest, NothingLeadsOutOfTheFolderThatAKeyPermits) {
    fs::create_directories(path("mine/sub"));
    fs::create_directory(path("theirs"));
    fs::create_directory_symlink("../theirs", path("mine/link"));
    fs::create_directory_symlink("sub", path("mine/within"));
    fs::create_directory_symlink("mine", path("alias"));
    const auto refusal_within = [&](const std::string& name, const std::string& within) {
        TargetFile file{open(name, "x")};
        try {
            static_cast<void>(file.examine(*folder, {}, within));
        } catch (const std::exception& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    EXPECT_THAT(refusal_within("mine/link/a", "mine"),
                HasSubstr("leads out of the folder mine, which the key permits"));
    EXPECT_EQ(refusal_within("mine/link/a", "."), "");
    EXPECT_EQ(refusal_within("mine/sub/a", "mine"), "");
    EXPECT_EQ(refusal_within("mine/within/a", "mine"), "");
    EXPECT_EQ(refusal_within("mine/a", "mine"), "");
    EXPECT_EQ(refusal_within("alias/a", "alias"), "") << "link of the server itself";
}

TEST_F(TargetFileTest, ALinkInThePlaceOfThePartIsNotWrittenThrough) {
    std::ofstream{root + "/victim"} << "precious";
    fs::create_symlink(root + "/victim", path(".a.netio-part"));
    EXPECT_THAT(refusal_of(open("a", "x")), HasSubstr("cannot write a"));
    fs::create_hard_link(root + "/victim", path(".b.netio-part"));
    EXPECT_THAT(refusal_of(open("b", "x")), HasSubstr("not a plain file"));
    EXPECT_EQ(fs::file_size(root + "/victim"), 8U);
}

TEST_F(TargetFileTest, ALinkOfTheFinalNameIsReplacedAndNotFollowed) {
    std::ofstream{root + "/victim"} << "precious";
    fs::create_symlink(root + "/victim", path("a"));
    EXPECT_THAT(refusal_of(open("a", "precious")), HasSubstr("--overwrite"));
    Open request = open("a", "new");
    request.overwrite = true;
    receive(request, "new");
    EXPECT_EQ(fs::file_size(root + "/victim"), 8U);
    EXPECT_FALSE(fs::is_symlink(path("a")));
}

TEST_F(TargetFileTest, AFolderOfThatNameOrAMissingFolderIsReported) {
    EXPECT_THAT(refusal_of(open("inner", "x")), HasSubstr("is a folder"));
    EXPECT_THAT(refusal_of(open("nowhere/a", "x")), HasSubstr("cannot open the folder nowhere"));
}

TEST_F(TargetFileTest, MoreThanTheDiskHasIsRefusedBeforeTheFirstByte) {
    Open request = open("a", "");
    request.size_bytes = std::uint64_t{1} << 60;
    TargetFile file{request};
    static_cast<void>(file.examine(*folder, {}));
    try {
        file.start(0);
        FAIL() << "not refused";
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("no space for the 1152921504606846976 bytes of a"));
    }
}

TEST(ServedFolder, WhatIsNoFolderIsNamed) {
    try {
        const ServedFolder folder{"/dev/null"};
        FAIL() << "no error";
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("/dev/null"));
    }
}

TEST_F(TargetFileTest, ASourceThatChangesIsNoticed) {
    put("source", "content");
    SourceFile changed{path("source"), ChecksumKind::xxh3_128};
    std::vector<std::byte> memory(7);
    changed.read(memory);
    EXPECT_EQ(changed.finish({}), digest("content"));
    std::ofstream{path("source"), std::ios::app} << "more";
    EXPECT_THROW(static_cast<void>(changed.finish({})), std::runtime_error);

    SourceFile shorter{path("source"), ChecksumKind::xxh3_128};
    fs::resize_file(path("source"), 3);
    EXPECT_THAT([&] { shorter.read(memory); },
                ThrowsMessage<std::runtime_error>(HasSubstr("was changed while it was copied")));
}

TEST_F(TargetFileTest, ASourceWhoseSizeIsNotTrueIsNotTakenForOneThatHasChanged) {
    const char* const attribute = "/sys/class/net/lo/mtu"; // its size is shown as one page
    if (!fs::exists(attribute)) GTEST_SKIP() << "needs /sys with the loopback device, as in CI";
    SourceFile source{attribute, ChecksumKind::xxh3_128};
    std::vector<std::byte> memory(source.size_bytes());
    EXPECT_THAT([&] { source.read(memory); },
                ThrowsMessage<std::runtime_error>(HasSubstr("fewer bytes than its size of 4096")));
}

TEST_F(TargetFileTest, WithoutOverwriteRightsTheSenderCannotReplaceFiles) {
    constexpr auto no_overwrite = TargetFile::Access::no_overwrite;
    put("a", "first");
    Open request = open("a", "other");
    request.overwrite = true;
    {
        TargetFile file{request, no_overwrite};
        EXPECT_EQ(file.examine(*folder, {}).value().outcome, Answer::Outcome::present)
            << "compares only";
    }
    request.size_bytes = 4;
    TargetFile another{request, no_overwrite};
    EXPECT_THROW(static_cast<void>(another.examine(*folder, {})), std::runtime_error);
    // Nor if the file appears during the transfer.
    for (const auto access : {no_overwrite, TargetFile::Access::write_only}) {
        Open later = open("late", "text");
        later.overwrite = true;
        TargetFile file{later, access};
        EXPECT_EQ(file.examine(*folder, {}).value().outcome, Answer::Outcome::accepted);
        file.start(0);
        file.write(bytes("text"));
        put("late", "mine");
        EXPECT_THROW(file.finish(digest("text")), std::runtime_error);
        EXPECT_EQ(content("late"), "mine");
        fs::remove(path("late"));
    }
}

// A time before 1970 is rounded down, whatever its fraction, and read in the same way.
TEST_F(TargetFileTest, ADateBeforeTheBeginningOfTimeIsKept) {
    for (const std::int64_t date : {-1LL, -1'000'000'000LL, -1'500'000'000LL, 1'500'000'000LL}) {
        const std::string name = "at" + std::to_string(date);
        Open request = open(name, "text");
        request.modified_ns = date;
        receive(request, "text");
        struct stat status {};
        ASSERT_EQ(::stat(path(name).c_str(), &status), 0);
        EXPECT_EQ(status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, date);
        const SourceFile source{path(name), ChecksumKind::xxh3_128};
        EXPECT_EQ(modified_ns_of(source.attributes()), date);
    }
}

TEST_F(TargetFileTest, WriteOnlyAccessNeitherReadsPartsNorReplacesFiles) {
    constexpr auto write_only = TargetFile::Access::write_only;
    put(partial_name("a"), "one ");
    {
        TargetFile file{open("a", "one two"), write_only};
        const Answer answer = file.examine(*folder, {}).value();
        EXPECT_EQ(answer.outcome, Answer::Outcome::accepted);
        EXPECT_EQ(answer.offset_bytes, 0U);
        EXPECT_EQ(answer.digest, digest(""));
    }
    put("b", "one two");
    for (const bool overwrite : {false, true}) {
        Open request = open("b", "one two");
        request.overwrite = overwrite;
        TargetFile file{request, write_only};
        EXPECT_THROW(static_cast<void>(file.examine(*folder, {})), std::runtime_error);
    }
}

TEST_F(TargetFileTest, ASourceThatChangesIsNoticedAlsoIfItsDateIsSetBack) {
    put("source", "content");
    const auto date = fs::last_write_time(path("source"));
    SourceFile changed{path("source"), ChecksumKind::xxh3_128};
    std::vector<std::byte> memory(7);
    changed.read(memory);
    // The clock of a file system advances slowly, so a recent change may not be visible.
    struct stat before {};
    struct stat after {};
    ASSERT_EQ(::stat(path("source").c_str(), &before), 0);
    do {
        std::fstream{path("source"), std::ios::in | std::ios::out} << "C";
        fs::last_write_time(path("source"), date);
        ASSERT_EQ(::stat(path("source").c_str(), &after), 0);
    } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    EXPECT_EQ(fs::last_write_time(path("source")), date);
    EXPECT_THROW(static_cast<void>(changed.finish({})), std::runtime_error);
}

TEST_F(TargetFileTest, ASourceWhoseSizeIsNotItsLengthIsNotCopied) {
    SourceFile source{"/proc/self/status", ChecksumKind::xxh3_128};
    EXPECT_EQ(source.size_bytes(), 0U);
    EXPECT_THROW(static_cast<void>(source.finish({})), std::runtime_error);
}

TEST_F(TargetFileTest, AnyDateFromAPeerIsAcceptedOrRefused) {
    for (const std::int64_t date : {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, INT64_MAX}) {
        Open request = open("dated", "content");
        request.modified_ns = date;
        request.overwrite = true;
        TargetFile file{request};
        static_cast<void>(file.examine(*folder, {}));
        file.start(0);
        file.write(std::as_bytes(std::span{std::string_view{"content"}}));
        try {
            file.finish(digest("content"));
        } catch (const std::system_error&) { // limits of the file system
        }
    }
}

TEST_F(TargetFileTest, ASourceIsReadFromWhereTheOtherSideGoesOn) {
    put("source", "one two");
    SourceFile source{path("source"), ChecksumKind::xxh3_128};
    EXPECT_EQ(source.skip(4, {}), digest("one "));
    std::vector<std::byte> memory(3);
    source.read(memory);
    EXPECT_EQ(source.finish({}), digest("one two"));
    source.rewind();
    EXPECT_EQ(source.skip(7, {}), digest("one two"));
}

TEST_F(TargetFileTest, OnlyARegularFileIsASource) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    for (const std::string name : {"pipe", "inner"}) {
        try {
            const SourceFile source{path(name), ChecksumKind::xxh3_128};
            ADD_FAILURE() << name;
        } catch (const std::exception& error) {
            EXPECT_THAT(error.what(), HasSubstr(path(name) + " is not a regular file"));
        }
    }
}

// A sparse file.
class Sparse {
  public:
    explicit Sparse(std::uint64_t size) : size_{size} {}
    void put(std::uint64_t position, const std::string& text) { pieces_.emplace(position, text); }
    void write(const std::string& path) const {
        std::ofstream out{path, std::ios::binary};
        for (const auto& [position, text] : pieces_) {
            out.seekp(static_cast<std::streamoff>(position));
            out << text;
        }
        out.close();
        fs::resize_file(path, size_);
    }

  private:
    std::uint64_t size_;
    std::map<std::uint64_t, std::string> pieces_;
};

std::uint64_t blocks_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks);
}

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

TEST_F(TargetFileTest, HolesAreFoundAtTheStartInTheMiddleAndAtTheEnd) {
    Sparse content{40 * mib};
    content.put(mib, "one");
    content.put(20 * mib, "two");
    content.write(root + "/source");
    const SourceFile source{root + "/source", ChecksumKind::xxh3_128};
    ASSERT_TRUE(source.is_sparse());
    const std::vector<Extent> found = source.extents(0, 64);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_LE(found[0].position, mib);
    EXPECT_GE(found[0].end(), mib + 3);
    EXPECT_LE(found[1].end(), 21 * mib);
    EXPECT_TRUE(source.extents(30 * mib, 64).empty());
    EXPECT_EQ(source.extents(0, 1).size(), 1U);
}

TEST_F(TargetFileTest, WithoutHolesInTheFileSystemAllIsData) {
    Sparse{40 * mib}.write(root + "/source");
    for (const int error : {EINVAL, EOPNOTSUPP, ENOSYS}) {
        const apps::test::Refusal refusal{apps::test::refused_calls().seek_data, error};
        const SourceFile source{root + "/source", ChecksumKind::xxh3_128};
        EXPECT_EQ(source.extents(0, 64), (std::vector<Extent>{{.position = 0, .bytes = 40 * mib}}));
    }
}

TEST_F(TargetFileTest, AHoleThatIsLongIsPassedInSteps) {
    Sparse content{3 * hole_step_bytes};
    content.put(2 * hole_step_bytes + mib, "x");
    content.write(root + "/source");
    const SourceFile source{root + "/source", ChecksumKind::xxh3_128};
    EXPECT_EQ(source.extents(0, 64), (std::vector<Extent>{{.position = hole_step_bytes}}));
    EXPECT_EQ(source.extents(hole_step_bytes, 64),
              (std::vector<Extent>{{.position = 2 * hole_step_bytes}}));
    EXPECT_EQ(source.extents(2 * hole_step_bytes, 64).size(), 1U);
}

TEST_F(TargetFileTest, AHoleTakesNoRoomAndCountsAsZeros) {
    const std::string zeros(3 * mib, '\0');
    const std::string whole = zeros + "one" + zeros + "two" + zeros;
    TargetFile file{open("a", whole)};
    static_cast<void>(file.examine(*folder, {}));
    file.start(0, 6);
    file.pass_hole(3 * mib, {});
    file.write(bytes("one"));
    file.pass_hole(6 * mib + 3, {});
    file.write(bytes("two"));
    EXPECT_EQ(file.finish(digest(whole)), "");
    EXPECT_TRUE(content("a") == whole);
    EXPECT_LT(blocks_of(path("a")), 4 * mib / 512);
}

TEST_F(TargetFileTest, ALongSparseFileNeedsRoomForItsDataOnly) {
    Open request = open("a", "");
    request.size_bytes = std::uint64_t{1} << 43; // 8 TiB; the limit of ext4 is 16
    TargetFile file{request};
    ASSERT_TRUE(file.examine(*folder, {}));
    EXPECT_NO_THROW(file.start(0, 4096));
    EXPECT_THAT([&] { file.start(0); },
                ThrowsMessage<std::runtime_error>(HasSubstr("no space for the")));
}

TEST_F(TargetFileTest, GoesOnAfterAHole) {
    Sparse content{10 * mib};
    content.put(4 * mib, "x");
    content.write(path(".a.netio-part"));
    Open request = open("a", "");
    request.size_bytes = 10 * mib;
    TargetFile file{request};
    const Answer answer = file.examine(*folder, {}).value();
    EXPECT_EQ(answer.offset_bytes, 10 * mib);
    std::string whole(10 * mib, '\0');
    whole[4 * mib] = 'x';
    EXPECT_EQ(answer.digest, digest(whole));
}

TEST_F(TargetFileTest, DatesThatNanosecondsCannotCountAreKept) {
    for (const std::int64_t seconds : {std::int64_t{9'223'372'037}, std::int64_t{10'413'792'000},
                                       std::int64_t{15'032'385'535}}) {
        const std::string name = std::to_string(seconds);
        TargetFile file{open(name, "x")};
        static_cast<void>(file.examine(*folder, {}));
        file.start(0);
        file.write(bytes("x"));
        file.set({.modified_s = seconds, .modified_ns = 0, .mode = 0600});
        const std::string notes = file.finish(digest("x"));
        struct stat status {};
        ASSERT_EQ(::stat(path(name).c_str(), &status), 0);
        // A file system with 32-bit seconds reports it.
        EXPECT_EQ(notes.empty(), status.st_mtim.tv_sec == seconds) << notes;
        EXPECT_EQ(SourceFile(path(name), ChecksumKind::xxh3_128).attributes().modified_s,
                  status.st_mtim.tv_sec);
        EXPECT_EQ(status.st_mode & 0777U, 0600U);
    }
}

TEST_F(TargetFileTest, ADateOutsideTheLimitsOfTheFileSystemIsReported) {
    TargetFile file{open("a", "x")};
    static_cast<void>(file.examine(*folder, {}));
    file.start(0);
    file.write(bytes("x"));
    file.set({.modified_s = INT64_MAX, .modified_ns = 0, .mode = 0600});
    EXPECT_THAT(file.finish(digest("x")), HasSubstr("its date could not be set"));
    EXPECT_EQ(content("a"), "x");
}

TEST_F(TargetFileTest, ContentIsKeptWhereAttributesAreRefused) {
    const apps::test::Refusal no_modes{apps::test::refused_calls().fchmod, EPERM};
    const apps::test::Refusal no_dates{apps::test::refused_calls().futimens, EPERM};
    TargetFile file{open("a", "x")};
    static_cast<void>(file.examine(*folder, {}));
    file.start(0);
    file.write(bytes("x"));
    EXPECT_EQ(file.finish(digest("x")),
              "its permissions could not be set (Operation not permitted); "
              "its date could not be set (Operation not permitted)");
    EXPECT_EQ(content("a"), "x");
}

TEST_F(TargetFileTest, GivesAFileThatIsThereTheAttributesOfTheSource) {
    put("a", "x");
    ::chmod(path("a").c_str(), 0644);
    for (const bool may_change : {false, true}) {
        TargetFile file{open("a", "x")};
        ASSERT_EQ(file.examine(*folder, {}).value().outcome, Answer::Outcome::present);
        const Attributes wanted{.modified_s = 978'307'200, .modified_ns = 0, .mode = 0600};
        EXPECT_EQ(file.repair(wanted, may_change).empty(), may_change);
        EXPECT_EQ(SourceFile(path("a"), ChecksumKind::xxh3_128).attributes() == wanted, may_change);
        EXPECT_EQ(file.repair(wanted, may_change).empty(), may_change);
    }
}

} // namespace
} // namespace apps::copy::target_file_test
