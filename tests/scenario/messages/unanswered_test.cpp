// SPDX-License-Identifier: Apache-2.0

// Connection attempts that are given up before any answer.

#include "netio/loop/descriptor_watch.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace netio::test::unanswered_test {
namespace {

// Listens, accepts one connection and sends nothing.
class Mute {
  public:
    Mute(EventLoop& loop, const std::string& host)
        : listener_{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)} {
        sockaddr_in own{};
        own.sin_family = AF_INET;
        socklen_t bytes = sizeof own;
        auto* const general = reinterpret_cast<sockaddr*>(&own);
        EXPECT_EQ(::inet_pton(AF_INET, host.c_str(), &own.sin_addr), 1);
        EXPECT_EQ(::bind(listener_, general, bytes), 0) << std::strerror(errno);
        EXPECT_EQ(::listen(listener_, 8), 0);
        EXPECT_EQ(::getsockname(listener_, general, &bytes), 0);
        address = {.host = host, .port = ntohs(own.sin_port)};
        watch_.emplace(loop, listener_, DescriptorWatch::Interest::readable, [&loop, this] {
            peer_ = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            watch_.emplace(loop, peer_, DescriptorWatch::Interest::readable,
                           [this] { has_received = has_received || read() > 0; });
        });
    }
    ~Mute() {
        watch_.reset();
        if (peer_ >= 0) ::close(peer_);
        ::close(listener_);
    }
    Mute(const Mute&) = delete;
    Mute& operator=(const Mute&) = delete;

    // Returns whether the other side is still connected.
    bool is_still_asked() { return read() < 0 && errno == EAGAIN; }

    Address address;
    bool has_received = false;

  private:
    long read() {
        std::array<std::byte, 4096> said{};
        return ::recv(peer_, said.data(), said.size(), 0);
    }

    int listener_;
    int peer_ = -1;
    std::optional<DescriptorWatch> watch_;
};

class Unanswered : public Messages {};
class AnsweredLate : public Messages {};

INSTANTIATE_TEST_SUITE_P(Beds, Unanswered, fabric_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, AnsweredLate, all_beds(), bed_name);

// With iWARP, disconnecting or destroying such an attempt waits in the kernel until it is answered
// or times out there: then the other side would see its end first.
TEST_P(Unanswered, AnAttemptIsGivenUpWithoutAWaitForTheAnswer) {
    using End = void (SendSocket::*)();
    for (const End end : {&SendSocket::close, &SendSocket::abort}) {
        Mute mute{bed.loop(), bed.address().host};
        sender = {};
        SendSocket socket{bed.transport(), {}, sender};
        socket.connect(mute.address);
        ASSERT_TRUE(bed.run_until([&] { return mute.has_received || !sender.closed.empty(); }));
        if (!sender.closed.empty()) GTEST_SKIP() << "needs tcp or iWARP, as on siw in CI";
        (socket.*end)();
        if (GetParam() == Bed::fabric_verbs) {
            EXPECT_TRUE(mute.is_still_asked());
        }
        ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
        EXPECT_EQ(sender.closed[0].reason, CloseReason::local);
    }
    // What is left of the attempts affects no later one.
    listen();
    const auto socket = connected(sender);
    EXPECT_EQ(socket->send_inline({}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == 1; }));
}

TEST_P(AnsweredLate, AnAttemptThatIsAnsweredWhenItIsGivenUpIsEnded) {
    listen();
    for (int turns = 0; turns < 40; ++turns) {
        sender = {};
        {
            SendSocket socket{bed.transport(), {}, sender};
            socket.connect(address);
            for (int i = 0; i < turns && sender.connected == 0; ++i)
                bed.loop().run_once();
        }
        for (int i = 0; i < 10; ++i)
            bed.loop().run_once();
    }
    ASSERT_TRUE(bed.run_until([&] { return listener->peers().empty(); }));
    EXPECT_EQ(receiver.closed.size(), static_cast<std::size_t>(receiver.connected));
}

} // namespace
} // namespace netio::test::unanswered_test
