// SPDX-License-Identifier: Apache-2.0
#include "netio/session/open_options.hpp"

#include <algorithm>

namespace netio::inline v0_2 {
namespace {

constexpr std::byte list_version{1};
constexpr std::size_t list_header_bytes = 4;
constexpr std::size_t option_header_bytes = 4;
// Who does not know an option with this bit cannot go on without it; others are passed over.
constexpr std::uint16_t must_be_known = 0x8000;
constexpr std::uint16_t roles_type = 1 | must_be_known;

} // namespace

std::size_t encode(const OpenOptions& options, OpenOptionsBytes& out) noexcept {
    out.fill(std::byte{0});
    if (options.roles == 0) return 0;
    out[0] = list_version;
    std::byte* const option = out.data() + list_header_bytes;
    wire::store(option, roles_type);
    wire::store(option + 2, std::uint16_t{1});
    option[option_header_bytes] = std::byte{options.roles};
    return list_header_bytes + option_header_bytes + 1;
}

std::optional<OpenOptions> decode_open_options(std::span<const std::byte> in) noexcept {
    OpenOptions options;
    if (in.empty()) return options;
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (in.size() < list_header_bytes || in[0] != list_version ||
        !std::ranges::all_of(in.subspan(1, list_header_bytes - 1), is_zero)) {
        return std::nullopt;
    }
    in = in.subspan(list_header_bytes);
    bool roles_seen = false;
    while (!in.empty()) {
        if (in.size() < option_header_bytes) return std::nullopt;
        const auto type = wire::load<std::uint16_t>(in.data());
        const std::size_t bytes = wire::load<std::uint16_t>(in.data() + 2);
        in = in.subspan(option_header_bytes);
        if (bytes > in.size()) return std::nullopt;
        if (type == roles_type) {
            if (bytes != 1 || in[0] == std::byte{0} || roles_seen) return std::nullopt;
            roles_seen = true;
            options.roles = std::to_integer<std::uint8_t>(in[0]);
        } else if ((type & must_be_known) != 0) {
            return std::nullopt;
        }
        in = in.subspan(bytes);
    }
    return options;
}

} // namespace netio::inline v0_2
