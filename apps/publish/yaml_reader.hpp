// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a YAML document so that every mistake in it becomes one line that names the file, the line,
// the column, the key, what is wrong and what is allowed. Unknown and repeated keys are mistakes.
// A map may take over what others have by merge keys: `<<: *other`, or `<<: [*one, *other]`; what
// it has itself comes first, then what the earlier one has.

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

// what(): "FILE:LINE:COLUMN: KEY: problem; allowed: ...", or without a place where there is none.
class ConfigError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A value in the document: it knows where it stands.
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

    // A map must have no other keys than these, each once.
    void expect_keys(const std::vector<std::string_view>& allowed) const;
    std::optional<YamlValue> find(std::string_view key) const;
    // Required; `allowed` is what the error names if the key is missing.
    YamlValue get(std::string_view key,
                  const std::string& allowed = "see config/ for examples") const;
    std::vector<YamlValue> list() const; // not empty
    // A map whose keys are the user's, each once; not empty.
    std::vector<std::pair<std::string, YamlValue>> names() const;

    std::string text(const std::string& allowed) const;
    std::uint64_t number(std::uint64_t min, std::uint64_t max) const;
    // above < value <= max; `also` is what else the error shall call allowed.
    double real(double above, double max, std::string_view also = {}) const;
    bool flag() const;
    // Of a word, or a list or a map of them, what would stand in one line of YAML: {a: 1, b: [2,
    // 3]}.
    std::string as_line(const std::string& allowed) const;
    // A number of bytes; k, M and G stand for 1024, its square and its cube.
    std::size_t bytes(std::size_t min, std::size_t max) const;
    // The position of the value among the choices; `also` is what else the error shall call
    // allowed.
    std::size_t choice(const std::vector<std::string_view>& choices,
                       std::string_view also = {}) const;

  private:
    using Entry = std::pair<YAML::Node, YAML::Node>;
    // Of a map, its own ones before those that it takes over.
    std::vector<Entry> entries() const;
    void merge(const YAML::Node& from, std::vector<Entry>& into, std::size_t& maps) const;

    std::string file_;
    std::string key_;
    YAML::Node node_;
    YAML::Mark mark_;
};

} // namespace apps
