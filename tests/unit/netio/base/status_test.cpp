// SPDX-License-Identifier: Apache-2.0
#include "netio/base/status.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace netio::status_test {
namespace {

using testing::HasSubstr;

TEST(Closed, IsShownAsItsDetailOrElseAsItsReason) {
    EXPECT_EQ(to_string(Closed{.reason = CloseReason::silent, .detail = {}}), "peer silent");
    EXPECT_EQ(to_string(Closed{.reason = CloseReason::silent, .detail = "for 2 s"}), "for 2 s");
}

TEST(Closed, IsExplainedByItsReasonAndItsDetail) {
    EXPECT_EQ(explain(Closed{.reason = CloseReason::silent, .detail = {}}), "peer silent");
    EXPECT_EQ(explain(Closed{.reason = CloseReason::silent, .detail = "for 2 s"}),
              "peer silent: for 2 s");
    const std::string detail = "connecting to 10.0.0.1:1: Connection refused";
    EXPECT_EQ(explain(Closed{.reason = CloseReason::refused, .detail = detail}), detail)
        << "the reason once";
}

TEST(Address, IsParsedAndShown) {
    EXPECT_EQ(parse_address("10.0.0.1:1234"), (Address{.host = "10.0.0.1", .port = 1234}));
    EXPECT_EQ(parse_address("host.example:0"), (Address{.host = "host.example", .port = 0}));
    EXPECT_EQ(parse_address("[fe80::1]:65535"), (Address{.host = "fe80::1", .port = 65535}));
    EXPECT_EQ(to_string(Address{.host = "fe80::1", .port = 7}), "[fe80::1]:7");
    EXPECT_EQ(to_string(Address{.host = "a", .port = 7}), "a:7");
}

TEST(Address, WhatIsWrongIsNamed) {
    for (const char* text : {"", "host", "host:", ":1", "host:x", "host:65536", "host:-1", "[::1]",
                             "[::1:5", "::1:5", "a:1:2", "host:1 "}) {
        try {
            parse_address(text);
            ADD_FAILURE() << "'" << text << "' was accepted";
        } catch (const std::invalid_argument& error) {
            EXPECT_THAT(error.what(), HasSubstr(std::string{"'"} + text + "'"));
            EXPECT_THAT(error.what(), HasSubstr("HOST:PORT"));
        }
    }
}

TEST(Address, ErrorsExplainTheSyntaxOfOtherLibraries) {
    const auto error_of = [](const char* text) -> std::string {
        try {
            parse_address(text);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "no error";
    };
    EXPECT_THAT(error_of("tcp://127.0.0.1:13050"), HasSubstr("there is no scheme here"));
    EXPECT_THAT(error_of("*:13050"), HasSubstr("any address is 0.0.0.0:PORT"));
}

TEST(Status, EveryValueHasAName) {
    for (const Status status : {Status::ok, Status::no_subscribers, Status::again, Status::partial,
                                Status::too_many_segments, Status::too_large, Status::closed,
                                Status::stale_ticket, Status::not_owned})
        EXPECT_THAT(to_string(status), testing::Not(HasSubstr("unknown")));
    for (int reason = 0; reason <= static_cast<int>(CloseReason::failed); ++reason)
        EXPECT_THAT(to_string(static_cast<CloseReason>(reason)),
                    testing::Not(HasSubstr("unknown")));
}

} // namespace
} // namespace netio::status_test
