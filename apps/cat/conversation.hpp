// SPDX-License-Identifier: Apache-2.0
#pragma once

// One run of netio cat after the peer is there: standard input to the stream, and the stream to
// standard output. The loop never waits for either of them: threads read and write them. While
// standard output takes nothing, no more is taken from the stream, so the peer stops sending.

#include "apps/cat/half_close.hpp"
#include "apps/common/background_reader.hpp"
#include "apps/common/background_writer.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/buffer.hpp"
#include "stream/core/inactivity_timer.hpp"
#include "stream/socket/stream_listener.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace apps::cat {

struct Settings {
    netio::stream::StreamSocket::Options stream;
    Until until = Until::automatic;
    bool listens = false;
    std::chrono::milliseconds timeout{0}; // without a byte that moves; 0: none
};

// One connection. `on_end` is called once, when nothing is left to do, and may destroy this.
class Conversation final : private netio::stream::StreamSocket::Handler {
  public:
    struct Events {
        std::function<void(Conversation&)> on_connected;
        std::function<void()> on_end;
    };
    // Connects to the peer.
    Conversation(netio::EventLoop& loop, netio::Transport& transport, const netio::Address& peer,
                 const Settings& settings, Events events);
    // Accepts it.
    Conversation(netio::EventLoop& loop, netio::stream::IncomingStream& incoming,
                 const Settings& settings, Events events);
    ~Conversation();

    // Why it failed; empty: it did not.
    const std::string& error() const noexcept { return error_; }

  private:
    using StreamSocket = netio::stream::StreamSocket;

    static constexpr std::size_t receive_bytes = std::size_t{128} << 10;
    static constexpr std::size_t receive_count = 2;
    static constexpr std::size_t send_count = 4; // pieces of standard input on their way
    // How long standard input may stay silent after the peer's end (half_close.hpp).
    static constexpr std::chrono::seconds first_byte_wait{2};

    Conversation(netio::EventLoop& loop, const Settings& settings, std::string peer, Events events);

    void begin();
    void take_input();
    void input_ended();
    void stop_input();
    void receive();
    void output_changed();
    void fail_output();
    void first_byte_is_late();
    void end_in_order();
    void fail(const std::string& what);
    void end_if_done();
    std::uint64_t moved_bytes() const;
    void look();

    void on_connected(StreamSocket& socket) override;
    void on_send_completed(StreamSocket& socket, netio::Cookie cookie,
                           netio::Completion::Outcome outcome) override;
    void on_received(StreamSocket& socket, const netio::stream::Received& received) override;
    void on_end_of_stream(StreamSocket& socket) override;
    void on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) override;
    void on_closed(StreamSocket& socket, const netio::Closed& closed) override;

    struct Memory { // registered once connected
        std::deque<netio::RegisteredBuffer> receives;
        std::deque<netio::RegisteredBuffer> sends;
        std::vector<std::size_t> free_receives;
        std::vector<std::size_t> free_sends;
    };

    netio::EventLoop& loop_;
    Settings settings_;
    std::string peer_; // for people
    Events events_;
    std::string error_;
    Memory memory_;
    DescriptorOutput standard_output_;
    BackgroundWriter output_;
    netio::DescriptorWatch output_watch_;
    std::unique_ptr<BackgroundReader> input_; // null: it has ended, or is not wanted
    std::optional<netio::DescriptorWatch> input_watch_;
    Situation situation_;
    bool is_connected_ = false;
    bool peer_has_ended_ = false;
    bool is_lost_ = false; // what has arrived is taken, whatever standard output takes
    bool is_closed_ = false;
    bool has_unsent_input_ = false; // that was read, as the connection had ended
    bool has_timed_out_ = false;
    netio::stream::InactivityTimer inactivity_;
    std::uint64_t seen_moved_bytes_ = 0;
    netio::TimePoint last_look_;
    netio::Timer look_timer_;
    netio::Timer first_byte_timer_;
    netio::Timer end_timer_;
    std::unique_ptr<StreamSocket> socket_; // last: goes first
};

} // namespace apps::cat
