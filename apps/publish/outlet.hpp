// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the messages of a test publisher go: a socket of either kind, and the memory that messages
// are made in. Belongs to the loop's thread.

#include "apps/publish/message_feed.hpp"
#include "apps/publish/publisher_config.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace apps {

class Outlet {
  public:
    virtual ~Outlet() = default;

    // Where the next message is to be made, as large as the largest; empty: nowhere before
    // release().
    virtual std::span<std::byte> place() = 0;
    // Publishes what was made there, behind the message's header. The place is free again unless
    // the answer is ok and the message is lent.
    virtual netio::Status offer(const MessageFeed::Message& message) = 0;
    // A lent place may be used again. Whether there was none.
    virtual bool release(netio::Cookie cookie) = 0;
    virtual netio::pubsub::Publisher& publisher() noexcept = 0;
};

// Throws ConfigError: the messages do not fit; and what the sockets' constructors throw.
std::unique_ptr<Outlet> make_outlet(netio::Transport& transport, const PublisherConfig& config,
                                    std::size_t largest_bytes,
                                    netio::pubsub::PublishSocket::Handler& handler);

} // namespace apps
