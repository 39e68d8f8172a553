// SPDX-License-Identifier: Apache-2.0

// netio listen: receives messages of send sockets, and counts or prints them.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/families.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/program/commands.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/listen_socket.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>

namespace apps {
namespace {

struct ListenArguments {
    std::string listen;
    bool allow_remote_anonymous = false;
    bool print = false;
    bool json = false;
    std::string provider = "auto";
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    netio::ListenSocket::Options
        socket; // except the address, --allow-remote-anonymous and the keys
    KeyArguments keys;
    MetricsArguments metrics;
};

class ListenRun final : private netio::ListenSocket::Handler {
  public:
    explicit ListenRun(const ListenArguments& arguments)
        : arguments_{arguments}, keys_{server_keys(loop_, arguments.keys)},
          transport_{netio::open_fabric(loop_, {.provider = arguments.provider})}, socket_{
                                                                                       *transport_,
                                                                                       options(),
                                                                                       *this} {
        if (arguments.duration) duration_timer_.start(*arguments.duration);
        tell_listening(socket_.endpoints());
    }

    ExitStatus run() {
        loop_.run();
        lines_.finish();
        const auto& sums = socket_.counters();
        print_report(
            arguments_.json
                ? fmt::format("{{\"role\":\"listen\",\"report_version\":{},\"messages\":{},"
                              "\"bytes\":{},\"senders\":{},\"rejected\":{}}}\n",
                              report_version, sums.messages, sums.bytes, sums.connected,
                              sums.rejected)
                : fmt::format("receiver: {} messages, {} bytes from {} senders\n", sums.messages,
                              sums.bytes, sums.connected));
        if (sums.messages == 0) return ExitStatus::nothing;
        return arguments_.messages.value_or(0) <= sums.messages ? ExitStatus::done
                                                                : ExitStatus::incomplete;
    }

  private:
    netio::ListenSocket::Options options() const {
        netio::ListenSocket::Options options = arguments_.socket;
        options.listen = {netio::parse_address(arguments_.listen)};
        options.allow_remote_anonymous = arguments_.allow_remote_anonymous;
        options.keys = keys_;
        options.connections_per_host = arguments_.keys.connections_per_host.value_or(0);
        return options;
    }
    void on_connected(netio::ReceiveSocket& sender) override {
        log_.note(fmt::format("{} is connected", sender.peer_address()));
        if (lines_.is_full()) sender.pause();
    }
    void on_message(netio::ReceiveSocket& sender, std::span<const std::byte> message,
                    std::optional<std::uint64_t>) override {
        if (arguments_.print) {
            lines_.print(printable({reinterpret_cast<const char*>(message.data()), message.size()},
                                   std::string::npos) +
                         "\n");
            if (lines_.is_full()) sender.pause();
        }
        ++received_;
        if (arguments_.messages && received_ == *arguments_.messages) end();
    }
    void on_closed(netio::ReceiveSocket& sender, const netio::Closed& closed) override {
        const auto& sums = sender.counters();
        log_.note(fmt::format("{} has disconnected after {} messages: {}", sender.peer_address(),
                              sums.messages, explain(closed)));
    }
    void on_listen_closed(netio::ListenSocket&, const netio::Closed&) override { loop_.stop(); }
    void end() {
        if (std::exchange(ended_, true)) return loop_.stop();
        socket_.close();
    }

    const ListenArguments& arguments_;
    netio::EventLoop loop_;
    LogObserver observer_{loop_};
    ShownLines lines_{loop_, [this] {
                          for (netio::ReceiveSocket* const sender : socket_.peers())
                              sender->resume();
                      }};
    std::shared_ptr<netio::ServerKeys> keys_;
    std::unique_ptr<netio::Transport> transport_;
    netio::DeviceWatch devices_{loop_};
    LimitedLog log_{loop_, [](const std::string& line) { spdlog::info("{}", line); }};
    std::uint64_t received_ = 0;
    bool ended_ = false;
    netio::Timer duration_timer_{loop_, [this] { end(); }};
    netio::ListenSocket socket_;
    std::unique_ptr<MetricsServer> metrics_{show_metrics(
        loop_, arguments_.metrics, with_gate(keys_, [this] {
            return [receiver = metrics_of(socket_)](Exposition& text) { write(receiver, text); };
        }))};
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { end(); }};
};

} // namespace

Command add_listen(CLI::App& program) {
    auto* command = program.add_subcommand("listen", "Receive messages from send sockets");
    const auto arguments = std::make_shared<ListenArguments>();
    command->add_option("listen", arguments->listen, "Listen at HOST:PORT; port 0: any free port")
        ->required();
    add_allow_remote_anonymous(*command, arguments->allow_remote_anonymous);
    add_count(*command, "--messages", arguments->messages,
              "End after this many messages of all senders");
    add_duration(*command, "--duration", arguments->duration, "End this long after the start");
    command->add_flag("--print", arguments->print, "Print each message as a line");
    add_count(*command, cli_flag<&netio::ListenSocket::Options::peer_limit>(),
              arguments->socket.peer_limit, "Limit of connected senders",
              {.min = 1, .max = UINT32_MAX});
    add_receive_buffers(*command, arguments->socket.session);
    add_largest_message(*command, arguments->socket.largest_message_bytes);
    add_session_times(*command, arguments->socket.session);
    add_keys(*command, arguments->keys);
    add_metrics(*command, arguments->metrics);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_json(*command, arguments->json);
    return [arguments] { return to_integer(ListenRun{*arguments}.run()); };
}

} // namespace apps
