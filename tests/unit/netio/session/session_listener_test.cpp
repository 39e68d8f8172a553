// SPDX-License-Identifier: Apache-2.0
#include "netio/session/session_listener.hpp"

#include "netio/fabric.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/forwarding_transport.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/test_bed.hpp"
#include "tests/unit/netio/session/session_fixture.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace netio::test::session_listener_test {
namespace {

using test::Bed;
using test::TestBed;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Listening on an address that other machines can reach requires an explicit option.

class Reach : public testing::TestWithParam<Bed>, private SessionListener::Handler {
  protected:
    std::unique_ptr<SessionListener> listen(const std::vector<Address>& addresses, bool open,
                                            std::shared_ptr<ServerKeys> keys = nullptr) {
        return std::make_unique<SessionListener>(
            bed.transport(),
            SessionListener::Options{.service = Service::messages,
                                     .listen = addresses,
                                     .allow_remote_anonymous = open,
                                     .service_bytes = 4,
                                     .keys = std::move(keys)},
            static_cast<SessionListener::Handler&>(*this));
    }
    // Returns "" if it listened.
    std::string problem_of(const std::vector<Address>& addresses) {
        try {
            listen(addresses, false);
            return {};
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
    }
    TestBed bed{GetParam()};

  private:
    void on_incoming(IncomingSession&) override {}
    void on_accept_failed(const std::string&, const FabricError&) override {}
};

TEST_P(Reach, AnAddressThatOtherMachinesReachHasToBeSaidToBeOpen) {
    const std::string problem = problem_of({{.host = "0.0.0.0", .port = 0}});
    EXPECT_THAT(problem, HasSubstr("0.0.0.0:0 can be reached from other machines"));
    EXPECT_THAT(problem, HasSubstr("set allow_remote_anonymous (--allow-remote-anonymous)"));
    const auto meant = listen({{.host = "0.0.0.0", .port = 0}}, true);
    EXPECT_NE(meant->endpoints().at(0).address.port, 0);
}

TEST_P(Reach, AccessForAnyoneHasToBeExplicit) {
    test::KeyFiles files;
    files.permit(7, "services=messages");
    const auto problem_with_keys = [&](access::Protection least) -> std::string {
        const auto keys = std::make_shared<ServerKeys>(
            bed.loop(), ServerKeys::Options{.file = files.site(), .min_protection = least});
        try {
            listen({{.host = "0.0.0.0", .port = 0}}, false, keys);
            return {};
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
    };
    EXPECT_EQ(problem_with_keys(access::Protection::none), "");
    files.permit_anyone("services=messages");
    EXPECT_THAT(problem_with_keys(access::Protection::none),
                HasSubstr("a key file without the line `0 anyone`"));
    EXPECT_EQ(problem_with_keys(access::Protection::peers), "") << "every client needs a key";
}

TEST_P(Reach, AccessForAnyoneThatIsAddedLaterIsReported) {
    const auto said_at = [&](const std::string& host, bool open) -> std::string {
        test::KeyFiles files;
        files.permit(7, "services=messages");
        const auto keys = std::make_shared<ServerKeys>(
            bed.loop(), ServerKeys::Options{.file = files.site(),
                                            .look_interval = std::chrono::milliseconds{1}});
        const auto listener = listen({{.host = host, .port = 0}}, open, keys);
        bed.seen().key_file_problems.clear();
        bed.seen().revoked.clear();
        files.permit_anyone("services=messages");
        files.revoke(7); // so that the thread has something to wait for
        EXPECT_TRUE(bed.run_until([&] { return !bed.seen().revoked.empty(); }));
        return bed.seen().key_file_problems.empty() ? "" : bed.seen().key_file_problems.back();
    };
    EXPECT_THAT(said_at("0.0.0.0", false), HasSubstr("0.0.0.0:"));
    EXPECT_EQ(said_at("0.0.0.0", true), "");
    EXPECT_EQ(said_at("127.0.0.1", false), "");
}

TEST_P(Reach, OneSuchAddressAmongOthersIsEnoughAndNothingListensThen) {
    std::uint16_t port = 0;
    {
        const auto free = listen({{.host = "127.0.0.1", .port = 0}}, false);
        port = free->endpoints().at(0).address.port;
    }
    EXPECT_THAT(problem_of({{.host = "127.0.0.1", .port = port}, {.host = "0.0.0.0", .port = 0}}),
                HasSubstr("0.0.0.0:0"));
    EXPECT_EQ(problem_of({{.host = "127.0.0.1", .port = port}}), "");
}

TEST_P(Reach, AnAddressOfThisMachineAloneNeedsNoWord) {
    EXPECT_EQ(problem_of({{.host = "127.0.0.1", .port = 0}, {.host = "127.9.9.9", .port = 0}}), "");
}

INSTANTIATE_TEST_SUITE_P(Beds, Reach,
                         testing::Values(Bed::sim_tcp, Bed::sim_verbs, Bed::fabric_tcp),
                         test::bed_name);

TEST(Reach, OfANameIsThatOfItsAddress) {
    EventLoop loop;
    const auto transport = open_fabric(loop, {.provider = "tcp"});
    struct Nobody final : Listener::Handler {
        void on_request(ConnectionRequest&) override {}
    } nobody;
    const auto listener =
        transport->listen("tcp", {.host = "localhost", .port = 0}, ListenOptions{}, nobody);
    EXPECT_NE(listener->address().port, 0);
}

TEST(Reach, RequiredKeysPermitAnyAddress) {
    TestBed bed{Bed::fabric_tcp};
    struct Nobody final : Listener::Handler {
        void on_request(ConnectionRequest&) override {}
    } nobody;
    const Address any{.host = "0.0.0.0", .port = 0};
    EXPECT_THROW(bed.transport().listen("tcp", any, {}, nobody), std::invalid_argument);
    EXPECT_NE(bed.transport().listen("tcp", any, {.has_keys = true}, nobody), nullptr);
}

// What a listener reports of an address that it cannot use, and to a peer that it rejects.

struct Nobody final : SessionListener::Handler {
    void on_incoming(IncomingSession&) override {}
};

// --- addresses in one list ------------------------------------------------------------------

// The first address is free, and the second is in use.
class SecondInUse final : public ForwardingTransport {
  public:
    using ForwardingTransport::ForwardingTransport;
    std::unique_ptr<Listener> listen(const std::string& provider, const Address& local,
                                     const ListenOptions& options,
                                     Listener::Handler& handler) override {
        if (count_++ == 0) return ForwardingTransport::listen(provider, local, options, handler);
        throw FabricError{std::make_error_code(std::errc::address_in_use),
                          "cannot listen at " + to_string(local)};
    }

  private:
    int count_ = 0;
};

std::string problem_of(const Address& first, const Address& second) {
    TestBed bed{Bed::sim_tcp};
    SecondInUse transport{bed.transport()};
    Nobody nobody;
    try {
        const SessionListener listener{
            transport, {.listen = {first, second}, .allow_remote_anonymous = true}, nobody};
        return "nothing was thrown";
    } catch (const FabricError& error) {
        return error.what();
    }
}

TEST(ListenerRules, AnAddressInUseIsBlamedOnTheListWhereOneOfItMeansTheSame) {
    const Address one{"10.0.0.1", 1000};
    for (const char* all : {"0.0.0.0", "::"}) {
        EXPECT_THAT(problem_of({all, 1000}, one),
                    HasSubstr("together with " + to_string(Address{all, 1000})));
        EXPECT_THAT(problem_of(one, {all, 1000}), HasSubstr("together with 10.0.0.1:1000"));
        EXPECT_THAT(problem_of({all, 1001}, one), Not(HasSubstr("together with")))
            << "another port";
    }
    EXPECT_THAT(problem_of(one, one), HasSubstr("together with 10.0.0.1:1000"));
    EXPECT_THAT(problem_of(one, {"10.0.0.1", 1001}), Not(HasSubstr("together with")));
    EXPECT_THAT(problem_of(one, {"10.0.0.2", 1000}),
                HasSubstr("another socket listens there: use another port, or port 0"));
}

// --- rejections -----------------------------------------------------------------------------

TEST(ListenerRules, ARejectionBringsWhatIsRequired) {
    TestBed bed{Bed::sim_tcp};
    Nobody nobody;
    const SessionListener listener{bed.transport(),
                                   {.listen = {bed.address()},
                                    .allow_remote_anonymous = true,
                                    .service_bytes = 4,
                                    .required_receive_bytes = 1000},
                                   nobody};
    const auto rejection_of = [&](const Hello& hello) {
        RawDialer dialer{bed.transport(), listener.endpoints().front().address};
        ConnectionData data;
        dialer.open(std::span{data}.first(encode(hello, data)));
        EXPECT_TRUE(bed.run_until([&] { return !dialer.closed.empty(); }));
        return decode_rejection(dialer.rejection.value_or(Data{}));
    };
    Hello small = gate_hello();
    small.receive_buffer_bytes = 999;
    EXPECT_EQ(rejection_of(small).code, RejectCode::receive_too_small);
    EXPECT_EQ(rejection_of(small).required_bytes, 1000U);
    Hello few = gate_hello();
    few.receive_count = least_session_receive_count - 1;
    EXPECT_EQ(rejection_of(few).code, RejectCode::service_data);
    EXPECT_EQ(rejection_of(few).required_bytes, 0U);
    Hello other = gate_hello(Service::stream);
    EXPECT_EQ(rejection_of(other).code, RejectCode::other_service);
    EXPECT_EQ(rejection_of(other).required_bytes, 1U) << "the service here";
}

// --- memory ---------------------------------------------------------------------------------

class HalfOfTheMemory : public SessionTest {
  protected:
    void on_accept_failed(const std::string&, const FabricError& why) override {
        failed.emplace_back(why.what());
    }
    std::vector<std::string> failed;
};

// The receive memory of a session can be registered, but its send memory cannot: the peer is
// rejected before an endpoint exists.
TEST_P(HalfOfTheMemory, RejectsThePeerForLackOfMemory) {
    listener =
        std::make_unique<SessionListener>(bed.transport(),
                                          SessionListener::Options{.service = Service::messages,
                                                                   .listen = {bed.address()},
                                                                   .allow_remote_anonymous = true},
                                          static_cast<SessionListener::Handler&>(*this));
    dial({});
    bed.sim()->network().fail_calls(0, SimCall::register_memory, 2);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() || near.opened > 0; }));
    ASSERT_EQ(near.opened, 0);
    EXPECT_EQ(near.session->rejection(), RejectCode::no_resources);
    EXPECT_THAT(failed, ElementsAre(HasSubstr("locked-memory limit")));
    bed.sim()->refuse_registrations(false);
}

INSTANTIATE_TEST_SUITE_P(Beds, HalfOfTheMemory, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::session_listener_test
