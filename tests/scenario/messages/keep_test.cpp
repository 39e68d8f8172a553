// SPDX-License-Identifier: Apache-2.0
// A receiver that keeps what arrives from a sender.

#include "tests/scenario/messages/buffered_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace netio::test::keep_test {
namespace {

class KeepingReceiver final : public ListenSocket::Handler {
  public:
    void on_message(ReceiveSocket& socket, std::span<const std::byte> message,
                    std::optional<std::uint64_t>) override {
        ++messages;
        if (message.size() >= keeps_from && message.size() <= keeps_up_to)
            kept.push_back(socket.keep(message));
        lent = socket.kept();
    }

    std::size_t keeps_from = 0;
    std::size_t keeps_up_to = SIZE_MAX;
    std::size_t messages = 0;
    std::vector<KeptBytes> kept;
    KeepStats lent; // after the last message
};

class KeptFromASender : public testing::TestWithParam<Bed> {
  protected:
    static constexpr std::size_t large = 500'000; // many fragments

    void connect() {
        ListenSocket::Options options;
        options.listen = {bed.address()};
        options.allow_remote_anonymous = true;
        listener = std::make_unique<ListenSocket>(bed.transport(), options, receiver);
        socket = std::make_unique<BufferedSendSocket>(
            bed.transport(), BufferedSendSocket::Options{.page_size_bytes = 4096}, sender);
        socket->connect(listener->endpoints().front().address);
        ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    }
    void send(std::size_t bytes, unsigned salt) {
        const std::size_t before = receiver.messages;
        bool is_sent = false;
        ASSERT_TRUE(bed.run_until([&] {
            is_sent = is_sent || socket->send(content(bytes, salt)) == Status::ok;
            if (is_sent) socket->flush();
            return receiver.messages > before;
        }));
    }

    TestBed bed{GetParam()};
    KeepingReceiver receiver;
    BufferedSender sender;
    std::unique_ptr<ListenSocket> listener;
    std::unique_ptr<BufferedSendSocket> socket;
};

INSTANTIATE_TEST_SUITE_P(Beds, KeptFromASender, all_beds(), bed_name);

TEST_P(KeptFromASender, AJoinedMessageIsKeptWithItsMemoryAndOutlivesTheConnection) {
    connect();
    receiver.keeps_from = large;
    send(large, 1);
    EXPECT_EQ(receiver.lent.buffers, 1U);
    EXPECT_GE(receiver.lent.bytes, large);
    send(large, 2);
    send(40, 3);
    EXPECT_EQ(receiver.lent.buffers, 2U);
    socket.reset();
    listener.reset();
    ASSERT_EQ(receiver.kept.size(), 2U);
    EXPECT_TRUE(std::ranges::equal(receiver.kept[0].bytes(), content(large, 1)));
    EXPECT_TRUE(std::ranges::equal(receiver.kept[1].bytes(), content(large, 2)));
}

// The memory of a joined message that was not kept is not lent with a later message.
TEST_P(KeptFromASender, ASmallMessageAfterAJoinedOneIsLentAlone) {
    connect();
    receiver.keeps_up_to = 40;
    for (unsigned round = 0; round < 3; ++round) {
        send(large, round);
        send(40, round);
        EXPECT_EQ(receiver.lent.bytes, KeepPool::slab_bytes);
    }
    ASSERT_EQ(receiver.kept.size(), 3U);
    for (unsigned round = 0; round < 3; ++round)
        EXPECT_TRUE(std::ranges::equal(receiver.kept[round].bytes(), content(40, round)));
    receiver.kept.clear();
    send(41, 0);
    EXPECT_EQ(receiver.lent.buffers, 0U);
}

} // namespace
} // namespace netio::test::keep_test
