// SPDX-License-Identifier: Apache-2.0

// A thousand senders that connect, become silent or end at the same time: no turn of the receiver's
// loop may last as long as all of them together take. Turns are measured in calls, each of which
// takes some simulated time.

#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"
#include "tests/support/crowd.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::test::thousand_test {
namespace {

using namespace std::chrono_literals;

struct Sender final : SendSocket::Handler {
    void on_connected(SendSocket&) override { connected = true; }
    void on_closed(SendSocket&, const Closed&) override { closed = true; }
    bool connected = false;
    bool closed = false;
    std::unique_ptr<SendSocket> socket;
};

struct Receiver final : ListenSocket::Handler {
    void on_connected(ReceiveSocket&) override { ++connected; }
    void on_message(ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {}
    void on_closed(ReceiveSocket&, const Closed& closed) override {
        reasons.push_back(closed.reason);
    }
    void on_listen_closed(ListenSocket&, const Closed&) override { ended = true; }
    std::size_t connected = 0;
    std::vector<CloseReason> reasons;
    bool ended = false;
};

class Thousand : public Crowd {
  protected:
    Thousand() {
        listener_ = std::make_unique<ListenSocket>(
            near_.transport,
            ListenSocket::Options{.listen = {{"10.0.0.1", 1000}}, .allow_remote_anonymous = true},
            receiver_);
        senders_.resize(count);
        SendSocket::Options options;
        options.session.connect_timeout = 60s;
        for (Sender& sender : senders_) {
            sender.socket = std::make_unique<SendSocket>(far_.transport, options, sender);
            sender.socket->connect({"10.0.0.1", 1000});
        }
        run_until([&] { return receiver_.connected == count; });
    }
    bool all_are_gone() {
        return run_until([&] { return receiver_.reasons.size() == count; });
    }

    Receiver receiver_;
    std::unique_ptr<ListenSocket> listener_;
    std::vector<Sender> senders_;
};

TEST_P(Thousand, ThatConnectTogetherAreAcceptedOverManyTurns) {
    EXPECT_EQ(receiver_.connected, count);
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

TEST_P(Thousand, ThatBecomeSilentTogetherAreReportedOverManyTurns) {
    kill_all(true);
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

TEST_P(Thousand, ThatEndTogetherAreReportedOverManyTurns) {
    for (Sender& sender : senders_)
        sender.socket->close();
    ASSERT_TRUE(all_are_gone());
    EXPECT_EQ(std::ranges::count(receiver_.reasons, CloseReason::orderly), count);
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

TEST_P(Thousand, ThatAreKilledTogetherAreReportedOverManyTurns) {
    kill_all(false);
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

// The call itself closes some of them; later turns close the others.
TEST_P(Thousand, ThatAreClosedTogetherAreReportedOverManyTurns) {
    Timer close{near_.loop, [&] { listener_->close(); }};
    close.start({});
    ASSERT_TRUE(run_until([&] { return receiver_.ended; }));
    EXPECT_EQ(receiver_.reasons.size(), count);
    EXPECT_EQ(std::ranges::count(receiver_.reasons, CloseReason::orderly), count);
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

INSTANTIATE_TEST_SUITE_P(Simulated, Thousand, crowded_providers(), crowded_provider_name);

} // namespace
} // namespace netio::test::thousand_test
