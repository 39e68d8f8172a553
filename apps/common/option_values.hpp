// SPDX-License-Identifier: Apache-2.0
#pragma once

// Options of the command line whose values are quantities (apps/common/quantity.hpp). What is wrong
// ends the parsing with a line that names the option, the word and what is allowed.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace apps {

struct Limits {
    std::uint64_t min = 1;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

CLI::Option* add_count(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help,
                       Limits limits = {});
// With a default, which the help shows.
CLI::Option* add_count(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits);
CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits);
CLI::Option* add_bytes(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help, Limits limits);
// From a millisecond to a day; 0 is taken only where it means something.
enum class Zero : std::uint8_t { refused, taken };
CLI::Option* add_seconds(CLI::App& command, const std::string& name, double& value,
                         const std::string& help, Zero zero);
CLI::Option* add_milliseconds(CLI::App& command, const std::string& name,
                              std::chrono::milliseconds& value, const std::string& help, Zero zero);
// For an option whose values are these words: check(one_of({...})). What is wrong names the word
// that was meant, where one is near.
std::function<std::string(const std::string&)> one_of(std::vector<std::string_view> words);
// --provider: auto, or one that may be used; whether this machine has it is another question.
CLI::Option* add_provider(CLI::App& command, std::string& value);
// --bus: where publishers are found (pubsub/discovery/bus.hpp).
CLI::Option* add_bus(CLI::App& command, std::string& value);
// --decode-fids: the layout by whose fields fids are shown.
CLI::Option* add_decoding(CLI::App& command, std::string& value);
// --open, of a command that listens.
CLI::Option* add_open(CLI::App& command, bool& value);
CLI::Option* add_duration(CLI::App& command, const std::string& name,
                          std::optional<netio::Duration>& value, const std::string& help);

// The two ends of a range of sizes. Throws std::invalid_argument: the least is above the most.
void require_order(std::string_view least_option, std::uint64_t least, std::string_view most_option,
                   std::uint64_t most);
// Whom to connect to. Throws std::invalid_argument as netio::parse_address() does, and for port 0,
// where nobody listens.
netio::Address peer_address(std::string_view text);

} // namespace apps
