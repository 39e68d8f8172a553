// SPDX-License-Identifier: Apache-2.0

// What the peer of a stream sends: encoding what was decoded gives the same bytes.

#include "stream/core/wire.hpp"

#include "netio/base/wire.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <vector>

namespace netio::fuzz::stream_wire_fuzz {
namespace {

using stream::DecodeError;

const Target stream_wire{
    "stream_wire", [](Bytes bytes) {
        stream::ControlMessage control;
        if (stream::decode_control(bytes, control) == DecodeError::none) {
            std::vector<std::byte> out(stream::control_limit_bytes);
            out.resize(stream::encode_control(control, out));
            NETIO_CHECK(std::ranges::equal(out, bytes));
        }
        stream::RemoteRing ring;
        if (stream::decode_ring(bytes, ring) == DecodeError::none)
            NETIO_CHECK(std::ranges::equal(stream::encode_ring(ring), bytes));
        stream::Hello hello;
        const DecodeError error = stream::decode_hello(bytes, hello);
        if (error == DecodeError::none)
            NETIO_CHECK(std::ranges::equal(stream::encode_hello(hello), bytes));
        NETIO_CHECK(!stream::to_string(error).empty());
        stream::FrameNotice notice;
        const auto flags =
            bytes.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(bytes[0]);
        if (stream::decode_frame_flags(flags, notice) == DecodeError::none)
            NETIO_CHECK(stream::encode_frame_flags(notice) == flags);
        if (bytes.size() >= 4) {
            const auto word = wire::load<std::uint32_t>(bytes.data());
            stream::Immediate immediate;
            if (stream::decode_immediate(word, immediate) == DecodeError::none)
                NETIO_CHECK(stream::encode_immediate(immediate) == word);
        }
    }};

} // namespace
} // namespace netio::fuzz::stream_wire_fuzz
