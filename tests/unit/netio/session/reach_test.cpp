// SPDX-License-Identifier: Apache-2.0

// Nobody listens where other machines reach it unless that was meant.

#include "netio/fabric.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_listener.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace netio {
namespace {

using test::Bed;
using test::TestBed;
using testing::HasSubstr;

class Reach : public testing::TestWithParam<Bed>, private SessionListener::Handler {
  protected:
    std::unique_ptr<SessionListener> listen(const std::vector<Address>& addresses, bool open,
                                            std::shared_ptr<ServerKeys> keys = nullptr) {
        return std::make_unique<SessionListener>(
            bed.transport(),
            SessionListener::Options{.service = Service::messages,
                                     .addresses = addresses,
                                     .open = open,
                                     .service_bytes = 4,
                                     .keys = std::move(keys)},
            static_cast<SessionListener::Handler&>(*this));
    }
    // Empty: it listened.
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
    EXPECT_THAT(problem,
                HasSubstr("say open (--open; in YAML `open: true`; in C++ `.open = true`)"));
    const auto meant = listen({{.host = "0.0.0.0", .port = 0}}, true);
    EXPECT_NE(meant->endpoints().at(0).address.port, 0);
}

TEST_P(Reach, WhoLetsAnyoneInHasToSaySo) {
    test::KeyFiles files;
    files.permit(7, "services=messages");
    const auto problem_with_keys = [&](access::Protection least) -> std::string {
        const auto keys = std::make_shared<ServerKeys>(
            bed.loop(), ServerKeys::Options{.file = files.site(), .least = least});
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
                HasSubstr("a key file that has no line `0 anyone`"));
    EXPECT_EQ(problem_with_keys(access::Protection::peers), "") << "nobody comes without a key";
}

TEST_P(Reach, ALineThatLetsAnyoneInLaterIsTold) {
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
        files.revoke(7); // so that there is something to wait for
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

TEST(Reach, OfANameIsThatOfTheAddressItStandsFor) {
    EventLoop loop;
    const auto transport = open_fabric(loop, {.provider = "tcp"});
    struct Nobody final : Listener::Handler {
        void on_request(ConnectionRequest&) override {}
    } nobody;
    const auto listener =
        transport->listen("tcp", {.host = "localhost", .port = 0}, ListenOptions{}, nobody);
    EXPECT_NE(listener->address().port, 0);
}

TEST(Reach, DoesNotMatterWhereWhoComesIsAskedForAKey) {
    TestBed bed{Bed::fabric_tcp};
    struct Nobody final : Listener::Handler {
        void on_request(ConnectionRequest&) override {}
    } nobody;
    const Address any{.host = "0.0.0.0", .port = 0};
    EXPECT_THROW(bed.transport().listen("tcp", any, {}, nobody), std::invalid_argument);
    EXPECT_NE(bed.transport().listen("tcp", any, {.has_keys = true}, nobody), nullptr);
}

} // namespace
} // namespace netio
