// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/config_table.hpp"

#include "apps/common/parse.hpp"
#include "pubsub/core/fid_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace apps {
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
