// SPDX-License-Identifier: Apache-2.0

// A mistake in a key file or an option is reported when the file or option is set, and then nothing
// listens or connects.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_listener.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/test_bed.hpp"

#include "netio/loop/event_loop.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>

#include <functional>
#include <stdexcept>

namespace netio::test::key_setup_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string problem_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "nothing was thrown";
}

struct KeySetup : testing::Test {
    std::string serve(ServerKeys::Options options) {
        return problem_of([&] { ServerKeys{loop, options}; });
    }
    static std::string show(const ClientKey::Options& options) {
        return problem_of([&] { ClientKey{options}; });
    }
    EventLoop loop;
    KeyFiles files;
};

TEST_F(KeySetup, NamesAFileThatIsMissing) {
    EXPECT_THAT(serve({.file = files.site() + ".none"}), HasSubstr("site.keys.none"));
    EXPECT_THAT(show({.file = files.site() + ".none"}), HasSubstr("site.keys.none"));
}

TEST_F(KeySetup, NamesAFileThatOthersCanRead) {
    files.permit(7, "services=all");
    const std::string client = files.client(7);
    ASSERT_EQ(::chmod(files.site().c_str(), 0644), 0);
    ASSERT_EQ(::chmod(client.c_str(), 0640), 0);
    EXPECT_THAT(serve({.file = files.site()}), AllOf(HasSubstr("site.keys"), HasSubstr("chmod")));
    EXPECT_THAT(show({.file = client}), AllOf(HasSubstr("client7.key"), HasSubstr("chmod")));
}

TEST_F(KeySetup, NamesAFileThatIsTorn) {
    files.spoil();
    EXPECT_THAT(serve({.file = files.site()}), HasSubstr("site.keys:2"));
}

TEST_F(KeySetup, TakesNoFileOfSeveralKeysOrOfNoneForAClient) {
    EXPECT_THAT(show({.file = files.site()}), HasSubstr("it must hold one key"));
    files.permit_anyone("services=all");
    EXPECT_THAT(show({.file = files.site()}), HasSubstr("it must hold one key"));
    files.permit(7, "services=all");
    files.permit(8, "services=all");
    EXPECT_THAT(show({.file = files.site()}), HasSubstr("it must hold one key"));
}

TEST_F(KeySetup, ChecksItsNumbers) {
    EXPECT_THAT(serve({.file = files.site(), .connections_per_host = 0}),
                HasSubstr("connections_per_host"));
    EXPECT_THAT(serve({.file = files.site(), .look_interval = std::chrono::milliseconds{0}}),
                HasSubstr("look_interval"));
    ServerKeys::Options translated{.file = files.site()};
    for (const Address& wrong : {Address{"publisher.example", 1}, Address{"10.0.0.1", 0}}) {
        translated.advertised_addresses = {wrong};
        EXPECT_THAT(serve(translated), HasSubstr("advertised_addresses: " + wrong.host));
    }
}

// The zone names an interface of one side and is not part of what the other side proves.
TEST_F(KeySetup, TakesAnAddressThatIsDialledWithItsZone) {
    files.permit(7, "services=all");
    EXPECT_EQ(serve({.file = files.site(), .advertised_addresses = {{"fe80::1%eth0", 1}}}),
              "nothing was thrown");
}

// Each loop has its own thread, and keys are not thread-safe.
TEST_F(KeySetup, TakesNoKeysOfAnotherLoop) {
    struct Nobody final : SessionListener::Handler {
        void on_incoming(IncomingSession&) override {}
    } nobody;
    TestBed bed{Bed::sim_tcp};
    const auto listen = [&](EventLoop& of) {
        const auto keys =
            std::make_shared<ServerKeys>(of, ServerKeys::Options{.file = files.site()});
        SessionListener{bed.transport(),
                        {.listen = {bed.address()},
                         .allow_remote_anonymous = true,
                         .service_bytes = 4,
                         .keys = keys},
                        nobody};
    };
    EXPECT_THAT(problem_of([&] { listen(loop); }),
                AllOf(HasSubstr("another event loop"), HasSubstr("for each loop")));
    EXPECT_NO_THROW(listen(bed.loop()));
}

} // namespace
} // namespace netio::test::key_setup_test
