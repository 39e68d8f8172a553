// SPDX-License-Identifier: Apache-2.0
#include "netio/access/peer_limiter.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace netio::access::peer_limiter_test {
namespace {

TEST(PeerLimiter, LimitsOneHostToHalfOfThePeers) {
    PeerLimiter limiter{5};
    for (const char* peer : {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"})
        EXPECT_EQ(limiter.enter(peer), "");
    EXPECT_EQ(limiter.enter("10.0.0.1:4"), "3 peers of that host are connected already");
    EXPECT_EQ(limiter.enter("10.0.0.2:1"), "");
    EXPECT_EQ(limiter.enter("[::1]:1"), "");
    EXPECT_EQ(limiter.enter("10.0.0.3:1"), "5 peers are connected already");
}

// The owner of an IPv6 network has more addresses than the limit.
TEST(PeerLimiter, CountsAnIpv6NetworkAsOneHost) {
    PeerLimiter limiter{6, 2};
    EXPECT_EQ(limiter.enter("[2001:db8:0:1::1]:1"), "");
    EXPECT_EQ(limiter.enter("[2001:db8:0:1:ffff::2]:1"), "");
    EXPECT_EQ(limiter.enter("[2001:db8:0:1::3]:1"), "2 peers of that host are connected already");
    EXPECT_EQ(limiter.enter("[2001:db8:0:2::1]:1"), "") << "another network";
    limiter.leave("[2001:db8:0:1::1]:1");
    EXPECT_EQ(limiter.enter("[2001:db8:0:1::3]:1"), "");
    EXPECT_EQ(limiter.enter("[fe80::1%eth0]:1"), "");
    EXPECT_EQ(limiter.enter("[fe80::2%eth0]:1"), "");
    EXPECT_EQ(limiter.enter("[fe80::3%eth0]:1"), "2 peers of that host are connected already");
}

TEST(PeerLimiter, TakesAnIpv4AddressInEitherNotation) {
    PeerLimiter limiter{6, 2};
    EXPECT_EQ(limiter.enter("10.0.0.1:1"), "");
    EXPECT_EQ(limiter.enter("[::ffff:10.0.0.1]:1"), "");
    EXPECT_NE(limiter.enter("10.0.0.1:2"), "");
    EXPECT_EQ(limiter.enter("[::ffff:10.0.0.2]:1"), "") << "another host";
}

TEST(PeerLimiter, AdmitsAnotherPeerAfterOneLeft) {
    PeerLimiter limiter{1};
    EXPECT_EQ(limiter.enter("a:1"), "");
    EXPECT_NE(limiter.enter("b:1"), "");
    limiter.leave("a:1");
    EXPECT_EQ(limiter.enter("a:2"), "") << "of the same host";
}

TEST(PeerLimiter, TakesTheLimitPerHostThatIsSet) {
    PeerLimiter limiter{4, 4};
    for (const char* peer : {"a:1", "a:2", "a:3", "a:4"})
        EXPECT_EQ(limiter.enter(peer), "");
}

PeerLimiter::Limit enter(PeerLimiter& limiter, std::vector<PeerSlot>& slots, KeyId key,
                         const Host& host, std::size_t key_limit = PeerLimiter::unlimited) {
    PeerLimiter::Entry entry =
        limiter.enter({.host = host, .address = {}, .key = key, .key_limit = key_limit});
    EXPECT_EQ(entry.slot == nullptr, entry.limit != PeerLimiter::Limit::none);
    EXPECT_EQ(entry.why.empty(), entry.slot != nullptr);
    slots.push_back(std::move(entry.slot));
    return entry.limit;
}

TEST(PeerLimiter, CountsTheConnectionsOfAKeyAndOfAHost) {
    PeerLimiter limiter{PeerLimiter::unlimited, 3};
    using Limit = PeerLimiter::Limit;
    std::vector<PeerSlot> slots;
    const auto enter_two = [&](KeyId key, const Host& host) {
        return enter(limiter, slots, key, host, 2);
    };
    EXPECT_EQ(enter_two(1, host_of(1)), Limit::none);
    EXPECT_EQ(enter_two(1, host_of(2)), Limit::none);
    EXPECT_EQ(enter_two(1, host_of(3)), Limit::key);
    EXPECT_EQ(enter_two(2, host_of(1)), Limit::none);
    EXPECT_EQ(enter_two(2, host_of(1)), Limit::none);
    EXPECT_EQ(enter_two(3, host_of(1)), Limit::host);
    slots[0].reset();
    EXPECT_EQ(enter_two(3, host_of(1)), Limit::none);
    EXPECT_EQ(limiter.of_key(1), 1U);
    EXPECT_EQ(limiter.of_host(host_of(1)), 3U);
    slots[1].reset();
    EXPECT_EQ(limiter.of_host(host_of(2)), 0U);
}

TEST(PeerLimiter, CountsAnIpv6NetworkOfPeersWithKeysAsOneHost) {
    PeerLimiter limiter{PeerLimiter::unlimited, 1};
    using Limit = PeerLimiter::Limit;
    std::vector<PeerSlot> slots;
    Host one{};
    one[0] = std::byte{0x20};
    one[15] = std::byte{1};
    Host same = one;
    same[8] = std::byte{1};
    Host other = one;
    other[7] = std::byte{1};
    EXPECT_EQ(enter(limiter, slots, 1, one), Limit::none);
    EXPECT_EQ(enter(limiter, slots, 2, same), Limit::host);
    EXPECT_EQ(enter(limiter, slots, 2, other), Limit::none);
    slots[0].reset();
    EXPECT_EQ(enter(limiter, slots, 2, same), Limit::none);
}

TEST(PeerLimiter, KeepsASlotThatOutlivesIt) {
    std::vector<PeerSlot> slots;
    {
        PeerLimiter limiter{1};
        EXPECT_EQ(enter(limiter, slots, anyone, host_of(1)), PeerLimiter::Limit::none);
        EXPECT_EQ(enter(limiter, slots, anyone, host_of(2)), PeerLimiter::Limit::total);
    }
    slots.clear();
}

} // namespace
} // namespace netio::access::peer_limiter_test
