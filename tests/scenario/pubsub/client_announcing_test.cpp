// SPDX-License-Identifier: Apache-2.0

// What a client announces about itself: the publishers' addresses, its name, and the duration of
// the entry. The registry is a special kind, a directory that counts its opens; also for the thread
// sanitizer.

#include "pubsub/discovery/bus.hpp"
#include "pubsub/discovery/directory_registry.hpp"
#include "tests/scenario/pubsub/clients.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace netio::pubsub::test::client_announcing_test {
namespace {

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

class AnnouncingClient : public testing::Test {
  protected:
    AnnouncingClient() { add_counted_kind(); }
    ~AnnouncingClient() override { refuses = false; }

    Client::Options on_the_bus(Address at = {.host = "127.0.0.1", .port = 0}) {
        Client::Options options = publishing(std::move(at));
        options.bus = std::string{scheme} + folder.path().string();
        options.on_event = [this](const std::string& event) {
            const std::lock_guard lock{mutex};
            events.push_back(event);
        };
        return options;
    }
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
        return {.name = name, .fids = {{.fids = range(0, last), .meaning = {}}}};
    }

    netio::test::TemporaryFolder folder;
    std::mutex mutex; // of the events
    std::vector<std::string> events;
};

TEST_F(AnnouncingClient, AnnouncesItsIdentityWhateverTheUserAnnounces) {
    const Client::Options options = on_the_bus();
    Client client{options};
    Announcement said = saying("one");
    said.instance = 5;
    said.addresses = {"tcp:10.9.9.9:9"};
    said.mode = "unbuffered";
    said.host = "elsewhere";
    said.pid = 1;
    said.parameters = {{"own", "7"}};
    client.announce(said);
    const Announcement first = wait_for("one");
    EXPECT_THAT(first.addresses, ElementsAre(to_announced_address(client.endpoints().front())));
    EXPECT_EQ(first.mode, "buffered");
    EXPECT_EQ(first.host, this_host());
    EXPECT_EQ(first.pid, ::getpid());
    EXPECT_THAT(first.parameters, Contains(Pair("own", "7")));
    EXPECT_THAT(first.parameters,
                Contains(Pair("page_size", std::to_string(options.publish->page_size_bytes))));
    EXPECT_THAT(first.parameters, Contains(Pair("largest_message", "16777216")));
    EXPECT_NE(first.instance, 5U);
    EXPECT_NE(first.instance, 0U);
    Client other{options};
    other.announce(saying("other"));
    EXPECT_NE(wait_for("other").instance, first.instance) << "it is another process";
    client.announce(saying("one", 19));
    wait_until([&] { return standing("one")->fids.at(0).fids == range(0, 19); });
    EXPECT_EQ(standing("one")->instance, first.instance);
}

// 0.0.0.0 is not an address that others could use.
TEST_F(AnnouncingClient, ThatListensAtEveryAddressNamesItsHost) {
    Client::Options options = on_the_bus({.host = "0.0.0.0", .port = 0});
    options.publish->publisher.allow_remote_anonymous = true;
    Client client{std::move(options)};
    client.announce(saying("one"));
    const Announcement said = wait_for("one");
    ASSERT_THAT(said.addresses, testing::Not(testing::IsEmpty()));
    for (const std::string& each : said.addresses)
        EXPECT_EQ(parse_announced_address(each)->address.host, this_host()) << each;
}

TEST_F(AnnouncingClient, UnderAnotherNameIsListedOnlyOnce) {
    Client client{on_the_bus()};
    client.announce(saying("one"));
    wait_for("one");
    const int before = opened;
    client.announce(saying("one", 19));
    wait_until([&] { return standing("one")->fids.at(0).fids == range(0, 19); });
    EXPECT_EQ(opened, before) << "the entry stays, with another content";
    client.announce(saying("other"));
    wait_until([&] { // it reports this under any name
        const auto former = standing("one");
        return standing("other") || (former && former->fids.at(0).fids == range(0, 9));
    });
    ASSERT_TRUE(standing("other"));
    EXPECT_EQ(opened, before + 1);
    EXPECT_FALSE(standing("one")) << "the former entry was removed before";
    client.announce(saying("other", 19));
    wait_until([&] { return standing("other")->fids.at(0).fids == range(0, 19); });
    EXPECT_EQ(opened, before + 1);
    client.close();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Also while its thread handles an earlier call; for the thread sanitizer.
TEST_F(AnnouncingClient, MayChangeItsAnnouncementAtAnyTime) {
    Client client{on_the_bus()};
    for (std::uint64_t last = 0; last < 200; ++last)
        client.announce(saying(last % 2 == 0 ? "one" : "other", last));
    client.announce(saying("last", 200));
    EXPECT_EQ(wait_for("last").fids.at(0).fids, range(0, 200));
    EXPECT_FALSE(standing("one"));
    EXPECT_FALSE(standing("other"));
}

TEST_F(AnnouncingClient, ReportsWhyItIsNotFoundAndMayTryAgain) {
    Client client{on_the_bus()};
    refuses = true;
    client.announce(saying("one"));
    wait_until([&] {
        const std::lock_guard lock{mutex};
        return !events.empty();
    });
    refuses = false;
    client.announce(saying("one"));
    wait_for("one");
    const std::lock_guard lock{mutex};
    EXPECT_THAT(events, ElementsAre("it is not announced: the board is closed"));
}

TEST_F(AnnouncingClient, IsNotAnnouncedAfterItsEnd) {
    Client client{on_the_bus()};
    const int before = opened;
    std::promise<void> over;
    ASSERT_TRUE(client.post([&] { // both wait until this is done, in this order
        client.close();
        client.announce(saying("one"));
        over.set_value();
    }));
    over.get_future().get();
    client.close();
    EXPECT_EQ(opened, before);
}

TEST_F(AnnouncingClient, IsNotifiedOfErrorsOfItsRegistry) {
    Client::Options options;
    options.bus = (folder.path() / "missing").string();
    options.on_event = on_the_bus().on_event;
    Client client{std::move(options)};
    wait_until([&] {
        const std::lock_guard lock{mutex};
        return !events.empty();
    });
    client.close();
    EXPECT_THAT(events, Contains(HasSubstr("cannot read '")));
}

} // namespace
} // namespace netio::pubsub::test::client_announcing_test
