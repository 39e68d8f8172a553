// SPDX-License-Identifier: Apache-2.0
#include "apps/etcd/etcd_client.hpp"

#include "pubsub/discovery/board.hpp"
#include "tests/support/liar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace apps {
namespace {

using netio::test::Liar;
using std::chrono::milliseconds;
using testing::HasSubstr;

std::string problem_with(const Liar& server, const EtcdClient::Limits& limits) {
    EtcdClient client{EtcdPlace{.address = server.address()}, limits};
    try {
        client.ask("/v3/kv/range", nlohmann::json::object());
    } catch (const netio::pubsub::BoardError& error) {
        return error.what();
    }
    return "none";
}

TEST(EtcdClient, AnAnswerHasALength) {
    const Liar server{
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n" + std::string(65536, 'x'), true};
    EXPECT_THAT(
        problem_with(server, {.answer_bytes = 1 << 20, .answer_time = std::chrono::hours{1}}),
        HasSubstr("too long"));
}

// Lines in front of an answer, more and more of them.
TEST(EtcdClient, AnAnswerHasATimeHoweverMuchComes) {
    const Liar server{"HTTP/1.1 200 OK\r\n", true};
    EXPECT_THAT(problem_with(server, {.answer_time = milliseconds{50}}), HasSubstr("in time"));
}

TEST(EtcdClient, WhatIsToldOfChangesHasATimeHoweverMuchComes) {
    const Liar server{"HTTP/1.1 200 OK\r\n", true};
    EtcdClient client{EtcdPlace{.address = server.address()}, {.answer_time = milliseconds{50}}};
    int taken = 0;
    client.listen("/v3/watch", nlohmann::json::object(), milliseconds{10},
                  [&](const nlohmann::json&) { return ++taken > 0; });
    EXPECT_EQ(taken, 0);
}

} // namespace
} // namespace apps
