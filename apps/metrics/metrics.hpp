// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "apps/metrics/families.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/server_keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace apps {

// One HTTP request and its answer, without a socket. The size of a request is limited; all clients
// that ask at the same time share one answer.

struct HttpAnswer {
    unsigned status = 200;
    std::string_view type = "text/plain"; // a literal
    std::shared_ptr<const std::string> text;
};

class HttpExchange {
  public:
    static constexpr std::size_t request_limit_bytes = 8192;

    // Takes received bytes. Answers immediately if they are not a request, too long, or not a GET.
    void take(std::string_view bytes);
    // The requested path; empty before the request is complete and after the answer.
    const std::string& path() const noexcept { return path_; }
    void answer(const HttpAnswer& answer);
    bool is_answered() const noexcept { return answered_; }
    // The part of the answer that has not been sent.
    std::string_view rest() const noexcept;
    void sent(std::size_t bytes) noexcept { sent_ += bytes; }

  private:
    void refuse(unsigned status);

    std::string request_;
    std::string path_;
    std::string head_;
    std::shared_ptr<const std::string> text_;
    std::size_t sent_ = 0;
    bool answered_ = false;
};

// A listening socket and its HTTP clients. Each client has a time limit for its request and one for
// its answer. If there are too many clients, the oldest is closed, so that slow clients cannot
// block others.

class HttpServer {
  public:
    // Returns an answer for each path of the clients that ask at the same time.
    using Respond = std::function<std::vector<HttpAnswer>(std::span<const std::string> paths)>;

    struct Options {
        // Listens at the first address that this machine has; port 0: any free one.
        std::vector<SocketAddress> addresses;
        std::size_t client_limit = 16;
        std::chrono::milliseconds request_timeout{2000};
        std::chrono::milliseconds response_timeout{30'000};
    };

    // Throws std::runtime_error if it cannot listen there.
    explicit HttpServer(const Options& options);

    std::uint16_t port() const noexcept { return port_; }
    // Serves until stop().
    void run(const Respond& respond);
    // Any thread.
    void stop() noexcept;

  private:
    struct Client {
        Descriptor socket;
        netio::TimePoint until;
        HttpExchange exchange;
        bool is_gone = false;
    };

    void listen();
    int listen_at(const SocketAddress& address);
    int time_left() const;
    void look(bool has_new_client, std::span<const short> events);
    void take(Client& client) const;
    void respond(const Respond& respond);
    void send_to(Client& client) const;
    void admit_peer();

    Options options_;
    Descriptor listening_;
    Descriptor end_;
    std::uint16_t port_ = 0;
    std::deque<Client> clients_; // in order of arrival
};

// Answers GET /metrics and /healthz over HTTP on its own thread, where a slow client does not delay
// others. The loop collects the values once for all clients that ask at the same time; if it does
// not answer in time, the answer is 503.

class MetricsServer {
  public:
    // Formats the collected values; runs on any thread.
    using Render = std::function<std::string()>;
    // Collects the values; runs in the loop and must be quick.
    using Collect = std::function<Render()>;

    struct Options {
        netio::Address address;              // port 0: any free one
        bool allow_remote_anonymous = false; // allow an address that other machines can reach
        std::chrono::milliseconds answer_timeout{2000}; // time limit for the loop's answer
    };

    // Throws std::runtime_error if the address is in use, is not of this machine, or can be reached
    // from other machines without `allow_remote_anonymous`.
    MetricsServer(netio::EventLoop& loop, const Options& options, Collect collect);
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

    std::uint16_t port() const noexcept;

  private:
    class Collector;

    std::vector<HttpAnswer> answers(std::span<const std::string> paths,
                                    std::chrono::milliseconds answer_timeout);

    std::shared_ptr<Collector> collector_;
    std::unique_ptr<HttpServer> server_;
    std::thread thread_;
};

// The --metrics options of the programs.

struct MetricsArguments {
    std::string listen; // HOST:PORT or INTERFACE:PORT; empty: no metrics
    bool allow_remote_anonymous = false;
    static constexpr std::size_t fids_by_default = 1000;
    std::optional<std::uint64_t> fids; // limit of the fids
    std::size_t fid_limit() const noexcept { return fids.value_or(fids_by_default); }
};
// Adds --metrics, --metrics-allow-remote-anonymous and --metrics-fids; returns the first one.
CLI::Option* add_metrics(CLI::App& command, MetricsArguments& arguments);

// Returns the address of --metrics; an interface is replaced by its address. Throws
// std::invalid_argument if the text is not an address, and FabricError if the interface has none.
netio::Address metrics_address(const MetricsArguments& arguments);

// Serves the values of `collect`, of the loop and of the devices; null without --metrics. `collect`
// runs in the loop and returns a function that writes the collected values on any thread. Throws as
// MetricsServer.
using Collect = std::function<std::function<void(Exposition&)>()>;
std::unique_ptr<MetricsServer> show_metrics(netio::EventLoop& loop,
                                            const MetricsArguments& arguments, Collect collect);

// Authentication metrics of a server with keys.

void write(const netio::ServerKeys::Counters& gate, Exposition& text);

// Adds the values of the keys to those of `collect`.
Collect with_gate(std::shared_ptr<const netio::ServerKeys> keys, Collect collect);

} // namespace apps
