// SPDX-License-Identifier: Apache-2.0

// Encrypted messages are sent from a copy: how much copy memory a stopped subscriber can block, and
// how much is left for the others.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/scenario/pubsub/actors.hpp"
#include "tests/support/forwarding_transport.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/sim_network.hpp"
#include "tests/support/sim_node.hpp"
#include "tests/support/sim_scheduler.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace netio::pubsub::test::copies_test {
namespace {

using namespace netio::test;
using namespace std::chrono_literals;

constexpr std::size_t copies_limit = 512 * 1024;
constexpr std::size_t page_bytes = 32 * 1024;

// Small, so that messages for a stopped reader stay in the sender's memory.
SimProfile narrow() {
    SimProfile profile = tcp_profile();
    profile.window_bytes = page_bytes;
    return profile;
}

struct Frugal final : ForwardingTransport {
    explicit Frugal(Transport& inner) : ForwardingTransport{inner, copies_limit} {}
};

struct Reader : SimNode {
    Reader(SimClock& clock, SimNetwork& network, std::uint32_t number,
           SubscribeSocket::Options options)
        : SimNode{clock, network, narrow(), number}, socket{transport, std::move(options), actor} {
        socket.subscribe({range(1, 1)});
    }
    SubscriberActor actor;
    SubscribeSocket socket;
};

class Copies : public testing::Test {
  protected:
    Copies() {
        files_.permit(7, "services=pubsub fids=1");
        scheduler_.add(node_.process, node_.loop);
        publisher_ = std::make_unique<BufferedPublishSocket>(
            frugal_,
            BufferedPublishSocket::Options{
                .publisher = {.listen = {address_},
                              .keys = std::make_shared<ServerKeys>(
                                  node_.loop, ServerKeys::Options{.file = files_.site(),
                                                                  .min_protection =
                                                                      access::Protection::privacy}),
                              .slow_policy = SlowPolicy::drop},
                .page_size_bytes = page_bytes,
                .page_count = 1024},
            actor_);
    }
    ~Copies() override {
        EXPECT_TRUE(network_.violations().empty()) << network_.violations().front();
        publisher_.reset();
        for (const auto& reader : readers_)
            scheduler_.remove(reader->process);
    }
    Reader& read() {
        SubscribeSocket::Options options{.publisher = address_};
        options.key = std::make_shared<ClientKey>(ClientKey::Options{
            .file = files_.client(7), .protection = access::Protection::privacy});
        options.session.receive_count = 256;
        const auto number = static_cast<std::uint32_t>(readers_.size() + 2);
        readers_.push_back(std::make_unique<Reader>(clock_, network_, number, options));
        Reader& made = *readers_.back();
        scheduler_.add(made.process, made.loop);
        EXPECT_TRUE(run_until([&] { return made.actor.subscribed.size() == 1; }));
        return made;
    }
    bool run_until(const std::function<bool()>& done) {
        node_.process.wake();
        for (const TimePoint end = clock_.now() + 5min; !done();) {
            if (clock_.now() >= end) return false;
            scheduler_.step(end);
        }
        return true;
    }

    KeyFiles files_;
    SimClock clock_;
    SimNetwork network_{clock_, 17};
    SimScheduler scheduler_{clock_, 17};
    SimNode node_{clock_, network_, narrow(), 1};
    Frugal frugal_{node_.transport};
    PublisherActor actor_;
    Address address_{.host = "127.0.0.1", .port = 1000};
    std::unique_ptr<BufferedPublishSocket> publisher_;
    std::vector<std::unique_ptr<Reader>> readers_;
};

TEST_F(Copies, OfOneThatStopsAreBoundedAndTheOthersLoseNothing) {
    Reader& stopped = read();
    Reader& honest = read();
    scheduler_.stop(stopped.process);
    std::size_t most = 0;
    std::uint64_t count = 0;
    for (; count < 600; ++count) {
        const std::vector<std::byte> message = make_message(Fid{1}, count, page_bytes / 2);
        ASSERT_TRUE(run_until([&] { return publisher_->publish(Fid{1}, message) == Status::ok; }));
        publisher_->flush();
        ASSERT_TRUE(run_until([&] { return honest.actor.messages == count + 1; }));
        most = std::max(most, frugal_.copy_budget().used());
    }
    EXPECT_GT(most, copies_limit / 8) << "otherwise no memory was blocked";
    EXPECT_LE(most, copies_limit * 3 / 4 + 2 * page_bytes);
    scheduler_.go_on(stopped.process);
    publisher_->close();
    ASSERT_TRUE(run_until([&] { return actor_.ended == 1 && stopped.actor.totals == 1; }));
    EXPECT_EQ(stopped.actor.messages + stopped.actor.lost, count);
    EXPECT_EQ(honest.actor.messages, count);
    EXPECT_EQ(honest.actor.lost, 0U);
}

} // namespace
} // namespace netio::pubsub::test::copies_test
