// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/yaml_reader.hpp"

#include "apps/common/parse.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <set>
#include <sstream>

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

} // namespace apps
