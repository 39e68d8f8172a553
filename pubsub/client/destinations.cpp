// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/destinations.hpp"

#include "pubsub/client/destination.hpp"

#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_2 {

Destinations::Destinations(Options options, Calls calls)
    : options_{std::move(options)}, calls_{std::move(calls)} {
    options_.socket.socket.reconnect = true;
}

Destinations::~Destinations() = default;

Status Destinations::send(const Address& to, std::span<const std::byte> message) {
    Destination* const destination = find_or_add(to);
    return destination == nullptr ? Status::closed : destination->put(message);
}

Destination* Destinations::find_or_add(const Address& to) {
    std::string key = to_string(to);
    const std::lock_guard lock{mutex_};
    if (closed_) return nullptr;
    const auto found = all_.find(key);
    if (found != all_.end()) return found->second.get();
    if (all_.size() >= options_.limit) {
        throw std::length_error{"destination_limit is " + std::to_string(options_.limit) +
                                "; nothing is sent to " + key};
    }
    return all_
        .emplace(std::move(key), std::make_unique<Destination>(*this, to, options_.queue_bytes))
        .first->second.get();
}

void Destinations::take_no_more() {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    for (const auto& [key, destination] : all_)
        destination->take_no_more();
}

void Destinations::close() {
    take_no_more(); // and nobody changes the list from now on
    for (const auto& [key, destination] : all_)
        if (destination->close()) ++open_;
}

void Destinations::one_has_ended() {
    --open_;
    calls_.ended();
}

} // namespace netio::pubsub::inline v0_2
