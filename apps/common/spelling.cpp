// SPDX-License-Identifier: Apache-2.0
#include "apps/common/spelling.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace apps {
namespace {

// How many letters must be changed, added or taken away.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
        }
    }
    return row[b.size()];
}

} // namespace

std::string suggestion(std::string_view word, std::span<const std::string_view> words) {
    const auto far = [&](std::string_view each) {
        const bool begins = word.size() > 2 && each.starts_with(word);
        return begins ? std::size_t{1} : distance(word, each);
    };
    const auto closest = std::ranges::min_element(words, {}, far);
    if (closest == words.end() || far(*closest) > 2) return {};
    return " (did you mean '" + std::string{*closest} + "'?)";
}

} // namespace apps
