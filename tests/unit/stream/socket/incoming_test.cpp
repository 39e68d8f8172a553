// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/directions.hpp"

#include "netio/base/status.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <span>

namespace netio::stream::incoming_test {
namespace {

struct Region final : Registration {
    Region(std::span<std::byte> bytes, std::uint64_t number) : memory{bytes}, number_{number} {}
    void* descriptor() const noexcept override { return nullptr; }
    std::uint64_t key() const noexcept override { return number_; }
    std::uint64_t base() const noexcept override {
        return reinterpret_cast<std::uint64_t>(memory.data());
    }
    std::span<std::byte> memory;
    std::uint64_t number_;
};

// Accepts a limited number of registrations.
class Domain final : public MemoryDomain {
  public:
    std::unique_ptr<Registration> register_memory(std::span<std::byte> memory,
                                                  Access access) override {
        EXPECT_EQ(access, Access::remote_write);
        if (made == limit) throw FabricError{{}, "no more"};
        return std::make_unique<Region>(memory, ++made);
    }
    std::size_t made = 0;
    std::size_t limit = 10;
};

const auto with_writes = RemoteWriteMode::choose(RemoteWrites::trusted, false);
const auto without_writes = RemoteWriteMode::choose(RemoteWrites::never, true);

TEST(RingSet, AnnouncesWhereEachRingIs) {
    Domain domain;
    RingSet rings;
    const RemoteRing first = rings.add(1'000, with_writes, domain);
    const RemoteRing second = rings.add(2'000, with_writes, domain);
    EXPECT_EQ(first, (RemoteRing{reinterpret_cast<std::uint64_t>(rings.at(0)), 1, 1'000}));
    EXPECT_EQ(second, (RemoteRing{reinterpret_cast<std::uint64_t>(rings.at(1)), 2, 2'000}));
}

TEST(RingSet, WithoutRemoteWritesIsNotRegisteredAndHasNoAddress) {
    Domain domain;
    RingSet rings;
    EXPECT_EQ(rings.add(1'000, without_writes, domain), (RemoteRing{.bytes = 1'000}));
    EXPECT_EQ(domain.made, 0U);
    EXPECT_NE(rings.at(0), nullptr);
}

TEST(RingSet, NumbersStayWhenTheOldestIsDropped) {
    Domain domain;
    RingSet rings;
    static_cast<void>(rings.add(1'000, with_writes, domain));
    const RemoteRing second = rings.add(2'000, with_writes, domain);
    rings.drop(0);
    EXPECT_EQ(rings.size(), 1U);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(rings.at(1)), second.address);
    const RemoteRing third = rings.add(4'000, with_writes, domain);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(rings.at(2)), third.address);
}

TEST(RingSet, WithoutMemoryNothingIsAdded) {
    Domain domain;
    domain.limit = 1;
    RingSet rings;
    static_cast<void>(rings.add(1'000, with_writes, domain));
    EXPECT_THROW(static_cast<void>(rings.add(2'000, with_writes, domain)), FabricError);
    EXPECT_EQ(rings.size(), 1U);
}

TEST(RingSetDeathTest, AbortsOnARingThatIsNotTheOldest) {
    Domain domain;
    RingSet rings;
    static_cast<void>(rings.add(1'000, with_writes, domain));
    static_cast<void>(rings.add(2'000, with_writes, domain));
    EXPECT_DEATH(rings.drop(1), "order of their making");
    rings.drop(0);
    EXPECT_DEATH(static_cast<void>(rings.at(0)), "check failed");
}

TEST(RemoteWriteMode, NeedsAGuardTheRightOrTrust) {
    EXPECT_TRUE(RemoteWriteMode::choose(RemoteWrites::guarded, true).enabled());
    EXPECT_FALSE(RemoteWriteMode::choose(RemoteWrites::guarded, false).enabled());
    EXPECT_TRUE(RemoteWriteMode::choose(RemoteWrites::trusted, false).enabled());
    EXPECT_FALSE(RemoteWriteMode::choose(RemoteWrites::never, true).enabled());
    EXPECT_TRUE(without_writes.peer_may_enable());
}

TEST(RemoteWriteMode, IsOffInBothDirectionsWhereFramesAreSealed) {
    EXPECT_FALSE(RemoteWriteMode::sealed().enabled());
    EXPECT_FALSE(RemoteWriteMode::sealed().peer_may_enable());
}

} // namespace
} // namespace netio::stream::incoming_test
