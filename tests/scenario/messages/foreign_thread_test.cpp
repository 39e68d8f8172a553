// SPDX-License-Identifier: Apache-2.0

// Sockets that belong to one thread, called from another.

#include "netio/messages/buffered_send_socket.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/support/foreign_thread.hpp"

#include <array>

namespace netio::test::foreign_thread_test {
namespace {

// NDEBUG builds omit the checks of frequent calls; the WrongThread tests run in every build.
#ifndef NDEBUG
class ForeignThread : public Messages {
  protected:
    std::array<std::byte, 8> bytes{};
};

INSTANTIATE_TEST_SUITE_P(Beds, ForeignThread, simulated_beds(), bed_name);

TEST_P(ForeignThread, EveryCallOfASenderIsRefused) {
    listen();
    auto socket = connected(sender);
    RegisteredBuffer memory{64};
    const Slice slice = memory.slice();
    expect_refused(
        bed.loop(),
        {{"SendSocket::connect", [&] { socket->connect(address); }},
         {"SendSocket::close", [&] { socket->close(); }},
         {"SendSocket::abort", [&] { socket->abort(); }},
         {"SendSocket::send", [&] { static_cast<void>(socket->send(slice, Cookie{1})); }},
         {"SendSocket::sendv",
          [&] {
              static_cast<void>(socket->sendv({&slice, 1}, Cookie{1}));
          }},
         {"SendSocket::send_inline", [&] { static_cast<void>(socket->send_inline(bytes)); }},
         {"SendSocket::is_connected", [&] { static_cast<void>(socket->is_connected()); }},
         {"SendSocket::is_retrying", [&] { static_cast<void>(socket->is_retrying()); }},
         {"SendSocket::message_limit", [&] { static_cast<void>(socket->message_limit()); }},
         {"SendSocket::segment_limit", [&] { static_cast<void>(socket->segment_limit()); }},
         {"SendSocket::provider", [&] { static_cast<void>(socket->provider()); }},
         {"SendSocket::counters", [&] { static_cast<void>(socket->counters()); }},
         {"SendSocket::snapshot", [&] { static_cast<void>(socket->snapshot()); }},
         {"SendSocket::~SendSocket", [&] { socket.reset(); }}});
}

TEST_P(ForeignThread, EveryCallOfABufferedSenderIsRefused) {
    listen();
    struct Nobody final : BufferedSendSocket::Handler {
        void on_connected(BufferedSendSocket&) override { ++connected; }
        void on_closed(BufferedSendSocket&, const Closed&) override {}
        int connected = 0;
    } nobody;
    auto socket = std::make_unique<BufferedSendSocket>(bed.transport(),
                                                       BufferedSendSocket::Options{}, nobody);
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return nobody.connected == 1; }));
    const std::span<const std::byte> part{bytes};
    expect_refused(
        bed.loop(),
        {{"BufferedSendSocket::connect", [&] { socket->connect(address); }},
         {"BufferedSendSocket::close", [&] { socket->close(); }},
         {"BufferedSendSocket::abort", [&] { socket->abort(); }},
         {"BufferedSendSocket::send", [&] { static_cast<void>(socket->send(bytes)); }},
         {"BufferedSendSocket::sendv",
          [&] {
              static_cast<void>(socket->sendv({&part, 1}));
          }},
         {"BufferedSendSocket::flush", [&] { socket->flush(); }},
         {"BufferedSendSocket::is_connected", [&] { static_cast<void>(socket->is_connected()); }},
         {"BufferedSendSocket::is_retrying", [&] { static_cast<void>(socket->is_retrying()); }},
         {"BufferedSendSocket::message_limit", [&] { static_cast<void>(socket->message_limit()); }},
         {"BufferedSendSocket::pages_in_use", [&] { static_cast<void>(socket->pages_in_use()); }},
         {"BufferedSendSocket::counters", [&] { static_cast<void>(socket->counters()); }},
         {"BufferedSendSocket::snapshot", [&] { static_cast<void>(socket->snapshot()); }},
         {"BufferedSendSocket::provider", [&] { static_cast<void>(socket->provider()); }},
         {"BufferedSendSocket::~BufferedSendSocket", [&] { socket.reset(); }}});
}

TEST_P(ForeignThread, EveryCallOfAListenerAndOfItsReceiversIsRefused) {
    listen();
    const auto socket = connected(sender);
    ASSERT_TRUE(bed.run_until([&] { return !listener->peers().empty(); }));
    ReceiveSocket& peer = *listener->peers().front();
    expect_refused(
        bed.loop(),
        {{"ListenSocket::stop_listening", [&] { listener->stop_listening(); }},
         {"ListenSocket::close", [&] { listener->close(); }},
         {"ListenSocket::abort", [&] { listener->abort(); }},
         {"ListenSocket::endpoints", [&] { static_cast<void>(listener->endpoints()); }},
         {"ListenSocket::peer_count", [&] { static_cast<void>(listener->peer_count()); }},
         {"ListenSocket::peers", [&] { static_cast<void>(listener->peers()); }},
         {"ListenSocket::counters", [&] { static_cast<void>(listener->counters()); }},
         {"ReceiveSocket::peer_address", [&] { static_cast<void>(peer.peer_address()); }},
         {"ReceiveSocket::pause", [&] { peer.pause(); }},
         {"ReceiveSocket::resume", [&] { peer.resume(); }},
         {"ReceiveSocket::close", [&] { peer.close(); }},
         {"ReceiveSocket::abort", [&] { peer.abort(); }},
         {"ReceiveSocket::counters", [&] { static_cast<void>(peer.counters()); }},
         {"ListenSocket::~ListenSocket", [&] { listener.reset(); }}});
}

TEST_P(ForeignThread, EveryCallOfATimerIsRefused) {
    auto timer = std::make_unique<Timer>(bed.loop(), [] {});
    expect_refused(bed.loop(), {{"Timer::Timer",
                                 [&] {
                                     Timer{bed.loop(), [] {}}.cancel();
                                 }},
                                {"Timer::cancel", [&] { timer->cancel(); }},
                                {"Timer::start_at", [&] { timer->start(std::chrono::seconds{1}); }},
                                {"Timer::~Timer", [&] { timer.reset(); }}});
}
#endif

} // namespace
} // namespace netio::test::foreign_thread_test
