// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every key that a configuration of `netio publish` may have: one table, from which the reader
// takes keys, words and limits, and from which the reference and the JSON schema are written, so
// that none of them knows what another does not. No I/O.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

// What may stand behind a key.
struct Shape {
    enum class Kind : std::uint8_t {
        text,    // `name` says what
        whole,   // a number from `min` to `max`
        real,    // a number above `above`, up to `most`
        bytes,   // a size from `min` to `max`
        flag,    // false, true
        word,    // one of `words`
        fids,    // apps/common/fid_spec.hpp
        section, // a map with the keys of the section `name`
        list,    // of `of`, each of which has one of these shapes
        names,   // a map from names of the user's to what has one of the shapes `of`
    };
    Kind kind = Kind::text;
    std::uint64_t min = 0;
    std::uint64_t max = 0;
    double above = 0;
    double most = 0;
    std::string name;
    std::vector<std::string> words;
    std::vector<Shape> of;
};

struct ConfigKey {
    std::string section;
    std::string name;
    std::vector<Shape> shapes; // one of them
    std::string fallback;      // what holds where the key is left out
    std::string meaning;
    bool required = false;
};

// In the order of the reference.
const std::vector<ConfigKey>& config_keys();
// The key is in the table (checked).
const ConfigKey& config_key(std::string_view section, std::string_view name);
// The shape of that kind (checked).
const Shape& shape_of(const ConfigKey& key, Shape::Kind kind);

// What is said of a section as a whole.
struct ConfigSection {
    std::string name;
    std::string title;
    std::string meaning;
};
const std::vector<ConfigSection>& config_sections();

} // namespace apps
