// SPDX-License-Identifier: Apache-2.0

// A client that finds its publisher by a fid, in a directory, over tcp; also for the thread
// sanitizer.

#include "netio/session/client_key.hpp"
#include "tests/scenario/pubsub/announced_publisher.hpp"
#include "tests/scenario/pubsub/clients.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::test::client_bus_test {
namespace {

// Returns the message together with its fid.
std::string take_one(Client& client) {
    std::vector<Message> messages;
    if (client.poll(messages, 1, deadline) == 0) return "nothing";
    const auto& bytes = messages.front().bytes;
    return std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()} + " " +
           to_string(messages.front().fid);
}

TEST(ClientOnABus, AsksOnlyThePublisherThatAnnouncesTheFid) {
    const netio::test::TemporaryFolder folder;
    const AnnouncedPublisher::Place place{.bus = folder.path().string(), .key_file = {}};
    Client::Options options;
    options.bus = place.bus;
    Client client{std::move(options)};
    const AnnouncedPublisher one{place, "one", range(0, 9)};
    const AnnouncedPublisher other{place, "other", range(10, 19)};
    ASSERT_EQ(client.subscribe({range(12, 13)}, {}, deadline), Answer::accepted);
    EXPECT_EQ(take_one(client), "other 0xc");
    // One fid is requested before its publisher starts; a range belongs to two publishers.
    std::future<Answer> later = client.subscribe({range(9, 10), range(20, 20)});
    const AnnouncedPublisher late{place, "late", range(20, 29)};
    ASSERT_EQ(later.wait_for(deadline), std::future_status::ready);
    EXPECT_EQ(later.get(), Answer::accepted);
    std::vector<std::string> came{take_one(client), take_one(client), take_one(client)};
    std::ranges::sort(came);
    EXPECT_EQ(came, (std::vector<std::string>{"late 0x14", "one 0x9", "other 0xa"}));
}

// Neither knows the other's address.
TEST(ClientOnABus, ThatPublishesIsFoundByItsPresentAndLaterFids) {
    const netio::test::TemporaryFolder folder;
    Client::Options options = publishing();
    options.bus = folder.path().string();
    Client publisher{options};
    Announcement said{.name = "by-a-client", .fids = {{.fids = range(0, 9), .meaning = "hits"}}};
    publisher.announce(said);
    options.publish.reset();
    Client client{options};
    ASSERT_EQ(client.subscribe({range(5, 5)}, {}, deadline), Answer::accepted);
    publish(publisher, Fid{5}, 17);
    const std::vector<Message> messages = take(client, 1);
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_EQ(number_of(messages[0].bytes), 17U);
    std::future<Answer> later = client.subscribe({range(30, 30)});
    said.fids.push_back({.fids = range(30, 39), .meaning = {}});
    publisher.announce(said);
    ASSERT_EQ(later.wait_for(deadline), std::future_status::ready);
    EXPECT_EQ(later.get(), Answer::accepted);
    publisher.close();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "it has withdrawn";
}

TEST(ClientOnABus, WhatCannotBeAnnouncedIsRefusedInTheCall) {
    const netio::test::TemporaryFolder folder;
    const Announcement said{.name = "one", .fids = {{.fids = range(0, 9), .meaning = {}}}};
    Client alone{publishing()};
    EXPECT_THROW(alone.announce(said), std::invalid_argument);
    Client::Options options = publishing();
    options.bus = folder.path().string();
    Client publisher{options};
    EXPECT_THROW(publisher.announce({.name = "no name"}), AnnouncementError);
    options.publish.reset();
    Client silent{options};
    EXPECT_THROW(silent.announce(said), std::invalid_argument);
}

// No announcement changes when a key is admitted, and the user does not subscribe again.
TEST(ClientOnABus, WithAKeyThatIsNotAdmittedYetIsServedWhenItIs) {
    const netio::test::TemporaryFolder folder;
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=0-63:block");
    files.revoke(7);
    const std::string bus = folder.path().string();
    Client::Options options;
    options.bus = bus;
    options.socket.retry_interval = options.socket.retry_limit = 1ms;
    options.socket.key =
        std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7), .protection = {}});
    std::atomic<int> refusals{0};
    options.on_event = [&](const std::string& event) {
        if (event.find("does not admit") != std::string::npos) ++refusals;
    };
    const AnnouncedPublisher one{{.bus = bus, .key_file = files.site()}, "one", range(0, 9)};
    Client client{std::move(options)};
    std::future<Answer> answer = client.subscribe({range(3, 3)});
    wait_until([&] { return refusals >= 2; });
    EXPECT_NE(answer.wait_for(0s), std::future_status::ready);
    files.permit(7, "services=pubsub fids=0-63:block");
    ASSERT_EQ(answer.wait_for(deadline), std::future_status::ready);
    EXPECT_EQ(answer.get(), Answer::accepted);
    EXPECT_EQ(take_one(client), "one 0x3");
}

TEST(ClientOnABus, WithAKeyUsesTheAuthenticOneOfTwoAnnouncedPublishers) {
    const netio::test::TemporaryFolder folder;
    netio::test::KeyFiles files;
    files.permit(7, "services=pubsub fids=0-63:block");
    const std::string bus = folder.path().string();
    Client::Options options;
    options.bus = bus;
    options.socket.key =
        std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7), .protection = {}});
    const AnnouncedPublisher impostor{{.bus = bus, .key_file = {}}, "a.false.word", range(0, 9)};
    const AnnouncedPublisher real{{.bus = bus, .key_file = files.site()}, "real", range(0, 9)};
    Client client{std::move(options)};
    ASSERT_EQ(client.subscribe({range(3, 3)}, {}, deadline), Answer::accepted);
    EXPECT_EQ(take_one(client), "real 0x3");
}

} // namespace
} // namespace netio::pubsub::test::client_bus_test
