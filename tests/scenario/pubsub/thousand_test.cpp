// SPDX-License-Identifier: Apache-2.0

// A thousand subscribers that come at once, fall silent together, or end at once: no turn of the
// publisher's loop may last as long as all of them take. Turns are measured in calls, each of which
// takes some of the simulator's time.

#include "tests/scenario/pubsub/actors.hpp"
#include "tests/support/sim_node.hpp"
#include "tests/support/sim_scheduler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::test {
namespace {

using namespace netio::test;
using namespace std::chrono_literals;

constexpr std::size_t count = 1000;
// One thing of each kind a peer would take more than ten times as long as this.
constexpr Duration longest_turn = 6ms;
constexpr SimTransport::Costs costs{.post = 5us, .connection = 50us};

struct Reader {
    Reader(Transport& transport, std::uint64_t fid)
        : socket{transport,
                 {.publisher = {"10.0.0.1", 1000},
                  .session = {.receive_bytes = 65536, .receive_count = 4, .connect_timeout = 60s}},
                 actor} {
        socket.subscribe(FidRange{Fid{fid}, Fid{fid}});
    }
    SubscriberActor actor;
    SubscribeSocket socket;
};

class Thousand : public testing::TestWithParam<int> {
  protected:
    Thousand() {
        scheduler_.add(near_.process, near_.loop);
        scheduler_.add(far_.process, far_.loop);
        near_.transport.set_costs(costs);
        publisher_ = std::make_unique<BufferedPublishSocket>(
            near_.transport,
            BufferedPublishSocket::Options{.publisher = {.addresses = {{"10.0.0.1", 1000}}},
                                           .page_bytes = 32768},
            publisher_actor_);
        for (std::uint64_t i = 0; i < count; ++i)
            readers_.push_back(std::make_unique<Reader>(far_.transport, i / 2)); // two of each
        run_until([&] {
            return std::ranges::all_of(
                readers_, [](const auto& reader) { return reader->actor.subscribed.size() == 1; });
        });
    }
    bool run_until(const std::function<bool()>& done) {
        near_.process.wake();
        far_.process.wake();
        for (const TimePoint end = clock_.now() + 10min; !done();) {
            if (clock_.now() >= end) return false;
            scheduler_.step(end);
        }
        return true;
    }
    bool all_are_gone() {
        return run_until([&] { return publisher_actor_.closed.size() == count; });
    }

    SimClock clock_;
    SimNetwork network_{clock_, 5};
    SimScheduler scheduler_{clock_, 5};
    SimProfile profile_ = GetParam() == 0 ? tcp_profile() : verbs_profile();
    SimNode near_{clock_, network_, profile_, 1};
    SimNode far_{clock_, network_, profile_, 2};
    PublisherActor publisher_actor_;
    std::unique_ptr<BufferedPublishSocket> publisher_;
    std::vector<std::unique_ptr<Reader>> readers_;
};

TEST_P(Thousand, ThatComeAtOnceAreTakenOverManyTurns) {
    for (const auto& reader : readers_)
        ASSERT_EQ(reader->actor.subscribed.size(), 1U);
    EXPECT_LE(near_.loop.longest_turn(), longest_turn);
}

TEST_P(Thousand, ThatFallSilentTogetherAreToldOverManyTurns) {
    network_.kill(2, true);
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.longest_turn(), longest_turn);
}

TEST_P(Thousand, ThatEndAtOnceAreToldOverManyTurns) {
    for (const auto& reader : readers_)
        reader->socket.close();
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.longest_turn(), longest_turn);
}

TEST_P(Thousand, ThatAreKilledTogetherAreToldOverManyTurns) {
    network_.kill(2, false);
    ASSERT_TRUE(all_are_gone());
    EXPECT_LE(near_.loop.longest_turn(), longest_turn);
}

// The call itself asks all of them, at the cost of a post each; they answer over many turns.
TEST_P(Thousand, ThatAreClosedTogetherAreToldOverManyTurns) {
    Timer close{near_.loop, [&] { publisher_->close(); }};
    close.start({});
    ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
    EXPECT_EQ(publisher_actor_.end.reason, CloseReason::orderly);
    EXPECT_LE(near_.loop.longest_turn(), longest_turn + count * costs.post);
}

std::string name_of(const testing::TestParamInfo<int>& info) {
    return info.param == 0 ? "sim_tcp" : "sim_verbs";
}
INSTANTIATE_TEST_SUITE_P(Simulated, Thousand, testing::Values(0, 1), name_of);

} // namespace
} // namespace netio::pubsub::test
