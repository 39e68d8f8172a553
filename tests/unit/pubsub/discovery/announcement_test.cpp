// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/announcement.hpp"

#include <gmock/gmock.h>

#include <string>

namespace netio::pubsub {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Announcement full() {
    return {.name = "felix01-42-0",
            .instance = 0xfedcba9876543210,
            .counter = 7,
            .fids = {{.fids = {.first = Fid{0x10}, .last = Fid{0x1f}}, .meaning = "hits"},
                     {.fids = {.first = Fid{0x30}, .last = Fid{0x30}}, .meaning = "hits"},
                     {.fids = {.first = Fid{0}, .last = Fid{UINT64_MAX}}, .meaning = {}}},
            .addresses = {"verbs:10.0.0.1:4000", "tcp:[fe80::1]:4000"},
            .mode = "buffered",
            .parameters = {{"page_size", "65536"}},
            .host = "felix01",
            .pid = 42,
            .started = "2026-01-02T03:04:05Z",
            .metrics = "felix01:9100"};
}

std::string refusal_of(const std::string& text) {
    try {
        parse_announcement(text);
    } catch (const AnnouncementError& error) {
        return error.what();
    }
    return "it is taken";
}

std::string with(const std::string& pair) {
    return R"({"netio":1,"name":"a","instance":"0x1","counter":1,"pid":1,)" + pair + "}";
}

TEST(Announcement, ComesBackAsItWasWritten) {
    EXPECT_EQ(parse_announcement(to_text(full())), full());
}

TEST(Announcement, AnAddressOfOneHostLeadsThereFromThatHostOnly) {
    const auto leads = [](const std::string& from, const std::string& host) {
        return leads_there_from(from, {.host = "felix01"}, {.host = host, .port = 1});
    };
    for (const std::string own :
         {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "localhost", "0.0.0.0",
          "::", "fe80::1%eth0", "fe80::1%2", "fe80::1", "febf::1%lo"}) {
        EXPECT_TRUE(leads("felix01", own)) << own;
        EXPECT_FALSE(leads("felix02", own)) << own;
        EXPECT_FALSE(leads("", own)) << own;
        EXPECT_TRUE(leads_there_from("felix02", {}, {.host = own, .port = 1})) << own;
    }
    for (const std::string others : {"10.0.0.1", "128.0.0.1", "fec0::1", "2001:db8::1", "felix01"})
        EXPECT_TRUE(leads("felix02", others)) << others;
}

TEST(Announcement, RangesOfOneMeaningStandTogether) {
    EXPECT_THAT(to_text(full()),
                HasSubstr(R"([{"meaning":"hits","ranges":["0x10-0x1f","0x30"]},)"));
}

TEST(Announcement, WhatALaterVersionAddsIsPassedOver) {
    EXPECT_EQ(parse_announcement(with(R"("colour":["blue"])")).name, "a");
}

TEST(Announcement, AMistakeIsToldWithItsPlace) {
    EXPECT_EQ(refusal_of("{\"netio\":1"), "announcement: it is not JSON");
    EXPECT_EQ(refusal_of("[1]"), "announcement: not a whole JSON object");
    EXPECT_THAT(refusal_of(R"({"netio":2})"), StartsWith("netio: a format"));
    EXPECT_EQ(refusal_of(R"({"netio":1,"name":"a","instance":"0x1"})"), "counter: is missing");
    EXPECT_THAT(refusal_of(R"({"netio":1,"name":"../a","instance":"0x1","counter":1,"pid":1})"),
                StartsWith("name: not 1 to 128"));
    EXPECT_EQ(refusal_of(with(R"("fids":[{"ranges":["0x1"]},{"ranges":["0x2-0x1"]}])")),
              "fids[1]: ends before it begins");
    EXPECT_EQ(refusal_of(with(R"("fids":[{"ranges":["12"]}])")),
              "fids[0]: not a range of fids in hexadecimal");
    EXPECT_EQ(refusal_of(with(R"("fids":7)")), "fids: not a list");
    EXPECT_EQ(refusal_of(with(R"("addresses":["tcp:h:0"])")),
              "addresses[0]: not PROVIDER:HOST:PORT");
    EXPECT_EQ(refusal_of(with(R"("mode":7)")), "mode: not a text");
}

TEST(Announcement, AControlCharacterDoesNotReachALog) {
    EXPECT_EQ(refusal_of(with(R"("host":"a\u001b[2J")")),
              "host: a control character, or one that cannot be seen");
    for (const std::string unseen : {"\\u009b5m", "\\u202eevil", "\\u2066h", "\\u007f"}) {
        EXPECT_THAT(refusal_of(with(R"("mode":")" + unseen + "\"")), HasSubstr("cannot be seen"));
        EXPECT_THAT(refusal_of(with(R"("fids":[{"ranges":["0x1"],"meaning":")" + unseen + "\"}]")),
                    HasSubstr("cannot be seen"));
    }
    EXPECT_THAT(refusal_of(with(R"("parameters":{"a\nb":"c"})")), Not(HasSubstr("\n")));
}

TEST(Announcement, EachOfItsTextsIsLookedAt) {
    const std::string unseen = R"("a\u001b[2J")";
    for (const std::string name : {"mode", "host", "started", "metrics"}) {
        EXPECT_EQ(refusal_of(with(std::string{'"'}.append(name).append("\":").append(unseen))),
                  name + ": a control character, or one that cannot be seen");
    }
    EXPECT_THAT(refusal_of(with(R"("addresses":["tcp:h:1",)" + unseen + "]")),
                StartsWith("addresses[1]: a control character"));
    EXPECT_THAT(refusal_of(with(R"("parameters":{"a":)" + unseen + "}")),
                StartsWith("parameters: a control character"));
}

TEST(Announcement, EachOfItsTextsIsLookedAtBeforeItIsWritten) {
    for (std::string Announcement::*const text :
         {&Announcement::name, &Announcement::mode, &Announcement::host, &Announcement::started,
          &Announcement::metrics}) {
        Announcement one = full();
        one.*text = "a\x1b[2J";
        EXPECT_THROW(to_text(one), AnnouncementError);
    }
    Announcement one = full();
    one.addresses.emplace_back("tcp:a\x1b[2J:1");
    EXPECT_THROW(to_text(one), AnnouncementError);
    one = full();
    one.parameters["page_size"] = "a\x1b[2J";
    EXPECT_THROW(to_text(one), AnnouncementError);
    one = full();
    one.fids.front().meaning = "a\x1b[2J";
    EXPECT_THROW(to_text(one), AnnouncementError);
}

TEST(Announcement, IsBoundedInEverything) {
    EXPECT_THAT(refusal_of(std::string(announcement_bytes_limit + 1, ' ')), HasSubstr("bytes"));
    EXPECT_EQ(refusal_of(with(R"("host":")" + std::string(257, 'x') + "\"")),
              "host: longer than 256 bytes");
    std::string many = R"("fids":[{"ranges":[)";
    for (std::size_t i = 0; i <= announced_ranges_limit; ++i)
        many += i == 0 ? "\"0x1\"" : ",\"0x1\"";
    EXPECT_EQ(refusal_of(with(many + "]}]")), "fids: more than 65536");
    EXPECT_THAT(refusal_of(std::string(1 << 20, '[')), StartsWith("announcement: "));
}

TEST(Announcement, AMillionFidsInARowAreOneRange) {
    Announcement million = full();
    million.fids = {{.fids = {.first = Fid{0}, .last = Fid{999'999}}, .meaning = {}}};
    EXPECT_LT(to_text(million).size(), 1000U);
}

TEST(Announcement, ALeaseIsWithinBounds) {
    Announcement one = full();
    one.lease = std::chrono::seconds{60};
    EXPECT_EQ(parse_announcement(to_text(one)), one);
    for (const int ms : {-1, 1, 99, 3'600'001}) {
        one.lease = std::chrono::milliseconds{ms};
        EXPECT_THROW(to_text(one), AnnouncementError) << ms;
    }
}

TEST(Announcement, AnAddressNamesItsProvider) {
    const auto endpoint = parse_announced_address("tcp:[::1]:12345");
    ASSERT_TRUE(endpoint);
    EXPECT_EQ(endpoint->provider, "tcp");
    EXPECT_EQ(endpoint->address, (Address{"::1", 12345}));
    EXPECT_EQ(to_announced_address(*endpoint), "tcp:[::1]:12345");
    EXPECT_FALSE(parse_announced_address("12345"));
}

} // namespace
} // namespace netio::pubsub
