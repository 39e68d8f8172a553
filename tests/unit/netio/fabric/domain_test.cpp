// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/domain.hpp"

#include <array>
#include <gtest/gtest.h>

namespace netio::fabric::domain_test {
namespace {

constexpr std::size_t page_bytes = 4096;
alignas(page_bytes) std::array<std::byte, 2 * page_bytes> pages;

struct Pieces {
    // A message of `bytes` bytes, with `in_first_page` of them in the first page.
    Pieces(std::size_t bytes, std::size_t in_first_page)
        : pieces{{{&pages[page_bytes - in_first_page], bytes}, {nullptr, 0}}} {}

    std::array<::iovec, 2> pieces;
    std::array<void*, 2> descriptors{&pages, nullptr};
};

TEST(SplitAtPage, DividesAShortMessageWhereThePagesMeet) {
    for (std::size_t bytes = 2; bytes <= 256; ++bytes) {
        for (std::size_t first = 1; first < bytes; ++first) {
            Pieces message{bytes, first};
            ASSERT_EQ(split_at_page(message.pieces, message.descriptors), 2U);
            EXPECT_EQ(message.pieces[0].iov_base, &pages[page_bytes - first]);
            EXPECT_EQ(message.pieces[0].iov_len, first);
            EXPECT_EQ(message.pieces[1].iov_base, &pages[page_bytes]);
            EXPECT_EQ(message.pieces[1].iov_len, bytes - first);
            EXPECT_EQ(message.descriptors[1], message.descriptors[0]);
        }
    }
}

TEST(SplitAtPage, LeavesWhatLiesInOnePageOrIsLong) {
    struct Case {
        std::size_t bytes;
        std::size_t in_first_page;
    };
    for (const auto& [bytes, first] :
         {Case{0, 1}, Case{1, 1}, Case{100, 100}, Case{100, page_bytes}, Case{257, 1}}) {
        Pieces message{bytes, first};
        EXPECT_EQ(split_at_page(message.pieces, message.descriptors), 1U);
        EXPECT_EQ(message.pieces[0].iov_len, bytes);
    }
}

} // namespace
} // namespace netio::fabric::domain_test
