// SPDX-License-Identifier: Apache-2.0
// An announcement at exactly each of its limits, and beyond; and every character of what is written
// in letters of its own: names, providers and numbers.

#include "pubsub/discovery/announcement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace netio::pubsub {
namespace {

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

std::string refusal_of(const std::string& pairs) {
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

// A document of a hundred bytes for each few bytes of the text.
TEST(AnnouncementLimits, MoreValuesThanAnAnnouncementNeedsAreNotRead) {
    Announcement largest{.name = "a"};
    for (std::uint64_t i = 0; i < announced_ranges_limit; ++i)
        largest.fids.push_back(
            {.fids = {Fid{2 * i}, Fid{2 * i}}, .meaning = i % 2 == 0 ? "a" : "b"});
    EXPECT_TRUE(is_taken(largest)) << "a group for each range";
    EXPECT_EQ(refusal_of("\"x\":" + list_of(300'000, "{}", "{}")),
              "announcement: it has more than 266240 values");
    EXPECT_EQ(refusal_of("\"x\":" + std::string(2'000'000, '[')),
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

// Nobody's list is looked through beyond what it may have.
TEST(AnnouncementLimits, AListThatIsTooLongIsRefusedBeforeItIsLookedAt) {
    const std::size_t ranges = announced_ranges_limit;
    EXPECT_EQ(refusal_of(R"("fids":)" + list_of(ranges + 1, "{}", "7")), "fids: more than 65536");
    const auto group = [](std::size_t count) {
        return R"({"ranges":)" + list_of(count, R"("0x1")", "7") + "}";
    };
    EXPECT_EQ(refusal_of(R"("fids":[)" + group(ranges + 1) + "]"), "fids: more than 65536");
    const std::string half = R"({"ranges":)" + list_of(ranges / 2, R"("0x1")", R"("0x1")") + "}";
    EXPECT_EQ(refusal_of(R"("fids":[)" + half + "," + group(ranges / 2) + "]"),
              "fids[1]: not a text");
    EXPECT_EQ(refusal_of(R"("fids":[)" + half + "," + group(ranges / 2 + 1) + "]"),
              "fids: more than 65536");
    EXPECT_EQ(refusal_of(R"("addresses":)" + list_of(32, R"("tcp:h:1")", "7")),
              "addresses[31]: not a text");
    EXPECT_EQ(refusal_of(R"("addresses":)" + list_of(33, R"("tcp:h:1")", "7")),
              "addresses: more than 32");
    std::string parameters;
    for (int i = 0; i < 65; ++i)
        parameters += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\":7";
    EXPECT_EQ(refusal_of(R"("parameters":{)" + parameters + "}"), "parameters: more than 64");
}

TEST(AnnouncementLimits, AllOfItMayHaveAsManyBytesAsItsLimit) {
    Announcement one{.name = "a"};
    const auto add_group = [&one] {
        // Another meaning than the one before: they do not stand together.
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
    ASSERT_LE(rest, 512U) << "as much as two texts may have";
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
        return refusal_of(R"("pid":1,"fids":[{"ranges":[")" + text + R"("]}])");
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
    EXPECT_EQ(ranges("0x1\\u001b"), "fids[0]: a control character, or one that cannot be seen");
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

TEST(AnnouncementLimits, WhatAGroupOfFidsIsMadeOfIsLookedAt) {
    EXPECT_EQ(refusal_of(R"("pid":1,"fids":[7])"), "fids[0]: not an object");
    EXPECT_EQ(refusal_of(R"("pid":1,"fids":[{"ranges":[]},{}])"), "fids[1]: ranges is missing");
    EXPECT_EQ(refusal_of(R"("pid":1,"fids":[{"ranges":{}}])"), "ranges: not a list");
}

TEST(AnnouncementLimits, APidIsANumberOfAProcess) {
    EXPECT_EQ(refusal_of(R"("pid":0)"), "it is taken");
    EXPECT_EQ(refusal_of(R"("pid":2147483647)"), "it is taken");
    EXPECT_EQ(refusal_of(R"("pid":2147483648)"), "pid: too large");
    EXPECT_EQ(refusal_of(R"("pid":-1)"), "pid: not a number");
    EXPECT_TRUE(is_taken({.name = "a", .pid = 0}));
    EXPECT_FALSE(is_taken({.name = "a", .pid = -1}));
}

TEST(AnnouncementLimits, ALeaseMayBeTheLeastAndTheLongest) {
    for (const auto lease : {least_lease, longest_lease, std::chrono::milliseconds{0}})
        EXPECT_TRUE(is_taken({.name = "a", .lease = lease})) << lease.count();
    EXPECT_EQ(refusal_of(R"("pid":1,"lease_ms":3600000)"), "it is taken");
    for (const char* const bad : {"1", "99", "3600001", "18446744073709551615"}) {
        EXPECT_EQ(refusal_of(std::string{R"("pid":1,"lease_ms":)"} + bad),
                  "lease_ms: not 100 to 3600000")
            << bad;
    }
}

} // namespace
} // namespace netio::pubsub
