// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/idle_watch.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/pattern.hpp"
#include "apps/metrics/families.hpp"
#include "netio/access/peer_limiter.hpp"
#include "netio/base/time.hpp"
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
#include <utility>
#include <vector>

namespace apps::pump {

// Measures the elapsed time and the processor time of a part of this process's run.

// Processor time of this process so far, user and system.
double processor_seconds();

class Measurement {
  public:
    void begin(netio::TimePoint now);
    // Ends the measurement; the last call counts.
    void end(netio::TimePoint now);
    bool is_running() const noexcept { return begin_ != netio::TimePoint{} && end_ == begin_; }

    double seconds() const;
    double processor_s() const noexcept { return processor_s_; }
    // Fraction of a core.
    double processor_share() const { return seconds() > 0 ? processor_s_ / seconds() : 0; }

  private:
    netio::TimePoint begin_;
    netio::TimePoint end_;
    double processor_begin_ = 0;
    double processor_s_ = 0;
};

// The final report of one end of a pump: a JSON object, which the server sends to the client. No
// I/O.

struct Facts {
    bool is_client = false;
    std::string provider;
    std::string error; // empty: none
    std::uint64_t bytes = 0;
    bool verified = false;
    bool receives = false; // decides whether the receiver's or the sender's fraction of direct
                           // bytes comes first
    Measurement measurement;
    netio::stream::StreamSocket::Counters counters;
    std::string peer_report; // at the client: the server's report
};

nlohmann::ordered_json to_report(const Facts& facts);
// Returns lines for people.
std::string as_text(const nlohmann::ordered_json& report);

// Returns a text from an untrusted report; empty if it is missing or not a text.
std::string text_in(const nlohmann::ordered_json& report, const char* name);
double number_in(const nlohmann::ordered_json& report, const char* name);
// Returns the error in the peer's report; empty if there is none.
std::string problem_in(const std::string& peer_report);

// The header that a pump sends to its server before the bytes: fixed size, little-endian. After its
// own bytes the server answers with its report, a JSON object, until the end of the stream.
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

// Largest message that a client may request from a server.
inline constexpr std::uint64_t size_limit_bytes = std::uint64_t{1} << 30U;

std::array<std::byte, header_bytes> encode(const Header& header) noexcept;
// Returns nullopt if the bytes are not a valid header.
std::optional<Header> decode_header(std::span<const std::byte> bytes) noexcept;

// A self-checking stream: each byte follows from the seed and its position, so a receiver can check
// any piece of it. No I/O.

// Fills `bytes` with the stream's bytes from `position` on.
void fill_stream(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t position) noexcept;

// Returns the offset of the first wrong byte in `bytes`; nullopt if all are correct.
std::optional<std::size_t> find_wrong_byte(std::span<const std::byte> bytes, std::uint64_t seed,
                                           std::uint64_t position) noexcept;

// One direction of a pump. Source keeps sends outstanding until all its bytes are in flight. Sink
// receives until all its bytes have arrived. Their owner passes them the socket's completions.

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

    // Sends as much as may be outstanding. Returns false if memory must still be filled: call again
    // after other connections have had their turn.
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
    // The position of the first wrong byte.
    std::optional<std::uint64_t> wrong_at() const noexcept { return wrong_at_; }

  private:
    netio::stream::StreamSocket& socket_;
    Plan plan_;
    SizeSequence sizes_;
    netio::RegisteredBuffer memory_;
    std::vector<std::uint64_t> free_;
    std::vector<std::uint64_t> asked_; // requested bytes of each posted piece
    std::uint64_t asked_bytes_ = 0;    // of all posted pieces
    std::uint64_t received_ = 0;
    std::optional<std::uint64_t> wrong_at_;
};

// The two ends of `netio pump`: a client sends bytes through a stream to a server at full speed,
// and checks or measures the result.

// Settings that each side chooses for itself.
struct Settings {
    netio::stream::StreamSocket::Options stream;
    std::size_t sends = 16;
    std::size_t receives = 32;
    std::size_t receive_size_min = 0; // 0: as receive_size_max
    std::size_t receive_size_max = 0; // 0: as large as the largest send
    bool wait_all = false;
    // Limit of a server's buffers for one client, for any requested sizes; 0: no limit.
    std::size_t memory_limit_bytes = 0;
    // The peer is aborted if no byte was transferred for this long. 0: never.
    std::chrono::milliseconds idle_limit{0};
};

// One end of a connection.
class End final : private netio::stream::StreamSocket::Handler {
  public:
    // The client's end: connects and sends according to the header.
    End(netio::EventLoop& loop, netio::Transport& transport, const netio::Address& server,
        const Settings& settings, const Header& header, std::function<void(End&)> when_closed);
    // The server's end: does what the client's header requests.
    End(netio::EventLoop& loop, netio::stream::IncomingStream& incoming, const Settings& settings,
        std::function<void(End&)> when_closed);

    void interrupt() { fail("interrupted"); }

    nlohmann::ordered_json report() const;
    // Valid after the end; empty if everything arrived correctly.
    const std::string& error() const noexcept { return error_; }
    std::uint64_t moved_bytes() const;
    StreamMetrics metrics(const std::string& peer) const;

  private:
    static constexpr netio::Cookie private_key{UINT64_MAX}; // for the header and the reports

    struct Flows { // that this end has
        std::optional<Source> source;
        std::optional<Sink> sink;
    };

    void begin_flows();
    std::size_t piece_bytes(std::uint64_t wanted, std::size_t count) const;
    void drive();
    // Runs `step`. If memory cannot be allocated or registered, only this connection ends.
    void as_memory_allows(const std::function<void()>& step);
    void on_idle();
    std::uint64_t all_bytes() const; // transferred in either direction
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
    bool finished_ = false; // has sent everything
    Measurement measurement_;
    std::string error_;
    IdleWatch idle_;
    netio::Timer later_;                                  // for filling in steps
    std::unique_ptr<netio::stream::StreamSocket> socket_; // last: destroyed first
};

// Serves several pumps at a time. A client's header is followed within the given limits: number of
// clients, clients per host, memory per client, and time without progress. Belongs to the loop's
// thread.

class Server final : private netio::stream::StreamListener::Handler {
  public:
    struct Options {
        std::vector<netio::Address> listen;
        bool allow_remote_anonymous = false;               // other machines may reach them
        std::shared_ptr<netio::ServerKeys> keys = nullptr; // null: no authentication
        std::size_t client_limit_count = 16;               // further clients are rejected
        std::size_t host_limit_count = 0;                  // clients per host; 0: half
        Settings settings{.memory_limit_bytes = std::size_t{128} << 20U,
                          .idle_limit = std::chrono::minutes{1}};
    };

    // Calls `on_end` for each client that has disconnected.
    Server(netio::EventLoop& loop, netio::Transport& transport, Options options,
           std::function<void(const End&)> on_end);

    std::vector<netio::Endpoint> endpoints() const { return listener_.endpoints(); }
    std::size_t client_count() const noexcept { return clients_.size(); }
    struct Counters {
        std::uint64_t bytes = 0; // transferred, of all clients
        std::uint64_t ended = 0; // clients that have disconnected
        std::uint64_t failures = 0;
    };
    Counters counters() const;
    // Aborts all clients, and calls `then` when they have ended. Further clients are rejected.
    void interrupt(std::function<void()> then);
    // Metrics of the connected clients.
    std::vector<StreamMetrics> metrics() const;

  private:
    struct Client {
        std::string address;
        std::unique_ptr<End> end;
    };

    void on_incoming(netio::stream::IncomingStream& incoming) override;
    void on_closed(End& end);
    void forget_ended();
    std::vector<Client>::iterator client_of(const End& end);

    netio::EventLoop& loop_;
    Options options_;
    std::function<void(const End&)> on_end_;
    netio::access::PeerLimiter places_;
    PeerLog log_;
    std::vector<Client> clients_;
    Counters gone_;                   // of disconnected clients
    std::vector<End*> ended_;         // ended, but still in their own handlers
    std::function<void()> when_gone_; // empty: still serving
    netio::Timer later_;
    netio::stream::StreamListener listener_;
};

} // namespace apps::pump
