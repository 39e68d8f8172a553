// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace apps::copy {

Server::Server(netio::EventLoop& loop, netio::Transport& transport, Options options)
    : log_{loop}, loop_{loop}, options_{std::move(options)},
      places_{options_.sender_limit_count, options_.host_limit_count}, folder_{options_.folder},
      listener_{transport,
                {.addresses = options_.addresses, .open = options_.open, .keys = options_.keys},
                *this} {
    if (!folder_.shortcoming().empty()) log_.warn(folder_.shortcoming());
}

Server::Counters Server::counters() const {
    Counters sums = counters_;
    for (const auto& session : sessions_)
        sums.bytes += session->moved_bytes();
    return sums;
}

void Server::end(std::function<void()> then) {
    when_ended_ = std::move(then);
    if (sessions_.empty()) return when_ended_();
    for (const auto& session : sessions_)
        session->abort();
}

void Server::on_incoming(netio::stream::IncomingStream& incoming) {
    if (when_ended_) return incoming.reject("the server is ending");
    const std::string peer = incoming.peer_address();
    std::string refusal = places_.enter(peer);
    if (!refusal.empty()) {
        const std::size_t host_limit = options_.host_limit_count > 0
                                           ? options_.host_limit_count
                                           : (options_.sender_limit_count + 1) / 2;
        return incoming.reject(fmt::format("{} (--senders {}, --senders-per-host {})", refusal,
                                           options_.sender_limit_count, host_limit));
    }
    try {
        Session::Options options = options_.session;
        if (incoming.rights() != nullptr) options.rights = *incoming.rights();
        sessions_.push_back(std::make_unique<Session>(loop_, folder_, options, incoming,
                                                      static_cast<Session::Handler&>(*this)));
    } catch (...) {
        places_.leave(peer);
        throw;
    }
}

void Server::on_file_kept(std::uint64_t moved_bytes) {
    ++counters_.files;
    counters_.bytes += moved_bytes;
}

void Server::on_file_failed(std::uint64_t moved_bytes) {
    ++counters_.failures;
    counters_.bytes += moved_bytes;
}

void Server::on_session_ended(Session& session) {
    places_.leave(session.peer_address());
    std::erase_if(sessions_, [&](const auto& other) { return other.get() == &session; });
    if (when_ended_ && sessions_.empty()) when_ended_();
}

} // namespace apps::copy
