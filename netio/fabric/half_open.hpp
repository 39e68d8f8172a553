// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who has connected and not finished the provider's handshake, as far as it was noticed, in the
// order of their coming; of one machine not more than a limit. Whom it names for being cut off may
// have gone by itself meanwhile.

#include "netio/access/host.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace netio::fabric {

class HalfOpen {
  public:
    struct Guest {
        int fd = -1;
        access::GateAddress peer{};
        friend bool operator==(const Guest&, const Guest&) = default;
    };

    explicit HalfOpen(std::size_t limit_per_machine) noexcept : limit_{limit_per_machine} {}

    // One that has come, and who has waited longest among those of its machine if they are too many
    // now: it is forgotten here. Who had the descriptor before is gone.
    std::optional<Guest> enter(const Guest& guest);
    // One that has finished; the descriptor, -1: it was not noticed.
    int leave(const access::GateAddress& peer);
    bool knows(const Guest& guest) const;
    // All others are gone.
    void keep(const std::map<int, access::GateAddress>& present);

    std::size_t size() const noexcept { return guests_.size(); }

  private:
    struct Entry {
        access::GateAddress peer{};
        std::uint64_t number = 0; // the order of coming
    };
    using Entries = std::map<int, Entry>;         // by descriptor
    using Waiting = std::map<std::uint64_t, int>; // descriptors by number
    using Machines = std::map<access::Host, Waiting>;

    void forget(Entries::iterator entry);

    std::size_t limit_;
    std::uint64_t next_number_ = 0;
    Entries guests_;
    Machines machines_;
};

} // namespace netio::fabric
