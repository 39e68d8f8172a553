// SPDX-License-Identifier: Apache-2.0

// A subscriber that finds its publisher by a fid, in a directory, over tcp; also for the thread
// sanitizer.

#include "netio/session/client_key.hpp"
#include "tests/scenario/pubsub/announced_publisher.hpp"
#include "tests/scenario/pubsub/front_door.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace netio::front_door_bus_test {
namespace {

using namespace front_door_test;
using pubsub::test::AnnouncedPublisher;

class FrontDoorOnABus : public FrontDoor {
  protected:
    std::shared_ptr<const ClientKey> key() {
        return std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(7), .protection = {}});
    }

    netio::test::TemporaryFolder folder;
    netio::test::KeyFiles files;
    Bus bus{folder.path().string()};
};

// Returns the message together with its fid.
std::string take_one(Subscriber& subscriber) {
    const auto message = subscriber.receive(deadline);
    if (!message) return "nothing";
    return std::string{message->text()} + " " + to_string(message->fid());
}

TEST_F(FrontDoorOnABus, AsksOnlyThePublisherThatAnnouncesTheFid) {
    const AnnouncedPublisher::Place place{.bus = bus.where, .key_file = {}};
    Subscriber subscriber{bus, quick()};
    const AnnouncedPublisher one{place, "one", {0, 9}};
    const AnnouncedPublisher other{place, "other", {10, 19}};
    subscribe(subscriber, FidSet{{12, 13}});
    EXPECT_EQ(take_one(subscriber), "other 0xc");
    // One fid is requested before its publisher starts; a range belongs to two publishers.
    subscriber.subscribe(FidSet{{9, 10}, {20, 20}});
    const AnnouncedPublisher late{place, "late", {20, 29}};
    ASSERT_TRUE(subscriber.wait_until_subscribed(deadline));
    std::vector<std::string> came{take_one(subscriber), take_one(subscriber), take_one(subscriber)};
    std::ranges::sort(came);
    EXPECT_EQ(came, (std::vector<std::string>{"late 0x14", "one 0x9", "other 0xa"}));
}

// Neither knows the other's address.
TEST_F(FrontDoorOnABus, APublisherIsFoundByItsPresentAndLaterFids) {
    Publisher publisher{any_port};
    pubsub::Announcement said{.name = "by-a-user", .fids = {{.fids = {0, 9}, .meaning = "hits"}}};
    publisher.announce(bus, said);
    Subscriber subscriber{bus, quick()};
    subscribe(subscriber, FidSet{{5, 5}});
    publisher.publish_value(5, std::uint64_t{17});
    EXPECT_EQ(subscriber.receive(deadline)->value<std::uint64_t>(), 17U);
    subscriber.subscribe(30);
    said.fids.push_back({.fids = {30, 39}, .meaning = {}});
    publisher.announce(bus, said);
    EXPECT_TRUE(subscriber.wait_until_subscribed(deadline));
    publisher.close();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "it has withdrawn";
}

// No announcement changes when a key is admitted, and the user does not subscribe again.
TEST_F(FrontDoorOnABus, WithAKeyThatIsNotAdmittedYetIsServedWhenItIs) {
    files.permit(7, "services=pubsub fids=0-63:block");
    files.revoke(7);
    Subscriber::Options options;
    options.socket.retry_interval = options.socket.retry_limit = 1ms;
    options.key = key();
    const AnnouncedPublisher one{{.bus = bus.where, .key_file = files.site()}, "one", {0, 9}};
    Subscriber subscriber{bus, options};
    subscriber.subscribe(3);
    lines.wait_for("does not admit");
    EXPECT_FALSE(subscriber.wait_until_subscribed(20ms));
    files.permit(7, "services=pubsub fids=0-63:block");
    EXPECT_TRUE(subscriber.wait_until_subscribed(deadline));
    EXPECT_EQ(take_one(subscriber), "one 0x3");
}

TEST_F(FrontDoorOnABus, WithAKeyUsesTheAuthenticOneOfTwoAnnouncedPublishers) {
    files.permit(7, "services=pubsub fids=0-63:block");
    Subscriber::Options options = quick();
    options.key = key();
    const AnnouncedPublisher impostor{{.bus = bus.where, .key_file = {}}, "a.false.word", {0, 9}};
    const AnnouncedPublisher real{{.bus = bus.where, .key_file = files.site()}, "real", {0, 9}};
    Subscriber subscriber{bus, options};
    subscribe(subscriber, FidSet{{3, 3}});
    EXPECT_EQ(take_one(subscriber), "real 0x3");
}

} // namespace
} // namespace netio::front_door_bus_test
