// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/section_reader.hpp"

#include "netio/base/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace apps {
namespace {

// As it is written in a file.
std::string in_yaml(const Shape& shape) {
    switch (shape.kind) {
    case Shape::Kind::text:
        return shape.name;
    case Shape::Kind::whole:
        return fmt::format("a whole number from {} to {}", shape.min, shape.max);
    case Shape::Kind::real:
        return fmt::format("a number above {} up to {}", shape.above, shape.most);
    case Shape::Kind::bytes:
        return fmt::format("a number of bytes from {} to {}, also as 64k", shape.min, shape.max);
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

} // namespace

SectionReader::SectionReader(const YamlValue& value, std::vector<std::string_view> sections)
    : value_{value}, sections_{std::move(sections)} {
    std::vector<std::string_view> names;
    for (const std::string_view section : sections_) {
        for (const ConfigKey& key : config_keys())
            if (key.section == section) names.push_back(key.name);
    }
    value_.expect_keys(names);
}

const ConfigKey& SectionReader::row(std::string_view key) const {
    const auto& rows = config_keys();
    const auto found = std::ranges::find_if(rows, [&](const ConfigKey& each) {
        return each.name == key && std::ranges::find(sections_, each.section) != sections_.end();
    });
    NETIO_CHECK(found != rows.end());
    return *found;
}

std::optional<YamlValue> SectionReader::find(std::string_view key) const {
    static_cast<void>(row(key));
    return value_.find(key);
}

YamlValue SectionReader::get(std::string_view key) const {
    NETIO_CHECK(row(key).required);
    return value_.get(key, in_yaml(row(key)));
}

void SectionReader::bytes(std::string_view key, std::size_t& target) const {
    const Shape& shape = shape_of(row(key), Shape::Kind::bytes);
    if (const auto v = find(key)) target = v->bytes(shape.min, shape.max);
}

void SectionReader::flag(std::string_view key, bool& target) const {
    if (const auto v = find(key)) target = v->flag();
}

std::uint64_t SectionReader::whole(std::string_view key, const YamlValue& value) const {
    const Shape& shape = shape_of(row(key), Shape::Kind::whole);
    return value.number(shape.min, shape.max);
}

double SectionReader::real(std::string_view key, const YamlValue& value,
                           std::string_view also) const {
    const Shape& shape = shape_of(row(key), Shape::Kind::real);
    return value.real(shape.above, shape.most, also);
}

std::size_t SectionReader::word(std::string_view key, const YamlValue& value,
                                std::string_view also) const {
    const Shape& shape = shape_of(row(key), Shape::Kind::word);
    return value.choice({shape.words.begin(), shape.words.end()}, also);
}

} // namespace apps
