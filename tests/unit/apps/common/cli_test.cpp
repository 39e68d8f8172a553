// SPDX-License-Identifier: Apache-2.0
#include "apps/common/cli.hpp"

#include "apps/common/parse.hpp"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>

namespace apps::cli_test {
namespace {

using testing::HasSubstr;

std::string refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

TEST(OptionValues, PortZeroIsRefusedForConnecting) {
    EXPECT_EQ(peer_address("[::1]:65535"), (netio::Address{"::1", 65535}));
    EXPECT_THAT(refusal([] { peer_address("127.0.0.1:0"); }), HasSubstr("from 1 to 65535"));
    EXPECT_THAT(refusal([] { peer_address("127.0.0.1:70000"); }), HasSubstr("0 to 65535"));
    EXPECT_THAT(refusal([] { peer_address("127.0.0.1"); }), HasSubstr("HOST:PORT"));
}

TEST(OptionValues, TheLeastOfARangeIsNotAboveTheMost) {
    EXPECT_EQ(refusal([] { require_order("--least", 7, "--most", 7); }), "");
    EXPECT_EQ(refusal([] { require_order("--least", 8, "--most", 7); }),
              "--least is 8; it must not exceed --most, which is 7");
}

TEST(OptionValues, ATimeIsTakenInMillisecondsAndNothingWhereThatMeansSomething) {
    const auto parsed = [](const std::string& word, Zero zero) {
        CLI::App command;
        std::chrono::milliseconds value{7};
        add_milliseconds(command, "--time", value, "", zero);
        command.parse("--time " + word);
        return value.count();
    };
    EXPECT_EQ(parsed("2s", Zero::refused), 2000);
    EXPECT_EQ(parsed("1500us", Zero::refused), 2) << "rounded up";
    EXPECT_EQ(parsed("1ms", Zero::refused), 1);
    EXPECT_EQ(parsed("24h", Zero::refused), 86400000);
    EXPECT_EQ(parsed("0", Zero::taken), 0);
    for (const char* const wrong : {"0", "2", "0.1ms", "25h", "-1s", "x", ""})
        EXPECT_THROW(parsed(wrong, Zero::refused), CLI::ParseError) << wrong;
    EXPECT_THROW(parsed("25h", Zero::taken), CLI::ParseError);
    try {
        parsed("10", Zero::taken);
        ADD_FAILURE();
    } catch (const CLI::ParseError& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("'10' has no unit; allowed: 0, or a time with its unit, "
                              "such as 40us, 500ms, 10s, 2m, 1h; from 1ms to 1d"));
    }
}

struct Named {
    std::size_t queue_limit_bytes = 0;
    std::size_t queue_limit_messages = 0;
    std::chrono::milliseconds close_timeout{};
};

TEST(OptionValues, AnOptionHasOneName) {
    EXPECT_EQ(yaml_key<&Named::queue_limit_bytes>(), "queue_limit");
    EXPECT_EQ(cli_flag<&Named::queue_limit_bytes>(), "--queue-limit");
    EXPECT_EQ(yaml_key<&Named::queue_limit_messages>(), "queue_limit");
    EXPECT_EQ(cli_flag<&Named::close_timeout>(), "--close-timeout");
    using Options = netio::SessionOptions;
    EXPECT_EQ(yaml_key<&Options::rekey_after_bytes>(), "rekey_after");
    EXPECT_EQ(yaml_key<&Options::receive_count>(), "receive_count");
}

} // namespace
} // namespace apps::cli_test
