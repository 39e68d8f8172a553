// SPDX-License-Identifier: Apache-2.0

// A connector that is closed or cancelled between two routes has forgotten all that was before.

#include "netio/access/gate_client.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/connector.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

struct Trier final : Connector::Handler {
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
    void refuse() {
        connector.try_next({.reason = CloseReason::refused, .detail = "nobody there"});
    }
    std::shared_ptr<const ClientKey> key() {
        return std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
    }
    bool has_tried(std::size_t count) {
        return bed.run_until([&] { return trier.tried.size() == count; });
    }
    void expect_local() {
        ASSERT_TRUE(bed.run_until([&] { return !trier.failed.empty(); }));
        expect_nothing_more();
        ASSERT_THAT(trier.failed, SizeIs(1));
        EXPECT_EQ(trier.failed[0].reason, CloseReason::local);
        EXPECT_EQ(trier.failed[0].detail, "closed before it was connected");
        EXPECT_FALSE(connector.is_connecting());
    }
    void expect_nothing_more() {
        const std::size_t tried = trier.tried.size();
        const std::size_t failed = trier.failed.size();
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(30s);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
        EXPECT_EQ(trier.tried.size(), tried);
        EXPECT_EQ(trier.failed.size(), failed);
    }

    TestBed bed{Bed::sim_tcp};
    KeyFiles files;
    Trier trier;
    Connector connector{bed.transport(), trier};
};

TEST_F(ConnectorEnd, ClosedWhileItSearchesIsToldLocalWhateverHasFailedBefore) {
    trier.at_route = [&](const Session::Target&) {
        bed.sim()->delay_resolution(10s); // of the second
        refuse();
    };
    connect({"10.0.0.1", "10.0.0.2", "10.0.0.3"});
    ASSERT_TRUE(has_tried(1));
    bed.loop().run_once();
    connector.close();
    EXPECT_TRUE(connector.is_connecting()) << "until it is told";
    connector.close();
    EXPECT_THAT(trier.failed, IsEmpty()) << "a call never calls back";
    expect_local();
    EXPECT_THAT(trier.tried, SizeIs(1));
}

TEST_F(ConnectorEnd, ClosedBetweenTwoRoutesTriesNoOther) {
    bed.sim()->name("daq.example", {"10.0.0.1", "10.0.0.2"});
    trier.at_route = [&](const Session::Target&) {
        refuse();
        connector.close();
    };
    connect({"daq.example"});
    expect_local();
    EXPECT_THAT(trier.tried, SizeIs(1));
}

TEST_F(ConnectorEnd, CancelledBetweenTwoRoutesIsToldNothing) {
    for (const std::vector<std::string>& hosts :
         {std::vector<std::string>{"10.0.0.1"}, {"10.0.0.1", "10.0.0.2"}}) {
        trier.tried.clear();
        trier.at_route = [&](const Session::Target&) {
            refuse();
            connector.cancel();
        };
        connect(hosts);
        ASSERT_TRUE(has_tried(1));
        expect_nothing_more();
        EXPECT_THAT(trier.failed, IsEmpty());
    }
}

TEST_F(ConnectorEnd, WhoCancelsItAndThrowsHasNotAskedForMore) {
    trier.at_route = [&](const Session::Target&) {
        connector.cancel();
        throw FabricError{{EMFILE, std::system_category()}, "cannot open an endpoint"};
    };
    connect({"10.0.0.1", "10.0.0.2"});
    ASSERT_TRUE(has_tried(1));
    expect_nothing_more();
    EXPECT_THAT(trier.failed, IsEmpty());
}

// The gate of the route has asked for another attempt, which nobody wants any more.
TEST_F(ConnectorEnd, CancelledBeforeItTriesARouteOnceMoreBeginsWithTheNextAddress) {
    trier.at_route = [&](const Session::Target& route) {
        const std::vector<std::byte> challenge(access::gate_challenge_bytes);
        ASSERT_EQ(route.gate->take_challenge(challenge), access::GateClient::Next::again);
        refuse();
        connector.cancel();
    };
    connect({"10.0.0.1"}, key());
    ASSERT_TRUE(has_tried(1));
    trier.at_route = [&](const Session::Target&) { refuse(); };
    connect({"10.0.0.2"}, key());
    ASSERT_TRUE(bed.run_until([&] { return !trier.failed.empty(); }));
    EXPECT_THAT(trier.tried, ElementsAre("10.0.0.1", "10.0.0.2"));
}

TEST_F(ConnectorEnd, CancelledKeepsNothingOfTheKey) {
    std::weak_ptr<access::GateClient> gate;
    trier.at_route = [&](const Session::Target& route) { gate = route.gate; };
    connect({"10.0.0.1"}, key());
    ASSERT_TRUE(has_tried(1));
    EXPECT_FALSE(gate.expired()) << "for another attempt";
    connector.cancel();
    EXPECT_TRUE(gate.expired());
}

TEST_F(ConnectorEnd, TheAddressToConnectFromIsThatOfEveryRoute) {
    std::vector<std::string> from;
    trier.at_route = [&](const Session::Target& route) {
        from.push_back(route.local_host);
        refuse();
    };
    connector.connect({{.host = "10.0.0.1", .port = 1}, {.host = "10.0.0.2", .port = 2}},
                      "10.1.1.1", nullptr);
    ASSERT_TRUE(bed.run_until([&] { return !trier.failed.empty(); }));
    EXPECT_THAT(from, ElementsAre("10.1.1.1", "10.1.1.1"));
}

} // namespace
} // namespace netio::test
