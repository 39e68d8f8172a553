// SPDX-License-Identifier: Apache-2.0
#include "tests/world/actors/actor.hpp"

#include <algorithm>
#include <stdexcept>

namespace netio::world {

using std::chrono::milliseconds;

void Actor::act(const Step& step) {
    if (step.what != "when") return carry_out(step);
    deeds_[{static_cast<Event>(step.with.get("event")),
            static_cast<std::uint64_t>(step.with.get("nth", 1))}] = step;
}

bool Actor::react(Event event) {
    const auto found = deeds_.find({event, ++events_[event]});
    if (found == deeds_.end()) return false;
    const Step step = found->second;
    const auto deed = static_cast<Deed>(step.with.get("deed"));
    note("deed", static_cast<std::uint64_t>(deed), static_cast<std::uint64_t>(event));
    switch (deed) {
    case Deed::none:
        return false;
    case Deed::destroy:
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
        return true;
    case Deed::close:
        close();
        return false;
    case Deed::abort:
        world_.oracle().happens(Trouble::gone, number_);
        abort();
        return false;
    case Deed::unsubscribe:
        unsubscribe_all();
        return false;
    case Deed::dawdle:
        dawdle(milliseconds{30});
        return false;
    case Deed::pause:
        pause(std::chrono::microseconds{step.with.get("us")});
        return false;
    case Deed::strike:
        world_.strike(step);
        return false;
    }
    return false;
}

void Actor::dawdle(Duration time) {
    if (time <= Duration{}) return;
    process_.poller.spend(time);
    process_.longest_handler = std::max(process_.longest_handler, time);
    world_.oracle().lasts(Trouble::busy, number_, process_.poller.spent());
}

SessionOptions Actor::session_options(SessionOptions options) const {
    const auto number = [&](const char* name, std::size_t& value) {
        value = static_cast<std::size_t>(option(name, static_cast<std::int64_t>(value)));
    };
    const auto time = [&](const char* name, milliseconds& value) {
        value = milliseconds{option(name, value.count())};
    };
    number("receive_buffer_bytes", options.receive_buffer_bytes);
    number("receives", options.receive_count);
    number("window", options.window_limit);
    number("sends", options.send_count);
    number("keep_limit", options.keep_limit_bytes);
    time("heartbeat_ms", options.heartbeat);
    time("dead_ms", options.dead_after);
    time("connect_ms", options.connect_timeout);
    time("handshake_ms", options.handshake_timeout);
    time("session_close_ms", options.close_timeout);
    options.rekey_after_bytes = key_bytes();
    return options;
}

Duration Actor::dead_after() const {
    return session_options({}).dead_after;
}

std::uint64_t Actor::connection_of(const std::string& peer_address) {
    const std::size_t mark = peer_address.find('#');
    return mark == std::string::npos ? 0 : std::stoull(peer_address.substr(mark + 1));
}

std::uint64_t Actor::newest_connection() const {
    return world_.network().newest_connection(number_);
}

std::set<std::uint64_t> fids_between(std::uint64_t first, std::uint64_t last) {
    std::set<std::uint64_t> fids;
    for (std::uint64_t fid = first; fid <= last; ++fid)
        fids.insert(fid);
    return fids;
}

std::set<std::uint64_t> fids_of(const FidRange& range) {
    return fids_between(to_integer(range.first), std::min(to_integer(range.last), fid_count - 1));
}

std::unique_ptr<Actor> make_actor(World& world, Process& process) {
    const std::string& kind = process.plan.kind;
    if (kind == "publisher") return make_publisher(world, process);
    if (kind == "subscriber") return make_subscriber(world, process);
    if (kind == "sender") return make_sender(world, process);
    if (kind == "receiver") return make_receiver(world, process);
    if (kind == "messenger") return make_messenger(world, process);
    if (kind == "requester") return make_requester(world, process);
    if (kind == "responder") return make_responder(world, process);
    if (kind == "stream") return make_stream(world, process);
    if (kind == "announced") return make_announced(world, process);
    if (kind == "finder") return make_finder(world, process);
    if (kind == "copy-server") return make_copy_server(world, process);
    if (kind == "copier") return make_copier(world, process);
    throw std::invalid_argument{"no such kind of process: " + kind};
}

} // namespace netio::world
