// SPDX-License-Identifier: Apache-2.0
#pragma once

// The user of the sockets in one process: does what its steps say, and tells the oracle what it was
// answered and told. Only this folder knows the product's sockets. All calls come from the
// process's own loop.

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

// What a user is told, and may misbehave at.
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
    again,   // it has to wait
    closing, // it has begun to end in order
    partial, // some have it, the others get it later
    unsubscribed,
};
// And how. `strike`: something happens to it or another at this moment, see World::strike.
enum class Deed : std::uint8_t { none, destroy, close, abort, unsubscribe, dawdle, pause, strike };

class Actor {
  public:
    Actor(World& world, Process& process)
        : world_{world}, process_{process}, number_{process.plan.number} {}
    virtual ~Actor() = default;
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    void act(const Step& step);
    // Its user behaves from now on.
    virtual void behave() { deeds_.clear(); }
    // Whether all that it began is done: nothing waits to be published, sent or received.
    virtual bool is_idle() const { return true; }
    // One more message for everybody.
    virtual void probe() {}
    // Tells the oracle whom it wants to be served by.
    virtual void check_served() {}
    // The orderly end, and whether it is over.
    virtual void close() = 0;
    virtual bool is_closed() const = 0;
    virtual bool serves() const { return !is_closed(); }
    // Others end first: these serve them.
    virtual bool ends_first() const { return false; }
    // Its feature, for the table of meetings, and what it is in the middle of.
    virtual std::string feature() const = 0;
    virtual std::string state() const { return "quiet"; }
    // "sim#17": the connection of who connected.
    static std::uint64_t connection_of(const std::string& peer_address);

  protected:
    virtual void carry_out(const Step& step) = 0;
    virtual void destroy() = 0;
    virtual void abort() = 0;
    virtual void unsubscribe_all() {}
    // Takes nothing for so long.
    virtual void pause(Duration) {}
    // What its user does at this event; whether the socket is destroyed now.
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
    // The connection that this process made last.
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
