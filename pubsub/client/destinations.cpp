// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/destinations.hpp"

#include "pubsub/client/destination.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_2 {

Destinations::Destinations(Options options, Calls calls)
    : options_{(validate(options.socket), std::move(options))}, calls_{std::move(calls)} {
    options_.socket.socket.reconnect = true;
}

Destinations::~Destinations() = default;

Status Destinations::send(const Address& to, std::span<const std::byte> message) {
    for (;;) {
        const Found found = find_or_add(to);
        if (found.status != Status::ok) return found.status;
        const Status put = found.destination->put(message);
        if (put != Status::closed) return put;
    } // it was let go meanwhile
}

Destinations::Found Destinations::find_or_add(const Address& to) {
    std::string key = to_string(to);
    const std::lock_guard lock{mutex_};
    if (closed_) return {.status = Status::closed};
    const auto found = all_.find(key);
    if (found != all_.end()) return {.destination = found->second};
    if (all_.size() >= options_.limit) let_an_idle_one_go();
    if (all_.size() >= options_.limit) {
        throw std::length_error{"destination_limit is " + std::to_string(options_.limit) +
                                "; nothing is sent to " + key};
    }
    if (all_.size() + leaving_.size() >= options_.limit) return {.status = Status::again};
    const auto made = std::make_shared<Destination>(*this, to, options_.queue_bytes);
    all_.emplace(std::move(key), made);
    return {.destination = made};
}

// mutex_ is held.
void Destinations::let_go(ByAddress::iterator which) {
    leaving_.push_back(which->second);
    which->second->leave();
    all_.erase(which);
}

void Destinations::let_an_idle_one_go() {
    const auto idle =
        std::ranges::find_if(all_, [](const auto& each) { return each.second->is_idle(); });
    if (idle != all_.end()) let_go(idle);
}

void Destinations::disconnect(const Address& from) {
    const std::lock_guard lock{mutex_};
    const auto found = all_.find(to_string(from));
    if (found != all_.end()) let_go(found);
}

void Destinations::take_no_more() {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    for (const auto& [key, destination] : all_)
        destination->take_no_more();
}

void Destinations::close() {
    take_no_more(); // and nobody adds to the list from now on
    std::vector<Shared> all;
    {
        const std::lock_guard lock{mutex_};
        for (const auto& [key, destination] : all_)
            all.push_back(destination);
        all.insert(all.end(), leaving_.begin(), leaving_.end());
    }
    for (const Shared& each : all)
        if (!each->is_closing()) begin_to_close(*each);
}

void Destinations::begin_to_close(Destination& which) {
    if (which.close()) {
        ++open_;
    } else {
        forget(which);
    }
}

void Destinations::one_has_ended(const Destination& which) {
    --open_;
    forget(which);
    calls_.ended();
}

void Destinations::forget(const Destination& which) {
    Shared last; // outlives the lock
    const std::lock_guard lock{mutex_};
    const auto at = std::ranges::find_if(
        leaving_, [&which](const Shared& each) { return each.get() == &which; });
    if (at == leaving_.end()) return;
    last = std::move(*at);
    leaving_.erase(at);
}

} // namespace netio::pubsub::inline v0_2
