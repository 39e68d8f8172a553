// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two ends of `netio pump`: a client that blasts bytes through a stream to a server, and checks
// or measures what becomes of them.

#include "apps/common/idle_watch.hpp"
#include "apps/metrics/socket_metrics.hpp"
#include "apps/pump/flow.hpp"
#include "apps/pump/measurement.hpp"
#include "apps/pump/wire.hpp"
#include "stream/socket/stream_listener.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace apps::pump {

// What either side decides for itself.
struct Settings {
    netio::stream::StreamSocket::Options stream;
    std::size_t sends = 16;
    std::size_t receives = 32;
    std::size_t receive_size_min = 0; // 0: as receive_size_max
    std::size_t receive_size_max = 0; // 0: as large as the largest send
    bool wait_all = false;
    // A server's buffers for one client, whatever that asks for; 0: no limit.
    std::size_t memory_limit_bytes = 0;
    // Nothing has moved for so long: the other side is given up. 0: never.
    std::chrono::milliseconds idle_limit{0};
};

// One connection, seen from either end.
class End final : private netio::stream::StreamSocket::Handler {
  public:
    // The client's end: connects, sends what the header says.
    End(netio::EventLoop& loop, netio::Transport& transport, const netio::Address& server,
        const Settings& settings, const Header& header, std::function<void(End&)> when_closed);
    // The server's: does what the client's header asks for.
    End(netio::EventLoop& loop, netio::stream::IncomingStream& incoming, const Settings& settings,
        std::function<void(End&)> when_closed);

    void interrupt() { fail("interrupted"); }

    nlohmann::ordered_json report() const;
    // After the end. Empty: everything arrived, and was right.
    const std::string& error() const noexcept { return error_; }
    std::uint64_t moved_bytes() const;
    StreamFigures figures(const std::string& peer) const;

  private:
    static constexpr netio::Cookie private_key{UINT64_MAX}; // of the header and the reports

    struct Flows { // that this end has
        std::optional<Source> source;
        std::optional<Sink> sink;
    };

    void begin_flows();
    std::size_t piece_bytes(std::uint64_t wanted, std::size_t count) const;
    void drive();
    // Memory that cannot be had, or not be registered, ends this connection alone.
    void as_memory_allows(const std::function<void()>& step);
    void on_idle();
    std::uint64_t all_bytes() const; // that have moved, in either direction
    void take_header(const netio::stream::Received& received);
    void send_report();
    void receive_report();
    void take_report(const netio::stream::Received& received);
    void measure_end();
    void fail(const std::string& what);
    void decline(const std::string& why);
    std::string wrong_byte() const;

    void on_connected(netio::stream::StreamSocket& socket) override;
    void on_send_completed(netio::stream::StreamSocket& socket, netio::Cookie key,
                           netio::Completion::Outcome outcome) override;
    void on_received(netio::stream::StreamSocket& socket,
                     const netio::stream::Received& received) override;
    void on_end_of_stream(netio::stream::StreamSocket& socket) override;
    void on_closed(netio::stream::StreamSocket& socket, const netio::Closed& closed) override;

    netio::EventLoop& loop_;
    bool is_client_;
    Settings settings_;
    std::optional<Header> header_;
    std::function<void(End&)> when_closed_;
    std::optional<netio::RegisteredBuffer> private_memory_; // once connected
    Flows flows_;
    std::string peer_report_;
    std::string provider_;
    bool finished_ = false; // has said all it has to say
    Measurement measurement_;
    std::string error_;
    IdleWatch idle_;
    netio::Timer later_;                                  // for what is filled in steps
    std::unique_ptr<netio::stream::StreamSocket> socket_; // last: goes first
};

} // namespace apps::pump
