// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/reassembly.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace netio::pubsub {
namespace {

using Outcome = Reassembly::Outcome;

std::vector<std::byte> bytes_of(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(i * 7 + 1);
    return bytes;
}

FragmentExtension fragment(std::uint32_t number, std::size_t offset, std::size_t total) {
    return {.fid = Fid{9},
            .message_number = number,
            .offset = static_cast<std::uint32_t>(offset),
            .total = static_cast<std::uint32_t>(total),
            .status = 3};
}

TEST(Reassembly, RefusesWhatIsLargerThanAgreed) {
    Reassembly reassembly{8};
    EXPECT_EQ(reassembly.take(fragment(1, 0, 9), bytes_of(4)), Outcome::too_large);
}

TEST(Reassembly, RefusesWhatDoesNotFollow) {
    const auto second_after_half = [](const FragmentExtension& second, std::size_t size) {
        Reassembly reassembly{100};
        EXPECT_EQ(reassembly.take(fragment(1, 0, 8), bytes_of(4)), Outcome::incomplete);
        return reassembly.take(second, bytes_of(size));
    };
    EXPECT_EQ(second_after_half(fragment(1, 4, 8), 4), Outcome::complete);
    EXPECT_EQ(second_after_half(fragment(1, 4, 8), 5), Outcome::out_of_order); // too much
    EXPECT_EQ(second_after_half(fragment(1, 4, 8), 0), Outcome::out_of_order); // nothing
    EXPECT_EQ(second_after_half(fragment(1, 3, 8), 4), Outcome::out_of_order);
    EXPECT_EQ(second_after_half(fragment(1, 5, 8), 3), Outcome::out_of_order);
    EXPECT_EQ(second_after_half(fragment(2, 4, 8), 4), Outcome::out_of_order);
    EXPECT_EQ(second_after_half(fragment(1, 4, 9), 4), Outcome::out_of_order);
    FragmentExtension other_fid = fragment(1, 4, 8);
    other_fid.fid = Fid{8};
    EXPECT_EQ(second_after_half(other_fid, 4), Outcome::out_of_order);
    FragmentExtension other_status = fragment(1, 4, 8);
    other_status.status = 0;
    EXPECT_EQ(second_after_half(other_status, 4), Outcome::out_of_order);
}

TEST(Reassembly, TakesTheNextMessageForAnother) {
    Reassembly reassembly{100};
    EXPECT_EQ(reassembly.take(fragment(1, 0, 2), bytes_of(2)), Outcome::complete);
    const std::vector<std::byte> second = bytes_of(3);
    EXPECT_EQ(reassembly.take(fragment(2, 0, 3), second), Outcome::complete);
    EXPECT_THAT(reassembly.message(), testing::ElementsAreArray(second));
}

TEST(Reassembly, ForgetsWhatIsAbandoned) {
    Reassembly reassembly{100};
    EXPECT_EQ(reassembly.take(fragment(1, 0, 8), bytes_of(4)), Outcome::incomplete);
    reassembly.abandon();
    EXPECT_FALSE(reassembly.in_progress());
    EXPECT_EQ(reassembly.take(fragment(2, 0, 2), bytes_of(2)), Outcome::complete);
}

} // namespace
} // namespace netio::pubsub
