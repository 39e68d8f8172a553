// SPDX-License-Identifier: Apache-2.0

// The fast path of publish(), which is inlined into user code: writing to the open page.

#include "pubsub/publisher/buffered_publish_socket.hpp"

#include "pubsub/subscriber/subscribe_socket.hpp"
#include "tests/support/test_bed.hpp"

#include <gtest/gtest.h>

#include <array>

namespace netio::pubsub::buffered_publish_socket_test {
namespace {

class Subscriber final : public SubscribeSocket::Handler {
  public:
    void on_subscribed(SubscribeSocket&, const FidRange&) override { is_subscribed = true; }
    void on_message(SubscribeSocket&, Fid, std::span<const std::byte>, std::uint8_t) override {}
    void on_closed(SubscribeSocket&, const Closed&, bool) override {}

    bool is_subscribed = false;
};

class BufferedPublishSocketTest : public testing::Test {
  protected:
    struct Unheard final : Publisher::Handler {};

    BufferedPublishSocketTest() {
        socket.subscribe({.first = Fid{1}, .last = Fid{1}});
        EXPECT_TRUE(bed.run_until([this] { return subscriber.is_subscribed; }));
    }

    test::TestBed bed{test::Bed::sim_tcp};
    Unheard unheard;
    BufferedPublishSocket publisher{bed.transport(),
                                    {.publisher = {.listen = {bed.address()},
                                                   .allow_remote_anonymous = true,
                                                   .largest_message_bytes = 100}},
                                    unheard};
    Subscriber subscriber;
    SubscribeSocket socket{
        bed.transport(), {.publisher = publisher.endpoints().front().address}, subscriber};
};

TEST_F(BufferedPublishSocketTest, RefusesAMessageBeyondTheLimit) {
    const std::array<std::byte, 101> bytes{};
    const std::span<const std::byte> largest = std::span{bytes}.first(100);
    ASSERT_EQ(publisher.publish(Fid{1}, largest), Status::ok) << "from here on a page is open";
    EXPECT_EQ(publisher.publish(Fid{1}, bytes), Status::too_large);
    EXPECT_EQ(publisher.publish(Fid{1}, largest), Status::ok);
    EXPECT_EQ(publisher.counters().messages, 2U);
}

} // namespace
} // namespace netio::pubsub::buffered_publish_socket_test
