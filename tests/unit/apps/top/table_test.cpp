// SPDX-License-Identifier: Apache-2.0
#include "apps/top/table.hpp"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

namespace apps::top {
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
    now.rows[0].count = 1; // it began anew
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

} // namespace
} // namespace apps::top
