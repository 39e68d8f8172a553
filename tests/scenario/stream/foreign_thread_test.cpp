// SPDX-License-Identifier: Apache-2.0

// Sockets that belong to one thread, called from another.

#include "tests/scenario/stream/pair.hpp"
#include "tests/support/foreign_thread.hpp"

namespace netio::stream::test::foreign_thread_test {
namespace {

// A build with NDEBUG has no such checks.
#ifndef NDEBUG
class ForeignThread : public testing::TestWithParam<netio::test::Bed>,
                      private StreamListener::Handler {
  protected:
    void on_incoming(IncomingStream& incoming) override {
        accepted.socket = incoming.accept({}, accepted);
    }

    netio::test::TestBed bed{GetParam()};
    Side accepted{1};
    Side connecting{2};
    std::unique_ptr<StreamListener> listener = std::make_unique<StreamListener>(
        bed.transport(),
        StreamListener::Options{.listen = {bed.address()}, .allow_remote_anonymous = true},
        static_cast<StreamListener::Handler&>(*this));
};

INSTANTIATE_TEST_SUITE_P(Beds, ForeignThread, netio::test::simulated_beds(), netio::test::bed_name);

TEST_P(ForeignThread, EveryCallOfAStreamIsRefused) {
    std::unique_ptr<StreamSocket>& socket = connecting.socket;
    socket = std::make_unique<StreamSocket>(bed.transport(), StreamSocket::Options{}, connecting);
    const netio::Address address = listener->endpoints().front().address;
    socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return socket->is_connected(); }));
    RegisteredBuffer memory{64, netio::Access::remote_write};
    const Slice slice = memory.slice();
    netio::test::expect_refused(
        bed.loop(),
        {{"StreamSocket::connect", [&] { socket->connect(address); }},
         {"StreamSocket::send", [&] { static_cast<void>(socket->send(slice, Cookie{1})); }},
         {"StreamSocket::receive",
          [&] { static_cast<void>(socket->receive(slice, Cookie{1}, Fill::some)); }},
         {"StreamSocket::shutdown_send", [&] { socket->shutdown_send(); }},
         {"StreamSocket::close", [&] { socket->close(); }},
         {"StreamSocket::abort", [&] { socket->abort(); }},
         {"StreamSocket::is_connected", [&] { static_cast<void>(socket->is_connected()); }},
         {"StreamSocket::peer_closes", [&] { static_cast<void>(socket->peer_closes()); }},
         {"StreamSocket::queued_bytes", [&] { static_cast<void>(socket->queued_bytes()); }},
         {"StreamSocket::counters", [&] { static_cast<void>(socket->counters()); }},
         {"StreamSocket::peer_address", [&] { static_cast<void>(socket->peer_address()); }},
         {"StreamSocket::provider", [&] { static_cast<void>(socket->provider()); }},
         {"StreamSocket::~StreamSocket", [&] { socket.reset(); }},
         {"StreamListener::endpoints", [&] { static_cast<void>(listener->endpoints()); }},
         {"StreamListener::~StreamListener", [&] { listener.reset(); }}});
}
#endif

} // namespace
} // namespace netio::stream::test::foreign_thread_test
