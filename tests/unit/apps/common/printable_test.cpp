// SPDX-License-Identifier: Apache-2.0
#include "apps/common/printable.hpp"

#include "apps/common/json_line.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <random>
#include <string>

namespace apps {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

TEST(Printable, EscapesWhatActsOnATerminalOrForgesALine) {
    EXPECT_EQ(printable("a\x1b[2J\n"), "a\\u001b[2J\\n");
    EXPECT_EQ(printable("a\r\tb\x7f"), "a\\r\\tb\\u007f");
    EXPECT_EQ(printable("a\xc2\x9b"
                        "2J"),
              "a\\u009b2J")
        << "C1 as UTF-8";
    EXPECT_EQ(printable("a\x9b"
                        "2J\xff\xe2\x80"),
              "a\\x9b2J\\xff\\xe2\\x80")
        << "bytes that are not UTF-8, C1 among them";
    EXPECT_EQ(printable("a\xe2\x80\xae"
                        "b"),
              "a\\u202eb")
        << "right to left";
    EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028") << "a line separator";
}

TEST(Printable, KeepsVisibleTextAndWhatIsEscaped) {
    const std::string text = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 C:\\temp \\u001b";
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_printable(text));
    EXPECT_FALSE(is_printable(text + "\n"));
    EXPECT_FALSE(is_printable("\xff"));
    const std::string once = printable("\x1b\n\xff");
    EXPECT_EQ(printable(once), once);
}

TEST(Printable, KeepsTheLayoutOfATextOfSeveralLines) {
    EXPECT_EQ(printable("a\tb\n\x1b\n", unlimited, Lines::several), "a\tb\n\\u001b\n");
    EXPECT_TRUE(is_printable("a\tb\n", Lines::several));
    EXPECT_EQ(printable("a\rb", unlimited, Lines::several), "a\\rb") << "hides the line before it";
}

TEST(Printable, CutsAtTheLimitAndNeverWithinACharacter) {
    EXPECT_EQ(printable("abcdef", 3), "abc");
    EXPECT_EQ(printable("\xc3\xa4\xc3\xa4", 3), "\xc3\xa4");
    EXPECT_EQ(printable("a\x1b", 6), "a");
}

// The escapes are those of JSON: a report stays one, and a reader gets the text itself.
TEST(Printable, LeavesAJsonTextAsItIsToItsReader) {
    std::string text = "\"\\ \n\x1b\x7f \xc2\x9b \xe2\x80\xae \xe2\x80\xa8 \xf0\x9f\x98\x80";
    const std::string line = printable(json_line(nlohmann::json{{"text", text}}), unlimited);
    EXPECT_TRUE(is_printable(line));
    EXPECT_EQ(nlohmann::json::parse(line)["text"], text) << line;
    const std::string odd = json_line(nlohmann::json{{"text", "a\xff"}});
    EXPECT_EQ(nlohmann::json::parse(odd)["text"], "a\xef\xbf\xbd") << "not UTF-8";
}

TEST(Printable, LeavesNothingThatActsInAnyText) {
    std::mt19937 random{1};
    for (int run = 0; run < 2000; ++run) {
        std::string text;
        for (auto left = random() % 40; left > 0; --left)
            text += static_cast<char>(random() % 3 == 0 ? random() : 0x80 + random() % 0x20);
        const std::string shown = printable(text);
        ASSERT_TRUE(is_printable(shown)) << shown;
        ASSERT_EQ(printable(shown), shown);
    }
}

} // namespace
} // namespace apps
