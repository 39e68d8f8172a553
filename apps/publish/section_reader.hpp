// SPDX-License-Identifier: Apache-2.0
#pragma once

// A map of a configuration, read by the table of its keys (apps/publish/config_keys.hpp): a key
// that the table does not have is refused, and so is what is not of the shape that it says.

#include "apps/publish/config_keys.hpp"
#include "apps/publish/yaml_reader.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace apps {

class SectionReader {
  public:
    // With the keys of these sections, and no others. Throws ConfigError.
    SectionReader(const YamlValue& value, std::vector<std::string_view> sections);

    const YamlValue& value() const noexcept { return value_; }
    std::optional<YamlValue> find(std::string_view key) const;
    YamlValue get(std::string_view key) const;
    const ConfigKey& row(std::string_view key) const;

    // Each leaves the target as it is where the key is left out.
    template <typename Number>
    void whole(std::string_view key, Number& target) const {
        if (const auto v = find(key)) target = static_cast<Number>(whole(key, *v));
    }
    // In the unit of the target, as the key's name says.
    template <typename Time>
    void time(std::string_view key, Time& target) const {
        if (const auto v = find(key))
            target = Time{static_cast<typename Time::rep>(whole(key, *v))};
    }
    void bytes(std::string_view key, std::size_t& target) const;
    void flag(std::string_view key, bool& target) const;

    // Of a value that has been found.
    std::uint64_t whole(std::string_view key, const YamlValue& value) const;
    double real(std::string_view key, const YamlValue& value, std::string_view also = {}) const;
    std::size_t word(std::string_view key, const YamlValue& value,
                     std::string_view also = {}) const;

  private:
    YamlValue value_;
    std::vector<std::string_view> sections_;
};

} // namespace apps
