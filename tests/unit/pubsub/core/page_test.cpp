// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/page.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace netio::pubsub {
namespace {

struct Message {
    Fid fid{};
    std::uint8_t status = 0;
    std::vector<std::byte> bytes;

    friend bool operator==(const Message&, const Message&) = default;
};

struct Read {
    std::vector<Message> messages;
    bool sound = false;
};

Read read(std::span<const std::byte> page) {
    Read read;
    read.sound =
        visit_page(page, [&](Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
            read.messages.push_back(
                {.fid = fid, .status = status, .bytes = {bytes.begin(), bytes.end()}});
            return true;
        });
    return read;
}

bool write(PageWriter& writer, const Message& message) {
    std::byte* out = writer.append(message.fid, message.status, message.bytes.size());
    if (out != nullptr) std::ranges::copy(message.bytes, out);
    return out != nullptr;
}

Message message(std::uint64_t fid, std::uint8_t status, std::size_t size) {
    Message made{.fid = Fid{fid}, .status = status, .bytes = std::vector<std::byte>(size)};
    for (std::size_t i = 0; i < size; ++i)
        made.bytes[i] = static_cast<std::byte>(fid + i);
    return made;
}

TEST(Page, HasTheBytesThatNetio3Documents) {
    std::array<std::byte, 64> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(
        write(writer, {.fid = Fid{0x1122334455667788}, .status = 0, .bytes = {std::byte{0xaa}}}));
    ASSERT_TRUE(write(writer, {.fid = Fid{0x1122334455667788}, .status = 5, .bytes = {}}));
    const std::vector<int> expected{0x01, 0,    0,    0x80,                               //
                                    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xaa, //
                                    0x00, 0,    0,    0x40, 0x05};
    ASSERT_EQ(writer.used(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(memory[i]), expected[i]) << "byte " << i;
}

TEST(Page, RefusesWhatDoesNotFitAndStaysAsItWas) {
    std::array<std::byte, 32> memory{};
    PageWriter writer{memory};
    EXPECT_EQ(writer.append(Fid{1}, 0, 21), nullptr); // 12 + 21 > 32
    EXPECT_EQ(writer.used(), 0U);
    EXPECT_NE(writer.append(Fid{1}, 0, 20), nullptr);
    EXPECT_EQ(writer.used(), 32U);
    EXPECT_EQ(writer.append(Fid{1}, 0, 0), nullptr);
    EXPECT_EQ(writer.messages(), 1U);
}

TEST(Page, AMessageWithFidAndStatusNeedsTheHeaderThatIsSaid) {
    std::array<std::byte, page::header_bytes + 5> memory{};
    PageWriter writer{memory};
    EXPECT_NE(writer.append(Fid{1}, 7, 5), nullptr);
    EXPECT_EQ(writer.used(), memory.size());
}

// Which is also what a writer has that has not met any.
TEST(Page, TheFirstMessageOfFidZeroSaysSo) {
    std::array<std::byte, 32> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(write(writer, message(0, 0, 3)));
    const Read whole = read(std::span{memory}.first(writer.used()));
    EXPECT_TRUE(whole.sound);
    EXPECT_EQ(whole.messages, std::vector{message(0, 0, 3)});
}

TEST(Page, AnEmptyPageHasNoMessages) {
    EXPECT_TRUE(read({}).sound);
    EXPECT_TRUE(read({}).messages.empty());
}

// Every combination of three messages out of 2 fids, 2 statuses and 4 sizes, in pages of every
// size: what was accepted is read back, and every truncation is either noticed or ends between two
// messages.
TEST(Page, ReturnsWhatWasWrittenForAllSmallPages) {
    const std::size_t sizes[] = {0, 1, 8, 13};
    constexpr unsigned kinds = 2 * 2 * 4;
    const auto kind = [&](unsigned k) {
        return message(k % 2 + 1, static_cast<std::uint8_t>(k / 2 % 2 * 7), sizes[k / 4]);
    };
    for (unsigned combination = 0; combination < kinds * kinds * kinds; ++combination) {
        const std::vector<Message> wanted{kind(combination % kinds),
                                          kind(combination / kinds % kinds),
                                          kind(combination / kinds / kinds)};
        for (const std::size_t page_bytes : {12U, 26U, 52U, 78U}) {
            std::vector<std::byte> memory(page_bytes);
            PageWriter writer{memory};
            std::vector<Message> accepted;
            std::vector<std::size_t> ends{0};
            for (const Message& each : wanted) {
                if (!write(writer, each)) continue;
                accepted.push_back(each);
                ends.push_back(writer.used());
            }
            const std::span<const std::byte> page{memory.data(), writer.used()};
            const Read whole = read(page);
            ASSERT_TRUE(whole.sound);
            ASSERT_EQ(whole.messages, accepted);
            ASSERT_EQ(writer.messages(), accepted.size());
            for (std::size_t cut = 0; cut < page.size(); ++cut) {
                const Read part = read(page.first(cut));
                const bool between = std::ranges::find(ends, cut) != ends.end();
                ASSERT_EQ(part.sound, between) << "cut at " << cut;
                ASSERT_LE(part.messages.size(), accepted.size());
                ASSERT_TRUE(std::ranges::equal(part.messages,
                                               std::span{accepted}.first(part.messages.size())));
            }
        }
    }
}

TEST(Page, RefusesAFirstMessageWithoutFid) {
    std::array<std::byte, 4> page{};
    EXPECT_FALSE(read(page).sound);
}

TEST(Page, StopsWhenTheVisitorHasEnough) {
    std::array<std::byte, 64> memory{};
    PageWriter writer{memory};
    ASSERT_TRUE(write(writer, message(1, 0, 3)));
    ASSERT_TRUE(write(writer, message(2, 0, 3)));
    int visits = 0;
    EXPECT_TRUE(visit_page(std::span{memory}.first(writer.used()),
                           [&](Fid, std::span<const std::byte>, std::uint8_t) {
                               ++visits;
                               return false;
                           }));
    EXPECT_EQ(visits, 1);
}

// Random bytes never make the reader leave the page (the sanitizers watch) or loop.
TEST(Page, SurvivesRandomBytes) {
    std::mt19937_64 random{3};
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> page(random() % 64);
        for (std::byte& byte : page)
            byte = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 4));
        std::size_t seen = 0;
        visit_page(page, [&](Fid, std::span<const std::byte> bytes, std::uint8_t) {
            seen += bytes.size() + 4;
            return true;
        });
        ASSERT_LE(seen, page.size());
    }
}

TEST(Page, APageThatIsResizedKeepsWhatItHas) {
    std::vector<std::byte> memory(100);
    PageWriter writer{memory};
    EXPECT_NE(writer.append(Fid{1}, 0, 20), nullptr);
    writer.resize(10);
    EXPECT_EQ(writer.append(Fid{1}, 0, 0), nullptr);
    EXPECT_EQ(writer.used(), 32U);
    writer.resize(36);
    EXPECT_NE(writer.append(Fid{1}, 0, 0), nullptr);
}

} // namespace
} // namespace netio::pubsub
