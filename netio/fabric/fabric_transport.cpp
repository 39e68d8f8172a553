// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/fabric_transport.hpp"

#include "netio/base/descriptor_error.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/fabric.hpp"
#include "netio/fabric/addresses.hpp"
#include "netio/fabric/connection.hpp"
#include "netio/fabric/domain.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/fabric/libfabric.hpp"
#include "netio/fabric/listener.hpp"
#include "netio/fabric/provider.hpp"
#include "netio/loop/process.hpp"
#include "netio/random_number.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace netio::fabric {
namespace {

// The searches in progress in this process. libfabric's destructors free objects that a running
// search uses, so exit() waits for the searches and starts no new ones. The wait is limited,
// because a name server may not answer.
class RunningSearches {
  public:
    // Functions that are registered here run before the destructors of libraries that were loaded
    // before.
    RunningSearches() {
        [[maybe_unused]] const int unused = std::atexit([] { of_the_process().wait(); });
    }
    static RunningSearches& of_the_process() {
        static PerProcess<RunningSearches> searches;
        return *searches;
    }
    // Returns false if the process is ending.
    bool begin() {
        const std::lock_guard lock{mutex_};
        if (!ending_) ++count_;
        return !ending_;
    }
    void end() {
        const std::lock_guard lock{mutex_};
        --count_;
        changed_.notify_all();
    }

  private:
    // Longer than libfabric takes at most to query a peer.
    static constexpr std::chrono::seconds exit_wait{5};

    void wait() {
        std::unique_lock lock{mutex_};
        ending_ = true;
        changed_.wait_for(lock, exit_wait, [&] { return count_ == 0; });
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t count_ = 0;
    bool ending_ = false;
};

} // namespace

struct RouteFinder::Job {
    Address remote;
    std::string local_host;
    std::function<void(FoundRoutes)> found; // used by the loop; empty: not needed any more
    FoundRoutes answer;                     // used by the thread, until it is done
};

// Objects that the threads share, so that they may outlive the finder.
struct RouteFinder::Shared {
    explicit Shared(Search how)
        : search{std::move(how)}, wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (wake < 0) throw descriptor_error("cannot create an eventfd");
    }
    ~Shared() { ::close(wake); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

    struct Worker {
        std::thread thread;
        bool searching = false;
    };

    static void serve(const std::shared_ptr<Shared>& shared, Worker& self) {
        std::unique_lock lock{shared->mutex};
        for (;;) {
            shared->changed.wait(lock, [&] { return shared->ended || !shared->waiting.empty(); });
            if (shared->ended) return;
            const std::shared_ptr<Job> job = std::move(shared->waiting.front());
            shared->waiting.pop_front();
            self.searching = true;
            lock.unlock();
            if (!RunningSearches::of_the_process().begin()) return;
            job->answer = shared->search(job->remote, job->local_host);
            RunningSearches::of_the_process().end();
            lock.lock();
            self.searching = false;
            shared->done.push_back(job);
            const std::uint64_t one = 1;
            [[maybe_unused]] const auto written = ::write(shared->wake, &one, sizeof one);
        }
    }

    // The lock must be held. Throws std::system_error if the process may have no further thread.
    static void start_worker(const std::shared_ptr<Shared>& shared) {
        const AllSignalsBlocked blocked;
        Worker& worker = shared->workers.emplace_back();
        try {
            worker.thread = std::thread{&Shared::serve, shared, std::ref(worker)};
        } catch (...) {
            shared->workers.pop_back();
            throw;
        }
    }

    const Search search;
    const int wake;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Job>> waiting;
    std::deque<std::shared_ptr<Job>> done;
    std::deque<Worker> workers; // elements do not move
    bool ended = false;

    std::size_t idle() const {
        return static_cast<std::size_t>(std::ranges::count(workers, false, &Worker::searching));
    }
};

class RouteFinder::Ticket final : public RouteSearch {
  public:
    explicit Ticket(std::shared_ptr<Job> job) : job_{std::move(job)} {}
    ~Ticket() override { job_->found = nullptr; }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

  private:
    std::shared_ptr<Job> job_;
};

RouteFinder::RouteFinder(EventLoop& loop, Search search)
    : loop_{loop}, shared_{std::make_shared<Shared>(std::move(search))} {
    static_cast<void>(RunningSearches::of_the_process());
    loop_.add(*this);
}

RouteFinder::~RouteFinder() {
    loop_.remove(*this);
    std::vector<std::thread> idle;
    {
        const std::lock_guard lock{shared_->mutex};
        shared_->ended = true;
        shared_->waiting.clear();
        for (Shared::Worker& worker : shared_->workers) {
            if (worker.searching) {
                worker.thread.detach();
            } else {
                idle.push_back(std::move(worker.thread));
            }
        }
        shared_->changed.notify_all();
    }
    for (std::thread& thread : idle)
        thread.join();
}

int RouteFinder::wait_fd() const noexcept {
    return shared_->wake;
}

std::unique_ptr<RouteSearch> RouteFinder::find(const Address& remote, const std::string& local_host,
                                               std::function<void(FoundRoutes)> found) {
    const auto job = std::make_shared<Job>(
        Job{.remote = remote, .local_host = local_host, .found = std::move(found), .answer = {}});
    const std::lock_guard lock{shared_->mutex};
    if (shared_->waiting.size() >= shared_->idle() && shared_->workers.size() < thread_limit) {
        try {
            Shared::start_worker(shared_);
        } catch (const std::system_error&) {
            if (shared_->workers.empty()) throw;
        } // a busy thread will run it
    }
    shared_->waiting.push_back(job);
    shared_->changed.notify_one();
    return std::make_unique<Ticket>(job);
}

std::size_t RouteFinder::drain(std::size_t) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(shared_->wake, &count, sizeof count);
    std::deque<std::shared_ptr<Job>> done;
    {
        const std::lock_guard lock{shared_->mutex};
        done.swap(shared_->done);
    }
    // A handler may end any other search, but not the transport.
    for (const auto& job : done) {
        const auto found = std::exchange(job->found, nullptr);
        if (found) found(std::move(job->answer));
    }
    return done.size();
}

// The transport over libfabric: chooses providers and opens the objects that connections share.

namespace {

void validate(const FabricOptions& options) {
    const auto require = [](bool valid, const char* what) {
        if (!valid) throw std::invalid_argument{std::string{"fabric: "} + what};
    };
    // For the kernel a time-out of 0 means no time-out.
    require_time("fabric: half_handshake_timeout", options.half_handshake_timeout);
    require_time("fabric: handshake_timeout", options.handshake_timeout);
    require(options.pending_handshakes_per_host > 0,
            "pending_handshakes_per_host must be at least 1");
    require(options.attempts_per_address_limit > 0,
            "attempts_per_address_limit must be at least 1");
    require(options.queue_endpoint_limit > 0, "queue_endpoint_limit must be at least 1");
    require(options.queue_entry_limit > 0, "queue_entry_limit must be at least 1");
}

class FabricTransport final : public Transport {
  public:
    FabricTransport(EventLoop& loop, FabricOptions options)
        : Transport{options.windows_limit, options.copies_limit,
                    options.attempts_per_address_limit},
          loop_{loop}, options_{(validate(options), std::move(options))} {
        static_cast<void>(library()); // reports a missing library during set-up
        static_cast<void>(process_instance());
        if (options_.provider == "auto") {
            providers_ = usable_providers();
            return;
        }
        if (const std::string reason = refusal(options_.provider); !reason.empty()) {
            throw FabricError{{EINVAL, std::system_category()},
                              "provider '" + options_.provider + "' is refused: " + reason};
        }
        providers_ = {options_.provider};
    }

    ~FabricTransport() override {
        if (loop_.may_destroy("Transport")) require_unused();
    }
    FabricTransport(const FabricTransport&) = delete;
    FabricTransport& operator=(const FabricTransport&) = delete;

    EventLoop& loop() noexcept override { return loop_; }

    bool guards_memory(const std::string& provider) const override {
        return fabric::guards_memory(provider);
    }

    std::vector<std::string> providers_to(const Address& remote) override {
        return candidates({.provider = {},
                           .role = Role::connect,
                           .address = remote,
                           .local_host = {},
                           .limits = {}});
    }

    std::vector<std::string> providers_at(const Address& local) override {
        return candidates({.provider = {},
                           .role = Role::listen,
                           .address = numeric(local),
                           .local_host = {},
                           .limits = {}});
    }

    std::unique_ptr<netio::Connection> make_connection(const std::string& provider,
                                                       const Address& remote,
                                                       const std::string& local_host,
                                                       const QueueLimits& limits,
                                                       Connection::Handler& handler) override {
        return connect(offer({.provider = provider,
                              .role = Role::connect,
                              .address = remote,
                              .local_host = local_host,
                              .limits = limits}),
                       limits, handler);
    }

    std::unique_ptr<RouteSearch> find_routes(const Address& remote, const std::string& local_host,
                                             std::function<void(FoundRoutes)> found) override {
        if (!finder_) {
            // By value: a search may outlive this transport.
            finder_.reset(new RouteFinder{
                loop_, [providers = providers_](const Address& peer, const std::string& from) {
                    return fabric::find_routes(providers, peer, from);
                }});
        }
        return finder_->find(remote, local_host, std::move(found));
    }

    std::unique_ptr<netio::Connection> connect_over(const Route& route, const QueueLimits& limits,
                                                    Connection::Handler& handler) override {
        if (route.offer) return connect(info_of(route), limits, handler);
        return make_connection(route.provider, route.remote, route.local_host, limits, handler);
    }

    std::unique_ptr<netio::Listener> listen(const std::string& provider, const Address& place,
                                            const ListenOptions& options,
                                            Listener::Handler& handler) override {
        const Address local = numeric(place);
        Info info = offer({.provider = provider,
                           .role = Role::listen,
                           .address = local,
                           .local_host = {},
                           .limits = {}});
        const bool any = info->src_addr == nullptr;
        if (!any && !is_local(info->src_addr)) {
            throw FabricError{{EADDRNOTAVAIL, std::system_category()},
                              "cannot listen at " + to_string(local) +
                                  " (this machine does not have the address: use one of `ip "
                                  "address`, or 0.0.0.0 for all of them)"};
        }
        require_reach(any ? access::Host{} : to_auth_address(info->src_addr).host, local, options);
        Fabric& fabric = fabric_for(*info);
        return std::make_unique<Listener>(loop_, options_, fabric, std::move(info), local, handler);
    }

  private:
    // Replaces the name of an interface by its address.
    static Address numeric(const Address& local) {
        return {.host = host_at_interface(local.host), .port = local.port};
    }

    std::unique_ptr<netio::Connection> connect(Info info, const QueueLimits& limits,
                                               Connection::Handler& handler) {
        const bool is_apart = limits.checks_answer && reads_all_sockets(*info);
        Fabric& fabric = is_apart ? unused_fabric(*info) : fabric_for(*info);
        Domain& domain = fabric.domain_for(*info);
        const int next_descriptor = lowest_free_descriptor();
        EndpointHandle endpoint = Endpoint::open(domain, *info, limits);
        Origin origin;
        if (uses_kernel_sockets(*info) && may_be_new_socket(next_descriptor)) {
            CloseOnExec::set(next_descriptor);
            origin.descriptor_guess = next_descriptor;
        }
        return std::make_unique<Connection>(domain, std::move(info), std::move(endpoint),
                                            std::move(origin), limits, handler);
    }

    std::vector<std::string> candidates(InfoRequest request) {
        std::vector<std::string> names;
        // Does not check whether the port is free: the provider reports a port in use when it
        // listens. Otherwise a worse provider would be chosen silently.
        const std::uint16_t port = request.address.port;
        if (request.role == Role::listen) request.address.port = 0;
        for (const auto& provider : providers_) {
            request.provider = provider;
            if (query(request)) names.push_back(provider);
        }
        request.address.port = port;
        if (names.empty()) throw no_offer(request);
        return names;
    }

    Info offer(const InfoRequest& request) {
        Info info = query(request);
        if (!info) throw no_offer(request);
        return info;
    }

    static FabricError no_offer(InfoRequest request) {
        const bool listening = request.role == Role::listen;
        // verbs offers nothing if the port is in use.
        const std::uint16_t port = std::exchange(request.address.port, std::uint16_t{0});
        const bool port_is_taken = listening && port != 0 && query(request);
        request.address.port = port;
        if (port_is_taken) {
            return FabricError{{EADDRINUSE, std::system_category()},
                               "cannot listen at " + to_string(request.address)};
        }
        if (!listening) {
            return FabricError{{EHOSTUNREACH, std::system_category()},
                               cannot_reach(request.provider, request.address, request.local_host)};
        }
        return FabricError{{EADDRNOTAVAIL, std::system_category()},
                           cannot_listen(request.provider, request.address)};
    }

    Fabric& fabric_for(::fi_info& info) {
        for (const auto& fabric : fabrics_) {
            if (fabric->serves(info)) return *fabric;
        }
        fabrics_.emplace_back(new Fabric{loop_, options_, info});
        return *fabrics_.back();
    }

    // The fabric for one attempt whose answer is checked, so that no other attempt makes the
    // provider read its socket. It is kept for the next attempt, because buffers may be registered
    // with its domain.
    Fabric& unused_fabric(::fi_info& info) {
        for (const auto& fabric : apart_) {
            if (fabric->serves(info) && fabric->is_unused()) return *fabric;
        }
        return *apart_.emplace_back(new Fabric{loop_, options_, info});
    }

    EventLoop& loop_;
    FabricOptions options_;
    std::vector<std::string> providers_;
    std::vector<ProcessOwned<Fabric>> fabrics_;
    std::vector<ProcessOwned<Fabric>> apart_;
    ProcessOwned<RouteFinder> finder_; // created at the first search
};

} // namespace
} // namespace netio::fabric

namespace netio::inline v0_3 {

std::string host_at_interface(const std::string& host) {
    return fabric::host_at_interface(host);
}

std::unique_ptr<Transport> open_fabric(EventLoop& loop, FabricOptions options) {
    return std::make_unique<fabric::FabricTransport>(loop, std::move(options));
}

Transport& network_of(EventLoop& loop) {
    if (!loop.attachment()) loop.attachment() = std::shared_ptr<Transport>{open_fabric(loop)};
    return *static_cast<Transport*>(loop.attachment().get());
}

} // namespace netio::inline v0_3
