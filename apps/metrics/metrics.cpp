// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/metrics.hpp"

#include "apps/common/cli.hpp"
#include "apps/metrics/families.hpp"
#include "netio/access/host.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace apps {
namespace {

std::string_view reason(unsigned status) {
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    default:
        return "Service Unavailable";
    }
}

constexpr std::string_view method = "GET ";

// Returns PATH of "GET PATH HTTP/1.x"; empty if the line is not such a request.
std::string_view path_of(std::string_view line) {
    line.remove_prefix(method.size());
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos || !line.substr(end).starts_with(" HTTP/1.")) return {};
    const std::string_view target = line.substr(0, end);
    return target.starts_with('/') ? target.substr(0, target.find('?')) : std::string_view{};
}

} // namespace

void HttpExchange::take(std::string_view bytes) {
    if (answered_ || !path_.empty()) return;
    request_ += bytes.substr(0, request_limit_bytes - request_.size());
    const std::string_view request = request_;
    if (!method.starts_with(request.substr(0, method.size()))) return refuse(405);
    const std::size_t end = request.find("\r\n\r\n");
    if (end == std::string_view::npos) {
        if (request.size() == request_limit_bytes) refuse(431);
        return;
    }
    path_ = path_of(request.substr(0, request.find("\r\n")));
    if (path_.empty()) return refuse(400);
    request_ = {};
}

void HttpExchange::answer(const HttpAnswer& answer) {
    text_ = answer.text;
    head_ = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
                        "Connection: close\r\n\r\n",
                        answer.status, reason(answer.status), answer.type, text_->size());
    path_.clear();
    answered_ = true;
}

std::string_view HttpExchange::rest() const noexcept {
    if (!answered_) return {};
    if (sent_ < head_.size()) return std::string_view{head_}.substr(sent_);
    return std::string_view{*text_}.substr(std::min(sent_ - head_.size(), text_->size()));
}

void HttpExchange::refuse(unsigned status) {
    request_ = {};
    answer({.status = status,
            .text = std::make_shared<const std::string>(std::string{reason(status)} + "\n")});
}

namespace {

constexpr int queue_length = 64;                   // in the kernel
constexpr std::chrono::milliseconds rest_time{50}; // pause when no descriptor is available

[[noreturn]] void fail(int error) {
    throw std::runtime_error{std::generic_category().message(error)};
}

std::uint16_t port_of(int socket) {
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
    return SocketAddress{*reinterpret_cast<const sockaddr*>(&bound), size}.port();
}

} // namespace

HttpServer::HttpServer(const Options& options)
    : options_{options}, end_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (!end_.is_open()) fail(errno);
    listen();
}

// Listens at the first address that this machine has. If the port is in use there, no other address
// is tried, because requests to the host's name would reach the other program.
void HttpServer::listen() {
    int error = EADDRNOTAVAIL;
    for (const SocketAddress& address : options_.addresses) {
        error = listen_at(address);
        if (error == 0) return;
        if (error == EADDRINUSE) break;
    }
    fail(error);
}

int HttpServer::listen_at(const SocketAddress& address) {
    listening_ =
        Descriptor{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const int yes = 1;
    if (!listening_.is_open() ||
        // Not SO_REUSEPORT: another program would receive half of the requests.
        ::setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(listening_.get(), address.get(), address.size()) != 0 ||
        ::listen(listening_.get(), queue_length) != 0)
        return errno;
    port_ = port_of(listening_.get());
    return 0;
}

void HttpServer::stop() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_.get(), &one, sizeof one);
}

void HttpServer::run(const Respond& respond_to) {
    std::vector<pollfd> watched;
    std::vector<short> events;
    for (;;) {
        watched.assign({{.fd = end_.get(), .events = POLLIN, .revents = 0},
                        {.fd = listening_.get(), .events = POLLIN, .revents = 0}});
        for (const Client& each : clients_) {
            const bool answered = each.exchange.is_answered();
            watched.push_back({.fd = each.socket.get(),
                               .events = static_cast<short>(answered ? POLLOUT : POLLIN),
                               .revents = 0});
        }
        ::poll(watched.data(), watched.size(), time_left());
        if (watched[0].revents != 0) return;
        events.clear();
        for (const pollfd& each : std::span{watched}.subspan(2))
            events.push_back(each.revents);
        look(watched[1].revents != 0, events);
        respond(respond_to);
    }
}

int HttpServer::time_left() const {
    if (clients_.empty()) return -1;
    const auto first = std::ranges::min_element(clients_, {}, &Client::until);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(first->until - netio::Clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void HttpServer::look(bool has_new_client, std::span<const short> events) {
    const netio::TimePoint now = netio::Clock::now();
    for (std::size_t at = 0; at < events.size(); ++at) {
        Client& client = clients_[at];
        if (events[at] != 0) client.exchange.is_answered() ? send_to(client) : take(client);
        client.is_gone = client.is_gone || now >= client.until;
    }
    std::erase_if(clients_, [](const Client& each) { return each.is_gone; });
    if (has_new_client) admit_peer();
}

void HttpServer::admit_peer() {
    const int socket = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        // A client that stays in the queue would be reported again immediately.
        const bool lacking = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
        if (lacking) ::poll(nullptr, 0, static_cast<int>(rest_time.count()));
        return;
    }
    if (clients_.size() >= options_.client_limit) clients_.pop_front();
    clients_.push_back({.socket = Descriptor{socket},
                        .until = netio::Clock::now() + options_.request_timeout,
                        .exchange = {}});
}

void HttpServer::take(Client& client) const {
    std::array<char, HttpExchange::request_limit_bytes> bytes{};
    const ssize_t got = ::recv(client.socket.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        client.is_gone = true;
        return;
    }
    client.exchange.take({bytes.data(), static_cast<std::size_t>(got)});
}

void HttpServer::respond(const Respond& respond) {
    std::vector<std::string> paths;
    std::vector<Client*> asking;
    for (Client& each : clients_) {
        if (each.exchange.path().empty()) continue;
        paths.push_back(each.exchange.path());
        asking.push_back(&each);
    }
    if (paths.empty()) return;
    const std::vector<HttpAnswer> answers = respond(paths);
    for (std::size_t at = 0; at < asking.size(); ++at) {
        asking[at]->exchange.answer(answers[at]);
        asking[at]->until = netio::Clock::now() + options_.response_timeout;
    }
}

void HttpServer::send_to(Client& client) const {
    const std::string_view rest = client.exchange.rest();
    const ssize_t sent = ::send(client.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) client.exchange.sent(static_cast<std::size_t>(sent));
    const bool failed = sent < 0 && errno != EAGAIN && errno != EINTR;
    client.is_gone = failed || client.exchange.rest().empty();
}

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
class MetricsServer::Collector : public std::enable_shared_from_this<Collector> {
  public:
    Collector(netio::EventLoop& loop, Collect collect)
        : loop_{loop}, collect_{std::move(collect)} {}

    // Any thread. Returns nullopt if the loop did not answer in time or is ending.
    std::optional<Render> ask(std::chrono::milliseconds answer_timeout) {
        std::unique_lock lock{mutex_};
        if (ended_) return std::nullopt;
        // A pending request is not posted again.
        if (!asked_ && !loop_.post([self = shared_from_this()] { self->answer(); }))
            return std::nullopt;
        asked_ = true;
        const std::uint64_t before = answers_;
        changed_.wait_for(lock, answer_timeout, [&] { return answers_ != before || ended_; });
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
    : collector_{std::make_shared<Collector>(loop, std::move(collect))} {
    // Resolved once, so that the checked addresses are those it listens at.
    const auto addresses =
        or_say_where(options.address, [&] { return addresses_of(options.address); });
    if (!options.allow_remote_anonymous) require_loopback(options.address, addresses);
    server_ = or_say_where(options.address, [&] {
        return std::make_unique<HttpServer>(HttpServer::Options{.addresses = addresses});
    });
    const netio::AllSignalsBlocked blocked;
    thread_ = std::thread{[this, answer_timeout = options.answer_timeout] {
        server_->run(
            [&](std::span<const std::string> paths) { return answers(paths, answer_timeout); });
    }};
}

MetricsServer::~MetricsServer() {
    collector_->end();
    server_->stop();
    thread_.join();
}

std::uint16_t MetricsServer::port() const noexcept {
    return server_->port();
}

// Asks the loop once for all clients.
std::vector<HttpAnswer> MetricsServer::answers(std::span<const std::string> paths,
                                               std::chrono::milliseconds answer_timeout) {
    const auto text = [](std::string content) {
        return std::make_shared<const std::string>(std::move(content));
    };
    const auto is_wanted = [&](const char* path) {
        return std::ranges::find(paths, path) != paths.end();
    };
    std::optional<Render> render;
    if (is_wanted("/metrics") || is_wanted("/healthz")) render = collector_->ask(answer_timeout);
    const HttpAnswer unavailable{.status = 503, .text = text("the loop did not answer in time\n")};
    const HttpAnswer healthy{.text = text("ok\n")};
    const HttpAnswer unknown{.status = 404, .text = text("use /metrics or /healthz\n")};
    HttpAnswer metrics{.type = "text/plain; version=0.0.4; charset=utf-8"};
    if (render && is_wanted("/metrics")) metrics.text = text((*render)());
    std::vector<HttpAnswer> answers;
    for (const std::string& path : paths) {
        if (path != "/metrics" && path != "/healthz") {
            answers.push_back(unknown);
        } else if (!render) {
            answers.push_back(unavailable);
        } else {
            answers.push_back(path == "/metrics" ? metrics : healthy);
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
            return [loop_metrics = take_snapshot(loop), write_rest = collect()] {
                Exposition text;
                write(loop_metrics, text);
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
