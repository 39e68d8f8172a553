// SPDX-License-Identifier: Apache-2.0

// netio send: sends the lines of standard input, or generated messages, to a listen socket.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/families.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/program/commands.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/buffered_send_socket.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace apps {
namespace {

struct SendArguments {
    std::string peer;
    std::optional<std::uint64_t> count; // absent: the lines of standard input
    std::size_t bytes = 64;
    std::string local;
    std::string provider = "auto";
    netio::BufferedSendSocket::Options sending; // except the options above
    KeyArguments keys;
    MetricsArguments metrics;
    bool reconnect = false;
    bool json = false;
};

// Makes each line of standard input a message, without its line end.
class InputLines {
  public:
    // Reads the available input.
    void read() {
        std::array<char, 65536> piece;
        const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (got < 0) return fail(std::generic_category().message(errno));
        text_.append(piece.data(), static_cast<std::size_t>(got));
        if (got == 0 && !text_.empty() && text_.back() != '\n') text_ += '\n';
        if (text_.size() > longest && text_.find('\n') == std::string::npos)
            return fail("it has a line of more than 16 MiB");
        ended_ = got == 0;
    }
    // Calls take(line) for each line until take() returns false.
    template <typename Take>
    void give(Take take) {
        std::size_t begin = 0;
        for (std::size_t end = text_.find('\n'); end != std::string::npos;
             end = text_.find('\n', begin)) {
            if (!take(std::string_view{text_}.substr(begin, end - begin))) break;
            begin = end + 1;
        }
        text_.erase(0, begin);
    }
    // Returns true if all input was read.
    bool ended() const noexcept { return ended_; }
    // Why the input ended early; empty if it did not.
    const std::string& flaw() const noexcept { return flaw_; }
    bool has_line() const { return text_.find('\n') != std::string::npos; }

  private:
    static constexpr std::size_t longest = std::size_t{16} << 20;
    void fail(std::string why) {
        flaw_ = "standard input: " + std::move(why);
        text_.clear();
        ended_ = true;
    }

    bool ended_ = false;
    std::string flaw_;
    std::string text_; // at most a line and a piece: no more is read while a line waits
};

// The messages to send: the lines of standard input, or generated messages.
class Supply {
  public:
    // Calls `go_on` when there may be more messages.
    Supply(netio::EventLoop& loop, const SendArguments& arguments, std::function<void()> go_on)
        : loop_{loop}, go_on_{std::move(go_on)}, is_made_up_{arguments.count.has_value()},
          made_up_(arguments.bytes), left_{arguments.count.value_or(0)} {}

    enum class Given : std::uint8_t { all, not_yet };
    // Calls send(message) for each message until send() returns false, and flush() before a
    // possibly long pause.
    template <typename Send, typename Flush>
    Given give(Send send, Flush flush) {
        if (is_made_up_) return make_up(send);
        lines_.give([&](std::string_view line) { return send(std::as_bytes(std::span{line})); });
        if (lines_.has_line()) return Given::not_yet; // until the socket accepts more
        if (lines_.ended()) return Given::all;
        read_more(flush);
        return Given::not_yet;
    }
    // Returns true if all lines have been passed on.
    bool is_used_up() const { return !is_made_up_ && lines_.ended() && !lines_.has_line(); }
    const std::string& flaw() const noexcept { return lines_.flaw(); }
    // Stops reading.
    void stop() { input_.reset(); }

  private:
    static constexpr std::size_t messages_per_turn = 4096;

    template <typename Send>
    Given make_up(Send send) {
        for (std::size_t turn = 0; left_ > 0; ++turn, --left_) {
            if (turn == messages_per_turn) {
                next_turn_.start(netio::Duration::zero());
                return Given::not_yet;
            }
            if (!send(std::span<const std::byte>{made_up_})) return Given::not_yet;
        }
        return Given::all;
    }
    // A file is always readable and cannot be watched.
    template <typename Flush>
    void read_more(Flush flush) {
        const bool is_file = ::lseek(STDIN_FILENO, 0, SEEK_CUR) >= 0;
        if (is_file) {
            lines_.read();
            return next_turn_.start(netio::Duration::zero());
        }
        flush(); // sends what was read, because the next input may come late
        if (input_) return;
        input_ = std::make_unique<netio::DescriptorWatch>(
            loop_, STDIN_FILENO, netio::DescriptorWatch::Interest::readable, [this] {
                input_.reset();
                lines_.read();
                go_on_();
            });
    }

    netio::EventLoop& loop_;
    std::function<void()> go_on_;
    bool is_made_up_;
    std::vector<std::byte> made_up_;
    std::uint64_t left_;
    InputLines lines_;
    std::unique_ptr<netio::DescriptorWatch> input_;
    netio::Timer next_turn_{loop_, [this] { go_on_(); }};
};

class SendRun final : private netio::BufferedSendSocket::Handler {
  public:
    explicit SendRun(const SendArguments& arguments)
        : arguments_{arguments}, transport_{netio::open_fabric(loop_,
                                                               {.provider = arguments.provider})},
          supply_{loop_, arguments, [this] { go_on(); }}, socket_{*transport_, options(arguments),
                                                                  *this} {}

    ExitStatus run() {
        socket_.connect(peer_address(arguments_.peer));
        loop_.run();
        const auto& sums = socket_.counters();
        const bool orderly = link_.closed.reason == netio::CloseReason::orderly;
        const bool received = orderly && link_.unconfirmed_frames == 0;
        if (!orderly) {
            spdlog::error("{}: {}", arguments_.peer, explain(link_.closed));
        }
        if (!supply_.flaw().empty()) spdlog::error("{}", supply_.flaw());
        print_report(arguments_.json
                         ? fmt::format("{{\"role\":\"send\",\"report_version\":{},\"messages\":{},"
                                       "\"bytes\":{},\"unconfirmed_frames\":{},\"end\":\"{}\"}}\n",
                                       report_version, sums.messages, sums.bytes,
                                       link_.unconfirmed_frames, to_string(link_.closed.reason))
                         : fmt::format("sender: {} messages, {} bytes{}\n", sums.messages,
                                       sums.bytes, received ? ", all of them received" : ""));
        if (!link_.connected) return ExitStatus::unreached;
        if (!supply_.flaw().empty()) return ExitStatus::failed;
        return received && !interrupted_ ? ExitStatus::done : ExitStatus::incomplete;
    }

  private:
    struct Link {
        bool connected = false;               // at least once
        bool waiting = false;                 // for a connection; already logged
        std::uint64_t unconfirmed_frames = 0; // over all connections
        netio::Closed closed;                 // the last one
    };

    static netio::BufferedSendSocket::Options options(const SendArguments& arguments) {
        netio::BufferedSendSocket::Options options = arguments.sending;
        options.socket.local_host = arguments.local;
        options.socket.key = client_key(arguments.keys);
        options.socket.reconnect = arguments.reconnect;
        return options;
    }
    void go_on() {
        // A connection that is closing reports in on_closed what was confirmed.
        if (!socket_.is_connected()) return link_.waiting && is_all_sent() ? loop_.stop() : void();
        if (closing_) return;
        const auto given =
            supply_.give([this](std::span<const std::byte> message) { return send(message); },
                         [this] { socket_.flush(); });
        if (given == Supply::Given::all) close();
    }
    // Returns true if nothing is left to send.
    bool is_all_sent() const { return link_.connected && supply_.is_used_up(); }
    // Returns false if the message must be sent later.
    bool send(std::span<const std::byte> message) {
        const netio::Status status = socket_.send(message);
        if (status == netio::Status::too_large) {
            spdlog::error("a message of {} bytes is larger than the limit of {} bytes of {}",
                          message.size(), socket_.message_limit(), arguments_.peer);
            socket_.abort();
            closing_ = true;
        }
        return status == netio::Status::ok;
    }
    void close() {
        closing_ = true;
        supply_.stop();
        socket_.close();
    }

    void on_connected(netio::BufferedSendSocket&) override {
        link_.connected = true;
        link_.waiting = false;
        log_.info(fmt::format("connected to {} over {}", arguments_.peer, socket_.provider()));
        go_on();
    }
    void on_writable(netio::BufferedSendSocket&) override { go_on(); }
    void on_closed(netio::BufferedSendSocket&, const netio::Closed& closed) override {
        link_.unconfirmed_frames += closed.unconfirmed_frames;
        const bool attempt = socket_.is_retrying() && link_.waiting; // a further failed attempt
        if (!attempt) link_.closed = closed;
        if (!socket_.is_retrying() || is_all_sent()) return loop_.stop();
        if (!std::exchange(link_.waiting, true)) {
            log_.info(fmt::format("waiting for {}: {}", arguments_.peer, explain(closed)));
        }
    }
    void interrupt() {
        interrupted_ = true;
        if (!socket_.is_connected() || closing_) return socket_.abort();
        close();
    }

    const SendArguments& arguments_;
    netio::EventLoop loop_;
    LogObserver observer_{loop_};
    PeerLog log_{loop_};
    netio::DeviceWatch devices_{loop_};
    std::unique_ptr<netio::Transport> transport_;
    Supply supply_;
    Link link_;
    bool closing_ = false;
    bool interrupted_ = false;
    netio::BufferedSendSocket socket_;
    std::unique_ptr<MetricsServer> metrics_{show_metrics(loop_, arguments_.metrics, [this] {
        return [sender = SenderMetrics{.peer = arguments_.peer, .snapshot = socket_.snapshot()}](
                   Exposition& text) { write(sender, text); };
    })};
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { interrupt(); }};
};

} // namespace

Command add_send(CLI::App& program) {
    auto* command = program.add_subcommand(
        "send", "Send the lines of standard input, or generated messages, to a listen socket");
    const auto arguments = std::make_shared<SendArguments>();
    command->add_option("peer", arguments->peer, "HOST:PORT")->required();
    add_count(*command, "--messages", arguments->count,
              "Send this many generated messages instead of the lines of standard input");
    add_bytes(*command, "--size", arguments->bytes, "Size of each generated message in bytes",
              {.min = 1, .max = (1U << 30) - 1});
    using Socket = netio::SendSocket::Options;
    using Buffered = netio::BufferedSendSocket::Options;
    command->add_option(cli_flag<&Socket::local_host>(), arguments->local,
                        "Connect from this local address or interface");
    command->add_flag(cli_flag<&Socket::reconnect>(), arguments->reconnect,
                      "Wait for the listener, and reconnect after a lost connection");
    add_bytes(*command, cli_flag<&Buffered::page_size_bytes>(), arguments->sending.page_size_bytes,
              "Send at most this many bytes of messages together",
              {.min = 256, .max = (1U << 30) - 1});
    add_count(*command, cli_flag<&Buffered::page_count>(), arguments->sending.page_count,
              "Limit of pages that are queued or in flight", {.min = 2, .max = 1U << 20});
    Socket& socket = arguments->sending.socket;
    add_retry_times(*command, socket.retry_interval, socket.retry_limit);
    add_session_times(*command, socket.session);
    add_key(*command, arguments->keys);
    add_metrics(*command, arguments->metrics);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_json(*command, arguments->json);
    return [arguments] { return to_integer(SendRun{*arguments}.run()); };
}

} // namespace apps
