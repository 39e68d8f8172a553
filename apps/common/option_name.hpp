// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace apps {

// One option has one name everywhere. The member of the C++ structure decides it:
// `receive_buffer_bytes` is the key `receive_buffer` in YAML and the flag `--receive-buffer` on the
// command line, because the value has its unit there. The functions derive the names from the
// member, so that they cannot differ. No I/O.

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
    // Of GCC and Clang: "... [with auto Member = &X::y]".
    std::string_view name = __PRETTY_FUNCTION__;
    name.remove_prefix(name.find(begin) + begin.size());
    name = name.substr(0, name.find_first_of(";]"));
    name = name.substr(name.rfind(':') + 1);
    return name.substr(0, name.find(')'));
}

// The key in YAML.
template <auto Member>
std::string yaml_key() {
    return std::string{without_unit(member_name<Member>())};
}

// The flag on the command line.
template <auto Member>
std::string cli_flag() {
    std::string flag = "--" + yaml_key<Member>();
    for (char& each : flag)
        if (each == '_') each = '-';
    return flag;
}

} // namespace apps
