// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/route_finder.hpp"

#include "netio/base/descriptor_error.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/loop/process.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
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

} // namespace netio::fabric
