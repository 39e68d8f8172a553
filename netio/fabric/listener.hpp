// SPDX-License-Identifier: Apache-2.0
#pragma once

// A listening endpoint, and the limits of its unfinished handshakes.

// HandshakeGuard: limits the peers of a tcp listener that do not finish the provider's handshake.
// The provider would keep them until descriptors run out. The guard closes a pending peer
//   - that has not finished within the timeout, and
//   - that is the oldest of its machine, if too many peers of that machine are pending.
// Sockets that were accepted elsewhere, or that belong to the user, are not touched.

#include "netio/access/host.hpp"
#include "netio/fabric/connection.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace netio::fabric {

// A peer that has connected and has not finished the provider's handshake.
struct PendingPeer {
    int fd = -1;
    access::AuthAddress peer{};
    friend bool operator==(const PendingPeer&, const PendingPeer&) = default;
};

// The known pending peers, in the order of their arrival, with a limit per machine. It makes no
// system calls; a peer that it selects for closing may be gone already.
//
// A peer that has sent its whole request waits for this process, not the other way round, so the
// limit for such peers is higher. Otherwise, if a thousand peers connect while this process is
// busy, each would be closed just before its turn, connect again, and be closed again.
class PendingHandshakes {
  public:
    explicit PendingHandshakes(std::size_t limit_per_machine) noexcept
        : limit_{limit_per_machine} {}

    // The factor of the higher limit.
    static constexpr std::size_t requested_factor = 16;

    // Adds a peer. An earlier peer with this descriptor is gone.
    void enter(const PendingPeer& pending);
    struct Excess {
        PendingPeer pending;
        bool has_requested = false;
    };
    // Returns the oldest pending peer of the machine of `peer` if that machine exceeds the limit.
    // Call mark_requested() or forget() for it, then ask again.
    std::optional<Excess> excess(const access::AuthAddress& peer) const;
    // Call it when the peer has sent its whole request.
    void mark_requested(int fd);
    void forget(int fd);
    // Removes a peer that has finished the handshake. Returns its descriptor; -1: it was not
    // entered.
    int leave(const access::AuthAddress& peer);
    bool knows(const PendingPeer& pending) const;
    // Forgets all peers that are not in `present`.
    void keep(const std::map<int, access::AuthAddress>& present);

    std::size_t size() const noexcept { return pending_.size(); }

  private:
    struct Entry {
        access::AuthAddress peer{};
        std::uint64_t number = 0; // order of arrival
        bool has_requested = false;
    };
    using Entries = std::map<int, Entry>;       // by descriptor
    using Queue = std::map<std::uint64_t, int>; // descriptors by number
    struct Machine {
        Queue silent;    // the whole request has not arrived
        Queue requested; // it has
    };
    using Machines = std::map<access::Host, Machine>;

    void forget(Entries::iterator entry);

    std::size_t limit_;
    std::uint64_t next_number_ = 0;
    Entries pending_;
    Machines machines_;
};

class HandshakeGuard {
  public:
    struct Limits {
        std::chrono::milliseconds half_handshake; // of blocking reads of a request
        std::chrono::milliseconds handshake;      // FabricOptions::handshake_timeout
        std::size_t pending_per_host;             // FabricOptions::pending_handshakes_per_host
    };

    // Throws FabricError: the listening socket cannot be found.
    HandshakeGuard(EventLoop& loop, const access::AuthAddress& address, const Limits& limits);

    // Call it when the listening socket is readable.
    void on_accept_ready();
    // Call it when the provider may have accepted a connection. `fd`: the descriptor that was free
    // before and that the connection would have.
    void note(int fd);
    // The socket of a peer whose request the provider has read; none if the peer is gone. From now
    // on its socket reports all that arrives.
    KernelSocket admit(const access::AuthAddress& peer);
    // Closes the peers that are pending now and were pending at the previous check.
    void check();
    // Closes all pending peers. Returns how many of them the provider still has open.
    std::size_t close_all();

  private:
    using Peers = std::map<int, access::AuthAddress>; // by descriptor

    void enter(const PendingPeer& pending);
    void report_closed(const PendingHandshakes::Excess& excess) const;

    EventLoop& loop_;
    const std::size_t pending_per_host_;
    ListeningSocket socket_;
    std::chrono::milliseconds timeout_;
    Timer timer_;
    PendingHandshakes pending_;
    Peers last_seen_; // pending at the last check
};

// A listening (passive) endpoint with its own event queue, so that unauthenticated peers never
// delay existing connections. If connections are kernel sockets, it has a HandshakeGuard. It pauses
// when no descriptor is free for another peer: the provider cannot accept then, and its listening
// socket stays readable. It also pauses when its queue reports only failures.

class Listener final : public netio::Listener, private EventSource {
  public:
    // Throws FabricError if the address is in use or not local.
    Listener(EventLoop& loop, const FabricOptions& options, Fabric& fabric, Info info,
             const Address& requested, Handler& handler);
    ~Listener() override;

    Address address() const override { return address_; }
    const std::string& provider() const noexcept override { return provider_; }
    void prepare(RegisteredBuffer& buffer) override;

  private:
    int wait_fd() const noexcept override { return wait_fd_; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override;

    class Request;

    // Returns false if the handler destroyed this listener.
    bool handle_request(const CmEvent& event);
    CmReader::Result read();
    bool is_broken(CmReader::Result result);
    template <typename Call>
    auto noting(Call call);
    void rest();
    void close_pending();

    EventLoop& loop_;
    Fabric& fabric_;
    Info info_;
    Handler& handler_;
    std::string provider_;
    int wait_fd_ = -1;
    EventQueueHandle events_;
    PassiveEndpointHandle endpoint_;
    Address address_;
    CmReader reader_;
    std::optional<HandshakeGuard> guard_;
    Timer rest_timer_;
    Request* pending_ = nullptr;      // being handled
    std::size_t nameless_errors_ = 0; // consecutive
};

} // namespace netio::fabric
