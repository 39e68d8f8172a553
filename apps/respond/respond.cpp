// SPDX-License-Identifier: Apache-2.0

// netio respond: runs a command for each request, and replies with its output.

#include "apps/common/cli.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/process.hpp"
#include "apps/common/report.hpp"
#include "apps/common/terminal.hpp"
#include "apps/program/commands.hpp"
#include "apps/respond/command_run.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/responder.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps::respond {
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
        const netio::Address address = netio::parse_address(arguments.listen);
        try {
            responder_.emplace(netio::AddressList{address}, options(arguments));
        } catch (const std::invalid_argument& error) {
            // Anonymous peers of other machines must not run commands here.
            if (std::string_view{error.what()}.find("anonymous") == std::string_view::npos) throw;
            throw std::invalid_argument{fmt::format(
                "--listen {}: other machines can reach this address, and would run the command; "
                "use an address such as 127.0.0.1, or --keys FILE",
                arguments.listen)};
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
    command->add_flag("--json", arguments->json,
                      "Print the report as one JSON object, as the last line");
    return [arguments] { return to_integer(Run{*arguments}.run()); };
}

} // namespace
} // namespace apps::respond

apps::Command apps::add_respond(CLI::App& program) {
    return respond::add(program);
}
