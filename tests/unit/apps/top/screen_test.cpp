// SPDX-License-Identifier: Apache-2.0
#include "apps/top/screen.hpp"

#include "apps/top/keys.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace apps::top {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

Look program(const std::string& source, std::size_t rows) {
    Look look{.source = source, .error = {}, .rows = {}};
    for (std::size_t at = 0; at < rows; ++at)
        look.rows.push_back(
            {.kind = "fid", .name = source + "-" + std::to_string(at), .count = at});
    return look;
}

auto has(const std::string& name) {
    return Contains(HasSubstr(" " + name + " "));
}

TEST(TopScreen, ShowsASecondProgramBelowOneWithManyRows) {
    const std::vector<Look> looks{program("first", 200), program("second", 3)};
    const Screen screen = screen_of(looks, {.width = 80, .height = 24, .has_keys = true});
    EXPECT_THAT(screen.lines, SizeIs(24));
    EXPECT_THAT(screen.lines, AllOf(has("first-0"), has("second-0"), has("second-2")));
    EXPECT_THAT(screen.lines[1], HasSubstr("first (1-17 of 200 rows)"));
    EXPECT_THAT(screen.lines.back(),
                AllOf(HasSubstr("183 of 203 rows hidden"), HasSubstr("q: quit")));
}

TEST(TopScreen, ScrollsToEveryRow) {
    const std::vector<Look> looks{program("first", 200), program("second", 100)};
    Window window{.width = 80, .height = 10, .has_keys = true};
    const std::size_t limit = screen_of(looks, window).scroll_limit;
    std::vector<std::string> seen;
    for (window.scroll = 0; window.scroll <= limit; ++window.scroll) {
        const Screen screen = screen_of(looks, window);
        EXPECT_THAT(screen.lines, SizeIs(10));
        seen.insert(seen.end(), screen.lines.begin(), screen.lines.end());
    }
    for (const Look& look : looks)
        for (const Row& row : look.rows)
            EXPECT_THAT(seen, has(row.name));
}

TEST(TopScreen, ScrollsProgramsWhereTheyAreMoreThanTheLines) {
    std::vector<Look> looks;
    for (int at = 10; at < 40; ++at)
        looks.push_back(program("p" + std::to_string(at), 2));
    Window window{.width = 80, .height = 8, .has_keys = true};
    const Screen first = screen_of(looks, window);
    EXPECT_THAT(first.lines.back(), HasSubstr("27 of 30 programs and 56 of 60 rows hidden"));
    window.scroll = first.scroll_limit;
    EXPECT_THAT(screen_of(looks, window).lines, has("p39-1"));
}

TEST(TopScreen, FitsAnyTerminalAndHidesNothingWithoutALine) {
    const std::vector<Look> looks{program("first", 20), program("second", 20)};
    for (std::size_t height = 1; height < 60; ++height) {
        for (const std::size_t width : {2UL, 20UL, 80UL}) {
            const Screen screen = screen_of(looks, {.width = width, .height = height});
            EXPECT_LE(screen.lines.size(), height);
            EXPECT_THAT(screen.lines, Each(SizeIs(testing::Le(width))));
            const bool hides = screen.scroll_limit > 0;
            if (width < 80) continue; // the line is cut
            EXPECT_EQ(hides, screen.lines.back().find("hidden") != std::string::npos);
        }
    }
}

TEST(TopScreen, OffersNoKeysWhereThereAreNone) {
    const std::vector<Look> looks{program("first", 200)};
    EXPECT_THAT(screen_of(looks, {}).lines.back(),
                AllOf(HasSubstr("rows hidden; enlarge the window"), Not(HasSubstr("quit"))));
}

TEST(TopKeys, UnderstandsAKeyThatArrivesInPieces) {
    KeyParser keys;
    EXPECT_THAT(keys.parse("\x1b"), IsEmpty());
    EXPECT_THAT(keys.parse("["), IsEmpty());
    EXPECT_THAT(keys.parse("5"), IsEmpty());
    EXPECT_THAT(keys.parse("~jk"), ElementsAre(Key::page_up, Key::down, Key::up));
    EXPECT_THAT(keys.parse("\x1b[6~\x1bOA\x1b[B gGq"),
                ElementsAre(Key::page_down, Key::up, Key::down, Key::page_down, Key::first,
                            Key::last, Key::quit));
}

TEST(TopKeys, PassesOverWhatIsNoKey) {
    KeyParser keys;
    EXPECT_THAT(keys.parse("xyz\x1b[24~\x1b[1;5A\x1b" + std::string(100, '1') + "\x1bq"),
                IsEmpty());
    EXPECT_THAT(keys.parse("j"), ElementsAre(Key::down));
}

} // namespace
} // namespace apps::top
