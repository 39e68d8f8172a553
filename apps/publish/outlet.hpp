// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/logging.hpp"
#include "apps/common/player.hpp"
#include "apps/publish/message_feed.hpp"
#include "apps/publish/publisher_config.hpp"
#include "netio/base/endpoint.hpp"
#include "netio/fabric.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
    // Frees the memory of a message that was in flight. Returns whether no memory was free before.
    virtual bool release(netio::Cookie cookie) = 0;
    virtual netio::pubsub::Publisher& publisher() noexcept = 0;
    // The socket through which a recording is published, from the recording's own memory.
    virtual replay::Player::Socket socket() noexcept = 0;
};

// Throws ConfigError if the messages do not fit, and what the sockets' constructors throw.
std::unique_ptr<Outlet> make_outlet(netio::Transport& transport, const PublisherConfig& config,
                                    std::size_t largest_bytes,
                                    netio::pubsub::PublishSocket::Handler& handler);

// The announcement of a running test publisher on the bus.

// The process that announces itself.
struct Process {
    std::string host;
    int pid = 0;
    std::string started; // UTC
};
Process this_process();

// Throws ConfigError if the publisher is to be announced and its fids do not fit into an
// announcement.
void refuse_unannounceable(const PublisherConfig& config);

// Returns the announcement of a publisher. No I/O.
netio::pubsub::Announcement announcement_of(const PublisherConfig& config,
                                            const std::vector<netio::Endpoint>& endpoints,
                                            const Process& process);

class BusPlace final : private netio::pubsub::Announcer::Handler {
  public:
    BusPlace(netio::EventLoop& loop, const BusConfig& config,
             const netio::pubsub::Announcement& announcement);

  private:
    void on_warning(const std::string& what) override;
    void on_written() override;

    PeerLog log_;
    std::string place_; // NAME at BUS
    std::unique_ptr<netio::pubsub::Announcer> announcer_;
};

// Announces a publisher. Returns null if the configuration has no bus. Throws ConfigError if it
// does not fit into an announcement.
std::unique_ptr<BusPlace> announce_publisher(netio::EventLoop& loop, const PublisherConfig& config,
                                             const std::vector<netio::Endpoint>& endpoints);

// Throws what announce_publisher() would throw, but announces nothing.
void check_announcement(netio::EventLoop& loop, const PublisherConfig& config,
                        const std::vector<netio::Endpoint>& endpoints);

} // namespace apps
