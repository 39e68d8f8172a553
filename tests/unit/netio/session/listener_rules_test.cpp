// SPDX-License-Identifier: Apache-2.0

// What a listener says of an address that it cannot have, and to a peer that it does not take.

#include "netio/session/session_listener.hpp"
#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/forwarding_transport.hpp"
#include "tests/support/test_bed.hpp"
#include "tests/unit/netio/session/session_fixture.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

namespace netio::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Nobody final : SessionListener::Handler {
    void on_incoming(IncomingSession&) override {}
};

// --- addresses of one list ------------------------------------------------------------------

// The first address is free, and the next one is in use.
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
            transport, {.addresses = {first, second}, .open = true}, nobody};
        return "nothing was thrown";
    } catch (const FabricError& error) {
        return error.what();
    }
}

TEST(ListenerRules, AnAddressInUseIsBlamedOnTheListWhereOneOfItMeansTheSame) {
    const Address one{"10.0.0.1", 1000};
    for (const char* all : {"0.0.0.0", "::"}) {
        EXPECT_THAT(problem_of({all, 1000}, one),
                    HasSubstr("beside " + to_string(Address{all, 1000})));
        EXPECT_THAT(problem_of(one, {all, 1000}), HasSubstr("beside 10.0.0.1:1000"));
        EXPECT_THAT(problem_of({all, 1001}, one), Not(HasSubstr("beside"))) << "another port";
    }
    EXPECT_THAT(problem_of(one, one), HasSubstr("beside 10.0.0.1:1000"));
    EXPECT_THAT(problem_of(one, {"10.0.0.1", 1001}), Not(HasSubstr("beside")));
    EXPECT_THAT(problem_of(one, {"10.0.0.2", 1000}), Not(HasSubstr("beside")));
}

// --- rejections -----------------------------------------------------------------------------

TEST(ListenerRules, OnlyWhoseReceivesAreTooSmallIsToldHowLargeTheyHaveToBe) {
    TestBed bed{Bed::sim_tcp};
    Nobody nobody;
    const SessionListener listener{bed.transport(),
                                   {.addresses = {bed.address()},
                                    .open = true,
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
    small.receive_bytes = 999;
    EXPECT_EQ(rejection_of(small).code, RejectCode::receive_too_small);
    EXPECT_EQ(rejection_of(small).required_bytes, 1000U);
    Hello few = gate_hello();
    few.receive_count = least_session_receive_count - 1;
    EXPECT_EQ(rejection_of(few).code, RejectCode::service_data);
    EXPECT_EQ(rejection_of(few).required_bytes, 0U);
    Hello other = gate_hello(Service::stream);
    EXPECT_EQ(rejection_of(other).code, RejectCode::other_service);
    EXPECT_EQ(rejection_of(other).required_bytes, 0U);
}

// --- memory ---------------------------------------------------------------------------------

class HalfOfTheMemory : public SessionTest {
  protected:
    void on_accept_failed(const std::string&, const FabricError& why) override {
        failed.emplace_back(why.what());
    }
    std::vector<std::string> failed;
};

// A session's memory for what it receives can be registered, and that for what it sends cannot:
// the peer is told as long as there is no endpoint for it.
TEST_P(HalfOfTheMemory, IsNoneAndThePeerIsToldSo) {
    listener = std::make_unique<SessionListener>(
        bed.transport(),
        SessionListener::Options{
            .service = Service::messages, .addresses = {bed.address()}, .open = true},
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
} // namespace netio::test
