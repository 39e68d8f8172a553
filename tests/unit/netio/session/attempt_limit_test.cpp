// SPDX-License-Identifier: Apache-2.0

// The limit of unanswered attempts to connect to one address, and how connectors use it.

#include "netio/base/attempt_limit.hpp"
#include "netio/session/connector.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

namespace netio::test::attempt_limit_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const Address publisher{.host = "10.0.0.1", .port = 1234};
const Address other_publisher{.host = "10.0.0.1", .port = 1235};

TEST(AttemptLimit, GivesAFreeSlotToTheOldestInTheQueue) {
    AttemptLimit limit{2};
    std::string freed;
    AttemptLimit::Slot a{limit, [&] { freed += 'a'; }};
    AttemptLimit::Slot b{limit, [&] { freed += 'b'; }};
    AttemptLimit::Slot c{limit, [&] { freed += 'c'; }};
    AttemptLimit::Slot d{limit, [&] { freed += 'd'; }};
    AttemptLimit::Slot e{limit, [&] { freed += 'e'; }};
    EXPECT_TRUE(a.enter(publisher));
    EXPECT_TRUE(b.enter(publisher));
    EXPECT_FALSE(c.enter(publisher));
    EXPECT_FALSE(d.enter(publisher));
    EXPECT_TRUE(e.enter(other_publisher)) << "each address has its own slots";
    c.leave();
    EXPECT_EQ(freed, "");
    a.leave();
    EXPECT_EQ(freed, "d");
    EXPECT_TRUE(d.is_held());
    b.leave();
    d.leave();
    EXPECT_EQ(freed, "d");
    EXPECT_TRUE(a.enter(publisher));
}

TEST(AttemptLimit, RemembersTheLastAnswerOfAnAddress) {
    AttemptLimit limit{1};
    AttemptLimit::Slot first{limit, [] {}};
    AttemptLimit::Slot second{limit, [] {}};
    ASSERT_TRUE(first.enter(publisher));
    ASSERT_FALSE(second.enter(publisher));
    second.note_answer(TimePoint{2s});
    EXPECT_EQ(second.last_answer(), TimePoint::min()) << "a queued attempt has no answer";
    first.note_answer(TimePoint{1s});
    EXPECT_EQ(second.last_answer(), TimePoint{1s});
}

// Connects, and leaves each attempt unanswered.
struct Client final : Connector::Handler {
    explicit Client(Transport& transport, std::chrono::milliseconds slot_timeout = 5s)
        : connector{transport, *this, slot_timeout} {}
    void on_route(const Session::Target&) override {
        ++attempts;
        if (end_unanswered) {
            connector.try_next(
                {.reason = CloseReason::failed, .detail = "ended", .ended_unanswered = true});
        }
    }
    void on_connect_failed(const Closed& closed) override { failed.push_back(closed); }

    bool end_unanswered = false;
    int attempts = 0;
    std::vector<Closed> failed;
    Connector connector;
};

class ConnectorSlots : public testing::Test {
  protected:
    int attempts() const {
        int sum = 0;
        for (const Client& client : clients)
            sum += client.attempts;
        return sum;
    }
    void connect(int count) {
        for (int i = 0; i < count; ++i)
            clients.emplace_back(bed.transport()).connector.connect(publisher);
    }

    TestBed bed{Bed::sim_tcp};
    const int limit = static_cast<int>(bed.transport().attempts().per_address());
    std::deque<Client> clients;
};

TEST_F(ConnectorSlots, QueueAttemptsBeyondTheLimitUntilOneIsAnswered) {
    connect(limit + 2);
    ASSERT_TRUE(bed.run_until([&] { return attempts() == limit; }));
    bed.let_pass(1s);
    EXPECT_EQ(attempts(), limit);
    clients.front().connector.cancel(); // connected
    ASSERT_TRUE(bed.run_until([&] { return attempts() == limit + 1; }));
    bed.let_pass(4500ms); // more than the time-out since it was queued, less than since the answer
    EXPECT_TRUE(clients.back().failed.empty());
    ASSERT_TRUE(bed.run_until([&] { return !clients.back().failed.empty(); }));
    EXPECT_EQ(clients.back().attempts, 0);
    EXPECT_EQ(clients.back().failed[0].reason, CloseReason::connect_timeout);
    EXPECT_THAT(clients.back().failed[0].detail, HasSubstr("attempts_per_address_limit"));
}

TEST_F(ConnectorSlots, RetryAnAttemptThatEndsUnanswered) {
    Client& client = clients.emplace_back(bed.transport());
    client.end_unanswered = true;
    const TimePoint begin = bed.loop().now();
    client.connector.connect(publisher);
    ASSERT_TRUE(bed.run_until([&] { return !client.failed.empty(); }));
    EXPECT_EQ(client.attempts, 6) << "and five of them are retries";
    EXPECT_GE(bed.loop().now() - begin, 620ms) << "the sum of 20, 40, 80, 160 and 320 ms";
    EXPECT_EQ(client.failed[0].detail, "ended");
}

} // namespace
} // namespace netio::test::attempt_limit_test
