// SPDX-License-Identifier: Apache-2.0

// Streams at each protection level: with `integrity` and `privacy` they use frames, whatever the
// options and the key's rights are, and no memory is registered for the peer.

#include "tests/scenario/stream/flow.hpp"
#include "tests/scenario/stream/registrations.hpp"
#include "tests/support/protected_bed.hpp"

namespace netio::stream::test::protected_test {
namespace {

using netio::access::Protection;
using netio::test::AgreedKeys;
using netio::test::ProtectedBed;
using netio::test::TestBed;

class ProtectedStream : public testing::TestWithParam<ProtectedBed>,
                        private StreamListener::Handler {
  protected:
    bool is_sealed() const { return std::get<1>(GetParam()) >= Protection::integrity; }
    // Bytes are sent in both directions, and both ends are orderly.
    void carry(RemoteWrites writes) {
        options_ = {.remote_writes = writes};
        options_.session.rekey_after_bytes = 50'000;
        StreamListener::Options listening{.listen = {bed.address()}, .keys = keys.server()};
        StreamListener listener{counted, listening, static_cast<StreamListener::Handler&>(*this)};
        Side client{1};
        client.peer_seed = 2;
        server_.peer_seed = 1;
        options_.key = keys.client();
        client.socket = std::make_unique<StreamSocket>(counted, options_, client);
        client.socket->connect(listener.endpoints().front().address);
        ASSERT_TRUE(bed.run_until([&] { return client.connected && server_.connected; }));
        Flow there{bed.loop(), client, server_, 700'000, 1};
        Flow back{bed.loop(), server_, client, 700'000, 2};
        ASSERT_TRUE(bed.run_until([&] {
            there.drive();
            back.drive();
            return there.is_done() && back.is_done() && client.closed && server_.closed;
        }));
        EXPECT_EQ(client.closed->reason, netio::CloseReason::orderly) << client.closed->detail;
        EXPECT_EQ(server_.closed->reason, netio::CloseReason::orderly) << server_.closed->detail;
        client.socket.reset();
        server_.socket.reset();
    }

    TestBed bed{std::get<0>(GetParam())};
    AgreedKeys keys{bed.loop(), std::get<1>(GetParam())};
    Registrations counted{bed.transport()};

  private:
    void on_incoming(IncomingStream& incoming) override {
        server_.socket = incoming.accept(options_, server_);
    }
    StreamSocket::Options options_;
    Side server_{2};
};

TEST_P(ProtectedStream, CarriesItsBytesBothWays) {
    carry(RemoteWrites::guarded);
    EXPECT_TRUE(!is_sealed() || counted.writable_count() == 0) << "also where a device guards it";
}

TEST_P(ProtectedStream, OffersNoMemoryWithSealedFramesEvenToATrustedPeer) {
    carry(RemoteWrites::trusted);
    EXPECT_EQ(counted.writable_count() == 0, is_sealed());
}

INSTANTIATE_TEST_SUITE_P(Levels, ProtectedStream, netio::test::all_protected_beds(),
                         netio::test::protected_bed_name);

} // namespace
} // namespace netio::stream::test::protected_test
