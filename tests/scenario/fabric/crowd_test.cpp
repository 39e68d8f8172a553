// SPDX-License-Identifier: Apache-2.0

// Many connections in one loop: a flood starves no connection and reorders no events.

#include "tests/scenario/fabric/ends.hpp"

#include <gmock/gmock.h>

namespace netio::test::crowd_test {
namespace {

using testing::SizeIs;

// Two ends that answer each other endlessly, with enough messages in flight that there is always a
// completion to read.
struct Flood {
    Flood(Fabric& fabric, Door& door) : near{*fabric.transport, door.listener->address()} {
        near.at_connected = [this] {
            for (std::size_t i = 0; i < receive_count; ++i)
                near.send();
        };
        near.at_message = [this] { near.send(); };
        door.at_accepted = [](End& end) { end.at_message = [&end] { end.send(); }; };
    }
    End near;
};

std::vector<std::unique_ptr<Flood>> begin_floods(Fabric& fabric, Door& door) {
    std::vector<std::unique_ptr<Flood>> floods;
    for (int i = 0; i < 4; ++i)
        floods.push_back(std::make_unique<Flood>(fabric, door));
    EXPECT_TRUE(fabric.run_until([&] {
        return std::ranges::all_of(floods,
                                   [](const auto& flood) { return flood->near.messages > 1000; });
    }));
    return floods;
}

TEST(Crowd, ADeathIsReportedDuringAFlood) {
    Fabric fabric{{}, {.drain_limit = 4}};
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    auto mortal = std::make_unique<End>(*fabric.transport, door.listener->address());
    ASSERT_TRUE(fabric.run_until([&] { return mortal->connected && door.ends.size() == 1; }));
    End& survivor = *door.ends.front();
    const std::vector<std::unique_ptr<Flood>> floods = begin_floods(fabric, door);
    const std::size_t before = floods.front()->near.messages;
    mortal.reset();
    ASSERT_TRUE(fabric.run_until([&] { return !survivor.closed.empty(); }));
    EXPECT_EQ(survivor.closed.front().reason, CloseReason::lost);
    EXPECT_LE(floods.front()->near.messages - before, 5000U);
}

TEST(Crowd, ANewPeerConnectsDuringAFlood) {
    Fabric fabric{{}, {.drain_limit = 4}};
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    const std::vector<std::unique_ptr<Flood>> floods = begin_floods(fabric, door);
    const std::size_t before = floods.front()->near.messages;
    const End newcomer{*fabric.transport, door.listener->address()};
    ASSERT_TRUE(fabric.run_until([&] { return newcomer.connected; }));
    EXPECT_LE(floods.front()->near.messages - before, 5000U);
}

TEST(Crowd, NoMessageIsDeliveredBeforeOnConnected) {
    Fabric fabric{{}, {.drain_limit = 1}};
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    // The accepting side sends as soon as it may.
    door.at_accepted = [](End& end) { end.at_connected = [&end] { end.send(); }; };
    std::vector<std::unique_ptr<End>> ends;
    for (int i = 0; i < 100; ++i)
        ends.push_back(std::make_unique<End>(*fabric.transport, door.listener->address()));
    ASSERT_TRUE(fabric.run_until([&] {
        return std::ranges::all_of(ends, [](const auto& end) { return end->messages == 1; });
    }));
    EXPECT_TRUE(
        std::ranges::none_of(ends, [](const auto& end) { return end->message_came_first; }));
}

TEST(Crowd, ArrivedMessagesAreDeliveredBeforeTheEnd) {
    Fabric fabric{{}, {.drain_limit = 1}};
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    auto sender = std::make_unique<End>(*fabric.transport, door.listener->address());
    ASSERT_TRUE(fabric.run_until([&] {
        return sender->connected && door.ends.size() == 1 && door.ends.front()->connected;
    }));
    for (std::size_t i = 0; i < receive_count; ++i)
        ASSERT_TRUE(sender->send());
    ASSERT_TRUE(fabric.run_until([&] { return sender->completions == receive_count; }));
    sender.reset();
    End& receiver = *door.ends.front();
    ASSERT_TRUE(fabric.run_until([&] { return !receiver.closed.empty(); }));
    EXPECT_EQ(receiver.messages, receive_count);
}

TEST(Crowd, AClosedConnectionEndsEveryOperationOnce) {
    Fabric fabric{{}, {.drain_limit = 2}};
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    std::vector<std::unique_ptr<Flood>> floods;
    for (int i = 0; i < 3; ++i)
        floods.push_back(std::make_unique<Flood>(fabric, door));
    End end{*fabric.transport, door.listener->address()};
    ASSERT_TRUE(fabric.run_until([&] { return end.connected; }));
    end.connection->close();
    ASSERT_TRUE(fabric.run_until([&] { return !end.closed.empty(); }));
    EXPECT_EQ(end.closed.front().reason, CloseReason::local);
    EXPECT_EQ(end.completions, receive_count);
    fabric.run_for(20ms);
    EXPECT_EQ(end.completions, receive_count);
    EXPECT_THAT(end.closed, SizeIs(1));
}

} // namespace
} // namespace netio::test::crowd_test
