// SPDX-License-Identifier: Apache-2.0
#include "netio/access/rights.hpp"
#include "netio/session/handshake.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace netio::access::rights_test {
namespace {

constexpr std::uint64_t last_fid = std::numeric_limits<std::uint64_t>::max();

std::size_t looked_at = 0;

std::string problem_of(const std::string& words) {
    try {
        static_cast<void>(parse_rights(words));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "nothing";
}

TEST(Rights, ComeBackAsTheyWereWritten) {
    for (const std::string words :
         {"services=pubsub connections=64",
          "services=messages,pubsub,stream,probe connections=1 rma",
          "services=pubsub fids=0-63:drop,64:block!,100-200:disconnect,18446744073709551615 "
          "connections=4",
          "services=stream folder=.:overwrite folder=incoming folder=data/run-7_x "
          "connections=4096"}) {
        const Rights rights = parse_rights(words);
        EXPECT_EQ(to_string(rights), words);
        EXPECT_EQ(parse_rights(to_string(rights)), rights);
    }
    EXPECT_EQ(parse_rights("services=all"), parse_rights("services=probe,stream,pubsub,messages"));
    EXPECT_EQ(parse_rights(" \tfids=0x10-0x1f\t services=pubsub ").fids,
              (std::vector<FidRight>{{.first = 16, .last = 31}}));
}

TEST(Rights, AnInvalidTextIsRefusedWithTheAllowedForms) {
    EXPECT_NE(problem_of("").find("add services="), std::string::npos);
    for (const std::string words : {"connections=4",
                                    "services=",
                                    "services=pubsub,",
                                    "services=mail",
                                    "services=pubsub services=all",
                                    "services=pubsub fids=",
                                    "services=pubsub fids=1,,2",
                                    "services=pubsub fids=5-4",
                                    "services=pubsub fids=0-5,5",
                                    "services=pubsub fids=x",
                                    "services=pubsub fids=-1",
                                    "services=pubsub fids=0x",
                                    "services=pubsub fids=18446744073709551616",
                                    "services=pubsub fids=1:",
                                    "services=pubsub fids=1:!",
                                    "services=pubsub fids=1:keep",
                                    "services=pubsub fids=1-2-3",
                                    "services=pubsub connections=0",
                                    "services=pubsub connections=4097",
                                    "services=pubsub connections=4x",
                                    "services=pubsub connections",
                                    "services=pubsub rma=no",
                                    "services=pubsub rma rma",
                                    "services=pubsub write",
                                    "services=stream folder=",
                                    "services=stream folder=/etc",
                                    "services=stream folder=a/../b",
                                    "services=stream folder=a/",
                                    "services=stream folder=..",
                                    "services=stream folder=./a",
                                    "services=stream folder=a:write",
                                    "services=stream folder=\x01"}) {
        EXPECT_NE(problem_of(words), "nothing") << words;
    }
    const std::string secret = "nk1-" + std::string(20, 'a');
    EXPECT_EQ(problem_of("services=pubsub " + secret).find(secret), std::string::npos);
}

TEST(Rights, NameTheServicesOfTheHello) {
    const auto has = [](const char* words, Service service) {
        return parse_rights(words).may_use(static_cast<std::uint8_t>(service));
    };
    EXPECT_TRUE(has("services=messages", Service::messages));
    EXPECT_TRUE(has("services=pubsub", Service::publish_subscribe));
    EXPECT_TRUE(has("services=stream", Service::stream));
    EXPECT_TRUE(parse_rights("services=probe").may_use(4)); // the probe of netio doctor
    EXPECT_FALSE(has("services=messages,stream", Service::publish_subscribe));
    EXPECT_FALSE(Rights{}.may_use(1));
}

TEST(Rights, PermitAFidIfARangeHasItAndNoOther) {
    const Rights rights = parse_rights("services=pubsub fids=10-19,20-29,40,18446744073709551615");
    const auto may = [&](std::uint64_t first, std::uint64_t last) {
        return rights.subscribe(first, last, {}, looked_at).permitted;
    };
    for (std::uint64_t first = 0; first < 45; ++first) {
        for (std::uint64_t last = first; last < 45; ++last) {
            bool every = true;
            for (std::uint64_t fid = first; fid <= last; ++fid)
                every = every && ((fid >= 10 && fid <= 29) || fid == 40);
            EXPECT_EQ(may(first, last), every) << first << "-" << last;
        }
    }
    EXPECT_TRUE(may(last_fid, last_fid));
    EXPECT_FALSE(may(last_fid - 1, last_fid));
    EXPECT_FALSE(may(0, last_fid));
    EXPECT_TRUE(parse_rights("services=pubsub fids=0-18446744073709551615")
                    .subscribe(0, last_fid, {}, looked_at)
                    .permitted);
    EXPECT_FALSE(Rights{}.subscribe(0, 0, {}, looked_at).permitted);
}

TEST(Rights, DetermineThePolicyOfASubscription) {
    const std::optional<SlowPolicy> none;
    const std::vector<std::optional<SlowPolicy>> wishes{none, SlowPolicy::drop, SlowPolicy::newest,
                                                        SlowPolicy::disconnect, SlowPolicy::block};
    const Rights rights =
        parse_rights("services=pubsub "
                     "fids=1,2:drop,3:disconnect,4:block,5:drop!,6:block!,7:newest,8:newest!");
    // Result for each fid and requested policy; "-" refused, "own" the publisher's default.
    const std::vector<std::vector<std::string>> expected{
        {"own", "drop", "newest", "disconnect", "block"},
        {"drop", "drop", "-", "-", "-"},
        {"disconnect", "drop", "newest", "disconnect", "-"},
        {"block", "drop", "newest", "disconnect", "block"},
        {"drop", "drop", "drop", "drop", "drop"},
        {"block", "block", "block", "block", "block"},
        {"newest", "drop", "newest", "-", "-"},
        {"newest", "newest", "newest", "newest", "newest"}};
    const std::vector<std::string> names{"drop", "newest", "disconnect", "block"};
    for (std::uint64_t fid = 1; fid <= 8; ++fid) {
        for (std::size_t wish = 0; wish < wishes.size(); ++wish) {
            const auto answer = rights.subscribe(fid, fid, wishes[wish], looked_at);
            const std::string got = !answer.permitted ? "-"
                                    : answer.slow_policy
                                        ? names[static_cast<std::size_t>(*answer.slow_policy)]
                                        : "own";
            EXPECT_EQ(got, expected[fid - 1][wish]) << "fid " << fid << ", wish " << wish;
        }
    }
    // A request gets a single policy for all its fids.
    EXPECT_FALSE(rights.subscribe(1, 2, none, looked_at).permitted);
    EXPECT_TRUE(rights.subscribe(1, 4, SlowPolicy::drop, looked_at).permitted);
}

TEST(Rights, LetACopyIntoItsFoldersOnly) {
    const Rights rights = parse_rights("services=stream folder=in:overwrite folder=logs/a");
    EXPECT_TRUE(rights.may_write("in/file", false));
    EXPECT_TRUE(rights.may_write("in/deep/file", true));
    EXPECT_TRUE(rights.may_write("logs/a/file", false));
    EXPECT_FALSE(rights.may_write("logs/a/file", true));
    for (const char* path : {"in", "in/", "inside/file", "file", "logs/file", "logs/ab/file", ""})
        EXPECT_FALSE(rights.may_write(path, false)) << path;
    EXPECT_TRUE(parse_rights("services=stream folder=.").may_write("any", false));
    EXPECT_FALSE(Rights{}.may_write("file", false));
}

// For any number of ranges in a key, wherever the fid is.
TEST(Rights, FindAFidInLogarithmicTime) {
    Rights rights;
    for (std::uint64_t i = 0; i < 65536; ++i)
        rights.fids.push_back({.first = 10 * i, .last = 10 * i + 4});
    for (std::uint64_t i = 0; i < 65536; i += 771) {
        looked_at = 0;
        EXPECT_TRUE(rights.subscribe(10 * i, 10 * i + 4, {}, looked_at).permitted);
        EXPECT_FALSE(rights.subscribe(10 * i, 10 * i + 5, {}, looked_at).permitted);
        EXPECT_LE(looked_at, 2U * (17 + 2));
    }
}

TEST(Rights, ToAFolderAreThoseOfTheWidestThatPermitsIt) {
    const Rights rights = parse_rights(
        "services=stream folder=data folder=data/run:overwrite folder=in folder=data/run/7");
    const auto folder_of = [&](const char* path, bool over_another) -> std::string {
        const FolderRight* const found = rights.folder_for(path, over_another);
        return found == nullptr ? "" : found->folder;
    };
    EXPECT_EQ(folder_of("data/run/7/a", false), "data");
    EXPECT_EQ(folder_of("data/run/7/a", true), "data/run");
    EXPECT_EQ(folder_of("in/a", false), "in");
    EXPECT_EQ(folder_of("in/a", true), "");
    const Rights all = parse_rights("services=stream folder=in folder=.");
    EXPECT_EQ(all.folder_for("in/a", false)->folder, ".");
}

TEST(Rights, AWordIsShownInAnErrorIfItIsShortAndPlain) {
    const auto told = [](const std::string& word) { return problem_of("services=pubsub " + word); };
    for (const std::string& word : {std::string{"w"}, std::string{"!~"}, std::string(40, 'w')})
        EXPECT_EQ(told(word).find("'" + word + "' is no right"), 0U) << word;
    for (const std::string& word :
         {std::string(41, 'w'), std::string{"\x01w"}, std::string{"w\x7f"},
          std::string{"w\xc3\xa9"}, std::string{"nk1-00"}})
        EXPECT_EQ(told(word).find("this is no right"), 0U) << word;
}

TEST(Rights, TheWidestFolderCountsAtAnyPosition) {
    const auto folder_of = [](const char* words, const char* path) {
        return parse_rights(words).folder_for(path, false)->folder;
    };
    EXPECT_EQ(folder_of("services=stream folder=data/run folder=data", "data/run/7"), "data");
    EXPECT_EQ(folder_of("services=stream folder=data folder=data/run", "data/run/7"), "data");
    EXPECT_EQ(folder_of("services=stream folder=a folder=.", "a/x"), ".");
    EXPECT_EQ(folder_of("services=stream folder=. folder=a", "a/x"), ".");
}

} // namespace
} // namespace netio::access::rights_test
