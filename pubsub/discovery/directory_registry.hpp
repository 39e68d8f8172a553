// SPDX-License-Identifier: Apache-2.0
#pragma once

// The thread that does the I/O of a registry.

#include "netio/base/descriptor_error.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/loop/process.hpp"
#include "pubsub/discovery/registry.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace netio::pubsub::inline v0_3 {

// A descriptor that one thread makes readable for another.
class WakeUp {
  public:
    WakeUp() : descriptor_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (descriptor_ < 0) throw descriptor_error("cannot create an eventfd");
    }
    ~WakeUp() { ::close(descriptor_); }
    WakeUp(const WakeUp&) = delete;
    WakeUp& operator=(const WakeUp&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    void call() noexcept {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
    }
    void answer() noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(descriptor_, &count, sizeof count);
    }

  private:
    int descriptor_;
};

// A registry with its own thread, and its news for the loop. The work keeps the state that both
// threads use alive while it runs. If the work does not end in time, because a file server does not
// answer, the thread is detached.
class RegistryThread final : private EventSource {
  public:
    // How long the destructor waits for the work to end.
    static constexpr std::chrono::seconds end_wait{2};

    // What the work uses.
    class Shared {
      public:
        explicit Shared(std::unique_ptr<Registry> registry) : registry_{std::move(registry)} {}
        Registry& registry() noexcept { return *registry_; }
        bool ended() const noexcept { return ended_; }
        // Wakes the loop, which calls `take`.
        void notify() noexcept { news_->call(); }
        // For other threads of the work, which may outlive it and the registry.
        std::shared_ptr<WakeUp> news() const noexcept { return news_; }

      private:
        friend class RegistryThread;
        std::unique_ptr<Registry> registry_;
        std::atomic<bool> ended_{false};
        std::shared_ptr<WakeUp> news_ = std::make_shared<WakeUp>();
        WakeUp done_;
    };
    using Work = std::function<void(Shared&)>;

    // Starts the thread, which runs `work`. `take` runs in the loop after notify(); it returns
    // whether more is left for the next turn, and may destroy this object. Throws std::system_error
    // if the thread cannot be started.
    RegistryThread(EventLoop& loop, std::unique_ptr<Registry> registry, Work work,
                   std::function<bool()> take);
    ~RegistryThread() override;

    // Ends Registry::wait().
    void interrupt() noexcept {
        loop_.check_caller("Announcer", "update");
        shared_->registry().interrupt();
    }

  private:
    int wait_fd() const noexcept override { return shared_->news_->descriptor(); }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override { return !more_; }

    EventLoop& loop_;
    std::shared_ptr<Shared> shared_;
    std::function<bool()> take_;
    bool more_ = false;
    bool* destroyed_ = nullptr;
    ProcessOwned<std::thread> thread_;
};

} // namespace netio::pubsub::inline v0_3

// A registry in a directory: each text is a file NAME.netio, which is replaced as a whole. Inotify
// reports changes by this machine. Changes by other machines on a shared file system are found when
// the whole directory is read, once per `poll`.

namespace netio::pubsub::inline v0_3 {

class DirectoryRegistry final : public Registry {
  public:
    // A file that was not written for this time, by the clock of the file server, was left by a
    // crash.
    static constexpr std::chrono::hours leftover_age{1};
    static constexpr std::size_t file_limit = 65536; // further files are ignored

    enum class Notice : std::uint8_t { inotify, none };
    DirectoryRegistry(std::string path, std::chrono::milliseconds poll,
                      Notice notice = Notice::inotify);
    ~DirectoryRegistry() override;

    void put(const std::string& name, const std::string& text) override;
    bool keep(const std::string&) override { return false; }
    std::optional<std::string> get(const std::string& name) override;
    void remove(const std::string& name) override;
    void look(Visitor& visitor) override;
    void wait(TimePoint until) override;
    void interrupt() noexcept override { wake_up_.call(); }

  private:
    // Equal stamps mean that a file has not changed.
    struct Stamp {
        std::uint64_t inode = 0;
        std::int64_t bytes = 0;
        std::int64_t seconds = 0;
        std::int64_t nanoseconds = 0;

        friend bool operator==(const Stamp&, const Stamp&) = default;
    };

    int open_directory() const;
    void write_whole(int directory, const std::string& file, const std::string& text) const;
    void sweep(int directory, const std::string& own_file) const;
    void scan_all(int directory, Visitor& visitor);
    void look_at(int directory, const std::string& name, Visitor& visitor);
    void watch_directory();
    void take_inotify_events();

    std::string path_;
    std::chrono::milliseconds poll_;
    Notice notice_;
    std::string temporary_tag_; // of this object, unique on all machines
    bool swept_ = false;
    int inotify_ = -1;
    int watch_ = -1;
    std::set<std::string> touched_; // names that inotify reported
    std::map<std::string, Stamp> known_;
    bool all_next_ = true;                        // inotify may have missed changes
    TimePoint next_full_look_ = TimePoint::max(); // look() was not called
    WakeUp wake_up_;
};

} // namespace netio::pubsub::inline v0_3
