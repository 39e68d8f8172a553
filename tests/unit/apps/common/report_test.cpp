// SPDX-License-Identifier: Apache-2.0
#include "apps/common/report.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace apps::report_test {
namespace {

using netio::pubsub::Fid;
using testing::HasSubstr;
using testing::Not;

SubscribeReport subscriber() {
    return {
        .provider = "tcp",
        .mode = "mixed",
        .end = "orderly",
        .outcome = "unsound",
        .detail = "a \"quoted\"\nline",
        .reached = {.any = true},
        .throughput = {.messages = 1000, .bytes = 125000000, .seconds = 2},
        .lost = 3,
        .surplus = 9,
        .verified = true,
        .pattern = {.messages = 1000, .lost = 3, .reordered = 4, .duplicates = 5, .corrupt = 6},
        .fids = {
            {.fid = Fid{0x10}, .messages = 600, .bytes = 7, .lost = 1, .surplus = 9, .first = 12},
            {.fid = Fid{0x11}, .messages = 400, .bytes = 8, .lost = 2, .surplus = 0, .first = {}}}};
}

TEST(Report, JsonIsOneLineWithEveryKey) {
    const std::string line = to_json(subscriber());
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["role"], "subscriber");
    EXPECT_EQ(json["provider"], "tcp");
    EXPECT_EQ(json["mode"], "mixed");
    EXPECT_EQ(json["messages"], 1000);
    EXPECT_EQ(json["bytes"], 125000000);
    EXPECT_EQ(json["seconds"], 2.0);
    EXPECT_EQ(json["messages_per_s"], 500.0);
    EXPECT_DOUBLE_EQ(json["gbit_per_s"].get<double>(), 0.5);
    EXPECT_EQ(json["outcome"], "unsound");
    EXPECT_EQ(json["reached"], true);
    EXPECT_EQ(json["unreached"], 0);
    EXPECT_EQ(json["lost"], 3);
    EXPECT_EQ(json["surplus"], 9);
    EXPECT_EQ(json["reordered"], 4);
    EXPECT_EQ(json["duplicates"], 5);
    EXPECT_EQ(json["corrupt"], 6);
    EXPECT_EQ(json["fids"]["0x10"]["messages"], 600);
    EXPECT_EQ(json["fids"]["0x11"]["lost"], 2);
    EXPECT_EQ(json["fids"]["0x10"]["surplus"], 9);
    EXPECT_EQ(json["fids"]["0x10"]["first"], 12);
    EXPECT_FALSE(json["fids"]["0x11"].contains("first")) << "no valid message arrived";
    EXPECT_EQ(json["detail"], "a \"quoted\"\nline");
}

TEST(Report, JsonOfAPublisherHasItsKeys) {
    const auto json = nlohmann::json::parse(
        to_json(PublishReport{.provider = "verbs+tcp",
                              .mode = "buffered",
                              .end = "finished",
                              .throughput = {.messages = 10, .bytes = 400, .seconds = 0},
                              .pages = 2,
                              .disconnected = 3,
                              .unconfirmed = 4,
                              .fids = {{.fid = Fid{0x10}, .messages = 10}}}));
    EXPECT_EQ(json["role"], "publisher");
    EXPECT_EQ(json["mode"], "buffered");
    EXPECT_EQ(json["messages"], 10);
    EXPECT_EQ(json["messages_per_s"], 0.0) << "without time there is no rate";
    EXPECT_EQ(json["pages"], 2);
    EXPECT_EQ(json["disconnected"], 3);
    EXPECT_EQ(json["unconfirmed"], 4);
    EXPECT_EQ(json["fids"]["0x10"]["messages"], 10);
}

TEST(Report, TextForPeopleNamesWhatMatters) {
    const std::string text = to_text(subscriber());
    EXPECT_THAT(text, HasSubstr("1000 messages"));
    EXPECT_THAT(text, HasSubstr("3 messages lost"));
    EXPECT_THAT(text, HasSubstr("9 messages more than the publisher sent"));
    EXPECT_THAT(text, HasSubstr("6 corrupt, 4 reordered, 5 duplicates"));
}

TEST(Report, AnUnknownLossIsNotShownAsNone) {
    SubscribeReport report = subscriber();
    report.lost.reset();
    EXPECT_THAT(to_text(report), HasSubstr("number of lost messages unknown"));
    EXPECT_THAT(to_text(report), Not(HasSubstr("messages lost")));
    EXPECT_TRUE(nlohmann::json::parse(to_json(report))["lost"].is_null());
}

TEST(Report, TheLiveLineHasThreeDigits) {
    EXPECT_EQ(live_line({.messages = 1234567, .bytes = 125000000, .seconds = 1}, 99, 7),
              "1.23 Mmessages/s  1.000 Gb/s  99 messages  7 lost");
    EXPECT_EQ(live_line({.messages = 5, .bytes = 0, .seconds = 1}, 5, {}),
              "5 messages/s  0.000 Gb/s  5 messages");
    const auto rate = [](std::uint64_t messages) {
        const std::string line = live_line({.messages = messages, .bytes = 0, .seconds = 1}, 0, {});
        return line.substr(0, line.find("messages/s"));
    };
    EXPECT_EQ(rate(999), "999 ");
    EXPECT_EQ(rate(999499), "999 k");
    EXPECT_EQ(rate(999500), "1 M") << "not 1e+03 k";
    EXPECT_EQ(rate(999999), "1 M");
    EXPECT_EQ(rate(999600000), "1 G");
}

} // namespace
} // namespace apps::report_test
