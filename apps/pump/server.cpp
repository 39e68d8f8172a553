// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/server.hpp"

#include <algorithm>
#include <utility>

namespace apps::pump {

Server::Server(netio::EventLoop& loop, netio::Transport& transport, Options options,
               std::function<void(const End&)> on_end)
    : loop_{loop}, options_{std::move(options)}, on_end_{std::move(on_end)},
      places_{options_.client_limit_count, options_.host_limit_count}, log_{loop},
      later_{loop, [this] { forget_ended(); }}, listener_{transport,
                                                          {.listen = options_.listen,
                                                           .allow_remote_anonymous =
                                                               options_.allow_remote_anonymous,
                                                           .keys = options_.keys},
                                                          *this} {}

void Server::on_incoming(netio::stream::IncomingStream& incoming) {
    if (when_gone_) return incoming.reject("the server is ending");
    const std::string peer = incoming.peer_address(); // not available after accepting
    std::string refusal = places_.enter(peer);
    if (!refusal.empty()) return incoming.reject(std::move(refusal));
    try {
        clients_.push_back({.address = peer,
                            .end = std::make_unique<End>(loop_, incoming, options_.settings,
                                                         [this](End& end) { on_closed(end); })});
    } catch (...) {
        places_.leave(peer);
        throw;
    }
    log_.info(peer + " is connected");
}

std::vector<Server::Client>::iterator Server::client_of(const End& end) {
    return std::ranges::find_if(clients_,
                                [&](const Client& each) { return each.end.get() == &end; });
}

void Server::on_closed(End& end) {
    ended_.push_back(&end);
    later_.start(netio::Duration::zero());
    if (!end.error().empty()) log_.error(client_of(end)->address + ": " + end.error());
    on_end_(end);
}

Server::Counters Server::counters() const {
    Counters sums = gone_;
    for (const Client& client : clients_)
        sums.bytes += client.end->moved_bytes();
    return sums;
}

std::vector<StreamFigures> Server::figures() const {
    std::vector<StreamFigures> figures;
    for (const Client& client : clients_)
        figures.push_back(client.end->figures(client.address));
    return figures;
}

void Server::interrupt(std::function<void()> then) {
    forget_ended();
    when_gone_ = std::move(then);
    for (const Client& client : clients_)
        client.end->interrupt();
    later_.start(netio::Duration::zero());
}

void Server::forget_ended() {
    for (const End* const end : std::exchange(ended_, {})) {
        const auto client = client_of(*end);
        places_.leave(client->address);
        gone_.bytes += end->moved_bytes();
        ++gone_.ended;
        if (!end->error().empty()) ++gone_.failures;
        clients_.erase(client);
    }
    if (when_gone_ && clients_.empty()) when_gone_();
}

} // namespace apps::pump
