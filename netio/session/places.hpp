// SPDX-License-Identifier: Apache-2.0
#pragma once

// So many peers are served at once, and so many of them of one host (of IPv6: of one network of 64
// bits), so that one host does not keep all the others out. No I/O; not thread-safe.

#include "netio/access/machine.hpp"
#include "netio/session/parse_host.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace netio::inline v0_2 {

class Places {
  public:
    // `per_host`: 0 means half of them.
    explicit Places(std::size_t limit, std::size_t per_host = 0)
        : limit_{limit}, per_host_{per_host != 0 ? per_host : limit / 2 + limit % 2} {}

    // Why a peer at this address (HOST:PORT) has no place; empty: it has one, until leave().
    std::string enter(const std::string& address) {
        Hosts::iterator host;
        return enter(host_of(address), host);
    }
    void leave(const std::string& address) { leave(by_host_.find(host_of(address))); }

    // The same as an object: who has it has left when the last copy of it is gone.
    using Place = std::shared_ptr<const void>;
    struct Entry {
        Place place;     // null:
        std::string why; // there is none
    };
    // `source`: its machine; all zeros: unknown, and the address stands for it.
    static Entry enter(const std::shared_ptr<Places>& of, const access::Host& source,
                       const std::string& address) {
        Hosts::iterator host;
        std::string why =
            of->enter(source == access::Host{} ? host_of(address) : name_of(source), host);
        if (!why.empty()) return {.place = nullptr, .why = std::move(why)};
        return {.place = {of.get(), [of, host](const Places*) { of->leave(host); }}, .why = {}};
    }

  private:
    using Hosts = std::map<std::string, std::size_t>;

    std::string enter(const std::string& name, Hosts::iterator& host) {
        if (count_ >= limit_) return std::to_string(count_) + " peers are here already";
        host = by_host_.try_emplace(name, 0).first;
        if (host->second >= per_host_)
            return std::to_string(host->second) + " peers of that host are here already";
        ++host->second;
        ++count_;
        return {};
    }
    void leave(Hosts::iterator host) noexcept {
        if (--host->second == 0) by_host_.erase(host);
        --count_;
    }
    // A name that is no address in numbers stands for itself.
    static std::string host_of(const std::string& address) {
        std::string host = address.substr(0, address.rfind(':'));
        const bool has_brackets = host.starts_with('[') && host.ends_with(']');
        const std::string bare = has_brackets ? host.substr(1, host.size() - 2) : host;
        const auto found = parse_host(bare);
        if (!found) return host;
        return name_of(*found);
    }
    static std::string name_of(const access::Host& host) {
        const access::Host machine = access::machine_of(host);
        return {reinterpret_cast<const char*>(machine.data()), machine.size()};
    }

    std::size_t limit_;
    std::size_t per_host_;
    std::size_t count_ = 0;
    Hosts by_host_; // of those who have places
};

} // namespace netio::inline v0_2
