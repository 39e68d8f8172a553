// SPDX-License-Identifier: Apache-2.0

// Headers, extensions and lists of frames: encoding what was decoded gives the same bytes.

#include "pubsub/core/wire.hpp"

#include "netio/messages/message_frames.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace netio::fuzz::frames_fuzz {
namespace {

void check_same(Bytes one, Bytes other) {
    NETIO_CHECK(std::ranges::equal(one, other));
}

const Target frames{"frames", [](Bytes bytes) {
                        if (bytes.size() >= frame_header_bytes) {
                            std::array<std::byte, frame_header_bytes> out{};
                            encode(decode_frame_header(bytes.first<frame_header_bytes>()), out);
                            check_same(out, bytes.first(out.size()));
                        }
                        if (bytes.size() >= messages::fragment_extension_bytes) {
                            const auto out = messages::encode(messages::decode_fragment(bytes));
                            check_same(out, bytes.first(out.size()));
                        }
                        std::vector<std::byte> out(std::max<std::size_t>(bytes.size(), 64));
                        const auto check_written = [&](std::size_t size) {
                            check_same(Bytes{out}.first(size), bytes.first(size));
                        };
                        if (const auto message = pubsub::decode_message(bytes))
                            check_written(pubsub::encode(*message, out));
                        if (const auto fragment = pubsub::decode_fragment(bytes))
                            check_written(pubsub::encode(*fragment, out));
                        if (const auto request = pubsub::decode_request(bytes)) {
                            NETIO_CHECK(!request->ranges.empty());
                            for (const pubsub::FidRange& range : request->ranges)
                                NETIO_CHECK(range.first <= range.last);
                            check_written(pubsub::encode_request(request->request, request->ranges,
                                                                 out, request->policy));
                        }
                        if (const auto answer = pubsub::decode_answer(bytes))
                            check_written(pubsub::encode(*answer, out));
                        if (const auto counts = pubsub::decode_counts(bytes))
                            check_written(pubsub::encode(*counts, out));
                    }};

} // namespace
} // namespace netio::fuzz::frames_fuzz
