// SPDX-License-Identifier: Apache-2.0
#include "netio/memory/buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace netio::buffer_test {
namespace {

// Counts the existing registrations.
class CountingDomain final : public MemoryDomain {
  public:
    std::unique_ptr<Registration> register_memory(std::span<std::byte>, Access) override {
        if (refuse) throw std::runtime_error{"refused"};
        return std::make_unique<Counted>(*this);
    }
    int living = 0;
    int made = 0;
    bool refuse = false;

  private:
    struct Counted final : Registration {
        explicit Counted(CountingDomain& d) : domain{d} {
            ++domain.living;
            ++domain.made;
        }
        ~Counted() override { --domain.living; }
        void* descriptor() const noexcept override { return nullptr; }
        std::uint64_t key() const noexcept override { return 0; }
        std::uint64_t base() const noexcept override { return 0; }
        CountingDomain& domain;
    };
};

TEST(RegisteredBufferDeathTest, AbortsOnASliceOutsideItsBuffer) {
    RegisteredBuffer buffer{100};
    const Slice whole = buffer.slice();
    const std::array<Slice, 2> twice{whole, Slice{.buffer = nullptr, .data = nullptr, .size = 0}};
    EXPECT_EQ(checked_size(twice), 100U);
    for (const Slice& wrong :
         {Slice{&buffer, buffer.data(), 101}, Slice{&buffer, buffer.data() - 1, 1},
          Slice{&buffer, buffer.data() + 100, 1}, Slice{nullptr, buffer.data(), 1}}) {
        EXPECT_DEATH(checked_size({&wrong, 1}), "a slice must lie within its registered buffer");
    }
}

// The machine may have no huge pages; the buffer works in both cases and reports which.
TEST(RegisteredBuffer, OnHugePagesIsWhatItWasAskedForOrFallsBack) {
    RegisteredBuffer buffer{3'000'001, Access::local, Pages::huge};
    EXPECT_EQ(buffer.size(), 3'000'001U);
    EXPECT_TRUE(std::ranges::all_of(buffer.memory(), [](std::byte b) { return b == std::byte{}; }));
    const auto alignment = buffer.on_huge_pages() ? std::uintptr_t{2} << 20U : std::uintptr_t{4096};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment, 0U);
    buffer.data()[3'000'000] = std::byte{1};
    EXPECT_FALSE(RegisteredBuffer{4096}.on_huge_pages());
}

TEST(RegisteredBuffer, WithZeroBytesIsRefused) {
    EXPECT_THROW(RegisteredBuffer{0U}, std::invalid_argument);
    EXPECT_THROW((RegisteredBuffer{0U, Access::local, Pages::huge}), std::invalid_argument);
    EXPECT_THROW(RegisteredBuffer{std::span<std::byte>{}}, std::invalid_argument);
    EXPECT_THROW(RegisteredBuffer::of_constant({}), std::invalid_argument);
}

TEST(RegisteredBuffer, IsZeroedAndPageAligned) {
    const RegisteredBuffer buffer{100000};
    EXPECT_EQ(buffer.size(), 100000U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096, 0U);
    EXPECT_TRUE(
        std::ranges::all_of(buffer.memory(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(RegisteredBuffer, IsRegisteredOnceInEachDomainAtFirstUse) {
    CountingDomain one;
    CountingDomain two;
    {
        RegisteredBuffer buffer{64};
        EXPECT_EQ(one.made, 0);
        const Registration& first = buffer.registration(one);
        EXPECT_EQ(&buffer.registration(one), &first);
        buffer.registration(two);
        EXPECT_EQ(one.made, 1);
        EXPECT_EQ(two.made, 1);
    }
    EXPECT_EQ(one.living, 0);
    EXPECT_EQ(two.living, 0);
}

TEST(RegisteredBuffer, AFailedRegistrationLeavesTheBufferUsable) {
    CountingDomain domain;
    domain.refuse = true;
    RegisteredBuffer buffer{64};
    EXPECT_THROW(buffer.registration(domain), std::runtime_error);
    domain.refuse = false;
    buffer.registration(domain);
    EXPECT_EQ(domain.living, 1);
}

TEST(RegisteredBuffer, TakesMemoryOfTheUsers) {
    std::array<std::byte, 32> memory{};
    RegisteredBuffer buffer{std::span{memory}};
    EXPECT_EQ(buffer.data(), memory.data());
    EXPECT_EQ(buffer.slice(8, 4).data, memory.data() + 8);
    EXPECT_TRUE(buffer.contains(memory.data() + 31, 1));
    EXPECT_FALSE(buffer.contains(memory.data() + 31, 2));
    EXPECT_FALSE(buffer.contains(memory.data() + 1, SIZE_MAX));
}

TEST(RegisteredBufferDeathTest, ASliceOutsideIsNamedWithItsNumbers) {
    RegisteredBuffer buffer{32};
    EXPECT_DEATH((void)buffer.slice(30, 3),
                 "slice: 3 bytes from offset 30 are not within the buffer, which has 32");
    EXPECT_DEATH((void)buffer.slice(SIZE_MAX, 2), "not within the buffer");
}

} // namespace
} // namespace netio::buffer_test
