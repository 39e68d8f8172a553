// SPDX-License-Identifier: Apache-2.0

// Fids and addresses as users write them: the parsed value keeps its meaning when it is written
// again, or the error is one line.

#include "apps/common/fid_text.hpp"
#include "netio/base/status.hpp"
#include "tests/fuzz/target.hpp"

#include <stdexcept>
#include <string>

namespace netio::fuzz::text_fuzz {
namespace {

void check_fids(const std::string& text) {
    try {
        const auto ranges = apps::parse_fids(text);
        NETIO_CHECK(!ranges.empty());
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            NETIO_CHECK(ranges[i].first <= ranges[i].last);
            NETIO_CHECK(i == 0 || ranges[i - 1].last < ranges[i].first);
        }
    } catch (const std::invalid_argument& error) {
        NETIO_CHECK(*error.what() != '\0');
    }
}

void check_address(const std::string& text) {
    try {
        const Address address = parse_address(text);
        NETIO_CHECK(!address.host.empty());
        NETIO_CHECK(parse_address(to_string(address)) == address);
    } catch (const std::invalid_argument& error) {
        NETIO_CHECK(*error.what() != '\0');
    }
}

const Target text{"text", [](Bytes bytes) {
                      std::string given;
                      for (const std::byte byte : bytes)
                          given.push_back(std::to_integer<char>(byte));
                      check_fids(given);
                      check_address(given);
                  }};

} // namespace
} // namespace netio::fuzz::text_fuzz
