// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/route_finder.hpp"

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace netio::fabric {

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
            job->answer = shared->search(job->remote, job->local_host);
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
