// SPDX-License-Identifier: Apache-2.0
#include "pubsub/recording/recording_writer.hpp"

#include "netio/base/wire.hpp"
#include "pubsub/recording/mcap.hpp"
#include "pubsub/recording/recording_reader.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <lz4frame.h>
#include <zstd.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace netio::recording_writer_test {
namespace {

using mcap::Opcode;
using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;
using Entry = RecordingWriter::Entry;
using Options = RecordingWriter::Options;

std::span<const std::byte> as_bytes(const std::string& text) {
    return std::as_bytes(std::span{text});
}

// --- a plain reader ------------------------------------------------------------------------------

struct Record {
    Opcode opcode{};
    std::uint64_t at = 0; // of its head
    std::span<const std::byte> content;
    std::size_t length() const { return mcap::record_head_bytes + content.size(); }
};

// Reads the fields of a record one after the other.
struct Fields {
    std::span<const std::byte> rest;
    template <typename Integer>
    Integer number() {
        const auto value = wire::load<Integer>(rest.data());
        rest = rest.subspan(sizeof value);
        return value;
    }
    std::string text() {
        const auto size = number<std::uint32_t>();
        const std::string text{reinterpret_cast<const char*>(rest.data()), size};
        rest = rest.subspan(size);
        return text;
    }
    Fields list() {
        const auto size = number<std::uint32_t>();
        const Fields fields{rest.first(size)};
        rest = rest.subspan(size);
        return fields;
    }
    mcap::Texts texts() {
        mcap::Texts texts;
        for (Fields fields = list(); !fields.rest.empty();) {
            const std::string key = fields.text();
            texts[key] = fields.text();
        }
        return texts;
    }
};

// The whole records; a torn one at the end is left out.
std::vector<Record> records_of(std::span<const std::byte> bytes, std::uint64_t from = 0) {
    std::vector<Record> records;
    for (std::uint64_t at = from; at + mcap::record_head_bytes <= bytes.size();) {
        const auto size = wire::load<std::uint64_t>(bytes.data() + at + 1);
        if (size > bytes.size() - at - mcap::record_head_bytes) break;
        records.push_back({static_cast<Opcode>(bytes[at]), at,
                           bytes.subspan(at + mcap::record_head_bytes, size)});
        at += records.back().length();
    }
    return records;
}

struct Read {
    std::uint64_t fid = 0;
    std::string topic;
    std::uint64_t sequence = 0;
    std::uint64_t log_time = 0;
    std::uint64_t publish_time = 0;
    mcap::Prefix prefix;
    std::string data;
};

struct File {
    explicit File(const std::string& path) {
        std::ifstream in{path, std::ios::binary};
        const std::string content{std::istreambuf_iterator<char>{in}, {}};
        bytes.assign(as_bytes(content).begin(), as_bytes(content).end());
        EXPECT_TRUE(std::equal(mcap::magic.begin(), mcap::magic.end(), bytes.begin())) << path;
        is_closed = std::equal(mcap::magic.begin(), mcap::magic.end(), bytes.end() - 8);
        const std::span<const std::byte> all{bytes};
        records = records_of(is_closed ? all.first(all.size() - 8) : all, 8);
        for (const Record& record : records) {
            if (record.opcode == Opcode::data_end) break;
            note(record);
        }
    }
    void note(const Record& record) {
        Fields in{record.content};
        if (record.opcode == Opcode::channel) {
            mcap::Channel channel{.id = in.number<std::uint16_t>(),
                                  .schema_id = in.number<std::uint16_t>(),
                                  .topic = in.text(),
                                  .message_encoding = in.text(),
                                  .metadata = in.texts()};
            channels[channel.id] = channel;
        } else if (record.opcode == Opcode::metadata) {
            EXPECT_EQ(in.text(), "netio");
            metadata = in.texts();
        } else if (record.opcode == Opcode::message) {
            note_message(in);
        } else if (record.opcode == Opcode::chunk) {
            chunks.push_back(record.at);
            chunk_records.push_back(unpacked(in));
            for (const Record& each : records_of(chunk_records.back()))
                note(each);
        }
    }
    static Bytes unpacked(Fields in) {
        in.number<std::uint64_t>();
        in.number<std::uint64_t>();
        Bytes out(in.number<std::uint64_t>());
        const auto crc = in.number<std::uint32_t>();
        const std::string compression = in.text();
        const auto size = in.number<std::uint64_t>();
        EXPECT_EQ(size, in.rest.size());
        if (compression == "zstd") {
            EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), in.rest.data(), size), out.size());
        } else if (compression == "lz4") {
            LZ4F_dctx* context = nullptr;
            EXPECT_EQ(LZ4F_createDecompressionContext(&context, LZ4F_VERSION), 0U);
            std::size_t written = out.size();
            std::size_t read = size;
            EXPECT_EQ(
                LZ4F_decompress(context, out.data(), &written, in.rest.data(), &read, nullptr), 0U);
            EXPECT_EQ(written, out.size());
            LZ4F_freeDecompressionContext(context);
        } else {
            EXPECT_EQ(size, out.size());
            out.assign(in.rest.begin(), in.rest.end());
        }
        EXPECT_EQ(mcap::crc32(out), crc);
        return out;
    }
    void note_message(Fields in) {
        const auto channel = in.number<std::uint16_t>();
        EXPECT_TRUE(channels.contains(channel)) << channel; // declared before
        Read read{.topic = channels[channel].topic,
                  .sequence = in.number<std::uint32_t>(),
                  .log_time = in.number<std::uint64_t>(),
                  .publish_time = in.number<std::uint64_t>()};
        const std::string& encoding = channels[channel].message_encoding;
        std::size_t skipped = 0;
        if (encoding == mcap::fid_encoding) {
            read.prefix = mcap::load_fid_prefix(in.rest.data());
            read.fid = std::stoull(channels[channel].metadata["fid"], nullptr, 16);
            skipped = mcap::fid_prefix_bytes;
        } else if (encoding == mcap::publisher_encoding) {
            read.prefix = mcap::load_publisher_prefix(in.rest.data());
            read.fid = read.prefix.fid.value();
            skipped = mcap::publisher_prefix_bytes;
        }
        in.rest = in.rest.subspan(skipped);
        read.data = {reinterpret_cast<const char*>(in.rest.data()), in.rest.size()};
        (skipped > 0 ? messages : events).push_back(read);
    }

    Bytes bytes;
    bool is_closed = false;
    std::vector<Record> records;
    std::map<std::uint16_t, mcap::Channel> channels;
    mcap::Texts metadata;
    std::vector<std::uint64_t> chunks; // where they begin
    std::vector<Bytes> chunk_records;
    std::vector<Read> messages;
    std::vector<Read> events;
};

// Checks that what the end of the file says is true.
void check_index(const File& file) {
    ASSERT_TRUE(file.is_closed);
    std::map<std::uint16_t, std::uint64_t> indexed;
    std::uint64_t messages = 0;
    std::size_t chunks = 0;
    std::map<Opcode, std::pair<std::uint64_t, std::uint64_t>> groups;
    bool is_summary = false;
    for (const Record& record : file.records) {
        Fields in{record.content};
        if (is_summary && record.opcode < Opcode::summary_offset &&
            record.opcode != Opcode::footer) {
            auto& [at, length] = groups.try_emplace(record.opcode, record.at, 0).first->second;
            EXPECT_EQ(record.at, at + length); // grouped
            length += record.length();
        }
        if (record.opcode == Opcode::data_end) {
            is_summary = true;
        } else if (record.opcode == Opcode::chunk_index) {
            in.number<std::uint64_t>();
            in.number<std::uint64_t>();
            const auto at = in.number<std::uint64_t>();
            ASSERT_EQ(at, file.chunks.at(chunks));
            const auto length = in.number<std::uint64_t>();
            std::uint64_t after = at + length;
            for (Fields map = in.list(); !map.rest.empty();) {
                const auto channel = map.number<std::uint16_t>();
                const auto where = map.number<std::uint64_t>();
                EXPECT_EQ(where, after);
                Fields index{std::span{file.bytes}.subspan(where)};
                EXPECT_EQ(static_cast<Opcode>(index.number<std::uint8_t>()), Opcode::message_index);
                after += mcap::record_head_bytes + index.number<std::uint64_t>();
                EXPECT_EQ(index.number<std::uint16_t>(), channel);
                for (Fields items = index.list(); !items.rest.empty(); ++indexed[channel]) {
                    const auto time = items.number<std::uint64_t>();
                    Fields message{std::span{file.chunk_records.at(chunks)}.subspan(
                        items.number<std::uint64_t>())};
                    EXPECT_EQ(static_cast<Opcode>(message.number<std::uint8_t>()), Opcode::message);
                    message.number<std::uint64_t>();
                    EXPECT_EQ(message.number<std::uint16_t>(), channel);
                    message.number<std::uint32_t>();
                    EXPECT_EQ(message.number<std::uint64_t>(), time);
                }
            }
            EXPECT_EQ(in.number<std::uint64_t>(), after - at - length);
            ++chunks;
        } else if (record.opcode == Opcode::statistics) {
            messages = in.number<std::uint64_t>();
            EXPECT_EQ(in.number<std::uint16_t>(), 1U);
            EXPECT_EQ(in.number<std::uint32_t>(), file.channels.size());
            in.number<std::uint64_t>(); // attachments, metadata
            EXPECT_EQ(in.number<std::uint32_t>(), file.chunks.size());
            const bool none = file.messages.empty() && file.events.empty();
            EXPECT_EQ(in.number<std::uint64_t>() == 0, none);
        } else if (record.opcode == Opcode::summary_offset) {
            const auto group = groups.at(static_cast<Opcode>(in.number<std::uint8_t>()));
            EXPECT_EQ(in.number<std::uint64_t>(), group.first);
            EXPECT_EQ(in.number<std::uint64_t>(), group.second);
        } else if (record.opcode == Opcode::footer) {
            const auto summary = in.number<std::uint64_t>();
            in.number<std::uint64_t>();
            const std::uint64_t covered =
                record.at + mcap::record_head_bytes + mcap::footer_bytes - 4 - summary;
            EXPECT_EQ(in.number<std::uint32_t>(),
                      mcap::crc32(std::span{file.bytes}.subspan(summary, covered)));
        }
    }
    EXPECT_EQ(chunks, file.chunks.size());
    EXPECT_EQ(messages, file.messages.size() + file.events.size());
    std::uint64_t sum = 0;
    for (const auto& [channel, count] : indexed)
        sum += count;
    EXPECT_EQ(sum, messages);
}

struct RecordingWriterTest : testing::Test {
    std::string path(const std::string& name = "run.mcap") const {
        return (folder.path() / name).string();
    }

    // Without the reserve of free space, which a full disk of the tests' machine would not have.
    static Options small(Options options = {}) {
        options.chunk_size_bytes = 4096;
        options.min_free_bytes = 0;
        options.flush_interval = std::chrono::hours{1};
        return options;
    }
    static void fill(RecordingWriter& writer, std::uint64_t count, std::uint64_t from = 0) {
        for (std::uint64_t i = from; i < from + count; ++i) {
            const std::string text = "message " + std::to_string(i);
            ASSERT_TRUE(writer.wait_until_writable(std::chrono::minutes{1}));
            ASSERT_EQ(writer.write(Entry{.fid = i % 3,
                                         .bytes = as_bytes(text),
                                         .status = static_cast<std::uint8_t>(i),
                                         .arrival_ns = 1000 + i,
                                         .publisher = "host:1"}),
                      Status::ok);
        }
    }
    static void check_filled(const std::vector<Read>& messages, std::uint64_t count) {
        ASSERT_EQ(messages.size(), count);
        for (std::uint64_t i = 0; i < count; ++i) {
            ASSERT_EQ(messages[i].data, "message " + std::to_string(i));
            ASSERT_EQ(messages[i].fid, i % 3);
            ASSERT_EQ(messages[i].prefix.sequence, i / 3);
            ASSERT_EQ(messages[i].sequence, i / 3);
            ASSERT_EQ(messages[i].prefix.status, static_cast<std::uint8_t>(i));
            ASSERT_EQ(messages[i].log_time, 1000 + i);
            ASSERT_EQ(messages[i].publish_time, 1000 + i);
            ASSERT_FALSE(messages[i].prefix.has_publish_time);
        }
    }
    test::TemporaryFolder folder;
};

TEST(Crc32, IsTheOneOfZlibForEveryLength) {
    EXPECT_EQ(mcap::crc32(as_bytes("123456789")), 0xCBF43926U);
    Bytes bytes(400);
    std::uint32_t byte_by_byte = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(i * 7 + 3);
        byte_by_byte = mcap::crc32(std::span{bytes}.subspan(i, 1), byte_by_byte);
        const std::span<const std::byte> all{bytes.data(), i + 1};
        ASSERT_EQ(mcap::crc32(all), byte_by_byte) << i;
        const std::size_t half = i / 2;
        ASSERT_EQ(mcap::crc32(all.subspan(half), mcap::crc32(all.first(half))), byte_by_byte) << i;
    }
}

TEST_F(RecordingWriterTest, WritesEveryMessageAndATrueIndex) {
    using Compression = RecordingWriter::Compression;
    for (const Compression compression : {Compression::none, Compression::lz4, Compression::zstd}) {
        for (const bool direct : {false, true}) {
            const std::string name = std::to_string(static_cast<int>(compression)) +
                                     std::to_string(static_cast<int>(direct)) + ".mcap";
            RecordingWriter writer{
                path(name), small({.compress = compression, .fsync = direct, .direct_io = direct})};
            fill(writer, 1000);
            writer.close();
            const File file{path(name)};
            check_filled(file.messages, 1000);
            check_index(file);
            EXPECT_GT(file.chunks.size(), 10U);
            EXPECT_EQ(file.metadata.at("part"), "1");
            EXPECT_EQ(file.channels.at(1).metadata.at("publisher"), "host:1");
            EXPECT_EQ(file.channels.at(2).topic, "netio/fid/0x0000000000000001");
            EXPECT_EQ(writer.stats().written, 1000U);
            EXPECT_EQ(writer.stats().file_bytes, file.bytes.size());
        }
    }
}

TEST_F(RecordingWriterTest, AnEmptyRecordingIsAFile) {
    RecordingWriter{path(), small()}.close();
    check_index(File{path()});
}

TEST_F(RecordingWriterTest, SequencesShowWhatWasLost) {
    RecordingWriter writer{path(), small()};
    const std::string text = "x";
    Entry entry{.fid = 7, .bytes = as_bytes(text)};
    EXPECT_EQ(writer.write(entry), Status::ok); // 0
    writer.skip(7, 3);
    EXPECT_EQ(writer.write(entry), Status::ok); // 4
    entry.lost_before = 2;
    EXPECT_EQ(writer.write(entry), Status::ok); // 7
    entry.sequence = std::uint64_t{1} << 33;
    entry.publish_ns = 5;
    EXPECT_EQ(writer.write(entry), Status::ok);
    EXPECT_EQ(writer.write(Message{7, as_bytes(text), 9, 1}), Status::ok);
    writer.close();
    const File file{path()};
    std::vector<std::uint64_t> sequences;
    for (const Read& read : file.messages)
        sequences.push_back(read.prefix.sequence);
    EXPECT_THAT(sequences,
                ElementsAre(0U, 4U, 7U, std::uint64_t{1} << 33, (std::uint64_t{1} << 33) + 2));
    EXPECT_EQ(file.messages[3].publish_time, 5U);
    EXPECT_TRUE(file.messages[3].prefix.has_publish_time);
    EXPECT_EQ(file.messages[4].prefix.status, 9);
    EXPECT_GT(file.messages[4].log_time, 1'600'000'000'000'000'000U);
}

// Of a received message: the 8 bytes in front of it are its time stamp.
TEST_F(RecordingWriterTest, MessagesKeepTheTimeOfTheirPublisher) {
    RecordingWriter writer{path(), small()};
    std::array<std::byte, time_stamp::bytes + 5000> memory{};
    wire::store(memory.data(), std::int64_t{37'000'000'007});
    const auto bytes = std::span<const std::byte>{memory}.subspan(time_stamp::bytes);
    const StampFormat tai{.clock = StampClock::tai, .utc_offset_s = 37};
    EXPECT_EQ(writer.write(Message{7, bytes, 0, 0, nullptr, tai}), Status::ok);
    EXPECT_EQ(writer.write(Message{7, bytes, 0, 0, nullptr, tai}.keep()), Status::ok);
    EXPECT_EQ(writer.write(Message{7, bytes, 0, 0, nullptr, {.clock = StampClock::own}}),
              Status::ok);
    writer.close();
    const File file{path()};
    ASSERT_EQ(file.messages.size(), 3U);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(file.messages[i].prefix.has_publish_time);
        EXPECT_EQ(file.messages[i].publish_time, 7U);
    }
    EXPECT_FALSE(file.messages[2].prefix.has_publish_time);
}

TEST_F(RecordingWriterTest, EventsAreJsonInTheirOwnChannel) {
    RecordingWriter writer{path(), small()};
    EXPECT_EQ(writer.write(RecordingWriter::Event{.event = "lost",
                                                  .publisher = "host:1",
                                                  .fids = FidSet{{0, 63}, {128, 128}},
                                                  .count = 5,
                                                  .reason = "dropped \xff"}),
              Status::ok);
    writer.close();
    const File file{path()};
    ASSERT_EQ(file.events.size(), 1U);
    EXPECT_EQ(file.events[0].topic, "netio/events");
    EXPECT_EQ(file.events[0].data,
              "{\"event\":\"lost\",\"publisher\":\"host:1\",\"fids\":\"0-63,128\",\"count\":5,"
              "\"reason\":\"dropped \xef\xbf\xbd\"}");
    EXPECT_EQ(file.channels.at(0).schema_id, 1);
    check_index(file);
}

TEST_F(RecordingWriterTest, RotationHasNoSeam) {
    for (const bool by_time : {false, true}) {
        Options options = small();
        if (by_time) {
            options.rotate_interval = std::chrono::milliseconds{1};
        } else {
            options.rotate_size_bytes = 20000;
        }
        const std::string name = by_time ? "time.mcap" : "size.mcap";
        RecordingWriter writer{path(name), options};
        fill(writer, 500);
        for (std::uint64_t i = 500; i < 600; ++i) { // 20 us apart
            const std::string text = "message " + std::to_string(i);
            ASSERT_TRUE(writer.wait_until_writable(std::chrono::minutes{1}));
            ASSERT_EQ(writer.write(Entry{.fid = i % 3,
                                         .bytes = as_bytes(text),
                                         .arrival_ns = 1000 + i + 20000 * (i - 500)}),
                      Status::ok);
        }
        writer.close();
        const std::vector<std::string> files = writer.stats().files;
        ASSERT_GT(files.size(), 1U);
        EXPECT_THAT(files[0], HasSubstr(by_time ? "time-000001.mcap" : "size-000001.mcap"));
        std::vector<Read> all;
        std::string run;
        for (std::size_t i = 0; i < files.size(); ++i) {
            const File file{files[i]};
            check_index(file);
            EXPECT_EQ(file.metadata.at("part"), std::to_string(i + 1));
            EXPECT_TRUE(i == 0 || file.metadata.at("run") == run);
            run = file.metadata.at("run");
            EXPECT_TRUE(by_time || file.bytes.size() <= options.rotate_size_bytes) << i;
            all.insert(all.end(), file.messages.begin(), file.messages.end());
        }
        ASSERT_EQ(all.size(), 600U);
        for (std::uint64_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(all[i].data, "message " + std::to_string(i));
            EXPECT_EQ(all[i].prefix.sequence, i / 3);
        }
    }
}

// The parts are a set that readers find by the name of the recording.
TEST_F(RecordingWriterTest, AFullIndexEndsAFile) {
    Options options = small();
    options.index_limit_bytes = 4096;
    RecordingWriter writer{path(), options};
    fill(writer, 3000);
    writer.close();
    const std::vector<std::string> files = writer.stats().files;
    ASSERT_GT(files.size(), 1U);
    EXPECT_EQ(files[0], path("run-000001.mcap"));
    EXPECT_EQ(files[1], path("run-000002.mcap"));
    EXPECT_EQ(recording_files(path()), files);
    std::vector<Read> all;
    for (const std::string& each : files) {
        const File file{each};
        all.insert(all.end(), file.messages.begin(), file.messages.end());
    }
    check_filled(all, 3000);
}

TEST_F(RecordingWriterTest, AFullIndexReplacesNoFirstPart) {
    Options options = small();
    options.index_limit_bytes = 4096;
    RecordingWriter writer{path(), options};
    std::ofstream{path("run-000001.mcap")} << "precious";
    const std::string text(100, 'x');
    while (writer.wait_until_writable(std::chrono::minutes{1}))
        (void)writer.write(Entry{.bytes = as_bytes(text)});
    EXPECT_THROW(writer.close(), std::system_error);
    check_index(File{path()});
    EXPECT_EQ(std::filesystem::file_size(path("run-000001.mcap")), 8U);
}

// Events alone fill chunks, too, and a step of the clock adds one to a chunk that is nearly full.
TEST_F(RecordingWriterTest, EventsKeepTheSizeOfChunks) {
    RecordingWriter writer{path(), small()};
    const std::string reason(500, 'r');
    const std::string text(900, 'x');
    for (std::uint64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(writer.write(RecordingWriter::Event{.event = "lost", .reason = reason}),
                  Status::ok);
        for (const std::uint64_t ns : {20'000'000 * (i + 2), 20'000'000 * (i + 1)})
            ASSERT_EQ(writer.write(Entry{.bytes = as_bytes(text), .arrival_ns = ns}), Status::ok);
    }
    writer.close();
    const File file{path()};
    check_index(file);
    for (const Bytes& records : file.chunk_records)
        EXPECT_LE(records.size(), 4096U);
}

TEST_F(RecordingWriterTest, AStepOfTheClockIsHeldAndRecorded) {
    RecordingWriter writer{path(), small()};
    const std::string text = "x";
    const auto write = [&](std::uint64_t ns) {
        EXPECT_EQ(writer.write(Entry{.fid = 1, .bytes = as_bytes(text), .arrival_ns = ns}),
                  Status::ok);
    };
    constexpr std::uint64_t second = 1'000'000'000;
    write(100 * second);
    write(100 * second - 500'000); // a delayed thread
    write(90 * second);
    write(91 * second);
    write(101 * second);
    writer.close();
    const File file{path()};
    std::vector<std::uint64_t> times;
    for (const Read& read : file.messages)
        times.push_back(read.log_time / second);
    EXPECT_THAT(times, ElementsAre(100U, 100U, 100U, 100U, 101U));
    ASSERT_EQ(file.events.size(), 1U);
    EXPECT_THAT(file.events[0].data, HasSubstr("\"clock_step\""));
    EXPECT_THAT(file.events[0].data, HasSubstr("back by 10000 ms"));
    EXPECT_EQ(writer.stats().clock_steps, 1U);
}

TEST_F(RecordingWriterTest, FidsBeyondTheChannelsShareThose) {
    Options options = small();
    options.chunk_size_bytes = std::size_t{1} << 20;
    RecordingWriter writer{path(), options};
    constexpr std::uint64_t fids = mcap::fid_channel_limit + 2;
    for (int round = 0; round < 2; ++round) {
        for (std::uint64_t fid = 0; fid < fids; ++fid) {
            const std::string text = std::to_string(fid);
            const std::string_view publisher = fid % 2 == 0 ? "host:1" : "host:2";
            ASSERT_TRUE(writer.wait_until_writable(std::chrono::minutes{1}));
            ASSERT_EQ(
                writer.write(Entry{.fid = fid, .bytes = as_bytes(text), .publisher = publisher}),
                Status::ok);
        }
    }
    writer.close();
    const File file{path()};
    check_index(file);
    ASSERT_EQ(file.messages.size(), 2 * fids);
    for (std::uint64_t i = 0; i < 2 * fids; ++i) {
        ASSERT_EQ(file.messages[i].fid, i % fids);
        ASSERT_EQ(file.messages[i].data, std::to_string(i % fids));
        ASSERT_EQ(file.messages[i].prefix.sequence, i / fids);
    }
    EXPECT_EQ(file.messages[fids - 2].topic, "netio/publisher/host:1");
    EXPECT_EQ(file.messages[fids - 1].topic, "netio/publisher/host:2");
}

TEST_F(RecordingWriterTest, KeptMessagesAreReleasedOnceWritten) {
    RecordingWriter writer{path(), small()};
    std::weak_ptr<const void> watch;
    {
        const auto memory = std::make_shared<const std::string>(5000, 'k');
        watch = memory;
        const auto bytes = as_bytes(*memory);
        EXPECT_EQ(writer.write(Entry{.fid = 1, .bytes = bytes}, KeptBytes{memory, bytes}),
                  Status::ok);
        const auto part = bytes.first(100);
        EXPECT_EQ(writer.write(Entry{.fid = 1, .bytes = part}, KeptBytes{memory, bytes}),
                  Status::ok);
    }
    writer.close();
    EXPECT_TRUE(watch.expired());
    const File file{path()};
    check_index(file);
    ASSERT_EQ(file.messages.size(), 2U);
    EXPECT_EQ(file.messages[0].data, std::string(5000, 'k'));
    EXPECT_EQ(file.messages[1].data, std::string(100, 'k'));
}

TEST_F(RecordingWriterTest, AFullQueueTakesNothingUntilHalfIsWritten) {
    Options options = small();
    options.queue_limit_bytes = 32768;
    std::promise<void> release;
    std::promise<void> blocked;
    std::promise<void> writable;
    options.on_writable = [&] { writable.set_value(); };
    RecordingWriter writer{path(), options};
    const std::string text(5000, 'x');
    {
        // The thread frees the memory of a written chunk.
        const std::shared_ptr<const void> memory{text.data(), [&](const void*) {
                                                     blocked.set_value();
                                                     release.get_future().wait();
                                                 }};
        EXPECT_EQ(writer.write(Entry{.bytes = as_bytes(text)}, KeptBytes{memory, as_bytes(text)}),
                  Status::ok);
    }
    EXPECT_EQ(writer.write(Entry{.bytes = as_bytes(text)}), Status::ok); // ends the chunk
    blocked.get_future().wait();
    std::uint64_t accepted = 2;
    while (writer.write(Entry{.bytes = as_bytes(text)}) == Status::ok)
        ++accepted;
    EXPECT_EQ(writer.write(Entry{.bytes = as_bytes(text)}), Status::again);
    EXPECT_EQ(accepted, 7U); // 5,047 bytes each
    EXPECT_TRUE(writer.is_full());
    EXPECT_FALSE(writer.wait_until_writable(std::chrono::milliseconds{1}));
    EXPECT_EQ(writer.write(RecordingWriter::Event{.event = "disk_slow"}), Status::ok);
    release.set_value();
    writable.get_future().wait();
    EXPECT_TRUE(writer.wait_until_writable(std::chrono::minutes{1}));
    writer.close();
    EXPECT_EQ(writer.write(Entry{}), Status::closed);
    EXPECT_EQ(File{path()}.messages.size(), accepted);
    EXPECT_EQ(File{path()}.events.size(), 1U);
}

TEST_F(RecordingWriterTest, WhatIsFlushedIsInAFileWithoutEnd) {
    Options options = small();
    options.chunk_size_bytes = std::size_t{1} << 20;
    RecordingWriter writer{path(), options};
    fill(writer, 10);
    writer.flush();
    const File file{path()};
    EXPECT_FALSE(file.is_closed);
    check_filled(file.messages, 10);
    fill(writer, 10, 10);
    writer.flush();
    check_filled(File{path()}.messages, 20);
}

TEST_F(RecordingWriterTest, AnOldChunkIsWrittenWithoutACall) {
    Options options = small();
    options.flush_interval = std::chrono::milliseconds{1};
    RecordingWriter writer{path(), options};
    fill(writer, 1);
    while (writer.stats().chunks == 0)
        std::this_thread::yield();
    check_filled(File{path()}.messages, 1);
}

// A limit of the file's size stands for a full disk, with the same error of the same call.
TEST_F(RecordingWriterTest, AFullDiskEndsAWholeFile) {
    std::size_t closed = 0;
    for (rlim_t size = 50000; size < 54000; size += 500) {
        const std::string name = std::to_string(size) + ".mcap";
        rlimit before{};
        ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
        std::promise<std::string> failed;
        Options options = small({.direct_io = size % 1000 == 0});
        options.on_failure = [&](const std::string& why) { failed.set_value(why); };
        RecordingWriter writer{path(name), options};
        const rlimit limit{.rlim_cur = size, .rlim_max = before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
        std::uint64_t accepted = 0;
        const std::string text(100, 'x');
        while (writer.wait_until_writable(std::chrono::minutes{1})) {
            if (writer.write(Entry{.bytes = as_bytes(text)}) == Status::ok) ++accepted;
        }
        EXPECT_THAT(failed.get_future().get(), HasSubstr("cannot write to " + path(name)));
        EXPECT_EQ(writer.write(Entry{.bytes = as_bytes(text)}), Status::closed);
        EXPECT_THROW(writer.close(), std::system_error);
        writer.close(); // reported once
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
        const RecordingWriter::Stats stats = writer.stats();
        EXPECT_EQ(stats.written + stats.discarded, accepted);
        const File file{path(name)};
        EXPECT_EQ(file.messages.size(), stats.written);
        EXPECT_GT(stats.written, 200U);
        if (!file.is_closed) continue; // there was no space for the index
        ++closed;
        EXPECT_EQ(file.bytes.size(), stats.file_bytes);
        check_index(file);
    }
    EXPECT_GT(closed, 0U);
}

TEST_F(RecordingWriterTest, ReservedSpaceIsNotUsed) {
    Options options = small();
    options.min_free_bytes = UINT64_MAX / 2;
    RecordingWriter writer{path(), options};
    const std::string text = "x";
    EXPECT_EQ(writer.write(Entry{.bytes = as_bytes(text)}), Status::ok);
    try {
        writer.close();
        FAIL();
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("min_free_bytes"));
    }
    check_index(File{path()});
    EXPECT_EQ(writer.stats().discarded, 1U);
}

TEST_F(RecordingWriterTest, OverwritesNothing) {
    std::ofstream{path()} << "precious";
    try {
        RecordingWriter{path(), small()};
        FAIL();
    } catch (const std::system_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("use another name than " + path()));
    }
    std::ifstream in{path()};
    EXPECT_EQ((std::string{std::istreambuf_iterator<char>{in}, {}}), "precious");
    // A later file of a rotated recording is not replaced either.
    Options options = small();
    options.rotate_size_bytes = 8192;
    RecordingWriter writer{path("set.mcap"), options};
    std::ofstream{path("set-000002.mcap")} << "precious";
    const std::string text(100, 'x');
    while (writer.wait_until_writable(std::chrono::minutes{1}))
        (void)writer.write(Entry{.bytes = as_bytes(text)});
    EXPECT_THROW(writer.close(), std::system_error);
    check_index(File{path("set-000001.mcap")});
    EXPECT_EQ(std::filesystem::file_size(path("set-000002.mcap")), 8U);
}

// A file of an earlier set would make a later part of the recording fail, and a single file with
// the name of the set would be read instead of the set.
TEST_F(RecordingWriterTest, RefusesTheNameOfAnotherSetAtOnce) {
    const auto refused = [&](const std::string& name, std::uint64_t rotate_size_bytes) {
        Options options = small();
        options.rotate_size_bytes = rotate_size_bytes;
        try {
            RecordingWriter{path(name), options};
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code().value(), EEXIST);
            return std::string{error.what()};
        }
        return std::string{"accepted"};
    };
    std::ofstream{path("set-000007.mcap")} << "precious";
    std::ofstream{path("one.mcap")} << "precious";
    EXPECT_THAT(refused("set.mcap", 8192), HasSubstr(path("set-000007.mcap")));
    EXPECT_THAT(refused("set.mcap", 0), HasSubstr(path("set-000007.mcap")));
    EXPECT_THAT(refused("one.mcap", 8192), HasSubstr(path("one.mcap")));
    EXPECT_FALSE(std::filesystem::exists(path("set-000001.mcap")));
    EXPECT_FALSE(std::filesystem::exists(path("one-000001.mcap")));
    EXPECT_EQ(refused("se.mcap", 8192), "accepted");
    EXPECT_EQ(refused("set-00000.mcap", 8192), "accepted");
}

TEST_F(RecordingWriterTest, RefusesWrongOptions) {
    const auto refused = [&](const std::string& name, const Options& options) {
        try {
            RecordingWriter{path(name), options};
        } catch (const std::invalid_argument& error) {
            return std::string{error.what()};
        }
        return std::string{"accepted"};
    };
    EXPECT_THAT(refused("run.txt", {}), HasSubstr("must end in .mcap"));
    EXPECT_THAT(refused("run.mcap", {.queue_limit_bytes = 1000}), HasSubstr("queue_limit_bytes"));
    EXPECT_THAT(refused("run.mcap", {.chunk_size_bytes = 1}), HasSubstr("chunk_size_bytes"));
    EXPECT_THAT(refused("run.mcap", {.flush_interval = Duration{0}}), HasSubstr("flush_interval"));
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_THROW(RecordingWriter(path("none/run.mcap")), std::system_error);
}

TEST_F(RecordingWriterTest, ManyThreadsWriteAtOnce) {
    constexpr std::uint64_t count = 2000;
    RecordingWriter writer{path(), small({.rotate_size_bytes = 100000})};
    std::vector<std::thread> threads;
    for (std::uint64_t fid = 0; fid < 4; ++fid) {
        threads.emplace_back([&writer, fid] {
            for (std::uint64_t i = 0; i < count;) {
                const std::string text = std::to_string(i);
                if (!writer.wait_until_writable(std::chrono::minutes{1})) return;
                if (writer.write(Entry{.fid = fid, .bytes = as_bytes(text)}) == Status::ok) ++i;
                if (i % 500 == 0) writer.flush();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    writer.close();
    std::map<std::uint64_t, std::uint64_t> next;
    for (const std::string& each : writer.stats().files) {
        for (const Read& read : File{each}.messages) {
            EXPECT_EQ(read.data, std::to_string(next[read.fid]));
            EXPECT_EQ(read.prefix.sequence, next[read.fid]++);
        }
    }
    EXPECT_THAT(next, testing::Each(testing::Field(
                          &std::pair<const std::uint64_t, std::uint64_t>::second, count)));
    EXPECT_EQ(next.size(), 4U);
}

} // namespace
} // namespace netio::recording_writer_test
