// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who has connected and not finished the provider's handshake, as far as it was noticed, in the
// order of their coming; of one machine not more than a limit. Whom it names for being cut off may
// have gone by itself meanwhile.
//
// Who has sent all of its request waits for us, and not we for it: of those there may be many more.
// A thousand that come at once while we are busy would else be cut off one after the other, each
// when its turn is next, come back, and be cut off again.

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

    static constexpr std::size_t asking_per_waiting = 16; // limits of a machine

    // One that has come. Who had the descriptor before is gone.
    void enter(const Guest& guest);
    // Who has waited longest among those of its machine that are too many; note what it is, or
    // forget it, and ask again.
    struct Excess {
        Guest guest;
        bool is_asking = false;
    };
    std::optional<Excess> excess(const access::GateAddress& peer) const;
    // It has sent all of its request.
    void note_asking(int fd);
    void forget(int fd);
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
        bool is_asking = false;
    };
    using Entries = std::map<int, Entry>;       // by descriptor
    using Queue = std::map<std::uint64_t, int>; // descriptors by number
    struct Machine {
        Queue waiting;
        Queue asking;
    };
    using Machines = std::map<access::Host, Machine>;

    void forget(Entries::iterator entry);

    std::size_t limit_;
    std::uint64_t next_number_ = 0;
    Entries guests_;
    Machines machines_;
};

} // namespace netio::fabric
