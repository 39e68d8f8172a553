// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace apps {

// One option has one name everywhere. The member of the C++ structure decides it:
// `queue_limit_bytes` is the key `queue_limit` in YAML and the flag `--queue-limit` on the command
// line, because the value has its unit there. The functions derive the names from the member, so
// that they cannot differ. No I/O.

// Returns the name without a unit at its end.
constexpr std::string_view without_unit(std::string_view name) {
    constexpr std::array<std::string_view, 6> units{"_bytes", "_messages", "_ms",
                                                    "_us",    "_ns",       "_s"};
    for (const std::string_view unit : units)
        if (name.ends_with(unit)) return name.substr(0, name.size() - unit.size());
    return name;
}

// Returns "queue_limit_bytes" for &Options::queue_limit_bytes.
template <auto Member>
constexpr std::string_view member_name() {
    constexpr std::string_view begin = "Member = ";
    std::string_view name =
        __PRETTY_FUNCTION__; // of GCC and Clang: "... [with auto Member = &X::y]"
    name.remove_prefix(name.find(begin) + begin.size());
    name = name.substr(0, name.find_first_of(";]"));
    name = name.substr(name.rfind(':') + 1);
    return name.substr(0, name.find(')'));
}

// The key in YAML.
template <auto Member>
std::string key_of() {
    return std::string{without_unit(member_name<Member>())};
}

// The flag on the command line.
template <auto Member>
std::string flag_of() {
    std::string flag = "--" + key_of<Member>();
    for (char& each : flag)
        if (each == '_') each = '-';
    return flag;
}

} // namespace apps
