// SPDX-License-Identifier: Apache-2.0
#include "pubsub/recording/recording_reader.hpp"

#include "tests/support/recording_maker.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>

namespace netio::recording_reader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

RecordingTime at(std::int64_t ns) {
    return RecordingTime{std::chrono::nanoseconds{ns}};
}

class RecordingReaderTest : public testing::Test {
  protected:
    std::string path(const std::string& name = "run.mcap") const {
        return (folder_.path() / name).string();
    }
    std::string write(std::span<const std::byte> bytes,
                      const std::string& name = "run.mcap") const {
        RecordingMaker::write(path(name), bytes);
        return path(name);
    }
    // Everything that next() visits, as "fid:sequence:text" or "event:EVENT".
    static std::vector<std::string> all(RecordingReader& reader) {
        std::vector<std::string> found;
        while (reader.next()) {
            if (const auto* const event = reader.event()) {
                found.push_back("event:" + event->event);
                continue;
            }
            const auto& message = reader.message();
            found.push_back(std::to_string(to_integer(message.fid)) + ":" +
                            std::to_string(message.sequence) + ":" +
                            std::string{reinterpret_cast<const char*>(message.bytes.data()),
                                        message.bytes.size()});
        }
        return found;
    }
    static std::vector<std::string> all(const std::string& path,
                                        const RecordingReader::Options& options = {}) {
        RecordingReader reader{path, options};
        return all(reader);
    }
    static std::string refusal(const std::string& path,
                               const RecordingReader::Options& options = {}) {
        try {
            all(path, options);
        } catch (const RecordingError& error) {
            return error.what();
        }
        return "none";
    }
    static RecordingMaker three_chunks(const std::string& compression = {}) {
        RecordingMaker maker{compression};
        maker.message(Fid{1}, 1, 1000, "a").message(Fid{2}, 1, 1010, "bb", 7).end_chunk();
        maker.message(Fid{2}, 2, 1020, "").end_chunk();
        maker.event(1025, R"({"event":"lost","fids":"1","count":3,"reason":"dropped"})");
        maker.message(Fid{1}, 5, 1030, "ccc").end_chunk();
        return maker;
    }
    static constexpr auto everything = {"1:1:a", "2:1:bb", "2:2:", "event:lost", "1:5:ccc"};

    test::TemporaryFolder folder_;
};

TEST_F(RecordingReaderTest, ReadsEveryCompressionInOrder) {
    for (const char* const compression : {"", "lz4", "zstd"}) {
        SCOPED_TRACE(compression);
        RecordingMaker maker = three_chunks(compression);
        RecordingReader reader{write(maker.finished())};
        EXPECT_THAT(all(reader), testing::ElementsAreArray(everything));
        EXPECT_THAT(reader.torn(), IsEmpty());
        ASSERT_THAT(reader.files(), SizeIs(1));
        EXPECT_TRUE(reader.files()[0].has_summary);
        EXPECT_EQ(reader.files()[0].messages, 5U);
        EXPECT_EQ(reader.passed_bytes(), reader.total_bytes());
    }
}

TEST_F(RecordingReaderTest, ReportsAllFieldsOfMessagesAndEvents) {
    RecordingReader reader{write(three_chunks().finished())};
    ASSERT_TRUE(reader.next() && reader.next());
    EXPECT_EQ(reader.message().status, 7);
    EXPECT_EQ(reader.message().arrival_time, at(1010));
    EXPECT_FALSE(reader.message().has_publish_time);
    EXPECT_EQ(reader.message().publisher, "10.0.0.1:1");
    ASSERT_TRUE(reader.next() && reader.next());
    ASSERT_NE(reader.event(), nullptr);
    EXPECT_EQ(reader.event()->count, 3U);
    EXPECT_EQ(reader.event()->reason, "dropped");
    EXPECT_EQ(reader.event()->fids, "1");
}

TEST_F(RecordingReaderTest, SelectsByFidAndTimeWithAndWithoutIndex) {
    RecordingMaker maker = three_chunks("lz4");
    for (const auto& bytes : {maker.finished(), maker.unfinished()}) {
        RecordingReader reader{write(bytes)};
        reader.select({.fids = FidSet{{2, 2}}});
        EXPECT_THAT(all(reader), ElementsAre("2:1:bb", "2:2:", "event:lost"));
        reader.select({.from = at(1010), .until = at(1025)});
        EXPECT_THAT(all(reader), ElementsAre("2:1:bb", "2:2:"));
        reader.select({});
        EXPECT_THAT(all(reader), testing::ElementsAreArray(everything));
        EXPECT_EQ(reader.begin_time(), at(1000));
    }
}

// With the index, a damaged chunk that has no selected message is not read.
TEST_F(RecordingReaderTest, ReadsOnlyChunksWithSelectedMessages) {
    RecordingMaker maker = three_chunks();
    mcap::Bytes bytes = maker.finished();
    bytes[static_cast<std::size_t>(maker.chunk_offsets[1]) + 60] ^= std::byte{1};
    RecordingReader reader{write(bytes)};
    EXPECT_THROW(all(reader), RecordingError);
    reader.select({.fids = FidSet{{1, 1}}});
    EXPECT_THAT(all(reader), ElementsAre("1:1:a", "event:lost", "1:5:ccc"));
}

TEST_F(RecordingReaderTest, NamesFileOffsetAndRemedyOfDamage) {
    RecordingMaker maker = three_chunks("zstd");
    mcap::Bytes bytes = maker.finished();
    bytes[static_cast<std::size_t>(maker.chunk_offsets[1]) + 60] ^= std::byte{1};
    const std::string file = write(bytes);
    EXPECT_THAT(refusal(file),
                testing::AllOf(HasSubstr(file),
                               HasSubstr("offset " + std::to_string(maker.chunk_offsets[1])),
                               HasSubstr("netio file repair")));
    RecordingReader reader{file, {.on_damage = RecordingReader::OnDamage::skip}};
    EXPECT_THAT(all(reader), ElementsAre("1:1:a", "2:1:bb", "event:lost", "1:5:ccc"));
    ASSERT_THAT(reader.damage(), SizeIs(1));
    EXPECT_EQ(reader.damage()[0].offset, maker.chunk_offsets[1]);
}

// A torn file has a prefix of the messages: all of its whole chunks.
TEST_F(RecordingReaderTest, ReadsTheWholeChunksOfAFileTornAtAnyByte) {
    RecordingMaker maker = three_chunks("lz4");
    const mcap::Bytes bytes = maker.finished();
    const std::vector<std::string> whole(everything.begin(), everything.end());
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        RecordingReader reader{write(std::span{bytes}.first(length))};
        const std::vector<std::string> found = all(reader);
        std::size_t expected = 0;
        if (length >= maker.chunk_offsets[1]) expected = 2;
        if (length >= maker.chunk_offsets[2]) expected = 3;
        if (length >= maker.unfinished().size()) expected = 5;
        ASSERT_GE(found.size(), expected) << length;
        ASSERT_TRUE(std::equal(found.begin(), found.end(), whole.begin())) << length;
        ASSERT_THAT(reader.torn(), SizeIs(1)) << length;
        EXPECT_THAT(refusal(path(), {.refuse_torn = true}), HasSubstr("repair")) << length;
    }
}

// Whatever is in the file: next() ends, or throws RecordingError; nothing that is not in the
// original is found in a chunk with a checksum.
TEST_F(RecordingReaderTest, SurvivesEveryFlippedByte) {
    for (const char* const compression : {"", "lz4"}) {
        const mcap::Bytes bytes = three_chunks(compression).finished();
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            mcap::Bytes flipped = bytes;
            flipped[i] ^= std::byte{0xff};
            const std::string file = write(flipped);
            for (const auto on_damage :
                 {RecordingReader::OnDamage::refuse, RecordingReader::OnDamage::skip}) {
                try {
                    EXPECT_LE(all(file, {.on_damage = on_damage}).size(), 5U) << i;
                } catch (const RecordingError& error) {
                    EXPECT_THAT(error.what(), HasSubstr(file)) << i;
                }
            }
        }
    }
}

TEST_F(RecordingReaderTest, RefusesAbsurdLengthsWithoutAllocating) {
    mcap::Bytes bytes{three_chunks().unfinished()};
    append(bytes, mcap::ChunkFields{.message_start_time = 1,
                                    .message_end_time = 2,
                                    .uncompressed_size = std::uint64_t{1} << 60,
                                    .uncompressed_crc = 1,
                                    .compression = "zstd",
                                    .records_size = 4});
    bytes.resize(bytes.size() + 4);
    append(bytes, mcap::DataEnd{});
    EXPECT_THAT(refusal(write(bytes)), HasSubstr("chunk_memory_limit"));
    EXPECT_THAT(refusal(write(three_chunks().finished()), {.chunk_memory_limit_bytes = 50}),
                HasSubstr("chunk_memory_limit"));
}

TEST_F(RecordingReaderTest, RefusesNewerVersionsAndOtherFiles) {
    mcap::Bytes bytes = three_chunks().finished();
    bytes[5] = std::byte{'1'};
    EXPECT_THAT(refusal(write(bytes)), HasSubstr("newer version 1"));
    bytes[1] = std::byte{'X'};
    EXPECT_THAT(refusal(write(bytes)), HasSubstr("no MCAP file"));
    EXPECT_THAT(refusal(path("absent.mcap")), HasSubstr("no such file"));
    RecordingMaker maker;
    maker.add_channel("netio/fid/0x5", "netio/2", {});
    EXPECT_THAT(refusal(write(maker.end_chunk().finished())), HasSubstr("newer format netio/2"));
}

TEST_F(RecordingReaderTest, CountsMessagesOfOtherPrograms) {
    RecordingMaker maker;
    const std::uint16_t channel = maker.add_channel("/camera", "ros1", {});
    maker.raw_message(channel, 5, {}).message(Fid{1}, 1, 6, "a").end_chunk();
    RecordingReader reader{write(maker.finished())};
    EXPECT_THAT(all(reader), ElementsAre("1:1:a"));
    EXPECT_EQ(reader.foreign_messages(), 1U);
}

// A channel record outside of a chunk has no checksum.
TEST_F(RecordingReaderTest, MessagesOfADamagedChannelAreDamage) {
    RecordingMaker maker;
    const std::uint16_t channel = maker.add_channel(
        mcap::fid_topic(Fid{5}), std::string{mcap::fid_encoding}, {{"fid", "0x4"}});
    mcap::Bytes data(mcap::fid_prefix_bytes);
    mcap::store_fid_prefix(data.data(), {.sequence = 1});
    maker.raw_message(channel, 5, data).raw_message(99, 5, data).message(Fid{1}, 1, 6, "a");
    const std::string file = write(maker.end_chunk().unfinished());
    RecordingReader reader{file, {.on_damage = RecordingReader::OnDamage::skip}};
    EXPECT_THAT(all(reader), ElementsAre("1:1:a"));
    EXPECT_EQ(reader.foreign_messages(), 0U);
    ASSERT_THAT(reader.damage(), SizeIs(2));
    EXPECT_THAT(reader.damage()[0].problem, HasSubstr("channel 1, whose record is damaged"));
    EXPECT_THAT(reader.damage()[1].problem, HasSubstr("channel 99, whose record is damaged"));
    EXPECT_THAT(refusal(file), HasSubstr("netio file repair"));
}

// Every pass finds the same, for instance one for the sizes and one for the contents.
TEST_F(RecordingReaderTest, ReadsWhatAGrowingFileHadAtFirst) {
    RecordingMaker maker = three_chunks();
    const mcap::Bytes bytes{maker.unfinished()};
    const std::string file = write(std::span{bytes}.first(maker.chunk_offsets[2]));
    RecordingReader reader{file};
    const std::vector<std::string> first = all(reader);
    ASSERT_THAT(first, SizeIs(3));
    write(bytes);
    reader.rewind();
    EXPECT_EQ(all(reader), first);
    EXPECT_EQ(reader.passed_bytes(), reader.total_bytes());
}

TEST_F(RecordingReaderTest, NamesWhyAPathCannotBeRead) {
    std::filesystem::create_symlink(path("loop.mcap"), path("loop.mcap"));
    EXPECT_THAT(refusal(path("loop.mcap")), HasSubstr("cannot be read: Too many levels"));
    EXPECT_THAT(refusal(path(std::string(300, 'x'))), HasSubstr("cannot be read: File name too"));
    EXPECT_THAT(refusal(path("loop.mcap/run.mcap")), HasSubstr("cannot be read: Too many levels"));
    EXPECT_THAT(refusal(folder_.path().string()), HasSubstr("has no recording")); // the link
}

TEST_F(RecordingReaderTest, AFolderIsReadInTheOrderOfItsRecordings) {
    RecordingMaker first;
    first.message(Fid{1}, 1, 10, "a").end_chunk();
    RecordingMaker second;
    second.message(Fid{1}, 2, 20, "b").end_chunk();
    write(first.finished(), "netio-20260131T120000Z.mcap");
    write(second.finished(), "netio-20260131T120000Z-2.mcap");
    EXPECT_THAT(all(folder_.path().string()), ElementsAre("1:1:a", "1:2:b"));
}

TEST_F(RecordingReaderTest, ReadsChannelsOfAPublisher) {
    RecordingMaker maker;
    const std::uint16_t channel =
        maker.add_channel("netio/publisher/h:1", std::string{mcap::publisher_encoding}, {});
    mcap::Bytes data(mcap::publisher_prefix_bytes);
    mcap::store_publisher_prefix(data.data(), {.sequence = 9, .fid = Fid{70000}});
    maker.raw_message(channel, 5, data);
    mcap::store_publisher_prefix(data.data(), {.sequence = 1, .fid = Fid{70001}});
    maker.raw_message(channel, 6, data).end_chunk();
    RecordingReader reader{write(maker.finished())};
    reader.select({.fids = FidSet{{70000, 70000}}});
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.message().sequence, 9U);
    EXPECT_EQ(reader.message().publisher, "h:1");
    EXPECT_FALSE(reader.next());
}

TEST_F(RecordingReaderTest, ReadsARotatedSetWithoutASeam) {
    RecordingMaker first;
    first.message(Fid{1}, 1, 10, "a").end_chunk();
    write(first.finished(), "run-000001.mcap");
    RecordingMaker second;
    second.message(Fid{1}, 2, 20, "b").end_chunk();
    write(second.unfinished(), "run-000002.mcap"); // its writer was killed
    write(second.finished(), "run-other.mcap");
    EXPECT_THAT(all(path("run.mcap")), ElementsAre("1:1:a", "1:2:b"));
    write(second.finished(), "run-000004.mcap");
    EXPECT_THAT(refusal(path("run.mcap")), HasSubstr("part 3 of the set is absent"));
}

TEST_F(RecordingReaderTest, ReportsTimesThatStepBack) {
    RecordingMaker maker;
    maker.message(Fid{1}, 1, 20, "a").message(Fid{1}, 2, 10, "b").end_chunk();
    RecordingReader reader{write(maker.finished())};
    EXPECT_THAT(all(reader), SizeIs(2));
    EXPECT_EQ(reader.backward_steps(), 1U);
}

} // namespace
} // namespace netio::recording_reader_test
