// SPDX-License-Identifier: Apache-2.0

// The outcome that a publisher reports for each publication, compared with what each subscriber
// really received.

#include "tests/scenario/pubsub/fixture.hpp"

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace netio::pubsub::test::outcome_test {
namespace {

using netio::Cookie;
using netio::Status;

using Outcomes = PubSubScenario;

TEST_P(Outcomes, AMessageThatAllGetIsSentToAll) {
    auto publisher = unbuffered({});
    auto& one = subscribe({range(1, 2)});
    auto& other = subscribe({range(2, 2)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    netio::RegisteredBuffer memory{100000};
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 100), Cookie{1}), Status::ok);
    ASSERT_EQ(publisher->publish(Fid{2}, memory.slice(), Cookie{2}), Status::ok);
    ASSERT_TRUE(run_until([&] { return publisher_actor.outcomes.size() == 2; }));
    EXPECT_EQ(publisher_actor.outcomes[1], (PublicationOutcome{.sent = 1}));
    EXPECT_EQ(publisher_actor.outcomes[2], (PublicationOutcome{.sent = 2}));
    ASSERT_TRUE(run_until([&] { return one.actor.messages == 2 && other.actor.messages == 1; }));
}

TEST_P(Outcomes, MessagesInFlightToADeadSubscriberAreLost) {
    auto publisher = unbuffered({});
    auto peer = stuck(range(1, 1));
    netio::RegisteredBuffer memory{100000};
    std::uint64_t next = 0;
    while (publisher->publish(Fid{1}, memory.slice(), Cookie{next}) == Status::ok)
        ++next;
    ASSERT_GT(next, 1U);
    peer.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.outcomes.size() == next; }));
    std::uint32_t lost = 0;
    for (const auto& [cookie, outcome] : publisher_actor.outcomes) {
        EXPECT_EQ(outcome.subscribers(), 1U);
        EXPECT_EQ(outcome.sent + outcome.lost, 1U);
        lost += outcome.lost;
    }
    EXPECT_GT(lost, 0U);
    EXPECT_EQ(publisher_actor.outcomes[next - 1].lost, 1U);
}

TEST_P(Outcomes, MessagesUnsubscribedBeforeTheyLeaveAreCounted) {
    auto publisher = unbuffered({});
    auto peer = stuck(range(1, 1));
    auto& subscriber = subscribe({range(1, 2)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    netio::RegisteredBuffer memory{100000};
    std::vector<PublishTicket> tickets;
    std::uint64_t next = 0;
    ASSERT_TRUE(run_until([&] {
        auto attempt = publisher->try_publish(Fid{1}, memory.slice(), Cookie{next});
        if (attempt.status == Status::ok) ++next;
        if (attempt.status == Status::partial) tickets.push_back(std::move(attempt.ticket));
        return !tickets.empty();
    }));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == next + 1; }));
    peer.reset();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(publisher->resume(tickets.front()), Status::ok);
    ASSERT_TRUE(run_until([&] { return publisher_actor.outcomes.contains(next); }));
    EXPECT_EQ(publisher_actor.outcomes[next], (PublicationOutcome{.sent = 1, .lost = 1}));

    // The same with a subscriber that stays alive.
    auto& other = subscribe({range(2, 3)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 3; }));
    other.socket->pause();
    tickets.clear();
    ASSERT_TRUE(run_until([&] {
        auto attempt = publisher->try_publish(Fid{2}, memory.slice(), Cookie{++next});
        if (attempt.status == Status::partial) tickets.push_back(std::move(attempt.ticket));
        return !tickets.empty();
    }));
    other.socket->unsubscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return publisher_actor.unsubscribed.size() == 1; }));
    EXPECT_EQ(publisher->resume(tickets.front()), Status::ok);
    ASSERT_TRUE(run_until([&] { return publisher_actor.outcomes.contains(next); }));
    EXPECT_EQ(publisher_actor.outcomes[next], (PublicationOutcome{.sent = 1, .unsubscribed = 1}));
}

TEST_P(Outcomes, TheFidsOfADeadSubscriberAreUnsubscribedBeforeItsEnd) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 5), range(10, 20), range(30, 30)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 3; }));
    subscriber.socket->unsubscribe(range(12, 12));
    ASSERT_TRUE(run_until([&] { return publisher_actor.unsubscribed.size() == 1; }));
    std::size_t told_before_the_end = 0;
    publisher_actor.at_closed = [&] { told_before_the_end = publisher_actor.left_behind.size(); };
    subscriber.socket->abort();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(publisher_actor.left_behind,
              (std::vector<FidRange>{range(1, 5), range(10, 11), range(13, 20), range(30, 30)}));
    EXPECT_EQ(told_before_the_end, 4U);
}

TEST_P(Outcomes, UnsubscribingFromEverythingLeaksNothing) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 5)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
    subscriber.socket->unsubscribe(range(1, 5));
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(publisher_actor.unsubscribed.size(), 1U);
    EXPECT_TRUE(publisher_actor.left_behind.empty());
}

TEST_P(Outcomes, ThePublisherMayBeDestroyedInTheOutcomeOfADeadSubscriber) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1), range(3, 3)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    publisher_actor.at_unsubscribe = [&] { publisher.reset(); };
    subscriber.socket->abort();
    ASSERT_TRUE(run_until([&] { return publisher == nullptr; }));
    EXPECT_EQ(publisher_actor.left_behind.size(), 1U);
    EXPECT_TRUE(publisher_actor.closed.empty());
}

// --- prepared memory ------------------------------------------------------------------------

using PreparedMemory = PubSubScenario;
using MemoryThatIsRefused = PubSubScenario; // tcp does not register memory

TEST_P(PreparedMemory, IsNotRegisteredInTheFirstPublication) {
    auto publisher = unbuffered({});
    netio::RegisteredBuffer memory{100000};
    publisher->prepare(memory);
    publisher->prepare(memory); // has no further effect
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
    if (bed.sim() != nullptr) bed.sim()->refuse_registrations(true);
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{1}), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_TRUE(publisher_actor.closed.empty());
}

TEST_P(MemoryThatIsRefused, IsReportedWhenPreparedAndEndsNoConnection) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{100000};
    bed.sim()->refuse_registrations(true);
    EXPECT_THROW(publisher->prepare(memory), netio::FabricError);
    bed.sim()->refuse_registrations(false);
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{1}), Status::ok);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_TRUE(publisher_actor.closed.empty());
}

INSTANTIATE_TEST_SUITE_P(Beds, PreparedMemory, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, MemoryThatIsRefused, netio::test::simulated_beds(), bed_name);

INSTANTIATE_TEST_SUITE_P(Beds, Outcomes, all_beds(), bed_name);

// --- against an oracle ----------------------------------------------------------------------

// Which subscriber wanted what, as reported to the publisher's user.
struct OutcomeRecorder final : PublishSocket::Handler {
    void on_subscriber_connected(Publisher&, const SubscriberPeer& peer) override {
        newest = peer.id;
    }
    void on_subscribed(Publisher&, const SubscriberPeer& peer, const FidRange& range) override {
        for (std::uint64_t fid = to_integer(range.first); fid <= to_integer(range.last); ++fid)
            wants[peer.id].insert(Fid{fid});
    }
    void on_unsubscribed(Publisher&, const SubscriberPeer& peer, const FidRange& range) override {
        for (std::uint64_t fid = to_integer(range.first); fid <= to_integer(range.last); ++fid)
            wants[peer.id].erase(Fid{fid});
    }
    void on_subscriber_closed(Publisher&, const SubscriberPeer& peer, const Closed&) override {
        EXPECT_TRUE(wants[peer.id].empty()) << "each of its fids was unsubscribed";
        closed.insert(peer.id);
    }
    void on_closed(Publisher&, const Closed&) override { ended = true; }
    void on_publish_completed(PublishSocket&, Cookie cookie,
                              const PublicationOutcome& outcome) override {
        EXPECT_TRUE(outcomes.emplace(static_cast<std::uint64_t>(cookie), outcome).second);
    }

    SubscriberId newest{};
    std::map<SubscriberId, std::set<Fid>> wants;
    std::set<SubscriberId> closed;
    std::map<std::uint64_t, PublicationOutcome> outcomes;
    bool ended = false;
};

class OutcomeWorld {
  public:
    OutcomeWorld(Bed bed, std::uint64_t seed, SlowPolicy policy)
        : random_{seed}, bed_{bed, seed}, policy_{policy},
          publisher_{std::make_unique<PublishSocket>(bed_.transport(), options(), recorder_)} {}

    void run() {
        for (int i = 0; i < 3; ++i)
            add_subscriber();
        for (int step = 0; step < 250; ++step)
            act();
        tickets_.clear();
        for (Member& member : members_)
            if (member.socket) member.socket->resume();
        publisher_->close();
        EXPECT_TRUE(bed_.run_until([&] { return recorder_.ended; }));
        judge();
    }

    // Counts of the checked cases, so that a test that checks none fails.
    std::uint64_t judged = 0, exact = 0, dropped = 0, lost = 0, unsubscribed = 0;

  private:
    static constexpr std::uint64_t fids = 3;

    struct Member {
        SubscriberId id{};
        SubscriberActor actor;
        std::unique_ptr<SubscribeSocket> socket;
        bool dies = false;
    };
    struct Publication {
        Fid fid{};
        std::unique_ptr<netio::RegisteredBuffer> memory;
        std::set<SubscriberId> wanted;
    };

    PublishSocket::Options options() {
        return {.publisher = {.listen = {bed_.address()},
                              .allow_remote_anonymous = true,
                              .slow_policy = policy_,
                              .disconnect_after = std::chrono::milliseconds{2000}},
                .outstanding_limit = 24};
    }
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    void add_subscriber() {
        Member& member = members_.emplace_back();
        member.socket = std::make_unique<SubscribeSocket>(
            bed_.transport(),
            SubscribeSocket::Options{.publisher = publisher_->endpoints().front().address,
                                     .session = {.receive_buffer_bytes = 4096, .receive_count = 4}},
            member.actor);
        member.socket->subscribe(range(1, 1 + below(fids)));
        recorder_.newest = SubscriberId{UINT32_MAX};
        ASSERT_TRUE(bed_.run_until([&] { return member.actor.subscribed.size() == 1; }));
        member.id = recorder_.newest;
    }

    void publish() {
        const Fid fid{1 + below(fids)};
        const std::uint64_t number = publications_.size();
        const std::size_t size = below(3) == 0 ? 3000 + below(20000) : 8 + below(200);
        const auto message = make_message(fid, number, size);
        auto memory = std::make_unique<netio::RegisteredBuffer>(size);
        std::ranges::copy(message, memory->data());
        Status status = Status::ok;
        if (below(3) == 0) {
            auto attempt = publisher_->try_publish(fid, memory->slice(), Cookie{number});
            status = attempt.status == Status::partial ? Status::ok : attempt.status;
            if (attempt.ticket.is_open()) tickets_.push_back(std::move(attempt.ticket));
        } else {
            status = publisher_->publish(fid, memory->slice(), Cookie{number});
        }
        if (status != Status::ok) return;
        Publication& made = publications_.emplace_back();
        made.fid = fid;
        made.memory = std::move(memory);
        for (const auto& [id, wanted] : recorder_.wants)
            if (wanted.contains(fid)) made.wanted.insert(id);
    }

    void act() {
        Member& member = members_[below(members_.size())];
        switch (below(20)) {
        case 0:
            if (members_.size() < 7) add_subscriber();
            break;
        case 1:
            if (member.socket && below(3) == 0) {
                member.dies = true;
                below(2) == 0 ? member.socket->abort() : member.socket.reset();
            }
            break;
        case 2:
        case 3:
            if (member.socket) member.socket->pause();
            break;
        case 4:
        case 5:
            if (member.socket) member.socket->resume();
            break;
        case 6:
            if (member.socket && member.actor.closed.empty() && !member.dies)
                member.socket->unsubscribe(range(2, 2));
            break;
        case 7:
            if (!tickets_.empty() && below(2) == 0) tickets_.erase(tickets_.begin());
            break;
        case 8:
            for (PublishTicket& ticket : tickets_)
                static_cast<void>(publisher_->resume(ticket));
            std::erase_if(tickets_, [](const PublishTicket& each) { return !each.is_open(); });
            break;
        default:
            for (std::uint64_t count = below(4); count > 0; --count)
                publish();
        }
        for (std::uint64_t turns = below(12); turns > 0; --turns)
            bed_.loop().run_once(bed_.loop().now() + std::chrono::milliseconds{50});
    }

    void judge() {
        ASSERT_EQ(recorder_.outcomes.size(), publications_.size());
        std::map<SubscriberId, std::set<std::uint64_t>> got;
        std::set<SubscriberId> dead;
        for (const Member& member : members_) {
            for (const auto& [fid, messages] : member.actor.by_fid)
                for (const Arrived& message : messages)
                    ASSERT_TRUE(message.intact && got[member.id].insert(message.number).second);
            // It ended here or was aborted; an orderly end comes after all messages.
            const bool cut_off = !member.actor.closed.empty() &&
                                 member.actor.closed.front().reason != CloseReason::orderly;
            if (member.dies || cut_off) {
                dead.insert(member.id);
            }
        }
        for (std::uint64_t number = 0; number < publications_.size(); ++number) {
            const Publication& publication = publications_[number];
            const PublicationOutcome& outcome = recorder_.outcomes.at(number);
            std::uint32_t received = 0, living = 0, doomed = 0;
            for (const SubscriberId id : publication.wanted) {
                (dead.contains(id) ? doomed : living) += 1;
                if (!dead.contains(id) && got[id].contains(number)) ++received;
            }
            const std::string where = "publication " + std::to_string(number);
            const std::uint32_t left_out = outcome.dropped + outcome.unsubscribed;
            EXPECT_EQ(outcome.subscribers(), publication.wanted.size()) << where;
            EXPECT_GE(outcome.sent, received) << where;
            EXPECT_LE(outcome.sent, received + doomed) << where;
            EXPECT_GE(left_out, living - received) << where;
            EXPECT_LE(left_out, living - received + doomed) << where;
            EXPECT_LE(outcome.lost, doomed) << where;
            EXPECT_TRUE(policy_ == SlowPolicy::drop || outcome.dropped == 0) << where;
            ++judged;
            exact += doomed == 0 ? 1 : 0;
            dropped += outcome.dropped;
            lost += outcome.lost;
            unsubscribed += outcome.unsubscribed;
        }
    }

    std::mt19937_64 random_;
    TestBed bed_;
    SlowPolicy policy_;
    OutcomeRecorder recorder_;
    std::deque<Publication> publications_; // outlive the publisher
    std::vector<PublishTicket> tickets_;
    std::unique_ptr<PublishSocket> publisher_;
    std::deque<Member> members_;
};

class OutcomesWithAnOracle : public testing::TestWithParam<Bed> {};

TEST_P(OutcomesWithAnOracle, ReportWhichSubscribersGotEachPublicationForEveryPolicy) {
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop, SlowPolicy::disconnect}) {
        std::uint64_t judged = 0, exact = 0, dropped = 0, lost = 0, unsubscribed = 0;
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed) + ", policy " +
                         std::to_string(static_cast<int>(policy)));
            OutcomeWorld world{GetParam(), seed, policy};
            world.run();
            if (HasFailure()) return;
            judged += world.judged;
            exact += world.exact;
            dropped += world.dropped;
            lost += world.lost;
            unsubscribed += world.unsubscribed;
        }
        EXPECT_GT(judged, 800U);
        EXPECT_GT(exact, judged / 20);
        EXPECT_GT(lost, 0U);
        EXPECT_EQ(dropped > 0, policy == SlowPolicy::drop);
        EXPECT_TRUE(policy != SlowPolicy::block || unsubscribed > 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, OutcomesWithAnOracle, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::outcome_test
