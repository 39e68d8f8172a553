// SPDX-License-Identifier: Apache-2.0
#pragma once

// Receives every event that is worth a log line, from all objects of one loop: sockets, keys,
// devices. The libraries log nothing themselves. Events that a program must react to go to the
// handlers of its sockets; events for its operator come here.
//
//     class Log final : public netio::Observer {
//         void on_peer_rejected(const netio::PeerRejected& event) override {
//             std::fprintf(stderr, "%s is rejected: %s\n", event.peer.c_str(), event.why.c_str());
//         }
//     } log;
//     netio::EventLoop loop{{.observer = &log}}; // or later: loop.observer = &log
//
// Unauthenticated peers decide how often some of these events happen: limit the lines of each kind,
// and count the rest. An observer only observes: it must not destroy, close or call objects of the
// loop, but it may post a task that does. Every function has an empty default. Without an observer
// none is called. All calls come on the loop's thread.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace netio::inline v0_3 {

// A session is open, on either side.
struct PeerConnected {
    std::string peer; // HOST:PORT, as in all events
    std::string provider;
};

// An open session has ended, for any reason: in order, aborted (too_slow), silent, lost ...
struct PeerDisconnected {
    std::string peer;
    Closed closed;
};

// A listener has rejected a peer because of what it is or requests, or the peer left before it had
// sent its request.
struct PeerRejected {
    std::string peer;
    std::string why;
};

// A peer was rejected because this side lacks a resource: memory, locked memory, descriptors, or an
// endpoint of the device. The peer may try again, but the problem can be solved only on this
// machine. `why` names the remedy if there is one.
struct AcceptFailed {
    std::string peer;
    FabricError why;
};

// A listener has rejected a peer that did not prove that it has one of the keys. The peer does not
// get this reason.
struct NotAdmitted {
    std::string peer;
    std::string why;
    unsigned key = 0; // the key that the peer claims to have; 0: none
};

// A connected peer's request (a subscription) is refused. The peer's own side is notified, too.
struct RequestRefused {
    std::string peer;
    std::string why;
};

// A subscriber asks for history, and the publisher keeps no messages: only new ones arrive.
struct NoHistory {
    std::string peer; // the publisher
};

// A key was changed in the file or removed from it: its sessions end.
struct KeyRevoked {
    unsigned key = 0;
    std::size_t sessions = 0;
};

// One route to a peer does not work. A route is one address of its name over one provider.
struct RouteFailed {
    std::string provider;
    Address remote;
    Closed closed;
    bool is_last = false; // no other route is tried; the socket's on_closed reports it, too
};

// A listener does not accept connections over this provider; peers connect over another provider,
// which is preferred.
struct ProviderUnused {
    std::string provider;
    Address address;
    std::string why;
};

// A subscriber is slow: it has made no progress for about one second, although data is queued for
// it. Its policy decides what happens.
struct PeerStalled {
    std::string peer;
    Duration stalled{};            // so far, approximately
    bool blocks_publisher = false; // publishing is blocked until it makes progress
};
// The subscriber has made progress again.
struct PeerRecovered {
    std::string peer;
    Duration stalled{}; // in total, approximately
};

// An event of an RDMA device of this machine (netio/device_watch.hpp).
struct DeviceEvent {
    enum class Kind : std::uint8_t {
        port_up,
        port_down,
        device_failed, // no traffic can use it any more
        changed,       // addresses, keys, the subnet manager
    };
    Kind kind = Kind::changed;
    std::string device;
    unsigned port = 0; // 0: the whole device
    std::string what;  // in the words of libibverbs
};

class Observer {
  public:
    virtual void on_peer_connected(const PeerConnected&) {}
    virtual void on_peer_disconnected(const PeerDisconnected&) {}
    virtual void on_peer_rejected(const PeerRejected&) {}
    virtual void on_accept_failed(const AcceptFailed&) {}
    virtual void on_not_admitted(const NotAdmitted&) {}
    virtual void on_request_refused(const RequestRefused&) {}
    virtual void on_no_history(const NoHistory&) {}
    // The key file of a server or a client has changed and cannot be used, or admits anonymous
    // peers of other machines without the option for it. Called once for each state of the file.
    // The text says which keys are in force.
    virtual void on_key_file_problem(const std::string& /*problem*/) {}
    virtual void on_key_revoked(const KeyRevoked&) {}
    virtual void on_route_failed(const RouteFailed&) {}
    virtual void on_provider_unused(const ProviderUnused&) {}
    virtual void on_peer_stalled(const PeerStalled&) {}
    virtual void on_peer_recovered(const PeerRecovered&) {}
    virtual void on_device_event(const DeviceEvent&) {}

  protected:
    ~Observer() = default;
};

} // namespace netio::inline v0_3
