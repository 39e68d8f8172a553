// SPDX-License-Identifier: Apache-2.0
#include "netio/base/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace netio {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t largest_bytes = std::size_t{3} * page_bytes;

// A page-aligned place in `memory`, which has a page more than its user needs.
std::byte* aligned(std::vector<std::byte>& memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (page_bytes - address % page_bytes) % page_bytes;
}

// Copies `size` bytes to a place `ahead` of the source, modulo a page.
void expect_copied(std::size_t size, std::size_t ahead) {
    std::vector<std::byte> source_memory(largest_bytes + page_bytes);
    std::vector<std::byte> target_memory(largest_bytes + 3 * page_bytes, std::byte{0xee});
    std::byte* const source = aligned(source_memory);
    std::byte* const target = aligned(target_memory) + ahead;
    for (std::size_t i = 0; i < size; ++i)
        source[i] = static_cast<std::byte>(i * 7 + i / 256);
    copy_bytes(target, {source, size});
    ASSERT_TRUE(std::equal(source, source + size, target)) << size << " bytes, ahead " << ahead;
    ASSERT_EQ(target[size], std::byte{0xee}) << size << " bytes, ahead " << ahead;
    ASSERT_TRUE(ahead == 0 || target[-1] == std::byte{0xee}) << size << " bytes, ahead " << ahead;
}

TEST(CopyBytes, CopiesEachSizeExactly) {
    for (std::size_t size = 0; size <= 130; ++size)
        for (const std::size_t ahead : std::initializer_list<std::size_t>{0, 1, 17})
            ASSERT_NO_FATAL_FAILURE(expect_copied(size, ahead));
}

TEST(CopyBytes, CopiesLargeMessagesToEachAddress) {
    for (const std::size_t size :
         std::initializer_list<std::size_t>{2047, 2048, 2049, 2560, 4096, 4097, 12288})
        for (const std::size_t ahead :
             std::initializer_list<std::size_t>{0, 1, 12, 15, 16, 63, 64, 2048, 4095})
            ASSERT_NO_FATAL_FAILURE(expect_copied(size, ahead));
}

TEST(CopyBytes, KnowsForWhichAddressesStringsAreSlow) {
    std::vector<std::byte> memory(4 * page_bytes);
    const std::byte* const source = memory.data();
    EXPECT_FALSE(detail::is_slow_for_strings(source, source));
    EXPECT_TRUE(detail::is_slow_for_strings(source + 1, source));
    EXPECT_TRUE(detail::is_slow_for_strings(source + 63, source));
    EXPECT_FALSE(detail::is_slow_for_strings(source + 64, source));
    EXPECT_TRUE(detail::is_slow_for_strings(source + 2 * page_bytes + 1, source));
    EXPECT_TRUE(detail::is_slow_for_strings(source + 1, source + page_bytes));
    EXPECT_FALSE(detail::is_slow_for_strings(source, source + 1));
}

} // namespace
} // namespace netio
