// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/config_table.hpp"

#include "apps/common/parse.hpp"
#include "pubsub/core/fid_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace apps {
namespace {

std::string place(const std::string& file, const YAML::Mark& mark) {
    return fmt::format("{}:{}:{}", file, mark.line + 1, mark.column + 1);
}

std::string joined(const std::vector<std::string_view>& words) {
    return fmt::format("{}", fmt::join(words, ", "));
}

// Without a limit, a short file could expand to a very long one, or never end.
constexpr std::size_t merged_maps_limit = 64;

bool is_merge_key(const YAML::Node& key) {
    return key.IsScalar() && key.Scalar() == "<<";
}

// Finds where the documents of a text begin, and ignores their contents.
class DocumentStarts final : public YAML::EventHandler {
  public:
    void OnDocumentStart(const YAML::Mark& mark) override { last = mark; }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}

    YAML::Mark last;
};

// Does not use YAML::LoadAll: if a stray comma or bracket follows a document, it finds empty
// documents endlessly until the memory is full.
std::optional<YAML::Mark> start_of_second_document(const std::string& text) {
    std::istringstream in{text};
    YAML::Parser parser{in};
    DocumentStarts starts;
    if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return {};
    return starts.last;
}

} // namespace

YamlValue YamlValue::document(const std::string& text, const std::string& file) {
    try {
        const YAML::Node node = YAML::Load(text);
        YAML::Mark mark = node.Mark();
        if (mark.is_null()) mark.line = mark.column = 0;
        if (const auto second = start_of_second_document(text)) {
            YamlValue{file, "document", node, *second}.fail("there is more text after the document",
                                                            "one YAML document in a file");
        }
        return {file, "document", node, mark};
    } catch (const YAML::ParserException& error) {
        throw ConfigError(
            fmt::format("{}: document: {}; allowed: YAML (here or in the lines before, check "
                        "indentation, brackets and quotes)",
                        place(file, error.mark), error.msg));
    }
}

void YamlValue::fail(const std::string& problem, const std::string& allowed) const {
    throw ConfigError(fmt::format("{}: {}; allowed: {}", where(), problem, allowed));
}

std::string YamlValue::where() const {
    return fmt::format("{}: {}", place(file_, mark_), key_);
}

std::vector<YamlValue::Entry> YamlValue::entries() const {
    std::vector<Entry> all;
    std::size_t maps = 0;
    if (is_map()) merge(node_, all, maps);
    return all;
}

// A map's own keys have priority over merged keys. expect_keys() reports a key that is given twice
// in one map.
void YamlValue::merge(const YAML::Node& from, std::vector<Entry>& into, std::size_t& maps) const {
    const std::string allowed =
        fmt::format("<<: *NAME, or [*NAME, ...], of maps with other keys; at most {} maps in total",
                    merged_maps_limit);
    if (!from.IsMap()) fail("what is merged is not a map", allowed);
    const bool own = maps++ == 0;
    if (maps > merged_maps_limit) fail("too many maps are merged", allowed);
    std::vector<YAML::Node> others;
    for (const auto& entry : from) {
        if (is_merge_key(entry.first)) {
            others.push_back(entry.second);
            continue;
        }
        const auto same = [&](const Entry& each) {
            return each.first.IsScalar() && entry.first.IsScalar() &&
                   each.first.Scalar() == entry.first.Scalar();
        };
        if (own || std::ranges::none_of(into, same)) into.emplace_back(entry.first, entry.second);
    }
    for (const YAML::Node& other : others) {
        if (!other.IsSequence()) {
            merge(other, into, maps);
            continue;
        }
        for (const auto& each : other)
            merge(each, into, maps);
    }
}

void YamlValue::expect_keys(const std::vector<std::string_view>& allowed) const {
    if (!is_map()) fail("a map is expected", joined(allowed));
    std::set<std::string> seen;
    for (const auto& entry : entries()) {
        const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
        const YamlValue key{file_, key_ == "document" ? name : key_ + "." + name, entry.second,
                            entry.first.Mark()};
        // Reserved for anchors that other values refer to.
        if (key_ == "document" && name.starts_with("x-")) continue;
        if (std::ranges::find(allowed, name) == allowed.end()) {
            key.fail("unknown key" + suggestion(name, allowed), joined(allowed));
        }
        if (!seen.insert(name).second) key.fail("key given twice", "once");
    }
}

std::optional<YamlValue> YamlValue::find(std::string_view key) const {
    for (const auto& entry : entries()) {
        if (!entry.first.IsScalar() || entry.first.Scalar() != key) continue;
        const YAML::Mark mark =
            entry.second.Mark().is_null() ? entry.first.Mark() : entry.second.Mark();
        return YamlValue{file_,
                         key_ == "document" ? std::string{key} : fmt::format("{}.{}", key_, key),
                         entry.second, mark};
    }
    return std::nullopt;
}

YamlValue YamlValue::get(std::string_view key, const std::string& allowed) const {
    if (auto found = find(key)) return *found;
    fail(fmt::format("key '{}' is missing", key), allowed);
}

std::vector<YamlValue> YamlValue::list() const {
    if (!is_list() || node_.size() == 0) fail("a list is expected", "[value, ...], not empty");
    std::vector<YamlValue> values;
    for (const auto& entry : node_)
        values.emplace_back(file_, fmt::format("{}[{}]", key_, values.size()), entry, entry.Mark());
    return values;
}

std::vector<std::pair<std::string, YamlValue>> YamlValue::names() const {
    const std::string allowed = "{NAME: ..., NAME: ...}, not empty";
    std::vector<std::pair<std::string, YamlValue>> values;
    for (const auto& [name, value] : entries()) {
        const YamlValue key{file_, key_, name, name.Mark()};
        const std::string word = key.text(allowed);
        const auto same = [&](const auto& each) { return each.first == word; };
        if (std::ranges::any_of(values, same)) key.fail("'" + word + "' is given twice", "once");
        values.emplace_back(word, YamlValue{file_, fmt::format("{}.{}", key_, word), value,
                                            value.Mark().is_null() ? name.Mark() : value.Mark()});
    }
    if (values.empty()) fail("a map of names is expected", allowed);
    return values;
}

std::string YamlValue::text(const std::string& allowed) const {
    if (!is_scalar() || node_.Scalar().empty()) fail("a single value is expected", allowed);
    // C strings end at a zero byte, so a different text than the written one would be shown or
    // opened.
    if (node_.Scalar().find('\0') != std::string::npos) fail("a zero byte", allowed);
    return node_.Scalar();
}

std::uint64_t YamlValue::number(std::uint64_t min, std::uint64_t max) const {
    const std::string allowed = fmt::format("a whole number from {} to {}", min, max);
    const std::string word = text(allowed);
    const auto value = parse_count(word);
    if (!value) fail(fmt::format("'{}' is not a whole number", word), allowed);
    if (*value < min || *value > max) fail(word + " is out of range", allowed);
    return *value;
}

double YamlValue::real(double above, double max, std::string_view also) const {
    const std::string allowed = fmt::format("a number above {} up to {}{}", above, max, also);
    const std::string word = text(allowed);
    const auto value = parse_rate(word);
    if (!value) fail(fmt::format("'{}' is not a number", word), allowed);
    if (*value <= above || *value > max) fail(word + " is out of range", allowed);
    return *value;
}

bool YamlValue::flag() const {
    return choice({"false", "true"}) == 1;
}

std::string YamlValue::as_line(const std::string& allowed) const {
    if (is_scalar()) return text(allowed);
    std::string line;
    if (is_list()) {
        for (const YamlValue& each : list())
            line += (line.empty() ? "" : ", ") + each.text(allowed);
        return "[" + line + "]";
    }
    if (!is_map()) fail("nothing", allowed);
    for (const auto& entry : entries()) {
        const YamlValue name{file_, key_, entry.first, entry.first.Mark()};
        const YamlValue value{file_, key_, entry.second, entry.second.Mark()};
        if (value.is_map()) value.fail("a map in a map", allowed);
        line += (line.empty() ? "" : ", ") + name.text(allowed) + ": " + value.as_line(allowed);
    }
    return "{" + line + "}";
}

std::size_t YamlValue::bytes(std::size_t min, std::size_t max) const {
    const std::string allowed =
        fmt::format("a number of bytes from {} to {}, also as 64KiB, 1.5MiB, 1GiB", min, max);
    const std::string word = text(allowed);
    const auto value = parse_bytes(word);
    if (!value) fail(fmt::format("'{}' is not a number of bytes", word), allowed);
    if (*value < min || *value > max) fail(word + " is out of range", allowed);
    return *value;
}

netio::Duration YamlValue::time(netio::Duration min, netio::Duration max,
                                netio::Duration step) const {
    const bool may_be_zero = min == netio::Duration{};
    const std::string allowed =
        fmt::format("{}a time with its unit from {} to {}, such as 40us, 500ms, 10s, 2m, 1h",
                    may_be_zero ? "0, or " : "", shown_time(std::max(min, step)), shown_time(max));
    const std::string word = text(allowed);
    if (may_be_zero && parse_count(word) == 0U) return {};
    const auto value = parse_duration(word);
    if (!value) fail(duration_problem(word), allowed);
    const netio::Duration rounded = (*value + step - netio::Duration{1}) / step * step;
    if (rounded < min || rounded > max) fail(word + " is out of range", allowed);
    return rounded;
}

std::size_t YamlValue::choice(const std::vector<std::string_view>& choices,
                              std::string_view also) const {
    const std::string allowed = joined(choices) + std::string{also};
    const std::string word = text(allowed);
    const auto found = std::ranges::find(choices, word);
    if (found == choices.end()) {
        fail(fmt::format("'{}' is unknown{}", word, suggestion(word, choices)), allowed);
    }
    return static_cast<std::size_t>(found - choices.begin());
}

namespace {

// Of a time.
std::string time_limit(std::uint64_t nanoseconds) {
    return shown_time(netio::Duration{static_cast<netio::Duration::rep>(nanoseconds)});
}

// The shape in the notation of a file, for error messages.
std::string in_yaml(const Shape& shape) {
    switch (shape.kind) {
    case Shape::Kind::text:
        return shape.name;
    case Shape::Kind::whole:
        return fmt::format("a whole number from {} to {}", shape.min, shape.max);
    case Shape::Kind::real:
        return fmt::format("a number above {} up to {}", shape.above, shape.most);
    case Shape::Kind::bytes:
        return fmt::format("a number of bytes from {} to {}, also as 64KiB", shape.min, shape.max);
    case Shape::Kind::time:
        return fmt::format("a time from {} to {}, as 40us, 500ms, 10s", time_limit(shape.min),
                           time_limit(shape.max));
    case Shape::Kind::flag:
        return "false, true";
    case Shape::Kind::word:
        return fmt::format("{}", fmt::join(shape.words, ", "));
    case Shape::Kind::fids:
        return "a fid, a range A-B, {link: 0-23, ...}, or a list";
    case Shape::Kind::section: {
        std::vector<std::string_view> keys;
        for (const ConfigKey& key : config_keys())
            if (key.section == shape.name) keys.push_back(key.name);
        return fmt::format("a map with {}", fmt::join(keys, ", "));
    }
    case Shape::Kind::list:
        return "a list of " + in_yaml(shape.of.front());
    case Shape::Kind::names:
        return "{NAME: " + in_yaml(shape.of.front()) + ", ...}";
    }
    return {};
}

std::string in_yaml(const ConfigKey& key) {
    std::string values;
    for (const Shape& shape : key.shapes)
        values += (values.empty() ? "" : ", or ") + in_yaml(shape);
    return key.name + ": " + values;
}

using Json = nlohmann::ordered_json;

constexpr std::string_view introduction =
    R"(# The configuration of `netio publish`

A YAML file; [config/](../config) has examples with comments on every key that they use.
`netio publish FILE --check` checks whether a start with the file would succeed, but does not check
whether the ports are in use. A mistake is reported in one line with the file, the line, the column,
the key, the problem and what is allowed; for an unknown word, also with the most similar valid one.

`netio publish --reference` prints this page. `netio publish --schema` prints
[configuration.schema.json](configuration.schema.json), a JSON schema for editors. An editor with a
language server for YAML uses it if the first line of the file is
`# yaml-language-server: $schema=PATH/configuration.schema.json`.

Numbers can also be written as `0x1f`, `10k`, `1.5M` (powers of 1000), and numbers of bytes as `64KiB`,
`1.5MiB`, `1 GiB` or `64k` (powers of 1024). A time has a unit: `200ns`, `40us`, `500ms`, `10s`, `2m`,
`1h`, `7d`; only 0 needs none. A key at the top of the file that begins with `x-` is ignored: it can
hold anchors, which other maps merge with `<<: *NAME` or `<<: [*NAME, *OTHER]`. A map's own keys have
priority over merged ones, and earlier merged maps over later ones.

An option has the same name in C++ ([options and handlers](options.md)), here and on the command line,
and a unit in its name only in C++: `receive_buffer_bytes`, `receive_buffer`, `--receive-buffer`.
)";

// --- for people -----------------------------------------------------------------------------

std::string shown_limit(std::uint64_t limit) {
    if (limit == UINT64_MAX) return "2^64 - 1";
    if (limit > UINT16_MAX) {
        for (unsigned power = 20; power < 63; ++power) {
            if (limit == std::uint64_t{1} << power) return fmt::format("2^{}", power);
            if (limit == (std::uint64_t{1} << power) - 1) return fmt::format("2^{} - 1", power);
        }
    }
    return std::to_string(limit);
}

std::string shown_shape(const Shape& shape) {
    switch (shape.kind) {
    case Shape::Kind::text:
        return shape.name;
    case Shape::Kind::whole:
        return fmt::format("{} to {}", shape.min, shown_limit(shape.max));
    case Shape::Kind::real:
        return fmt::format("above {}, up to {}", shape.above, shape.most);
    case Shape::Kind::bytes:
        return fmt::format("{} to {} bytes", shape.min, shown_limit(shape.max));
    case Shape::Kind::time:
        return fmt::format("{} to {}", time_limit(shape.min), time_limit(shape.max));
    case Shape::Kind::flag:
        return "`true`, `false`";
    case Shape::Kind::word:
        return fmt::format("`{}`", fmt::join(shape.words, "`, `"));
    case Shape::Kind::fids:
        return "fids";
    case Shape::Kind::section:
        return "a map, below";
    case Shape::Kind::list:
        return "a list: " + shown_shape(shape.of.front());
    case Shape::Kind::names:
        return "a map from names to " + shown_shape(shape.of.front());
    }
    return {};
}

std::string row_of(const ConfigKey& key) {
    std::string values;
    for (const Shape& shape : key.shapes)
        values += (values.empty() ? "" : "; or ") + shown_shape(shape);
    const std::string fallback = key.required ? "required" : key.fallback;
    return fmt::format("| `{}` | {} | {} | {} |\n", key.name, values, fallback, key.meaning);
}

// --- for editors ----------------------------------------------------------------------------

Json number_or_word(Json number, std::string_view units) {
    const std::string words =
        fmt::format("^(0[xX][0-9a-fA-F]+|[0-9]*[.]?[0-9]+([eE][+-]?[0-9]+)? *({})?)$", units);
    return {
        {"anyOf", Json::array({std::move(number), Json{{"type", "string"}, {"pattern", words}}})}};
}

Json time_with_unit(std::uint64_t min) {
    Json words{{"type", "string"},
               {"pattern", "^[0-9]*[.]?[0-9]+([eE][+-]?[0-9]+)? *(ns|us|ms|s|m|min|h|d)$"}};
    if (min > 0) return words;
    return {{"anyOf", Json::array({Json{{"const", 0}}, std::move(words)})}};
}

constexpr std::string_view thousands = "[kKmMgGtT]";
constexpr std::string_view powers_of_1024 = "[bB]|[kKmMgGtT]([iI]?[bB])?";

Json reference(std::string_view section) {
    return {{"$ref", fmt::format("#/definitions/{}", section)}};
}

Json one_of_shapes(const std::vector<Shape>& shapes);

Json schema_of(const Shape& shape) {
    switch (shape.kind) {
    case Shape::Kind::text:
        return {{"type", Json::array({"string", "number", "boolean"})}};
    case Shape::Kind::whole:
        return number_or_word({{"type", "integer"}, {"minimum", shape.min}, {"maximum", shape.max}},
                              thousands);
    case Shape::Kind::bytes:
        return number_or_word({{"type", "integer"}, {"minimum", shape.min}, {"maximum", shape.max}},
                              powers_of_1024);
    case Shape::Kind::time:
        return time_with_unit(shape.min);
    case Shape::Kind::real:
        return number_or_word(
            {{"type", "number"}, {"exclusiveMinimum", shape.above}, {"maximum", shape.most}},
            thousands);
    case Shape::Kind::flag:
        return {{"type", "boolean"}};
    case Shape::Kind::word:
        return {{"enum", shape.words}};
    case Shape::Kind::fids:
        return reference("fids");
    case Shape::Kind::section:
        return reference(shape.name);
    case Shape::Kind::list:
        return {{"type", "array"}, {"minItems", 1}, {"items", one_of_shapes(shape.of)}};
    case Shape::Kind::names:
        return {{"type", "object"}, {"additionalProperties", one_of_shapes(shape.of)}};
    }
    return {};
}

Json one_of_shapes(const std::vector<Shape>& shapes) {
    if (shapes.size() == 1) return schema_of(shapes.front());
    Json all = Json::array();
    for (const Shape& shape : shapes)
        all.push_back(schema_of(shape));
    return {{"anyOf", std::move(all)}};
}

Json map_with(std::initializer_list<std::string_view> sections) {
    Json properties = Json::object();
    Json required = Json::array();
    for (const std::string_view section : sections) {
        for (const ConfigKey& key : config_keys()) {
            if (key.section != section) continue;
            Json value = one_of_shapes(key.shapes);
            value["description"] = key.meaning;
            properties[key.name] = std::move(value);
            if (key.required) required.push_back(key.name);
        }
    }
    Json map{
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!required.empty()) map["required"] = std::move(required);
    return map;
}

Json fids_schema() {
    Json fields = Json::array();
    for (const auto& field : netio::pubsub::felix_layout().fields())
        fields.push_back(field.name);
    const Json by_fields{{"type", "object"},
                         {"minProperties", 1},
                         {"propertyNames", Json{{"enum", std::move(fields)}}}};
    const Json one{{"anyOf", Json::array({Json{{"type", "integer"}, {"minimum", 0}},
                                          Json{{"type", "string"}, {"minLength", 1}}, by_fields})}};
    Json several = one;
    several["anyOf"].push_back({{"type", "array"}, {"minItems", 1}, {"items", one}});
    return several;
}

} // namespace

void expect_keys(const YamlValue& value, const std::vector<std::string_view>& sections) {
    std::vector<std::string_view> names;
    for (const std::string_view section : sections) {
        for (const ConfigKey& key : config_keys())
            if (key.section == section) names.push_back(key.name);
    }
    value.expect_keys(names);
}

void read_rows(const YamlValue& value, std::string_view section, void* object,
               const std::type_info& type, ReadContext& context) {
    for (const ConfigKey& key : config_keys()) {
        if (key.section != section) continue;
        NETIO_CHECK(*key.object == type);
        const auto found = value.find(key.name);
        if (found && key.set) key.set(*found, object, context);
        if (!found && key.required) static_cast<void>(value.get(key.name, in_yaml(key)));
    }
}

std::string shown_default(const Shape& shape, std::uint64_t value) {
    return shape.kind == Shape::Kind::bytes ? shown_bytes(value) : std::to_string(value);
}

std::string config_reference() {
    std::string page{introduction};
    for (const ConfigSection& section : config_sections()) {
        page += fmt::format("\n## {}\n", section.title);
        if (!section.meaning.empty()) page += "\n" + section.meaning + "\n";
        page += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
        for (const ConfigKey& key : config_keys())
            if (key.section == section.name) page += row_of(key);
    }
    return page;
}

std::string config_schema() {
    // Two forms, for one publisher or several, so that an editor can report what is missing.
    Json one = map_with({"process", "publisher"});
    one["properties"].erase("publishers");
    Json several = map_with({"process"});
    several["required"] = Json::array({"publishers"});
    for (Json* const form : {&one, &several})
        (*form)["patternProperties"] = {{"^x-", true}};
    Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
                {"title", "A configuration of netio publish"},
                {"if", Json{{"required", Json::array({"publishers"})}, {"type", "object"}}},
                {"then", std::move(several)},
                {"else", std::move(one)}};
    Json definitions = Json::object();
    for (const ConfigSection& section : config_sections()) {
        if (section.name != "process") definitions[section.name] = map_with({section.name});
    }
    definitions["fids"] = fids_schema();
    for (const char* const choice : {"size", "source"})
        definitions[choice]["minProperties"] = 1;
    definitions["size"]["maxProperties"] = 1;
    schema["definitions"] = std::move(definitions);
    return schema.dump(2) + "\n";
}

} // namespace apps
