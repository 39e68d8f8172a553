// SPDX-License-Identifier: Apache-2.0

// How many calls may wait for a client's thread, and what it answers when a call cannot be carried
// out.

#include "tests/scenario/pubsub/clients.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace netio::pubsub::test::client_limits_test {
namespace {

class LimitedClient : public testing::Test {
  protected:
    static Client::Options with_limit(std::size_t posts) {
        Client::Options options = publishing();
        options.loop.post_limit = posts;
        return options;
    }
    // Blocks the client's thread until it may continue.
    void hold_up(Client& client) {
        ASSERT_TRUE(client.post([this, may_go = go_on.get_future().share()] {
            stands.set_value();
            may_go.get();
        }));
        stands.get_future().get();
    }

    std::promise<void> stands;
    std::promise<void> go_on;
};

TEST_F(LimitedClient, AcceptsExactlyTheLimitOfCallsRepeatedly) {
    std::atomic<int> ran{0};
    Client client{with_limit(3)};
    hold_up(client);
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(client.post([&] { ++ran; }));
    EXPECT_FALSE(client.post([&] { ++ran; }));
    EXPECT_FALSE(client.unsubscribe(range(1, 1)));
    EXPECT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::closed) << "at once";
    EXPECT_EQ(client.publish(Fid{1}, {}), Status::no_subscribers) << "none of these calls";
    go_on.set_value();
    wait_until([&] { return ran >= 3; });
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(client.post([&] { ++ran; }));
        wait_until([&] { return ran >= 4 + i; });
    }
    client.close();
    EXPECT_EQ(ran, 13);
}

TEST_F(LimitedClient, ThatHasEndedAnswersAtOnceThoughItWouldHaveTime) {
    Client client{publishing()};
    client.close();
    EXPECT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::closed);
}

TEST_F(LimitedClient, ThatDoesNotPublishSaysSo) {
    const Client publisher{publishing()};
    Client client{subscribing(publisher)};
    EXPECT_EQ(client.publish(Fid{1}, {}), Status::no_subscribers);
    EXPECT_TRUE(client.endpoints().empty());
}

TEST_F(LimitedClient, WithACallLimitOfZeroIsRefused) {
    EXPECT_THROW(Client{with_limit(0)}, std::invalid_argument);
}

// It is not reported by an event for each attempt to connect.
TEST_F(LimitedClient, AnOptionOfDestinationsIsRefusedByTheConstructor) {
    Client::Options options;
    options.send.page_size_bytes = 1;
    EXPECT_THROW(Client{options}, std::invalid_argument);
    options.send = {};
    options.send.socket.session.send_count = 1;
    EXPECT_THROW(Client{options}, std::invalid_argument);
}

TEST_F(LimitedClient, ARangeThatEndsBeforeItBeginsIsRefusedInTheCall) {
    const Client publisher{publishing()};
    Client client{subscribing(publisher)};
    EXPECT_THROW(static_cast<void>(client.subscribe({range(2, 1)})), std::invalid_argument);
    EXPECT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
}

} // namespace
} // namespace netio::pubsub::test::client_limits_test
