// SPDX-License-Identifier: Apache-2.0
#include "netio/coalescing/reassembly.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace netio::reassembly_test {
namespace {

using Outcome = Reassembly::Outcome;
using testing::ElementsAreArray;

std::vector<std::byte> bytes_of(std::size_t size, unsigned salt = 1) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(i * 7 + salt);
    return bytes;
}

FragmentPlace place(std::size_t offset, std::size_t total) {
    return {.offset = static_cast<std::uint32_t>(offset),
            .total = static_cast<std::uint32_t>(total)};
}

// Every division of a message of up to eight bytes.
TEST(Reassembly, PutsEveryCuttingTogether) {
    Reassembly reassembly{8};
    unsigned salt = 0;
    for (std::size_t total = 1; total <= 8; ++total) {
        for (unsigned cuts = 0; cuts < 1U << (total - 1); ++cuts) {
            const std::vector<std::byte> whole = bytes_of(total, ++salt);
            std::size_t begin = 0;
            for (std::size_t end = 1; end <= total; ++end) {
                const bool last = end == total;
                if (!last && (cuts >> (end - 1) & 1U) == 0) continue;
                const Outcome outcome = reassembly.take(
                    place(begin, total), std::span{whole}.subspan(begin, end - begin));
                ASSERT_EQ(outcome, last ? Outcome::complete : Outcome::incomplete);
                ASSERT_EQ(reassembly.in_progress(), !last);
                begin = end;
            }
            ASSERT_THAT(reassembly.message(), ElementsAreArray(whole));
        }
    }
}

// Every possible second fragment of up to nine bytes, at every position in messages of up to nine
// bytes, after a first fragment with four of eight bytes: only the next four bytes complete it, and
// only the next one to three bytes continue it.
TEST(Reassembly, TakesWhatFollowsAndNothingElse) {
    for (std::size_t offset = 0; offset <= 9; ++offset) {
        for (std::size_t total = 0; total <= 9; ++total) {
            for (std::size_t size = 0; size <= 9; ++size) {
                Reassembly reassembly{8};
                ASSERT_EQ(reassembly.take(place(0, 8), bytes_of(4)), Outcome::incomplete);
                const bool follows = offset == 4 && total == 8 && size >= 1 && size <= 4;
                const Outcome expected = total > 8  ? Outcome::too_large
                                         : !follows ? Outcome::out_of_order
                                         : size < 4 ? Outcome::incomplete
                                                    : Outcome::complete;
                ASSERT_EQ(reassembly.take(place(offset, total), bytes_of(size)), expected)
                    << size << " bytes at " << offset << " of " << total;
            }
        }
    }
}

TEST(Reassembly, BeginsAtTheBeginning) {
    for (std::size_t offset = 0; offset <= 9; ++offset) {
        for (std::size_t total = 0; total <= 9; ++total) {
            for (std::size_t size = 0; size <= 9; ++size) {
                Reassembly reassembly{8};
                const bool first = offset == 0 && size >= 1 && size <= total;
                const Outcome expected = total > 8      ? Outcome::too_large
                                         : !first       ? Outcome::out_of_order
                                         : size < total ? Outcome::incomplete
                                                        : Outcome::complete;
                ASSERT_EQ(reassembly.take(place(offset, total), bytes_of(size)), expected)
                    << size << " bytes at " << offset << " of " << total;
            }
        }
    }
}

TEST(Reassembly, WithALimitOfZeroRefusesEverything) {
    Reassembly reassembly{0};
    EXPECT_EQ(reassembly.take(place(0, 1), bytes_of(1)), Outcome::too_large);
    EXPECT_EQ(reassembly.take(place(0, 0), {}), Outcome::out_of_order);
}

TEST(Reassembly, ForgetsWhatIsAbandoned) {
    Reassembly reassembly{100};
    EXPECT_EQ(reassembly.take(place(0, 8), bytes_of(4)), Outcome::incomplete);
    reassembly.abandon();
    EXPECT_FALSE(reassembly.in_progress());
    const std::vector<std::byte> next = bytes_of(2);
    EXPECT_EQ(reassembly.take(place(0, 2), next), Outcome::complete);
    EXPECT_THAT(reassembly.message(), ElementsAreArray(next));
}

TEST(Reassembly, CopiesNothingForASingleFragment) {
    Reassembly reassembly{8};
    const std::vector<std::byte> whole = bytes_of(8);
    const std::vector<std::byte> other = bytes_of(8, 3);
    ASSERT_EQ(reassembly.take(place(0, 8), std::span{other}.first(5)), Outcome::incomplete);
    ASSERT_EQ(reassembly.take(place(5, 8), std::span{other}.last(3)), Outcome::complete);
    EXPECT_THAT(reassembly.message(), ElementsAreArray(other));
    ASSERT_EQ(reassembly.take(place(0, 8), whole), Outcome::complete);
    EXPECT_EQ(reassembly.message().data(), whole.data());
    EXPECT_EQ(reassembly.message().size(), 8U);
    EXPECT_FALSE(reassembly.in_progress());
}

} // namespace
} // namespace netio::reassembly_test
