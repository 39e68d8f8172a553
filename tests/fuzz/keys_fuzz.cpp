// SPDX-License-Identifier: Apache-2.0

// Key files with arbitrary content.

#include "netio/access/key_file.hpp"
#include "netio/access/rights.hpp"
#include "tests/fuzz/target.hpp"

#include <string>

namespace netio::fuzz::keys_fuzz {
namespace {

using namespace netio::access;

const Target keys{
    "keys", [](Bytes bytes) {
        const std::string text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        try {
            const KeyRing ring = parse_keys(text, "file");
            for (const auto& [id, key] : ring.keys()) {
                NETIO_CHECK(parse_rights(to_string(key.rights)) == key.rights);
                const KeyRing alone = parse_keys(text_of_one(key), "file");
                NETIO_CHECK(alone.keys().size() == 1 && *alone.find(id) == key);
            }
            if (ring.find(255) == nullptr) {
                const Key more{.id = 255,
                               .name = "more",
                               .secret = Secret::random(),
                               .rights = parse_rights("services=all")};
                const KeyRing longer = parse_keys(with_key(text, more, "file"), "file");
                NETIO_CHECK(longer.keys().size() == ring.keys().size() + 1);
            }
        } catch (const KeyFileError& error) {
            const std::string_view what = error.what();
            NETIO_CHECK(what.starts_with("file:") && what.find('\n') == what.npos);
            NETIO_CHECK(what.find("nk1-") == what.npos);
        }
    }};

} // namespace
} // namespace netio::fuzz::keys_fuzz
