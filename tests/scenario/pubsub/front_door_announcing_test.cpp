// SPDX-License-Identifier: Apache-2.0

// What a publisher announces about itself: its addresses, its name, and the duration of the entry.
// The registry is a special kind, a directory that counts its opens; also for the thread sanitizer.

#include "pubsub/discovery/bus.hpp"
#include "pubsub/discovery/directory_registry.hpp"
#include "tests/scenario/pubsub/front_door.hpp"
#include "tests/support/temporary_folder.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>

namespace netio::front_door_announcing_test {
namespace {

using namespace front_door_test;
using namespace netio::pubsub;
using netio::Publisher;
using netio::Subscriber;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::string_view scheme = "counted://";
std::atomic<int> opened{0};       // boards
std::atomic<bool> refuses{false}; // to open another one

void add_counted_kind() {
    static const bool once = [] {
        add_bus_kind(
            {.is_one = [](std::string_view where) noexcept { return where.starts_with(scheme); },
             .open = [](std::string_view where,
                        const BusOptions& options) -> std::unique_ptr<Registry> {
                 if (refuses) throw std::runtime_error{"the board is closed"};
                 ++opened;
                 return std::make_unique<DirectoryRegistry>(
                     std::string{where.substr(scheme.size())}, options.poll);
             },
             .spelling = "counted://FOLDER"});
        return true;
    }();
    static_cast<void>(once);
}

class AnnouncingPublisher : public FrontDoor {
  protected:
    AnnouncingPublisher() { add_counted_kind(); }
    ~AnnouncingPublisher() override { refuses = false; }

    // The announcement under the name, or nullopt if there is none.
    std::optional<Announcement> standing(const std::string& name) const {
        std::ifstream file{folder.path() / (name + ".netio")};
        if (!file) return {};
        return parse_announcement(
            std::string{std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}});
    }
    Announcement wait_for(const std::string& name) const {
        wait_until([&] { return standing(name).has_value(); });
        return *standing(name);
    }
    static Announcement saying(const std::string& name, std::uint64_t last = 9) {
        return {.name = name, .fids = {{.fids = {0, last}, .meaning = "hits"}}};
    }
    bool is_announced_to(const std::string& name, std::uint64_t last) const {
        const auto said = standing(name);
        return said && said->fids.at(0).fids == FidRange{0, last};
    }

    netio::test::TemporaryFolder folder;
    Bus bus{std::string{scheme} + folder.path().string()};
};

TEST_F(AnnouncingPublisher, AnnouncesItsIdentityWhateverTheUserAnnounces) {
    Publisher publisher{any_port};
    Announcement said = saying("one");
    said.instance = 5;
    said.addresses = {"tcp:10.9.9.9:9"};
    said.mode = "unbuffered";
    said.host = "elsewhere";
    said.pid = 1;
    said.parameters = {{"own", "7"}};
    publisher.announce(bus, said);
    const Announcement first = wait_for("one");
    EXPECT_THAT(first.addresses, ElementsAre(to_announced_address(publisher.endpoints().front())));
    EXPECT_EQ(first.fids.at(0).meaning, "hits");
    EXPECT_EQ(first.mode, "buffered");
    EXPECT_EQ(first.host, this_host());
    EXPECT_EQ(first.pid, ::getpid());
    EXPECT_THAT(first.parameters, Contains(Pair("own", "7")));
    EXPECT_THAT(
        first.parameters,
        Contains(Pair("page_size", std::to_string(Publisher::Options{}.socket.page_size_bytes))));
    EXPECT_THAT(first.parameters, Contains(Pair("largest_message", "16777216")));
    EXPECT_NE(first.instance, 5U);
    EXPECT_NE(first.instance, 0U);
    Publisher other{any_port};
    other.announce(bus, saying("other"));
    EXPECT_NE(wait_for("other").instance, first.instance) << "it is another process";
    publisher.announce(bus, saying("one", 19));
    wait_until([&] { return is_announced_to("one", 19); });
    EXPECT_EQ(standing("one")->instance, first.instance);
}

// 0.0.0.0 is not an address that others could use.
TEST_F(AnnouncingPublisher, ThatListensAtEveryAddressNamesItsHost) {
    Publisher::Options options{.allow_remote_anonymous = true};
    options.bus = bus;
    options.name = "one";
    options.fids = FidSet{{0, 9}};
    Publisher publisher{"0.0.0.0:0", options};
    const Announcement said = wait_for("one");
    ASSERT_THAT(said.addresses, testing::Not(testing::IsEmpty()));
    for (const std::string& each : said.addresses)
        EXPECT_EQ(parse_announced_address(each)->address.host, this_host()) << each;
}

TEST_F(AnnouncingPublisher, UnderAnotherNameIsListedOnlyOnce) {
    Publisher publisher{any_port, {.bus = bus, .name = "one", .fids = FidSet{{0, 9}}}};
    wait_for("one");
    const int before = opened;
    publisher.announce(bus, saying("one", 19));
    wait_until([&] { return is_announced_to("one", 19); });
    EXPECT_EQ(opened, before) << "the entry stays, with another content";
    publisher.announce(bus, saying("other"));
    wait_until([&] { return standing("other").has_value(); });
    EXPECT_EQ(opened, before + 1);
    EXPECT_FALSE(standing("one")) << "the former entry was removed before";
    publisher.announce(bus, saying("other", 19));
    wait_until([&] { return is_announced_to("other", 19); });
    EXPECT_EQ(opened, before + 1);
    publisher.close();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Also from several threads; for the thread sanitizer.
TEST_F(AnnouncingPublisher, MayChangeItsAnnouncementAtAnyTime) {
    Publisher publisher{any_port};
    std::thread other{[&] {
        for (std::uint64_t last = 0; last < 100; ++last)
            publisher.announce(bus, saying("other", last));
    }};
    for (std::uint64_t last = 0; last < 100; ++last)
        publisher.announce(bus, saying("one", last));
    other.join();
    publisher.announce(bus, saying("last", 200));
    EXPECT_EQ(wait_for("last").fids.at(0).fids, (FidRange{0, 200}));
    EXPECT_FALSE(standing("one"));
    EXPECT_FALSE(standing("other"));
}

TEST_F(AnnouncingPublisher, WhatCannotBeAnnouncedIsRefusedInTheCallAndMayBeTriedAgain) {
    Publisher publisher{any_port};
    EXPECT_THROW(publisher.announce(bus, {.name = "no name"}), AnnouncementError);
    EXPECT_THROW(publisher.announce(Bus{}, saying("one")), std::invalid_argument);
    refuses = true;
    EXPECT_THROW(publisher.announce(bus, saying("one")), std::exception);
    refuses = false;
    publisher.announce(bus, saying("one"));
    wait_for("one");
}

TEST_F(AnnouncingPublisher, IsNotAnnouncedAfterItsEnd) {
    Publisher publisher{any_port};
    const int before = opened;
    publisher.close();
    publisher.announce(bus, saying("one"));
    EXPECT_EQ(opened, before);
}

TEST_F(AnnouncingPublisher, ASubscriberLogsErrorsOfItsRegistry) {
    const Subscriber subscriber{Bus{(folder.path() / "missing").string()}};
    lines.wait_for("cannot read '");
}

} // namespace
} // namespace netio::front_door_announcing_test
