// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/server.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace apps::copy {
namespace {

std::string host_of(const std::string& address) {
    return address.substr(0, address.rfind(':'));
}

} // namespace

Server::Server(netio::EventLoop& loop, netio::Transport& transport, Options options)
    : accept_failed_{loop}, loop_{loop}, options_{std::move(options)}, folder_{options_.folder},
      listener_{transport, options_.addresses, *this} {
    if (options_.host_limit_count == 0) {
        options_.host_limit_count = (options_.sender_limit_count + 1) / 2;
    }
}

Server::Counters Server::counters() const {
    Counters sums = counters_;
    for (const auto& session : sessions_)
        sums.bytes += session->moved_bytes();
    return sums;
}

void Server::on_incoming(netio::stream::IncomingStream& incoming) {
    if (sessions_.size() >= options_.sender_limit_count) {
        spdlog::warn("{} is turned away: {} senders are here already", incoming.peer_address(),
                     sessions_.size());
        return;
    }
    const std::string host = host_of(incoming.peer_address());
    const auto of_host = static_cast<std::size_t>(std::ranges::count_if(
        sessions_, [&](const auto& session) { return host_of(session->peer_address()) == host; }));
    if (of_host >= options_.host_limit_count) {
        spdlog::warn("{} is turned away: {} senders of that host are here already",
                     incoming.peer_address(), of_host);
        return;
    }
    sessions_.push_back(std::make_unique<Session>(loop_, folder_, options_.session, incoming,
                                                  static_cast<Session::Handler&>(*this)));
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
    std::erase_if(sessions_, [&](const auto& other) { return other.get() == &session; });
}

} // namespace apps::copy
