// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tries the routes to a peer one after the other: every address of the peer, and every address that
// its names resolve to, over every provider that reaches it. Names are resolved without blocking
// the loop. The owner makes a session for each route that it is given, and reports if it fails. A
// route on which this side has to prove its key is tried once more, and a route that ended the
// connection without an answer is retried a few times with growing pauses:
//
//     on_route:           session_ = std::make_unique<Session>(transport, target, ...)
//     session's on_open:  connector_.cancel()
//     session's on_closed, before it was open:  session_.reset(); connector_.try_next(closed)
//     on_connect_failed:  notify the user; detail has the reason of every route
//
// Belongs to the loop's thread; may be destroyed in its handlers.

#include "netio/session/session.hpp"
#include "netio/transport.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

class ClientKey;

// Throws std::invalid_argument if nothing can be connected to at this address: its port is 0. For
// classes that connect later than they get the address; connect() of a Connector calls it, too.
void require_remote(const Address& remote);

class Connector {
  public:
    class Handler {
      public:
        // Connect over this route now. A FabricError thrown here has the effect of try_next().
        virtual void on_route(const Session::Target& target) = 0;
        // No route is left. unreachable: the name does not resolve, or no provider reaches the
        // address; local: close() was called.
        virtual void on_connect_failed(const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    // `slot_timeout`: how long an attempt waits for a slot (Transport::attempts()) while the
    // address answers no attempt.
    Connector(Transport& transport, Handler& handler,
              std::chrono::milliseconds slot_timeout = SessionOptions{}.connect_timeout);
    ~Connector();
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;

    // on_route or on_connect_failed follows. Not while connecting (checked). With a key, both sides
    // have to prove that they have it.
    void connect(const Address& remote, const std::string& local_host = {},
                 std::shared_ptr<const ClientKey> key = nullptr) {
        connect(std::vector<Address>{remote}, local_host, std::move(key));
    }
    // As above, for a peer with one or more addresses: tries all routes to the first address, then
    // to the next.
    void connect(std::vector<Address> remotes, const std::string& local_host,
                 std::shared_ptr<const ClientKey> key);
    // Call it when the route has failed. on_route follows with the same route for another attempt,
    // or with the next one; or on_connect_failed with the reasons of all routes.
    void try_next(const Closed& closed);
    // Ends the search for the user: on_connect_failed(local) follows, and no further route. Call it
    // only while no session for a route exists; otherwise close that session.
    void close();
    // Ends the search, because a session is connected or not wanted any more. Nothing follows.
    void cancel() noexcept;

    // Between connect() and cancel() or on_connect_failed.
    bool is_connecting() const noexcept { return connecting_; }

  private:
    void look_at_key() const;
    void search();
    void on_found(FoundRoutes found);
    void go_on();
    void next_route();
    void leave();
    void wait_on();
    bool may_retry(const Closed& closed);
    void tell_observer(const Closed& closed) const;
    void give_current();
    Session::Target target_of(const Route& route) const;
    void give_up(const Closed& closed);

    Transport& transport_;
    const Transport::Use use_{transport_};
    Handler& handler_;
    std::unique_ptr<RouteSearch> search_;
    std::shared_ptr<const ClientKey> key_;
    std::vector<Address> remotes_; // still to be resolved, best last
    std::string local_host_;
    std::vector<Route> routes_;              // still to be tried, best last
    std::optional<Session::Target> current_; // the route that was given last
    bool again_ = false;                     // current_ is to be given again
    unsigned retries_ = 0;                   // of this route, after unanswered attempts
    AttemptLimit::Slot slot_;
    const Duration slot_timeout_;
    TimePoint waits_since_{}; // for a slot
    std::vector<Closed> reasons_;
    bool connecting_ = false;
    Timer turn_; // because a call never calls back
    bool* destroyed_ = nullptr;
};

} // namespace netio::inline v0_3
