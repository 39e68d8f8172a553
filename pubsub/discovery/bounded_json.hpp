// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses JSON from a peer or a server. A value of a few bytes of text needs about a hundred bytes
// in a document, and each level of nesting needs memory, so both are counted before the document is
// built. No I/O.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace netio::pubsub::inline v0_3 {

// The problem of the text: "it is not JSON", or the exceeded limit. One line.
class JsonError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct JsonLimits {
    std::size_t depth = 16;              // of nested arrays and objects
    std::size_t values = 65536;          // arrays, objects, texts, numbers, ..., all together
    std::size_t string_bytes = SIZE_MAX; // of each text and key
};

namespace detail {

// Stops at the first violation of a limit.
template <typename Json>
class JsonCounter final : public nlohmann::json_sax<Json> {
  public:
    explicit JsonCounter(const JsonLimits& limits) noexcept : limits_{limits} {}

    // The problem of a rejected text.
    std::string problem() const { return problem_.empty() ? "it is not JSON" : problem_; }

    bool null() override { return count(); }
    bool boolean(bool) override { return count(); }
    bool number_integer(typename Json::number_integer_t) override { return count(); }
    bool number_unsigned(typename Json::number_unsigned_t) override { return count(); }
    bool number_float(typename Json::number_float_t, const typename Json::string_t&) override {
        return count();
    }
    bool string(typename Json::string_t& text) override { return count() && is_short(text); }
    bool key(typename Json::string_t& text) override { return is_short(text); }
    bool binary(typename Json::binary_t&) override { return false; } // JSON has none
    bool start_object(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

  private:
    bool refuse(std::string_view what, std::size_t limit, std::string_view unit) {
        problem_ = std::string{what} + " " + std::to_string(limit) + " " + std::string{unit};
        return false;
    }
    bool count() {
        return ++values_ <= limits_.values || refuse("it has more than", limits_.values, "values");
    }
    bool enter() {
        if (++depth_ > limits_.depth)
            return refuse("it is nested deeper than", limits_.depth, "levels");
        return count();
    }
    bool leave() {
        --depth_;
        return true;
    }
    bool is_short(const std::string& text) {
        return text.size() <= limits_.string_bytes ||
               refuse("it has a text of more than", limits_.string_bytes, "bytes");
    }

    JsonLimits limits_;
    std::size_t depth_ = 0;
    std::size_t values_ = 0;
    std::string problem_;
};

} // namespace detail

// Throws JsonError.
template <typename Json = nlohmann::json>
Json parse_bounded(std::string_view text, const JsonLimits& limits) {
    detail::JsonCounter<Json> counter{limits};
    if (!Json::sax_parse(text.begin(), text.end(), &counter)) throw JsonError{counter.problem()};
    return Json::parse(text.begin(), text.end());
}

} // namespace netio::pubsub::inline v0_3
