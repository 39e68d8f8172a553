// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/exposition.hpp"

#include "apps/common/terminal.hpp"
#include "netio/base/check.hpp"

#include <fmt/format.h>

namespace apps {
namespace {

// Buckets from 1 us to half a minute.
constexpr unsigned first_exponent = 10;
constexpr unsigned last_exponent = 35;

// The format is UTF-8 and defines these escapes only; printable() replaces other control
// characters.
std::string escaped_value(std::string_view value, bool quoted) {
    std::string text;
    for (const char each : printable(value, 1024, Lines::several)) {
        if (each == '\\') {
            text += "\\\\";
        } else if (each == '\n') {
            text += "\\n";
        } else if (each == '"' && quoted) {
            text += "\\\"";
        } else {
            text += each;
        }
    }
    return text;
}

std::string seconds(std::int64_t nanoseconds) {
    return fmt::format("{:.9g}", static_cast<double>(nanoseconds) * 1e-9);
}

} // namespace

void Exposition::Family::begin(Labels labels, std::string_view suffix) {
    text_ += name_;
    text_ += suffix;
    char before = '{';
    for (const auto& [label, value] : labels) {
        text_ += fmt::format("{}{}=\"{}\"", before, label, escaped_value(value, true));
        before = ',';
    }
    if (before == ',') text_ += '}';
    text_ += ' ';
}

Exposition::Family& Exposition::Family::add(Labels labels, std::uint64_t value) {
    begin(labels);
    text_ += fmt::format("{}\n", value);
    return *this;
}

Exposition::Family& Exposition::Family::add(Labels labels, netio::Duration value) {
    begin(labels);
    text_ += seconds(value.count()) + '\n';
    return *this;
}

Exposition::Family Exposition::family(std::string_view name, std::string_view type,
                                      std::string_view help) {
    NETIO_CHECK(name.ends_with("_total") == (type == "counter"));
    text_ +=
        fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, escaped_value(help, false), type);
    return Family{text_, name};
}

Exposition::Family Exposition::counter(std::string_view name, std::string_view help) {
    return family(name, "counter", help);
}

Exposition::Family Exposition::gauge(std::string_view name, std::string_view help) {
    return family(name, "gauge", help);
}

void Exposition::histogram(std::string_view name, std::string_view help,
                           const netio::LatencyHistogram& values) {
    Family family = this->family(name, "histogram", help);
    for (unsigned exponent = first_exponent; exponent <= last_exponent; ++exponent) {
        family.begin({{"le", seconds(std::int64_t{1} << exponent)}}, "_bucket");
        text_ += fmt::format("{}\n", values.count_below_power(exponent));
    }
    family.begin({{"le", "+Inf"}}, "_bucket");
    text_ += fmt::format("{}\n{}_sum {}\n{}_count {}\n", values.count(), name,
                         seconds(values.sum().count()), name, values.count());
}

} // namespace apps
