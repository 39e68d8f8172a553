// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/delivery_tracker.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace netio::pubsub::delivery_tracker_test {
namespace {

using netio::Cookie;
using netio::Status;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

std::optional<Cookie> cookie_of(const std::optional<DeliveryTracker::Ended>& ended) {
    return ended ? std::optional{ended->cookie} : std::nullopt;
}

TEST(DeliveryTracker, ReturnsTheKeyWithTheLastCompletion) {
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

TEST(DeliveryTracker, ReportsTheOutcomeOfEachPublication) {
    DeliveryTracker tracker{1};
    const auto id = tracker.begin(Cookie{1});
    tracker.add_pending(*id, 2);
    for (const Fate fate : {Fate::sent, Fate::dropped, Fate::sent, Fate::lost, Fate::unsubscribed})
        tracker.note(*id, fate);
    ASSERT_FALSE(tracker.seal(*id));
    const auto ended = tracker.complete(*id, 2);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->outcome,
              (PublicationOutcome{.sent = 2, .dropped = 1, .unsubscribed = 1, .lost = 1}));
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

TEST(DeliveryTracker, CompletesAtOnceWithoutPendingDeliveries) {
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

TEST(DeliveryTrackerDeathTest, TooManyCompletionsAreABug) {
    DeliveryTracker tracker{1};
    const auto id = tracker.begin(Cookie{1});
    ASSERT_TRUE(tracker.seal(*id));
    EXPECT_DEATH((void)tracker.complete(*id), "check failed");
    ASSERT_TRUE(tracker.begin(Cookie{2})); // the same slot, another publication
    EXPECT_DEATH((void)tracker.complete(*id), "check failed");
}

// Random begins, deliveries, seals and completions: every key is returned exactly once, at the time
// that a plain map predicts.
TEST(DeliveryTracker, AgreesWithASimpleModel) {
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

constexpr std::array<FidRange, 1> range(std::uint64_t first, std::uint64_t last) {
    return {{{.first = Fid{first}, .last = Fid{last}}}};
}

constexpr SubscriberId a{1}, b{2}, c{3};
const std::vector<SubscriberId> abc{a, b, c};

class PartialDelivery : public testing::Test {
  protected:
    // Offers to the subscribers in `room`; records the accepting ones.
    Status resume(PublishTicket& ticket) {
        return deliveries.resume(ticket, [&](SubscriberId session) {
            if (!room.contains(session)) return false;
            taken.push_back(session);
            return true;
        });
    }
    Status expected_status(Fid fid, const std::vector<SubscriberId>& sessions) const {
        return deliveries.expected_status(
            fid, sessions, [&](SubscriberId session) { return room.contains(session); });
    }

    int abandoned = 0;
    PartialDeliveries deliveries{[this] { ++abandoned; }};
    std::set<SubscriberId> room;
    std::vector<SubscriberId> taken;
};

TEST_F(PartialDelivery, ExpectedStatusIsTheStatusOfAFirstAttempt) {
    EXPECT_EQ(expected_status(Fid{1}, {}), Status::no_subscribers);
    EXPECT_EQ(expected_status(Fid{1}, abc), Status::again);
    room = {b};
    EXPECT_EQ(expected_status(Fid{1}, abc), Status::partial);
    room = {a, b, c};
    EXPECT_EQ(expected_status(Fid{1}, abc), Status::ok);
}

TEST_F(PartialDelivery, OnlyTheRemainingSubscribersAreOfferedItOnce) {
    PublishTicket ticket = deliveries.open(PublicationId{9}, Fid{1}, {b, c});
    EXPECT_EQ(resume(ticket), Status::partial);
    room = {a, c};
    EXPECT_EQ(resume(ticket), Status::partial);
    EXPECT_EQ(resume(ticket), Status::partial);
    room = {a, b, c};
    EXPECT_TRUE(ticket.is_open());
    EXPECT_EQ(resume(ticket), Status::ok);
    EXPECT_FALSE(ticket.is_open());
    EXPECT_THAT(taken, ElementsAre(c, b));
}

TEST_F(PartialDelivery, ATicketThatIsNotOpenOrNotOursIsStale) {
    PublishTicket empty;
    EXPECT_EQ(resume(empty), Status::stale_ticket);
    room = {a};
    PublishTicket ticket = deliveries.open(PublicationId{9}, Fid{1}, {a});
    EXPECT_EQ(resume(ticket), Status::ok);
    EXPECT_EQ(resume(ticket), Status::stale_ticket) << "twice";
    PartialDeliveries others{[] {}};
    PublishTicket foreign = others.open(PublicationId{9}, Fid{1}, {a});
    EXPECT_EQ(resume(foreign), Status::stale_ticket);
    EXPECT_TRUE(foreign.is_open()) << "it is still valid for its own object";
    EXPECT_THAT(taken, ElementsAre(a));
}

TEST_F(PartialDelivery, ATicketMayBeMovedAndStandsForOnePublication) {
    PublishTicket first = deliveries.open(PublicationId{1}, Fid{1}, {a});
    PublishTicket second = std::move(first);
    EXPECT_EQ(resume(first), Status::stale_ticket); // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(second.is_open());
    second = deliveries.open(PublicationId{2}, Fid{2}, {b});
    EXPECT_EQ(abandoned, 1) << "its earlier publication is abandoned";
    EXPECT_THAT(deliveries.take_over_abandoned(),
                ElementsAre(Pair(PublicationId{1}, ElementsAre(a))));
    EXPECT_EQ(deliveries.find(second), PublicationId{2});
}

TEST_F(PartialDelivery, AnOpenPublicationHoldsItsFidAndNoOther) {
    room = {a};
    PublishTicket ticket = deliveries.open(PublicationId{1}, Fid{1}, {b});
    EXPECT_EQ(expected_status(Fid{1}, {a}), Status::again) << "it would overtake";
    EXPECT_EQ(expected_status(Fid{2}, {a}), Status::ok);
    ticket.abandon();
    EXPECT_TRUE(deliveries.holds(Fid{1})) << "until it is taken over";
    EXPECT_THAT(deliveries.take_over_abandoned(),
                ElementsAre(Pair(PublicationId{1}, ElementsAre(b))));
    EXPECT_FALSE(deliveries.holds(Fid{1}));
    EXPECT_THAT(deliveries.take_over_abandoned(), IsEmpty());
}

TEST_F(PartialDelivery, ForgettingASubscriberKeepsTheTicketOpen) {
    PublishTicket one = deliveries.open(PublicationId{1}, Fid{1}, {a, b});
    PublishTicket two = deliveries.open(PublicationId{2}, Fid{2}, {a, b});
    deliveries.forget(a, range(1, 1));
    room = {a, b};
    EXPECT_EQ(resume(one), Status::ok);
    EXPECT_THAT(taken, ElementsAre(b));
    deliveries.forget(a, range(0, 9));
    deliveries.forget(b, range(0, 9));
    EXPECT_TRUE(two.is_open()) << "it does not complete while its user holds it";
    EXPECT_EQ(resume(two), Status::ok);
    EXPECT_THAT(taken, ElementsAre(b));
}

TEST_F(PartialDelivery, TakingOverClosesEveryTicket) {
    PublishTicket one = deliveries.open(PublicationId{1}, Fid{1}, {a});
    PublishTicket two = deliveries.open(PublicationId{2}, Fid{2}, {b, c});
    EXPECT_THAT(deliveries.take_over_all(),
                UnorderedElementsAre(Pair(PublicationId{1}, ElementsAre(a)),
                                     Pair(PublicationId{2}, ElementsAre(b, c))));
    EXPECT_EQ(resume(one), Status::stale_ticket);
    EXPECT_FALSE(two.is_open());
    EXPECT_EQ(deliveries.open_count(), 0U);
    EXPECT_EQ(abandoned, 0);
}

TEST_F(PartialDelivery, ATicketMayOutliveItsIssuer) {
    PublishTicket ticket;
    {
        PartialDeliveries shortly{[] { ADD_FAILURE() << "called after the destruction"; }};
        ticket = shortly.open(PublicationId{1}, Fid{1}, {a});
    }
    EXPECT_FALSE(ticket.is_open());
    EXPECT_EQ(resume(ticket), Status::stale_ticket);
}

// --- against a plain model ------------------------------------------------------------------

// Subscribers with and without capacity that come, die and unsubscribe; publications of both forms;
// tickets that are resumed, moved, abandoned and misused. The model records for every session and
// fid which numbers it must get. It checks that these arrive once and in order, and that every key
// is returned once and not while its ticket is open.
class World {
  public:
    explicit World(std::uint64_t seed) : random_{seed} {}

    void step() {
        switch (random_() % 13) {
        case 0:
            return add_link();
        case 1:
            return random_() % 4 == 0 ? kill_link() : unsubscribe();
        case 2:
        case 3:
        case 4:
            return publish_explicit(Fid{random_() % fid_count});
        case 5:
            return publish_default(Fid{random_() % fid_count});
        case 6:
        case 7:
        case 8:
            return resume_one();
        case 9:
            return random_() % 3 == 0 ? abandon_one() : misuse();
        case 10:
            return finish(deliveries_.take_over_abandoned());
        case 11:
            return settle_some();
        default:
            if (Session* const session = any_link()) session->room += random_() % 4;
        }
    }

    void end() {
        if (random_() % 2 == 0) {
            finish(deliveries_.take_over_all());
        } else {
            tickets_.clear(); // each abandons its publication
            finish(deliveries_.take_over_abandoned());
        }
        ASSERT_EQ(deliveries_.open_count(), 0U);
        while (!in_flight_.empty())
            settle_some();
        ASSERT_EQ(tracker_.outstanding(), 0U);
        for (const auto& [id, session] : links_)
            for (const auto& [fid, numbers] : session.due)
                ASSERT_EQ(session.got.contains(fid) ? session.got.at(fid).size() : 0,
                          numbers.size());
        ASSERT_EQ(completed_.size(), accepted_);
    }

    std::size_t partial = 0, resumed = 0, died_partial = 0, abandoned = 0, stale = 0, held = 0;

  private:
    static constexpr std::uint64_t fid_count = 4;
    struct Session {
        std::size_t room = 0;
        std::set<Fid> wants;
        std::map<Fid, std::vector<std::uint64_t>> due, got; // numbers
    };
    struct Publication {
        Fid fid{};
        std::uint64_t number = 0;
        Cookie key{};
    };

    Session* any_link() {
        if (links_.empty()) return nullptr;
        return &std::next(links_.begin(), static_cast<std::ptrdiff_t>(random_() % links_.size()))
                    ->second;
    }
    std::vector<SubscriberId> subscribers(Fid fid) const {
        std::vector<SubscriberId> list;
        for (const auto& [id, session] : links_)
            if (session.wants.contains(fid)) list.push_back(id);
        return list;
    }

    void add_link() {
        if (links_.size() >= 5) return;
        Session& session = links_[SubscriberId{++next_link_}];
        for (std::uint64_t fid = 0; fid < fid_count; ++fid)
            if (random_() % 4 != 0) session.wants.insert(Fid{fid});
    }
    void kill_link() {
        if (links_.empty()) return;
        const auto at =
            std::next(links_.begin(), static_cast<std::ptrdiff_t>(random_() % links_.size()));
        if (deliveries_.open_count() > 0) ++died_partial;
        deliveries_.forget(at->first, range(0, UINT64_MAX));
        links_.erase(at); // the end of the session settles its frames in flight
    }
    void unsubscribe() {
        if (links_.empty()) return;
        const auto at =
            std::next(links_.begin(), static_cast<std::ptrdiff_t>(random_() % links_.size()));
        const Fid fid{random_() % fid_count};
        deliveries_.forget(at->first, range(to_integer(fid), to_integer(fid)));
        at->second.wants.erase(fid);
        // Numbers not received by now must not arrive later.
        at->second.due[fid] = at->second.got[fid];
        if (random_() % 2 == 0) at->second.wants.insert(fid); // subscribes again at once
    }

    void hand_over(PublicationId id, SubscriberId link_id) {
        Session& session = links_.at(link_id);
        const Publication& publication = publications_.at(id);
        std::vector<std::uint64_t>& got = session.got[publication.fid];
        got.push_back(publication.number);
        const std::vector<std::uint64_t>& due = session.due[publication.fid];
        ASSERT_LE(got.size(), due.size()) << "more than expected";
        ASSERT_EQ(got.back(), due[got.size() - 1]) << "twice, out of order, or left out";
        tracker_.add_pending(id);
        in_flight_.push_back(id);
    }
    std::optional<PublicationId> begin(Fid fid, const std::vector<SubscriberId>& targets) {
        const auto id = tracker_.begin(Cookie{next_key_});
        if (!id) return id;
        publications_[*id] = {.fid = fid, .number = next_number_[fid], .key = Cookie{next_key_}};
        for (const SubscriberId session : targets)
            links_.at(session).due[fid].push_back(next_number_[fid]);
        ++next_number_[fid];
        ++next_key_;
        ++accepted_;
        return id;
    }
    void note(const std::optional<DeliveryTracker::Ended>& ended) {
        if (!ended) return;
        const Cookie key = ended->cookie;
        ASSERT_TRUE(completed_.insert(static_cast<std::uint64_t>(key)).second) << "twice";
        for (const PublishTicket& ticket : tickets_) {
            const auto id = deliveries_.find(ticket);
            ASSERT_FALSE(id && publications_.at(*id).key == key) << "its user still holds it";
        }
    }

    void publish_explicit(Fid fid) {
        const std::vector<SubscriberId> targets = subscribers(fid);
        const auto has_capacity = [&](SubscriberId session) { return links_.at(session).room > 0; };
        const Status expected = deliveries_.expected_status(fid, targets, has_capacity);
        if (deliveries_.holds(fid) && !targets.empty()) {
            ++held;
            ASSERT_EQ(expected, Status::again);
        }
        if (expected != Status::ok && expected != Status::partial) return;
        const auto id = begin(fid, targets);
        if (!id) return;
        std::vector<SubscriberId> left;
        for (const SubscriberId session : targets) {
            if (links_.at(session).room > 0) {
                --links_.at(session).room;
                hand_over(*id, session);
            } else {
                left.push_back(session);
            }
        }
        ASSERT_EQ(left.empty(), expected == Status::ok);
        if (left.empty()) return note(tracker_.seal(*id));
        ++partial;
        tickets_.push_back(deliveries_.open(*id, fid, left));
    }
    void publish_default(Fid fid) {
        const std::vector<SubscriberId> targets = subscribers(fid);
        if (targets.empty() || deliveries_.holds(fid)) return;
        const auto id = begin(fid, targets);
        if (!id) return;
        for (const SubscriberId session : targets)
            hand_over(*id, session);
        note(tracker_.seal(*id));
    }
    void resume_one() {
        if (tickets_.empty()) return;
        PublishTicket& ticket = tickets_[random_() % tickets_.size()];
        const auto id = deliveries_.find(ticket);
        const Status status = deliveries_.resume(ticket, [&](SubscriberId session) {
            if (links_.at(session).room == 0) return false;
            --links_.at(session).room;
            hand_over(*id, session);
            return true;
        });
        ASSERT_EQ(status == Status::stale_ticket, !id.has_value());
        ASSERT_EQ(ticket.is_open(), status == Status::partial);
        if (status != Status::ok) return;
        ++resumed;
        note(tracker_.seal(*id));
    }
    void abandon_one() {
        if (tickets_.empty()) return;
        ++abandoned;
        std::swap(tickets_[random_() % tickets_.size()], tickets_.back());
        tickets_.pop_back();
    }
    void misuse() {
        PublishTicket nothing;
        const auto never = [](SubscriberId) {
            ADD_FAILURE() << "nothing may be offered";
            return true;
        };
        ASSERT_EQ(deliveries_.resume(nothing, never), Status::stale_ticket);
        PartialDeliveries others{[] {}};
        nothing = others.open(PublicationId{random_()}, Fid{0}, {SubscriberId{1}});
        ASSERT_EQ(deliveries_.resume(nothing, never), Status::stale_ticket);
        for (PublishTicket& ticket : tickets_) {
            if (ticket.is_open()) continue;
            ++stale;
            ASSERT_EQ(deliveries_.resume(ticket, never), Status::stale_ticket);
        }
    }
    void finish(const PartialDeliveries::Rest& rest) {
        for (const auto& [id, left] : rest) {
            for (const SubscriberId session : left)
                hand_over(id, session);
            note(tracker_.seal(id));
        }
    }
    void settle_some() {
        for (std::size_t i = 0; i < 3 && !in_flight_.empty(); ++i) {
            std::swap(in_flight_[random_() % in_flight_.size()], in_flight_.back());
            const PublicationId id = in_flight_.back();
            in_flight_.pop_back();
            note(tracker_.complete(id));
        }
    }

    std::mt19937_64 random_;
    std::map<SubscriberId, Session> links_;
    std::map<Fid, std::uint64_t> next_number_;
    std::uint64_t next_link_ = 0, next_key_ = 0, accepted_ = 0;
    std::map<PublicationId, Publication> publications_;
    std::set<std::uint64_t> completed_;
    std::vector<PublicationId> in_flight_;
    DeliveryTracker tracker_{12};
    std::vector<PublishTicket> tickets_;
    PartialDeliveries deliveries_{[] {}};
};

TEST(PartialDeliveryModel, DeliversEachPublicationExactlyOnce) {
    std::size_t partial = 0, resumed = 0, died_partial = 0, abandoned = 0, stale = 0, held = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        World world{seed};
        for (int i = 0; i < 1000; ++i) {
            ASSERT_NO_FATAL_FAILURE(world.step());
            if (testing::Test::HasFatalFailure()) return;
        }
        world.end();
        if (testing::Test::HasFatalFailure()) return;
        partial += world.partial;
        resumed += world.resumed;
        died_partial += world.died_partial;
        abandoned += world.abandoned;
        stale += world.stale;
        held += world.held;
    }
    // The runs must have reached the cases that they are for.
    EXPECT_GT(partial, 5000U);
    EXPECT_GT(resumed, 2000U);
    EXPECT_GT(died_partial, 1000U);
    EXPECT_GT(abandoned, 1000U);
    EXPECT_GT(stale, 1000U);
    EXPECT_GT(held, 1000U);
}

} // namespace
} // namespace netio::pubsub::delivery_tracker_test
