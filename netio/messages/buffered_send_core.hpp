// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of a BufferedSendSocket: its pages, those that wait, and the connection that they
// leave by. Private to netio/messages.

#include "netio/coalescing/flush_pace.hpp"
#include "netio/memory/page_pool.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/messages/send_core.hpp"
#include "netio/session/drain_timer.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace netio::inline v0_2 {

class BufferedSendCore final : private SendSocket::Handler {
  public:
    BufferedSendCore(BufferedSendSocket& socket, Transport& transport,
                     const BufferedSendSocket::Options& options,
                     BufferedSendSocket::Handler& handler);

    void connect(const Address& remote) { connection_.connect(remote); }
    void close();
    void abort();
    Status sendv(MessageParts parts);
    void flush();

    EventLoop& loop() const noexcept { return loop_; }
    bool is_connected() const noexcept { return connection_.is_connected(); }
    bool is_retrying() const noexcept { return connection_.is_retrying(); }
    std::size_t message_limit() const noexcept { return limits_.message; }
    std::size_t pages_in_use() const noexcept { return pages_.page_count() - pages_.free_count(); }
    const std::string& provider() const noexcept { return connection_.provider(); }
    SendSnapshot snapshot() const noexcept;

  private:
    // A page that leaves.
    struct Departure {
        std::uint32_t page = 0;
        std::size_t bytes = 0;
        TimePoint since{};                     // it was full, or was to leave
        std::optional<FragmentPlace> fragment; // of a large message
    };

    // In bytes, on this connection.
    struct Limits {
        std::size_t page = 0;
        std::size_t fragment = 0;
        std::size_t message = 0;
    };

    void on_connected(SendSocket& connection) override;
    void on_send_completed(SendSocket& connection, Cookie cookie,
                           Completion::Outcome outcome) override;
    void on_writable(SendSocket& connection) override;
    void on_closed(SendSocket& connection, const Closed& closed) override;

    std::byte* reserve(std::size_t bytes);
    Status send_large(MessageParts parts, std::size_t bytes);
    Status refuse();
    void depart(const Departure& departure);
    Status post(const Departure& departure);
    void close_when_drained();
    Session& session() noexcept { return connection_.core_->session(); }

    BufferedSendSocket& socket_;
    BufferedSendSocket::Filling& filling_; // of the open page
    EventLoop& loop_;
    BufferedSendSocket::Options options_;
    BufferedSendSocket::Handler& handler_;
    PagePool pages_;
    FlushPace flush_pace_;
    std::optional<std::uint32_t> open_page_;
    std::deque<Departure> waiting_;
    Limits limits_;
    bool capacity_wanted_ = false;
    Timer flush_timer_;
    GracefulClose closing_;
    SendSocket connection_; // last: goes first
};

} // namespace netio::inline v0_2
