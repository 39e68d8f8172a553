// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/section_reader.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <utility>

namespace apps {

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
    return value_.get(key);
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
