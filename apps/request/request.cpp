// SPDX-License-Identifier: Apache-2.0

// netio request: sends one request, and writes its reply to standard output.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/requester.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace apps {
namespace {

struct RequestArguments {
    std::string peer;
    std::optional<std::string> data;
    std::chrono::milliseconds timeout{60000};
    std::string provider = "auto";
    netio::Requester::Options requester;
    KeyArguments keys;
};

// The loop never waits for standard input or output: threads read and write them.
class RequestRun {
  public:
    explicit RequestRun(const RequestArguments& arguments)
        : arguments_{arguments}, transport_{netio::open_fabric(loop_,
                                                               {.provider = arguments.provider})},
          standard_output_{STDOUT_FILENO, "cannot write to standard output"},
          output_{standard_output_.write()} {
        netio::Requester::Options options = arguments.requester;
        options.context.emplace(*transport_);
        options.request_timeout = arguments.timeout;
        options.key = client_key(arguments.keys);
        options.on_ready = [this] { take_reply(); };
        requester_.emplace(netio::AddressList{peer_address(arguments.peer)}, options);
        if (arguments.data) {
            begin(std::as_bytes(std::span{*arguments.data}));
        } else {
            read_input();
        }
    }

    ExitStatus run() {
        loop_.run();
        return status_;
    }

  private:
    static constexpr std::size_t longest_request = (std::size_t{1} << 30) - 32;

    void read_input() {
        input_ = std::make_unique<BackgroundReader>(STDIN_FILENO, "cannot read standard input");
        input_watch_.emplace(loop_, input_->event_descriptor(),
                             netio::DescriptorWatch::Interest::readable, [this] {
                                 input_->clear_event();
                                 take_input();
                             });
    }
    void take_input() {
        for (auto piece = input_->take(); !piece.empty(); piece = input_->take()) {
            request_.insert(request_.end(), piece.begin(), piece.end());
            if (request_.size() > longest_request)
                return fail("standard input has more than 1 GiB, the limit of a request");
        }
        if (!input_->has_ended()) return;
        if (const std::string failure = input_->failure(); !failure.empty()) return fail(failure);
        input_watch_.reset();
        input_.reset();
        begin(request_);
        request_ = {};
    }
    void begin(std::span<const std::byte> request) {
        try {
            reply_ = requester_->send(request);
        } catch (const netio::Error& error) {
            fail(error.what());
        }
    }

    void take_reply() {
        try {
            while (reply_ && !is_complete_ && !output_.is_full() && reply_->is_ready()) {
                const auto message = reply_->next();
                if (!message) return complete();
                has_part_ = true;
                output_.put(message->bytes());
            }
        } catch (const netio::RequestError& error) {
            status_ = status_of(error.end());
            spdlog::error("{}", error.what());
            complete();
        }
    }
    ExitStatus status_of(netio::RequestEnd end) const {
        if (has_part_) return ExitStatus::incomplete;
        if (end != netio::RequestEnd::timed_out) return ExitStatus::failed;
        return requester_->stats().connected ? ExitStatus::nothing : ExitStatus::unreached;
    }
    // What has arrived is still written.
    void complete() {
        is_complete_ = true;
        output_.finish([output = standard_output_] { output.close(); });
    }
    void output_changed() {
        output_.clear_event();
        if (output_.failure()) {
            try {
                std::rethrow_exception(output_.failure());
            } catch (const std::exception& error) {
                return fail(error.what());
            }
        }
        if (is_complete_ && output_.is_done()) return loop_.stop();
        take_reply();
    }
    void fail(const std::string& what) {
        spdlog::error("{}", what);
        status_ = ExitStatus::failed;
        loop_.stop();
    }
    void interrupt() {
        status_ = has_part_ ? ExitStatus::incomplete : ExitStatus::failed;
        spdlog::error("ended by a signal before the whole reply was written");
        loop_.stop();
    }

    const RequestArguments& arguments_;
    netio::EventLoop loop_;
    LogObserver observer_{loop_};
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { interrupt(); }};
    std::unique_ptr<netio::Transport> transport_;
    ExitStatus status_ = ExitStatus::done;
    bool has_part_ = false;    // of the reply
    bool is_complete_ = false; // no more of the reply follows
    std::vector<std::byte> request_;
    DescriptorOutput standard_output_;
    BackgroundWriter output_;
    netio::DescriptorWatch output_watch_{loop_, output_.event_descriptor(),
                                         netio::DescriptorWatch::Interest::readable,
                                         [this] { output_changed(); }};
    std::unique_ptr<BackgroundReader> input_;
    std::optional<netio::DescriptorWatch> input_watch_;
    std::optional<netio::Requester> requester_;
    std::optional<netio::Reply> reply_; // destroyed before the requester
};

} // namespace

Command add_request(CLI::App& program) {
    auto* command = program.add_subcommand(
        "request", "Send standard input as a request to a responder, and print its reply");
    const auto arguments = std::make_shared<RequestArguments>();
    command->add_option("peer", arguments->peer, "HOST:PORT")->required();
    command->add_option("--data", arguments->data,
                        "Send this text as the request instead of standard input");
    add_milliseconds(*command, "--timeout", arguments->timeout,
                     "Time limit of the whole reply, with the time until the responder is there",
                     Zero::refused);
    using Options = netio::MessageSocket::Options;
    Options& socket = arguments->requester.socket;
    add_largest_message(*command, socket.largest_message_bytes);
    add_retry_times(*command, socket.retry_interval, socket.retry_limit);
    add_session_times(*command, socket.session);
    add_key(*command, arguments->keys);
    add_provider(*command, arguments->provider)->capture_default_str();
    return [arguments] { return to_integer(RequestRun{*arguments}.run()); };
}

} // namespace apps
