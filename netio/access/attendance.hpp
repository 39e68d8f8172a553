// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who is connected: how many connections a key has, and how many a host: of IPv6
// a network of 64 bits. No I/O.

#include "netio/access/gate_transcript.hpp"
#include "netio/access/key_ring.hpp"
#include "netio/access/machine.hpp"

#include <cstdint>
#include <map>
#include <memory>

namespace netio::access::inline v0_2 {

class Attendance {
  public:
    explicit Attendance(std::uint32_t per_host) noexcept : per_host_{per_host} {}

    enum class Entry { entered, key_has_enough, host_has_enough };
    // One of the places of a key and of a host, until it goes. The attendance outlives it.
    struct Leaving {
        KeyId id = anyone;
        Host source{};
        void operator()(Attendance* of) const noexcept { of->leave(id, source); }
    };
    using Place = std::unique_ptr<Attendance, Leaving>;
    // Entered: `place` is one, in place of what it was.
    Entry enter(KeyId id, const Rights& rights, const Host& source, Place& place) {
        if (of_key(id) >= rights.links) return Entry::key_has_enough;
        if (of_host(source) >= per_host_) return Entry::host_has_enough;
        std::uint32_t& of_its_key = keys_[id];
        ++hosts_[machine_of(source)];
        ++of_its_key;
        place = Place{this, {.id = id, .source = source}};
        return Entry::entered;
    }

    std::uint32_t of_key(KeyId id) const { return count(keys_, id); }
    std::uint32_t of_host(const Host& source) const { return count(hosts_, machine_of(source)); }

  private:
    void leave(KeyId id, const Host& source) noexcept {
        drop(keys_, id);
        drop(hosts_, machine_of(source));
    }
    template <typename Map, typename Name>
    static std::uint32_t count(const Map& map, const Name& name) {
        const auto found = map.find(name);
        return found == map.end() ? 0 : found->second;
    }
    template <typename Map, typename Name>
    static void drop(Map& map, const Name& name) noexcept {
        const auto found = map.find(name);
        if (found != map.end() && --found->second == 0) map.erase(found);
    }

    std::uint32_t per_host_;
    std::map<KeyId, std::uint32_t> keys_;
    std::map<Host, std::uint32_t> hosts_; // by machine
};

} // namespace netio::access::inline v0_2
