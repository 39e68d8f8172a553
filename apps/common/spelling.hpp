// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the word that was meant. No I/O.

#include <span>
#include <string>
#include <string_view>

namespace apps {

// " (did you mean 'x'?)" with the nearest of the words, or nothing if none is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> words);

} // namespace apps
