// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/listener.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <vector>

namespace netio::fabric::handshake_guard_test {
namespace {

access::AuthAddress peer(std::uint8_t host, std::uint16_t port) {
    return {.host = access::host_of_ipv4(
                std::array{std::byte{10}, std::byte{}, std::byte{}, std::byte{host}}),
            .port = port};
}

// Enters a peer; returns the peer that must be removed for it.
std::optional<PendingPeer> enter(PendingHandshakes& pending, const PendingPeer& it) {
    pending.enter(it);
    const auto excess = pending.excess(it.peer);
    if (!excess) return std::nullopt;
    pending.forget(excess->pending.fd);
    return excess->pending;
}

TEST(PendingHandshakes, SelectsTheOldestOfAMachineWithTooMany) {
    PendingHandshakes pending{2};
    EXPECT_FALSE(enter(pending, {.fd = 9, .peer = peer(1, 1)}));
    EXPECT_FALSE(enter(pending, {.fd = 5, .peer = peer(1, 2)}));
    const auto excess = enter(pending, {.fd = 7, .peer = peer(1, 3)});
    ASSERT_TRUE(excess);
    EXPECT_EQ(*excess, (PendingPeer{.fd = 9, .peer = peer(1, 1)}));
    EXPECT_FALSE(pending.knows({.fd = 9, .peer = peer(1, 1)}));
}

TEST(PendingHandshakes, CountsEachMachineAlone) {
    PendingHandshakes pending{1};
    EXPECT_FALSE(enter(pending, {.fd = 1, .peer = peer(1, 1)}));
    EXPECT_FALSE(enter(pending, {.fd = 2, .peer = peer(2, 1)}));
    EXPECT_TRUE(enter(pending, {.fd = 3, .peer = peer(2, 2)}));
}

TEST(PendingHandshakes, TakesAnIpv6NetworkForOneMachine) {
    access::AuthAddress one{.host = {}, .port = 1};
    one.host[0] = std::byte{0x20};
    access::AuthAddress same = one;
    same.host[15] = std::byte{7};
    access::AuthAddress other = one;
    other.host[7] = std::byte{1};
    PendingHandshakes pending{1};
    EXPECT_FALSE(enter(pending, {.fd = 1, .peer = one}));
    EXPECT_FALSE(enter(pending, {.fd = 2, .peer = other}));
    EXPECT_EQ(enter(pending, {.fd = 3, .peer = same}), (PendingPeer{.fd = 1, .peer = one}));
}

TEST(PendingHandshakes, ADescriptorBelongsToItsLastPeer) {
    PendingHandshakes pending{2};
    EXPECT_FALSE(enter(pending, {.fd = 1, .peer = peer(1, 1)}));
    EXPECT_FALSE(enter(pending, {.fd = 1, .peer = peer(1, 2)}));
    EXPECT_FALSE(enter(pending, {.fd = 2, .peer = peer(1, 3)})) << "one has left";
    EXPECT_EQ(pending.leave(peer(1, 1)), -1);
    EXPECT_EQ(pending.leave(peer(1, 2)), 1);
    EXPECT_EQ(pending.size(), 1U);
}

TEST(PendingHandshakes, KeepsAPeerThatHasSentItsRequest) {
    PendingHandshakes pending{1};
    pending.enter({.fd = 1, .peer = peer(1, 1)});
    pending.enter({.fd = 2, .peer = peer(1, 2)});
    const auto excess = pending.excess(peer(1, 2));
    ASSERT_TRUE(excess);
    EXPECT_EQ(excess->pending.fd, 1);
    EXPECT_FALSE(excess->has_requested);
    pending.mark_requested(1);
    EXPECT_FALSE(pending.excess(peer(1, 2)));
    EXPECT_EQ(enter(pending, {.fd = 3, .peer = peer(1, 3)})->fd, 2);
    EXPECT_EQ(pending.leave(peer(1, 1)), 1);
    EXPECT_EQ(pending.leave(peer(1, 3)), 3);
    EXPECT_EQ(pending.size(), 0U);
}

TEST(PendingHandshakes, LimitsPeersThatHaveSentTheirRequestToo) {
    PendingHandshakes pending{2};
    for (std::uint16_t i = 0; i < 2 * PendingHandshakes::requested_factor; ++i) {
        pending.enter({.fd = i, .peer = peer(1, i)});
        pending.mark_requested(i);
        ASSERT_FALSE(pending.excess(peer(1, i)));
    }
    pending.enter({.fd = 99, .peer = peer(1, 99)});
    pending.mark_requested(99);
    const auto excess = pending.excess(peer(1, 99));
    ASSERT_TRUE(excess);
    EXPECT_TRUE(excess->has_requested);
    EXPECT_EQ(excess->pending.fd, 0) << "the oldest";
    pending.forget(0);
    EXPECT_FALSE(pending.excess(peer(1, 99)));
}

// The same rules, in a list in order of arrival.
struct Model {
    std::size_t limit;
    std::vector<PendingPeer> pending;

    std::optional<PendingPeer> enter(const PendingPeer& it) {
        std::erase_if(pending, [&](const auto& each) { return each.fd == it.fd; });
        pending.push_back(it);
        const auto same_host = [&](const auto& each) { return each.peer.host == it.peer.host; };
        if (std::cmp_less_equal(std::ranges::count_if(pending, same_host), limit))
            return std::nullopt;
        const auto longest = std::ranges::find_if(pending, same_host);
        const auto result = *longest;
        pending.erase(longest);
        return result;
    }
    int leave(const access::AuthAddress& who) {
        const auto found = std::ranges::find(pending, who, &PendingPeer::peer);
        if (found == pending.end()) return -1;
        const int fd = found->fd;
        pending.erase(found);
        return fd;
    }
    void keep(const std::map<int, access::AuthAddress>& present) {
        std::erase_if(pending, [&](const auto& each) {
            const auto there = present.find(each.fd);
            return there == present.end() || there->second != each.peer;
        });
    }
};

TEST(PendingHandshakes, DoesWhatAPlainListDoes) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random{seed};
        PendingHandshakes pending{1 + seed % 4};
        Model model{.limit = 1 + seed % 4, .pending = {}};
        std::uint16_t port = 0;
        for (int step = 0; step < 1000; ++step) {
            const auto host = static_cast<std::uint8_t>(random() % 3);
            if (const auto what = random() % 10; what < 6) {
                const PendingPeer it{.fd = static_cast<int>(random() % 12),
                                     .peer = peer(host, port++)};
                ASSERT_EQ(enter(pending, it), model.enter(it));
            } else if (what < 9) {
                const auto who = peer(host, static_cast<std::uint16_t>(port - random() % 8));
                ASSERT_EQ(pending.leave(who), model.leave(who));
            } else {
                std::map<int, access::AuthAddress> present;
                for (const auto& each : model.pending)
                    if (random() % 2 == 0) present.emplace(each.fd, each.peer);
                pending.keep(present);
                model.keep(present);
            }
            ASSERT_EQ(pending.size(), model.pending.size());
            for (const auto& each : model.pending)
                ASSERT_TRUE(pending.knows(each));
        }
    }
}

} // namespace
} // namespace netio::fabric::handshake_guard_test
