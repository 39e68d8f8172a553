// SPDX-License-Identifier: Apache-2.0
#pragma once

// Polices the door of a tcp listener: who connects and does not finish the provider's handshake
// within the stranger time-out is cut off; the provider would keep them until descriptors run out.
// So is who has waited longest of one machine, when too many of it are there.
// Sockets that were accepted elsewhere, or that are the user's own, are none of its business.

#include "netio/fabric/half_open.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstddef>
#include <map>

namespace netio::fabric {

class Doorkeeper {
  public:
    struct Limits {
        std::chrono::milliseconds half_handshake;
        std::chrono::milliseconds stranger;
        std::size_t strangers_per_host;
    };

    // Throws FabricError: the listening socket cannot be found.
    Doorkeeper(EventLoop& loop, const access::GateAddress& address, const Limits& limits);

    // Somebody is at the door, whoever it is.
    void knock();
    // The provider may have accepted a connection, with the descriptor that was free before.
    void note(int fd);
    // The socket of a peer whose request is there; none if it is gone. From now on whatever arrives
    // is reported.
    KernelSocket admit(const access::GateAddress& peer);
    // Cuts off those that were strangers at the last look already.
    void look();
    // Cuts off everybody who has not finished, however long they have been there. The number of
    // those whom the provider has not let go of yet.
    std::size_t clear_out();

  private:
    using Strangers = std::map<int, access::GateAddress>; // by descriptor

    void enter(const HalfOpen::Guest& guest);
    void tell_cut_off(const HalfOpen::Excess& excess) const;

    EventLoop& loop_;
    const std::size_t strangers_per_host_;
    ListeningSocket socket_;
    std::chrono::milliseconds stranger_timeout_;
    Timer timer_;
    HalfOpen guests_;
    Strangers suspects_; // had not finished the handshake when we last looked
};

} // namespace netio::fabric
