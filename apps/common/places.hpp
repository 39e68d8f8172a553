// SPDX-License-Identifier: Apache-2.0
#pragma once

// So many peers are served at once, and so many of them of one host (of IPv6: of one network of 64
// bits), so that one host does not keep all the others out. No I/O.

#include "netio/access/machine.hpp"
#include "netio/session/parse_host.hpp"

#include <cstddef>
#include <map>
#include <string>

namespace apps {

class Places {
  public:
    // `per_host`: 0 means half of them.
    explicit Places(std::size_t limit, std::size_t per_host = 0)
        : limit_{limit}, per_host_{per_host != 0 ? per_host : (limit + 1) / 2} {}

    // Why a peer at this address (HOST:PORT) has no place; empty: it has one, until leave().
    std::string enter(const std::string& address) {
        if (count_ >= limit_) return std::to_string(count_) + " peers are here already";
        std::size_t& of_host = by_host_[host_of(address)];
        if (of_host >= per_host_)
            return std::to_string(of_host) + " peers of that host are here already";
        ++of_host;
        ++count_;
        return {};
    }
    void leave(const std::string& address) {
        const auto host = by_host_.find(host_of(address));
        if (--host->second == 0) by_host_.erase(host);
        --count_;
    }

  private:
    // A name that is no address in numbers stands for itself.
    static std::string host_of(const std::string& address) {
        std::string host = address.substr(0, address.rfind(':'));
        const bool has_brackets = host.starts_with('[') && host.ends_with(']');
        const std::string bare = has_brackets ? host.substr(1, host.size() - 2) : host;
        const auto found = netio::parse_host(bare.substr(0, bare.find('%')));
        if (!found) return host;
        const netio::access::Host machine = netio::access::machine_of(*found);
        return {reinterpret_cast<const char*>(machine.data()), machine.size()};
    }

    std::size_t limit_;
    std::size_t per_host_;
    std::size_t count_ = 0;
    std::map<std::string, std::size_t> by_host_; // of those who have places
};

} // namespace apps
