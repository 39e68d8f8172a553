// SPDX-License-Identifier: Apache-2.0
#include "netio/session/receive_window.hpp"

#include "tests/unit/netio/session/scripted_connection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace netio::test::receive_window_test {
namespace {

using namespace std::chrono_literals;

struct Nobody final : Connection::Handler {
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion&) override {}
    void on_closed(const Closed&) override {}
};

class ReceiveWindowTest : public testing::Test {
  protected:
    // The peer waits twice for credits, over a path with a long delay.
    void wait_twice() {
        for (int wait = 0; wait < 2; ++wait) {
            for (; arrived_ + 1 < granted_; ++arrived_)
                window.autotuner().on_arrived(false, rested_, TimePoint{});
            granted_ += 4;
            window.autotuner().on_granted(granted_, rested_);
            rested_ += 20ms;
            window.autotuner().on_arrived(true, rested_, TimePoint{});
            ++arrived_;
        }
    }

    ByteBudget budget{std::size_t{1} << 20U};
    Nobody nobody;
    ScriptedConnection connection{nobody};
    ReceiveWindow window{
        1024,
        {.receive_buffer_bytes = 1024, .receive_count = 8, .window_limit = 64 * 1024},
        budget};

  private:
    std::uint64_t granted_ = 8;
    std::uint64_t arrived_ = 0;
    Duration rested_{};
};

TEST_F(ReceiveWindowTest, ANoteOfAWriteIsOfTheServiceAndWaitsForAPausedUser) {
    window.pause();
    window.push({.kind = static_cast<std::uint8_t>(FrameKind::heartbeat)});
    EXPECT_TRUE(window.has_work()) << "frames of the session are not paused";
    window.pop();
    for (const std::uint8_t kind :
         {static_cast<std::uint8_t>(FrameKind::written), first_service_kind}) {
        window.push({.kind = kind});
        EXPECT_FALSE(window.has_work()) << int{kind};
        window.pop();
    }
    EXPECT_EQ(window.frames(), 2U);
}

TEST_F(ReceiveWindowTest, AsksForNoMoreThanItHasUntilThePeerWaits) {
    EXPECT_FALSE(window.is_to_grow());
    EXPECT_EQ(window.take_news(), std::nullopt);
    wait_twice();
    EXPECT_TRUE(window.is_to_grow());
}

TEST_F(ReceiveWindowTest, GrowsByPostedReceivesAndReportsItOnce) {
    connection.takes_more = true;
    wait_twice();
    ASSERT_TRUE(window.is_to_grow());
    EXPECT_EQ(window.grow(connection), 8U);
    EXPECT_FALSE(window.is_to_grow());
    ASSERT_EQ(connection.receives.size(), 8U);
    for (std::uint32_t index = 8; index < 16; ++index)
        EXPECT_EQ(connection.receives[index - 8].second, Cookie{index});
    EXPECT_EQ(window.take_news(), std::optional<std::uint32_t>{16});
    EXPECT_EQ(window.take_news(), std::nullopt);
}

TEST_F(ReceiveWindowTest, AfterARefusalItRetriesAfterTwoMoreWaits) {
    wait_twice();
    ASSERT_TRUE(window.is_to_grow());
    EXPECT_EQ(window.grow(connection), 0U);
    EXPECT_FALSE(window.is_to_grow()) << "not in every turn";
    EXPECT_EQ(window.receive_count(), 8U);
    EXPECT_EQ(window.take_news(), std::nullopt);
    EXPECT_EQ(budget.used(), 0U);
    wait_twice();
    EXPECT_TRUE(window.is_to_grow());
}

TEST_F(ReceiveWindowTest, GrantsNothingOnABrokenConnection) {
    connection.takes_more = true;
    connection.answer = Status::closed;
    wait_twice();
    ASSERT_TRUE(window.is_to_grow());
    EXPECT_EQ(window.grow(connection), 0U);
}

class Device final : public MemoryDomain {
  public:
    std::unique_ptr<Registration> register_memory(std::span<std::byte>, Access) override {
        if (refuses) throw std::runtime_error{"no more may be locked"};
        struct Nothing final : Registration {
            void* descriptor() const noexcept override { return nullptr; }
            std::uint64_t key() const noexcept override { return 0; }
            std::uint64_t base() const noexcept override { return 0; }
        };
        return std::make_unique<Nothing>();
    }
    bool refuses = false;
};

TEST(ReceiveBuffers, EachReceiveHasItsOwnPlace) {
    Device device;
    ByteBudget budget{1 << 20};
    ReceiveBuffers memory{{.receive_bytes = 300, .count = 4}, budget};
    ASSERT_TRUE(memory.add(4, device));
    ASSERT_TRUE(memory.add(3, device));
    EXPECT_EQ(memory.count(), 11U);
    std::set<std::byte*> places;
    for (std::uint32_t i = 0; i < memory.count(); ++i) {
        const Slice slice = memory.slice(i);
        EXPECT_EQ(slice.size, 300U);
        EXPECT_TRUE(slice.buffer->contains(slice.data, slice.size));
        for (std::byte* place : places)
            EXPECT_GE(std::max(place, slice.data) - std::min(place, slice.data), 300);
        places.insert(slice.data);
    }
}

TEST(ReceiveBuffers, AddedMemoryIsTakenFromTheBudgetAndReturned) {
    Device device;
    ByteBudget budget{10 * 300};
    {
        ReceiveBuffers one{{.receive_bytes = 300, .count = 4}, budget};
        ReceiveBuffers other{{.receive_bytes = 300, .count = 4}, budget};
        EXPECT_EQ(budget.used(), 0U) << "the initial window is not counted";
        EXPECT_TRUE(one.add(8, device));
        EXPECT_FALSE(other.add(3, device));
        EXPECT_TRUE(other.add(2, device));
        EXPECT_EQ(budget.used(), 3000U);
        EXPECT_EQ(other.count(), 6U);
    }
    EXPECT_EQ(budget.used(), 0U);
}

TEST(ReceiveBuffers, WhatCannotBeRegisteredIsNotAdded) {
    Device device;
    device.refuses = true;
    ByteBudget budget{1 << 20};
    ReceiveBuffers memory{{.receive_bytes = 300, .count = 4}, budget};
    EXPECT_FALSE(memory.add(4, device));
    EXPECT_EQ(memory.count(), 4U);
    EXPECT_EQ(budget.used(), 0U);
}

TEST(ReceiveBuffers, TheLastPieceGoesWhenNoneOfItsReceivesIsUsed) {
    Device device;
    ByteBudget budget{1 << 20};
    ReceiveBuffers memory{{.receive_bytes = 300, .count = 4}, budget};
    memory.begin_to_drop();
    EXPECT_FALSE(memory.is_dropping()) << "the initial window stays";
    ASSERT_TRUE(memory.add(4, device));
    ASSERT_TRUE(memory.add(2, device));
    EXPECT_FALSE(memory.is_dropped(9));
    memory.begin_to_drop();
    EXPECT_FALSE(memory.is_dropped(7));
    EXPECT_TRUE(memory.is_dropped(8));
    EXPECT_FALSE(memory.drop(8));
    EXPECT_EQ(memory.count(), 10U);
    EXPECT_TRUE(memory.drop(9));
    EXPECT_EQ(memory.count(), 8U);
    EXPECT_FALSE(memory.is_dropping());
    EXPECT_EQ(budget.used(), 4U * 300U);
}

TEST(ReceiveBuffers, ASpareTakesThePlaceOfALentBufferUntilItIsBack) {
    Device device;
    ByteBudget budget{0};
    ReceiveBuffers memory{{.receive_bytes = 300, .count = 4}, budget};
    const std::byte* const own = memory.slice(1).data;
    KeepPool::Buffer lent = memory.lend(1);
    EXPECT_EQ(lent.home, 1U);
    EXPECT_TRUE(lent.memory->contains(own, 300));
    ASSERT_TRUE(memory.supply(1, device, 2 * 300 + 299));
    const std::byte* const spare = memory.slice(1).data;
    EXPECT_FALSE(lent.memory->contains(spare, 300));
    EXPECT_TRUE(memory.supply(1, device, 2 * 300 + 299));
    EXPECT_EQ(memory.slice(1).data, spare) << "it has a buffer already";
    // The spare is lent, too: another one takes its place.
    KeepPool::Buffer also_lent = memory.lend(1);
    EXPECT_EQ(also_lent.home, std::nullopt);
    ASSERT_TRUE(memory.supply(1, device, 2 * 300 + 299));
    EXPECT_NE(memory.slice(1).data, spare);
    // All spares are in use.
    KeepPool::Buffer third = memory.lend(1);
    EXPECT_FALSE(memory.supply(1, device, 2 * 300 + 299));
    memory.take_back(std::move(also_lent));
    ASSERT_TRUE(memory.supply(1, device, 2 * 300 + 299));
    EXPECT_EQ(memory.slice(1).data, spare);
    memory.take_back(std::move(lent));
    EXPECT_EQ(memory.slice(1).data, spare) << "it is posted";
    ASSERT_TRUE(memory.supply(1, device, 2 * 300 + 299));
    EXPECT_EQ(memory.slice(1).data, own);
    memory.take_back(std::move(third));
}

TEST(ReceiveBuffers, ALentBufferOfARemovedPieceIsNotUsedAgain) {
    Device device;
    ByteBudget budget{1 << 20};
    ReceiveBuffers memory{{.receive_bytes = 300, .count = 4}, budget};
    ASSERT_TRUE(memory.add(1, device));
    KeepPool::Buffer lent = memory.lend(4);
    ASSERT_TRUE(memory.supply(4, device, 300));
    const std::byte* const spare = memory.slice(4).data;
    memory.begin_to_drop();
    EXPECT_TRUE(memory.drop(4));
    EXPECT_EQ(budget.used(), 0U);
    // The spare is free again, and the new piece has a buffer of its own.
    ASSERT_TRUE(memory.add(1, device));
    const std::byte* const own = memory.slice(4).data;
    EXPECT_FALSE(lent.memory->contains(own, 300));
    memory.take_back(std::move(lent));
    EXPECT_EQ(memory.slice(4).data, own);
    const KeepPool::Buffer first = memory.lend(0);
    ASSERT_TRUE(memory.supply(0, device, 300));
    EXPECT_EQ(memory.slice(0).data, spare);
}

TEST(ReceiveBuffers, OfTheUsersMemoryAreReplacedFromItAndNeverFromTheLibrary) {
    Device device;
    ByteBudget budget{0};
    std::vector<std::byte> users(6 * 320);
    const auto memory = std::make_shared<ReceiveMemory>(users);
    {
        ReceiveBuffers buffers{{.receive_bytes = 300, .count = 4}, budget, memory};
        std::set<std::byte*> places;
        for (std::uint32_t i = 0; i < 4; ++i)
            places.insert(buffers.slice(i).data);
        EXPECT_EQ(places.size(), 4U);
        EXPECT_EQ(memory->free_bytes(), 2U * 320U);
        KeepPool::Buffer lent = buffers.lend(1);
        ASSERT_TRUE(buffers.supply(1, device, 0)) << "the memory is the limit";
        EXPECT_FALSE(places.contains(buffers.slice(1).data));
        EXPECT_EQ(buffers.slice(1).buffer, &memory->buffer());
        KeepPool::Buffer also_lent = buffers.lend(1);
        ASSERT_TRUE(buffers.supply(1, device, 0));
        KeepPool::Buffer third = buffers.lend(2);
        int woken = 0;
        EXPECT_FALSE(buffers.supply(2, device, ReceiveBuffers::no_limit - 1));
        buffers.wake_on_return([&] { ++woken; });
        const std::byte* const place = lent.memory->data() + lent.offset;
        lent = {};
        EXPECT_EQ(woken, 1);
        ASSERT_TRUE(buffers.supply(2, device, 0));
        EXPECT_EQ(buffers.slice(2).data, place);
        // A connection that ends must receive, whatever is kept.
        KeepPool::Buffer fourth = buffers.lend(3);
        ASSERT_TRUE(buffers.supply(3, device, ReceiveBuffers::no_limit));
        EXPECT_NE(buffers.slice(3).buffer, &memory->buffer());
        buffers.wake_on_return([&] { ++woken; });
    }
    EXPECT_EQ(memory->free_bytes(), memory->size());
    EXPECT_THROW((ReceiveBuffers{{.receive_bytes = 300, .count = 7}, budget, memory}), FabricError);
    EXPECT_EQ(memory->free_bytes(), memory->size());
}

// Zeros are read where the system has taken memory back.
TEST(ReceiveBuffers, WhatIsNotLentGoesBackToTheSystemAtTheEnd) {
    constexpr std::size_t size = 8192;
    Device device;
    ByteBudget budget{1 << 20};
    std::vector<KeepPool::Buffer> lent;
    {
        ReceiveBuffers buffers{{.receive_bytes = size, .count = 4}, budget};
        ASSERT_TRUE(buffers.add(2, device));
        for (std::uint32_t i = 0; i < 6; ++i)
            std::ranges::fill(std::span{buffers.slice(i).data, size}, std::byte{7});
        lent.push_back(buffers.lend(1));
        lent.push_back(buffers.lend(3));
        lent.push_back(buffers.lend(5));
    }
    const auto value = [&](std::size_t which, std::size_t index) {
        return std::to_integer<int>(lent[which].memory->data()[index * size + size / 2]);
    };
    EXPECT_EQ(value(0, 0), 0);
    EXPECT_EQ(value(0, 1), 7);
    EXPECT_EQ(value(0, 2), 0);
    EXPECT_EQ(value(0, 3), 7);
    EXPECT_EQ(value(2, 0), 0);
    EXPECT_EQ(value(2, 1), 7);
}

TEST(ReceiveBuffers, WithoutASpareALentBufferIsMissingUntilItIsBack) {
    Device device;
    ByteBudget budget{0};
    ReceiveBuffers memory{{.receive_bytes = 300, .count = 4}, budget};
    KeepPool::Buffer lent = memory.lend(0);
    EXPECT_FALSE(memory.supply(0, device, 299));
    memory.take_back(std::move(lent));
    EXPECT_TRUE(memory.supply(0, device, 299));
    ReceiveBuffers other{{.receive_bytes = 300, .count = 4}, budget};
    device.refuses = true;
    lent = other.lend(0);
    EXPECT_FALSE(other.supply(0, device, 300)) << "a spare that cannot be registered";
}

// A side whose peer always has data: the peer waits for a grant, and the next frame arrives a round
// trip after the grant.
struct WaitingPeer {
    WaitingPeer(std::uint32_t least, std::uint32_t most) : pace{least, most}, granted{least} {}

    void arrive(bool waited) { pace.on_arrived(waited, rested, TimePoint{} + now); }
    // All granted frames but the last one, which a service may not use, arrive. Then four are
    // granted, and the next frame arrives after `trip`, of which this side has slept `idle`.
    void round(Duration trip, Duration idle, bool waits = true) {
        while (arrived + 1 < granted) {
            arrive(false);
            ++arrived;
        }
        granted += 4;
        pace.on_granted(granted, rested);
        now += trip;
        rested += idle;
        arrive(waits);
        ++arrived;
    }
    void round(Duration trip) { round(trip, trip); }
    void change() {
        granted += pace.wanted() - count;
        count = pace.wanted();
        pace.on_changed(count);
        pace.on_granted(granted, rested);
    }

    ReceiveWindowAutotuner pace;
    std::uint64_t granted;
    std::uint32_t count = static_cast<std::uint32_t>(granted);
    std::uint64_t arrived = 0;
    Duration now{};
    Duration rested{};
};

TEST(ReceiveWindowAutotuner, BeginsWithWhatThereIs) {
    EXPECT_EQ(ReceiveWindowAutotuner(8, 64).wanted(), 8U);
    EXPECT_EQ(ReceiveWindowAutotuner(8, 4).wanted(), 8U);
}

TEST(ReceiveWindowAutotuner, TwoLongWaitsDoubleIt) {
    WaitingPeer side{8, 64};
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 8U) << "a single wait may be caused by the machine";
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 16U);
}

TEST(ReceiveWindowAutotuner, TwiceAsManyIsNotOneMoreBecauseTheLimitIs) {
    WaitingPeer side{8, 17};
    side.round(20ms);
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 16U);
}

TEST(ReceiveWindowAutotuner, GrowsNoFurtherThanItsLimit) {
    for (const std::uint32_t most : {8U, 9U, 15U, 16U, 17U, 63U, 64U}) {
        WaitingPeer side{8, most};
        for (int i = 0; i < 100; ++i) {
            side.round(20ms);
            ASSERT_LE(side.pace.wanted(), most);
            if (side.pace.wanted() != side.count) side.change();
        }
        EXPECT_EQ(side.count, most);
    }
}

TEST(ReceiveWindowAutotuner, AMillisecondIsShort) {
    WaitingPeer side{8, 64};
    for (int i = 0; i < 100; ++i)
        side.round(ReceiveWindowAutotuner::short_trip);
    EXPECT_EQ(side.pace.wanted(), 8U);
    side.round(ReceiveWindowAutotuner::short_trip + 1ns);
    side.round(ReceiveWindowAutotuner::short_trip + 1ns);
    EXPECT_EQ(side.pace.wanted(), 16U);
}

TEST(ReceiveWindowAutotuner, AShortWaitBetweenTwoLongOnesResetsTheCount) {
    WaitingPeer side{8, 64};
    for (int i = 0; i < 100; ++i) {
        side.round(20ms);
        side.round(100us);
    }
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(ReceiveWindowAutotuner, APeerThatDidNotWaitOnlyHadNoData) {
    WaitingPeer side{8, 64};
    for (int i = 0; i < 100; ++i)
        side.round(20ms, 20ms, false);
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(ReceiveWindowAutotuner, WhileThisSideHasSomethingToDoTheWayIsNotWhatThePeerWaitsFor) {
    WaitingPeer side{8, 64};
    for (int i = 0; i < 100; ++i)
        side.round(20ms, 1ms);
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(ReceiveWindowAutotuner, AWaitForALaterCreditIsNotOneForThis) {
    ReceiveWindowAutotuner pace{8, 64};
    for (int i = 0; i < 2; ++i) {
        pace.on_granted(12 + 8 * static_cast<std::uint64_t>(i), 0ms);
        const int begin = i == 0 ? 0 : 10;
        for (int number = begin; number < 9 + 8 * i; ++number)
            pace.on_arrived(false, 20ms, TimePoint{});
        pace.on_arrived(true, 20ms, TimePoint{});
    }
    EXPECT_EQ(pace.wanted(), 8U);
}

class AlwaysWaiting {
  public:
    explicit AlwaysWaiting(std::uint32_t seed) : state_{seed} {}

    // The smallest and the largest wanted window.
    std::pair<std::uint32_t, std::uint32_t> extremes() {
        std::pair<std::uint32_t, std::uint32_t> found{least, least};
        for (int i = 0; i < 2000; ++i) {
            const std::uint32_t wanted = step();
            found = {std::min(found.first, wanted), std::max(found.second, wanted)};
        }
        return found;
    }

    static constexpr std::uint32_t least = 8;
    std::uint32_t most() const noexcept { return most_; }

  private:
    std::uint32_t next(std::uint32_t below) {
        state_ = state_ * 1'664'525U + 1'013'904'223U;
        return (state_ >> 16U) % below;
    }
    std::uint32_t step() {
        time_ += std::chrono::microseconds{next(30'000)};
        if (next(3) == 0) pace_.on_granted(granted_ += next(5), time_);
        pace_.on_arrived(true, time_, TimePoint{} + time_);
        const std::uint32_t wanted = pace_.wanted();
        if (wanted != count_ && next(4) == 0) {
            if (wanted > count_) granted_ += wanted - count_;
            pace_.on_changed(count_ = wanted);
        }
        return wanted;
    }

    std::uint32_t state_; // state of the random generator
    std::uint32_t most_ = least + next(100);
    ReceiveWindowAutotuner pace_{least, most_};
    std::uint64_t granted_ = least;
    Duration time_{};
    std::uint32_t count_ = least;
};

// Whatever the peer reports at any time, the limit of this side holds.
TEST(ReceiveWindowAutotuner, StopsAtTheLimitForAPeerThatAlwaysReportsAWait) {
    std::size_t reached = 0;
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        const auto peer = std::make_unique<AlwaysWaiting>(seed);
        const auto [fewest, most] = peer->extremes();
        ASSERT_EQ(fewest, AlwaysWaiting::least);
        ASSERT_LE(most, peer->most());
        if (most == peer->most()) ++reached;
    }
    EXPECT_GT(reached, 0U);
}

TEST(ReceiveWindowAutotuner, WhatCannotBeIsAskedForAgainAfterTwoMoreWaits) {
    WaitingPeer side{8, 64};
    side.round(20ms);
    side.round(20ms);
    ASSERT_EQ(side.pace.wanted(), 16U);
    side.pace.on_changed(8);
    EXPECT_EQ(side.pace.wanted(), 8U);
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 8U);
    side.round(20ms);
    EXPECT_EQ(side.pace.wanted(), 16U);
}

struct Grown : WaitingPeer {
    explicit Grown(std::uint32_t to) : WaitingPeer{8, to} {
        while (count < to) {
            round(20ms);
            if (pace.wanted() != count) change();
        }
        now += 3 * ReceiveWindowAutotuner::period; // ends all earlier periods
        arrive(false);
    }
    // `in_a_period` messages in one period, and one after it.
    void messages(std::uint64_t in_a_period) {
        const Duration each =
            ReceiveWindowAutotuner::period / static_cast<std::int64_t>(in_a_period);
        for (std::uint64_t i = 0; i < in_a_period; ++i) {
            now += each;
            arrive(false);
        }
        now += each;
        arrive(false);
    }
};

TEST(ReceiveWindowAutotuner, AWindowThatIsHardlyUsedShrinksByHalfEachPeriodToWhereItBegan) {
    Grown side{64};
    for (const std::uint32_t expected : {32U, 16U, 8U, 8U}) {
        side.messages(2);
        EXPECT_EQ(side.pace.wanted(), expected);
        side.change();
    }
}

TEST(ReceiveWindowAutotuner, HalfOfItMayBeLessThanWhatItBeganWith) {
    Grown side{10};
    side.messages(2);
    EXPECT_EQ(side.pace.wanted(), 8U);
}

TEST(ReceiveWindowAutotuner, OneThatIsUsedToAQuarterStays) {
    // A quarter of 64 in 20 ms, for 10 s.
    Grown used{64};
    used.messages(16 * 500 + 100);
    EXPECT_EQ(used.pace.wanted(), 64U);
    Grown unused{64};
    unused.messages(16 * 500 - 100);
    EXPECT_EQ(unused.pace.wanted(), 32U);
}

TEST(ReceiveWindowAutotuner, AWindowForWhichThePeerHasWaitedInThePeriodKeepsItsSize) {
    Grown side{64};
    side.arrive(true);
    side.messages(2);
    EXPECT_EQ(side.pace.wanted(), 64U);
    side.messages(2);
    EXPECT_EQ(side.pace.wanted(), 32U) << "and shrinks in the next";
}

// The waits that count as answers to a grant: those for a granted credit of the current window.

// A window of 8 that may grow to 64, and a peer that has used all credits but the last.
class WindowQuestions : public testing::Test {
  protected:
    WindowQuestions() { arrive_before(8); }

    void arrive(bool waited) { pace->on_arrived(waited, rested, TimePoint{} + rested), ++arrived; }
    // All granted frames but the last one.
    void arrive_before(std::uint64_t granted) {
        while (arrived + 1 < granted)
            arrive(false);
    }
    void grant(std::uint64_t in_all) { pace->on_granted(in_all, rested); }
    // The next frame arrives 20 ms later, because the peer had no credit.
    void come_late() {
        rested += 20ms;
        arrive(true);
    }

    std::unique_ptr<ReceiveWindowAutotuner> pace = std::make_unique<ReceiveWindowAutotuner>(8, 64);
    std::uint64_t arrived = 0;
    Duration rested{};
};

TEST_F(WindowQuestions, TwoGrantsThatAreAnsweredLateMakeItGrow) {
    grant(12);
    come_late();
    arrive_before(12);
    EXPECT_EQ(pace->wanted(), 8U);
    grant(16);
    come_late();
    EXPECT_EQ(pace->wanted(), 16U);
}

TEST_F(WindowQuestions, ANumberThatWasGrantedBeforeIsNoGrant) {
    grant(8); // the initial number
    come_late();
    grant(12);
    come_late();
    EXPECT_EQ(pace->wanted(), 8U);
}

TEST_F(WindowQuestions, AChangedWindowRestartsTheCount) {
    grant(12);
    come_late();
    pace->on_changed(8);
    arrive_before(12);
    grant(16);
    come_late();
    EXPECT_EQ(pace->wanted(), 8U) << "the wait before was in another window";
    arrive_before(16);
    grant(20);
    come_late();
    EXPECT_EQ(pace->wanted(), 16U);
}

TEST_F(WindowQuestions, AGrantBeforeAChangeIsIgnoredAfterIt) {
    grant(12);
    pace->on_changed(8);
    come_late();
    arrive_before(12);
    grant(16);
    come_late();
    EXPECT_EQ(pace->wanted(), 8U);
}

// Hardly used for more than a period.
TEST_F(WindowQuestions, AnOddWindowShrinksToTheLargerHalf) {
    pace->on_changed(17);
    arrive(false);
    for (int each = 0; each < 2; ++each) {
        rested += ReceiveWindowAutotuner::period;
        arrive(false);
    }
    EXPECT_EQ(pace->wanted(), 9U);
}

} // namespace
} // namespace netio::test::receive_window_test
