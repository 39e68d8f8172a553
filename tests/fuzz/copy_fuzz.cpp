// SPDX-License-Identifier: Apache-2.0

// What the other side of a copy sends, the file names that it requests, and what a pump announces.

#include "apps/common/report.hpp"
#include "apps/copy/protocol.hpp"
#include "apps/copy/served_folder.hpp"
#include "apps/pump/end.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace netio::fuzz::copy_fuzz {
namespace {

// Encoding a decoded message gives the same bytes, after a valid prelude.
template <class Body>
void check_body(Bytes bytes) {
    Body body;
    if (apps::copy::decode(bytes, body) != apps::copy::Flaw::none) return;
    const apps::copy::Message message = apps::copy::encode(body);
    const Bytes again = message;
    apps::copy::Prelude prelude;
    NETIO_CHECK(apps::copy::decode(again.first(apps::copy::prelude_bytes), prelude) ==
                apps::copy::Flaw::none);
    NETIO_CHECK(prelude.body_bytes == bytes.size());
    NETIO_CHECK(std::ranges::equal(again.subspan(apps::copy::prelude_bytes), bytes));
}

// An accepted path stays below its folder.
void check_path(const std::string& path) {
    const apps::copy::PathFlaw flaw = apps::copy::check_path(path);
    NETIO_CHECK(flaw == apps::copy::PathFlaw::none || !apps::copy::to_string(flaw).empty());
    if (flaw != apps::copy::PathFlaw::none) return;
    NETIO_CHECK(!path.starts_with('/') && ("/" + path + "/").find("/../") == std::string::npos);
    NETIO_CHECK(path.find('\0') == std::string::npos && path.find('\n') == std::string::npos);
    const apps::copy::SplitPath split = apps::copy::split_path(path);
    NETIO_CHECK(!split.leaf.empty() && split.leaf.find('/') == std::string::npos);
    NETIO_CHECK(path == (split.folder.empty() ? split.leaf : split.folder + "/" + split.leaf));
    NETIO_CHECK(apps::copy::check_path(apps::copy::partial_name(split.leaf)) !=
                apps::copy::PathFlaw::none);
}

const Target copy{"copy", [](Bytes bytes) {
                      apps::copy::Prelude prelude;
                      if (apps::copy::decode(bytes, prelude) == apps::copy::Flaw::none)
                          NETIO_CHECK(prelude.body_bytes <= apps::copy::body_limit_bytes);
                      check_body<apps::copy::Open>(bytes);
                      check_body<apps::copy::Answer>(bytes);
                      check_body<apps::copy::Start>(bytes);
                      check_body<apps::copy::Attributes>(bytes);
                      check_body<apps::copy::SparseStart>(bytes);
                      check_body<apps::copy::Extents>(bytes);
                      check_body<apps::copy::End>(bytes);
                      check_body<apps::copy::Verdict>(bytes);
                      apps::copy::Chunk chunk;
                      if (apps::copy::decode(bytes, chunk) == apps::copy::Flaw::none) {
                          std::array<std::byte, apps::copy::chunk_header_bytes> out{};
                          apps::copy::encode(chunk, out);
                          NETIO_CHECK(std::ranges::equal(out, bytes));
                      }
                      apps::copy::Open open;
                      if (apps::copy::decode(bytes, open) == apps::copy::Flaw::none)
                          check_path(open.name);

                      std::string text;
                      for (const std::byte byte : bytes)
                          text.push_back(std::to_integer<char>(byte));
                      check_path(text);
                      for (const char letter : apps::printable(text, 100))
                          NETIO_CHECK(static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f);
                      if (const auto pump = apps::pump::decode_header(bytes))
                          NETIO_CHECK(std::ranges::equal(apps::pump::encode(*pump), bytes));
                  }};

} // namespace
} // namespace netio::fuzz::copy_fuzz
