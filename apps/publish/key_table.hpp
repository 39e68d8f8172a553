// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the table of keys (apps/publish/config_keys.hpp) is written down.

#include "apps/publish/config_keys.hpp"
#include "pubsub/publisher/publisher.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace apps::keys {

inline constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t hour_ms = 3'600'000;
inline constexpr std::uint64_t year_ms = 24 * 365 * hour_ms;
inline constexpr std::uint64_t largest_message = netio::pubsub::largest_message_limit;

inline Shape text(std::string what) {
    return {.kind = Shape::Kind::text, .name = std::move(what), .words = {}, .of = {}};
}
inline Shape whole(std::uint64_t min, std::uint64_t max) {
    return {.kind = Shape::Kind::whole, .min = min, .max = max, .name = {}, .words = {}, .of = {}};
}
inline Shape real(double above, double most) {
    return {
        .kind = Shape::Kind::real, .above = above, .most = most, .name = {}, .words = {}, .of = {}};
}
inline Shape bytes(std::uint64_t min, std::uint64_t max) {
    return {.kind = Shape::Kind::bytes, .min = min, .max = max, .name = {}, .words = {}, .of = {}};
}
inline Shape flag() {
    return {.kind = Shape::Kind::flag, .name = {}, .words = {}, .of = {}};
}
inline Shape word(std::vector<std::string> words) {
    return {.kind = Shape::Kind::word, .name = {}, .words = std::move(words), .of = {}};
}
inline Shape fids() {
    return {.kind = Shape::Kind::fids, .name = {}, .words = {}, .of = {}};
}
inline Shape section(std::string name) {
    return {.kind = Shape::Kind::section, .name = std::move(name), .words = {}, .of = {}};
}
inline Shape names(Shape of) {
    return {.kind = Shape::Kind::names, .name = {}, .words = {}, .of = {std::move(of)}};
}
inline Shape list(Shape of) {
    return {.kind = Shape::Kind::list, .name = {}, .words = {}, .of = {std::move(of)}};
}

class Table {
  public:
    std::vector<ConfigKey> keys;

    // What follows belongs to it.
    void begin(std::string section) { section_ = std::move(section); }
    void required(std::string name, std::vector<Shape> shapes, std::string meaning) {
        add(std::move(name), std::move(shapes), "", std::move(meaning));
        keys.back().required = true;
    }
    void add(std::string name, std::vector<Shape> shapes, std::string fallback,
             std::string meaning) {
        keys.push_back({.section = section_,
                        .name = std::move(name),
                        .shapes = std::move(shapes),
                        .fallback = std::move(fallback),
                        .meaning = std::move(meaning)});
    }

  private:
    std::string section_;
};

// The streams, and what they consist of.
void add_streams(Table& table);

} // namespace apps::keys
