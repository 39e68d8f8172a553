// SPDX-License-Identifier: Apache-2.0

// What the other side of a copy sends, the names that it asks for, and what a pump announces.

#include "apps/common/printable.hpp"
#include "apps/copy/copy_path.hpp"
#include "apps/copy/copy_protocol.hpp"
#include "apps/pump/pump_wire.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace netio::fuzz {
namespace {

// What is taken is written again as the same bytes, behind a prelude that says so.
template <class Body>
void check_body(Bytes bytes) {
    Body body;
    if (apps::decode(bytes, body) != apps::CopyFlaw::none) return;
    const apps::CopyMessage message = apps::encode(body);
    const Bytes again = message;
    apps::CopyPrelude prelude;
    NETIO_CHECK(apps::decode(again.first(apps::copy_prelude_bytes), prelude) ==
                apps::CopyFlaw::none);
    NETIO_CHECK(prelude.body_bytes == bytes.size());
    NETIO_CHECK(std::ranges::equal(again.subspan(apps::copy_prelude_bytes), bytes));
}

// A path that is let pass stays beneath its folder.
void check_path(const std::string& path) {
    const apps::PathFlaw flaw = apps::check_copy_path(path);
    NETIO_CHECK(flaw == apps::PathFlaw::none || !apps::to_string(flaw).empty());
    if (flaw != apps::PathFlaw::none) return;
    NETIO_CHECK(!path.starts_with('/') && ("/" + path + "/").find("/../") == std::string::npos);
    NETIO_CHECK(path.find('\0') == std::string::npos && path.find('\n') == std::string::npos);
    const apps::SplitPath split = apps::split_copy_path(path);
    NETIO_CHECK(!split.leaf.empty() && split.leaf.find('/') == std::string::npos);
    NETIO_CHECK(path == (split.folder.empty() ? split.leaf : split.folder + "/" + split.leaf));
    NETIO_CHECK(apps::check_copy_path(apps::partial_name(split.leaf)) != apps::PathFlaw::none);
}

const Target copy{"copy", [](Bytes bytes) {
                      apps::CopyPrelude prelude;
                      if (apps::decode(bytes, prelude) == apps::CopyFlaw::none)
                          NETIO_CHECK(prelude.body_bytes <= apps::copy_body_limit_bytes);
                      check_body<apps::CopyOpen>(bytes);
                      check_body<apps::CopyAnswer>(bytes);
                      check_body<apps::CopyStart>(bytes);
                      check_body<apps::CopyEnd>(bytes);
                      check_body<apps::CopyVerdict>(bytes);
                      apps::CopyChunk chunk;
                      if (apps::decode(bytes, chunk) == apps::CopyFlaw::none) {
                          std::array<std::byte, apps::copy_chunk_header_bytes> out{};
                          apps::encode(chunk, out);
                          NETIO_CHECK(std::ranges::equal(out, bytes));
                      }
                      apps::CopyOpen open;
                      if (apps::decode(bytes, open) == apps::CopyFlaw::none) check_path(open.name);

                      std::string text;
                      for (const std::byte byte : bytes)
                          text.push_back(std::to_integer<char>(byte));
                      check_path(text);
                      for (const char letter : apps::printable(text, 100))
                          NETIO_CHECK(static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f);
                      if (const auto pump = apps::decode_pump_header(bytes))
                          NETIO_CHECK(std::ranges::equal(apps::encode(*pump), bytes));
                  }};

} // namespace
} // namespace netio::fuzz
