// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of the peers that listening sockets admit, read from one file. Any number of sockets of
// one loop may share them; a socket of another loop throws std::invalid_argument. A peer without
// one of these keys gets no connection. A peer whose key is removed from the file or changed there
// loses its connection. Create the object on the loop's thread; any thread may release the last
// reference. The loop must outlive them and everything that shares them, including options of
// sockets.
//
//     const netio::ServerKeys::Options site{.file = "site.keys"};
//     const auto keys = std::make_shared<netio::ServerKeys>(loop, site);
//     netio::ListenSocket socket{
//         *transport, {.listen = {{"10.0.0.1", 1234}}, .keys = keys}, handler};

#include "netio/access/protection.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace netio::inline v0_3 {

class EventLoop;
class Authenticator;

class NETIO_EXPORT ServerKeys final {
  public:
    struct Options {
        std::string file{}; // made by `netio key new`
        // The lowest protection that clients must request.
        access::Protection min_protection = access::Protection::none;
        // Limit of simultaneous connections of one host, with any keys. The default is larger than
        // that of `connections=` (64, for one key), so that one key cannot lock out the other keys
        // of its host.
        std::uint32_t connections_per_host = 256;
        std::chrono::milliseconds look_interval{1000}; // between checks of the file
        // Numeric addresses that clients dial, if the network translates them to an address of this
        // machine (NAT, a container's port): a client's proof covers the address that it dialled.
        // At most 8.
        std::vector<Address> advertised_addresses{};
    };

    // Reports peers that are not admitted and problems of the file to the loop's observer. Throws
    // std::runtime_error (access::KeyFileError), naming file, line and remedy, if the file is
    // invalid, and std::invalid_argument for options.
    ServerKeys(EventLoop& loop, const Options& options);
    ~ServerKeys();
    ServerKeys(const ServerKeys&) = delete;
    ServerKeys& operator=(const ServerKeys&) = delete;

    // Since construction; they do not decrease.
    struct Counters {
        std::uint64_t admitted = 0;
        std::uint64_t challenged = 0; // first attempts: each client makes one before admission
        std::uint64_t busy = 0;       // a key or a host had its maximum of connections
        std::uint64_t refused = 0;
        std::size_t sessions = 0; // at the moment
    };
    Counters counters() const noexcept;

  private:
    friend class AdmittedPeer;
    friend class SessionListener;
    std::unique_ptr<Authenticator> impl_;
};

} // namespace netio::inline v0_3
