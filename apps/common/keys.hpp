// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of programs that ask for keys or show one, and what becomes of them.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
    std::optional<std::uint64_t> links_per_host;
    std::chrono::milliseconds look_interval = netio::ServerKeys::Options{}.look_interval;
};

// --key FILE, for a command that connects; --keys FILE, and what goes with it, for one that
// listens; --protection LEVEL with either.
void add_key(CLI::App& command, KeyArguments& arguments);
void add_keys(CLI::App& command, KeyArguments& arguments);

// Of the word that was given; empty: none. Throws std::invalid_argument.
netio::access::Protection protection_of(const std::string& word);

// Null without --key. Throws as ClientKey.
std::shared_ptr<const netio::ClientKey> client_key(const KeyArguments& arguments);

// The keys of a server.
class ServedKeys final {
  public:
    // Null keys without --keys. Throws as ServerKeys.
    ServedKeys(netio::EventLoop& loop, const KeyArguments& arguments);
    ServedKeys(const ServedKeys&) = delete;
    ServedKeys& operator=(const ServedKeys&) = delete;

    const std::shared_ptr<netio::ServerKeys>& keys() const noexcept { return keys_; }

  private:
    std::shared_ptr<netio::ServerKeys> keys_;
};

// For a command that has a limit of its own for those of one host, of which that of the keys shall
// not be in the way unless it was given.
KeyArguments permitting(KeyArguments arguments, std::size_t of_one_host);

// For where keys belong to a loop that is made elsewhere. Nothing without --keys.
std::optional<netio::ServerKeys::Options> server_keys(const KeyArguments& arguments);

} // namespace apps
