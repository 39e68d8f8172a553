// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/sources.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace apps {
namespace {

using Outcome = Source::Outcome;

class Sources : public testing::Test {
  protected:
    std::string file(const std::string& content) {
        std::ofstream{path} << content;
        return path;
    }
    // The next message of up to `size` bytes, which is published; "" at the end.
    static std::string next(Source& source, std::size_t size) {
        std::string text(size, '?');
        const auto result = source.fill(std::as_writable_bytes(std::span{text}));
        text.resize(result.bytes);
        if (result.outcome == Outcome::message) source.accept();
        return result.outcome == Outcome::message ? text : "";
    }
    void TearDown() override { std::filesystem::remove(path); }

    std::string path = testing::TempDir() + "netio_source_" + std::to_string(::getpid());
};

TEST_F(Sources, RefusesANamedPipeInsteadOfWaitingForItsWriter) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const auto source = make_file_source(path, false);
    EXPECT_THAT([&] { next(*source, 3); },
                testing::ThrowsMessage<std::system_error>(testing::HasSubstr("is a pipe")));
}

TEST_F(Sources, AFileIsCutIntoMessagesAndEnds) {
    const auto source = make_file_source(file("abcdefgh"), false);
    EXPECT_EQ(next(*source, 3), "abc");
    EXPECT_EQ(next(*source, 1), "d");
    EXPECT_EQ(next(*source, 10), "efgh");
    EXPECT_EQ(next(*source, 10), "");
    EXPECT_EQ(next(*source, 10), "");
}

TEST_F(Sources, ARepeatedFileBeginsAgain) {
    const auto source = make_file_source(file("abcd"), true);
    EXPECT_EQ(next(*source, 3), "abc");
    EXPECT_EQ(next(*source, 3), "d");
    EXPECT_EQ(next(*source, 3), "abc");
}

// What is filled and not accepted is filled again, also where the size has changed meanwhile.
TEST_F(Sources, WhatWasNotPublishedComesAgain) {
    std::array<std::byte, 2> two{};
    const auto in_file = make_file_source(file("abcd"), true);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ASSERT_EQ(::write(ends[1], "abcd", 4), 4);
    ::close(ends[1]);
    const auto in_pipe = make_pipe_source(ends[0]);
    for (Source* const source : {in_file.get(), in_pipe.get()}) {
        EXPECT_EQ(source->fill(two).bytes, 2U);
        EXPECT_EQ(next(*source, 3), "abc");
        EXPECT_EQ(source->fill(two).bytes, 1U);
        EXPECT_EQ(next(*source, 3), "d");
    }
    EXPECT_EQ(next(*in_file, 3), "abc") << "from the beginning";
    EXPECT_EQ(next(*in_pipe, 3), "");
    ::close(ends[0]);
    const auto pattern = make_pattern_source(netio::pubsub::Fid{1}, false);
    std::array<std::byte, 40> first{};
    std::array<std::byte, 40> again{};
    pattern->fill(first);
    pattern->fill(again);
    EXPECT_EQ(first, again);
    pattern->accept();
    pattern->fill(again);
    EXPECT_NE(first, again);
}

TEST_F(Sources, AnEmptyFileEndsAlsoWhenRepeated) {
    EXPECT_EQ(next(*make_file_source(file(""), false), 3), "");
    EXPECT_EQ(next(*make_file_source(file(""), true), 3), "");
}

TEST_F(Sources, AMissingFileIsNamed) {
    const auto source = make_file_source("/nowhere/at/all", false);
    std::array<std::byte, 4> memory;
    try {
        source->fill(memory);
        FAIL() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("/nowhere/at/all"));
        EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
    }
}

TEST_F(Sources, APipeWaitsForWholeMessagesAndSendsTheRestAtTheEnd) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const auto source = make_pipe_source(ends[0]);
    EXPECT_EQ(source->wait_fd(), ends[0]);
    std::array<std::byte, 4> memory;
    EXPECT_EQ(source->fill(memory).outcome, Outcome::not_ready);
    ASSERT_EQ(::write(ends[1], "abc", 3), 3);
    EXPECT_EQ(source->fill(memory).outcome, Outcome::not_ready);
    ASSERT_EQ(::write(ends[1], "defghij", 7), 7);
    EXPECT_EQ(next(*source, 4), "abcd");
    EXPECT_EQ(next(*source, 4), "efgh");
    ::close(ends[1]);
    EXPECT_EQ(next(*source, 4), "ij");
    EXPECT_EQ(next(*source, 4), "");
    ::close(ends[0]);
}

} // namespace
} // namespace apps
