// SPDX-License-Identifier: Apache-2.0
#pragma once

// The key with which a connecting socket authenticates, and by which it authenticates the listening
// side: a peer that does not prove possession of the same key receives nothing. Several sockets may
// share a key, also those of several loops.

#include "netio/access/protection.hpp"
#include "netio/base/export.hpp"

#include <memory>
#include <string>

namespace netio::access::inline v0_3 {
class AuthClient;
struct AuthAddress;
} // namespace netio::access::inline v0_3

namespace netio::inline v0_3 {

class NETIO_EXPORT ClientKey final {
  public:
    struct Options {
        std::string file{}; // with one key, made by `netio key new --client`
        // Requested from the peer; a lower protection is not accepted.
        access::Protection protection = access::Protection::none;
    };

    // Reads the file, and again before an attempt to connect if the file has changed. While it is
    // invalid, the previous key stays in force, and the observer of the connecting loop is notified
    // once for each state of the file. Throws std::runtime_error (access::KeyFileError), naming
    // file, line and remedy, if the file is invalid now.
    explicit ClientKey(const Options& options);
    ~ClientKey();
    ClientKey(const ClientKey&) = delete;
    ClientKey& operator=(const ClientKey&) = delete;

  private:
    friend class Connector;
    struct InUse; // the key and its file
    // Checks the file at the start of an attempt. Returns a new problem, or an empty text.
    std::string look() const;
    std::shared_ptr<access::AuthClient> dial(const access::AuthAddress& dialled) const;

    std::unique_ptr<InUse> in_use_;
    access::Protection protection_;
};

} // namespace netio::inline v0_3
