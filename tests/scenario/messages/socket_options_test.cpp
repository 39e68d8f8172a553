// SPDX-License-Identifier: Apache-2.0

// Options of the point-to-point sockets: a mistake is reported when the socket is created, and the
// limits are those of the documentation. Also arguments that no socket accepts.

#include "netio/base/option_check.hpp"
#include "netio/fabric.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/message_socket.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>

namespace netio::test::socket_options_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct BufferedNobody final : BufferedSendSocket::Handler {
    void on_closed(BufferedSendSocket&, const Closed&) override {}
};

class SocketOptions : public Messages {
  protected:
    static std::string problem_of(const std::function<void()>& make) {
        try {
            make();
            return "";
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
    }
    std::string listening(ListenSocket::Options options) {
        options.listen = {bed.address()};
        options.allow_remote_anonymous = true;
        return problem_of([&] { ListenSocket{bed.transport(), options, receiver}; });
    }
    std::string sending(const SendSocket::Options& options) {
        return problem_of([&] { SendSocket{bed.transport(), options, sender}; });
    }
    std::string buffering(const BufferedSendSocket::Options& options) {
        return problem_of([&] { BufferedSendSocket{bed.transport(), options, nobody}; });
    }
    BufferedNobody nobody;
};

INSTANTIATE_TEST_SUITE_P(Beds, SocketOptions, testing::Values(Bed::sim_tcp), bed_name);

TEST_P(SocketOptions, OfAListenerAreCheckedBeforeAnyPeerConnects) {
    EXPECT_THAT(listening({.session = {.receive_count = 3}}), HasSubstr("receive_count"));
    EXPECT_EQ(listening({.largest_message_bytes = 1'073'741'823}), "");
    EXPECT_THAT(listening({.largest_message_bytes = 1'073'741'824}),
                HasSubstr("largest_message_bytes must be at most 1073741823"));
}

TEST_P(SocketOptions, OfASenderAreCheckedBeforeItConnects) {
    EXPECT_THAT(sending({.session = {.receive_count = 3}}), HasSubstr("receive_count"));
    EXPECT_THAT(sending({.retry_interval = 0ms}), HasSubstr("retry_interval"));
    EXPECT_EQ(sending({.retry_interval = 1ms}), "");
    EXPECT_EQ(sending({.retry_limit = longest_time}), "");
    EXPECT_THAT(sending({.retry_limit = longest_time + 1ms}), HasSubstr("retry_limit"));
}

TEST_P(SocketOptions, OfPagesHaveTheDocumentedLimits) {
    EXPECT_EQ(buffering({.page_size_bytes = 256, .page_count = 2}), "");
    EXPECT_THAT(buffering({.page_size_bytes = 255, .page_count = 2}), HasSubstr("page_size_bytes"));
    EXPECT_THAT(buffering({.page_size_bytes = 1'073'741'824, .page_count = 2}),
                HasSubstr("page_size_bytes"));
    EXPECT_THAT(buffering({.page_size_bytes = 256, .page_count = 1}), HasSubstr("page_count"));
    EXPECT_THAT(buffering({.page_size_bytes = 256, .page_count = (1U << 20U) + 1}),
                HasSubstr("page_count"));
    EXPECT_EQ(buffering({.page_size_bytes = 256, .page_count = 2, .watermark_bytes = 256}), "");
    EXPECT_THAT(buffering({.page_size_bytes = 256, .page_count = 2, .watermark_bytes = 257}),
                HasSubstr("watermark_bytes"));
    for (const std::chrono::microseconds good : {0us, std::chrono::microseconds{longest_time}})
        EXPECT_EQ(buffering({.page_size_bytes = 256, .page_count = 2, .flush_time = good}), "");
    EXPECT_THAT(
        buffering({.page_size_bytes = 256, .page_count = 2, .flush_time = longest_time + 1us}),
        HasSubstr("flush_time"));
}

TEST_P(SocketOptions, ASliceOutsideItsBufferEndsTheProgram) {
    listen();
    const auto socket = connected(sender);
    RegisteredBuffer memory{100};
    const std::array<Slice, 2> slices{memory.slice(0, 10), Slice{&memory, memory.data() + 95, 10}};
    EXPECT_DEATH(static_cast<void>(socket->sendv(slices, Cookie{1})), "");
}

void destroy_a_transport_before_its_socket() {
    EventLoop loop;
    auto transport = open_fabric(loop, {.provider = "tcp"});
    const MessageSocket socket{*transport, {}, MessageSocket::Functions{}};
    transport.reset();
}

TEST(TransportDeathTest, ASocketMustNotOutliveItsTransport) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(destroy_a_transport_before_its_socket(), "declare the transport before them");
}

} // namespace
} // namespace netio::test::socket_options_test
