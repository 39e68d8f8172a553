// SPDX-License-Identifier: Apache-2.0
#pragma once

// Polices the door of a tcp listener: who connects and does not finish the provider's handshake
// within the stranger time-out is cut off; the provider would keep them until descriptors run out.
// Sockets that were accepted elsewhere, or that are the user's own, are none of its business.

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
    };

    // Throws FabricError: the listening socket cannot be found.
    Doorkeeper(EventLoop& loop, const Address& address, const Limits& limits);

    // Somebody is at the door, whoever it is.
    void knock();
    // The provider may have accepted a connection, with the descriptor that was free before.
    void note(int fd);
    // The socket of a peer that has finished the handshake; none if it is gone.
    KernelSocket admit(const Address& peer);
    // Cuts off those that were strangers at the last look already.
    void look();
    // Cuts off everybody who has not finished, however long they have been there. The number of
    // those whom the provider has not let go of yet.
    std::size_t clear_out();

  private:
    using Guests = std::map<int, Address>; // by descriptor

    ListeningSocket socket_;
    std::chrono::milliseconds stranger_timeout_;
    Timer timer_;
    Guests guests_;   // as far as they were noticed
    Guests suspects_; // had not finished the handshake when we last looked
};

} // namespace netio::fabric
