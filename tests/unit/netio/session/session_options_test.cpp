// SPDX-License-Identifier: Apache-2.0
#include "netio/session/session_options.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace netio::test::session_options_test {
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
    expect_refused({.receive_buffer_bytes = 255}, "receive_buffer_bytes");
    expect_refused({.receive_count = 3}, "receive_count");
    expect_refused({.send_count = 1}, "send_count");
    expect_refused({.heartbeat = 65536ms}, "heartbeat");
    expect_refused({.heartbeat = 5s, .dead_after = 9s}, "dead_after");
    expect_refused({.connect_timeout = 0ms}, "connect_timeout");
    expect_refused({.handshake_timeout = -1ms}, "handshake_timeout");
    expect_refused({.close_timeout = 0ms}, "close_timeout");
    expect_refused({.close_timeout = 2s, .close_limit = 1s}, "close_limit");
}

// The minimum and the maximum of each option, and their neighbours.
TEST(SessionOptions, HaveTheDocumentedLimits) {
    constexpr std::chrono::milliseconds year = std::chrono::hours{24 * 365};
    const auto expect = [](bool good, const SessionOptions& options, const std::string& name) {
        if (good) {
            EXPECT_NO_THROW(validate(options)) << name;
        } else {
            expect_refused(options, name);
        }
    };
    for (const auto& [value, good] :
         {std::pair{255UL, false}, {256, true}, {UINT32_MAX, true}, {1UL << 32U, false}})
        expect(good, {.receive_buffer_bytes = value}, "receive_buffer_bytes");
    for (const auto& [value, good] :
         {std::pair{3UL, false}, {4, true}, {16384, true}, {16385, false}})
        expect(good, {.receive_count = value}, "receive_count");
    for (const auto& [value, good] :
         {std::pair{1UL, false}, {2, true}, {1024, true}, {1025, false}})
        expect(good, {.send_count = value}, "send_count");
    for (const auto& [value, good] :
         {std::pair{-1ms, false}, {0ms, true}, {65535ms, true}, {65536ms, false}})
        expect(good, {.heartbeat = value, .dead_after = 0ms}, "heartbeat");
    for (const auto& [value, good] : {std::pair{-1ms, false},
                                      {0ms, true},
                                      {3ms, false},
                                      {4ms, true},
                                      {year, true},
                                      {year + 1ms, false}})
        expect(good, {.heartbeat = 0ms, .dead_after = value}, "dead_after");
    expect(true, {.heartbeat = 5s, .dead_after = 10s}, "dead_after");
    expect(false, {.heartbeat = 5s, .dead_after = 10s - 1ms}, "dead_after");
    for (const auto& [value, good] :
         {std::pair{0ms, false}, {1ms, true}, {year, true}, {year + 1ms, false}}) {
        expect(good, {.connect_timeout = value}, "connect_timeout");
        expect(good, {.handshake_timeout = value}, "handshake_timeout");
        expect(good, {.close_timeout = value, .close_limit = std::max(1ms, std::min(value, year))},
               "close_timeout");
        expect(good, {.close_timeout = 1ms, .close_limit = value}, "close_limit");
    }
    expect(true, {.close_timeout = 2s, .close_limit = 2s}, "close_limit");
    expect(false, {.close_timeout = 2s, .close_limit = 2s - 1ms}, "close_limit");
}

TEST(SessionOptions, ATooLongTimeOutIsRefusedWithTheMaximum) {
    constexpr auto for_ever = std::chrono::milliseconds::max();
    expect_refused({.dead_after = for_ever}, "31536000000 ms");
    expect_refused(
        {.connect_timeout = for_ever},
        "connect_timeout is 9223372036854775807 ms; it must be from 1 to 31536000000 ms");
    expect_refused({.handshake_timeout = for_ever}, "handshake_timeout");
    expect_refused({.close_limit = for_ever}, "close_limit");
}

TEST(SessionOptions, BytesPerKeyHaveAMinimumAndAMaximum) {
    constexpr std::uint64_t most = std::uint64_t{1} << 34U;
    for (const std::uint64_t good : {std::uint64_t{1}, most})
        EXPECT_NO_THROW(validate({.rekey_after_bytes = good})) << good;
    for (const std::uint64_t wrong : {std::uint64_t{0}, most + 1})
        expect_refused({.rekey_after_bytes = wrong},
                       "rekey_after_bytes must be from 1 to 17179869184");
}

} // namespace
} // namespace netio::test::session_options_test
