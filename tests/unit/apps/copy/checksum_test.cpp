// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

namespace apps::copy::checksum_test {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span{text});
}

std::string hex(ChecksumKind kind, std::string_view text) {
    Checksum checksum{kind};
    checksum.add(bytes(text));
    return to_hex(kind, checksum.digest());
}

// The output of sha256sum and xxh128sum.
TEST(ChecksumOfAFile, IsWhatOtherToolsPrint) {
    EXPECT_EQ(hex(ChecksumKind::sha256, "abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex(ChecksumKind::sha256, ""),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex(ChecksumKind::xxh3_128, ""), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(hex(ChecksumKind::xxh3_128, "abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(ChecksumOfAFile, DoesNotDependOnThePiecesAndMayBeAskedForInBetween) {
    for (const ChecksumKind kind : {ChecksumKind::xxh3_128, ChecksumKind::sha256}) {
        Checksum checksum{kind};
        checksum.add(bytes("some of it, "));
        EXPECT_EQ(to_hex(kind, checksum.digest()), hex(kind, "some of it, "));
        checksum.add({});
        checksum.add(bytes("and the rest"));
        EXPECT_EQ(to_hex(kind, checksum.digest()), hex(kind, "some of it, and the rest"));
        checksum.restart();
        EXPECT_EQ(to_hex(kind, checksum.digest()), hex(kind, ""));
    }
}

TEST(ChecksumOfAFile, IsEqualForZerosAndAHole) {
    for (const ChecksumKind kind : {ChecksumKind::xxh3_128, ChecksumKind::sha256}) {
        for (const std::size_t head : {0U, 1U, 255U, 256U, 257U, 4096U, 100'000U}) {
            for (const std::size_t hole : {0U, 1U, 1023U, 1024U, 2048U, 2049U, 3'000'001U}) {
                Checksum plain{kind};
                Checksum quick{kind};
                for (Checksum* const each : {&plain, &quick})
                    each->add(bytes(std::string(head, 'a')));
                plain.add(bytes(std::string(hole, '\0')));
                quick.add_zeros(hole, {});
                EXPECT_EQ(plain.digest(), quick.digest()) << head << " " << hole;
                for (Checksum* const each : {&plain, &quick})
                    each->add(bytes(std::string(777, 'b')));
                EXPECT_EQ(plain.digest(), quick.digest()) << head << " " << hole << " and more";
            }
        }
    }
}

TEST(ChecksumOfAFile, IsCancelledInsideAHoleOnRequest) {
    std::stop_source source;
    source.request_stop();
    Checksum checksum{ChecksumKind::sha256};
    EXPECT_THROW(checksum.add_zeros(std::uint64_t{1} << 60, source.get_token()),
                 std::runtime_error);
}

TEST(ChecksumOfAChunk, IsTheBeginningOfTheFilesOfTheSameBytes) {
    Checksum checksum{ChecksumKind::xxh3_128};
    checksum.add(bytes("chunk"));
    const ChunkDigest chunk = chunk_digest(bytes("chunk"));
    EXPECT_TRUE(std::equal(chunk.begin(), chunk.end(), checksum.digest().begin()));
    EXPECT_NE(chunk, chunk_digest(bytes("chunk.")));
}

} // namespace
} // namespace apps::copy::checksum_test
