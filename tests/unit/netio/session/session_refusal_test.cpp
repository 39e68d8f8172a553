// SPDX-License-Identifier: Apache-2.0

// A session whose acceptor sends an invalid hello, or whose memory cannot be registered, ends with
// the reason; no exception reaches the loop. A listener that cannot accept a peer reports it to the
// peer and to the owner.

#include "netio/session/session.hpp"
#include "netio/session/session_listener.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace netio::test::session_refusal_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Hello hello_of(std::uint32_t receive_buffer_bytes, std::uint16_t receive_count) {
    return {.service = Service::messages,
            .receive_buffer_bytes = receive_buffer_bytes,
            .receive_count = receive_count,
            .service_data = {}};
}

class Watcher final : public Session::Handler {
  public:
    void on_open(Session&) override { ++opened; }
    void on_frame(Session&, const IncomingFrame&) override { ++frames; }
    void on_sent(Session&, Cookie, Completion::Outcome) override { ++sent; }
    void on_writable(Session&) override {}
    void on_closed(Session&, const Closed& why) override { closed.push_back(why); }

    int opened = 0;
    int frames = 0;
    int sent = 0;
    std::vector<Closed> closed;
};

// Accepts every peer with the given hello, and sends nothing else.
class OddAcceptor final : private Listener::Handler, private Connection::Handler {
  public:
    OddAcceptor(Transport& transport, const Address& address, const Hello& answer)
        : answer_{answer}, listener_{transport.listen(transport.providers_at(address).front(),
                                                      address, {.allow_remote_anonymous = true},
                                                      *this)} {}

    Address address() const { return listener_->address(); }

  private:
    void on_request(ConnectionRequest& request) override {
        connection_ = request.make_connection({.send_count = 1, .receive_count = 1}, *this);
        const Slice slice = memory_.slice();
        ASSERT_EQ(connection_->post_receive({&slice, 1}, Cookie{0}), Status::ok);
        ConnectionData data;
        const std::size_t size = encode(answer_, data);
        connection_->open(std::span{data}.first(size));
    }
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion&) override {}
    void on_closed(const Closed&) override {}

    Hello answer_;
    RegisteredBuffer memory_{4096};
    std::unique_ptr<Listener> listener_;
    std::unique_ptr<Connection> connection_;
};

class SessionRefusal : public testing::TestWithParam<Bed>, public SessionListener::Handler {
  protected:
    std::unique_ptr<Session> dial(const Address& remote, Watcher& watcher,
                                  std::size_t required_receive_bytes = least_receive_bytes,
                                  const OpenOptions& offered = {}) {
        Hello hello = hello_of(0, 0);
        hello.service = service;
        return std::make_unique<Session>(
            bed.transport(),
            Session::Target{.provider = bed.transport().providers_to(remote).front(),
                            .remote = remote,
                            .local_host = {},
                            .required_receive_bytes = required_receive_bytes,
                            .offered = offered},
            hello, SessionOptions{.connect_timeout = std::chrono::minutes{1}}, watcher);
    }
    void expect_refused(const Hello& answer, std::size_t required_receive_bytes) {
        OddAcceptor acceptor{bed.transport(), bed.address(), answer};
        Watcher watcher;
        const auto session = dial(acceptor.address(), watcher, required_receive_bytes);
        ASSERT_TRUE(bed.run_until([&] { return !watcher.closed.empty(); }));
        EXPECT_EQ(watcher.opened, 0);
        EXPECT_EQ(watcher.closed[0].reason, CloseReason::protocol_error);
        EXPECT_THAT(watcher.closed[0].detail,
                    HasSubstr(std::to_string(answer.receive_count) + " receive buffers of " +
                              std::to_string(answer.receive_buffer_bytes) + " bytes"));
    }
    void listen(Service offered = Service::messages) {
        service = offered;
        listener = std::make_unique<SessionListener>(
            bed.transport(),
            SessionListener::Options{
                .service = service, .listen = {bed.address()}, .allow_remote_anonymous = true},
            static_cast<SessionListener::Handler&>(*this));
        address = listener->endpoints().front().address;
    }
    // Opens a session between near and far.
    void open() {
        listen();
        near_session = dial(address, near);
        ASSERT_TRUE(bed.run_until([&] { return near.opened == 1 && far.opened == 1; }));
    }
    void on_incoming(IncomingSession& incoming) override {
        Hello hello = hello_of(0, 0);
        hello.service = service;
        far_session = incoming.accept(hello, {.remote_writes = true}, far);
        if (at_accepted) at_accepted();
    }
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override {
        accept_failed.push_back(peer_address + ": " + why.what());
        if (at_accept_failed) at_accept_failed();
    }

    TestBed bed{GetParam()};
    Service service = Service::messages;
    Address address;
    std::function<void()> at_accepted, at_accept_failed;
    std::vector<std::string> accept_failed;
    Watcher near, far;
    std::unique_ptr<SessionListener> listener;
    std::unique_ptr<Session> near_session, far_session;
};

TEST_P(SessionRefusal, AnAcceptingSideWithoutEnoughReceivesIsAcceptFailed) {
    for (std::uint16_t receive_count = 0; receive_count < 4; ++receive_count)
        expect_refused(hello_of(4096, receive_count), least_receive_bytes);
}

TEST_P(SessionRefusal, AnAcceptingSideWhoseReceivesHoldNoFrameIsAcceptFailed) {
    for (const std::uint32_t receive_buffer_bytes : {0U, 7U, 8U, 255U})
        expect_refused(hello_of(receive_buffer_bytes, 16), least_receive_bytes);
}

TEST_P(SessionRefusal, ReceivesTooSmallForTheServiceAreAcceptFailed) {
    expect_refused(hello_of(1311, 16), 1312);
}

// Each value that a peer can request from a service: the roles implied by the service are served,
// and no others. A publisher that admitted a peer that also wants to publish would never receive
// its messages.
TEST_P(SessionRefusal, APeerThatRequestsOtherRolesIsRejected) {
    const std::map<Service, unsigned> served = {
        {Service::messages, 1}, {Service::publish_subscribe, 8}, {Service::stream, 0}};
    for (const auto& [asked, implied] : served) {
        for (const unsigned roles : {0U, 1U, 2U, 3U, 4U, 8U, 12U, 255U}) {
            near = far = {};
            near_session.reset();
            far_session.reset();
            listen(asked);
            near_session = dial(address, near, least_receive_bytes,
                                {.roles = static_cast<std::uint8_t>(roles)});
            const bool is_served = roles == 0 || roles == implied;
            ASSERT_TRUE(bed.run_until([&] {
                return is_served ? far.opened == 1 : !far.closed.empty() && !near.closed.empty();
            })) << roles;
            EXPECT_EQ(far.opened, is_served ? 1 : 0) << roles;
            if (is_served) continue;
            EXPECT_EQ(far.closed[0].reason, CloseReason::protocol_error);
            EXPECT_THAT(far.closed[0].detail, HasSubstr("requires option 32769 of the connection"));
            EXPECT_EQ(near.closed[0].reason, CloseReason::rejected) << "the peer learns why";
            EXPECT_THAT(near.closed[0].detail, HasSubstr("does not serve option 32769"));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionRefusal, all_beds(), bed_name);

using SessionWithoutRegistrations = SessionRefusal;

TEST_P(SessionWithoutRegistrations, EndsWhenWhatIsSentCannotBeRegistered) {
    open();
    RegisteredBuffer memory{60000};
    const Slice slice = memory.slice();
    bed.sim()->refuse_registrations(true);
    EXPECT_EQ(near_session->send({.kind = 20, .slices = {&slice, 1}}, Cookie{1}), Status::closed);
    EXPECT_TRUE(near.closed.empty()) << "no callback inside the call";
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty() && !far.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::failed);
    EXPECT_THAT(near.closed[0].detail, HasSubstr("regist"));
    EXPECT_EQ(near.sent, 0) << "a refused frame has no completion";
    EXPECT_EQ(far.closed[0].reason, CloseReason::lost);
}

TEST_P(SessionWithoutRegistrations, EndsWhenWhatIsWrittenCannotBeRegistered) {
    open();
    RegisteredBuffer memory{60000};
    const Slice slice = memory.slice();
    RegisteredBuffer target{60000, Access::remote_write};
    const Registration& registration = target.registration(far_session->domain());
    bed.sim()->refuse_registrations(true);
    EXPECT_EQ(
        near_session->write({.slices = {&slice, 1},
                             .target = {.address = registration.base(), .key = registration.key()},
                             .notice = 1},
                            Cookie{1}),
        Status::closed);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::failed);
    EXPECT_EQ(near.sent, 0);
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
}

TEST_P(SessionWithoutRegistrations, EndsWhenTheMemoryToGatherInCannotBeRegistered) {
    open();
    RegisteredBuffer memory{28 * 200};
    std::vector<Slice> slices;
    for (std::size_t i = 0; i < 28; ++i)
        slices.push_back(memory.slice(i * 200, 200));
    ASSERT_EQ(near_session->send({.kind = 20, .slices = {slices.data(), 1}}, Cookie{1}),
              Status::ok);
    bed.sim()->refuse_registrations(true);
    EXPECT_EQ(near_session->send({.kind = 20, .slices = slices}, Cookie{2}), Status::closed);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_EQ(near.closed[0].reason, CloseReason::failed);
    EXPECT_EQ(near.sent, 1);
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionWithoutRegistrations, simulated_beds(), bed_name);

// --- rejected -------------------------------------------------------------------------------

class SessionAcceptFailed : public SessionRefusal {
  protected:
    // The peer gets the reason as a code, the owner gets it once in full.
    void expect_accept_failed(const std::string& why) {
        ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
        EXPECT_EQ(near.closed[0].reason, CloseReason::rejected);
        EXPECT_EQ(near_session->rejection(), RejectCode::no_resources);
        EXPECT_THAT(near.closed[0].detail, HasSubstr(to_string(RejectCode::no_resources)));
        EXPECT_THAT(accept_failed, ElementsAre(HasSubstr(why)));
        EXPECT_EQ(far_session, nullptr);
        EXPECT_THAT(far.closed, IsEmpty()) << "it never was a session";
    }
    void expect_admitted() {
        near = {};
        near_session = dial(address, near);
        ASSERT_TRUE(bed.run_until([&] { return near.opened == 1 && far.opened == 1; }));
        EXPECT_EQ(accept_failed.size(), 1U);
    }
};

TEST_P(SessionAcceptFailed, IsReportedWithoutAnEndpoint) {
    listen();
    bed.sim()->refuse_endpoints(true);
    near_session = dial(address, near);
    expect_accept_failed("sim#1: cannot open an endpoint");
    bed.sim()->refuse_endpoints(false);
    expect_admitted();
}

TEST_P(SessionAcceptFailed, IsReportedWithoutMemoryAndKeepsNone) {
    listen();
    near_session = dial(address, near);
    const std::size_t registrations = bed.sim()->registration_count();
    bed.sim()->refuse_registrations(true);
    expect_accept_failed("locked-memory limit");
    EXPECT_EQ(bed.sim()->registration_count(), registrations);
    bed.sim()->refuse_registrations(false);
    expect_admitted();
}

TEST_P(SessionAcceptFailed, IsReportedIfTheOwnerHasNoMemory) {
    listen();
    at_accepted = [] { throw std::bad_alloc{}; };
    near_session = dial(address, near);
    ASSERT_TRUE(bed.run_until([&] { return !accept_failed.empty(); }));
    EXPECT_THAT(accept_failed, ElementsAre(HasSubstr("no memory for another connection")));
}

TEST_P(SessionAcceptFailed, WhatTheOwnerCannotGoOnWithEndsThoughItWasAccepted) {
    listen();
    at_accepted = [&] {
        far_session.reset();
        throw FabricError{{ENOMEM, std::system_category()}, "no buffers"};
    };
    near_session = dial(address, near);
    ASSERT_TRUE(bed.run_until([&] { return !near.closed.empty(); }));
    EXPECT_EQ(near.opened, 0);
    EXPECT_THAT(accept_failed, ElementsAre(HasSubstr("no buffers")));
    at_accepted = nullptr;
    expect_admitted();
}

TEST_P(SessionAcceptFailed, TheOwnerMayDestroyTheListenerInTheCallback) {
    listen();
    bed.sim()->refuse_endpoints(true);
    at_accept_failed = [&] { listener.reset(); };
    near_session = dial(address, near);
    expect_accept_failed("cannot open an endpoint");
}

// Only one peer is affected.
TEST_P(SessionAcceptFailed, AnExceptionAfterTheListenersEndGoesToTheObserver) {
    listen();
    at_accepted = [&] {
        listener.reset();
        throw FabricError{{ENOMEM, std::system_category()}, "no buffers"};
    };
    near_session = dial(address, near);
    ASSERT_TRUE(bed.run_until([&] { return !bed.seen().accept_failed.empty(); }));
    EXPECT_THAT(bed.seen().accept_failed, ElementsAre(HasSubstr("no buffers")));
    EXPECT_THAT(accept_failed, testing::IsEmpty()) << "the listener is destroyed";
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionAcceptFailed, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::session_refusal_test
