// SPDX-License-Identifier: Apache-2.0
#pragma once

// What send sockets, listen sockets and streams show. No I/O.

#include "apps/metrics/exposition.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_snapshot.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps {

struct SenderFigures {
    std::string peer; // that it sends to
    netio::SendSnapshot snapshot;
};
void write(const SenderFigures& sender, Exposition& text);

struct ReceiverFigures {
    struct Sender {
        std::string peer;
        netio::ReceiveSocket::Counters counters;
    };
    netio::ListenSocket::Counters counters;
    std::vector<Sender> senders; // that are connected; so many at most
    std::size_t sender_count = 0;
};
ReceiverFigures figures_of(const netio::ListenSocket& socket, std::size_t senders = 1000);
void write(const ReceiverFigures& receiver, Exposition& text);

struct StreamFigures {
    std::string peer;
    netio::stream::StreamSocket::Counters counters;
    std::uint64_t queued_bytes = 0;
};
void write(std::span<const StreamFigures> streams, Exposition& text);

} // namespace apps
