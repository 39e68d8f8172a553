// SPDX-License-Identifier: Apache-2.0
// Listeners that receive into memory of the user's.

#include "netio/memory/receive_memory.hpp"

#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/test_bed.hpp"

#include "netio/messages/send_socket.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace netio::test::receive_memory_test {
namespace {

struct Sender final : SendSocket::Handler {
    void on_connected(SendSocket&) override { connected = true; }
    void on_closed(SendSocket&, const Closed& why) override { closed = why; }
    bool connected = false;
    std::optional<Closed> closed;
    std::unique_ptr<SendSocket> socket;
};

// Keeps what it receives.
class Keeper final : public ListenSocket::Handler {
  public:
    void on_message(ReceiveSocket& socket, std::span<const std::byte> message,
                    std::optional<std::uint64_t>) override {
        at.push_back(message.data());
        if (message.size() >= 8192) kept.push_back(socket.keep(message));
    }
    std::vector<const std::byte*> at;
    std::vector<KeptBytes> kept;
};

class OwnReceiveMemory : public testing::TestWithParam<Bed> {
  protected:
    static constexpr std::size_t buffer_bytes = 16 * 1024;
    static constexpr std::size_t window_bytes = 8 * (buffer_bytes + 64);

    void listen(std::size_t bytes) {
        users.resize(bytes);
        ListenSocket::Options options{.listen = {bed.address()}, .allow_remote_anonymous = true};
        options.session.receive_buffer_bytes = buffer_bytes;
        options.session.receive_count = 8;
        options.session.receive_memory = memory = std::make_shared<ReceiveMemory>(users);
        listener = std::make_unique<ListenSocket>(bed.transport(), options, keeper);
    }
    Sender& connect() {
        Sender& made = *senders.emplace_back(std::make_unique<Sender>());
        made.socket = std::make_unique<SendSocket>(bed.transport(), SendSocket::Options{}, made);
        made.socket->connect(listener->endpoints().front().address);
        EXPECT_TRUE(bed.run_until([&] { return made.connected || made.closed; }));
        return made;
    }
    // Sends until as many have arrived.
    void send(Sender& sender, std::size_t count, std::size_t bytes) {
        const std::size_t before = keeper.at.size();
        std::size_t sent = 0;
        ASSERT_TRUE(bed.run_until([&] {
            if (sent < count &&
                sender.socket->send(outgoing.slice(0, bytes), Cookie{sent}) == Status::ok)
                ++sent;
            return keeper.at.size() == before + count;
        })) << keeper.at.size();
    }
    bool is_in_own_memory(const std::byte* data) const {
        const std::less_equal<const std::byte*> before;
        return before(users.data(), data) && before(data, users.data() + users.size() - 1);
    }

    TestBed bed{GetParam()};
    RegisteredBuffer outgoing{buffer_bytes};
    std::vector<std::byte> users;
    std::shared_ptr<ReceiveMemory> memory;
    Keeper keeper;
    std::unique_ptr<ListenSocket> listener;
    std::vector<std::unique_ptr<Sender>> senders;
};

INSTANTIATE_TEST_SUITE_P(Beds, OwnReceiveMemory, all_beds(), bed_name);

TEST_P(OwnReceiveMemory, IsSharedByThePeersAndOneTooManyIsRejected) {
    listen(2 * window_bytes + 1000);
    Sender& one = connect();
    Sender& two = connect();
    ASSERT_TRUE(one.connected && two.connected);
    Sender& three = connect();
    ASSERT_TRUE(three.closed);
    EXPECT_EQ(three.closed->reason, CloseReason::rejected) << to_string(*three.closed);
    EXPECT_TRUE(three.closed->may_pass) << "as a lack of memory";
    EXPECT_EQ(listener->counters().accept_failed, 1U);
    send(one, 20, 100);
    send(two, 20, 100);
    for (const std::byte* const data : keeper.at)
        EXPECT_TRUE(is_in_own_memory(data));
    // When a peer has gone, another one gets its memory.
    one.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return listener->peer_count() == 1; }));
    Sender& four = connect();
    ASSERT_TRUE(four.connected);
    send(four, 20, 100);
}

// A buffer that one connection returns serves the other one that waits for it.
TEST_P(OwnReceiveMemory, ABufferThatOnePeerReturnsServesAnother) {
    listen(2 * window_bytes + buffer_bytes + 64);
    Sender& one = connect();
    Sender& two = connect();
    send(one, 1, 10'000); // its buffer is replaced by the only free one
    std::vector<KeptBytes> first = std::exchange(keeper.kept, {});
    EXPECT_LT(memory->free_bytes(), buffer_bytes);
    send(two, 5, 10'000); // three receives are left
    std::size_t sent = 0;
    bed.let_pass(std::chrono::milliseconds{5});
    first.clear();
    keeper.kept.resize(4);
    ASSERT_TRUE(bed.run_until([&] {
        if (sent < 30 && two.socket->send(outgoing.slice(0, 10'000), Cookie{sent}) == Status::ok)
            ++sent;
        while (keeper.kept.size() > 4)
            keeper.kept.pop_back();
        return keeper.at.size() == 36;
    })) << keeper.at.size();
    EXPECT_EQ(listener->kept().buffers, 4U);
    EXPECT_EQ(listener->kept().bytes, 4U * buffer_bytes);
    senders.clear();
    ASSERT_TRUE(bed.run_until([&] { return listener->peer_count() == 0; }));
    EXPECT_EQ(memory->free_bytes(), memory->size() - 4 * ReceiveMemory::bytes_in_use(buffer_bytes));
    keeper.kept.clear();
    EXPECT_EQ(memory->free_bytes(), memory->size());
}

TEST_P(OwnReceiveMemory, TooLittleIsRefusedByTheConstructor) {
    EXPECT_THAT([&] { listen(window_bytes - 1); },
                testing::ThrowsMessage<std::invalid_argument>(testing::AllOf(
                    testing::HasSubstr("receive_memory has " + std::to_string(window_bytes - 1)),
                    testing::HasSubstr("needs " + std::to_string(window_bytes)))));
}

} // namespace
} // namespace netio::test::receive_memory_test
