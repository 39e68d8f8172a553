// SPDX-License-Identifier: Apache-2.0
#include "apps/etcd/etcd_registry.hpp"

#include "pubsub/discovery/registry.hpp"
#include "tests/support/liar.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace apps::etcd_client_test {
namespace {

using netio::test::Liar;
using std::chrono::milliseconds;
using testing::HasSubstr;

std::string problem_with(const Liar& server, const EtcdClient::Limits& limits) {
    EtcdClient client{EtcdPlace{.address = server.address()}, limits};
    try {
        client.ask("/v3/kv/range", nlohmann::json::object());
    } catch (const netio::pubsub::RegistryError& error) {
        return error.what();
    }
    return "none";
}

TEST(EtcdClient, AnAnswerHasALength) {
    const Liar server{
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n" + std::string(65536, 'x'), true};
    EXPECT_THAT(
        problem_with(server, {.answer_bytes = 1 << 20, .answer_time = std::chrono::hours{1}}),
        HasSubstr("more than 1048576 bytes"));
}

std::string answering(const std::string& status, const std::string& body) {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

// A short text with many values or many levels would become a document of gigabytes.
TEST(EtcdClient, AnAnswerHasAsManyValuesAndLevelsAsItsLimits) {
    const EtcdClient::Limits limits{.answer_depth = 3, .answer_values = 10};
    const auto problem = [&](const std::string& body) {
        const Liar server{answering("200 OK", body), false};
        return problem_with(server, limits);
    };
    EXPECT_EQ(problem(R"({"kvs":[[]]})"), "none");
    EXPECT_THAT(problem(R"({"kvs":[[[]]]})"), HasSubstr("nested deeper than 3 levels"));
    EXPECT_EQ(problem(R"({"kvs":[1,2,3,4,5,6,7,8]})"), "none");
    EXPECT_THAT(problem(R"({"kvs":[1,2,3,4,5,6,7,8,9]})"), HasSubstr("more than 10 values"));
    EXPECT_THAT(problem(R"({"kvs":)"), HasSubstr("it is not JSON"));
}

TEST(EtcdClient, ARefusalIsTheServersStatusWhateverItsBody) {
    const Liar proxy{answering("502 Bad Gateway", "<html>no</html>"), false};
    EXPECT_THAT(problem_with(proxy, {}), testing::EndsWith("answers 502"));
    const Liar etcd{answering("500 Internal Server Error", R"({"message":"no space"})"), false};
    EXPECT_THAT(problem_with(etcd, {}), testing::EndsWith("answers 500 (no space)"));
}

// Header lines of an answer, without end.
TEST(EtcdClient, AnAnswerHasATimeHoweverMuchComes) {
    const Liar server{"HTTP/1.1 200 OK\r\n", true};
    EXPECT_THAT(problem_with(server, {.answer_time = milliseconds{50}}), HasSubstr("in time"));
}

TEST(EtcdClient, AWatchHasATimeLimitHoweverMuchComes) {
    const Liar server{"HTTP/1.1 200 OK\r\n", true};
    EtcdClient client{EtcdPlace{.address = server.address()}, {.answer_time = milliseconds{50}}};
    int taken = 0;
    client.listen("/v3/watch", nlohmann::json::object(), milliseconds{10},
                  [&](const nlohmann::json&) { return ++taken > 0; });
    EXPECT_EQ(taken, 0);
}

// --- the password ---------------------------------------------------------------------------

class EtcdPassword : public testing::Test {
  protected:
    std::string problem_with_mode(mode_t mode) {
        std::ofstream{file_} << "daq:secret\n";
        ::chmod(file_.c_str(), mode);
        const Liar server{answering("403 Forbidden", R"({"message":"no"})"), false};
        EtcdClient client{EtcdPlace{.address = server.address(), .user_file = file_}};
        try {
            client.ask("/v3/kv/range", nlohmann::json::object());
        } catch (const netio::pubsub::RegistryError& error) {
            return error.what();
        }
        return "none";
    }

    netio::test::TemporaryFolder folder_;
    const std::string file_ = (folder_.path() / "user").string();
};

TEST_F(EtcdPassword, IsReadOnlyFromAPrivateFile) {
    for (const mode_t mode : {0600U, 0400U})
        EXPECT_THAT(problem_with_mode(mode), HasSubstr("rejects the user")) << "it was sent";
    for (const mode_t mode : {0666U, 0640U, 0604U, 0620U, 0601U}) {
        EXPECT_THAT(problem_with_mode(mode),
                    testing::AllOf(HasSubstr(file_ + ": others have access to it (mode"),
                                   HasSubstr("chmod 600")));
    }
    ::unlink(file_.c_str());
    EtcdClient client{EtcdPlace{.address = {"127.0.0.1", 1}, .user_file = file_}};
    EXPECT_THROW(client.ask("/", {}), netio::pubsub::RegistryError) << "no such server";
}

TEST(EtcdPasswordDeathTest, ItsMemoryIsNotDumped) {
    const auto look = [] {
        const EtcdClient without{EtcdPlace{.address = {"127.0.0.1", 1}}};
        const bool dumped = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
        const EtcdClient client{EtcdPlace{.address = {"127.0.0.1", 1}, .user_file = "user"}};
        std::_Exit(dumped && ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 1);
    };
    EXPECT_EXIT(look(), testing::ExitedWithCode(0), "");
}

TEST(EtcdPlaceWarning, IsOfAPasswordThatLeavesTheMachineUnencrypted) {
    const auto warning = [](const char* place) { return warning_about(parse_etcd_place(place)); };
    EXPECT_EQ(warning("etcd://daq-1:2379?user=/f"),
              "the password in '/f' is sent unencrypted to etcd at daq-1:2379; use etcds:// "
              "(TLS)");
    EXPECT_NE(warning("etcd://10.0.0.1:2379?user=/f"), "");
    EXPECT_NE(warning("etcd://[fe80::1]:2379?user=/f"), "");
    for (const char* const quiet :
         {"etcd://daq-1:2379", "etcds://daq-1:2379?user=/f", "etcd://127.0.0.1:2379?user=/f",
          "etcd://[::1]:2379?user=/f", "etcd://localhost:2379?user=/f"})
        EXPECT_EQ(warning(quiet), "") << quiet;
}

} // namespace
} // namespace apps::etcd_client_test
