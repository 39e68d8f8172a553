// SPDX-License-Identifier: Apache-2.0

// Peers that break the session protocol lose their connection, with the reason.

#include "tests/scenario/pubsub/intruder.hpp"
#include "tests/unit/netio/session/scripted_connection.hpp"
#include "tests/unit/netio/session/session_fixture.hpp"

namespace netio::test::session_protocol_test {
namespace {

using namespace std::chrono_literals;
using netio::pubsub::test::Impostor;
using testing::HasSubstr;

struct RawFrame {
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
    std::size_t body_bytes = 0;
};

RawFrame frame_of(FrameKind kind, std::uint8_t flags = 0, std::size_t body_bytes = 0) {
    return {static_cast<std::uint8_t>(kind), flags, body_bytes};
}

class SessionProtocol : public SessionTest {
  protected:
    void serve() {
        far = {};
        listener.reset();
        listener = std::make_unique<SessionListener>(
            bed.transport(),
            SessionListener::Options{.service = Service::messages,
                                     .listen = {bed.address()},
                                     .allow_remote_anonymous = true},
            static_cast<SessionListener::Handler&>(*this));
    }
    // Accepts a hostile peer, which sends these frames after its open frame, and expects its end.
    void expect_refused(const std::vector<RawFrame>& frames, const std::string& why,
                        bool with_open = true) {
        SCOPED_TRACE(why);
        serve();
        Impostor impostor{bed.transport(), listener->endpoints().front().address,
                          Service::messages};
        ASSERT_TRUE(bed.run_until([&] { return impostor.connected; }));
        std::uint32_t sequence = 0;
        if (with_open) {
            impostor.send_open();
            ++sequence;
        }
        for (const RawFrame& frame : frames) {
            impostor.send_frame({.kind = frame.kind, .flags = frame.flags, .sequence = sequence++},
                                std::vector<std::byte>(frame.body_bytes));
        }
        ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
        EXPECT_EQ(far.closed[0].reason, CloseReason::protocol_error);
        EXPECT_THAT(far.closed[0].detail, HasSubstr(why));
    }
};

TEST_P(SessionProtocol, RefusesFramesOfItsOwnWithFlagsOrABodyThatTheyDoNotHave) {
    for (const FrameKind kind : {FrameKind::credit, FrameKind::heartbeat, FrameKind::shutdown}) {
        expect_refused({frame_of(kind, 1)}, "unexpected frame");
        expect_refused({frame_of(kind, 0, 1)}, "unexpected frame");
    }
    expect_refused({frame_of(FrameKind::shutdown, 0, 8)}, "unexpected frame"); // without a reason
    expect_refused({frame_of(FrameKind::shutdown_ack, 0, 4)}, "unexpected frame");
    expect_refused({frame_of(FrameKind::written, 0, 4)}, "unexpected frame");
    expect_refused({frame_of(FrameKind::window)}, "unexpected frame");
    expect_refused({frame_of(FrameKind::window, 1, 4)}, "unexpected frame");
    expect_refused({frame_of(FrameKind::window, 0, 4)}, "0 receives, which is impossible");
    expect_refused({{.kind = 15}}, "unexpected frame");
    expect_refused({frame_of(FrameKind::open)}, "out of turn");
    expect_refused({frame_of(FrameKind::open, 0, 3)}, "malformed open frame", false);
    expect_refused({frame_of(FrameKind::open, 1)}, "unexpected frame", false);
}

TEST_P(SessionProtocol, RefusesWhatDoesNotBeginWithAnOpenFrame) {
    expect_refused({{.kind = 20}}, "did not send an open frame first", false);
    expect_refused({frame_of(FrameKind::heartbeat)}, "did not send an open frame first", false);
}

TEST_P(SessionProtocol, RefusesNewsOfAWriteThatItsServiceDoesNotKnow) {
    accept_options.remote_writes = true;
    expect_refused({frame_of(FrameKind::written, 0, 4)}, "this service takes no remote writes");
}

TEST_P(SessionProtocol, RefusesWhatFollowsAShutdown) {
    expect_refused({frame_of(FrameKind::shutdown), {.kind = 20}}, "after its shutdown");
    expect_refused({frame_of(FrameKind::shutdown), frame_of(FrameKind::shutdown)},
                   "shut down twice");
}

TEST_P(SessionProtocol, RefusesFramesAfterTheConfirmationOfTheEnd) {
    serve();
    far.confirms = false; // otherwise the shutdown would complete
    Impostor impostor{bed.transport(), listener->endpoints().front().address, Service::messages};
    ASSERT_TRUE(bed.run_until([&] { return impostor.connected; }));
    impostor.send_open();
    ASSERT_TRUE(bed.run_until([&] { return far.opened == 1; }));
    far.session->close();
    const auto send = [&](FrameKind kind, std::uint32_t sequence, std::size_t body_bytes = 0) {
        impostor.send_frame({.kind = static_cast<std::uint8_t>(kind), .sequence = sequence},
                            std::vector<std::byte>(body_bytes));
    };
    send(FrameKind::shutdown, 1);
    ASSERT_TRUE(bed.run_until([&] { return far.shut_down == 1; }));
    send(FrameKind::shutdown_ack, 2, 4); // all frames were read
    send(FrameKind::heartbeat, 3);
    ASSERT_TRUE(bed.run_until([&] { return !far.closed.empty(); }));
    EXPECT_THAT(far.closed[0].detail, HasSubstr("sent after it had confirmed the end"));
}

INSTANTIATE_TEST_SUITE_P(Beds, SessionProtocol, all_beds(), bed_name);

// --- a frame that arrives before the connected event -----------------------------------------

TEST(SessionBeforeItIsConnected, TakesAFrameForAProtocolErrorAndNothingWorse) {
    EventLoop loop;
    ScriptedTransport transport{loop};
    for (const bool is_write : {false, true}) {
        End near;
        near.session = std::make_unique<Session>(
            transport, Session::Target{.provider = "scripted", .remote = {}, .local_host = {}},
            Hello{}, SessionOptions{.remote_writes = true}, near);
        ScriptedConnection& connection = *transport.connection;
        connection.bring({.kind = 20}, {},
                         is_write ? Completion::Kind::remote_write : Completion::Kind::receive);
        EXPECT_TRUE(connection.closed);
        connection.end(CloseReason::local);
        ASSERT_EQ(near.closed.size(), 1U);
        EXPECT_EQ(near.closed[0].reason, CloseReason::protocol_error);
        EXPECT_THAT(near.closed[0].detail, HasSubstr("before it had accepted"));
        EXPECT_EQ(near.opened, 0);
    }
}

} // namespace
} // namespace netio::test::session_protocol_test
