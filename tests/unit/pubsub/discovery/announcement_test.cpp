// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/announcement.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace netio::pubsub::announcement_test {
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

TEST(Announcement, FieldsOfALaterVersionAreIgnored) {
    EXPECT_EQ(parse_announcement(with(R"("colour":["blue"])")).name, "a");
}

TEST(Announcement, AnErrorHasItsPosition) {
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
              "host: a control character or an invisible character");
    for (const std::string unseen : {"\\u009b5m", "\\u202eevil", "\\u2066h", "\\u007f"}) {
        EXPECT_THAT(refusal_of(with(R"("mode":")" + unseen + "\"")),
                    HasSubstr("invisible character"));
        EXPECT_THAT(refusal_of(with(R"("fids":[{"ranges":["0x1"],"meaning":")" + unseen + "\"}]")),
                    HasSubstr("invisible character"));
    }
    EXPECT_THAT(refusal_of(with(R"("parameters":{"a\nb":"c"})")), Not(HasSubstr("\n")));
}

TEST(Announcement, EachOfItsTextsIsLookedAt) {
    const std::string unseen = R"("a\u001b[2J")";
    for (const std::string name : {"mode", "host", "started", "metrics"}) {
        EXPECT_EQ(refusal_of(with(std::string{'"'}.append(name).append("\":").append(unseen))),
                  name + ": a control character or an invisible character");
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

constexpr std::string_view letters_and_digits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr FidRange one_fid{.first = Fid{1}, .last = Fid{1}};

std::string text_of(std::size_t bytes) {
    return std::string(bytes, 'x');
}

// Written and read again, where that is allowed.
bool is_taken(const Announcement& one) {
    try {
        return parse_announcement(to_text(one)) == one;
    } catch (const AnnouncementError&) {
        return false;
    }
}

std::string refusal_of_pairs(const std::string& pairs) {
    try {
        parse_announcement(R"({"netio":1,"name":"a","instance":"0x1","counter":1,)" + pairs + "}");
    } catch (const AnnouncementError& error) {
        return error.what();
    }
    return "it is taken";
}

std::string list_of(std::size_t count, const std::string& each, const std::string& last) {
    std::string list;
    for (std::size_t i = 1; i < count; ++i)
        list += each + ",";
    return "[" + list + last + "]";
}

// A few bytes of text become a document of a hundred bytes.
TEST(AnnouncementLimits, MoreValuesThanAnAnnouncementNeedsAreNotRead) {
    Announcement largest{.name = "a"};
    for (std::uint64_t i = 0; i < announced_ranges_limit; ++i)
        largest.fids.push_back(
            {.fids = {Fid{2 * i}, Fid{2 * i}}, .meaning = i % 2 == 0 ? "a" : "b"});
    EXPECT_TRUE(is_taken(largest)) << "a group for each range";
    EXPECT_EQ(refusal_of_pairs("\"x\":" + list_of(300'000, "{}", "{}")),
              "announcement: it has more than 266240 values");
    EXPECT_EQ(refusal_of_pairs("\"x\":" + std::string(2'000'000, '[')),
              "announcement: it is nested deeper than 8 levels");
}

TEST(AnnouncementLimits, EachTextMayBeAsLongAsTheLimitOfTexts) {
    for (std::string Announcement::*const text : {&Announcement::mode, &Announcement::host,
                                                  &Announcement::started, &Announcement::metrics}) {
        Announcement one{.name = "a"};
        one.*text = text_of(256);
        EXPECT_TRUE(is_taken(one));
        one.*text = text_of(257);
        EXPECT_FALSE(is_taken(one));
    }
    for (const std::size_t bytes : {256U, 257U}) {
        const bool fits = bytes == 256;
        EXPECT_EQ(is_taken({.name = "a", .fids = {{one_fid, text_of(bytes)}}}), fits);
        const std::string address = "tcp:" + text_of(bytes - 6) + ":1";
        EXPECT_EQ(is_taken({.name = "a", .addresses = {address}}), fits);
        EXPECT_EQ(is_taken({.name = "a", .parameters = {{text_of(bytes), "x"}}}), fits);
        EXPECT_EQ(is_taken({.name = "a", .parameters = {{"x", text_of(bytes)}}}), fits);
    }
    EXPECT_FALSE(is_taken({.name = "a", .parameters = {{"a\x1b[2J", "x"}}}));
}

TEST(AnnouncementLimits, EachListMayBeAsLongAsItsLimit) {
    Announcement full{.name = "a"};
    full.fids.resize(announced_ranges_limit, {one_fid, {}});
    full.addresses.resize(announced_addresses_limit, "tcp:h:1");
    for (std::size_t i = 0; i < announced_parameters_limit; ++i)
        full.parameters["p" + std::to_string(i)] = "x";
    EXPECT_TRUE(is_taken(full));
    Announcement more = full;
    more.fids.push_back({one_fid, {}});
    EXPECT_FALSE(is_taken(more));
    more = full;
    more.addresses.emplace_back("tcp:h:1");
    EXPECT_FALSE(is_taken(more));
    more = full;
    more.parameters["more"] = "x";
    EXPECT_FALSE(is_taken(more));
}

// Lists over the limit are refused without reading them.
TEST(AnnouncementLimits, AListThatIsTooLongIsRefusedBeforeItIsLookedAt) {
    const std::size_t ranges = announced_ranges_limit;
    EXPECT_EQ(refusal_of_pairs(R"("fids":)" + list_of(ranges + 1, "{}", "7")),
              "fids: more than 65536");
    const auto group = [](std::size_t count) {
        return R"({"ranges":)" + list_of(count, R"("0x1")", "7") + "}";
    };
    EXPECT_EQ(refusal_of_pairs(R"("fids":[)" + group(ranges + 1) + "]"), "fids: more than 65536");
    const std::string half = R"({"ranges":)" + list_of(ranges / 2, R"("0x1")", R"("0x1")") + "}";
    EXPECT_EQ(refusal_of_pairs(R"("fids":[)" + half + "," + group(ranges / 2) + "]"),
              "fids[1]: not a text");
    EXPECT_EQ(refusal_of_pairs(R"("fids":[)" + half + "," + group(ranges / 2 + 1) + "]"),
              "fids: more than 65536");
    EXPECT_EQ(refusal_of_pairs(R"("addresses":)" + list_of(32, R"("tcp:h:1")", "7")),
              "addresses[31]: not a text");
    EXPECT_EQ(refusal_of_pairs(R"("addresses":)" + list_of(33, R"("tcp:h:1")", "7")),
              "addresses: more than 32");
    std::string parameters;
    for (int i = 0; i < 65; ++i)
        parameters += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\":7";
    EXPECT_EQ(refusal_of_pairs(R"("parameters":{)" + parameters + "}"), "parameters: more than 64");
}

TEST(AnnouncementLimits, AllOfItMayHaveAsManyBytesAsItsLimit) {
    Announcement one{.name = "a"};
    const auto add_group = [&one] {
        // Different meanings, so that the groups are not merged.
        one.fids.push_back({one_fid, text_of(256)});
        one.fids.back().meaning.front() = one.fids.size() % 2 == 0 ? 'a' : 'b';
    };
    add_group();
    const std::size_t with_one = to_text(one).size();
    add_group();
    const std::size_t each = to_text(one).size() - with_one;
    for (std::size_t left = (announcement_bytes_limit - with_one) / each; left > 1; --left)
        add_group();
    const std::size_t rest = announcement_bytes_limit - to_text(one).size();
    ASSERT_LE(rest, 512U) << "at most two texts";
    one.mode = text_of(std::min<std::size_t>(rest, 256));
    one.host = text_of(rest - one.mode.size());
    const std::string text = to_text(one);
    ASSERT_EQ(text.size(), announcement_bytes_limit);
    EXPECT_TRUE(is_taken(one));
    EXPECT_THROW(parse_announcement(text + " "), AnnouncementError);
    one.started = "x";
    EXPECT_THROW(to_text(one), AnnouncementError);
}

TEST(AnnouncementLimits, ANameHasLettersDigitsAndThreeMarks) {
    for (int code = 0; code < 256; ++code) {
        const char c = static_cast<char>(code);
        const bool is_plain = letters_and_digits.find(c) != std::string_view::npos;
        EXPECT_EQ(is_announced_name(std::string{c}), is_plain) << code;
        const bool is_mark = c == '.' || c == '_' || c == '-';
        EXPECT_EQ(is_announced_name(std::string{"a"} + c), is_plain || is_mark) << code;
    }
    EXPECT_FALSE(is_announced_name(""));
    EXPECT_TRUE(is_announced_name(text_of(128)));
    EXPECT_FALSE(is_announced_name(text_of(129)));
}

TEST(AnnouncementLimits, AProviderHasLettersDigitsAndTwoMarks) {
    for (int code = 0; code < 256; ++code) {
        const char c = static_cast<char>(code);
        const bool is_plain = letters_and_digits.find(c) != std::string_view::npos;
        const auto endpoint = parse_announced_address(std::string{"x"} + c + "y:h:1");
        EXPECT_EQ(endpoint.has_value(), is_plain || c == '_' || c == ';') << code;
        if (endpoint) {
            EXPECT_EQ(endpoint->provider, std::string{"x"} + c + "y");
        }
    }
    for (const char* const none : {"", ":", "tcp", "tcp:", ":h:1", "tcp:h", "tcp:h:0", "tcp:h:x"})
        EXPECT_FALSE(parse_announced_address(none)) << none;
}

TEST(AnnouncementLimits, AFidIsAWholeNumberInHexadecimal) {
    const auto ranges = [](const std::string& text) {
        return refusal_of_pairs(R"("pid":1,"fids":[{"ranges":[")" + text + R"("]}])");
    };
    for (const char* const good :
         {"0x0", "0xffffffffffffffff", "0xAb", "0x0-0xffffffffffffffff", "0x7-0x7"}) {
        EXPECT_EQ(ranges(good), "it is taken") << good;
    }
    for (const char* const bad : {"", "0x", "1", "x1", "0x1z", "0x1 ", "0x10000000000000000", "-",
                                  "0x1-", "-0x1", "0x1-2", "1-0x2", "0x1-0x2-0x3", "0x1-0x"}) {
        EXPECT_EQ(ranges(bad), "fids[0]: not a range of fids in hexadecimal") << bad;
    }
    EXPECT_EQ(ranges("0x8-0x7"), "fids[0]: ends before it begins");
    EXPECT_EQ(ranges("0x1\\u001b"), "fids[0]: a control character or an invisible character");
    EXPECT_FALSE(is_taken({.name = "a", .fids = {{{.first = Fid{8}, .last = Fid{7}}, {}}}}));
}

TEST(AnnouncementLimits, AnInstanceIsAWholeNumberInHexadecimal) {
    const auto refusal = [](const std::string& instance) {
        try {
            parse_announcement(R"({"netio":1,"name":"a","counter":1,"pid":1,"instance":")" +
                               instance + "\"}");
        } catch (const AnnouncementError& error) {
            return std::string{error.what()};
        }
        return std::string{"it is taken"};
    };
    EXPECT_EQ(refusal("0xffffffffffffffff"), "it is taken");
    for (const char* const bad : {"", "0x", "7", "0x1z", "0x10000000000000000"})
        EXPECT_EQ(refusal(bad), "instance: not a number in hexadecimal") << bad;
    EXPECT_EQ(refusal(text_of(257)), "instance: longer than 256 bytes");
}

TEST(AnnouncementLimits, FieldsOfAGroupAreChecked) {
    EXPECT_EQ(refusal_of_pairs(R"("pid":1,"fids":[7])"), "fids[0]: not an object");
    EXPECT_EQ(refusal_of_pairs(R"("pid":1,"fids":[{"ranges":[]},{}])"),
              "fids[1]: ranges is missing");
    EXPECT_EQ(refusal_of_pairs(R"("pid":1,"fids":[{"ranges":{}}])"), "ranges: not a list");
}

TEST(AnnouncementLimits, APidIsANumberOfAProcess) {
    EXPECT_EQ(refusal_of_pairs(R"("pid":0)"), "it is taken");
    EXPECT_EQ(refusal_of_pairs(R"("pid":2147483647)"), "it is taken");
    EXPECT_EQ(refusal_of_pairs(R"("pid":2147483648)"), "pid: too large");
    EXPECT_EQ(refusal_of_pairs(R"("pid":-1)"), "pid: not a number");
    EXPECT_TRUE(is_taken({.name = "a", .pid = 0}));
    EXPECT_FALSE(is_taken({.name = "a", .pid = -1}));
}

TEST(AnnouncementLimits, ALeaseMayBeTheLeastAndTheLongest) {
    for (const auto lease : {least_lease, longest_lease, std::chrono::milliseconds{0}})
        EXPECT_TRUE(is_taken({.name = "a", .lease = lease})) << lease.count();
    EXPECT_EQ(refusal_of_pairs(R"("pid":1,"lease_ms":3600000)"), "it is taken");
    for (const char* const bad : {"1", "99", "3600001", "18446744073709551615"}) {
        EXPECT_EQ(refusal_of_pairs(std::string{R"("pid":1,"lease_ms":)"} + bad),
                  "lease_ms: not 100 to 3600000")
            << bad;
    }
}

} // namespace
} // namespace netio::pubsub::announcement_test
