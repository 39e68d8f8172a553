// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/served_folder.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace apps::copy::path_test {
namespace {

using namespace std::string_literals;

TEST(CopyPath, TakesNamesBeneathAFolder) {
    for (const std::string& path : {"a"s, "a/b"s, "run 7/file.raw"s, "..."s, "a..b"s, ".hidden"s,
                                    "-rf"s, "\xc3\xa4"s, std::string(243, 'x'), ".netio-part.x"s}) {
        EXPECT_EQ(check_path(path), PathFlaw::none) << path;
    }
}

TEST(CopyPath, RefusesWhatLeadsElsewhere) {
    for (const std::string& path : {".."s, "../a"s, "a/.."s, "a/../b"s, "."s, "./a"s, "a/./b"s}) {
        EXPECT_EQ(check_path(path), PathFlaw::upwards) << path;
    }
    for (const std::string& path : {"/"s, "/a"s, "//a"s})
        EXPECT_EQ(check_path(path), PathFlaw::absolute) << path;
    for (const std::string& path : {""s, "a/"s, "a//b"s})
        EXPECT_EQ(check_path(path), PathFlaw::empty) << path;
}

TEST(CopyPath, RefusesWhatCannotBeAName) {
    for (const std::string& path : {"a\0b"s, "\0"s, "a\nb"s, "\x1b[2J"s, "a\x7f"s})
        EXPECT_EQ(check_path(path), PathFlaw::control_character) << path;
    // A one-byte escape character, as UTF-8 and as a single byte; marks that reverse the displayed
    // name.
    for (const std::string& path : {"a\xc2\x9b\x32J"s, "a\x9b\x32J"s, "a\xe2\x80\xae\x67pj.exe"s,
                                    "\xe2\x81\xa6"s, "\xd8\x9c"s})
        EXPECT_EQ(check_path(path), PathFlaw::control_character) << path;
    // Zero-width space and joiner, byte order mark, soft hyphen, Hangul filler, tag, variation
    // selector: they make two names look equal.
    for (const std::string& path :
         {"a\xe2\x80\x8b"s, "a\xe2\x80\x8d"s, "\xef\xbb\xbf\x61"s, "a\xc2\xad\x62"s,
          "\xe3\x85\xa4"s, "a\xf3\xa0\x80\x81"s, "a\xef\xb8\x8f/b"s})
        EXPECT_EQ(check_path(path), PathFlaw::control_character) << path;
    EXPECT_EQ(check_path("m\xfcll"s), PathFlaw::none) << "Latin-1";
    for (const std::string& path : {std::string(244, 'x'), "a/" + std::string(244, 'x')})
        EXPECT_EQ(check_path(path), PathFlaw::too_long) << path;
    std::string deep = "a";
    while (deep.size() <= name_limit_bytes)
        deep += "/a";
    EXPECT_EQ(check_path(deep), PathFlaw::too_long);
}

TEST(CopyPath, RefusesThePartialFilesOfOthers) {
    EXPECT_EQ(check_path(".a.netio-part"), PathFlaw::partial);
    EXPECT_EQ(check_path("x/.a.netio-part"), PathFlaw::partial);
    EXPECT_EQ(check_path(partial_name("a")), PathFlaw::partial);
}

// Every accepted path has the properties that keep it below the folder.
TEST(CopyPath, AcceptsNothingWithAComponentThatLeadsUpwards) {
    std::mt19937 random{1};
    const std::string alphabet = "../a\0\n"s;
    std::size_t accepted = 0;
    for (int run = 0; run < 100'000; ++run) {
        std::string path(random() % 8, ' ');
        for (char& c : path)
            c = alphabet[random() % alphabet.size()];
        if (check_path(path) != PathFlaw::none) continue;
        ++accepted;
        const std::string framed = "/" + path + "/";
        for (const std::string& bad : {"/../"s, "/./"s, "//"s, "\0"s, "\n"s})
            EXPECT_EQ(framed.find(bad), std::string::npos) << path;
    }
    EXPECT_GT(accepted, 100U);
}

TEST(CopyPath, EveryFlawHasWords) {
    for (int i = 0; i <= static_cast<int>(PathFlaw::partial); ++i)
        EXPECT_FALSE(to_string(static_cast<PathFlaw>(i)).empty());
}

TEST(CopyPath, IsSplitIntoFolderAndLeaf) {
    EXPECT_EQ(split_path("a").folder, "");
    EXPECT_EQ(split_path("a").leaf, "a");
    EXPECT_EQ(split_path("a/b/c").folder, "a/b");
    EXPECT_EQ(split_path("a/b/c").leaf, "c");
    EXPECT_EQ(partial_name("c"), ".c.netio-part");
    EXPECT_LE(partial_name(std::string(component_limit_bytes, 'x')).size(), 255U);
}

} // namespace
} // namespace apps::copy::path_test
