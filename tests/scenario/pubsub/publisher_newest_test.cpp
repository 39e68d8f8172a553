// SPDX-License-Identifier: Apache-2.0

// Conflation in the publisher: which messages it stores and when it sends them, in virtual time.

#include "tests/scenario/pubsub/exact_account.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <chrono>

namespace netio::pubsub::test::publisher_newest_test {
namespace {

using netio::Status;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

class PublisherKeepsNewest : public PubSubScenario {
  protected:
    static constexpr std::size_t pool = 64U * 1024;

    static BufferedPublishSocket::Options small_pages() {
        return {.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = 4 * 1024};
    }
    Subscription& paused(const FidRange& fids, SlowPolicy policy) {
        Subscription& subscriber = subscribe(
            {fids}, {.session = {.receive_buffer_bytes = 4096, .receive_count = 4}}, policy);
        EXPECT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        subscriber.socket->pause();
        return subscriber;
    }
    static std::uint64_t last_of(Subscription& subscriber, std::uint64_t fid) {
        const auto& arrived = subscriber.actor.by_fid[Fid{fid}];
        return arrived.empty() ? UINT64_MAX : arrived.back().number;
    }
};

// Another subscriber holds the memory, so this one is not to blame.
TEST_P(PublisherKeepsNewest, AMessageWithoutMemoryIsSentWhenAnotherReleasesIt) {
    auto publisher = buffered(small_pages());
    auto& newest = paused(range(1, 1), SlowPolicy::newest);
    auto& other = paused(range(2, 2), SlowPolicy::block);
    std::uint64_t number = 0;
    for (; number < 10; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 900), Status::ok);
    ASSERT_EQ(publish(*publisher, Fid{1}, number, 12'000), Status::ok); // this one is stored
    const std::size_t large = pool - 4 * 1024 - 1024;
    ASSERT_EQ(publish(*publisher, Fid{2}, 0, large), Status::ok);
    newest.socket->resume();
    bed.let_pass(2s);
    EXPECT_LT(last_of(newest, 1), number) << "it must have waited for memory";
    EXPECT_EQ(publisher->snapshot().subscribers.at(0).idle, netio::Duration::zero());
    EXPECT_THAT(bed.seen().stalled, SizeIs(1)) << "the one that holds the memory";
    other.socket->resume();
    ASSERT_TRUE(run_until([&] { return last_of(newest, 1) == number; }));
    ASSERT_TRUE(run_until([&] { return other.actor.messages == 1; }));
    expect_exact_account(newest.actor, Fid{1}, number + 1);
    EXPECT_THAT(publisher_actor.closed, IsEmpty());
}

// It sends only what its subscriber can receive at once: the rest can still be replaced.
TEST_P(PublisherKeepsNewest, AnUnsentMessageIsReplacedByALaterOne) {
    constexpr std::uint64_t fids = 20;
    auto publisher = buffered(small_pages());
    auto& newest = paused(range(1, fids), SlowPolicy::newest);
    const auto publish_all = [&](std::uint64_t number) {
        for (std::uint64_t fid = 1; fid <= fids; ++fid)
            ASSERT_EQ(publish(*publisher, Fid{fid}, number, 900), Status::ok); // one page each
        publisher->flush();
        bed.let_pass(1ms);
    };
    publish_all(0);
    publish_all(1);
    const std::uint64_t dropped = publisher->counters().dropped;
    ASSERT_GT(dropped, 0U);
    newest.actor.at_message = [&](SubscribeSocket& socket) {
        if (newest.actor.by_fid[Fid{1}].size() == 2) socket.pause(); // the first stored message
    };
    newest.socket->resume();
    ASSERT_TRUE(run_until([&] { return newest.socket->is_paused(); }));
    bed.let_pass(1ms);
    publish_all(2);
    EXPECT_GE(publisher->counters().dropped, dropped + fids / 2);
    newest.actor.at_message = {};
    newest.socket->resume();
    for (std::uint64_t fid = 1; fid <= fids; ++fid) {
        ASSERT_TRUE(run_until([&] { return last_of(newest, fid) == 2; })) << fid;
        expect_exact_account(newest.actor, Fid{fid}, 3);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherKeepsNewest, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::publisher_newest_test
