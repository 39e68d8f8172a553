// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whom listening sockets let in: the keys of one file, shared by as many of them as like, of one
// loop: a socket of another refuses them with std::invalid_argument. Whoever has none of these keys
// gets no connection, and whoever's key is taken out of the file, or changed there, loses it. The
// loop outlives it, and so whatever has a share in it, options of sockets included.
//
//     const netio::ServerKeys::Options site{.file = "site.keys"};
//     const auto keys = std::make_shared<netio::ServerKeys>(loop, site);
//     netio::ListenSocket socket{
//         *transport, {.addresses = {{"10.0.0.1", 1234}}, .keys = keys}, handler};

#include "netio/access/protection.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace netio::inline v0_2 {

class EventLoop;
class KeyDesk;

class NETIO_EXPORT ServerKeys final {
  public:
    struct Options {
        std::string file{}; // made by `netio key new`
        // What clients have to ask for at least.
        access::Protection least = access::Protection::none;
        // Connections of one host at once, whatever their keys: more than `links=` gives one key
        // where the file does not say otherwise (64), so that no key keeps the others of its host
        // out.
        std::uint32_t links_per_host = 256;
        std::chrono::milliseconds look_interval{1000}; // at the file
        // What clients dial, in numbers, where the network translates it to an address of this
        // machine (NAT, a container's port): a proof holds for the address that its maker dialled.
        // At most 8.
        std::vector<Address> dialled_as{};
    };

    // The loop's observer is told who is not admitted, and what is the matter with the file. Throws
    // std::runtime_error (access::KeyFileError), naming file, line and remedy, if the file cannot
    // be used, and std::invalid_argument for options.
    ServerKeys(EventLoop& loop, const Options& options);
    ~ServerKeys();
    ServerKeys(const ServerKeys&) = delete;
    ServerKeys& operator=(const ServerKeys&) = delete;

    // Monotonic since construction.
    struct Counters {
        std::uint64_t admitted = 0;
        std::uint64_t challenged = 0; // first attempts: each client makes one before it is admitted
        std::uint64_t busy = 0;       // a key or a host had as many connections as it may have
        std::uint64_t refused = 0;
        std::size_t sessions = 0; // now
    };
    Counters counters() const noexcept;

  private:
    friend class Admittance;
    friend class SessionListener;
    std::unique_ptr<KeyDesk> desk_;
};

} // namespace netio::inline v0_2
