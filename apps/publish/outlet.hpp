// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/player.hpp"
#include "apps/publish/message_feed.hpp"
#include "apps/publish/publisher_config.hpp"
#include "netio/fabric.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace apps {

// The output of a test publisher: a buffered or unbuffered socket, and the memory in which messages
// are built. Belongs to the loop's thread.
class Outlet {
  public:
    virtual ~Outlet() = default;

    // Returns memory for the next message, as large as the largest message. Returns an empty span
    // if none is free before release().
    virtual std::span<std::byte> place() = 0;
    // Publishes the message from that memory, after its header. The memory is free again unless the
    // result is ok and the message is in flight (zero-copy).
    virtual netio::Status offer(const MessageFeed::Message& message) = 0;
    // The memory of a message in flight is free again. Returns whether none was free before.
    virtual bool release(netio::Cookie cookie) = 0;
    virtual netio::pubsub::Publisher& publisher() noexcept = 0;
    // For a recording, which publishes from its own memory.
    virtual replay::Player::Socket socket() noexcept = 0;
};

// Throws ConfigError if the messages do not fit, and what the sockets' constructors throw.
std::unique_ptr<Outlet> make_outlet(netio::Transport& transport, const PublisherConfig& config,
                                    std::size_t largest_bytes,
                                    netio::pubsub::PublishSocket::Handler& handler);

} // namespace apps
