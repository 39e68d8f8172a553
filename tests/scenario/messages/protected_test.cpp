// SPDX-License-Identifier: Apache-2.0

// Point to point at each protection level, while keys change: messages arrive complete and in
// order.

#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/send_socket.hpp"
#include "tests/scenario/messages/buffered_fixture.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/support/protected_bed.hpp"

#include <numeric>

namespace netio::test::protected_test {
namespace {

constexpr std::uint64_t key_bytes = 50'000;

class Protected : public testing::TestWithParam<ProtectedBed> {
  protected:
    void listen() {
        ListenSocket::Options options{.listen = {bed.address()},
                                      .session = {.rekey_after_bytes = key_bytes},
                                      .largest_message_bytes = 1'000'000};
        options.keys = keys.server();
        listener = std::make_unique<ListenSocket>(bed.transport(), options, receiver);
        address = listener->endpoints().front().address;
    }
    SendSocket::Options sending() {
        SendSocket::Options options;
        options.session.rekey_after_bytes = key_bytes;
        options.key = keys.client();
        return options;
    }

    TestBed bed{std::get<0>(GetParam())};
    AgreedKeys keys{bed.loop(), std::get<1>(GetParam())};
    Address address;
    Receiver receiver;
    std::unique_ptr<ListenSocket> listener;
};

TEST_P(Protected, ZeroCopyMessagesArriveInOrderAndTheirMemoryIsReleased) {
    listen();
    Sender sender;
    SendSocket socket{bed.transport(), sending(), sender};
    socket.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    const std::vector<std::size_t> sizes{0, 1, 40, 48, 56, 57, 1000, 20000, 65000, 3};
    const std::size_t count = 100;
    std::vector<std::unique_ptr<RegisteredBuffer>> memory;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t size = sizes[i % sizes.size()];
        memory.push_back(std::make_unique<RegisteredBuffer>(std::max<std::size_t>(size, 1)));
        std::ranges::copy(content(size, static_cast<unsigned>(i)), memory.back()->data());
        ASSERT_TRUE(bed.run_until(
            [&] { return socket.send(memory.back()->slice(0, size), Cookie{i}) == Status::ok; }));
    }
    ASSERT_TRUE(
        bed.run_until([&] { return receiver.messages.size() == count && sender.done == count; }));
    for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(receiver.messages[i].bytes,
                  content(sizes[i % sizes.size()], static_cast<unsigned>(i)))
            << i;
    socket.close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly) << sender.closed[0].detail;
    EXPECT_EQ(receiver.closed[0].reason, CloseReason::orderly) << receiver.closed[0].detail;
}

TEST_P(Protected, MessagesInPagesAndInFragmentsArriveWholeInOrder) {
    listen();
    BufferedSender sender;
    BufferedSendSocket socket{
        bed.transport(), {.socket = sending(), .page_size_bytes = 4096, .page_count = 8}, sender};
    socket.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    const auto size_of = [](std::size_t i) { return i % 50 == 49 ? 30'000 + i : 40 + i % 3; };
    const std::size_t count = 2000;
    for (std::size_t i = 0; i < count; ++i) {
        const auto message = content(size_of(i), static_cast<unsigned>(i));
        ASSERT_TRUE(bed.run_until([&] { return socket.send(message) == Status::ok; }));
    }
    socket.close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty() && !receiver.closed.empty(); }));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly) << sender.closed[0].detail;
    ASSERT_EQ(receiver.messages.size(), count);
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(receiver.messages[i].bytes, content(size_of(i), static_cast<unsigned>(i))) << i;
}

INSTANTIATE_TEST_SUITE_P(Levels, Protected, all_protected_beds(), protected_bed_name);

} // namespace
} // namespace netio::test::protected_test
