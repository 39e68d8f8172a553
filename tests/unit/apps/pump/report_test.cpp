// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/end.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace apps::pump::report_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The report of a server may contain anything.
const std::vector<std::string> odd_reports = {
    "",
    "{",
    "[]",
    "null",
    "\"text\"",
    R"({"error": 7, "gbit_per_s": "fast", "bytes": null, "seconds": [1], "role": {}})",
    R"({"error": ["a", "b"], "direct_share": {"a": 1}})",
    R"({"error": null, "bytes": 1e400})",
    "{\"error\": \"\x1b[2J\xc2\x9b\x32J\xe2\x80\xae\"}",
    "\xff\xfe{}",
    "{\"a\":" + std::string(30'000, '[') + std::string(30'000, ']') + "}",
};

TEST(PumpReport, AnyReportOfAServerIsReadOrSaidToBeUnreadable) {
    for (const std::string& text : odd_reports) {
        SCOPED_TRACE(text);
        EXPECT_LE(problem_in(text).size(), 1100U);
        const auto report = to_report({.is_client = true, .peer_report = text});
        EXPECT_THAT(as_text(report), HasSubstr("client: "));
        EXPECT_THAT(as_text(report), Not(HasSubstr("\x1b")));
        EXPECT_FALSE(report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).empty());
    }
}

// The share of the bytes that a client sent, not of those that the server reports.
TEST(PumpReport, EachSideReportsItsOwnDirectShare) {
    Facts facts{.is_client = true, .peer_report = R"({"direct_share": 1.0})"};
    facts.counters.sent.direct_bytes = 10;
    facts.counters.sent.indirect_bytes = 990;
    const std::string text = as_text(to_report(facts));
    EXPECT_THAT(text, testing::ContainsRegex("client: .* 1.0 % direct"));
    EXPECT_THAT(text, testing::ContainsRegex("server: .* 100.0 % direct"));
}

TEST(PumpReport, ReportsTheErrorOfTheServer) {
    EXPECT_EQ(problem_in(R"({"error": "no memory"})"), "the server reports no memory");
    EXPECT_EQ(problem_in("{\"error\": \"" + std::string(2000, 'x') + "\"}").size(),
              std::string{"the server reports "}.size() + 1024);
    EXPECT_EQ(problem_in(R"({"error": ""})"), "");
    EXPECT_EQ(problem_in("nothing of the kind"), "the server's report is invalid");
}

} // namespace
} // namespace apps::pump::report_test
