// SPDX-License-Identifier: Apache-2.0

// Memory runs out while a request is examined: the peer is notified, the loop continues, and
// nothing is leaked.

#include "tests/scenario/access/failing_new.hpp"
#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/forwarding_transport.hpp"

namespace netio::test::want_of_memory_test {
namespace {

// Memory is short from the call of the listener until it has decided.
class Starving final : public ForwardingTransport {
  public:
    using ForwardingTransport::ForwardingTransport;
    std::size_t at = 0;

    std::unique_ptr<Listener> listen(const std::string& provider, const Address& local,
                                     const ListenOptions& options,
                                     Listener::Handler& handler) override {
        door_.emplace(at, handler);
        return inner().listen(provider, local, options, *door_);
    }

  private:
    struct Door final : Listener::Handler {
        Door(const std::size_t& when, Listener::Handler& handler) : at{when}, inside{handler} {}
        void on_request(ConnectionRequest& request) override {
            fail_new_at(at);
            inside.on_request(request);
            fail_new_at(0);
        }
        const std::size_t& at;
        Listener::Handler& inside;
    };
    std::optional<Door> door_;
};

class WantOfMemory : public GateTest {
  protected:
    void on_incoming(IncomingSession& asking) override {
        fail_new_at(0);
        GateTest::on_incoming(asking);
    }
    void on_accept_failed(const std::string&, const FabricError&) override { ++failed; }
    int failed = 0;
};

TEST_P(WantOfMemory, DuringAdmissionUsesNoSlotAndIsReportedToThePeer) {
    files.permit(7, "services=messages connections=1");
    Starving starving{bed.transport()};
    over = &starving;
    listen();
    int refused_count = 0;
    for (std::size_t at = 1;; ++at) {
        ASSERT_LT(at, 1000U);
        access::AuthClient client{files.key(7), {}, dialled()};
        const Data request = proved_request(client);
        starving.at = at;
        const auto dialer = dial(request);
        starving.at = 0;
        if (dialer->answer) break;
        ++refused_count;
        ASSERT_EQ(dialer->code(), RejectCode::no_resources) << at;
        EXPECT_EQ(keys->counters().sessions, 0U) << at;
    }
    EXPECT_GT(refused_count, 5) << "the slot, the session's entry, ...";
    EXPECT_GE(failed, refused_count - 2) << "all reported, except two that had no name yet";
    listener.reset();
    sessions.clear();
}

INSTANTIATE_TEST_SUITE_P(Beds, WantOfMemory, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::want_of_memory_test
