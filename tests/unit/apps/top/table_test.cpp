// SPDX-License-Identifier: Apache-2.0
#include "apps/top/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace apps::top::table_test {
namespace {

using testing::HasSubstr;

constexpr std::string_view text = "# HELP netio_publisher_messages_total x\n"
                                  "netio_publisher_messages_total 100\n"
                                  "netio_publisher_again_total 3\n"
                                  "netio_peer_waiting{peer=\"a:1\",id=\"1\"} 4096\n"
                                  "netio_peer_idle_seconds{peer=\"a:1\",id=\"1\"} 2.5\n"
                                  "netio_peer_dropped_total{peer=\"a:1\",id=\"1\"} 7\n"
                                  "netio_fid_messages_total{fid=\"0x1\"} 60\n"
                                  "netio_fid_messages_total{fid=\"0x2\"} 40\n"
                                  "netio_fid_dropped_total{fid=\"0x2\"} 7\n"
                                  "nonsense{\nnetio_peer_waiting{peer=\"\n";

TEST(TopTable, HasARowForEachPublisherPeerAndFid) {
    const std::vector<Row> rows = rows_of(text);
    ASSERT_EQ(rows.size(), 4U);
    EXPECT_EQ(rows[0].count, 100U);
    EXPECT_EQ(rows[0].again, 3U);
    EXPECT_EQ(rows[1].name, "a:1");
    EXPECT_EQ(rows[1].waiting, 4096);
    EXPECT_EQ(rows[1].idle_seconds, 2.5);
    EXPECT_EQ(rows[1].dropped, 7U);
    EXPECT_EQ(rows[3].name, "0x2");
    EXPECT_EQ(rows[3].dropped, 7U);
}

TEST(TopTable, KnowsRatesFromTwoLooksAndSortsByThem) {
    Look before{.source = "x", .error = {}, .seconds = 10, .rows = rows_of(text)};
    Look now = before;
    now.seconds = 12;
    now.rows[2].count += 10;
    now.rows[3].count += 50;
    now.rows[0].count = 1; // the counter restarted
    add_rates(now, before);
    EXPECT_FALSE(now.rows[0].rate);
    EXPECT_EQ(now.rows[3].rate, 25.0);
    sort(now.rows, Order::rate);
    EXPECT_EQ(now.rows[0].name, "0x2");
    sort(now.rows, Order::idle);
    EXPECT_EQ(now.rows[0].name, "a:1");
}

TEST(TopTable, SortsByEachOfItsColumnsTheMostFirst) {
    const std::vector<Row> rows{
        {.kind = "peer", .name = "none", .count = 1},
        {.kind = "peer", .name = "more", .count = 3, .again = 4, .dropped = 5},
        {.kind = "peer", .name = "some", .count = 2, .again = 3, .dropped = 6}};
    const auto first = [&rows](Order order) {
        std::vector<Row> sorted = rows;
        sort(sorted, order);
        EXPECT_EQ(sorted.size(), rows.size());
        return sorted.front().name;
    };
    EXPECT_EQ(first(Order::as_shown), "none");
    EXPECT_EQ(first(Order::count), "more");
    EXPECT_EQ(first(Order::again), "more");
    EXPECT_EQ(first(Order::dropped), "some");
}

TEST(TopTable, ShowsWhyAProgramDoesNotAnswer) {
    const std::vector<Look> looks{{.source = "x", .error = {}, .seconds = 0, .rows = rows_of(text)},
                                  {.source = "y", .error = "no answer", .seconds = 0, .rows = {}}};
    EXPECT_THAT(to_text(looks), HasSubstr("y: no answer\n"));
    EXPECT_THAT(to_json(looks), HasSubstr("\"error\":\"no answer\""));
}

TEST(TopTable, HasARowForEachPortOfADevice) {
    const std::vector<Row> rows =
        rows_of("netio_device_active{port=\"mlx5_0/1\",rate=\"100\"} 1\n"
                "netio_device_port_errors_total{port=\"mlx5_0/1\"} 3\n"
                "netio_device_receiver_not_ready_total{port=\"mlx5_0/1\"} 4\n"
                "netio_device_retransmissions_total{port=\"mlx5_0/1\"} 5\n"
                "netio_device_counter_total{port=\"mlx5_0/1\",counter=\"messages_total\"} 6\n"
                "netio_device_retransmissions_total{port=\"mlx5_1/1\"} 7\n");
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].kind, "device");
    EXPECT_EQ(rows[0].name, "mlx5_0/1");
    EXPECT_EQ(rows[0].count, 5U);
    EXPECT_EQ(rows[0].again, 4U);
    EXPECT_EQ(rows[0].dropped, 3U);
    EXPECT_EQ(rows[1].name, "mlx5_1/1");
    EXPECT_EQ(rows[1].count, 7U);
}

TEST(TopTable, ShowsOneWayLatencyWithTheOffsetOfTheClocks) {
    const std::vector<Row> rows =
        rows_of("netio_subscriber_messages_total{publisher=\"a\"} 3\n"
                "netio_subscriber_one_way_median_seconds{publisher=\"a\"} 2e-05\n"
                "netio_subscriber_one_way_p99_seconds{publisher=\"a\"} 0.0015\n"
                "netio_subscriber_clock_offset_seconds{publisher=\"a\"} -0.05\n"
                "netio_subscriber_clock_offset_error_seconds{publisher=\"a\"} 0.0001\n"
                "netio_peer_latency_p99_seconds{peer=\"b\"} 1\n");
    ASSERT_EQ(rows.size(), 1U);
    const std::vector<Look> looks{{.source = "x", .error = {}, .rows = rows}};
    EXPECT_THAT(to_text(looks), HasSubstr(" 20.0    1500.0 -50000.0 +- 100.0"));
    EXPECT_THAT(to_json(looks), HasSubstr("\"clock_offset_us\":-50000.0"));
}

TEST(TopTable, NamesAPublisherWhereThereIsRoomForTheWholeName) {
    const std::vector<Look> looks{{.source = "h:1", .name = "daq\x1b", .error = {}, .rows = {}},
                                  {.source = "h:2", .name = "daq-2", .error = "lost", .rows = {}}};
    EXPECT_THAT(to_text(looks), testing::StartsWith("daq\\u001b at h:1\n"));
    EXPECT_EQ(TableLayout{18}.title(looks[1]), "daq-2 at h:2: lost");
    EXPECT_EQ(TableLayout{17}.title(looks[1]), "h:2: lost");
    EXPECT_THAT(to_json(looks), HasSubstr("\"publisher\":\"daq-2\""));
}

TEST(TopTable, ANarrowTerminalDoesWithoutColumnsBeforeItCutsThem) {
    for (std::size_t width = 42; width < 100; ++width) {
        const TableLayout layout{width};
        const std::string heading = layout.heading();
        EXPECT_THAT(heading, HasSubstr("per s"));
        EXPECT_THAT(heading, testing::EndsWith(" dropped")) << width;
        EXPECT_LE(heading.size(), width);
        EXPECT_EQ(heading.find("count") == std::string::npos, width < 81) << width;
        for (const Row& row : rows_of(text))
            EXPECT_EQ(layout.line(row).size(), heading.size()) << layout.line(row);
    }
}

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
            if (width < 80) continue; // the line is truncated
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

} // namespace apps::top::table_test
