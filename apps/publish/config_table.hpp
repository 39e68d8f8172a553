// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a YAML document. Every mistake is reported in one line that names the file, the line, the
// column, the key, the problem and what is allowed. Unknown and repeated keys are mistakes. A map
// may include others by merge keys: `<<: *other`, or `<<: [*one, *other]`; its own keys have
// priority, then those of earlier maps.

#include "apps/common/parse.hpp"
#include "netio/base/check.hpp"
#include "netio/base/time.hpp"

#include <yaml-cpp/yaml.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
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

// The table of all keys that a configuration of `netio publish` may have. A row binds a key, its
// type and range, its default, its meaning and the option that it sets. One loop over the rows
// reads a file (read_section()); the reference and the JSON schema are generated from the same
// rows. No I/O.

// The allowed type and range of a value.
struct Shape {
    enum class Kind : std::uint8_t {
        text,    // `name` describes it
        whole,   // a number from `min` to `max`
        real,    // a number above `above`, up to `most`
        bytes,   // a size from `min` to `max`
        time,    // with its unit, from `min` to `max` nanoseconds; 0 also without a unit
        flag,    // false, true
        word,    // one of `words`
        fids,    // apps/common/fid_text.hpp
        section, // a map with the keys of the section `name`
        list,    // of values, each with one of the shapes `of`
        names,   // a map from the user's names to values with one of the shapes `of`
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

namespace shapes {

inline Shape of_kind(Shape::Kind kind, std::string name = {}, std::vector<Shape> of = {}) {
    return {kind, 0, 0, 0, 0, std::move(name), {}, std::move(of)};
}
inline Shape text(std::string what) {
    return of_kind(Shape::Kind::text, std::move(what));
}
inline Shape whole(std::uint64_t min, std::uint64_t max) {
    return {Shape::Kind::whole, min, max, 0, 0, {}, {}, {}};
}
inline Shape bytes(std::uint64_t min, std::uint64_t max) {
    return {Shape::Kind::bytes, min, max, 0, 0, {}, {}, {}};
}
inline Shape duration(netio::Duration min, netio::Duration max) {
    return {Shape::Kind::time,
            static_cast<std::uint64_t>(min.count()),
            static_cast<std::uint64_t>(max.count()),
            0,
            0,
            {},
            {},
            {}};
}
inline Shape real(double above, double most) {
    return {Shape::Kind::real, 0, 0, above, most, {}, {}, {}};
}
inline Shape flag() {
    return of_kind(Shape::Kind::flag);
}
inline Shape word(std::vector<std::string> words) {
    return {Shape::Kind::word, 0, 0, 0, 0, {}, std::move(words), {}};
}
inline Shape fids() {
    return of_kind(Shape::Kind::fids);
}
inline Shape section(std::string name) {
    return of_kind(Shape::Kind::section, std::move(name));
}
inline Shape list(Shape of) {
    return of_kind(Shape::Kind::list, {}, {std::move(of)});
}
inline Shape names(Shape of) {
    return of_kind(Shape::Kind::names, {}, {std::move(of)});
}

} // namespace shapes

// State of the rest of the document for the readers of values.
struct ReadContext {
    std::string file;            // the file's name in errors
    std::string folder;          // relative paths are relative to it; may be empty
    std::uint64_t next_seed = 1; // for the next stream without its own seed
    bool input_taken = false;    // a stream reads standard input
    // State of the publisher and the stream that are being read.
    std::vector<std::string> triggers; // names
    std::size_t largest_message = 0;
    bool sends_times = false; // the publisher's option time_stamps
    std::size_t fid_count = 0;
    std::size_t size_min = 0;
    std::size_t size_max = 0;
};

struct ConfigKey {
    std::string section;
    std::string name;
    std::vector<Shape> shapes; // the value has one of these shapes
    std::string fallback;      // the default, if the key is absent
    std::string meaning;
    bool required = false;
    // Sets the option in the section's object. Empty if the reader of the section does it.
    std::function<void(const YamlValue& value, void* object, ReadContext& context)> set;
    const std::type_info* object = nullptr; // the type of the section's object
};

// In the order of the reference, which is also the order in which the keys of a map are read.
const std::vector<ConfigKey>& config_keys();

// Title and description of a section.
struct ConfigSection {
    std::string name;
    std::string title;
    std::string meaning;
};
const std::vector<ConfigSection>& config_sections();

// Throws ConfigError if the value is no map, or has a key that none of the sections has.
void expect_keys(const YamlValue& value, const std::vector<std::string_view>& sections);
// Processes the rows of a section in order: sets the options that the map has, and throws
// ConfigError if a required key is missing.
void read_rows(const YamlValue& value, std::string_view section, void* object,
               const std::type_info& type, ReadContext& context);
template <typename Object>
void read_rows(const YamlValue& value, std::string_view section, Object& object,
               ReadContext& context) {
    read_rows(value, section, &object, typeid(Object), context);
}
template <typename Object>
void read_section(const YamlValue& value, std::string_view section, Object& object,
                  ReadContext& context) {
    expect_keys(value, {section});
    read_rows(value, section, object, context);
}
// `section: VALUE` is short for `section: {KEY: VALUE}`, with the first key of the section.
template <typename Object>
void read_short_section(const YamlValue& value, std::string_view section, Object& object,
                        ReadContext& context) {
    if (value.is_map()) return read_section(value, section, object, context);
    for (const ConfigKey& key : config_keys())
        if (key.section == section) return key.set(value, &object, context);
}

// Returns all keys as docs/configuration.md (Markdown), and as a JSON schema for editors.
std::string config_reference();
std::string config_schema();

std::string shown_default(const Shape& shape, std::uint64_t value);

// The rows of a section whose values go to an Object.
template <typename Object>
class SectionRows {
  public:
    SectionRows(std::vector<ConfigKey>& keys, std::string section, Object defaults = {})
        : keys_{keys}, section_{std::move(section)}, defaults_{std::move(defaults)} {}

    // Adds the key of `Member`, an option of the section's object.
    template <auto Member>
    void add(const Shape& shape, std::string meaning, std::optional<std::string> fallback = {}) {
        add(yaml_key<Member>(), Member, shape, std::move(meaning), std::move(fallback));
    }
    // A key of another name, which no option of the libraries has, or yaml_key() with a `member` in
    // the object. `member` is a pointer to a member, or a function that returns a reference into an
    // Object. Its type and the shape decide how the value is read. The default is that of the
    // Object, or `fallback`.
    template <typename Member>
    void add(std::string name, Member member, const Shape& shape, std::string meaning,
             std::optional<std::string> fallback = {}) {
        if (!fallback) fallback = default_of(shape, std::invoke(member, defaults_));
        add_custom(std::move(name), {shape}, *fallback, std::move(meaning),
                   [member, shape](const YamlValue& value, Object& object, ReadContext&) {
                       store(value, shape, std::invoke(member, object));
                   });
    }
    // Adds a map with the keys of another section; the shape before it, if any, is its short form.
    template <typename Member>
    void add_section(std::string name, Member member, std::vector<Shape> shapes,
                     std::string fallback, std::string meaning) {
        const bool has_short_form = shapes.size() > 1;
        std::string section = shapes.back().name;
        add_custom(std::move(name), std::move(shapes), std::move(fallback), std::move(meaning),
                   [member, has_short_form, section](const YamlValue& value, Object& object,
                                                     ReadContext& context) {
                       auto& inner = std::invoke(member, object);
                       has_short_form ? read_short_section(value, section, inner, context)
                                      : read_section(value, section, inner, context);
                   });
    }
    // Adds a row whose option is set by `read(value, object, context)`.
    template <typename Read>
    void add_custom(std::string name, std::vector<Shape> shapes, std::string fallback,
                    std::string meaning, Read read) {
        add_deferred(std::move(name), std::move(shapes), std::move(fallback), std::move(meaning));
        keys_.back().set = [read](const YamlValue& value, void* object, ReadContext& context) {
            read(value, *static_cast<Object*>(object), context);
        };
    }
    // Adds a row that the reader of the section reads later, because it depends on following keys.
    void add_deferred(std::string name, std::vector<Shape> shapes, std::string fallback,
                      std::string meaning) {
        keys_.push_back({section_,
                         std::move(name),
                         std::move(shapes),
                         std::move(fallback),
                         std::move(meaning),
                         false,
                         {},
                         &typeid(Object)});
    }
    // Makes the last row required.
    void require() {
        keys_.back().required = true;
        keys_.back().fallback.clear();
    }

  private:
    template <typename Value>
    static std::string default_of(const Shape& shape, const Value& value) {
        if constexpr (std::same_as<Value, bool>) {
            return shape.kind == Shape::Kind::word ? shape.words.at(value ? 1 : 0)
                   : value                         ? "true"
                                                   : "false";
        } else if constexpr (std::is_enum_v<Value>) {
            return shape.words.at(static_cast<std::size_t>(value));
        } else if constexpr (std::integral<Value>) {
            return shown_default(shape, value);
        } else if constexpr (requires { value.count(); }) {
            return shown_time(value);
        } else {
            return {};
        }
    }
    template <typename Value>
    static void store(const YamlValue& value, const Shape& shape, Value& target) {
        const auto choice = [&] { return value.choice({shape.words.begin(), shape.words.end()}); };
        if constexpr (std::same_as<Value, bool>) {
            target = shape.kind == Shape::Kind::word ? choice() == 1 : value.flag();
        } else if constexpr (std::is_enum_v<Value>) {
            target = static_cast<Value>(choice());
        } else if constexpr (std::floating_point<Value>) {
            target = value.real(shape.above, shape.most);
        } else if constexpr (std::integral<Value>) {
            target = static_cast<Value>(shape.kind == Shape::Kind::bytes
                                            ? value.bytes(shape.min, shape.max)
                                            : value.number(shape.min, shape.max));
        } else if constexpr (requires { target.count(); }) {
            const auto limit = [](std::uint64_t count) {
                return netio::Duration{static_cast<netio::Duration::rep>(count)};
            };
            target = std::chrono::duration_cast<Value>(
                value.time(limit(shape.min), limit(shape.max), Value{1}));
        } else {
            store(value, shape, target.emplace());
        }
    }

    std::vector<ConfigKey>& keys_;
    std::string section_;
    Object defaults_;
};

} // namespace apps
