// SPDX-License-Identifier: Apache-2.0
#include "netio/session/frame_seal.hpp"

#include "netio/base/frame.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <vector>

namespace netio {
namespace {

using access::Cipher;
using access::Protection;
using Frame = std::vector<std::byte>;

// Both directions of a way, each with a key.
struct Way {
    explicit Way(Protection level)
        : sealer{level == Protection::peers ? FrameSealer{access::Tagger{key}}
                                            : FrameSealer{level, {Cipher::aes_256_gcm, key}}},
          opener{level == Protection::peers ? FrameOpener{access::TagChecker{key}}
                                            : FrameOpener{level, {Cipher::aes_256_gcm, key}}} {}

    Frame seal(std::uint8_t kind, std::size_t body_bytes) {
        std::array<std::byte, frame_header_bytes> header{};
        header[0] = std::byte{kind};
        const std::vector<std::byte> body(body_bytes, std::byte{7});
        const std::array<access::Bytes, 2> parts{header, body};
        const std::size_t behind = sealer.bytes_behind(kind);
        Frame frame(header.begin(), header.end());
        if (!sealer.encrypts()) frame.insert(frame.end(), body.begin(), body.end());
        const std::size_t begin = frame.size();
        frame.resize(frame_header_bytes + body_bytes + behind);
        if (behind > 0) {
            EXPECT_TRUE(sealer.seal(parts, std::span{frame}.subspan(begin)));
        }
        return frame;
    }

    access::Secret key = access::Secret::random();
    FrameSealer sealer;
    FrameOpener opener;
};

// docs/wire-formats.md, "Tags": open, shutdown, its confirmation, window, and what changes a
// service.
bool has_tag_with_peers(unsigned kind) {
    return kind == 1 || kind == 4 || kind == 5 || kind == 8 || kind >= 20;
}

TEST(FrameSeal, WithPeersWhatChangesSomethingHasATagAndNothingElse) {
    const Way way{Protection::peers};
    for (unsigned kind = 0; kind < 256; ++kind) {
        EXPECT_EQ(way.sealer.bytes_behind(static_cast<std::uint8_t>(kind)),
                  has_tag_with_peers(kind) ? 8U : 0U)
            << kind;
    }
}

TEST(FrameSeal, WithMoreEveryFrameHasOne) {
    for (const Protection level : {Protection::integrity, Protection::privacy}) {
        const Way way{level};
        for (unsigned kind = 0; kind < 256; ++kind)
            EXPECT_EQ(way.sealer.bytes_behind(static_cast<std::uint8_t>(kind)), 16U) << kind;
        EXPECT_EQ(way.sealer.encrypts(), level == Protection::privacy);
    }
}

TEST(FrameSeal, TakesAsManyBytesBehindTheLargestFrame) {
    EXPECT_EQ(seal_bytes(Protection::none), 0U);
    EXPECT_EQ(seal_bytes(Protection::peers), 8U);
    EXPECT_EQ(seal_bytes(Protection::integrity), 16U);
    EXPECT_EQ(seal_bytes(Protection::privacy), 16U);
    EXPECT_FALSE(seals_all(Protection::none) || seals_all(Protection::peers));
    EXPECT_TRUE(seals_all(Protection::integrity) && seals_all(Protection::privacy));
}

TEST(FrameSeal, IsTakenOffWhereItHoldsAndLeavesTheFrameAsItWas) {
    for (const Protection level : {Protection::peers, Protection::integrity, Protection::privacy}) {
        Way way{level};
        for (const std::uint8_t kind : std::initializer_list<std::uint8_t>{4, 3, 16, 20, 255}) {
            for (const std::size_t body_bytes : {0U, 1U, 100U}) {
                Frame sealed = way.seal(kind, body_bytes);
                std::span<std::byte> frame{sealed};
                ASSERT_TRUE(way.opener.open(frame)) << int{kind} << ", " << body_bytes;
                ASSERT_EQ(frame.size(), frame_header_bytes + body_bytes);
                EXPECT_EQ(frame[0], std::byte{kind});
                for (const std::byte byte : frame.subspan(frame_header_bytes))
                    EXPECT_EQ(byte, std::byte{7});
            }
        }
    }
}

TEST(FrameSeal, AFrameThatIsTooShortForItIsNotOpened) {
    for (const Protection level : {Protection::peers, Protection::integrity, Protection::privacy}) {
        for (std::size_t size = frame_header_bytes; size < frame_header_bytes + seal_bytes(level);
             ++size) {
            Way way{level};
            Frame sealed = way.seal(20, 0);
            std::span<std::byte> frame = std::span{sealed}.first(size);
            EXPECT_FALSE(way.opener.open(frame)) << size;
        }
    }
}

} // namespace
} // namespace netio
