// SPDX-License-Identifier: Apache-2.0

// A client that finds its publisher by a fid, on a directory, over tcp; also for the thread
// sanitizer.

#include "netio/fabric.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/client/client.hpp"
#include "pubsub/discovery/bus.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace netio::pubsub {
namespace {

using namespace std::chrono_literals;
using Answer = Client::Answer;

constexpr auto deadline = 60s; // far beyond what anything here takes

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

// On a thread of its own, announced; it publishes its name once to each fid that is subscribed to.
class AnnouncedPublisher final : private Publisher::Handler, private Announcer::Handler {
  public:
    struct Place {
        std::string bus;
        std::string key_file; // empty: everybody is let in
    };
    AnnouncedPublisher(const Place& place, std::string name, const FidRange& fids)
        : name_{std::move(name)}, thread_{[this, place, fids] { run(place, fids); }} {}
    ~AnnouncedPublisher() {
        runs_.get_future().wait();
        loop_.stop();
        thread_.join();
    }

  private:
    void run(const Place& place, const FidRange& fids) {
        const auto transport = open_fabric(loop_, {.provider = "tcp"});
        BufferedPublishSocket::Options options;
        options.publisher.addresses = {{.host = "127.0.0.1", .port = 0}};
        if (!place.key_file.empty())
            options.publisher.keys =
                std::make_shared<ServerKeys>(loop_, ServerKeys::Options{.file = place.key_file});
        BufferedPublishSocket socket{*transport, options, static_cast<Publisher::Handler&>(*this)};
        socket_ = &socket;
        const auto announcer =
            announce(loop_, place.bus,
                     {.name = name_,
                      .instance = draw_instance(),
                      .fids = {{.fids = fids, .meaning = {}}},
                      .addresses = {to_announced_address(socket.endpoints().front())}},
                     static_cast<Announcer::Handler&>(*this));
        runs_.set_value();
        loop_.run();
    }
    void on_subscribed(Publisher&, const SubscriberPeer&, const FidRange& fids) override {
        EXPECT_EQ(socket_->publish(fids.first, std::as_bytes(std::span{name_})), Status::ok);
        socket_->flush();
    }
    void on_closed(Publisher&, const Closed&) override {}
    void on_trouble(const std::string& what) override { ADD_FAILURE() << what; }

    std::string name_;
    EventLoop loop_; // outlives its thread, which is told to stop through it
    std::promise<void> runs_;
    BufferedPublishSocket* socket_ = nullptr;
    std::thread thread_;
};

// Each message with the fid that it came with.
std::string take(Client& client) {
    std::vector<Message> messages;
    if (client.poll(messages, 1, deadline) == 0) return "nothing";
    const auto& bytes = messages.front().bytes;
    return std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()} + " " +
           to_string(messages.front().fid);
}

TEST(ClientOnABus, AsksWhoAnnouncesTheFidAndNobodyElse) {
    const netio::test::TemporaryFolder folder;
    const AnnouncedPublisher::Place place{.bus = folder.path().string(), .key_file = {}};
    Client::Options options;
    options.bus = place.bus;
    Client client{std::move(options)};
    const AnnouncedPublisher one{place, "one", range(0, 9)};
    const AnnouncedPublisher other{place, "other", range(10, 19)};
    ASSERT_EQ(client.subscribe({range(12, 13)}, {}, deadline), Answer::accepted);
    EXPECT_EQ(take(client), "other 0xc");
    // One that is asked for before it is there, and a range that two of them have.
    std::future<Answer> later = client.subscribe({range(9, 10), range(20, 20)});
    const AnnouncedPublisher late{place, "late", range(20, 29)};
    ASSERT_EQ(later.wait_for(deadline), std::future_status::ready);
    EXPECT_EQ(later.get(), Answer::accepted);
    std::vector<std::string> came{take(client), take(client), take(client)};
    std::ranges::sort(came);
    EXPECT_EQ(came, (std::vector<std::string>{"late 0x14", "one 0x9", "other 0xa"}));
}

TEST(ClientOnABus, WithAKeyTakesWhoProvesItselfThoughAnotherAnnouncesTheFidToo) {
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
    EXPECT_EQ(take(client), "real 0x3");
}

} // namespace
} // namespace netio::pubsub
