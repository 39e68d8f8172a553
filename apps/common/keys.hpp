// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of programs that ask for keys or show one, and what becomes of them. A server says
// whom it has not admitted, so many lines an interval.

#include "apps/common/limited_log.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace apps {

struct KeyArguments {
    std::string key;  // of a client
    std::string keys; // of a server
    std::string protection;
    std::vector<std::string> dialled_as; // of a server
    std::uint32_t links_per_host = netio::ServerKeys::Options{}.links_per_host;
    std::chrono::milliseconds look_interval = netio::ServerKeys::Options{}.look_interval;
};

// --key FILE, for a command that connects; --keys FILE, for one that listens; --protection LEVEL
// with either.
void add_key(CLI::App& command, KeyArguments& arguments);
void add_keys(CLI::App& command, KeyArguments& arguments);

// Of the word that was given; empty: none. Throws std::invalid_argument.
netio::access::Protection protection_of(const std::string& word);

// Null without --key. Throws as ClientKey.
std::shared_ptr<const netio::ClientKey> client_key(const KeyArguments& arguments);

// The keys of a server, and what is said of those who do not have one.
class ServedKeys final : private netio::ServerKeys::Handler {
  public:
    // Null keys without --keys. Throws as ServerKeys.
    ServedKeys(netio::EventLoop& loop, const KeyArguments& arguments);
    ServedKeys(const ServedKeys&) = delete;
    ServedKeys& operator=(const ServedKeys&) = delete;

    const std::shared_ptr<netio::ServerKeys>& keys() const noexcept { return keys_; }

  private:
    void on_refused(const std::string& peer_address, std::string_view why, unsigned key) override;
    void on_file_problem(const std::string& problem) override;
    void on_revoked(unsigned key, std::size_t sessions) override;

    LimitedLog refused_;
    std::shared_ptr<netio::ServerKeys> keys_;
};

// For where keys belong to a loop that is made elsewhere. Nothing without --keys.
std::optional<netio::ServerKeys::Options> server_keys(const KeyArguments& arguments);

} // namespace apps
