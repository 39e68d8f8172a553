// SPDX-License-Identifier: Apache-2.0

// The hello of a connecting peer, and the answer of a listener.

#include "netio/session/handshake.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>

namespace netio::fuzz::hello_fuzz {
namespace {

const Target hello{
    "hello", [](Bytes bytes) {
        Input input{bytes};
        const std::size_t service_bytes = input.below(service_data_limit + 1);
        const auto required_bytes = static_cast<std::size_t>(input.number(2));
        const Bytes data = input.rest();

        Hello peer;
        if (decode(data, service_bytes, peer) == RejectCode::none) {
            ConnectionData again;
            const std::size_t size = encode(peer, again);
            NETIO_CHECK(size == hello_bytes + service_bytes);
            NETIO_CHECK(std::ranges::equal(Bytes{again}.first(size), data.first(size)));
            if (judge_receives(peer, required_bytes) == RejectCode::none)
                NETIO_CHECK(peer.receive_buffer_bytes >= required_bytes && peer.receive_count > 0);
        }
        const Rejection rejection = decode_rejection(data);
        NETIO_CHECK(!to_string(rejection.code).empty());
        static_cast<void>(refusal_of(rejection.code));
    }};

} // namespace
} // namespace netio::fuzz::hello_fuzz
