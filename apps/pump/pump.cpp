// SPDX-License-Identifier: Apache-2.0

// netio pump: the command line of the stream benchmark.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/program/commands.hpp"
#include "apps/pump/end.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

namespace apps::pump {
namespace {

// How many bytes are transferred, in what sizes.
struct LoadArguments {
    std::uint64_t bytes = 1 << 30;
    std::size_t size = 64 * 1024;
    std::size_t size_min = 0;
    std::size_t sends = Settings{}.sends;
    std::size_t receives = Settings{}.receives;
    std::size_t receive_size = 0;
    std::size_t receive_size_min = 0;
    std::uint64_t seed = 1;
    bool wait_all = false;
    bool bidirectional = false;
    bool verify = false;
};

struct ServerArguments {
    bool serve = false;
    bool once = false;
    std::string listen = "127.0.0.1:12350";
    bool allow_remote_anonymous = false;
    std::size_t clients = Server::Options{}.client_limit_count;
    std::size_t clients_per_host = Server::Options{}.host_limit_count;
    std::size_t memory = Server::Options{}.settings.memory_limit_bytes;
    double idle_limit_s = 60;
    MetricsArguments metrics;
};

struct OutputArguments {
    bool progress = false;
    bool json = false;
};

// The variant of the protocol.
struct VariantArguments {
    std::uint64_t ring = 1 << 20;
    std::optional<std::uint64_t> ring_limit;
    std::size_t window_limit = netio::SessionOptions{}.window_limit;
    std::string mode = "dynamic";
    std::string policy = "improved";
    std::string notify = "immediate";
    netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
};

struct Arguments {
    std::string server; // empty: be one
    ServerArguments serving;
    LoadArguments load;
    VariantArguments variant;
    std::string provider = "auto";
    netio::LoopMode loop = netio::LoopMode::blocking;
    OutputArguments output;
    KeyArguments keys;
};

// The baselines of the study keep the configured ring size unless --ring-limit is given.
std::uint64_t ring_limit_bytes(const Arguments& arguments) {
    if (!arguments.variant.ring_limit) {
        return arguments.variant.mode == "dynamic"
                   ? netio::stream::StreamSocket::Options{}.receiver.ring_limit_bytes
                   : 0;
    }
    if (arguments.variant.policy == "published" || arguments.variant.mode == "direct") {
        throw std::invalid_argument{"--ring-limit has no effect: with --policy published the ring "
                                    "does not grow, and with --mode direct there is no ring"};
    }
    return *arguments.variant.ring_limit;
}

netio::stream::StreamSocket::Options stream_options(const Arguments& arguments) {
    netio::stream::StreamSocket::Options options;
    options.receiver =
        netio::stream::improved_receiver(arguments.variant.ring, ring_limit_bytes(arguments));
    if (arguments.variant.policy == "published")
        options = netio::stream::published_stream(arguments.variant.ring);
    if (arguments.variant.mode == "indirect") {
        options.sender.mode = options.receiver.mode = netio::stream::TransferMode::indirect_only;
    } else if (arguments.variant.mode == "direct") {
        options.sender.mode = options.receiver.mode = netio::stream::TransferMode::direct_only;
        options.receiver.ring_bytes = 0;
        options.receiver.ack_threshold_bytes = options.receiver.advert_threshold_bytes = 0;
    }
    options.session.window_limit = arguments.variant.window_limit;
    options.session.never_immediate = arguments.variant.notify == "frames";
    options.remote_writes = arguments.variant.remote_writes;
    return options;
}

// Checks the arguments before connecting or listening.
const Arguments& checked(const Arguments& arguments) {
    validate(stream_options(arguments));
    return arguments;
}

Settings settings_of(const Arguments& arguments) {
    return {.stream = stream_options(arguments),
            .sends = arguments.load.sends,
            .receives = arguments.load.receives,
            .receive_size_min = arguments.load.receive_size_min,
            .receive_size_max = arguments.load.receive_size,
            .wait_all = arguments.load.wait_all};
}

std::string text_of(const End& end, bool json) {
    if (!json) return as_text(end.report());
    nlohmann::ordered_json report = end.report();
    report["error"] = end.error();
    return json_line(report) + "\n";
}

int run_client(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport) {
    const Header header{.bytes = arguments.load.bytes,
                        .seed = arguments.load.seed,
                        .size_min = arguments.load.size_min != 0 ? arguments.load.size_min
                                                                 : arguments.load.size,
                        .size_max = arguments.load.size,
                        .verify = arguments.load.verify,
                        .bidirectional = arguments.load.bidirectional};
    Settings settings = settings_of(arguments);
    settings.stream.key = client_key(arguments.keys);
    End end{loop,     transport, peer_address(arguments.server),
            settings, header,    [&](End&) { loop.stop(); }};
    const netio::SignalWatch signals{loop, end_signals(), [&](int) { end.interrupt(); }};
    const auto metrics = show_metrics(loop, arguments.serving.metrics, [&] {
        return [stream = end.metrics(arguments.server)](Exposition& text) {
            write(std::span{&stream, 1}, text);
        };
    });
    {
        const LiveDisplay display{
            loop, live_form(arguments.output.json, arguments.output.progress), [&] {
                return LiveDisplay::Sums{.messages = 0, .bytes = end.moved_bytes(), .lost = {}};
            }};
        loop.run();
    }
    if (!end.error().empty()) spdlog::error("{}", end.error());
    print_report(text_of(end, arguments.output.json));
    return end.error().empty() ? 0 : 1;
}

std::function<void(Exposition&)> metrics_of(const Server& server) {
    return [counters = server.counters(), clients = server.client_count(),
            streams = server.metrics()](Exposition& text) {
        text.counter("netio_pump_bytes_total", "Bytes transferred in either direction")
            .add(counters.bytes);
        text.counter("netio_pump_ended_total", "Clients that have disconnected")
            .add(counters.ended);
        text.counter("netio_pump_failures_total", "Clients that ended with an error")
            .add(counters.failures);
        text.gauge("netio_pump_clients", "Clients that are connected").add(std::uint64_t{clients});
        write(streams, text);
    };
}

// Runs until a signal, or with --once until the first client has ended. With --once the server's
// exit status is that client's result, and a signal before it is a failure. Otherwise clients do
// not affect it.
int run_server(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport) {
    const ServerArguments& serving = arguments.serving;
    int status = 0;
    Settings settings = settings_of(checked(arguments));
    settings.memory_limit_bytes = serving.memory;
    settings.idle_limit = std::chrono::milliseconds{std::llround(serving.idle_limit_s * 1000)};
    const auto keys = server_keys(
        loop, permitting(arguments.keys, std::max(serving.clients_per_host, serving.clients / 2)));
    std::uint64_t left_out = 0; // reports lost because standard output is blocked
    ShownLines lines{
        loop, [&] {
            if (const auto count = std::exchange(left_out, 0); count > 0)
                spdlog::warn("standard output is blocked: {} reports of clients are lost", count);
        }};
    Server server{loop,
                  transport,
                  {.listen = {netio::parse_address(serving.listen)},
                   .allow_remote_anonymous = serving.allow_remote_anonymous,
                   .keys = keys,
                   .client_limit_count = serving.clients,
                   .host_limit_count = serving.clients_per_host,
                   .settings = settings},
                  [&](const End& end) {
                      if (lines.is_full()) {
                          ++left_out;
                      } else {
                          lines.print(text_of(end, arguments.output.json));
                      }
                      if (!serving.once) return;
                      status = end.error().empty() ? 0 : 1;
                      loop.stop();
                  }};
    bool interrupted = false;
    const netio::SignalWatch signals{loop, end_signals(), [&](int) {
                                         if (std::exchange(interrupted, true))
                                             return loop.stop(); // the second signal does not wait
                                         if (serving.once) status = 1;
                                         if (serving.once && server.client_count() == 0)
                                             spdlog::error(
                                                 "interrupted before a client has connected");
                                         server.interrupt([&] { loop.stop(); });
                                     }};
    const netio::DeviceWatch devices{loop};
    tell_listening(server.endpoints());
    const auto metrics =
        show_metrics(loop, serving.metrics, with_gate(keys, [&] { return metrics_of(server); }));
    loop.run();
    lines.finish();
    if (left_out > 0)
        spdlog::warn("standard output is blocked: {} reports of clients are lost", left_out);
    return status;
}

int run(const Arguments& arguments) {
    netio::EventLoop loop{{.mode = arguments.loop}};
    const LogObserver observer{loop};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    if (!arguments.serving.serve) return run_client(arguments, loop, *transport);
    return run_server(arguments, loop, *transport);
}

void add_sizes(CLI::App& command, Arguments& arguments) {
    LoadArguments& load = arguments.load;
    const Limits total{.min = 0, .max = std::uint64_t{1} << 62U};
    const Limits receive{.min = 0, .max = std::uint64_t{1} << 45U};
    const Limits one_message{.min = 1, .max = size_limit_bytes};
    const Limits ring{.min = 0, .max = std::uint64_t{1} << 40U};
    add_bytes(command, "--bytes", load.bytes, "Total number of bytes to send, also as 20g", total);
    add_bytes(command, "--size", load.size, "Size of a send in bytes", one_message);
    add_bytes(command, "--size-min", load.size_min, "Use random send sizes from this to --size",
              {.min = 0, .max = size_limit_bytes});
    add_bytes(command, "--receive-size", load.receive_size,
              "Size of a receive in bytes; 0: as large as a send", receive);
    add_bytes(command, "--receive-size-min", load.receive_size_min,
              "Use random receive sizes from this on", receive);
    add_bytes(command, cli_flag<&netio::stream::ReceiverOptions::ring_bytes>(),
              arguments.variant.ring, "Size of this side's ring in bytes", ring);
    add_bytes(
        command, cli_flag<&netio::stream::ReceiverOptions::ring_limit_bytes>(),
        arguments.variant.ring_limit,
        "Let the ring grow up to this many bytes if round trips are long; as --ring: do not grow",
        ring);
    add_bytes(command, cli_flag<&netio::SessionOptions::window_limit>(),
              arguments.variant.window_limit,
              "Let receive buffers grow up to this many bytes if round trips are long and bytes "
              "are sent in frames; 0: do not grow",
              ring);
}

void check_sizes(const LoadArguments& load) {
    require_order("--size-min", load.size_min, "--size", load.size);
    if (load.receive_size == 0) return; // receives have the size of the sends
    require_order("--receive-size-min", load.receive_size_min, "--receive-size", load.receive_size);
}

// Limits for the clients of a server.
void add_limits(CLI::App& command, ServerArguments& serving, CLI::Option* serve) {
    add_count(command, "--clients", serving.clients, "Limit of connected clients",
              {.min = 1, .max = 1024})
        ->needs(serve);
    add_count(command, "--clients-per-host", serving.clients_per_host,
              "Limit of connected clients per host; 0: half of --clients", {.min = 0, .max = 1024})
        ->needs(serve);
    add_bytes(command, "--memory", serving.memory,
              "Limit of the server's buffers for one client in bytes",
              {.min = std::size_t{1} << 16U, .max = std::size_t{1} << 40U})
        ->needs(serve);
    add_seconds(command, "--idle-limit", serving.idle_limit_s,
                "Abort a client of the server if no byte was transferred for this long",
                Zero::refused)
        ->needs(serve);
}

Command add(CLI::App& program) {
    auto* command = program.add_subcommand(
        "pump", "Send a byte stream to a server at full speed, and measure or verify it");
    const auto arguments = std::make_shared<Arguments>();
    auto* const server = command->add_option("server", arguments->server, "HOST:PORT");
    auto* const serve = command->add_flag("--serve", arguments->serving.serve, "Run as the server");
    serve->excludes(server);
    command
        ->add_option("--listen", arguments->serving.listen,
                     "HOST:PORT where the server listens; port 0: any free port")
        ->capture_default_str()
        ->needs(serve);
    add_allow_remote_anonymous(*command, arguments->serving.allow_remote_anonymous)->needs(serve);
    add_metrics(*command, arguments->serving.metrics);
    command->add_flag("--once", arguments->serving.once, "Serve one client, and end")->needs(serve);
    add_limits(*command, arguments->serving, serve);
    add_key(*command, arguments->keys);
    add_keys(*command, arguments->keys);
    add_sizes(*command, *arguments);
    const Limits count{.min = 1, .max = 1024};
    add_count(*command, "--sends", arguments->load.sends, "Number of outstanding sends", count);
    add_count(*command, "--receives", arguments->load.receives,
              "Number of outstanding receives on this side", count);
    command->add_flag("--wait-all", arguments->load.wait_all,
                      "Complete receives only when they are full");
    command->add_option("--mode", arguments->variant.mode, "dynamic, direct or indirect")
        ->capture_default_str()
        ->check(one_of({"dynamic", "direct", "indirect"}));
    command
        ->add_option("--policy", arguments->variant.policy,
                     "Policy of the protocol: improved, or published (as in the 2014 study)")
        ->capture_default_str()
        ->check(one_of({"improved", "published"}));
    command
        ->add_option("--notify", arguments->variant.notify,
                     "Notify the peer of writes by immediate data or by frames")
        ->capture_default_str()
        ->check(one_of({"immediate", "frames"}));
    add_remote_writes(*command, arguments->variant.remote_writes);
    command->add_flag("--bidirectional", arguments->load.bidirectional,
                      "Let the server send the same number of bytes back");
    command->add_flag("--verify", arguments->load.verify, "Check every byte");
    add_count(*command, "--seed", arguments->load.seed, "Seed of random sizes and of the bytes",
              {.min = 0});
    add_provider(*command, arguments->provider)->capture_default_str();
    add_loop(*command, arguments->loop);
    add_progress(*command, arguments->output.progress);
    command->add_flag("--json", arguments->output.json, "Print one JSON object per connection");
    return [arguments] {
        check_sizes(arguments->load);
        if (!arguments->serving.serve && arguments->server.empty()) {
            throw std::invalid_argument{"netio pump needs the server's HOST:PORT, or --serve"};
        }
        return run(*arguments);
    };
}

} // namespace
} // namespace apps::pump

apps::Command apps::add_pump(CLI::App& program) {
    return pump::add(program);
}
