// SPDX-License-Identifier: Apache-2.0

// Publish/subscribe at each protection level, while keys change: every subscriber gets what it
// would get without protection, and the totals are right.

#include "pubsub/core/wire.hpp"
#include "tests/scenario/pubsub/actors.hpp"
#include "tests/support/protected_bed.hpp"

#include <memory>
#include <vector>

namespace netio::pubsub::test::protected_test {
namespace {

using netio::Status;
using netio::test::AgreedKeys;
using netio::test::ProtectedBed;
using netio::test::TestBed;

constexpr std::uint64_t key_bytes = 50'000;

class ProtectedPublisher : public testing::TestWithParam<ProtectedBed> {
  protected:
    struct Subscription {
        SubscriberActor actor;
        std::unique_ptr<SubscribeSocket> socket;
    };

    Publisher::Options publishing() {
        Publisher::Options options{.listen = {bed.address()}};
        options.keys = keys.server();
        options.session.rekey_after_bytes = key_bytes;
        return options;
    }
    void subscribe(const Address& address) {
        for (int i = 0; i < 3; ++i) {
            Subscription& made = *subscribers.emplace_back(std::make_unique<Subscription>());
            SubscribeSocket::Options options;
            options.publisher = address;
            options.key = keys.client();
            options.session.rekey_after_bytes = key_bytes;
            made.socket = std::make_unique<SubscribeSocket>(bed.transport(), options, made.actor);
            made.socket->subscribe({range(1, 9)});
        }
        ASSERT_TRUE(bed.run_until([&] { return publisher.subscribed.size() == 3; }));
    }
    void expect_all_of(std::size_t count) {
        ASSERT_TRUE(bed.run_until([&] { return publisher.ended == 1; }));
        for (const auto& each : subscribers) {
            ASSERT_TRUE(bed.run_until([&] { return each->actor.totals == 1; }));
            EXPECT_EQ(each->actor.lost, 0U);
            for (std::uint64_t fid = 1; fid <= 9; ++fid)
                each->actor.expect_contiguous(Fid{fid}, 0, count);
        }
    }

    TestBed bed{std::get<0>(GetParam())};
    AgreedKeys keys{bed.loop(), std::get<1>(GetParam())};
    PublisherActor publisher;
    std::vector<std::unique_ptr<Subscription>> subscribers;
};

TEST_P(ProtectedPublisher, SendsPagesAndFragmentsToEverySubscriber) {
    BufferedPublishSocket socket{bed.transport(), {.publisher = publishing()}, publisher};
    subscribe(socket.endpoints().front().address);
    const std::uint64_t count = 60;
    for (std::uint64_t number = 0; number < count; ++number) {
        for (std::uint64_t fid = 1; fid <= 9; ++fid) {
            const std::size_t size = number == 30 ? 400'000 : 40 + number % 90;
            ASSERT_TRUE(bed.run_until([&] {
                return socket.publish(Fid{fid}, make_message(Fid{fid}, number, size)) == Status::ok;
            }));
        }
    }
    socket.close();
    expect_all_of(count);
}

TEST_P(ProtectedPublisher, SendsZeroCopyMemoryToEverySubscriberAndReleasesItOnce) {
    PublishSocket socket{bed.transport(), {.publisher = publishing()}, publisher};
    subscribe(socket.endpoints().front().address);
    std::vector<std::unique_ptr<netio::RegisteredBuffer>> memory;
    const std::uint64_t count = 24;
    std::uint64_t cookie = 0;
    for (std::uint64_t number = 0; number < count; ++number) {
        for (std::uint64_t fid = 1; fid <= 9; ++fid) {
            const std::size_t size = number == 20 ? 300'000 : 40 + number * 700;
            const auto message = make_message(Fid{fid}, number, size);
            memory.push_back(std::make_unique<netio::RegisteredBuffer>(message.size()));
            std::ranges::copy(message, memory.back()->data());
            ASSERT_TRUE(bed.run_until([&] {
                return socket.publish(Fid{fid}, memory.back()->slice(), netio::Cookie{cookie}) ==
                       Status::ok;
            }));
            ++cookie;
        }
    }
    ASSERT_TRUE(bed.run_until([&] { return publisher.completions.size() == cookie; }));
    for (const auto& [key, times] : publisher.completions)
        EXPECT_EQ(times, 1) << key;
    socket.close();
    expect_all_of(count);
}

INSTANTIATE_TEST_SUITE_P(Levels, ProtectedPublisher, netio::test::all_protected_beds(),
                         netio::test::protected_bed_name);

} // namespace
} // namespace netio::pubsub::test::protected_test
