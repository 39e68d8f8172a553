// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/metrics.hpp"

#include "apps/common/cli.hpp"
#include "apps/metrics/figures.hpp"
#include "apps/metrics/http_door.hpp"
#include "netio/access/host.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace apps {
namespace {

netio::access::Host host_of(const sockaddr& address) {
    if (address.sa_family == AF_INET) {
        std::array<std::byte, 4> bytes{};
        sockaddr_in ipv4{};
        std::memcpy(&ipv4, &address, sizeof ipv4);
        std::memcpy(bytes.data(), &ipv4.sin_addr, bytes.size());
        return netio::access::host_of_ipv4(bytes);
    }
    netio::access::Host host{};
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, &address, sizeof ipv6);
    std::memcpy(host.data(), &ipv6.sin6_addr, host.size());
    return host;
}

void require_loopback(const netio::Address& address, std::span<const SocketAddress> its) {
    for (const SocketAddress& each : its) {
        if (netio::access::is_loopback(host_of(*each.get()))) continue;
        throw std::runtime_error{
            "metrics at " + to_string(address) +
            " can be read from other machines; use 127.0.0.1, or set allow_remote_anonymous "
            "(--metrics-allow-remote-anonymous) if this is intended"};
    }
}

template <class Make>
auto or_say_where(const netio::Address& address, const Make& make) {
    try {
        return make();
    } catch (const std::runtime_error& error) {
        throw std::runtime_error{"cannot show metrics at " + to_string(address) + ": " +
                                 error.what()};
    }
}

} // namespace

// Passes requests from threads to the loop. Shared, because a posted task may run after the server
// is destroyed.
class MetricsServer::Desk : public std::enable_shared_from_this<Desk> {
  public:
    Desk(netio::EventLoop& loop, Collect collect) : loop_{loop}, collect_{std::move(collect)} {}

    // Any thread. Returns nullopt if the loop did not answer in time or is ending.
    std::optional<Render> ask(std::chrono::milliseconds patience) {
        std::unique_lock lock{mutex_};
        if (ended_) return std::nullopt;
        // A pending request is not posted again.
        if (!asked_ && !loop_.post([desk = shared_from_this()] { desk->answer(); }))
            return std::nullopt;
        asked_ = true;
        const std::uint64_t before = answers_;
        changed_.wait_for(lock, patience, [&] { return answers_ != before || ended_; });
        if (answers_ == before) return std::nullopt;
        return last_;
    }
    // The loop's thread: the loop gets no more requests.
    void end() {
        {
            const std::lock_guard lock{mutex_};
            ended_ = true;
        }
        changed_.notify_all();
    }

  private:
    void answer() {
        {
            const std::lock_guard lock{mutex_};
            if (ended_) return;
        }
        Render render = collect_();
        {
            const std::lock_guard lock{mutex_};
            last_ = std::move(render);
            asked_ = false;
            ++answers_;
        }
        changed_.notify_all();
    }

    netio::EventLoop& loop_;
    Collect collect_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Render last_;
    std::uint64_t answers_ = 0;
    bool asked_ = false;
    bool ended_ = false;
};

MetricsServer::MetricsServer(netio::EventLoop& loop, const Options& options, Collect collect)
    : desk_{std::make_shared<Desk>(loop, std::move(collect))} {
    // Resolved once, so that the checked addresses are those it listens at.
    const auto addresses =
        or_say_where(options.address, [&] { return addresses_of(options.address); });
    if (!options.allow_remote_anonymous) require_loopback(options.address, addresses);
    door_ = or_say_where(options.address, [&] {
        return std::make_unique<HttpDoor>(HttpDoor::Options{.addresses = addresses});
    });
    const netio::AllSignalsBlocked blocked;
    thread_ = std::thread{[this, patience = options.patience] {
        door_->run([&](std::span<const std::string> paths) { return answers(paths, patience); });
    }};
}

MetricsServer::~MetricsServer() {
    desk_->end();
    door_->stop();
    thread_.join();
}

std::uint16_t MetricsServer::port() const noexcept {
    return door_->port();
}

// Asks the loop once for all clients.
std::vector<HttpAnswer> MetricsServer::answers(std::span<const std::string> paths,
                                               std::chrono::milliseconds patience) {
    const auto text = [](std::string content) {
        return std::make_shared<const std::string>(std::move(content));
    };
    const auto is_wanted = [&](const char* path) {
        return std::ranges::find(paths, path) != paths.end();
    };
    std::optional<Render> render;
    if (is_wanted("/metrics") || is_wanted("/healthz")) render = desk_->ask(patience);
    const HttpAnswer unavailable{.status = 503, .text = text("the loop did not answer in time\n")};
    const HttpAnswer healthy{.text = text("ok\n")};
    const HttpAnswer unknown{.status = 404, .text = text("use /metrics or /healthz\n")};
    HttpAnswer figures{.type = "text/plain; version=0.0.4; charset=utf-8"};
    if (render && is_wanted("/metrics")) figures.text = text((*render)());
    std::vector<HttpAnswer> answers;
    for (const std::string& path : paths) {
        if (path != "/metrics" && path != "/healthz") {
            answers.push_back(unknown);
        } else if (!render) {
            answers.push_back(unavailable);
        } else {
            answers.push_back(path == "/metrics" ? figures : healthy);
        }
    }
    return answers;
}

CLI::Option* add_metrics(CLI::App& command, MetricsArguments& arguments) {
    auto* const listen = command.add_option(
        "--metrics", arguments.listen,
        "Serve metrics for Prometheus at http://HOST:PORT/metrics; port 0: any free port");
    command
        .add_flag("--metrics-allow-remote-anonymous", arguments.allow_remote_anonymous,
                  "Allow an address for --metrics that other machines can reach; anyone who "
                  "reaches it may read the metrics")
        ->needs(listen);
    add_count(command, "--metrics-fids", arguments.fids, "Show metrics of at most this many fids",
              {.min = 0, .max = 1'000'000})
        ->default_str(std::to_string(MetricsArguments::fids_by_default));
    return listen;
}

netio::Address metrics_address(const MetricsArguments& arguments) {
    netio::Address address = netio::parse_address(arguments.listen);
    address.host = netio::host_at_interface(address.host);
    return address;
}

std::unique_ptr<MetricsServer> show_metrics(netio::EventLoop& loop,
                                            const MetricsArguments& arguments, Collect collect) {
    if (arguments.listen.empty()) return nullptr;
    const netio::Address address = metrics_address(arguments);
    auto server = std::make_unique<MetricsServer>(
        loop,
        MetricsServer::Options{.address = address,
                               .allow_remote_anonymous = arguments.allow_remote_anonymous},
        [&loop, collect = std::move(collect)]() -> MetricsServer::Render {
            return [figures = take_figures(loop), write_rest = collect()] {
                Exposition text;
                write(figures, text);
                write_rest(text);
                write(read_devices("/"), text);
                return std::move(text).take();
            };
        });
    spdlog::info("metrics at http://{}/metrics",
                 to_string(netio::Address{.host = address.host, .port = server->port()}));
    return server;
}

void write(const netio::ServerKeys::Counters& gate, Exposition& text) {
    text.counter("netio_gate_admitted_total", "Connections that were admitted").add(gate.admitted);
    text.counter(
            "netio_gate_challenged_total",
            "First attempts, which receive an authentication challenge: one per connecting client")
        .add(gate.challenged);
    text.counter("netio_gate_busy_total", "Attempts with a key that were asked to retry later "
                                          "because the limit of the key or host was reached")
        .add(gate.busy);
    text.counter("netio_gate_refused_total",
                 "Attempts that were refused: failed authentication or missing rights")
        .add(gate.refused);
    text.gauge("netio_gate_sessions", "Admitted connections that are open")
        .add(std::uint64_t{gate.sessions});
}

Collect with_gate(std::shared_ptr<const netio::ServerKeys> keys, Collect collect) {
    if (!keys) return collect;
    return [keys = std::move(keys), collect = std::move(collect)] {
        return [gate = keys->counters(), write_rest = collect()](Exposition& text) {
            write(gate, text);
            write_rest(text);
        };
    };
}

} // namespace apps
