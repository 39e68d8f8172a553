// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/recorder.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace apps {
namespace {

using netio::pubsub::Fid;

class RecorderTest : public testing::Test {
  protected:
    ~RecorderTest() override { std::filesystem::remove_all(folder); }
    static std::span<const std::byte> bytes(const std::string& text) {
        return std::as_bytes(std::span{text});
    }
    std::string content(const std::string& name) const {
        std::ifstream in{folder + "/" + name, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    bool exists(const std::string& name) const {
        return std::filesystem::exists(folder + "/" + name);
    }
    std::string folder = testing::TempDir() + "netio_recorder_" + std::to_string(::getpid()) + "/a";
};

TEST_F(RecorderTest, WritesOneFileAFidAndNamesItAtTheEnd) {
    Recorder recorder{folder};
    recorder.write(Fid{0xabc}, bytes("one "));
    recorder.write(Fid{1}, bytes("other"));
    recorder.write(Fid{0xabc}, bytes("two"));
    EXPECT_TRUE(exists("0000000000000abc.part"));
    EXPECT_FALSE(exists("0000000000000abc"));
    recorder.finish();
    EXPECT_EQ(content("0000000000000abc"), "one two");
    EXPECT_EQ(content("0000000000000001"), "other");
    EXPECT_FALSE(exists("0000000000000abc.part"));
}

TEST_F(RecorderTest, WhatWasNotFinishedKeepsItsTemporaryName) {
    {
        Recorder recorder{folder};
        recorder.write(Fid{1}, bytes("half"));
    }
    EXPECT_TRUE(exists("0000000000000001.part"));
    EXPECT_FALSE(exists("0000000000000001"));
}

TEST_F(RecorderTest, MoreFidsThanDescriptorsAreWrittenWhole) {
    Recorder recorder{folder, 3};
    for (int round = 0; round < 3; ++round)
        for (std::uint64_t fid = 0; fid < 10; ++fid)
            recorder.write(Fid{fid}, bytes(std::to_string(round)));
    recorder.finish();
    for (std::uint64_t fid = 0; fid < 10; ++fid)
        EXPECT_EQ(content("000000000000000" + std::to_string(fid)), "012");
}

TEST_F(RecorderTest, AFullDiskIsAnErrorThatNamesTheFile) {
    Recorder recorder{folder};
    std::filesystem::create_symlink("/dev/full", folder + "/0000000000000001.part");
    try {
        recorder.write(Fid{1}, bytes("x"));
        recorder.finish();
        FAIL() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::no_space_on_device);
        EXPECT_THAT(error.what(), testing::HasSubstr("0000000000000001.part"));
    }
    EXPECT_FALSE(exists("0000000000000001"));
}

TEST_F(RecorderTest, AFolderThatCannotBeMadeIsNamed) {
    try {
        const Recorder recorder{"/dev/null/folder"};
        FAIL() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("/dev/null/folder"));
    }
}

} // namespace
} // namespace apps
