// SPDX-License-Identifier: Apache-2.0
// The example configurations, damaged at random: each is read or refused in one line, without
// delay.

#include "apps/publish/publisher_config.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace apps::publisher_config_fuzz_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> examples() {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator{NETIO_CONFIG_FOLDER})
        paths.push_back(entry.path());
    std::ranges::sort(paths); // the order in a folder is undefined
    std::vector<std::string> texts;
    for (const auto& path : paths) {
        std::ifstream in{path};
        texts.emplace_back(std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{});
    }
    return texts;
}

class Vandal {
  public:
    explicit Vandal(std::uint64_t seed) : random_{seed} {}

    std::string damaged_example() {
        std::string text = examples_[below(examples_.size())];
        for (std::size_t left = 1 + below(6); left > 0 && !text.empty(); --left)
            damage(text);
        return text;
    }

  private:
    std::size_t below(std::size_t limit) { return random_() % limit; }
    char letter() {
        // Characters with a meaning in YAML, numbers, sizes and fids.
        constexpr std::string_view letters = "{}[]:,-&*!|>'\"%@`#?.\n\t  0123456789xaMkG<~=\\";
        return letters[below(letters.size())];
    }
    void damage(std::string& text) {
        const std::size_t at = below(text.size());
        switch (below(7)) {
        case 0:
            text[at] = static_cast<char>(below(256));
            break;
        case 1:
            text[at] = letter();
            break;
        case 2:
            text.insert(at, 1 + below(20), letter());
            break;
        case 3:
            text.erase(at, 1 + below(20));
            break;
        case 4:
            text.insert(below(text.size()), text.substr(at, 1 + below(40)));
            break;
        case 5: {
            const std::string& other = examples_[below(examples_.size())];
            text.insert(at, other, below(other.size()), 1 + below(60));
            break;
        }
        default:
            text.resize(at);
        }
    }

    std::vector<std::string> examples_ = examples();
    std::mt19937_64 random_;
};

TEST(PublisherConfigFuzz, ADamagedExampleIsReadOrRefusedInOneLine) {
    Vandal vandal{1};
    int read = 0;
    int refused = 0;
    for (int run = 0; run < 3000; ++run) {
        const std::string text = vandal.damaged_example();
        SCOPED_TRACE("run " + std::to_string(run) + ":\n" + text);
        try {
            const PublishConfig config =
                parse_publish_config(text, "test.yaml", NETIO_CONFIG_FOLDER);
            ASSERT_FALSE(config.publishers.front().streams.empty());
            ++read;
        } catch (const ConfigError& error) {
            ASSERT_THAT(error.what(), StartsWith("test.yaml:"));
            ASSERT_THAT(error.what(), HasSubstr("; allowed: "));
            ASSERT_THAT(error.what(), Not(HasSubstr("\n")));
            ++refused;
        }
    }
    EXPECT_GT(read, 100);
    EXPECT_GT(refused, 1000);
}

} // namespace
} // namespace apps::publisher_config_fuzz_test
