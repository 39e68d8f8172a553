// SPDX-License-Identifier: Apache-2.0
// netio respond: runs a command for each request, and replies with its output.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/responder.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace apps::respond {

struct CommandLimits {
    std::chrono::milliseconds time{60000};
    std::size_t output_bytes = std::size_t{16} << 20;
};

// One run of a command, without a shell, in a process group of its own: it gets `input` as its
// standard input, and its standard output is collected. Its standard error is that of this process.
// It has ended when its process has, and its standard output is closed. The destructor kills the
// process group. Belongs to the loop's thread.
class CommandRun {
  public:
    // `on_end` is called once, from the loop; it may destroy this object. Throws std::system_error
    // if the command cannot be started.
    CommandRun(netio::EventLoop& loop, const std::vector<std::string>& command,
               std::span<const std::byte> input, const CommandLimits& limits,
               std::function<void()> on_end);
    ~CommandRun();
    CommandRun(const CommandRun&) = delete;
    CommandRun& operator=(const CommandRun&) = delete;

    std::span<const std::byte> output() const noexcept { return output_; }
    // Why there is no output; empty if the command has succeeded.
    const std::string& failure() const noexcept { return failure_; }

  private:
    void write_input();
    void read_output();
    void reap();
    void run_out_of_time();
    void fail(std::string why);
    void kill_group() noexcept;
    void end_if_done();
    void end();

    const std::string name_;
    const CommandLimits limits_;
    std::function<void()> on_end_;
    std::vector<std::byte> input_;
    std::size_t written_ = 0;
    std::vector<std::byte> output_;
    std::string failure_;
    pid_t pid_ = -1;
    bool has_exited_ = false;
    Descriptor in_;
    Descriptor out_;
    Descriptor process_;
    std::optional<netio::DescriptorWatch> in_watch_;
    std::optional<netio::DescriptorWatch> out_watch_;
    std::optional<netio::DescriptorWatch> process_watch_;
    netio::Timer time_is_up_;
    netio::Timer end_timer_;
};

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
      input_(input.begin(), input.end()), time_is_up_{loop, [this] { run_out_of_time(); }},
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

void CommandRun::run_out_of_time() {
    fail(has_exited_
             ? fmt::format("{} has ended, but within {} ms (--time-limit) a process that it "
                           "started has not closed its standard output; redirect that process's "
                           "output",
                           name_, limits_.time.count())
             : fmt::format("{} was killed: it has not ended within {} ms (--time-limit)", name_,
                           limits_.time.count()));
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

namespace {

struct Arguments {
    std::string listen = "127.0.0.1:0";
    std::vector<std::string> command;
    CommandLimits limits;
    std::size_t concurrency = 4;
    std::string provider = "auto";
    bool json = false;
    netio::Responder::Options responder;
    KeyArguments keys;
};

class Run {
  public:
    explicit Run(const Arguments& arguments)
        : arguments_{arguments}, keys_{server_keys(loop_, arguments.keys)},
          transport_{netio::open_fabric(loop_, {.provider = arguments.provider})} {
        std::signal(SIGPIPE, SIG_IGN); // a command may end without reading its input
        std::signal(SIGCHLD, SIG_DFL); // ignored, it would take the exit status of commands away
        const netio::Address address = netio::parse_address(arguments.listen);
        try {
            responder_.emplace(netio::AddressList{address}, options(arguments));
        } catch (const std::invalid_argument& error) {
            // Anonymous peers of other machines must not run commands here.
            if (std::string_view{error.what()}.find("anonymous") == std::string_view::npos) throw;
            throw std::invalid_argument{fmt::format(
                "--listen {}: other machines can reach this address, and would run the command; "
                "use an address such as 127.0.0.1, or {}",
                arguments.listen,
                keys_ ? "remove the line `0 anyone` from the key file" : "--keys FILE")};
        }
        tell_listening(responder_->endpoints());
    }

    ExitStatus run() {
        loop_.run();
        const auto sums = responder_->stats();
        const std::uint64_t failed = sums.failed + sums.no_reply;
        print_report(
            arguments_.json
                ? fmt::format("{{\"role\":\"respond\",\"report_version\":{},\"requests\":{},"
                              "\"replied\":{},\"failed\":{},\"canceled\":{}}}\n",
                              report_version, sums.requests, sums.replied, failed, sums.canceled)
                : fmt::format("responder: {} requests, {} replies, {} failed, {} canceled\n",
                              sums.requests, sums.replied, failed, sums.canceled));
        return ExitStatus::done;
    }

  private:
    static constexpr std::chrono::milliseconds retry_interval{50};
    // A requester that receives none of its replies for this time is disconnected.
    static constexpr std::chrono::milliseconds send_timeout{10000};

    struct Job {
        netio::Request request;
        std::unique_ptr<CommandRun> command{};
        std::string failure{};
        bool is_blocked = false; // it has ended, and its requester receives nothing
    };
    using Place = std::list<Job>::iterator;

    netio::Responder::Options options(const Arguments& arguments) {
        netio::Responder::Options options = arguments.responder;
        options.context.emplace(*transport_);
        options.keys = keys_;
        options.connections_per_host = arguments.keys.connections_per_host.value_or(0);
        options.send_timeout = send_timeout;
        options.on_ready = [this] { look(); };
        return options;
    }

    void look() {
        std::erase_if(jobs_, [](const Job& job) { return job.request.is_canceled(); });
        while (jobs_.size() < arguments_.concurrency) {
            std::optional<netio::Request> request =
                responder_->receive(std::chrono::milliseconds{0});
            if (!request) break;
            start(*std::move(request));
        }
        if (responder_->is_closed()) loop_.stop();
    }
    void start(netio::Request request) {
        const Place place = jobs_.insert(jobs_.end(), Job{.request = std::move(request)});
        try {
            place->command =
                std::make_unique<CommandRun>(loop_, arguments_.command, place->request.bytes(),
                                             arguments_.limits, [this, place] { finish(place); });
        } catch (const std::exception& error) { // no such command, no descriptor, no process
            place->failure = error.what();
            log_.note(place->failure);
            deliver(place);
        }
    }
    void finish(Place place) {
        place->failure = place->command->failure();
        if (!place->failure.empty())
            log_.note(fmt::format("{}: {}", place->request.peer_address(), place->failure));
        deliver(place);
        look();
    }
    void deliver(Place place) {
        Job& job = *place;
        try {
            if (job.failure.empty()) {
                job.request.reply(job.command->output());
            } else {
                job.request.fail(job.failure);
            }
        } catch (const netio::Error& error) {
            if (error.status() == netio::Status::too_large) { // for the requester
                job.failure = error.what();
                log_.note(job.failure);
            }
            job.is_blocked = true; // the responder disconnects a requester that stays slow
            return retry_timer_.start(retry_interval);
        }
        jobs_.erase(place);
    }
    void retry() {
        for (Place next = jobs_.begin(); next != jobs_.end();) {
            const Place place = next++;
            if (place->is_blocked) deliver(place);
        }
        look();
    }
    // The first signal ends in order, except that commands are killed; the second one at once.
    void end() {
        if (std::exchange(ending_, true)) return loop_.stop();
        for (Job& job : jobs_) {
            try {
                job.request.fail("the responder has ended before the command");
            } catch (const netio::Error&) { // its requester is blocked, and learns of the end
            }
        }
        jobs_.clear();
        responder_->close();
    }

    const Arguments& arguments_;
    netio::EventLoop loop_;
    const LogObserver observer_{loop_};
    LimitedLog log_{loop_, [](const std::string& line) { spdlog::warn("{}", line); }};
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { end(); }};
    bool ending_ = false;
    std::shared_ptr<netio::ServerKeys> keys_;
    std::unique_ptr<netio::Transport> transport_;
    std::optional<netio::Responder> responder_;
    netio::Timer retry_timer_{loop_, [this] { retry(); }};
    std::list<Job> jobs_; // destroyed before the responder
};

Command add(CLI::App& program) {
    auto* command = program.add_subcommand(
        "respond", "Run a command for each request, and reply with its standard output");
    const auto arguments = std::make_shared<Arguments>();
    command
        ->add_option("command", arguments->command,
                     "The command and its arguments, after --; it is run without a shell, with the "
                     "request as its standard input")
        ->required();
    command
        ->add_option("--listen", arguments->listen,
                     "Listen at HOST:PORT; port 0: any free port. Other machines need --keys")
        ->capture_default_str();
    add_milliseconds(*command, "--time-limit", arguments->limits.time,
                     "Kill the command's process group after this time", Zero::refused);
    add_bytes(*command, "--reply-limit", arguments->limits.output_bytes,
              "Limit of the command's output", {.min = 1, .max = (1U << 30) - 32});
    add_count(*command, "--concurrency", arguments->concurrency,
              "Limit of commands that run at once; further requests wait", {.min = 1, .max = 1024});
    netio::Responder::Options& responder = arguments->responder;
    add_largest_message(*command, responder.socket.largest_message_bytes);
    add_session_times(*command, responder.socket.session);
    add_keys(*command, arguments->keys);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_json(*command, arguments->json);
    return [arguments] { return to_integer(Run{*arguments}.run()); };
}

} // namespace
} // namespace apps::respond

apps::Command apps::add_respond(CLI::App& program) {
    return respond::add(program);
}
