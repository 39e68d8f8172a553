// SPDX-License-Identifier: Apache-2.0
#include "netio/access/key_file.hpp"
#include "netio/access/rights.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace netio::access::key_file_test {
namespace {

using namespace std::string_literals;

const std::string file_name = "site.keys";

Secret secret_of(int seed) {
    std::array<std::byte, secret_bytes> bytes{};
    for (std::size_t at = 0; at < bytes.size(); ++at)
        bytes[at] = static_cast<std::byte>(seed * 37 + static_cast<int>(at));
    return Secret{bytes};
}

Key key_of(int id, const std::string& name, const std::string& rights = "services=pubsub") {
    return {.id = static_cast<KeyId>(id),
            .name = name,
            .secret = secret_of(id),
            .rights = parse_rights(rights)};
}

std::string two_keys() {
    return with_key(text_of_one(key_of(7, "monitor", "services=pubsub fids=0-63:drop")),
                    key_of(8, "camera", "services=stream folder=in rma"), file_name);
}

std::string problem_of(const std::string& text) {
    try {
        static_cast<void>(parse_keys(text, file_name));
    } catch (const KeyFileError& error) {
        return error.what();
    }
    return "nothing";
}

std::string replaced(std::string text, const std::string& old, const std::string& fresh) {
    const std::size_t at = text.find(old);
    EXPECT_NE(at, text.npos) << old;
    return text.replace(at, old.size(), fresh);
}

TEST(Secret, ComesBackFromItsText) {
    const Secret secret = secret_of(1);
    ASSERT_TRUE(Secret::parse(secret.text()));
    EXPECT_EQ(*Secret::parse(secret.text()), secret);
    EXPECT_EQ(secret.text().size(), 76U);
    EXPECT_NE(Secret::random(), Secret::random());
    EXPECT_EQ(secret.fingerprint().size(), 8U);
    EXPECT_EQ(secret.text().find(secret.fingerprint()), std::string::npos);
}

TEST(Secret, AWrongOrIncompleteTextIsRefused) {
    const std::string text = secret_of(1).text();
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (const char other : "0123456789abcdefA nk-"s) {
            std::string wrong = text;
            wrong[at] = other;
            EXPECT_EQ(Secret::parse(wrong).has_value(), wrong == text) << wrong;
        }
        EXPECT_FALSE(Secret::parse(text.substr(0, at)));
    }
    EXPECT_FALSE(Secret::parse(text + "0"));
}

// Equal texts must mean equal secrets, so each secret has exactly one text.
TEST(Secret, HasNoOtherText) {
    std::array<std::byte, secret_bytes> bytes{};
    for (std::size_t at = 0; at < bytes.size(); ++at)
        bytes[at] = static_cast<std::byte>(at * 8 + 7); // so that each digit occurs
    const std::string text = Secret{bytes}.text();
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (int code = 0; code < 256; ++code) {
            std::string other = text;
            other[at] = static_cast<char>(code);
            EXPECT_EQ(Secret::parse(other).has_value(), other == text) << at << ", " << code;
        }
    }
}

TEST(KeyText, HoldsWhatWasAdded) {
    const KeyRing ring = parse_keys(two_keys(), file_name);
    ASSERT_EQ(ring.keys().size(), 2U);
    ASSERT_NE(ring.find(7), nullptr);
    EXPECT_EQ(*ring.find(7), key_of(7, "monitor", "services=pubsub fids=0-63:drop"));
    EXPECT_EQ(*ring.find(8), key_of(8, "camera", "services=stream folder=in rma"));
    EXPECT_EQ(ring.find(9), nullptr);
    EXPECT_EQ(ring.find(anyone), nullptr);
}

TEST(KeyText, MayHaveCommentsEmptyLinesAndALineForAnyone) {
    const std::string text =
        replaced(two_keys(), "\nend", "\n\n  \t\n  # nothing\n0 anyone - services=probe\nend");
    const KeyRing ring = parse_keys(text, file_name);
    ASSERT_NE(ring.find(anyone), nullptr);
    EXPECT_EQ(to_string(ring.find(anyone)->rights), "services=probe connections=64");
}

TEST(KeyText, EveryTruncationIsNoticedWithItsLine) {
    const std::string text = two_keys();
    for (std::size_t size = 0; size < text.size(); ++size) {
        const std::string problem = problem_of(text.substr(0, size));
        EXPECT_TRUE(problem.starts_with(file_name + ":")) << size << ": " << problem;
    }
}

TEST(KeyText, ErrorsHaveFileLineAndRemedy) {
    const std::string text = two_keys();
    const std::string key = secret_of(7).text();
    const std::vector<std::pair<std::string, std::string>> cases{
        {"#!/bin/sh\n", ":1: this is no key file"},
        {"\x7f"
         "ELF\n\0\n"s,
         ":1: this is no key file"},
        {replaced(text, "netio-keys 1", "netio-keys 2"), ":1: this is no key file"},
        {replaced(text, "7 monitor", "8 monitor"),
         ":4: the id 8 is used in line 3 already; give one of them another id"},
        {replaced(text, "7 monitor", "256 monitor"), ":3: a line begins with the key's id"},
        {replaced(text, "7 monitor", "seven monitor"), ":3: a line begins with the key's id"},
        {replaced(text, "7 monitor", "0 monitor"), ":3: the line for peers without a key"},
        {replaced(text, "7 monitor", "7 anyone"), ":3: the line for peers without a key"},
        {replaced(text, key, "-"), ":3: the line for peers without a key"},
        {replaced(text, "monitor", "mon+tor"), ":3: a key's name is 1 to 32 letters"},
        {replaced(text, "monitor", std::string(33, 'm')), ":3: a key's name is 1 to 32 letters"},
        {replaced(text, "monitor ", ""), ":3: a key's name is 1 to 32 letters"},
        {replaced(text, key, key.substr(0, 50)), ":3: the third word is not a complete secret"},
        {replaced(text, secret_of(8).text(), key),
         ":4: the key 7 has the same secret; make another with 'netio key new'"},
        {replaced(text, "fids=0-63:drop", "fids=0-63:keep"), ":3: '0-63:keep' is no range"},
        {replaced(text, "services=stream", "services=mail"), ":4: there is no service 'mail'"},
        {text + "9 more\n", ":6: remove the text after 'end'"},
        {text + " ", ":6: remove the text after 'end'"},
        {replaced(text, "\nend\n", "\nend"), ":5: the file ends here"},
        {replaced(text, "\nend\n", "\r\nend\r\n"), ":4: "},
    };
    for (const auto& [wrong, expected] : cases) {
        const std::string problem = problem_of(wrong);
        EXPECT_TRUE(problem.starts_with(file_name + expected))
            << problem << " instead of " << expected;
        EXPECT_EQ(problem.find(key.substr(0, 30)), std::string::npos) << "a secret is shown";
        EXPECT_EQ(problem.find('\n'), std::string::npos);
    }
}

TEST(KeyText, ANameIsOfLettersDigitsDotsDashesAndUnderscores) {
    const std::string allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    for (int code = 0; code < 256; ++code) {
        const std::string name(1, static_cast<char>(code));
        bool good = true;
        try {
            check_name(name);
        } catch (const std::invalid_argument&) {
            good = false;
        }
        EXPECT_EQ(good, allowed.find(name) != std::string::npos) << code;
    }
}

TEST(KeyText, TheLargestIdAndTheLongestNameAreGood) {
    const std::string longest(32, 'm');
    const KeyRing ring = parse_keys(text_of_one(key_of(255, longest)), file_name);
    ASSERT_NE(ring.find(255), nullptr);
    EXPECT_EQ(ring.find(255)->name, longest);
    EXPECT_NE(problem_of(replaced(two_keys(), "7 monitor", "7x monitor")).find(":3: a line begins"),
              std::string::npos);
}

TEST(KeyText, AnIdIsNotGivenTwice) {
    EXPECT_THROW(static_cast<void>(with_key(two_keys(), key_of(7, "other"), file_name)),
                 KeyFileError);
    EXPECT_THROW(static_cast<void>(with_key("torn", key_of(9, "other"), file_name)), KeyFileError);
    const std::string three = with_key(two_keys(), key_of(9, "other"), file_name);
    EXPECT_EQ(parse_keys(three, file_name).keys().size(), 3U);
}

TEST(KeyRing, ReportsTheKeysWhoseConnectionsMustEnd) {
    const KeyRing before = parse_keys(two_keys(), file_name);
    const auto after = [&](const std::string& text) {
        return parse_keys(text, file_name).revoked_since(before);
    };
    const std::string camera = "8 camera";
    EXPECT_EQ(after(two_keys()), std::vector<KeyId>{});
    EXPECT_EQ(after(with_key(two_keys(), key_of(9, "new"), file_name)), std::vector<KeyId>{});
    EXPECT_EQ(after(replaced(two_keys(), camera, "# " + camera)), std::vector<KeyId>{8});
    EXPECT_EQ(after(replaced(two_keys(), "0-63:drop", "0-62:drop")), std::vector<KeyId>{7});
    EXPECT_EQ(after(replaced(two_keys(), secret_of(7).text(), secret_of(1).text())),
              std::vector<KeyId>{7});
    EXPECT_EQ(after("netio-keys 1\nend\n"), (std::vector<KeyId>{7, 8}));
}

// A disk with one file, whose attributes change with it.
struct Disk final : KeySource {
    FileFacts facts{.exists = true, .is_regular = true, .mode = 0600, .owner = 1000};
    std::string text;
    std::string error;
    int reads = 0;
    bool changes_while_read = false;

    void put(const std::string& fresh) {
        text = fresh;
        facts.bytes = fresh.size();
        ++facts.inode;
    }
    FileFacts look(const std::string&) override { return facts; }
    Content read(const std::string&) override {
        ++reads;
        const FileFacts before = facts;
        if (changes_while_read) ++facts.changed_ns;
        return {.before = before, .after = facts, .text = text, .error = error};
    }
    std::uint32_t user() const override { return 1000; }
};

TEST(KeyFile, OnlyAPrivateRegularFileOfOursIsUsed) {
    const FileFacts good{.exists = true, .is_regular = true, .mode = 0600, .owner = 1000};
    const auto problem = [&](auto change) {
        FileFacts facts = good;
        change(facts);
        return judge(facts, 1000, file_name);
    };
    EXPECT_EQ(judge(good, 1000, file_name), "");
    EXPECT_EQ(problem([](FileFacts& facts) { facts.owner = 0; }), "");
    for (std::uint32_t mode = 0; mode < 01000; ++mode) {
        const std::string text = problem([&](FileFacts& facts) { facts.mode = mode; });
        EXPECT_EQ(text.empty(), (mode & 077U) == 0) << mode;
    }
    EXPECT_NE(problem([](FileFacts& facts) { facts.mode = 0640; }).find("mode 0640"),
              std::string::npos);
    EXPECT_NE(problem([](FileFacts& facts) { facts.owner = 1001; }).find("chown"),
              std::string::npos);
    EXPECT_NE(problem([](FileFacts& facts) { facts.exists = false; }).find("no such file"),
              std::string::npos);
    EXPECT_NE(problem([](FileFacts& facts) { facts.is_regular = false; }).find("regular"),
              std::string::npos);
    EXPECT_EQ(problem([](FileFacts& facts) { facts.bytes = key_file_limit_bytes; }), "");
    EXPECT_NE(problem([](FileFacts& facts) { facts.bytes = key_file_limit_bytes + 1; }), "");
}

TEST(KeyFile, IsReadAgainWhenSomethingOfItChanged) {
    Disk disk;
    disk.put(two_keys());
    KeyFile file{file_name, disk};
    file.load();
    EXPECT_EQ(file.ring().keys().size(), 2U);
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(file.refresh(), KeyFile::Refreshed::unchanged);
    EXPECT_EQ(disk.reads, 1);
    disk.put(text_of_one(key_of(7, "monitor", "services=pubsub fids=0-63:drop")));
    EXPECT_EQ(file.refresh(), KeyFile::Refreshed::changed);
    EXPECT_EQ(file.revoked(), std::vector<KeyId>{8});
    EXPECT_EQ(file.ring().keys().size(), 1U);
    // A change of any attribute causes a read.
    for (auto* fact : {&disk.facts.changed_ns, &disk.facts.touched_ns}) {
        ++*fact;
        EXPECT_EQ(file.refresh(), KeyFile::Refreshed::changed);
        EXPECT_TRUE(file.revoked().empty());
    }
    ++disk.facts.device;
    EXPECT_EQ(file.refresh(), KeyFile::Refreshed::changed);
}

TEST(KeyFile, KeepsItsKeysWhileTheFileIsInvalid) {
    Disk disk;
    disk.put(two_keys());
    KeyFile file{file_name, disk};
    file.load();
    const auto broken_by = [&](auto change) {
        const Disk before = disk;
        change();
        EXPECT_EQ(file.refresh(), KeyFile::Refreshed::broken);
        std::string problem = file.problem();
        EXPECT_EQ(file.refresh(), KeyFile::Refreshed::unchanged) << "reported once";
        EXPECT_EQ(file.ring().keys().size(), 2U);
        disk.facts = before.facts;
        disk.text = before.text;
        disk.error.clear();
        EXPECT_EQ(file.refresh(), KeyFile::Refreshed::changed);
        EXPECT_TRUE(file.revoked().empty());
        EXPECT_TRUE(file.problem().empty());
        return problem;
    };
    EXPECT_NE(broken_by([&] { disk.put("torn"); }).find(":1:"), std::string::npos);
    EXPECT_NE(broken_by([&] { disk.facts.mode = 0644; }).find("0644"), std::string::npos);
    EXPECT_NE(broken_by([&] { disk.facts.exists = false; }).find("no such file"),
              std::string::npos);
    EXPECT_NE(broken_by([&] {
                  ++disk.facts.inode;
                  disk.error = "Permission denied";
              }).find("Permission denied"),
              std::string::npos);
    disk.changes_while_read = true;
    EXPECT_THROW(file.load(), KeyFileError);
    EXPECT_EQ(file.ring().keys().size(), 2U);
}

TEST(KeyFile, ThatCannotBeUsedAtTheStartIsAnError) {
    Disk disk;
    disk.facts.exists = false;
    KeyFile file{file_name, disk};
    EXPECT_THROW(file.load(), KeyFileError);
    EXPECT_TRUE(file.ring().keys().empty());
}

} // namespace
} // namespace netio::access::key_file_test
