// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/idle_watch.hpp"
#include "apps/common/pattern.hpp"
#include "apps/metrics/figures.hpp"
#include "apps/pump/report.hpp"
#include "stream/socket/stream_listener.hpp"
#include "stream/socket/stream_socket.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace apps::pump {

// What a pump tells its server before the bytes begin: a header of fixed size, little-endian. The
// server answers behind its own bytes with its report, a JSON object, until the end of the stream.
//
//      0           8       16      24       32       40       44      48
//     +-----------+-------+-------+--------+--------+--------+-------+
//     | "NPUMP" 1 | bytes | seed  | size   | size   | flags  | 0     |
//     |           | to go |       | min    | max    |        |       |
//     +-----------+-------+-------+--------+--------+--------+-------+
//     flags: bit 0 every byte is to be checked, bit 1 the server sends as many bytes back
//
// No I/O.

inline constexpr std::size_t header_bytes = 48;

struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t seed = 0;
    std::uint64_t size_min = 1;
    std::uint64_t size_max = 1;
    bool verify = false;
    bool bidirectional = false;

    friend bool operator==(const Header&, const Header&) = default;
};

// Largest message that a server lets a client ask for.
inline constexpr std::uint64_t size_limit_bytes = std::uint64_t{1} << 30U;

std::array<std::byte, header_bytes> encode(const Header& header) noexcept;
// Nothing: not such a header, or one that asks for the impossible.
std::optional<Header> decode_header(std::span<const std::byte> bytes) noexcept;

// The bytes of a stream that proves itself: each is known from the seed and its position, so a
// receiver checks any piece of it. No I/O.

// Fills `bytes` with those of the stream from `position` on.
void fill_stream(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t position) noexcept;

// The offset in `bytes` of the first that is wrong, if one is.
std::optional<std::size_t> find_wrong_byte(std::span<const std::byte> bytes, std::uint64_t seed,
                                           std::uint64_t position) noexcept;

// One direction of a pump: Source keeps sends outstanding until so many bytes are on their way,
// Sink receives until so many have arrived. Their owner hands them the socket's completions.

struct Plan {
    std::uint64_t bytes = 0;
    std::uint64_t seed = 0;
    bool verify = false;
    std::size_t size_min = 1; // of a send, or of a receive
    std::size_t size_max = 1;
    std::size_t outstanding = 1;
    netio::stream::Fill fill = netio::stream::Fill::some; // of a receive
};

class Source {
  public:
    Source(netio::stream::StreamSocket& socket, const Plan& plan);

    // Sends as much as may be outstanding. Where it has to be filled first that takes several
    // calls; false: there is something to do at once, when others have had their turn.
    bool drive();
    void on_send_completed(netio::Cookie key);
    bool all_submitted() const noexcept { return submitted_ == plan_.bytes; }

  private:
    netio::stream::StreamSocket& socket_;
    Plan plan_;
    SizeSequence sizes_;
    netio::RegisteredBuffer memory_;
    std::vector<std::uint64_t> free_; // pieces of memory_
    std::uint64_t submitted_ = 0;
};

class Sink {
  public:
    Sink(netio::stream::StreamSocket& socket, const Plan& plan);

    void drive();
    void on_received(const netio::stream::Received& received);
    bool is_complete() const noexcept { return received_ == plan_.bytes; }
    std::uint64_t received_bytes() const noexcept { return received_; }
    // The position of the first byte that was not what it should be.
    std::optional<std::uint64_t> wrong_at() const noexcept { return wrong_at_; }

  private:
    netio::stream::StreamSocket& socket_;
    Plan plan_;
    SizeSequence sizes_;
    netio::RegisteredBuffer memory_;
    std::vector<std::uint64_t> free_;
    std::vector<std::uint64_t> asked_; // bytes, of each piece that is lent
    std::uint64_t asked_bytes_ = 0;    // of all of them
    std::uint64_t received_ = 0;
    std::optional<std::uint64_t> wrong_at_;
};

// The two ends of `netio pump`: a client that blasts bytes through a stream to a server, and checks
// or measures what becomes of them.

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
