// SPDX-License-Identifier: Apache-2.0
#include "apps/common/option_values.hpp"

#include "apps/common/quantity.hpp"
#include "apps/common/spelling.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace apps {
namespace {

[[noreturn]] void refuse_value(const std::string& name, const std::string& word,
                               std::string_view allowed) {
    throw CLI::ValidationError{name, fmt::format("'{}'; allowed: {}", word, allowed)};
}

std::string allowed(std::string_view what, const Limits& limits, std::string_view also) {
    if (limits.max == std::numeric_limits<std::uint64_t>::max()) {
        return fmt::format("{} from {}, also as {}", what, limits.min, also);
    }
    return fmt::format("{} from {} to {}, also as {}", what, limits.min, limits.max, also);
}

std::uint64_t read_count(const std::string& name, const std::string& word, const Limits& limits) {
    const auto value = parse_count(word);
    if (value && *value >= limits.min && *value <= limits.max) return *value;
    refuse_value(name, word, allowed("a whole number", limits, "10k, 1M"));
}

std::uint64_t read_bytes(const std::string& name, const std::string& word, const Limits& limits) {
    const auto value = parse_bytes(word);
    if (value && *value >= limits.min && *value <= limits.max) return *value;
    refuse_value(name, word, allowed("a number of bytes", limits, "64k, 16M, 1G"));
}

// Nothing is 0, where that is taken.
netio::Duration read_time(const std::string& name, const std::string& word, Zero zero) {
    constexpr std::chrono::hours longest{24};
    if (zero == Zero::taken && parse_count(word) == 0U) return {};
    const auto duration = parse_duration(word);
    if (duration && *duration >= std::chrono::milliseconds{1} && *duration <= longest)
        return *duration;
    refuse_value(name, word,
                 fmt::format("{}a number of seconds, also as 500ms, 10s, 2m, 1h; from 1ms to a day",
                             zero == Zero::taken ? "0, or " : ""));
}

template <class Value, class Read>
CLI::Option* add_number(CLI::App& command, const std::string& name, Value& value,
                        const std::string& help, const Limits& limits, Read read) {
    return command.add_option_function<std::string>(
        name,
        [&value, name, limits, read](const std::string& word) { value = read(name, word, limits); },
        help);
}

} // namespace

CLI::Option* add_count(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help,
                       Limits limits) {
    return add_number(command, name, value, help, limits, read_count)->type_name("NUMBER");
}

CLI::Option* add_count(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits) {
    return add_number(command, name, value, help, limits, read_count)
        ->type_name("NUMBER")
        ->default_str(std::to_string(value));
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits) {
    return add_number(command, name, value, help, limits, read_bytes)
        ->type_name("BYTES")
        ->default_str(std::to_string(value));
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help,
                       Limits limits) {
    return add_number(command, name, value, help, limits, read_bytes)->type_name("BYTES");
}

CLI::Option* add_seconds(CLI::App& command, const std::string& name, double& value,
                         const std::string& help, Zero zero) {
    const auto read = [&value, name, zero](const std::string& word) {
        value = std::chrono::duration<double>{read_time(name, word, zero)}.count();
    };
    return command.add_option_function<std::string>(name, read, help)
        ->type_name("TIME")
        ->default_str(fmt::format("{}", value));
}

CLI::Option* add_milliseconds(CLI::App& command, const std::string& name,
                              std::chrono::milliseconds& value, const std::string& help,
                              Zero zero) {
    const auto read = [&value, name, zero](const std::string& word) {
        value = std::chrono::duration_cast<std::chrono::milliseconds>(read_time(name, word, zero));
    };
    return command.add_option_function<std::string>(name, read, help)
        ->type_name("TIME")
        ->default_str(fmt::format("{}ms", value.count()));
}

std::function<std::string(const std::string&)> one_of(std::vector<std::string_view> words) {
    return [words = std::move(words)](const std::string& word) -> std::string {
        if (std::ranges::find(words, word) != words.end()) return {};
        return fmt::format("'{}' is unknown{}; allowed: {}", word, suggestion(word, words),
                           fmt::join(words, ", "));
    };
}

CLI::Option* add_provider(CLI::App& command, std::string& value) {
    const auto problem = [](const std::string& word) {
        std::string refusal = word == "auto" ? std::string{} : netio::provider_refusal(word);
        if (refusal.empty()) return refusal;
        constexpr std::array<std::string_view, 3> words{"auto", "tcp", "verbs"};
        const std::string meant =
            std::ranges::find(words, word) == words.end() ? suggestion(word, words) : "";
        return fmt::format("'{}'{}: {}", word, meant, refusal);
    };
    return command.add_option("--provider", value, "auto, tcp or verbs")->check(problem);
}

CLI::Option* add_bus(CLI::App& command, std::string& value) {
    return command.add_option("--bus", value,
                              "Where publishers are found: a directory that all hosts see, "
                              "or etcd://HOST:PORT");
}

CLI::Option* add_decoding(CLI::App& command, std::string& value) {
    return command.add_option("--decode-fids", value, "Show fids by their fields: felix")
        ->check(one_of({"felix"}));
}

CLI::Option* add_open(CLI::App& command, bool& value) {
    return command.add_flag("--open", value,
                            "Listen also where other machines reach it: whoever does may connect");
}

CLI::Option* add_duration(CLI::App& command, const std::string& name,
                          std::optional<netio::Duration>& value, const std::string& help) {
    return command
        .add_option_function<std::string>(
            name,
            [&value, name](const std::string& word) {
                value = parse_duration(word);
                if (!value) refuse_value(name, word, duration_spelling);
            },
            help)
        ->type_name("TIME");
}

void require_order(std::string_view least_option, std::uint64_t least, std::string_view most_option,
                   std::uint64_t most) {
    if (least <= most) return;
    throw std::invalid_argument{fmt::format("{} is {}; it must not exceed {}, which is {}",
                                            least_option, least, most_option, most)};
}

netio::Address peer_address(std::string_view text) {
    netio::Address address = netio::parse_address(text);
    if (address.port == 0) {
        throw std::invalid_argument{fmt::format("'{}' is not an address to connect to: nobody "
                                                "listens at port 0; it must be from 1 to 65535",
                                                text)};
    }
    return address;
}

} // namespace apps
