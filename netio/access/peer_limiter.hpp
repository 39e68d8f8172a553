// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the connections of peers: in total, per host, and per key. So one host or one key cannot
// lock out all others. A host is an IPv4 address or an IPv6 network of 64 bits (machine_of()). No
// I/O; not thread-safe.

#include "netio/access/host.hpp"
#include "netio/access/key_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace netio::access::inline v0_3 {

// One admitted connection. It is released when the last copy of the pointer is destroyed.
using PeerSlot = std::shared_ptr<const void>;

class PeerLimiter {
  public:
    static constexpr std::size_t unlimited = SIZE_MAX;

    // `per_host` 0: half of `total`.
    explicit PeerLimiter(std::size_t total, std::size_t per_host = 0)
        : counts_{std::make_shared<Counts>()}, total_{total}, per_host_{per_host != 0
                                                                            ? per_host
                                                                            : total / 2 +
                                                                                  total % 2} {}
    PeerLimiter(const PeerLimiter&) = delete;
    PeerLimiter& operator=(const PeerLimiter&) = delete;

    struct Peer {
        Host host{};           // all zeros: unknown; then `address` (HOST:PORT) identifies the host
        std::string address{}; // a name that is not an address is compared as a whole
        KeyId key = anyone;
        std::size_t key_limit = unlimited;
    };
    enum class Limit { none, total, host, key };
    struct Entry {
        PeerSlot slot;             // null if
        Limit limit = Limit::none; // this limit is reached
        std::string why;           // the same for people
    };
    Entry enter(const Peer& peer) {
        Taken taken;
        Entry entry;
        entry.limit = take(peer, taken, entry.why);
        if (entry.limit == Limit::none) {
            // If this throws, the deleter releases the slot.
            entry.slot = {counts_.get(),
                          [counts = counts_, taken](const Counts*) { counts->release(taken); }};
        }
        return entry;
    }

    // For callers that identify a peer by its address (HOST:PORT). Returns why the peer is not
    // admitted; empty: it is, until leave().
    std::string enter(const std::string& address) {
        Taken taken;
        std::string why;
        take({.address = address}, taken, why);
        return why;
    }
    void leave(const std::string& address) {
        counts_->release(
            {.host = counts_->hosts.find(host_of(address)), .key = counts_->keys.find(anyone)});
    }

    std::size_t of_key(KeyId id) const { return count(counts_->keys, id); }
    std::size_t of_host(const Host& host) const { return count(counts_->hosts, name_of(host)); }

  private:
    using Hosts = std::map<std::string, std::size_t>;
    using Keys = std::map<KeyId, std::size_t>;
    struct Taken {
        Hosts::iterator host;
        Keys::iterator key;
    };
    struct Counts {
        std::size_t all = 0;
        Hosts hosts;
        Keys keys;

        void release(const Taken& taken) noexcept {
            --all;
            if (--taken.host->second == 0) hosts.erase(taken.host);
            if (--taken.key->second == 0) keys.erase(taken.key);
        }
    };

    Limit take(const Peer& peer, Taken& taken, std::string& why) {
        Counts& counts = *counts_;
        const auto full = [&](std::size_t present, const char* of) {
            why = std::to_string(present) + " peers" + of + " are connected already";
        };
        if (counts.all >= total_) return full(counts.all, ""), Limit::total;
        if (const std::size_t now = count(counts.keys, peer.key); now >= peer.key_limit)
            return full(now, " of that key"), Limit::key;
        const std::string host = peer.host == Host{} ? host_of(peer.address) : name_of(peer.host);
        if (const std::size_t now = count(counts.hosts, host); now >= per_host_)
            return full(now, " of that host"), Limit::host;
        // Both may throw. Only then is anything counted.
        taken.host = counts.hosts.try_emplace(host, 0).first;
        taken.key = counts.keys.try_emplace(peer.key, 0).first;
        ++counts.all;
        ++taken.host->second;
        ++taken.key->second;
        return Limit::none;
    }

    template <typename Map, typename Name>
    static std::size_t count(const Map& map, const Name& name) {
        const auto found = map.find(name);
        return found == map.end() ? 0 : found->second;
    }
    static std::string host_of(const std::string& address) {
        std::string host = address.substr(0, address.rfind(':'));
        const bool has_brackets = host.starts_with('[') && host.ends_with(']');
        const std::string bare = has_brackets ? host.substr(1, host.size() - 2) : host;
        const auto found = parse_host(bare);
        if (!found) return host;
        return name_of(*found);
    }
    static std::string name_of(const Host& host) {
        const Host machine = machine_of(host);
        return {reinterpret_cast<const char*>(machine.data()), machine.size()};
    }

    std::shared_ptr<Counts> counts_; // slots may outlive the limiter
    std::size_t total_;
    std::size_t per_host_;
};

} // namespace netio::access::inline v0_3
