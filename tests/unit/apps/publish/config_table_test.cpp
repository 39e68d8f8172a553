// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/config_table.hpp"

#include "apps/publish/publisher_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace apps::config_table_test {
namespace {

using testing::HasSubstr;

std::string content(const std::string& name) {
    std::ifstream in{NETIO_DOCS_FOLDER "/" + name};
    return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

TEST(ConfigReference, ThePageAndTheSchemaInDocsAreWhatTheProgramPrints) {
    EXPECT_EQ(content("configuration.md"), config_reference())
        << "netio publish --reference >docs/configuration.md";
    EXPECT_EQ(content("configuration.schema.json"), config_schema())
        << "netio publish --schema >docs/configuration.schema.json";
}

TEST(ConfigReference, EverySectionOfTheTableIsOnThePageAndIsUsed) {
    std::set<std::string> titled;
    for (const ConfigSection& section : config_sections())
        titled.insert(section.name);
    std::set<std::string> used = {"process", "publisher"};
    std::set<std::string> filled;
    const auto note = [&](const Shape& shape, const auto& self) -> void {
        if (shape.kind == Shape::Kind::section) used.insert(shape.name);
        for (const Shape& each : shape.of)
            self(each, self);
    };
    for (const ConfigKey& key : config_keys()) {
        filled.insert(key.section);
        for (const Shape& shape : key.shapes)
            note(shape, note);
    }
    EXPECT_EQ(titled, used);
    EXPECT_EQ(titled, filled);
}

TEST(ConfigReference, EveryKeyHasADescriptionAndADefault) {
    for (const ConfigKey& key : config_keys()) {
        EXPECT_FALSE(key.meaning.empty()) << key.section << "." << key.name;
        const bool is_map = std::ranges::any_of(
            key.shapes, [](const Shape& shape) { return shape.kind == Shape::Kind::section; });
        const bool is_choice = key.section == "size" || key.section == "source";
        EXPECT_TRUE(key.required != !key.fallback.empty() || is_map || is_choice)
            << key.section << "." << key.name;
    }
}

// --- merge keys -----------------------------------------------------------------------------

PublisherConfig parse(const std::string& text) {
    return parse_publish_config(text, "test.yaml", NETIO_CONFIG_FOLDER).publishers.front();
}

std::string error_of(const std::string& text) {
    try {
        parse(text);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no error";
}

const std::string head = "listen: 127.0.0.1:0\nmode: buffered\n";

TEST(MergedMaps, OwnKeysHavePriorityOverMergedKeys) {
    const PublisherConfig config = parse("x-one: &one {source: pattern, size: 40, status: 1}\n"
                                         "x-two: &two {<<: *one, size: 50, count: 7}\n" +
                                         head + "streams:\n  - {<<: *two, fids: 1, status: 3}\n" +
                                         "  - {fids: 2, <<: [*one, *two]}\n");
    EXPECT_EQ(largest(config.streams[0].sizes), 50U);
    EXPECT_EQ(config.streams[0].status, 3);
    EXPECT_EQ(config.streams[0].count, 7U);
    EXPECT_EQ(largest(config.streams[1].sizes), 40U) << "the first in the list has priority";
    EXPECT_EQ(config.streams[1].status, 1);
    EXPECT_EQ(config.streams[1].count, 7U);
}

TEST(MergedMaps, AnErrorInAMergedMapHasItsOwnPosition) {
    EXPECT_THAT(error_of("x-one: &one {source: pattern, sise: 40}\n" + head +
                         "streams:\n  - {<<: *one, fids: 1}\n"),
                testing::StartsWith("test.yaml:1:31: streams[0].sise: unknown key (did you mean "
                                    "'size'?)"));
    EXPECT_THAT(error_of("x-one: &one 7\n" + head + "streams:\n  - {<<: *one, fids: 1}\n"),
                HasSubstr("streams[0]: what is merged is not a map; allowed: <<: *NAME"));
}

TEST(MergedMaps, AFewLinesDoNotStandForMillionsNorForThemselves) {
    std::string text = "x-0: &m0 {status: 1}\n";
    for (int i = 1; i < 30; ++i) {
        text += fmt::format("x-{0}: &m{0} {{<<: [*m{1}, *m{1}, *m{1}]}}\n", i, i - 1);
    }
    EXPECT_THAT(error_of(text + head + "streams:\n  - {<<: *m29, fids: 1}\n"),
                HasSubstr("too many maps are merged"));
    EXPECT_THAT(error_of("x-a: &a {<<: *a, fids: 1}\n" + head + "streams:\n  - *a\n"),
                HasSubstr("; allowed: "));
}

// --- a file of maximum length ---------------------------------------------------------------

TEST(LongConfigurations, AMillionFidsAreOneShortLine) {
    const PublisherConfig config =
        parse(head + "streams:\n  - {fids: 0-999999, source: pattern, size: 40}\n");
    ASSERT_EQ(config.streams[0].fids.size(), 1U);
    EXPECT_EQ(to_integer(config.streams[0].fids[0].last), 999999U);
}

TEST(LongConfigurations, AListOfAsManyFidsAsAFileHolds) {
    std::string list;
    std::size_t count = 0;
    for (; list.size() < 900'000; ++count)
        list += std::to_string(2 * count) + ",";
    const std::string text =
        head + "streams:\n  - {fids: [" + list + "], source: pattern, size: 40}\n";
    EXPECT_EQ(parse(text).streams[0].fids.size(), count);
}

TEST(LongConfigurations, AFidInTwoInterleavedListsIsNamed) {
    constexpr std::size_t count = 60'000;
    std::string even, odd;
    for (std::size_t i = 0; i < count; ++i) {
        even += std::to_string(4 * i) + ",";
        odd += std::to_string(4 * i + 2) + ",";
    }
    const auto two = [&](const std::string& more) {
        return head + "streams:\n  - {fids: [" + even + "], source: pattern, size: 40}\n" +
               "  - {fids: [" + odd + more + "], source: pattern, size: 40}\n";
    };
    const PublisherConfig config = parse(two(""));
    EXPECT_EQ(config.streams[0].fids.size(), count);
    EXPECT_EQ(config.streams[1].fids.size(), count);
    EXPECT_THAT(error_of(two(std::to_string(4 * (count / 2)))),
                HasSubstr("streams[1].fids: 0x1d4c0 belongs to streams[0] already"));
}

} // namespace
} // namespace apps::config_table_test
