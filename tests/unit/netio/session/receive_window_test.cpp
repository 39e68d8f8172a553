// SPDX-License-Identifier: Apache-2.0
#include "netio/session/receive_window.hpp"

#include "tests/unit/netio/session/scripted_connection.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace netio::test {
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
    // The peer waits for two credits in turn, over a way that is long.
    void wait_twice() {
        for (int wait = 0; wait < 2; ++wait) {
            for (; arrived_ + 1 < granted_; ++arrived_)
                window.pace().on_arrived(false, rested_, TimePoint{});
            granted_ += 4;
            window.pace().on_granted(granted_, rested_);
            rested_ += 20ms;
            window.pace().on_arrived(true, rested_, TimePoint{});
            ++arrived_;
        }
    }

    ByteBudget budget{std::size_t{1} << 20U};
    Nobody nobody;
    ScriptedConnection connection{nobody};
    ReceiveWindow window{
        1024, {.receive_bytes = 1024, .receive_count = 8, .window_limit = 64 * 1024}, budget};

  private:
    std::uint64_t granted_ = 8;
    std::uint64_t arrived_ = 0;
    Duration rested_{};
};

TEST_F(ReceiveWindowTest, IsFullWhenThePeerHasHardlyACreditLeft) {
    for (std::size_t waiting = 0; waiting <= 8; ++waiting) {
        EXPECT_EQ(window.is_full(), waiting >= 6) << waiting;
        if (waiting < 8) window.push({.kind = first_service_kind});
    }
}

TEST_F(ReceiveWindowTest, ANoteOfAWriteIsOfTheServiceAndWaitsForAPausedUser) {
    window.pause();
    window.push({.kind = static_cast<std::uint8_t>(FrameKind::heartbeat)});
    EXPECT_TRUE(window.has_work()) << "the session's own does not wait";
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

TEST_F(ReceiveWindowTest, GrowsByReceivesThatArePostedAndTellsOfItOnce) {
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

TEST_F(ReceiveWindowTest, WhereTheConnectionTakesNoMoreItAsksAgainBehindTwoMoreWaits) {
    wait_twice();
    ASSERT_TRUE(window.is_to_grow());
    EXPECT_EQ(window.grow(connection), 0U);
    EXPECT_FALSE(window.is_to_grow()) << "not at each turn";
    EXPECT_EQ(window.receive_count(), 8U);
    EXPECT_EQ(window.take_news(), std::nullopt);
    EXPECT_EQ(budget.used(), 0U);
    wait_twice();
    EXPECT_TRUE(window.is_to_grow());
}

TEST_F(ReceiveWindowTest, OfAConnectionThatBreaksMeanwhileItGrantsNothing) {
    connection.takes_more = true;
    connection.answer = Status::closed;
    wait_twice();
    ASSERT_TRUE(window.is_to_grow());
    EXPECT_EQ(window.grow(connection), 0U);
}

} // namespace
} // namespace netio::test
