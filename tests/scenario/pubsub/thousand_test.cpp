// SPDX-License-Identifier: Apache-2.0

// A thousand subscribers that connect, become silent or end at the same time: no turn of the
// publisher's loop may last as long as all of them together take. Turns are measured in calls, each
// of which takes some simulated time.

#include "tests/scenario/pubsub/actors.hpp"
#include "tests/support/crowd.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::test::thousand_test {
namespace {

using namespace netio::test;
using namespace std::chrono_literals;

struct Reader {
    Reader(Transport& transport, std::uint64_t fid)
        : socket{transport,
                 {.publisher = {"10.0.0.1", 1000},
                  .session = {.receive_buffer_bytes = 65536,
                              .receive_count = 4,
                              .connect_timeout = 60s}},
                 actor} {
        socket.subscribe(FidRange{Fid{fid}, Fid{fid}});
    }
    SubscriberActor actor;
    SubscribeSocket socket;
};

class Thousand : public Crowd {
  protected:
    Thousand() {
        publisher_ = std::make_unique<BufferedPublishSocket>(
            near_.transport,
            BufferedPublishSocket::Options{
                .publisher = {.listen = {{"10.0.0.1", 1000}}, .allow_remote_anonymous = true},
                .page_size_bytes = 32768},
            publisher_actor_);
        for (std::uint64_t i = 0; i < count; ++i)
            readers_.push_back(std::make_unique<Reader>(far_.transport, i / 2)); // two of each kind
        run_until([&] {
            return std::ranges::all_of(
                readers_, [](const auto& reader) { return reader->actor.subscribed.size() == 1; });
        });
    }
    bool all_are_gone() {
        return run_until([&] { return publisher_actor_.closed.size() == count; });
    }

    PublisherActor publisher_actor_;
    std::unique_ptr<BufferedPublishSocket> publisher_;
    std::vector<std::unique_ptr<Reader>> readers_;
};

TEST_P(Thousand, ThatConnectTogetherAreAcceptedOverManyTurns) {
    for (const auto& reader : readers_)
        ASSERT_EQ(reader->actor.subscribed.size(), 1U);
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

TEST_P(Thousand, ThatBecomeSilentTogetherAreReportedOverManyTurns) {
    kill_all(true);
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

TEST_P(Thousand, ThatEndTogetherAreReportedOverManyTurns) {
    for (const auto& reader : readers_)
        reader->socket.close();
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

TEST_P(Thousand, ThatAreKilledTogetherAreReportedOverManyTurns) {
    kill_all(false);
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.turns().longest(), longest_turn);
}

// The call itself sends a request to each of them, which costs one post each; the answers take many
// turns.
TEST_P(Thousand, ThatAreClosedTogetherAreReportedOverManyTurns) {
    Timer close{near_.loop, [&] { publisher_->close(); }};
    close.start({});
    ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
    EXPECT_EQ(publisher_actor_.end.reason, CloseReason::orderly);
    EXPECT_LE(near_.loop.turns().longest(), longest_turn + count * costs.post);
}

INSTANTIATE_TEST_SUITE_P(Simulated, Thousand, crowded_providers(), crowded_provider_name);

} // namespace
} // namespace netio::pubsub::test::thousand_test
