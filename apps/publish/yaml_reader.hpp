// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a YAML document. Every mistake is reported in one line that names the file, the line, the
// column, the key, the problem and what is allowed. Unknown and repeated keys are mistakes. A map
// may include others by merge keys: `<<: *other`, or `<<: [*one, *other]`; its own keys have
// priority, then those of earlier maps.

#include "netio/base/time.hpp"

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps {

// what() is "FILE:LINE:COLUMN: KEY: problem; allowed: ...", without the place if there is none.
class ConfigError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A value in the document, with its position.
class YamlValue {
  public:
    YamlValue(std::string file, std::string key, const YAML::Node& node, const YAML::Mark& mark)
        : file_{std::move(file)}, key_{std::move(key)}, node_{node}, mark_{mark} {}

    // Throws ConfigError also if the text is not YAML.
    static YamlValue document(const std::string& text, const std::string& file);

    [[noreturn]] void fail(const std::string& problem, const std::string& allowed) const;

    bool is_map() const { return node_.IsMap(); }
    bool is_list() const { return node_.IsSequence(); }
    bool is_scalar() const { return node_.IsScalar(); }
    const std::string& key() const noexcept { return key_; }
    // "FILE:LINE:COLUMN: KEY"
    std::string where() const;

    // Throws ConfigError if the map has other keys than these, or a key twice.
    void expect_keys(const std::vector<std::string_view>& allowed) const;
    std::optional<YamlValue> find(std::string_view key) const;
    // Returns a required value; `allowed` is shown in the error if the key is missing.
    YamlValue get(std::string_view key,
                  const std::string& allowed = "see config/ for examples") const;
    std::vector<YamlValue> list() const; // not empty
    // The entries of a map whose keys the user chooses, each once; not empty.
    std::vector<std::pair<std::string, YamlValue>> names() const;

    std::string text(const std::string& allowed) const;
    std::uint64_t number(std::uint64_t min, std::uint64_t max) const;
    // above < value <= max; `also` describes further allowed values in an error.
    double real(double above, double max, std::string_view also = {}) const;
    bool flag() const;
    // Returns a word, or a list or a map of words, as one line of YAML: {a: 1, b: [2, 3]}.
    std::string as_line(const std::string& allowed) const;
    // A number of bytes; KiB, MiB and GiB are powers of 1024.
    std::size_t bytes(std::size_t min, std::size_t max) const;
    // A time with its unit, rounded up to whole steps. A bare number has no unit and is refused,
    // except 0 if `min` is 0.
    netio::Duration time(netio::Duration min, netio::Duration max, netio::Duration step) const;
    // Returns the position of the value among the choices; `also` describes further allowed values
    // in an error.
    std::size_t choice(const std::vector<std::string_view>& choices,
                       std::string_view also = {}) const;

  private:
    using Entry = std::pair<YAML::Node, YAML::Node>;
    // The entries of a map, its own before merged ones.
    std::vector<Entry> entries() const;
    void merge(const YAML::Node& from, std::vector<Entry>& into, std::size_t& maps) const;

    std::string file_;
    std::string key_;
    YAML::Node node_;
    YAML::Mark mark_;
};

} // namespace apps
