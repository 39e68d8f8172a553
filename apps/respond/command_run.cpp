// SPDX-License-Identifier: Apache-2.0
#include "apps/respond/command_run.hpp"

#include "apps/common/process.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

namespace apps::respond {
namespace {

constexpr std::size_t piece_bytes = std::size_t{64} << 10;
constexpr int pieces_per_turn = 16;

struct Pipe {
    Descriptor read;
    Descriptor write;
};

// Both ends are closed in commands that other runs start.
Pipe make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot make a pipe for the command");
    return {Descriptor{ends[0]}, Descriptor{ends[1]}};
}

void never_wait(const Descriptor& descriptor) {
    const int flags = ::fcntl(descriptor.get(), F_GETFL);
    if (flags < 0 || ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) != 0)
        throw_errno("cannot set up a pipe for the command");
}

[[noreturn]] void throw_code(int code, const std::string& what) {
    throw std::system_error{code, std::generic_category(), what};
}

// Owns the attributes of a new process.
class SpawnSettings {
  public:
    SpawnSettings(int input, int output) {
        ::posix_spawn_file_actions_init(&files_);
        ::posix_spawnattr_init(&attributes_);
        sigset_t none;
        sigset_t all;
        ::sigemptyset(&none);
        ::sigfillset(&all);
        int code = ::posix_spawn_file_actions_adddup2(&files_, input, STDIN_FILENO);
        if (code == 0) code = ::posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
        // The network's descriptors must not survive this process in the command.
        if (code == 0) code = ::posix_spawn_file_actions_addclosefrom_np(&files_, 3);
        if (code == 0) code = ::posix_spawnattr_setpgroup(&attributes_, 0);
        if (code == 0) code = ::posix_spawnattr_setsigmask(&attributes_, &none);
        if (code == 0) code = ::posix_spawnattr_setsigdefault(&attributes_, &all);
        const auto flags = static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
        if (code == 0) code = ::posix_spawnattr_setflags(&attributes_, flags);
        if (code != 0) throw_code(code, "cannot prepare the command");
    }
    ~SpawnSettings() {
        ::posix_spawn_file_actions_destroy(&files_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;

    pid_t start(const std::vector<std::string>& command) const {
        std::vector<char*> words;
        for (const std::string& word : command)
            words.push_back(const_cast<char*>(word.c_str())); // posix_spawn does not change them
        words.push_back(nullptr);
        pid_t pid = -1;
        const int code =
            ::posix_spawnp(&pid, words[0], &files_, &attributes_, words.data(), environ);
        if (code != 0) throw_code(code, "cannot start " + command.front());
        return pid;
    }

  private:
    posix_spawn_file_actions_t files_{};
    posix_spawnattr_t attributes_{};
};

std::string text_of(const std::string& name, const siginfo_t& status) {
    if (status.si_code == CLD_EXITED)
        return fmt::format("{} has failed with exit status {}", name, status.si_status);
    const char* const signal = ::sigabbrev_np(status.si_status);
    return fmt::format("{} was ended by signal {} (SIG{})", name, status.si_status,
                       signal != nullptr ? signal : "?");
}

} // namespace

CommandRun::CommandRun(netio::EventLoop& loop, const std::vector<std::string>& command,
                       std::span<const std::byte> input, const CommandLimits& limits,
                       std::function<void()> on_end)
    : name_{command.front()}, limits_{limits}, on_end_{std::move(on_end)},
      input_(input.begin(), input.end()), time_is_up_{loop,
                                                      [this] {
                                                          fail(fmt::format(
                                                              "{} was killed: it has not ended "
                                                              "within {} ms (--time-limit)",
                                                              name_, limits_.time.count()));
                                                      }},
      end_timer_{loop, [this] {
                     const auto last = std::move(on_end_); // it may destroy this object
                     last();
                 }} {
    Pipe in = make_pipe();
    Pipe out = make_pipe();
    never_wait(in.write);
    never_wait(out.read);
    pid_ = SpawnSettings{in.read.get(), out.write.get()}.start(command);
    // The header of glibc 2.36 for pidfd_open() does not work in C++.
    process_ = Descriptor{static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))};
    if (!process_.is_open()) {
        const int error = errno;
        kill_group();
        ::waitpid(pid_, nullptr, 0);
        throw_code(error, "cannot watch " + name_);
    }
    using Interest = netio::DescriptorWatch::Interest;
    in_ = std::move(in.write);
    out_ = std::move(out.read);
    in_watch_.emplace(loop, in_.get(), Interest::writable, [this] { write_input(); });
    out_watch_.emplace(loop, out_.get(), Interest::readable, [this] { read_output(); });
    process_watch_.emplace(loop, process_.get(), Interest::readable, [this] { reap(); });
    time_is_up_.start(limits_.time);
}

CommandRun::~CommandRun() {
    kill_group();
    if (has_exited_) {
        ::waitpid(pid_, nullptr, 0);
        return;
    }
    // It dies soon, but the loop must not wait for it.
    try {
        start_thread_without_signals([pid = pid_] { ::waitpid(pid, nullptr, 0); });
    } catch (const std::system_error&) { // no thread; its entry stays until this program ends
    }
}

// The process is waited for in the destructor only, so its number is not reused before.
void CommandRun::kill_group() noexcept {
    ::kill(-pid_, SIGKILL);
}

// A command may end without reading all of its input.
void CommandRun::write_input() {
    for (int piece = 0; piece < pieces_per_turn && written_ < input_.size(); ++piece) {
        const ssize_t done = ::write(in_.get(), input_.data() + written_, input_.size() - written_);
        if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (done < 0) break;
        written_ += static_cast<std::size_t>(done);
        if (piece + 1 == pieces_per_turn && written_ < input_.size()) return;
    }
    in_watch_.reset();
    in_.reset();
    input_ = {};
}

void CommandRun::read_output() {
    std::array<std::byte, piece_bytes> piece;
    for (int count = 0; count < pieces_per_turn; ++count) {
        const ssize_t got = ::read(out_.get(), piece.data(), piece.size());
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got < 0) return fail("cannot read the output of " + name_);
        if (got == 0) {
            out_watch_.reset();
            out_.reset();
            return end_if_done();
        }
        const auto bytes = static_cast<std::size_t>(got);
        if (output_.size() + bytes > limits_.output_bytes)
            return fail(fmt::format("{} was killed: its output exceeds {} bytes (--reply-limit)",
                                    name_, limits_.output_bytes));
        output_.insert(output_.end(), piece.begin(), piece.begin() + got);
    }
}

void CommandRun::reap() {
    siginfo_t status{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &status, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        status.si_pid == 0)
        return;
    has_exited_ = true;
    process_watch_.reset();
    const bool is_good = status.si_code == CLD_EXITED && status.si_status == 0;
    if (!is_good) return fail(text_of(name_, status));
    end_if_done();
}

void CommandRun::fail(std::string why) {
    failure_ = std::move(why);
    kill_group();
    process_watch_.reset();
    in_watch_.reset();
    in_.reset();
    out_watch_.reset();
    out_.reset();
    end();
}

void CommandRun::end_if_done() {
    if (has_exited_ && !out_.is_open()) end();
}

void CommandRun::end() {
    time_is_up_.cancel();
    end_timer_.start(netio::Duration::zero());
}

} // namespace apps::respond
