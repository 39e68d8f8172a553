// SPDX-License-Identifier: Apache-2.0
#include "netio/session/connector.hpp"

#include "netio/access/auth.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/requester.hpp"
#include "netio/messages/send_socket.hpp"
#include "netio/messages/sender.hpp"
#include "netio/session/client_key.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::test::connector_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Receives routes without connecting.
struct RouteRecorder final : Connector::Handler {
    void on_route(const Session::Target& route) override {
        tried.push_back(route.remote.host + "/" + route.provider);
        at_route();
    }
    void on_connect_failed(const Closed& closed) override {
        failed.push_back(closed);
        at_failed();
    }
    std::vector<std::string> tried;
    std::vector<Closed> failed;
    std::function<void()> at_route = [] {};
    std::function<void()> at_failed = [] {};
};

struct ConnectorTest : testing::Test {
    TestBed bed{Bed::sim_tcp};
    RouteRecorder recorder;
    std::optional<Connector> connector{std::in_place, bed.transport(), recorder};
    Address remote{.host = "daq.example", .port = 1234};

    void connect() { connector->connect(remote); }
    void fail_route(CloseReason reason, const std::string& detail) {
        connector->try_next({.reason = reason, .detail = detail});
    }
};

TEST_F(ConnectorTest, TriesEveryAddressOfAName) {
    bed.sim()->name("daq.example", {"10.0.0.1", "10.0.0.2", "10.0.0.3"});
    recorder.at_route = [&] { fail_route(CloseReason::refused, "no listener"); };
    connect();
    EXPECT_THAT(recorder.tried, IsEmpty()) << "no callback inside the call";
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_THAT(recorder.tried,
                ElementsAre("10.0.0.1/sim-tcp", "10.0.0.2/sim-tcp", "10.0.0.3/sim-tcp"));
    EXPECT_FALSE(connector->is_connecting());
}

// Every socket that connects uses a Connector.
TEST_F(ConnectorTest, RefusesPortZeroOfAnyAddress) {
    EXPECT_THAT(
        [&] {
            connector->connect({remote, {.host = "10.0.0.1", .port = 0}}, {}, nullptr);
        },
        testing::ThrowsMessage<std::invalid_argument>(HasSubstr("'10.0.0.1:0' is not an address")));
    EXPECT_FALSE(connector->is_connecting());
    EXPECT_THROW(Sender{"10.0.0.1:0"}, std::invalid_argument);
    EXPECT_THROW(Requester{"10.0.0.1:0"}, std::invalid_argument);
}

// As in {.publisher = {"10.0.0.1:1234"}}, which is an Address of a host only.
TEST_F(ConnectorTest, RefusesAHostThatContainsItsPort) {
    for (const std::uint16_t port : {std::uint16_t{0}, std::uint16_t{1234}}) {
        const Address wrong{.host = "10.0.0.1:1234", .port = port};
        EXPECT_THAT([&] { connector->connect(wrong); },
                    testing::ThrowsMessage<std::invalid_argument>(
                        HasSubstr("'10.0.0.1:1234' is not a host: it has a port")));
    }
    EXPECT_THROW(connector->connect(Address{.host = "", .port = 1234}), std::invalid_argument);
    EXPECT_FALSE(connector->is_connecting());
}

TEST_F(ConnectorTest, ReportsABrokenKeyFileFromTheLoop) {
    KeyFiles files;
    const std::string file = files.client(7);
    const auto key = std::make_shared<ClientKey>(ClientKey::Options{.file = file});
    access::write_key_file(file, "netio-keys 1\n7 ", true);
    bed.sim()->name("daq.example", {"10.0.0.1"});
    connector->connect({remote}, {}, key);
    EXPECT_THAT(bed.seen().key_file_problems, IsEmpty()) << "no callback inside the call";
    ASSERT_TRUE(bed.run_until([&] { return !recorder.tried.empty(); }));
    EXPECT_THAT(bed.seen().key_file_problems, SizeIs(1));
}

TEST_F(ConnectorTest, TriesAllRoutesToOneAddressBeforeThoseToTheNext) {
    bed.sim()->name("one.example", {"10.0.0.1", "10.0.0.2"});
    bed.sim()->name("nobody.example", {});
    bed.sim()->name("other.example", {"10.0.1.1"});
    recorder.at_route = [&] {
        fail_route(CloseReason::refused, recorder.tried.back() + " refused");
    };
    connector->connect({{.host = "one.example", .port = 1},
                        {.host = "nobody.example", .port = 2},
                        {.host = "other.example", .port = 3}},
                       {}, nullptr);
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_THAT(recorder.tried,
                ElementsAre("10.0.0.1/sim-tcp", "10.0.0.2/sim-tcp", "10.0.1.1/sim-tcp"));
    EXPECT_THAT(recorder.failed.front().detail,
                AllOf(HasSubstr("10.0.0.1/sim-tcp refused; 10.0.0.2/sim-tcp refused"),
                      HasSubstr("nobody.example"), HasSubstr("10.0.1.1/sim-tcp refused")));
}

TEST_F(ConnectorTest, TriesNoFurtherAddressWhenItIsCancelled) {
    recorder.at_route = [&] { connector->cancel(); };
    connector->connect({{.host = "10.0.0.1", .port = 1}, {.host = "10.0.0.2", .port = 2}}, {},
                       nullptr);
    ASSERT_TRUE(bed.run_until([&] { return !recorder.tried.empty(); }));
    bed.loop().run_once(bed.loop().now() + 10s);
    EXPECT_THAT(recorder.tried, SizeIs(1));
    recorder.at_route = [&] { fail_route(CloseReason::refused, "no listener"); };
    connect(); // and the rest of the routes is forgotten
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_THAT(recorder.tried, SizeIs(2));
}

TEST_F(ConnectorTest, ReportsEveryReasonWithTheMostUsefulFirst) {
    bed.sim()->name("daq.example", {"10.0.0.1", "10.0.0.2", "10.0.0.3"});
    recorder.at_route = [&] {
        switch (recorder.tried.size()) {
        case 1:
            return connector->try_next({.reason = CloseReason::refused, .detail = "one refused"});
        case 2:
            return connector->try_next({.reason = CloseReason::rejected,
                                        .detail = "two rejected",
                                        .required_receive_bytes = 4096});
        default:
            return connector->try_next(
                {.reason = CloseReason::unreachable, .detail = "three is far away"});
        }
    };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    const Closed& closed = recorder.failed.front();
    EXPECT_EQ(closed.reason, CloseReason::rejected);
    EXPECT_EQ(closed.required_receive_bytes, 4096U);
    EXPECT_EQ(closed.detail, "one refused; two rejected; three is far away");
}

TEST_F(ConnectorTest, ANameThatDoesNotResolveIsUnreachable) {
    bed.sim()->name("daq.example", {});
    connect();
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_EQ(recorder.failed.front().reason, CloseReason::unreachable);
    EXPECT_THAT(recorder.failed.front().detail, HasSubstr("daq.example"));
}

TEST_F(ConnectorTest, ARouteThatCannotBeTriedIsOneMoreReason) {
    bed.sim()->name("daq.example", {"10.0.0.1", "10.0.0.2"});
    recorder.at_route = [&] {
        if (recorder.tried.size() == 1) {
            throw FabricError{{EMFILE, std::system_category()}, "cannot open an endpoint"};
        }
        fail_route(CloseReason::refused, "no listener");
    };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_THAT(recorder.failed.front().detail,
                AllOf(HasSubstr("cannot open an endpoint"), HasSubstr("no listener")));
}

TEST_F(ConnectorTest, TheLoopGoesOnWhileANameIsResolved) {
    bed.sim()->delay_resolution(30s);
    int ticks = 0;
    Timer tick{bed.loop(), [&] {
                   ++ticks;
                   tick.start(1s);
               }};
    tick.start(1s);
    recorder.at_route = [&] { connector->cancel(); };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return !recorder.tried.empty(); }));
    EXPECT_GE(ticks, 29);
}

TEST_F(ConnectorTest, NothingFollowsWhenItIsCancelled) {
    bed.sim()->delay_resolution(1s);
    connect();
    connector->cancel();
    EXPECT_FALSE(connector->is_connecting());
    bed.loop().run_once(bed.loop().now() + 10s);
    EXPECT_THAT(recorder.tried, IsEmpty());
    EXPECT_THAT(recorder.failed, IsEmpty());
    recorder.at_route = [&] { connector->cancel(); };
    connect(); // a new attempt is possible
    ASSERT_TRUE(bed.run_until([&] { return !recorder.tried.empty(); }));
}

TEST_F(ConnectorTest, NothingFollowsWhenItIsDestroyedWhileANameIsResolved) {
    bed.sim()->delay_resolution(1s);
    connect();
    connector.reset();
    bed.loop().run_once(bed.loop().now() + 10s);
    EXPECT_THAT(recorder.tried, IsEmpty());
}

TEST_F(ConnectorTest, MayBeDestroyedInItsHandlers) {
    recorder.at_route = [&] { connector.reset(); };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return !connector; }));
    connector.emplace(bed.transport(), recorder);
    recorder.at_route = [&] {
        connector.reset();
        throw FabricError{{EMFILE, std::system_category()}, "cannot open an endpoint"};
    };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return !connector; }));
    connector.emplace(bed.transport(), recorder);
    recorder.at_route = [&] { fail_route(CloseReason::refused, "no listener"); };
    recorder.at_failed = [&] { connector.reset(); };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return !connector; }));
    EXPECT_THAT(recorder.failed, SizeIs(1));
}

TEST_F(ConnectorTest, MayConnectAgainWhenItHasFailed) {
    recorder.at_route = [&] { fail_route(CloseReason::refused, "no listener"); };
    recorder.at_failed = [&] {
        if (recorder.failed.size() == 1) connect();
    };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return recorder.failed.size() == 2; }));
    EXPECT_EQ(recorder.failed.back().detail, "no listener") << "only the last error";
}

TEST_F(ConnectorTest, CloseDuringTheSearchReportsLocal) {
    bed.sim()->delay_resolution(1s);
    connect();
    connector->close();
    EXPECT_THAT(recorder.failed, IsEmpty());
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_EQ(recorder.failed.front().reason, CloseReason::local);
    EXPECT_THAT(recorder.tried, IsEmpty());
}

// --- in use -----------------------------------------------------------------------------------

struct Nothing final : ListenSocket::Handler {
    void on_connected(ReceiveSocket&) override {}
    void on_message(ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {}
    void on_closed(ReceiveSocket&, const Closed&) override {}
};

struct Sender final : SendSocket::Handler {
    void on_connected(SendSocket&) override { ++connected; }
    void on_send_completed(SendSocket&, Cookie, Completion::Outcome) override {}
    void on_writable(SendSocket&) override {}
    void on_closed(SendSocket&, const Closed& why) override { closed.push_back(why); }
    int connected = 0;
    std::vector<Closed> closed;
};

TEST_F(ConnectorTest, ASendSocketFindsTheAddressAtWhichItsPeerListens) {
    Nothing nothing;
    const ListenSocket listener{
        bed.transport(),
        {.listen = {{.host = "10.0.0.2", .port = 0}}, .allow_remote_anonymous = true},
        nothing};
    bed.sim()->name("daq.example", {"10.0.0.1", "10.0.0.2"});
    Sender sender;
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect({.host = "daq.example", .port = listener.endpoints().front().address.port});
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    EXPECT_THAT(sender.closed, IsEmpty());
}

TEST_F(ConnectorTest, ASendSocketReportsWhyNoAddressWorked) {
    bed.sim()->name("daq.example", {"10.0.0.1", "10.0.0.2"});
    Sender sender;
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect(remote);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed.front().reason, CloseReason::refused);
    EXPECT_THAT(sender.closed.front().detail, AllOf(HasSubstr("10.0.0.1"), HasSubstr("10.0.0.2")));
}

TEST_F(ConnectorTest, ASendSocketMayBeDisconnectedWhileItsNameIsResolved) {
    bed.sim()->delay_resolution(1s);
    Sender sender;
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect(remote);
    socket.close();
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
    EXPECT_EQ(sender.closed.front().reason, CloseReason::local);
    EXPECT_EQ(sender.connected, 0);
}

// A connector that is closed or cancelled between two routes forgets all earlier attempts.

struct RouteLog final : Connector::Handler {
    void on_route(const Session::Target& route) override {
        tried.push_back(route.remote.host);
        at_route(route);
    }
    void on_connect_failed(const Closed& closed) override { failed.push_back(closed); }

    std::vector<std::string> tried;
    std::vector<Closed> failed;
    std::function<void(const Session::Target&)> at_route = [](const Session::Target&) {};
};

class ConnectorEnd : public testing::Test {
  protected:
    void connect(const std::vector<std::string>& hosts,
                 std::shared_ptr<const ClientKey> key = nullptr) {
        std::vector<Address> remotes;
        for (const std::string& host : hosts)
            remotes.push_back({.host = host, .port = 1234});
        connector.connect(std::move(remotes), {}, std::move(key));
    }
    void refuse() { connector.try_next({.reason = CloseReason::refused, .detail = "no listener"}); }
    std::shared_ptr<const ClientKey> key() {
        return std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
    }
    bool has_tried(std::size_t count) {
        return bed.run_until([&] { return recorder.tried.size() == count; });
    }
    void expect_local() {
        ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
        expect_nothing_more();
        ASSERT_THAT(recorder.failed, SizeIs(1));
        EXPECT_EQ(recorder.failed[0].reason, CloseReason::local);
        EXPECT_EQ(recorder.failed[0].detail, "closed before it was connected");
        EXPECT_FALSE(connector.is_connecting());
    }
    void expect_nothing_more() {
        const std::size_t tried = recorder.tried.size();
        const std::size_t failed = recorder.failed.size();
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(30s);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
        EXPECT_EQ(recorder.tried.size(), tried);
        EXPECT_EQ(recorder.failed.size(), failed);
    }

    TestBed bed{Bed::sim_tcp};
    KeyFiles files;
    RouteLog recorder;
    Connector connector{bed.transport(), recorder};
};

TEST_F(ConnectorEnd, CloseDuringTheSearchReportsLocalAfterFailures) {
    recorder.at_route = [&](const Session::Target&) {
        bed.sim()->delay_resolution(10s); // of the second address
        refuse();
    };
    connect({"10.0.0.1", "10.0.0.2", "10.0.0.3"});
    ASSERT_TRUE(has_tried(1));
    bed.loop().run_once();
    connector.close();
    EXPECT_TRUE(connector.is_connecting()) << "until the callback";
    connector.close();
    EXPECT_THAT(recorder.failed, IsEmpty()) << "no callback inside the call";
    expect_local();
    EXPECT_THAT(recorder.tried, SizeIs(1));
}

TEST_F(ConnectorEnd, ClosedBetweenTwoRoutesTriesNoOther) {
    bed.sim()->name("daq.example", {"10.0.0.1", "10.0.0.2"});
    recorder.at_route = [&](const Session::Target&) {
        refuse();
        connector.close();
    };
    connect({"daq.example"});
    expect_local();
    EXPECT_THAT(recorder.tried, SizeIs(1));
}

TEST_F(ConnectorEnd, CancelBetweenTwoRoutesReportsNothing) {
    for (const std::vector<std::string>& hosts :
         {std::vector<std::string>{"10.0.0.1"}, {"10.0.0.1", "10.0.0.2"}}) {
        recorder.tried.clear();
        recorder.at_route = [&](const Session::Target&) {
            refuse();
            connector.cancel();
        };
        connect(hosts);
        ASSERT_TRUE(has_tried(1));
        expect_nothing_more();
        EXPECT_THAT(recorder.failed, IsEmpty());
    }
}

TEST_F(ConnectorEnd, CancelAndAnExceptionInTheHandlerEndIt) {
    recorder.at_route = [&](const Session::Target&) {
        connector.cancel();
        throw FabricError{{EMFILE, std::system_category()}, "cannot open an endpoint"};
    };
    connect({"10.0.0.1", "10.0.0.2"});
    ASSERT_TRUE(has_tried(1));
    expect_nothing_more();
    EXPECT_THAT(recorder.failed, IsEmpty());
}

// The authentication has requested another attempt, which is no longer wanted.
TEST_F(ConnectorEnd, CancelledBeforeItTriesARouteOnceMoreBeginsWithTheNextAddress) {
    recorder.at_route = [&](const Session::Target& route) {
        const std::vector<std::byte> challenge(access::auth_challenge_bytes);
        ASSERT_EQ(route.auth->take_challenge(challenge), access::AuthClient::Next::again);
        refuse();
        connector.cancel();
    };
    connect({"10.0.0.1"}, key());
    ASSERT_TRUE(has_tried(1));
    recorder.at_route = [&](const Session::Target&) { refuse(); };
    connect({"10.0.0.2"}, key());
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_THAT(recorder.tried, ElementsAre("10.0.0.1", "10.0.0.2"));
}

TEST_F(ConnectorEnd, CancelledKeepsNothingOfTheKey) {
    std::weak_ptr<access::AuthClient> gate;
    recorder.at_route = [&](const Session::Target& route) { gate = route.auth; };
    connect({"10.0.0.1"}, key());
    ASSERT_TRUE(has_tried(1));
    EXPECT_FALSE(gate.expired()) << "needed for another attempt";
    connector.cancel();
    EXPECT_TRUE(gate.expired());
}

TEST_F(ConnectorEnd, TheAddressToConnectFromIsThatOfEveryRoute) {
    std::vector<std::string> from;
    recorder.at_route = [&](const Session::Target& route) {
        from.push_back(route.local_host);
        refuse();
    };
    connector.connect({{.host = "10.0.0.1", .port = 1}, {.host = "10.0.0.2", .port = 2}},
                      "10.1.1.1", nullptr);
    ASSERT_TRUE(bed.run_until([&] { return !recorder.failed.empty(); }));
    EXPECT_THAT(from, ElementsAre("10.1.1.1", "10.1.1.1"));
}

} // namespace
} // namespace netio::test::connector_test
