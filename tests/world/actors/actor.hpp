// SPDX-License-Identifier: Apache-2.0
#pragma once

// The user of the sockets in one process: carries out its steps and reports results and callbacks
// to the oracle. Only this folder uses the product's sockets. All calls come from the process's own
// loop.

#include "netio/session/session.hpp"
#include "pubsub/core/fid.hpp"
#include "tests/world/schedule.hpp"
#include "tests/world/world.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace netio::world {

// Events that a user can react to with a fault.
enum class Event : std::uint8_t {
    none,
    connected,
    subscribed,
    message,
    gap,
    totals,
    closed,
    writable,
    completed,
    peer_closed,
    again,   // a call returned again
    closing, // the orderly end has begun
    partial, // some subscribers have it, the others get it later
    unsubscribed,
};
// How the user reacts. `strike`: a fault happens to it or another process now, see World::strike.
enum class Deed : std::uint8_t { none, destroy, close, abort, unsubscribe, dawdle, pause, strike };

class Actor {
  public:
    Actor(World& world, Process& process)
        : world_{world}, process_{process}, number_{process.plan.number} {}
    virtual ~Actor() = default;
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    void act(const Step& step);
    // From now on the user does nothing harmful.
    virtual void behave() { deeds_.clear(); }
    // Whether all its operations have ended: nothing waits to be published, sent or received.
    virtual bool is_idle() const { return true; }
    // Publishes one more message to all subscribers.
    virtual void probe() {}
    // Reports to the oracle which publishers must serve it.
    virtual void check_served() {}
    // Starts the orderly end, and whether it has ended.
    virtual void close() = 0;
    virtual bool is_closed() const = 0;
    virtual bool serves() const { return !is_closed(); }
    // Whether other processes end before this one, because it serves them.
    virtual bool ends_first() const { return false; }
    // Its feature and its current state, for the table of meetings.
    virtual std::string feature() const = 0;
    virtual std::string state() const { return "quiet"; }
    // "sim#17": the connection number of the connecting side.
    static std::uint64_t connection_of(const std::string& peer_address);

  protected:
    virtual void carry_out(const Step& step) = 0;
    virtual void destroy() = 0;
    virtual void abort() = 0;
    virtual void unsubscribe_all() {}
    // Receives nothing for this duration.
    virtual void pause(Duration) {}
    // Carries out the user's reaction to this event; returns whether the socket is destroyed now.
    bool react(Event event);
    void dawdle(Duration time);
    void note(const char* what, std::uint64_t one = 0, std::uint64_t two = 0) {
        world_.oracle().note(number_, what, one, two);
    }
    SessionOptions session_options(SessionOptions options) const;
    std::int64_t option(const char* name, std::int64_t otherwise = 0) const {
        return process_.plan.options.get(name, otherwise);
    }
    Duration dead_after() const;
    std::uint64_t key_bytes() const {
        return static_cast<std::uint64_t>(option("key_bytes", std::int64_t{1} << 34));
    }
    // The latest connection of this process.
    std::uint64_t newest_connection() const;

    World& world_;
    Process& process_;
    std::uint32_t number_;

  private:
    std::map<std::pair<Event, std::uint64_t>, Step> deeds_; // at the nth event
    std::map<Event, std::uint64_t> events_;
};

// Throws what the sockets' constructors throw.
std::unique_ptr<Actor> make_publisher(World& world, Process& process);
std::unique_ptr<Actor> make_subscriber(World& world, Process& process);
std::unique_ptr<Actor> make_sender(World& world, Process& process);
std::unique_ptr<Actor> make_receiver(World& world, Process& process);
std::unique_ptr<Actor> make_messenger(World& world, Process& process);
std::unique_ptr<Actor> make_requester(World& world, Process& process);
std::unique_ptr<Actor> make_responder(World& world, Process& process);
std::unique_ptr<Actor> make_stream(World& world, Process& process);
std::unique_ptr<Actor> make_announced(World& world, Process& process);
std::unique_ptr<Actor> make_finder(World& world, Process& process);
std::unique_ptr<Actor> make_copy_server(World& world, Process& process);
std::unique_ptr<Actor> make_copier(World& world, Process& process);
std::unique_ptr<Actor> make_actor(World& world, Process& process);

std::set<std::uint64_t> fids_between(std::uint64_t first, std::uint64_t last);
std::set<std::uint64_t> fids_of(const FidRange& range);

// Overwrites memory that a socket has released, so that a later use of it shows.
inline constexpr std::byte spoiled{0xee};

} // namespace netio::world
