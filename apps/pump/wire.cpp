// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/wire.hpp"

#include "netio/base/wire.hpp"

namespace apps::pump {
namespace {

constexpr std::uint64_t magic = 0x0000'0150'4d55'504e; // "NPUMP", version 1
constexpr std::uint32_t verify_flag = 1;
constexpr std::uint32_t bidirectional_flag = 2;

} // namespace

std::array<std::byte, header_bytes> encode(const Header& header) noexcept {
    std::array<std::byte, header_bytes> out{};
    netio::wire::store(out.data(), magic);
    netio::wire::store(out.data() + 8, header.bytes);
    netio::wire::store(out.data() + 16, header.seed);
    netio::wire::store(out.data() + 24, header.size_min);
    netio::wire::store(out.data() + 32, header.size_max);
    netio::wire::store(out.data() + 40, (header.verify ? verify_flag : 0U) |
                                            (header.bidirectional ? bidirectional_flag : 0U));
    return out;
}

std::optional<Header> decode_header(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() != header_bytes) return std::nullopt;
    if (netio::wire::load<std::uint64_t>(bytes.data()) != magic) return std::nullopt;
    const auto flags = netio::wire::load<std::uint32_t>(bytes.data() + 40);
    const auto zero = netio::wire::load<std::uint32_t>(bytes.data() + 44);
    const Header header{.bytes = netio::wire::load<std::uint64_t>(bytes.data() + 8),
                        .seed = netio::wire::load<std::uint64_t>(bytes.data() + 16),
                        .size_min = netio::wire::load<std::uint64_t>(bytes.data() + 24),
                        .size_max = netio::wire::load<std::uint64_t>(bytes.data() + 32),
                        .verify = (flags & verify_flag) != 0,
                        .bidirectional = (flags & bidirectional_flag) != 0};
    const bool sound = (flags & ~(verify_flag | bidirectional_flag)) == 0 && zero == 0 &&
                       header.size_min >= 1 && header.size_min <= header.size_max &&
                       header.size_max <= size_limit_bytes;
    return sound ? std::optional{header} : std::nullopt;
}

} // namespace apps::pump
