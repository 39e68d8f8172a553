// SPDX-License-Identifier: Apache-2.0
#include "apps/common/keys.hpp"

#include "apps/common/core_dumps.hpp"
#include "apps/common/option_values.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <stdexcept>

namespace apps {
namespace {

using netio::access::Protection;

// Once, for commands that both connect and listen. What there is of it is said by who makes a key.
void add_protection(CLI::App& command, KeyArguments& arguments) {
    if (command.get_option_no_throw("--protection") != nullptr) return;
    command
        .add_option(
            "--protection", arguments.protection,
            "With a key: none, peers (frames that change a connection carry a tag), integrity "
            "(all do) or privacy (all are encrypted); a server asks for it at least")
        ->check(one_of({"none", "peers", "integrity", "privacy"}));
}

void require_a_file(const KeyArguments& arguments) {
    if (arguments.protection.empty() || !arguments.key.empty() || !arguments.keys.empty()) return;
    throw std::invalid_argument{"--protection needs a key; give one with --key, or with --keys "
                                "where others connect"};
}

} // namespace

void add_key(CLI::App& command, KeyArguments& arguments) {
    command.add_option("--key", arguments.key,
                       "File with this client's key, which the server must have as well");
    add_protection(command, arguments);
}

void add_keys(CLI::App& command, KeyArguments& arguments) {
    command.add_option("--keys", arguments.keys,
                       "Key file (netio key): nobody else is let in; read again when it changes");
    command.add_option("--dialled-as", arguments.dialled_as,
                       "With --keys: address and port that clients dial, where the network "
                       "translates it to this machine's (NAT); repeatable");
    add_count(command, "--links-per-host", arguments.links_per_host,
              "Connections of one host at once (IPv6: of one /64); with --keys, whatever their "
              "keys, 256",
              {.min = 1, .max = UINT32_MAX});
    add_protection(command, arguments);
}

KeyArguments permitting(KeyArguments arguments, std::size_t of_one_host) {
    const std::uint64_t usual = netio::ServerKeys::Options{}.links_per_host;
    if (!arguments.links_per_host)
        arguments.links_per_host = std::max<std::uint64_t>(usual, of_one_host);
    return arguments;
}

Protection protection_of(const std::string& word) {
    if (word.empty()) return Protection::none;
    for (const Protection level :
         {Protection::none, Protection::peers, Protection::integrity, Protection::privacy}) {
        if (to_string(level) == word) return level;
    }
    throw std::invalid_argument{"'" + word +
                                "' is no protection; allowed: none, peers, integrity, privacy"};
}

std::shared_ptr<const netio::ClientKey> client_key(const KeyArguments& arguments) {
    require_a_file(arguments);
    if (arguments.key.empty()) return nullptr;
    forbid_core_dumps();
    return std::make_shared<netio::ClientKey>(netio::ClientKey::Options{
        .file = arguments.key, .protection = protection_of(arguments.protection)});
}

std::optional<netio::ServerKeys::Options> server_keys(const KeyArguments& arguments) {
    require_a_file(arguments);
    if (arguments.keys.empty()) return std::nullopt;
    forbid_core_dumps();
    netio::ServerKeys::Options options{.file = arguments.keys,
                                       .least = protection_of(arguments.protection)};
    if (arguments.links_per_host)
        options.links_per_host = static_cast<std::uint32_t>(*arguments.links_per_host);
    options.look_interval = arguments.look_interval;
    for (const std::string& address : arguments.dialled_as)
        options.dialled_as.push_back(netio::parse_address(address));
    return options;
}

ServedKeys::ServedKeys(netio::EventLoop& loop, const KeyArguments& arguments) {
    const auto options = server_keys(arguments);
    if (options) keys_ = std::make_shared<netio::ServerKeys>(loop, *options);
}

} // namespace apps
