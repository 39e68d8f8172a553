// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/signal_watch.hpp"

#include "netio/base/descriptor_error.hpp"
#include "netio/base/status.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

namespace netio::inline v0_3 {
namespace {

// Signals that watches of this thread keep blocked, each as long as a watch uses it.
class BlockedSignals {
  public:
    explicit BlockedSignals(const std::vector<int>& signals) : signals_{checked(signals)} {
        for (const int signal : signals_) {
            const auto index = static_cast<std::size_t>(signal);
            if (watchers[index]++ == 0) ours[index] = change(SIG_BLOCK, signal);
        }
    }
    ~BlockedSignals() {
        for (const int signal : signals_) {
            const auto index = static_cast<std::size_t>(signal);
            if (--watchers[index] == 0 && ours[index]) change(SIG_UNBLOCK, signal);
        }
    }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

    sigset_t mask() const noexcept {
        sigset_t mask{};
        sigemptyset(&mask);
        for (const int signal : signals_)
            sigaddset(&mask, signal);
        return mask;
    }

  private:
    // Checks all of them before the first one is blocked.
    static const std::vector<int>& checked(const std::vector<int>& signals) {
        for (const int signal : signals) {
            if (signal >= 1 && signal < NSIG) continue;
            throw FabricError{{EINVAL, std::system_category()},
                              "there is no signal " + std::to_string(signal)};
        }
        return signals;
    }
    // Returns whether it was not blocked before.
    static bool change(int how, int signal) noexcept {
        sigset_t one{};
        sigset_t before{};
        sigemptyset(&one);
        sigaddset(&one, signal);
        pthread_sigmask(how, &one, &before);
        return sigismember(&before, signal) == 0;
    }

    static thread_local std::array<unsigned, NSIG> watchers;
    static thread_local std::array<bool, NSIG> ours; // blocked by a watch, not by the user
    std::vector<int> signals_;
};

thread_local std::array<unsigned, NSIG> BlockedSignals::watchers{};
thread_local std::array<bool, NSIG> BlockedSignals::ours{};

} // namespace

struct SignalWatch::Descriptor {
    explicit Descriptor(const std::vector<int>& signals) : blocked{signals} {
        const sigset_t mask = blocked.mask();
        fd = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0) throw descriptor_error("cannot create a signalfd");
    }
    ~Descriptor() { ::close(fd); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    // The next pending signal, or 0.
    int next() const noexcept {
        signalfd_siginfo info{};
        return ::read(fd, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
    }

    BlockedSignals blocked;
    int fd = -1;
};

SignalWatch::SignalWatch(EventLoop& loop, const std::vector<int>& signals,
                         std::function<void(int)> handler)
    : descriptor_{std::make_unique<Descriptor>(signals)} {
    // One signal per turn, so that a handler may destroy the watch; level triggering reports the
    // next.
    watch_ = std::make_unique<DescriptorWatch>(
        loop, descriptor_->fd, DescriptorWatch::Interest::readable,
        [descriptor = descriptor_.get(), handler = std::move(handler)] {
            if (const int signal = descriptor->next(); signal != 0) handler(signal);
        });
}

SignalWatch::~SignalWatch() = default;

} // namespace netio::inline v0_3
