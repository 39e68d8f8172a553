// SPDX-License-Identifier: Apache-2.0
#include "netio/session/session_options.hpp"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

namespace netio::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

void expect_refused(const SessionOptions& options, const std::string& name) {
    try {
        validate(options);
        ADD_FAILURE() << name << " was accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr(name));
    }
}

TEST(SessionOptions, AreGoodAsTheyCome) {
    EXPECT_NO_THROW(validate(SessionOptions{}));
    EXPECT_NO_THROW(validate({.heartbeat = 0ms, .dead_after = 0ms}));
    EXPECT_NO_THROW(validate({.heartbeat = 0ms, .dead_after = 5s}));
    EXPECT_NO_THROW(validate({.connect_timeout = std::chrono::hours{24 * 365}}));
}

TEST(SessionOptions, ThatAreWrongAreNamed) {
    expect_refused({.receive_bytes = 255}, "receive_bytes");
    expect_refused({.receive_count = 3}, "receive_count");
    expect_refused({.send_count = 1}, "send_count");
    expect_refused({.heartbeat = 65536ms}, "heartbeat");
    expect_refused({.heartbeat = 5s, .dead_after = 9s}, "dead_after");
    expect_refused({.connect_timeout = 0ms}, "connect_timeout");
    expect_refused({.handshake_timeout = -1ms}, "handshake_timeout");
    expect_refused({.close_timeout = 0ms}, "close_timeout");
    expect_refused({.close_timeout = 2s, .close_limit = 1s}, "close_limit");
}

TEST(SessionOptions, ATimeOutThatNobodyLivesToSeeIsRefusedAndTheLongestNamed) {
    constexpr auto for_ever = std::chrono::milliseconds::max();
    expect_refused({.dead_after = for_ever}, "31536000000 ms");
    expect_refused({.connect_timeout = for_ever},
                   "connect_timeout must be from 1 to 31536000000 ms");
    expect_refused({.handshake_timeout = for_ever}, "handshake_timeout");
    expect_refused({.close_limit = for_ever}, "close_limit");
}

} // namespace
} // namespace netio::test
