// SPDX-License-Identifier: Apache-2.0

// Publishers and subscribers that are stopped for a while, each with its own loop: what they may
// cost the others. All counters must agree after they continue.

#include "tests/scenario/pubsub/actors.hpp"
#include "tests/support/sim_network.hpp"
#include "tests/support/sim_node.hpp"
#include "tests/support/sim_scheduler.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <vector>

namespace netio::pubsub::test::stopped_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using namespace netio::test;
using namespace std::chrono_literals;

SimProfile narrow_tcp() {
    SimProfile profile = tcp_profile();
    profile.window_bytes = 64 * 1024;
    return profile;
}

struct Reader : SimNode {
    Reader(SimClock& clock, SimNetwork& network, const SimProfile& profile, std::uint32_t number,
           const Address& publisher, const std::vector<FidRange>& ranges,
           SessionOptions session = SubscribeSocket::Options{}.session)
        : SimNode{clock, network, profile, number}, socket{transport,
                                                           {.publisher = publisher,
                                                            .session = session},
                                                           actor} {
        socket.subscribe(ranges);
    }

    SubscriberActor actor;
    SubscribeSocket socket;
};

class Stopped : public testing::TestWithParam<int> {
  protected:
    Stopped() : profile_{GetParam() == 0 ? narrow_tcp() : verbs_profile()} {
        scheduler_.add(publisher_node_.process, publisher_node_.loop);
    }
    ~Stopped() override {
        EXPECT_TRUE(network_.violations().empty()) << network_.violations().front();
        for (const auto& reader : readers_)
            scheduler_.remove(reader->process);
    }

    Reader& read(const std::vector<FidRange>& ranges,
                 SessionOptions session = SubscribeSocket::Options{}.session) {
        const auto number = static_cast<std::uint32_t>(readers_.size() + 2);
        readers_.push_back(std::make_unique<Reader>(clock_, network_, profile_, number, address_,
                                                    ranges, session));
        Reader& made = *readers_.back();
        scheduler_.add(made.process, made.loop);
        EXPECT_TRUE(run_until([&] { return made.actor.subscribed.size() == ranges.size(); }));
        return made;
    }
    void run_for(Duration time) {
        publisher_node_.process.wake(); // calls from outside may have started timers
        for (const TimePoint end = clock_.now() + time; clock_.now() < end;)
            scheduler_.step(end);
    }
    bool run_until(const std::function<bool()>& done) {
        publisher_node_.process.wake();
        for (const TimePoint end = clock_.now() + 5min; !done();) {
            if (clock_.now() >= end) return false;
            scheduler_.step(end);
        }
        return true;
    }

    // Arrived messages and messages reported lost together are all messages of a fid, in order.
    static void expect_counts(const SubscriberActor& actor, Fid fid, std::uint64_t published) {
        std::uint64_t gaps = 0;
        if (const auto found = actor.gaps.find(fid); found != actor.gaps.end())
            gaps = found->second;
        const auto found = actor.by_fid.find(fid);
        const std::size_t arrived = found == actor.by_fid.end() ? 0 : found->second.size();
        EXPECT_EQ(arrived + gaps, published) << to_string(fid);
        if (arrived == 0) return;
        std::uint64_t last = 0;
        for (const Arrived& message : found->second) {
            ASSERT_TRUE(message.intact);
            ASSERT_TRUE(message.number == 0 || message.number > last || last == 0);
            last = message.number;
        }
    }

    SimProfile profile_;
    SimClock clock_;
    SimNetwork network_{clock_, 17};
    SimScheduler scheduler_{clock_, 17};
    SimNode publisher_node_{clock_, network_, profile_, 1};
    PublisherActor publisher_actor_;
    Address address_{.host = "10.0.0.1", .port = 1000};
    std::vector<std::unique_ptr<Reader>> readers_;
};

// Publishes this many messages of each fid, one each millisecond.
class Ticker {
  public:
    Ticker(EventLoop& loop, std::function<Status(Fid, std::uint64_t)> publish,
           std::vector<Fid> fids)
        : publish_{std::move(publish)}, fids_{std::move(fids)}, timer_{loop, [this] { tick(); }} {
        timer_.start(1ms);
    }
    std::uint64_t count() const { return number_; }
    std::uint64_t refused() const { return refused_; }
    void stop() { timer_.cancel(); }

  private:
    void tick() {
        for (const Fid fid : fids_)
            if (publish_(fid, number_) == Status::again) ++refused_;
        ++number_;
        timer_.start(1ms);
    }

    std::function<Status(Fid, std::uint64_t)> publish_;
    std::vector<Fid> fids_;
    std::uint64_t number_ = 0;
    std::uint64_t refused_ = 0;
    Timer timer_;
};

std::vector<Fid> sixteen_fids() {
    std::vector<Fid> fids;
    for (std::uint64_t i = 0; i < 16; ++i)
        fids.push_back(Fid{i});
    return fids;
}

class Sensor : public Stopped {
  protected:
    // 16,000 messages of 256 bytes per second, default options, one subscriber that stops.
    void pause(Duration pause) {
        BufferedPublishSocket publisher{publisher_node_.transport,
                                        {.publisher = {.listen = {address_},
                                                       .allow_remote_anonymous = true,
                                                       .slow_policy = SlowPolicy::drop}},
                                        publisher_actor_};
        Reader& reader = read({range(0, 15)});
        Ticker ticker{publisher_node_.loop,
                      [&](Fid fid, std::uint64_t number) {
                          return publisher.publish(fid, make_message(fid, number, 256));
                      },
                      sixteen_fids()};
        run_for(200ms);
        scheduler_.stop(reader.process);
        run_for(pause);
        scheduler_.go_on(reader.process);
        run_for(300ms);
        ticker.stop();
        publisher.close();
        ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
        EXPECT_EQ(publisher_actor_.end.reason, CloseReason::orderly);
        EXPECT_EQ(ticker.refused(), 0U);
        EXPECT_GE(ticker.count(), 900U);
        EXPECT_EQ(reader.actor.totals, 1);
        EXPECT_EQ(reader.actor.lost, publisher.counters().dropped);
        for (const Fid fid : sixteen_fids())
            expect_counts(reader.actor, fid, ticker.count());
        dropped_ = publisher.counters().dropped;
        published_ = 16 * ticker.count();
    }

    std::uint64_t dropped_ = 0;
    std::uint64_t published_ = 0;
};

TEST_P(Sensor, ASubscriberThatPausesHalfASecondLosesNothing) {
    pause(500ms);
    EXPECT_EQ(dropped_, 0U);
}

TEST_P(Sensor, ALongPauseLosesWhatExceedsItsLimitAndReportsItExactly) {
    pause(4s);
    EXPECT_GT(dropped_, 0U);
    const std::uint64_t held = (std::uint64_t{4} << 20) / 280;
    EXPECT_LT(dropped_, 16U * 4000U - held + 16U * 20U) << "its limit is not used";
}

TEST_P(Stopped, APublisherThatPausesDoesNotDisconnectTheHealthy) {
    BufferedPublishSocket publisher{publisher_node_.transport,
                                    {.publisher = {.listen = {address_},
                                                   .allow_remote_anonymous = true,
                                                   .slow_policy = SlowPolicy::disconnect,
                                                   .disconnect_after = 1s}},
                                    publisher_actor_};
    Reader& reader = read({range(1, 1)});
    std::uint64_t number = 0;
    const auto pump = [&] {
        while (publisher.publish(Fid{1}, make_message(Fid{1}, number, 20000)) == Status::ok)
            ++number;
    };
    for (int i = 0; i < 3; ++i) {
        pump(); // until it is blocked
        run_for(10us);
        scheduler_.stop(publisher_node_.process);
        run_for(3s);
        scheduler_.go_on(publisher_node_.process);
        run_for(100ms);
    }
    EXPECT_TRUE(publisher_actor_.closed.empty()) << publisher_actor_.closed.front().detail;
    publisher.close();
    ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
    reader.actor.expect_contiguous(Fid{1}, 0, number);
}

// Neither for its time without progress nor for its total time.
TEST_P(Stopped, APublisherStoppedDuringItsCloseBlamesNoSubscriber) {
    BufferedPublishSocket publisher{publisher_node_.transport,
                                    {.publisher = {.listen = {address_},
                                                   .allow_remote_anonymous = true,
                                                   .close_timeout = 2s,
                                                   .close_limit = 4s}},
                                    publisher_actor_};
    Reader& reader = read({range(1, 1)});
    std::uint64_t number = 0;
    while (publisher.publish(Fid{1}, make_message(Fid{1}, number, 20000)) == Status::ok)
        ++number;
    scheduler_.stop(reader.process);
    publisher.close();
    run_for(1s);
    scheduler_.stop(publisher_node_.process);
    run_for(30s);
    scheduler_.go_on(reader.process);
    scheduler_.go_on(publisher_node_.process);
    ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
    EXPECT_EQ(publisher_actor_.end.reason, CloseReason::orderly);
    reader.actor.expect_contiguous(Fid{1}, 0, number);
}

TEST_P(Stopped, StoppedTooLongForItsPolicyIsDisconnectedAndItsFidsContinue) {
    BufferedPublishSocket publisher{publisher_node_.transport,
                                    {.publisher = {.listen = {address_},
                                                   .allow_remote_anonymous = true,
                                                   .slow_policy = SlowPolicy::disconnect,
                                                   .disconnect_after = 500ms},
                                     .page_size_bytes = 16 * 1024,
                                     .page_count = 64,
                                     .queue_limit_bytes = 64 * 1024},
                                    publisher_actor_};
    Reader& honest = read({range(1, 2)});
    Reader& first = read({range(1, 1)});
    Reader& second = read({range(1, 1)});
    Duration waited{};
    TimePoint since = TimePoint::max();
    std::uint64_t of_one = 0;
    Ticker ticker{publisher_node_.loop,
                  [&](Fid fid, std::uint64_t number) {
                      if (fid == Fid{2})
                          return publisher.publish(fid, make_message(fid, number, 500));
                      const Status status = publisher.publish(fid, make_message(fid, of_one, 5000));
                      if (status == Status::ok) {
                          ++of_one;
                          if (since != TimePoint::max()) waited += clock_.now() - since;
                          since = TimePoint::max();
                      } else if (since == TimePoint::max()) {
                          since = clock_.now();
                      }
                      return Status::ok;
                  },
                  {Fid{1}, Fid{2}}};
    run_for(100ms);
    scheduler_.stop(first.process);
    scheduler_.stop(second.process);
    run_for(3s);
    EXPECT_EQ(publisher_actor_.closed.size(), 2U);
    EXPECT_LE(waited, 650ms) << "once, for both of them";
    EXPECT_EQ(ticker.refused(), 0U) << "no subscriber of the other fid is stopped";
    ticker.stop();
    publisher.close();
    ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
    honest.actor.expect_contiguous(Fid{1}, 0, of_one);
    honest.actor.expect_contiguous(Fid{2}, 0, ticker.count());
}

// Ten keep reading; forty are stopped one after another, half of them with a fid that all share.
class Crowd : public Stopped {
  protected:
    static constexpr std::uint64_t honest = 10;
    static constexpr std::uint64_t guests = 40;

    std::vector<Fid> gather() {
        std::vector<Fid> fids{Fid{1}};
        const SessionOptions session{.receive_buffer_bytes = 20 * 1024, .receive_count = 8};
        for (std::uint64_t i = 0; i < honest; ++i)
            read({range(1, 1), range(100 + i, 100 + i)}, session);
        for (std::uint64_t i = 0; i < guests; ++i)
            read({i % 2 == 0 ? range(1, 1) : range(200 + i, 200 + i)}, session);
        for (std::uint64_t i = 0; i < honest; ++i)
            fids.push_back(Fid{100 + i});
        for (std::uint64_t i = 1; i < guests; i += 2)
            fids.push_back(Fid{200 + i});
        return fids;
    }
    // One of the ten is stopped as well, for a moment.
    void stop_and_go_on(Duration apart, Duration for_long, Duration hiccup = {}) {
        run_for(20ms);
        for (std::size_t i = honest; i < readers_.size(); ++i) {
            scheduler_.stop(readers_[i]->process);
            run_for(apart);
        }
        run_for(for_long);
        scheduler_.stop(readers_[0]->process);
        run_for(hiccup);
        scheduler_.go_on(readers_[0]->process);
        run_for(20ms);
        for (std::size_t i = honest; i < readers_.size(); ++i)
            scheduler_.go_on(readers_[i]->process);
        run_for(300ms);
    }
    void expect_counts_of_all(const Ticker& ticker) {
        EXPECT_EQ(ticker.refused(), 0U);
        for (std::size_t i = 0; i < honest; ++i) {
            readers_[i]->actor.expect_contiguous(Fid{1}, 0, ticker.count());
            readers_[i]->actor.expect_contiguous(Fid{100 + i}, 0, ticker.count());
            EXPECT_EQ(readers_[i]->actor.lost, 0U);
        }
        for (std::size_t i = 0; i < guests; ++i) {
            const SubscriberActor& guest = readers_[honest + i]->actor;
            const bool thrown_out = guest.totals == 0;
            EXPECT_FALSE(thrown_out) << i;
            if (!thrown_out)
                expect_counts(guest, i % 2 == 0 ? Fid{1} : Fid{200 + i}, ticker.count());
        }
    }
};

class BufferedCrowd : public Crowd {
  protected:
    void stop_forty(Duration hiccup) {
        BufferedPublishSocket publisher{publisher_node_.transport,
                                        {.publisher = {.listen = {address_},
                                                       .allow_remote_anonymous = true,
                                                       .slow_policy = SlowPolicy::drop},
                                         .page_size_bytes = 16 * 1024,
                                         .page_count = 128},
                                        publisher_actor_};
        const std::vector<Fid> fids = gather();
        Ticker busy{publisher_node_.loop,
                    [&](Fid fid, std::uint64_t number) {
                        return publisher.publish(fid, make_message(fid, number, 200));
                    },
                    fids};
        stop_and_go_on(5ms, 300ms, hiccup);
        busy.stop();
        publisher.close();
        ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
        EXPECT_GT(publisher.counters().dropped, 0U) << "the test must reach the limit";
        expect_counts_of_all(busy);
    }
};

TEST_P(BufferedCrowd, FortyStoppedOfFiftyDoNotAffectTheOthers) {
    stop_forty(0ms);
}

TEST_P(BufferedCrowd, AShortStallWhileFortyAreStoppedLosesNothing) {
    stop_forty(300ms);
}

TEST_P(Crowd, FortyStoppedOfFiftyDoNotAffectTheOthersUnbuffered) {
    PublishSocket publisher{publisher_node_.transport,
                            {.publisher = {.listen = {address_},
                                           .allow_remote_anonymous = true,
                                           .slow_policy = SlowPolicy::drop}},
                            publisher_actor_};
    const std::vector<Fid> fids = gather();
    // A message needs its memory until it completes.
    constexpr std::size_t bytes = 200;
    RegisteredBuffer memory{bytes * 512};
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < 512; ++i)
        free.push_back(i);
    publisher_actor_.at_completed = [&](std::uint64_t key) { free.push_back(key); };
    Ticker busy{publisher_node_.loop,
                [&](Fid fid, std::uint64_t number) {
                    const std::size_t slot = free.back();
                    const Slice slice = memory.slice(slot * bytes, bytes);
                    std::ranges::copy(make_message(fid, number, bytes), slice.data);
                    const Status status = publisher.publish(fid, slice, Cookie{slot});
                    if (status == Status::ok) free.pop_back();
                    return status;
                },
                fids};
    stop_and_go_on(5ms, 300ms);
    busy.stop();
    publisher.close();
    ASSERT_TRUE(run_until([&] { return publisher_actor_.ended == 1; }));
    EXPECT_GT(publisher.counters().dropped, 0U) << "the test must reach the limit";
    expect_counts_of_all(busy);
}

// On a bed where a stopped process's device accepts messages for all its receives, none stays
// posted.
class StoppedOverTcp : public Stopped {};

// Posted messages cannot be withdrawn, so a subscriber that keeps their memory while others need it
// is disconnected: the longest-stalled first, not before one second, and only as many as necessary.
TEST_P(StoppedOverTcp, PostsThatHoldMemoryForLongAreClosedAndReported) {
    PublishSocket publisher{publisher_node_.transport,
                            {.publisher = {.listen = {address_},
                                           .allow_remote_anonymous = true,
                                           .slow_policy = SlowPolicy::drop},
                             .outstanding_limit = 4},
                            publisher_actor_};
    Reader& honest = read({range(9, 9)});
    constexpr std::uint64_t guests = 4;
    for (std::uint64_t i = 0; i < guests; ++i)
        read({range(i, i)});
    std::vector<TimePoint> closed_at;
    publisher_actor_.at_closed = [&] { closed_at.push_back(clock_.now()); };
    RegisteredBuffer memory{200000};
    std::uint64_t key = 0;
    // One after another stops, 200 ms apart, with a message in flight that it never receives.
    std::vector<TimePoint> stopped_at;
    for (std::uint64_t i = 0; i < guests; ++i) {
        scheduler_.stop(readers_[i + 1]->process);
        stopped_at.push_back(clock_.now());
        static_cast<void>(publisher.publish(Fid{i}, memory.slice(), Cookie{++key}));
        run_for(200ms);
    }
    EXPECT_TRUE(closed_at.empty()) << "none has been silent for a second";
    ASSERT_TRUE(run_until([&] { return !closed_at.empty(); }));
    run_for(10s);
    // Two publications are half of the memory, which is too much; one may stay.
    ASSERT_EQ(publisher_actor_.closed.size(), guests - 1);
    for (std::size_t i = 0; i < guests - 1; ++i) {
        const Closed& closed = publisher_actor_.closed[i];
        EXPECT_EQ(closed.reason, CloseReason::too_slow);
        EXPECT_THAT(closed.detail, testing::HasSubstr("the others need the memory"));
        EXPECT_GE(closed_at[i] - stopped_at[i], 1s - 100ms) << "checked every 100 ms";
    }
    for (std::size_t i = 0; i < guests; ++i) {
        const SubscriberActor& guest = readers_[i + 1]->actor;
        scheduler_.go_on(readers_[i + 1]->process);
        run_for(1s);
        EXPECT_EQ(guest.closed.size(), i < guests - 1 ? 1U : 0U) << i;
    }
    EXPECT_TRUE(honest.actor.closed.empty());
    const std::size_t before = honest.actor.messages;
    for (int number = 0; number < 40; ++number) {
        ASSERT_TRUE(run_until([&] {
            return publisher.publish(Fid{9}, memory.slice(0, 8), Cookie{++key}) == Status::ok;
        }));
        run_for(1ms);
    }
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == before + 40; }));
}

// Its kernel has accepted small messages, so its queue does not block the notification.
TEST_P(Stopped, ATooSlowSubscriberIsNotifiedOfTheReason) {
    PublishSocket publisher{publisher_node_.transport,
                            {.publisher = {.listen = {address_},
                                           .allow_remote_anonymous = true,
                                           .slow_policy = SlowPolicy::disconnect,
                                           .disconnect_after = std::chrono::milliseconds{500}}},
                            publisher_actor_};
    Reader& reader = read({range(1, 1)});
    scheduler_.stop(reader.process);
    RegisteredBuffer memory{100};
    std::uint64_t key = 0;
    ASSERT_TRUE(run_until([&] {
        static_cast<void>(publisher.publish(Fid{1}, memory.slice(), Cookie{++key}));
        run_for(1ms);
        return !publisher_actor_.closed.empty();
    }));
    EXPECT_EQ(publisher_actor_.closed[0].reason, CloseReason::too_slow);
    scheduler_.go_on(reader.process);
    ASSERT_TRUE(run_until([&] { return !reader.actor.closed.empty(); }));
    EXPECT_EQ(reader.actor.closed[0].reason, CloseReason::too_slow);
    EXPECT_THAT(reader.actor.closed[0].detail,
                testing::HasSubstr("this side received nothing for"));
}

std::string name_of(const testing::TestParamInfo<int>& info) {
    return info.param == 0 ? "sim_tcp" : "sim_verbs";
}
INSTANTIATE_TEST_SUITE_P(Simulated, Stopped, testing::Values(0, 1), name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, StoppedOverTcp, testing::Values(0), name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, Sensor, testing::Values(0, 1), name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, Crowd, testing::Values(0, 1), name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BufferedCrowd, testing::Values(0, 1), name_of);

} // namespace
} // namespace netio::pubsub::test::stopped_test
