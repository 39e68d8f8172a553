// SPDX-License-Identifier: Apache-2.0

// Peers for which a listener has no endpoint, memory or descriptor.

#include "netio/session/handshake.hpp"
#include "stream/socket/blocking_stream.hpp"
#include "tests/scenario/stream/pair.hpp"
#include "tests/support/descriptor_limit.hpp"

#include <thread>

namespace netio::stream::test::accept_failed_test {
namespace {

using netio::RejectCode;
using netio::test::all_beds;
using netio::test::bed_name;
using testing::ElementsAre;
using testing::HasSubstr;

class AcceptFailed : public PairOnBed {
  protected:
    void expect_accept_failed() {
        ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
        EXPECT_EQ(client.closed->reason, CloseReason::rejected);
        EXPECT_THAT(client.closed->detail, HasSubstr(to_string(RejectCode::no_resources)));
        EXPECT_EQ(server.socket, nullptr);
    }
};

TEST_P(AcceptFailed, WithoutAnEndpointTheOthersContinueAndALaterAttemptSucceeds) {
    establish();
    Side late{1};
    StreamSocket second{bed.transport(), {}, late};
    bed.sim()->refuse_endpoints(true);
    for (std::size_t attempt = 1; attempt <= 3; ++attempt) {
        late.forget();
        second.connect(listener->endpoints().front().address);
        ASSERT_TRUE(bed.run_until([&] { return late.closed.has_value(); }));
        EXPECT_EQ(late.closed->reason, CloseReason::rejected);
        EXPECT_EQ(bed.seen().accept_failed.size(), attempt) << "reported once for each attempt";
        ASSERT_EQ(server.receive(100, Fill::all), Status::ok);
        ASSERT_EQ(client.send(100), Status::ok);
        ASSERT_TRUE(bed.run_until([&] { return server.received == 100 * attempt; }));
    }
    EXPECT_THAT(bed.seen().accept_failed[0], HasSubstr("cannot open an endpoint"));
    bed.sim()->refuse_endpoints(false);
    const std::unique_ptr<StreamSocket> kept = std::exchange(server.socket, nullptr);
    second.connect(listener->endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] { return late.connected; }));
    EXPECT_EQ(bed.seen().accept_failed.size(), 3U);
}

TEST_P(AcceptFailed, ForLackOfMemoryLeaksNothing) {
    listen();
    connect();
    bed.loop().run_once(); // this side has registered what it needs
    bed.sim()->refuse_registrations(true);
    expect_accept_failed();
    EXPECT_THAT(bed.seen().accept_failed, ElementsAre(HasSubstr("ulimit -l")));
    EXPECT_EQ(bed.sim()->registration_count(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, AcceptFailed, simulated_stages(), stage_name);

// What a handler may do with a peer, and with the listener at the same time.
class Incoming : public testing::TestWithParam<netio::test::Bed>, private StreamListener::Handler {
  protected:
    void meet() {
        listener = std::make_unique<StreamListener>(
            bed.transport(),
            StreamListener::Options{.listen = {bed.address()}, .allow_remote_anonymous = true},
            static_cast<StreamListener::Handler&>(*this));
        socket = std::make_unique<StreamSocket>(bed.transport(), StreamSocket::Options{}, client);
        client.forget();
        socket->connect(listener->endpoints().front().address);
        ASSERT_TRUE(bed.run_until([&] { return client.connected || client.closed; }));
    }

    netio::test::TestBed bed{GetParam()};
    Side client{1};
    Side server{2};
    std::unique_ptr<StreamListener> listener;
    std::unique_ptr<StreamSocket> socket;
    std::function<void(IncomingStream&)> at_incoming;

  private:
    void on_incoming(IncomingStream& incoming) override { at_incoming(incoming); }
};

TEST_P(Incoming, OfADestroyedListenerIsRejected) {
    const std::string why(100, 'a'); // more than a string stores in place
    const std::vector<std::function<void(IncomingStream&)>> ways{
        [](IncomingStream&) {}, [&](IncomingStream& incoming) { incoming.reject(why); },
        [&](IncomingStream& incoming) {
            EXPECT_THROW(incoming.accept({}, server), netio::FabricError);
            incoming.reject(why);
        },
        [&](IncomingStream& incoming) { incoming.accept({}, server); }};
    for (const auto& way : ways) {
        at_incoming = [&](IncomingStream& incoming) {
            listener.reset();
            way(incoming);
        };
        meet();
        EXPECT_FALSE(client.connected);
        // Without the library's data, which the provider takes for another refusal.
        if (bed.sim() == nullptr) continue;
        EXPECT_EQ(client.closed->reason, CloseReason::rejected);
    }
    EXPECT_THAT(bed.seen().accept_failed, ElementsAre(HasSubstr("its listener is gone")))
        << "of the handler that threw";
}

TEST_P(Incoming, MayBeAnsweredOnce) {
    std::unique_ptr<StreamSocket> accepted;
    at_incoming = [&](IncomingStream& incoming) {
        accepted = incoming.accept({}, server);
        EXPECT_THROW(incoming.accept({}, server), netio::FabricError);
        incoming.reject("too late");
        listener.reset();
    };
    meet();
    EXPECT_TRUE(client.connected);
}

INSTANTIATE_TEST_SUITE_P(Beds, Incoming, all_beds(), bed_name);

TEST(BlockingAcceptFailed, IsReportedByAcceptAndTheNextCallContinues) {
    const BlockingStream::Options patient{.call_timeout = std::chrono::seconds{60}};
    BlockingListener listener{"127.0.0.1:0", patient};
    const std::string address = to_string(listener.address());
    {
        const netio::test::DescriptorLimit limit{30};
        std::thread client{[&] {
            try {
                BlockingStream::connect(address, patient);
                ADD_FAILURE() << "there was no descriptor for it";
            } catch (const StreamError& error) {
                EXPECT_THAT(error.what(), HasSubstr(to_string(RejectCode::no_resources)));
            }
        }};
        try {
            listener.accept();
            ADD_FAILURE() << "there was no descriptor for it";
        } catch (const netio::FabricError& error) {
            EXPECT_EQ(error.code(), std::errc::too_many_files_open);
            EXPECT_THAT(error.what(), HasSubstr("ulimit -n"));
        }
        client.join();
    }
    std::thread client{[&] { BlockingStream::connect(address, patient); }};
    listener.accept();
    client.join();
}

} // namespace
} // namespace netio::stream::test::accept_failed_test
