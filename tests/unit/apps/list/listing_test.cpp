// SPDX-License-Identifier: Apache-2.0
#include "apps/list/list.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace apps::listing_test {
namespace {

using netio::pubsub::Announcement;
using netio::pubsub::Fid;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Announcement of(const std::string& name, std::uint64_t first, std::uint64_t last) {
    return {.name = name,
            .instance = 255,
            .fids = {{.fids = {.first = Fid{first}, .last = Fid{last}}, .meaning = "hits"}},
            .addresses = {"tcp:h:1"},
            .mode = "buffered",
            .host = "h",
            .pid = 7,
            .started = "then"};
}

TEST(Listing, ShowsAPublisherInThreeLines) {
    EXPECT_EQ(listed_as_text(of("a", 1, 2)), "a: buffered, host h, process 7, since then\n"
                                             "  at tcp:h:1\n"
                                             "  fids 0x1-0x2: hits\n");
}

TEST(Listing, ManyRangesAreCounted) {
    Announcement many = of("a", 0, 0);
    for (std::uint64_t fid = 2; fid < 2000; fid += 2)
        many.fids.push_back({.fids = {.first = Fid{fid}, .last = Fid{fid}}, .meaning = "hits"});
    EXPECT_THAT(listed_as_text(many), HasSubstr("0xe and 992 more ranges: hits\n"));
}

TEST(Listing, AProgramReadsAllOfIt) {
    const auto event = nlohmann::json::parse(listed_as_json(of("a", 1, 2), "found"));
    EXPECT_EQ(event["event"], "found");
    EXPECT_EQ(event["instance"], "0xff");
    EXPECT_EQ(event["fids"][0]["last"], "0x2");
    const auto all = nlohmann::json::parse(listed_as_json(Publishers{{"a", of("a", 1, 2)}}));
    EXPECT_EQ(all["publishers"][0]["name"], "a");
}

TEST(Listing, ReportsTwoPublishersThatClaimOneFid) {
    const Publishers both{{"a", of("a", 0, 9)}, {"b", of("b", 20, 29)}, {"c", of("c", 5, 6)}};
    EXPECT_THAT(shared_fids(both), ElementsAre("0x5 is announced by a and by c"));
    EXPECT_THAT(shared_fids({{"a", of("a", 0, 9)}, {"b", of("b", 10, 11)}}), IsEmpty());
}

TEST(Listing, OnlyThoseWithAWantedFidAreShown) {
    EXPECT_TRUE(has_any(of("a", 5, 9), {{.first = Fid{9}, .last = Fid{20}}}));
    EXPECT_FALSE(has_any(of("a", 5, 9), {{.first = Fid{10}, .last = Fid{20}}}));
    EXPECT_TRUE(has_any(of("a", 5, 9), {}));
}

} // namespace
} // namespace apps::listing_test
