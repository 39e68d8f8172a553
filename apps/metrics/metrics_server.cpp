// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/metrics_server.hpp"

#include "netio/access/reach.hpp"

#include <httplib.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace apps {
namespace {

constexpr std::size_t thread_count = 2;
constexpr std::size_t waiting_limit = 16; // connections; more wait in the system's queue
constexpr std::chrono::seconds request_patience{1};
constexpr std::chrono::seconds end_patience{1};

// The threads that answer; where too many wait, accepting waits.
class Counter final : public httplib::TaskQueue {
  public:
    Counter() {
        for (std::size_t i = 0; i < thread_count; ++i)
            threads_.emplace_back([this] { serve(); });
    }
    void enqueue(std::function<void()> task) override {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return waiting_.size() < waiting_limit || ending_; });
        waiting_.push_back(std::move(task));
        changed_.notify_all();
    }
    void shutdown() override {
        {
            const std::lock_guard lock{mutex_};
            ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_)
            thread.join();
    }

  private:
    void serve() {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock lock{mutex_};
                changed_.wait(lock, [&] { return !waiting_.empty() || ending_; });
                if (waiting_.empty()) return;
                task = std::move(waiting_.front());
                waiting_.pop_front();
                changed_.notify_all();
            }
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> waiting_;
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

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

void require_loopback(const netio::Address& address) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const int failure = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found);
    if (failure != 0) {
        throw std::runtime_error{"cannot show metrics at " + to_string(address) + ": " +
                                 ::gai_strerror(failure)};
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list{found, ::freeaddrinfo};
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        if (netio::access::is_loopback(host_of(*each->ai_addr))) continue;
        throw std::runtime_error{"metrics at " + to_string(address) +
                                 " can be read from other machines; show them at 127.0.0.1, or say "
                                 "--metrics-open if that is meant"};
    }
}

// No signal of the program's is for these threads, and a scraper that has gone is none.
class AllSignalsBlocked {
  public:
    AllSignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    AllSignalsBlocked(const AllSignalsBlocked&) = delete;
    AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

} // namespace

// Where the threads ask the loop. The tasks that it was posted may run when the server is gone.
class MetricsServer::Desk : public std::enable_shared_from_this<Desk> {
  public:
    Desk(netio::EventLoop& loop, Collect collect) : loop_{loop}, collect_{std::move(collect)} {}

    // Any thread. Nothing: the loop did not answer in time, or is ending.
    std::optional<Render> ask(std::chrono::milliseconds patience) {
        std::unique_lock lock{mutex_};
        if (ended_) return std::nullopt;
        // Whoever comes while the loop is being asked gets the same answer.
        if (!asked_ && !loop_.post([desk = shared_from_this()] { desk->answer(); }))
            return std::nullopt;
        asked_ = true;
        const std::uint64_t before = answers_;
        changed_.wait_for(lock, patience, [&] { return answers_ != before || ended_; });
        if (answers_ == before) return std::nullopt;
        return last_;
    }
    // The loop's thread: it is asked nothing any more.
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

struct MetricsServer::Serving {
    httplib::Server http;
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
};

MetricsServer::MetricsServer(netio::EventLoop& loop, const Options& options, Collect collect)
    : desk_{std::make_shared<Desk>(loop, std::move(collect))}, serving_{
                                                                   std::make_shared<Serving>()} {
    if (!options.open) require_loopback(options.address);
    httplib::Server& http = serving_->http;
    http.new_task_queue = [] { return new Counter; };
    // Not to be shared with another program, which would be given half of the requests.
    http.set_socket_options([](int socket) {
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http.set_keep_alive_max_count(1);
    http.set_keep_alive_timeout(request_patience.count());
    http.set_read_timeout(request_patience);
    http.set_write_timeout(request_patience);
    http.set_payload_max_length(0);
    const auto unavailable = [](httplib::Response& response) {
        response.status = 503;
        response.set_content("the loop did not answer in time\n", "text/plain");
    };
    // The server goes after all its threads, and the desk after the server.
    http.Get("/metrics", [desk = desk_, patience = options.patience,
                          unavailable](const httplib::Request&, httplib::Response& response) {
        const std::optional<Render> render = desk->ask(patience);
        if (!render) return unavailable(response);
        response.set_content((*render)(), "text/plain; version=0.0.4; charset=utf-8");
    });
    http.Get("/healthz", [desk = desk_, patience = options.patience,
                          unavailable](const httplib::Request&, httplib::Response& response) {
        if (!desk->ask(patience)) return unavailable(response);
        response.set_content("ok\n", "text/plain");
    });
    const int port =
        options.address.port == 0
            ? http.bind_to_any_port(options.address.host)
            : (http.bind_to_port(options.address.host, options.address.port) ? options.address.port
                                                                             : -1);
    if (port <= 0) {
        throw std::runtime_error{"cannot show metrics at " + to_string(options.address) + ": " +
                                 std::strerror(errno)};
    }
    port_ = static_cast<std::uint16_t>(port);
    const AllSignalsBlocked blocked;
    std::thread{[serving = serving_] {
        serving->http.listen_after_bind();
        {
            const std::lock_guard lock{serving->mutex};
            serving->ended = true;
        }
        serving->changed.notify_all();
    }}.detach();
    while (!http.is_running()) // stop() does nothing before
        std::this_thread::yield();
}

MetricsServer::~MetricsServer() {
    desk_->end();
    serving_->http.stop();
    // Who reads nothing keeps its thread until its time is up, and that does not keep us.
    std::unique_lock lock{serving_->mutex};
    serving_->changed.wait_for(lock, end_patience, [&] { return serving_->ended; });
}

} // namespace apps
