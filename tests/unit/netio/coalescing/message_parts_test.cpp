// SPDX-License-Identifier: Apache-2.0
#include "netio/coalescing/message_parts.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace netio {
namespace {

TEST(MessageParts, CopiesAMessageOfEachSizeAndNothingAroundIt) {
    constexpr std::byte guard{0xee};
    for (std::size_t size = 0; size <= 200; ++size) {
        std::vector<std::byte> message(size);
        for (std::size_t i = 0; i < size; ++i)
            message[i] = static_cast<std::byte>(i + 1);
        std::vector<std::byte> out(size + 2, guard);
        copy_message(out.data() + 1, message);
        EXPECT_EQ(out.front(), guard) << size;
        EXPECT_EQ(out.back(), guard) << size;
        EXPECT_EQ(std::vector<std::byte>(out.begin() + 1, out.end() - 1), message) << size;
    }
}

} // namespace
} // namespace netio
