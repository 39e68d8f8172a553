// SPDX-License-Identifier: Apache-2.0

// The configuration of `netio publish`: read, or refused in one line.

#include "apps/publish/publisher_config.hpp"

#include "tests/fuzz/target.hpp"

#include <string>

namespace netio::fuzz::config_fuzz {
namespace {

const Target config{
    "config", [](Bytes bytes) {
        std::string text;
        for (const std::byte byte : bytes)
            text.push_back(std::to_integer<char>(byte));
        try {
            const apps::PublishConfig read =
                apps::parse_publish_config(text, "fuzz.yaml", "/nowhere");
            for (const apps::PublisherConfig& publisher : read.publishers)
                NETIO_CHECK(!publisher.streams.empty() && !publisher.listen.empty());
        } catch (const apps::ConfigError& error) {
            const std::string_view words{error.what()};
            NETIO_CHECK(!words.empty() && words.find('\n') == std::string_view::npos);
        }
    }};

} // namespace
} // namespace netio::fuzz::config_fuzz
