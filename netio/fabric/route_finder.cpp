// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/route_finder.hpp"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace netio::fabric {
namespace {

// The searches of the process that are under way. libfabric's destructors take apart what a thread
// in it uses, so that exit() waits for them, and begins none; not for ever, since a name server may
// not answer.
class RunningSearches {
  public:
    static RunningSearches& of_the_process() {
        static auto* const searches = new RunningSearches; // threads may be left when all else ends
        return *searches;
    }
    // False: the process is ending.
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
    // Behind the longest that libfabric takes to ask a peer.
    static constexpr std::chrono::seconds exit_wait{5};

    // What is registered here runs before the destructors of libraries that were loaded before.
    RunningSearches() {
        [[maybe_unused]] const int unused = std::atexit([] { of_the_process().wait(); });
    }
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
    std::function<void(FoundRoutes)> found; // the loop's; empty: nobody wants to know any more
    FoundRoutes answer;                     // the thread's, until it is done
};

// What the threads hold on to, so that they may outlive the finder.
struct RouteFinder::Shared {
    explicit Shared(Search how)
        : search{std::move(how)}, wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (wake < 0) {
            throw FabricError{{errno, std::system_category()}, "cannot create an eventfd"};
        }
    }
    ~Shared() { ::close(wake); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

    static void serve(const std::shared_ptr<Shared>& shared) {
        std::unique_lock lock{shared->mutex};
        for (;;) {
            ++shared->idle;
            shared->changed.wait(lock, [&] { return shared->ended || !shared->waiting.empty(); });
            --shared->idle;
            if (shared->ended) return;
            const std::shared_ptr<Job> job = std::move(shared->waiting.front());
            shared->waiting.pop_front();
            lock.unlock();
            if (!RunningSearches::of_the_process().begin()) return;
            job->answer = shared->search(job->remote, job->local_host);
            RunningSearches::of_the_process().end();
            lock.lock();
            shared->done.push_back(job);
            const std::uint64_t one = 1;
            [[maybe_unused]] const auto written = ::write(shared->wake, &one, sizeof one);
        }
    }

    const Search search;
    const int wake;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Job>> waiting;
    std::deque<std::shared_ptr<Job>> done;
    std::size_t threads = 0;
    std::size_t idle = 0;
    bool ended = false;
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
    const std::lock_guard lock{shared_->mutex};
    shared_->ended = true;
    shared_->waiting.clear();
    shared_->changed.notify_all();
}

int RouteFinder::wait_fd() const noexcept {
    return shared_->wake;
}

std::unique_ptr<RouteSearch> RouteFinder::find(const Address& remote, const std::string& local_host,
                                               std::function<void(FoundRoutes)> found) {
    const auto job = std::make_shared<Job>(
        Job{.remote = remote, .local_host = local_host, .found = std::move(found), .answer = {}});
    const std::lock_guard lock{shared_->mutex};
    if (shared_->waiting.size() >= shared_->idle && shared_->threads < thread_limit) {
        // The program's signals are for its own threads.
        sigset_t all{};
        sigset_t before{};
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread{&Shared::serve, shared_}.detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        ++shared_->threads;
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
    // A handler may end any other search; none of them may end the transport.
    for (const auto& job : done) {
        const auto found = std::exchange(job->found, nullptr);
        if (found) found(std::move(job->answer));
    }
    return done.size();
}

} // namespace netio::fabric
