// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/bounded_json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace netio::pubsub::bounded_json_test {
namespace {

std::string problem_of(const std::string& text, const JsonLimits& limits) {
    try {
        const nlohmann::json read = parse_bounded(text, limits);
        return read == nlohmann::json::parse(text) ? "none" : "another";
    } catch (const JsonError& error) {
        return error.what();
    }
}

TEST(BoundedJson, ReadsWhatKeepsToEachLimitAndNothingBeyond) {
    EXPECT_EQ(problem_of(R"([[{"a":[1]}]])", {.depth = 4}), "none");
    EXPECT_EQ(problem_of(R"([[{"a":[[]]}]])", {.depth = 4}), "it is nested deeper than 4 levels");
    EXPECT_EQ(problem_of("[[],[],[],[]]", {.depth = 2}), "none") << "not nested";
    for (const char* const value : {"1", "-1", "1.5", "true", "null", "\"a\"", "{}", "[]"}) {
        const std::string three = std::string{"["} + value + "," + value + "]";
        EXPECT_EQ(problem_of(three, {.values = 3}), "none") << value;
        EXPECT_EQ(problem_of(three, {.values = 2}), "it has more than 2 values") << value;
    }
    EXPECT_EQ(problem_of(R"({"abc":"def"})", {.string_bytes = 3}), "none");
    EXPECT_EQ(problem_of(R"(["abcd"])", {.string_bytes = 3}), "it has a text of more than 3 bytes");
    EXPECT_EQ(problem_of(R"({"abcd":1})", {.string_bytes = 3}),
              "it has a text of more than 3 bytes");
}

TEST(BoundedJson, ReportsATextThatIsNotJson) {
    for (const char* const text : {"", "{", "[1,]", "{\"a\"}", "\"\xff\"", "1e400", "[1] 2"})
        EXPECT_EQ(problem_of(text, {}), "it is not JSON") << text;
}

// The document would need gigabytes, and reading it to its end would take seconds.
TEST(BoundedJson, StopsAtTheLimitOfATextOfMegabytes) {
    const std::size_t megabytes = std::size_t{64} << 20;
    EXPECT_EQ(problem_of(std::string(megabytes, '['), {}), "it is nested deeper than 16 levels");
    std::string many = "[";
    while (many.size() < megabytes)
        many += "{},{},{},{},{},{},{},{},";
    EXPECT_EQ(problem_of(many + "{}]", {.values = 1000}), "it has more than 1000 values");
}

} // namespace
} // namespace netio::pubsub::bounded_json_test
