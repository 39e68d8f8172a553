// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/delivery_tracker.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace netio::pubsub {
namespace {

using netio::Cookie;

std::optional<Cookie> cookie_of(const std::optional<DeliveryTracker::Ended>& ended) {
    return ended ? std::optional{ended->cookie} : std::nullopt;
}

TEST(DeliveryTracker, GivesTheKeyBackWithTheLastDebt) {
    DeliveryTracker tracker{1};
    const auto id = tracker.begin(Cookie{42});
    ASSERT_TRUE(id);
    tracker.add_pending(*id, 3);
    EXPECT_FALSE(tracker.complete(*id)); // before it is sealed
    EXPECT_FALSE(tracker.seal(*id));
    EXPECT_FALSE(tracker.complete(*id));
    EXPECT_EQ(cookie_of(tracker.complete(*id)), Cookie{42});
    EXPECT_EQ(tracker.outstanding(), 0U);
}

TEST(DeliveryTracker, SaysWhatBecameOfAPublicationAndBeginsAnewForTheNext) {
    DeliveryTracker tracker{1};
    const auto id = tracker.begin(Cookie{1});
    tracker.add_pending(*id, 2);
    for (const Fate fate : {Fate::sent, Fate::missed, Fate::sent, Fate::lost, Fate::unsubscribed})
        tracker.note(*id, fate);
    ASSERT_FALSE(tracker.seal(*id));
    const auto ended = tracker.complete(*id, 2);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->outcome,
              (PublicationOutcome{.sent = 2, .missed = 1, .unsubscribed = 1, .lost = 1}));
    EXPECT_FALSE(ended->outcome.sent_to_all());
    EXPECT_EQ(ended->outcome.subscribers(), 5U);
    const auto next = tracker.seal(*tracker.begin(Cookie{2}));
    ASSERT_TRUE(next);
    EXPECT_EQ(next->outcome, PublicationOutcome{});
}

TEST(DeliveryTracker, IsNotCompleteBeforeItIsSealed) {
    DeliveryTracker tracker{1};
    const auto id = tracker.begin(Cookie{1});
    tracker.add_pending(*id);
    EXPECT_FALSE(tracker.complete(*id));
    EXPECT_EQ(tracker.outstanding(), 1U);
    EXPECT_EQ(cookie_of(tracker.seal(*id)), Cookie{1});
}

TEST(DeliveryTracker, CompletesAtOnceWhenNobodyOwesAnything) {
    DeliveryTracker tracker{1};
    EXPECT_EQ(cookie_of(tracker.seal(*tracker.begin(Cookie{5}))), Cookie{5});
}

TEST(DeliveryTracker, RefusesMoreThanTheLimit) {
    DeliveryTracker tracker{2};
    const auto first = tracker.begin(Cookie{1});
    ASSERT_TRUE(tracker.begin(Cookie{2}));
    EXPECT_FALSE(tracker.begin(Cookie{3}));
    EXPECT_EQ(cookie_of(tracker.seal(*first)), Cookie{1});
    EXPECT_TRUE(tracker.begin(Cookie{3}));
}

TEST(DeliveryTrackerDeathTest, ADebtTooManyIsABug) {
    DeliveryTracker tracker{1};
    const auto id = tracker.begin(Cookie{1});
    ASSERT_TRUE(tracker.seal(*id));
    EXPECT_DEATH((void)tracker.complete(*id), "check failed");
    ASSERT_TRUE(tracker.begin(Cookie{2})); // the same place, another publication
    EXPECT_DEATH((void)tracker.complete(*id), "check failed");
}

// Random beginnings, deliveries, seals and completions: every key comes back exactly once, and
// exactly when the account of a plain map says so.
TEST(DeliveryTracker, AgreesWithAPlainAccount) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937_64 random{seed};
        DeliveryTracker tracker{5};
        struct Account {
            Cookie key{};
            std::size_t pending = 0;
            bool sealed = false;
        };
        std::map<PublicationId, Account> open;
        std::set<std::uint64_t> returned;
        std::uint64_t next_key = 0;
        const auto check = [&](PublicationId id, std::optional<Cookie> key) {
            const Account& account = open.at(id);
            ASSERT_EQ(key.has_value(), account.sealed && account.pending == 0) << "seed " << seed;
            if (!key) return;
            ASSERT_EQ(*key, account.key);
            ASSERT_TRUE(returned.insert(static_cast<std::uint64_t>(*key)).second);
            open.erase(id);
        };
        for (int step = 0; step < 3000; ++step) {
            const auto pick = [&] {
                auto at = open.begin();
                std::advance(at, static_cast<std::ptrdiff_t>(random() % open.size()));
                return at;
            };
            switch (open.empty() ? 0 : random() % 4) {
            case 0: {
                const auto id = tracker.begin(Cookie{next_key});
                ASSERT_EQ(id.has_value(), open.size() < 5) << "seed " << seed;
                if (id) {
                    ASSERT_TRUE(open.emplace(*id, Account{.key = Cookie{next_key++}}).second);
                }
                break;
            }
            case 1: {
                const auto at = pick();
                if (at->second.sealed) break;
                const std::size_t count = random() % 3;
                tracker.add_pending(at->first, count);
                at->second.pending += count;
                break;
            }
            case 2: {
                const auto at = pick();
                if (at->second.sealed) break;
                at->second.sealed = true;
                const PublicationId id = at->first;
                check(id, cookie_of(tracker.seal(id)));
                break;
            }
            default: {
                const auto at = pick();
                if (at->second.pending == 0) break;
                const std::size_t count = 1 + random() % at->second.pending;
                at->second.pending -= count;
                const PublicationId id = at->first;
                check(id, cookie_of(tracker.complete(id, count)));
            }
            }
            ASSERT_EQ(tracker.outstanding(), open.size());
        }
        EXPECT_GT(returned.size(), 100U);
    }
}

} // namespace
} // namespace netio::pubsub
