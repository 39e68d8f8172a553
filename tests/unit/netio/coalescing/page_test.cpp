// SPDX-License-Identifier: Apache-2.0
#include "netio/base/copy.hpp"
#include "netio/coalescing/page.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace netio::page_test {
namespace {

using Bytes = std::vector<std::byte>;

struct Read {
    std::vector<Bytes> messages;
    bool sound = false;
};

Read read(std::span<const std::byte> page) {
    Read read;
    read.sound = visit_page(page, [&](std::span<const std::byte> message) {
        read.messages.emplace_back(message.begin(), message.end());
        return true;
    });
    return read;
}

bool write(PageWriter& writer, const Bytes& message) {
    std::byte* const out = writer.append(message.size());
    if (out != nullptr) std::ranges::copy(message, out);
    return out != nullptr;
}

Bytes message_of(std::size_t size, unsigned salt = 0) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(i * 7 + salt + 1);
    return bytes;
}

TEST(PageCodec, HasTheBytesThatAreDocumented) {
    std::array<std::byte, 32> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(write(writer, {std::byte{0xaa}, std::byte{0xbb}}));
    ASSERT_TRUE(write(writer, {}));
    const std::array<int, 10> expected{2, 0, 0, 0, 0xaa, 0xbb, 0, 0, 0, 0};
    ASSERT_EQ(writer.used(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(memory[i]), expected[i]) << "byte " << i;
}

TEST(PageCodec, WritesMarksAndPrefixBeforeTheMessage) {
    std::array<std::byte, 16> memory{};
    PageWriter writer{memory};
    std::byte* const out = writer.append(std::uint32_t{1} << 30, 2, 3);
    ASSERT_EQ(out, memory.data() + 4);
    EXPECT_EQ(writer.used(), 9U);
    EXPECT_EQ(memory[0], std::byte{3});
    EXPECT_EQ(memory[3], std::byte{0x40});
}

TEST(PageCodec, APageThatIsResizedKeepsWhatItHas) {
    std::vector<std::byte> memory(64);
    PageWriter writer{std::span{memory}.first(32)};
    EXPECT_NE(writer.append(20), nullptr);
    writer.resize(10);
    EXPECT_EQ(writer.append(0), nullptr);
    EXPECT_EQ(writer.used(), 24U);
    writer.resize(64);
    EXPECT_EQ(writer.append(37), nullptr);
    EXPECT_EQ(writer.append(36), memory.data() + 28);
}

TEST(PageCodec, RefusesWhatDoesNotFitAndStaysAsItWas) {
    std::array<std::byte, 32> memory{};
    PageWriter writer{memory};
    EXPECT_EQ(writer.append(29), nullptr);
    EXPECT_EQ(writer.append(0, 29, 0), nullptr);
    EXPECT_EQ(writer.append(page::message_limit + 1), nullptr);
    EXPECT_EQ(writer.append(SIZE_MAX), nullptr);
    EXPECT_EQ(writer.used(), 0U);
    EXPECT_EQ(writer.messages(), 0U);
    EXPECT_NE(writer.append(28), nullptr);
    EXPECT_EQ(writer.used(), 32U);
    EXPECT_EQ(writer.append(0), nullptr);
    EXPECT_EQ(writer.messages(), 1U);
}

TEST(PageCodec, AWriterWithoutAPageHasRoomForNothing) {
    PageWriter writer;
    EXPECT_EQ(writer.append(0), nullptr);
}

TEST(PageCodec, AnEmptyPageHasNoMessages) {
    EXPECT_TRUE(read({}).sound);
    EXPECT_TRUE(read({}).messages.empty());
}

// Every sequence of up to four messages of 0 to 5 bytes, in pages of every size up to 24 bytes:
// accepted messages are read back, and every truncation is detected or is between two messages.
TEST(PageCodec, ReturnsWhatWasWrittenForAllSmallPages) {
    constexpr unsigned kinds = 6;
    for (unsigned combination = 0; combination < kinds * kinds * kinds * kinds; ++combination) {
        const std::array<Bytes, 4> wanted{message_of(combination % kinds, 0),
                                          message_of(combination / kinds % kinds, 10),
                                          message_of(combination / kinds / kinds % kinds, 20),
                                          message_of(combination / kinds / kinds / kinds, 30)};
        for (std::size_t page_bytes = 0; page_bytes <= 24; ++page_bytes) {
            Bytes memory(page_bytes);
            PageWriter writer{memory};
            std::vector<Bytes> accepted;
            std::vector<std::size_t> ends{0};
            for (const Bytes& each : wanted) {
                const bool fits = ends.back() + 4 + each.size() <= page_bytes;
                ASSERT_EQ(write(writer, each), fits);
                if (!fits) continue;
                accepted.push_back(each);
                ends.push_back(writer.used());
            }
            ASSERT_EQ(writer.messages(), accepted.size());
            const std::span<const std::byte> page{memory.data(), writer.used()};
            for (std::size_t cut = 0; cut <= page.size(); ++cut) {
                const Read part = read(page.first(cut));
                const auto whole = static_cast<std::size_t>(std::ranges::upper_bound(ends, cut) -
                                                            ends.begin() - 1);
                ASSERT_EQ(part.sound, ends[whole] == cut) << "cut at " << cut;
                ASSERT_TRUE(std::ranges::equal(part.messages, std::span{accepted}.first(whole)));
            }
        }
    }
}

// All headers of one record with a small size or a size at the limit, with and without marks.
TEST(PageCodec, RefusesEveryHeaderThatDoesNotMatchItsPage) {
    for (std::size_t page_bytes = 4; page_bytes <= 16; ++page_bytes) {
        for (const std::uint32_t marks : {0U, 1U << 30, 1U << 31, 3U << 30}) {
            for (const std::uint32_t size : {0U, 1U, 2U, 7U, 8U, 12U, 13U, page::size_mask}) {
                Bytes memory(page_bytes);
                wire::store(memory.data(), marks | size);
                // One record that fills the page, or a record followed by records of 0 bytes.
                const std::size_t rest = page_bytes - 4;
                const bool sound = marks == 0 && size <= rest && (rest - size) % 4 == 0;
                ASSERT_EQ(read(memory).sound, sound) << page_bytes << ' ' << marks << ' ' << size;
            }
        }
    }
}

TEST(PageCodec, AsksForThePrefixOfEachRecord) {
    std::array<std::byte, 64> memory{};
    PageWriter writer{memory};
    constexpr std::uint32_t high = std::uint32_t{1} << 31;
    ASSERT_NE(writer.append(high, 3, 5), nullptr);
    ASSERT_NE(writer.append(2), nullptr);
    std::vector<std::size_t> seen;
    const auto prefix_bytes = [](std::uint32_t marks) {
        return std::size_t{marks == high ? 3U : 0U};
    };
    EXPECT_TRUE(visit_records(
        std::span{memory}.first(writer.used()), prefix_bytes,
        [&](std::uint32_t marks, const std::byte* prefix, std::span<const std::byte> message) {
            const auto prefix_size = static_cast<std::size_t>(message.data() - prefix);
            seen.insert(seen.end(), {marks >> 30, prefix_size, message.size()});
            return true;
        }));
    EXPECT_THAT(seen, testing::ElementsAre(2U, 3U, 5U, 0U, 0U, 2U));
    // A prefix longer than the remaining bytes.
    EXPECT_FALSE(visit_records(
        std::span{memory}.first(writer.used()), [](std::uint32_t) { return std::size_t{60}; },
        [](std::uint32_t, const std::byte*, std::span<const std::byte>) { return true; }));
}

TEST(PageCodec, StopsWhenTheVisitorReturnsFalse) {
    std::array<std::byte, 64> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(write(writer, message_of(3)));
    ASSERT_TRUE(write(writer, message_of(3)));
    int visits = 0;
    // The visitor does not read the rest: the last byte is missing.
    EXPECT_TRUE(visit_page(std::span{memory}.first(writer.used() - 1),
                           [&](std::span<const std::byte>) { return ++visits < 1; }));
    EXPECT_EQ(visits, 1);
}

// With random bytes, the reader never reads outside the page (checked by sanitizers) and always
// ends.
TEST(PageCodec, SurvivesRandomBytes) {
    std::mt19937_64 random{5};
    for (int round = 0; round < 20000; ++round) {
        Bytes page(random() % 64);
        for (std::byte& byte : page)
            byte = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 3));
        std::size_t seen = 0;
        visit_page(page, [&](std::span<const std::byte> message) {
            seen += message.size() + 4;
            return true;
        });
        ASSERT_LE(seen, page.size());
    }
}

TEST(MessageParts, CopiesAMessageOfEachSizeAndNothingAroundIt) {
    constexpr std::byte guard{0xee};
    for (std::size_t size = 0; size <= 200; ++size) {
        std::vector<std::byte> message(size);
        for (std::size_t i = 0; i < size; ++i)
            message[i] = static_cast<std::byte>(i + 1);
        std::vector<std::byte> out(size + 2, guard);
        copy_bytes(out.data() + 1, message);
        EXPECT_EQ(out.front(), guard) << size;
        EXPECT_EQ(out.back(), guard) << size;
        EXPECT_EQ(std::vector<std::byte>(out.begin() + 1, out.end() - 1), message) << size;
    }
}

} // namespace
} // namespace netio::page_test
