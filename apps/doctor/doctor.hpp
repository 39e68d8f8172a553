// SPDX-License-Identifier: Apache-2.0
#pragma once

// Evaluates a machine's state for running on RDMA, and proposes changes. No I/O.

#include "apps/common/idle_watch.hpp"
#include "apps/common/machine.hpp"
#include "netio/access/peer_limiter.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_listener.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace apps {

struct Finding {
    enum class Kind : std::uint8_t {
        good,
        note,   // information
        change, // must be changed to work well
    };
    Kind kind = Kind::good;
    std::string what;
    std::string remedy; // for changes and some notes
};

std::string_view to_string(Finding::Kind kind) noexcept;

// Ordered from the device upwards: a later finding often follows from an earlier one.
std::vector<Finding> diagnose(const Machine& machine);
// Returns true if nothing has to be changed.
bool all_passed(const std::vector<Finding>& findings) noexcept;

// Tests the path between two machines, on sessions like those for data: round-trip times,
// bandwidth, and the largest frame. ProbeServer answers, PathProbe asks. Both belong to the loop's
// thread.
//
// Frames of the session (Service::path_test, docs/wire-formats.md): an echo is returned unchanged,
// with a body of any size; data is counted; a sum request has no body and is answered with the
// number of bytes counted so far (8 bytes).
class ProbeServer final : private netio::SessionListener::Handler, private netio::Session::Handler {
  public:
    struct Options {
        netio::Address address;
        bool allow_remote_anonymous = false; // other machines may reach it
        std::shared_ptr<netio::ServerKeys> keys = nullptr;
        std::size_t peer_limit_count = 16;            // at most half of them from one host
        std::chrono::milliseconds idle_limit{60'000}; // for a peer without requests
    };

    // Throws FabricError if it cannot listen there, and std::invalid_argument if other machines can
    // reach the address without `allow_remote_anonymous`.
    ProbeServer(netio::Transport& transport, const Options& options);
    ~ProbeServer();

    std::vector<netio::Endpoint> endpoints() const { return listener_.endpoints(); }
    // Called when a peer has connected, and with the reason when it has disconnected.
    std::function<void(const std::string& what)> at_visit;

  private:
    struct Peer {
        std::unique_ptr<netio::Session> session;
        std::unique_ptr<netio::RegisteredBuffer> answer; // in flight while a large answer is sent
        bool answer_lent = false;
        std::uint64_t bytes = 0;
        std::uint64_t frames = 0;
        std::unique_ptr<IdleWatch> idle;
    };
    void on_incoming(netio::IncomingSession& incoming) override;
    void on_open(netio::Session& session) override;
    void on_frame(netio::Session& session, const netio::IncomingFrame& frame) override;
    void on_sent(netio::Session& session, netio::Cookie, netio::Completion::Outcome) override;
    void on_writable(netio::Session&) override {}
    void on_closed(netio::Session& session, const netio::Closed& closed) override;
    netio::Status answer(netio::Session& session, Peer& peer, std::uint8_t kind,
                         std::span<const std::byte> body);

    netio::EventLoop& loop_;
    netio::access::PeerLimiter places_;
    std::chrono::milliseconds idle_limit_;
    std::map<netio::Session*, Peer> peers_;
    netio::SessionListener listener_;
};

struct PathMeasurement {
    std::string provider;
    std::size_t largest_bytes = 0;            // of the frame that came back complete
    std::size_t provider_message_bytes = 0;   // the provider's own limit
    std::vector<netio::Duration> round_trips; // sorted
    double gbit_per_s = 0;
};
// Returns lines for people.
std::vector<std::string> to_lines(const PathMeasurement& measurement);

class PathProbe final : private netio::Session::Handler, private netio::Connector::Handler {
  public:
    struct Options {
        std::size_t round_trip_count = 1000;
        std::size_t transfer_bytes = std::size_t{256} << 20U;
        netio::Duration limit = std::chrono::seconds{2}; // for each of the two tests
        std::shared_ptr<const netio::ClientKey> key = nullptr;
    };

    // Connects over the best working route, as all connections do. Calls `at_end` once.
    PathProbe(netio::Transport& transport, const netio::Address& remote, const Options& options,
              std::function<void()> at_end);
    ~PathProbe();

    // After the end: the results, or the reason why there are none.
    const std::optional<PathMeasurement>& measurement() const noexcept { return measurement_; }
    const std::string& failure() const noexcept { return failure_; }

  private:
    enum class Step : std::uint8_t { largest, round_trips, transfer, sum, done };

    void on_route(const netio::Session::Target& target) override;
    void on_connect_failed(const netio::Closed& closed) override;
    void on_open(netio::Session& session) override;
    void on_frame(netio::Session& session, const netio::IncomingFrame& frame) override;
    void on_sent(netio::Session&, netio::Cookie, netio::Completion::Outcome) override {}
    void on_writable(netio::Session&) override;
    void on_closed(netio::Session& session, const netio::Closed& closed) override;

    void send(std::uint8_t kind, std::size_t bytes);
    void send_echo();
    void transfer();
    void take_echo(std::span<const std::byte> body);
    void take_sum(std::span<const std::byte> body);
    void fail(std::string why);

    netio::Transport& transport_;
    Options options_;
    std::function<void()> at_end_;
    netio::RegisteredBuffer memory_;
    netio::Connector connector_;
    Step step_ = Step::largest;
    PathMeasurement running_;
    std::optional<PathMeasurement> measurement_;
    std::string failure_;
    std::size_t bytes_sent_ = 0;
    netio::TimePoint step_begin_;
    netio::TimePoint sent_at_;
    std::unique_ptr<netio::Session> session_; // last: destroyed first
};

} // namespace apps
