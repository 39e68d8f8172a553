// SPDX-License-Identifier: Apache-2.0

// Sockets that belong to one thread, called from another.

#include "pubsub/client/subscriptions.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/foreign_thread.hpp"

#include <gtest/gtest.h>

#include <array>

namespace netio::pubsub::test::foreign_thread_test {
namespace {

using netio::test::ForeignCall;
using netio::test::simulated_beds;

class ForeignThread : public PubSubScenario {
  protected:
    // Calls that both publish sockets have.
    template <class Socket>
    static std::vector<ForeignCall> calls_of_any(const std::string& type, Socket& socket) {
        return {{type + "::close", [&] { socket.close(); }},
                {type + "::abort", [&] { socket.abort(); }},
                {type + "::endpoints", [&] { static_cast<void>(socket.endpoints()); }},
                {type + "::counters", [&] { static_cast<void>(socket.counters()); }},
                {type + "::snapshot", [&] { static_cast<void>(socket.snapshot()); }}};
    }

    std::array<std::byte, 8> bytes{};
};

INSTANTIATE_TEST_SUITE_P(Beds, ForeignThread, simulated_beds(), bed_name);

// A build with NDEBUG has no such checks.
#ifndef NDEBUG
TEST_P(ForeignThread, EveryCallOfABufferedPublisherIsRefused) {
    auto socket = buffered({});
    subscribe({range(1, 9)});
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 1; }));
    ASSERT_EQ(socket->publish(Fid{1}, bytes), netio::Status::ok); // the next uses the fast path
    const std::span<const std::byte> part{bytes};
    std::vector<ForeignCall> calls = calls_of_any("BufferedPublishSocket", *socket);
    calls.push_back({"BufferedPublishSocket::publish",
                     [&] { static_cast<void>(socket->publish(Fid{1}, bytes)); }});
    calls.push_back({"BufferedPublishSocket::publishv", [&] {
                         static_cast<void>(socket->publishv(Fid{1}, {&part, 1}));
                     }});
    calls.push_back({"BufferedPublishSocket::flush", [&] { socket->flush(); }});
    calls.push_back({"BufferedPublishSocket::flush", [&] { socket->flush(Fid{1}); }});
    calls.push_back({"BufferedPublishSocket::~BufferedPublishSocket", [&] { socket.reset(); }});
    netio::test::expect_refused(loop(), calls);
}

TEST_P(ForeignThread, EveryCallOfAnUnbufferedPublisherIsRefused) {
    auto socket = unbuffered({});
    netio::RegisteredBuffer memory{64};
    const netio::Slice slice = memory.slice();
    PublishTicket ticket;
    std::vector<ForeignCall> calls = calls_of_any("PublishSocket", *socket);
    calls.push_back({"PublishSocket::publishv",
                     [&] { static_cast<void>(socket->publish(Fid{1}, slice, Cookie{1})); }});
    calls.push_back({"PublishSocket::try_publishv",
                     [&] { static_cast<void>(socket->try_publish(Fid{1}, slice, Cookie{1})); }});
    calls.push_back({"PublishSocket::resume", [&] { static_cast<void>(socket->resume(ticket)); }});
    calls.push_back({"PublishSocket::prepare", [&] { socket->prepare(memory); }});
    calls.push_back(
        {"PublishSocket::outstanding", [&] { static_cast<void>(socket->outstanding()); }});
    calls.push_back(
        {"PublishSocket::segment_limit", [&] { static_cast<void>(socket->segment_limit()); }});
    calls.push_back({"PublishSocket::~PublishSocket", [&] { socket.reset(); }});
    netio::test::expect_refused(loop(), calls);
}

TEST_P(ForeignThread, EveryCallOfASubscriberIsRefused) {
    auto publisher = buffered({});
    std::unique_ptr<SubscribeSocket>& socket = subscribe({range(1, 9)}).socket;
    const FidRange one = range(1, 1);
    netio::test::expect_refused(
        loop(),
        {{"SubscribeSocket::subscribe", [&] { socket->subscribe(one); }},
         {"SubscribeSocket::subscribe",
          [&] {
              socket->subscribe({&one, 1});
          }},
         {"SubscribeSocket::unsubscribe", [&] { socket->unsubscribe(one); }},
         {"SubscribeSocket::close", [&] { socket->close(); }},
         {"SubscribeSocket::abort", [&] { socket->abort(); }},
         {"SubscribeSocket::pause", [&] { socket->pause(); }},
         {"SubscribeSocket::resume", [&] { socket->resume(); }},
         {"SubscribeSocket::is_paused", [&] { static_cast<void>(socket->is_paused()); }},
         {"SubscribeSocket::counters", [&] { static_cast<void>(socket->counters()); }},
         {"SubscribeSocket::wanted", [&] { static_cast<void>(socket->wanted()); }},
         {"SubscribeSocket::is_connected", [&] { static_cast<void>(socket->is_connected()); }},
         {"SubscribeSocket::provider", [&] { static_cast<void>(socket->provider()); }},
         {"SubscribeSocket::publisher_instance",
          [&] { static_cast<void>(socket->publisher_instance()); }},
         {"SubscribeSocket::resume_state", [&] { static_cast<void>(socket->resume_state()); }},
         {"SubscribeSocket::seen", [&] { static_cast<void>(socket->seen()); }},
         {"SubscribeSocket::arrivals", [&] { static_cast<void>(socket->arrivals()); }},
         {"SubscribeSocket::~SubscribeSocket", [&] { socket.reset(); }}});
}

TEST_P(ForeignThread, EveryCallOfSubscriptionsIsRefused) {
    auto publisher = buffered({});
    struct Nobody final : Subscriptions::Handler {
        void on_message(Subscriptions&, const Subscriptions::Source&, Fid,
                        std::span<const std::byte>, std::uint8_t) override {}
    } nobody;
    Subscriptions::Options options;
    options.publishers = {address};
    auto all = std::make_unique<Subscriptions>(transport(), options, nobody);
    const FidRange one = range(1, 1);
    netio::test::expect_refused(
        loop(),
        {{"Subscriptions::subscribe", [&] { all->subscribe(one); }},
         {"Subscriptions::subscribe",
          [&] {
              all->subscribe({&one, 1});
          }},
         {"Subscriptions::unsubscribe", [&] { all->unsubscribe(one); }},
         {"Subscriptions::pause", [&] { all->pause(); }},
         {"Subscriptions::resume", [&] { all->resume(); }},
         {"Subscriptions::close", [&] { all->close(); }},
         {"Subscriptions::publisher_stats", [&] { static_cast<void>(all->publisher_stats()); }},
         {"Subscriptions::sums", [&] { static_cast<void>(all->sums()); }},
         {"Subscriptions::connected_count", [&] { static_cast<void>(all->connected_count()); }},
         {"Subscriptions::for_each",
          [&] { all->for_each([](const Subscriptions::Source&, SubscribeSocket&) {}); }},
         {"Subscriptions::~Subscriptions", [&] { all.reset(); }}});
}

// A socket moves to another thread while its loop does not run.
#endif

TEST_P(ForeignThread, WhileTheLoopStandsStillAnyThreadMayCall) {
    auto socket = buffered({});
    std::thread other{[&] {
        EXPECT_EQ(socket->publish(Fid{1}, bytes), netio::Status::no_subscribers);
        socket.reset();
    }};
    other.join();
}

} // namespace
} // namespace netio::pubsub::test::foreign_thread_test
