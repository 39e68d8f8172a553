// SPDX-License-Identifier: Apache-2.0
#pragma once

// Action: one event that is possible in a World (tests/model/world.hpp), and its name in a trace.

#include <cstdint>
#include <string>

namespace netio::stream {

struct Action {
    enum class Kind : std::uint8_t {
        submit,
        finish,
        pump,
        done,
        deliver_control,
        post,
        deliver_data,
        copy,
        tell,
    };
    Kind kind{};
    std::uint8_t bytes = 0;
    bool wait_all = false;
};

inline std::string to_string(const Action& action) {
    const std::string bytes = std::to_string(action.bytes);
    switch (action.kind) {
    case Action::Kind::submit:
        return "submit " + bytes;
    case Action::Kind::finish:
        return "finish";
    case Action::Kind::pump:
        return "pump";
    case Action::Kind::done:
        return "transfer done";
    case Action::Kind::deliver_control:
        return "deliver control";
    case Action::Kind::post:
        return "post " + bytes + (action.wait_all ? " wait-all" : "");
    case Action::Kind::deliver_data:
        return "deliver data";
    case Action::Kind::copy:
        return "copy " + bytes;
    case Action::Kind::tell:
        return "tell";
    }
    return "?";
}

} // namespace netio::stream
