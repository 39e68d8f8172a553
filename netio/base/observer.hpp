// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything that is worth a line of a log, in one place for all that belongs to one loop: sockets,
// keys, devices. The libraries log nothing themselves. What a program decides by stands in the
// handlers of its sockets; what its operator wants to read comes here.
//
//     class Log final : public netio::Observer {
//         void on_peer_rejected(const netio::PeerRejected& event) override {
//             std::fprintf(stderr, "%s is rejected: %s\n", event.peer.c_str(), event.why.c_str());
//         }
//     } log;
//     netio::EventLoop loop{{.observer = &log}}; // or later: loop.observer = &log
//
// Strangers decide how often some of it happens: write so many lines of a kind, and count the rest.
// An observer only looks. It must not destroy, close or call what belongs to the loop; a task that
// it posts may. Every function has an empty default, and none is called where nobody observes.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace netio::inline v0_3 {

// A session is open, on either side.
struct PeerConnected {
    std::string peer; // HOST:PORT, as everywhere here
    std::string provider;
};

// An open session has ended, for whatever reason: in order, cut off (too_slow), silent, lost ...
struct PeerDisconnected {
    std::string peer;
    Closed closed;
};

// A listener has rejected a peer for what it is or asks for, or it left before it had said what it
// is.
struct PeerRejected {
    std::string peer;
    std::string why;
};

// A peer was rejected because this side lacks the means: no memory, no locked memory, no
// descriptors, a device that refuses another endpoint. It may try again, and nothing of it is kept;
// but it can be mended only here. `why` names the remedy where there is one.
struct AcceptFailed {
    std::string peer;
    FabricError why;
};

// A peer has not proved that it has one of the keys, and is told none of this.
struct NotAdmitted {
    std::string peer;
    std::string why;
    unsigned key = 0; // of whom it says it is; 0: nobody
};

// A peer that is connected is refused what it asks for: subscriptions. Its own side tells it, too.
struct RequestRefused {
    std::string peer;
    std::string why;
};

// A key is not what it was in the file: its sessions end.
struct KeyRevoked {
    unsigned key = 0;
    std::size_t sessions = 0;
};

// One way to a peer does not work: an address of its name, over one provider.
struct RouteFailed {
    std::string provider;
    Address remote;
    Closed closed;
    bool is_last = false; // no other is tried, and the socket's on_closed tells it too
};

// Nobody can connect over this provider here; over a better one they can.
struct ProviderUnused {
    std::string provider;
    Address address;
    std::string why;
};

// A subscriber is slow: it has made no progress for about a second, although data waits for it. Its
// policy decides what happens.
struct PeerStalled {
    std::string peer;
    Duration stalled{};              // for about this long so far
    bool holds_up_publisher = false; // publishing waits for it
};
// It has made progress again.
struct PeerRecovered {
    std::string peer;
    Duration stalled{}; // for about this long
};

// What happens to an RDMA device of this machine (netio/device_watch.hpp).
struct DeviceEvent {
    enum class Kind : std::uint8_t {
        port_up,
        port_down,
        device_failed, // nothing goes over it any more
        changed,       // addresses, keys, the subnet's manager
    };
    Kind kind = Kind::changed;
    std::string device;
    unsigned port = 0; // 0: all of the device
    std::string what;  // in libibverbs' words
};

class Observer {
  public:
    virtual void on_peer_connected(const PeerConnected&) {}
    virtual void on_peer_disconnected(const PeerDisconnected&) {}
    virtual void on_peer_rejected(const PeerRejected&) {}
    virtual void on_accept_failed(const AcceptFailed&) {}
    virtual void on_not_admitted(const NotAdmitted&) {}
    virtual void on_request_refused(const RequestRefused&) {}
    // The file of a server's keys, or of a client's, has changed and cannot be used, or opens a
    // door that was not said to be open; once for each state of it. The text says what is in force.
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
