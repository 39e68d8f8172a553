// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/half_open.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <vector>

namespace netio::fabric {
namespace {

access::GateAddress peer(std::uint8_t host, std::uint16_t port) {
    return {.host = access::host_of_ipv4(
                std::array{std::byte{10}, std::byte{}, std::byte{}, std::byte{host}}),
            .port = port};
}

// Who has to go for it.
std::optional<HalfOpen::Guest> enter(HalfOpen& guests, const HalfOpen::Guest& guest) {
    guests.enter(guest);
    const auto excess = guests.excess(guest.peer);
    if (!excess) return std::nullopt;
    guests.forget(excess->guest.fd);
    return excess->guest;
}

TEST(HalfOpen, CutsOffWhoHasWaitedLongestOfAMachineThatSendsTooMany) {
    HalfOpen guests{2};
    EXPECT_FALSE(enter(guests, {.fd = 9, .peer = peer(1, 1)}));
    EXPECT_FALSE(enter(guests, {.fd = 5, .peer = peer(1, 2)}));
    const auto excess = enter(guests, {.fd = 7, .peer = peer(1, 3)});
    ASSERT_TRUE(excess);
    EXPECT_EQ(*excess, (HalfOpen::Guest{.fd = 9, .peer = peer(1, 1)}));
    EXPECT_FALSE(guests.knows({.fd = 9, .peer = peer(1, 1)}));
}

TEST(HalfOpen, AnotherMachineIsNotWeighedWithIt) {
    HalfOpen guests{1};
    EXPECT_FALSE(enter(guests, {.fd = 1, .peer = peer(1, 1)}));
    EXPECT_FALSE(enter(guests, {.fd = 2, .peer = peer(2, 1)}));
    EXPECT_TRUE(enter(guests, {.fd = 3, .peer = peer(2, 2)}));
}

TEST(HalfOpen, TheAddressesOfAnIpv6NetworkAreOneMachine) {
    access::GateAddress one{.host = {}, .port = 1};
    one.host[0] = std::byte{0x20};
    access::GateAddress same = one;
    same.host[15] = std::byte{7};
    access::GateAddress other = one;
    other.host[7] = std::byte{1};
    HalfOpen guests{1};
    EXPECT_FALSE(enter(guests, {.fd = 1, .peer = one}));
    EXPECT_FALSE(enter(guests, {.fd = 2, .peer = other}));
    EXPECT_EQ(enter(guests, {.fd = 3, .peer = same}), (HalfOpen::Guest{.fd = 1, .peer = one}));
}

TEST(HalfOpen, WhoHasADescriptorIsTheLastWhoCameWithIt) {
    HalfOpen guests{2};
    EXPECT_FALSE(enter(guests, {.fd = 1, .peer = peer(1, 1)}));
    EXPECT_FALSE(enter(guests, {.fd = 1, .peer = peer(1, 2)}));
    EXPECT_FALSE(enter(guests, {.fd = 2, .peer = peer(1, 3)})) << "one has gone";
    EXPECT_EQ(guests.leave(peer(1, 1)), -1);
    EXPECT_EQ(guests.leave(peer(1, 2)), 1);
    EXPECT_EQ(guests.size(), 1U);
}

TEST(HalfOpen, WhoHasAskedWaitsForUsAndIsNotCutOffForTheOthers) {
    HalfOpen guests{1};
    guests.enter({.fd = 1, .peer = peer(1, 1)});
    guests.enter({.fd = 2, .peer = peer(1, 2)});
    const auto excess = guests.excess(peer(1, 2));
    ASSERT_TRUE(excess);
    EXPECT_EQ(excess->guest.fd, 1);
    EXPECT_FALSE(excess->is_asking);
    guests.note_asking(1);
    EXPECT_FALSE(guests.excess(peer(1, 2)));
    EXPECT_EQ(enter(guests, {.fd = 3, .peer = peer(1, 3)})->fd, 2);
    EXPECT_EQ(guests.leave(peer(1, 1)), 1);
    EXPECT_EQ(guests.leave(peer(1, 3)), 3);
    EXPECT_EQ(guests.size(), 0U);
}

TEST(HalfOpen, EvenOfThoseWhoAskThereIsALimit) {
    HalfOpen guests{2};
    for (std::uint16_t i = 0; i < 2 * HalfOpen::asking_per_waiting; ++i) {
        guests.enter({.fd = i, .peer = peer(1, i)});
        guests.note_asking(i);
        ASSERT_FALSE(guests.excess(peer(1, i)));
    }
    guests.enter({.fd = 99, .peer = peer(1, 99)});
    guests.note_asking(99);
    const auto excess = guests.excess(peer(1, 99));
    ASSERT_TRUE(excess);
    EXPECT_TRUE(excess->is_asking);
    EXPECT_EQ(excess->guest.fd, 0) << "who asked first";
    guests.forget(0);
    EXPECT_FALSE(guests.excess(peer(1, 99)));
}

// The same in the order of coming, in a list.
struct Model {
    std::size_t limit;
    std::vector<HalfOpen::Guest> guests;

    std::optional<HalfOpen::Guest> enter(const HalfOpen::Guest& guest) {
        std::erase_if(guests, [&](const auto& each) { return each.fd == guest.fd; });
        guests.push_back(guest);
        const auto of_it = [&](const auto& each) { return each.peer.host == guest.peer.host; };
        if (std::cmp_less_equal(std::ranges::count_if(guests, of_it), limit)) return std::nullopt;
        const auto longest = std::ranges::find_if(guests, of_it);
        const auto result = *longest;
        guests.erase(longest);
        return result;
    }
    int leave(const access::GateAddress& who) {
        const auto found = std::ranges::find(guests, who, &HalfOpen::Guest::peer);
        if (found == guests.end()) return -1;
        const int fd = found->fd;
        guests.erase(found);
        return fd;
    }
    void keep(const std::map<int, access::GateAddress>& present) {
        std::erase_if(guests, [&](const auto& each) {
            const auto there = present.find(each.fd);
            return there == present.end() || there->second != each.peer;
        });
    }
};

TEST(HalfOpen, DoesWhatAPlainListDoes) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random{seed};
        HalfOpen guests{1 + seed % 4};
        Model model{.limit = 1 + seed % 4, .guests = {}};
        std::uint16_t port = 0;
        for (int step = 0; step < 1000; ++step) {
            const auto host = static_cast<std::uint8_t>(random() % 3);
            if (const auto what = random() % 10; what < 6) {
                const HalfOpen::Guest guest{.fd = static_cast<int>(random() % 12),
                                            .peer = peer(host, port++)};
                ASSERT_EQ(enter(guests, guest), model.enter(guest));
            } else if (what < 9) {
                const auto who = peer(host, static_cast<std::uint16_t>(port - random() % 8));
                ASSERT_EQ(guests.leave(who), model.leave(who));
            } else {
                std::map<int, access::GateAddress> present;
                for (const auto& each : model.guests)
                    if (random() % 2 == 0) present.emplace(each.fd, each.peer);
                guests.keep(present);
                model.keep(present);
            }
            ASSERT_EQ(guests.size(), model.guests.size());
            for (const auto& each : model.guests)
                ASSERT_TRUE(guests.knows(each));
        }
    }
}

} // namespace
} // namespace netio::fabric
