// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/copy.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/report.hpp"
#include "apps/copy/sender.hpp"
#include "apps/copy/served_folder.hpp"
#include "apps/copy/server.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/program/commands.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string_view>

namespace apps::copy {
namespace {

using Json = nlohmann::ordered_json;

std::string_view to_string(CopiedFile::Outcome outcome) {
    switch (outcome) {
    case CopiedFile::Outcome::copied:
        return "copied";
    case CopiedFile::Outcome::present:
        return "present";
    case CopiedFile::Outcome::failed:
        return "failed";
    }
    return "unknown";
}

std::string short_bytes(double bytes) {
    return short_number(bytes) + "B";
}

} // namespace

std::string to_json(const Report& report) {
    Json json;
    json["role"] = "copy";
    json["report_version"] = report_version;
    json["provider"] = report.provider;
    json["end"] = report.end;
    json["detail"] = report.detail;
    json["bytes"] = report.moved_bytes;
    json["seconds"] = report.seconds;
    json["gbit_per_s"] =
        Throughput{.bytes = report.moved_bytes, .seconds = report.seconds}.gbit_per_s();
    json["checksum"] = to_string(report.checksum);
    json["files"] = Json::array();
    for (const CopiedFile& file : report.files) {
        json["files"].push_back({{"path", file.path},
                                 {"outcome", to_string(file.outcome)},
                                 {"bytes", file.size_bytes},
                                 {"resumed_bytes", file.resumed_bytes},
                                 {"moved_bytes", file.moved_bytes},
                                 {"checksum", file.checksum},
                                 {"detail", file.detail}});
    }
    return json_line(json);
}

std::string to_json(const ServerReport& report) {
    Json json;
    json["role"] = "copy server";
    json["report_version"] = report_version;
    json["provider"] = report.provider;
    json["end"] = report.end;
    json["files"] = report.counters.files;
    json["bytes"] = report.counters.bytes;
    json["failures"] = report.counters.failures;
    return json_line(json);
}

std::string to_text(const Report& report) {
    const auto count = [&](CopiedFile::Outcome outcome) {
        return std::ranges::count(report.files, outcome, &CopiedFile::outcome);
    };
    std::string text =
        fmt::format("copy ({}): {}, {} of {} files copied",
                    report.provider.empty() ? "not connected" : report.provider, report.end,
                    count(CopiedFile::Outcome::copied), report.files.size());
    if (const auto present = count(CopiedFile::Outcome::present); present > 0)
        text += fmt::format(", {} already there", present);
    if (const auto failed = count(CopiedFile::Outcome::failed); failed > 0)
        text += fmt::format(", {} failed", failed);
    text += fmt::format(", {} bytes sent in {:.3f} s", report.moved_bytes, report.seconds);
    // Without bytes there is no rate to show.
    if (report.moved_bytes > 0 && report.seconds > 0)
        text += fmt::format(": {}/s",
                            short_bytes(static_cast<double>(report.moved_bytes) / report.seconds));
    return text + "\n";
}

std::string to_text(const ServerReport& report) {
    return fmt::format("copy server ({}): {}, {} files kept, {} bytes, {} failures\n",
                       report.provider, report.end, report.counters.files, report.counters.bytes,
                       report.counters.failures);
}

std::string to_text(const CopiedFile& file, ChecksumKind checksum) {
    if (file.outcome == CopiedFile::Outcome::failed) return file.path + ": " + file.detail;
    std::string text = fmt::format("{}: {} bytes, {} {}", file.path, file.size_bytes,
                                   to_string(checksum), file.checksum);
    if (file.outcome == CopiedFile::Outcome::present) text += ", already there";
    if (file.resumed_bytes > 0) text += fmt::format(", resumed at {}", file.resumed_bytes);
    const bool copied = file.outcome == CopiedFile::Outcome::copied;
    const std::uint64_t rest = file.size_bytes - file.resumed_bytes;
    if (copied && file.moved_bytes < rest)
        text += fmt::format(", sparse: {} bytes of data sent", file.moved_bytes);
    if (!file.detail.empty()) text += "; " + file.detail;
    return text;
}

std::string progress_line(const Sender::Progress& progress, double bytes_per_s) {
    constexpr std::size_t width = 30;
    const double share = progress.size_bytes == 0 ? 1.0
                                                  : static_cast<double>(progress.done_bytes) /
                                                        static_cast<double>(progress.size_bytes);
    const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
    std::string line = fmt::format(
        "{}  {:3.0f}% [{}{}] {} of {}  {}/s", progress.path, std::floor(share * 100),
        std::string(full, '='), std::string(width - full, ' '),
        short_bytes(static_cast<double>(progress.done_bytes)),
        short_bytes(static_cast<double>(progress.size_bytes)), short_bytes(bytes_per_s));
    if (bytes_per_s > 0) {
        const auto left = static_cast<double>(progress.size_bytes - progress.done_bytes);
        line += fmt::format("  {:.0f} s left", std::ceil(left / bytes_per_s));
    }
    return line;
}

// netio copy: sends files to a copy server, or runs as that server.

namespace {

// Options of the connection.
struct WayArguments {
    std::string provider = "auto";
    netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
};

struct Place {
    std::string address = "127.0.0.1:12346";
    bool allow_remote_anonymous = false; // other machines may reach it
    MetricsArguments metrics;
};

struct Arguments {
    std::vector<std::string> files_and_destination;
    std::string serve;
    Place listen;
    std::string local;
    KeyArguments keys;
    WayArguments way;
    std::size_t buffers = Sender::Options{}.buffer_count;
    std::size_t senders = Server::Options{}.sender_limit_count;
    std::uint64_t least_rate = Session::Options{}.least_bytes_per_s;
    double idle_limit_s = 60;
    double retry_for_s = 60;
    std::size_t senders_per_host = Server::Options{}.host_limit_count;
    bool overwrite = false;
    TargetFile::Access access = TargetFile::Access::full; // of senders to existing files
    ChecksumKind checksum = ChecksumKind::xxh3_128;
    bool json = false;
    bool progress = false;
};

// --- the sender -----------------------------------------------------------------------------

// HOST:PORT[/FOLDER]
Sender::Options sender_options(const Arguments& arguments) {
    const std::string& destination = arguments.files_and_destination.back();
    const std::size_t slash = std::min(destination.find('/'), destination.size());
    std::string folder = destination.substr(slash);
    folder.erase(0, folder.find_first_not_of('/'));
    folder.erase(folder.find_last_not_of('/') + 1);
    Sender::Options options{
        .server = peer_address(destination.substr(0, slash)),
        .local_host = arguments.local,
        .key = client_key(arguments.keys),
        .files = {},
        .checksum = arguments.checksum,
        .overwrite = arguments.overwrite,
        .buffer_count = arguments.buffers,
        .full_timeout = std::chrono::milliseconds{std::llround(arguments.retry_for_s * 1000)},
        .pause_seed = std::random_device{}(),
        .remote_writes = arguments.way.remote_writes};
    std::set<std::string> names;
    for (const std::string& path : std::span{arguments.files_and_destination}.first(
             arguments.files_and_destination.size() - 1)) {
        const std::string leaf = std::filesystem::path{path}.filename();
        const std::string name = folder.empty() ? leaf : fmt::format("{}/{}", folder, leaf);
        std::string flaw; // of this file; the others are copied
        if (const PathFlaw of_path = check_path(name); of_path != PathFlaw::none) {
            flaw = fmt::format("its name at the server, '{}', {}", name, to_string(of_path));
        } else if (!names.insert(name).second) {
            flaw = fmt::format("another of these files is also called {}", leaf);
        }
        options.files.push_back({.path = path, .name = name, .flaw = flaw});
    }
    return options;
}

class SendRun final : private Sender::Handler {
  public:
    SendRun(netio::EventLoop& loop, netio::Transport& transport, const Arguments& arguments)
        : loop_{loop}, arguments_{arguments}, terminal_{::isatty(STDOUT_FILENO) == 1},
          display_timer_{loop, [this] { show(); }},
          signals_{loop, end_signals(),
                   [this](int) {
                       if (interrupted_) return loop_.stop(); // the second signal does not wait
                       interrupted_ = true;
                       sender_.stop();
                   }},
          sender_{loop, transport, sender_options(arguments), *this} {}

    int run();

  private:
    void show();
    void clear_line();
    void on_file(const CopiedFile& file) override;
    void on_waiting(const std::string& why) override;
    void on_finished(const std::string& problem) override;

    netio::EventLoop& loop_;
    const Arguments& arguments_;
    bool terminal_;
    bool shown_ = false;
    bool interrupted_ = false;
    Report report_;
    std::uint64_t shown_bytes_ = 0;
    netio::TimePoint shown_at_;
    netio::Timer display_timer_;
    netio::SignalWatch signals_; // constructed before the sender's thread starts
    Sender sender_;
};

int SendRun::run() {
    report_.checksum = arguments_.checksum;
    const netio::TimePoint begin = netio::Clock::now();
    shown_at_ = begin;
    const bool shows = arguments_.progress || (terminal_ && !arguments_.json);
    if (shows) display_timer_.start(std::chrono::seconds{1});
    sender_.start();
    loop_.run();
    clear_line();
    report_.seconds = std::chrono::duration<double>(netio::Clock::now() - begin).count();
    report_.provider = sender_.provider();
    report_.moved_bytes = sender_.progress().moved_bytes;
    for (const Sender::File& file : sender_.left())
        report_.files.push_back({.path = file.path, .detail = "not tried"});
    const bool all_well = report_.detail.empty() && !interrupted_ &&
                          std::ranges::none_of(report_.files, [](const CopiedFile& file) {
                              return file.outcome == CopiedFile::Outcome::failed;
                          });
    report_.end = interrupted_ ? "interrupted" : all_well ? "finished" : "failed";
    print_report(arguments_.json ? to_json(report_) + "\n" : to_text(report_));
    return all_well ? 0 : 1;
}

void SendRun::show() {
    const Sender::Progress progress = sender_.progress();
    const double seconds = std::chrono::duration<double>(loop_.now() - shown_at_).count();
    const double speed =
        seconds > 0 ? static_cast<double>(progress.moved_bytes - shown_bytes_) / seconds : 0;
    if (!progress.path.empty()) {
        const std::string line = progress_line(progress, speed);
        if (arguments_.progress) {
            spdlog::info("progress {}", line);
        } else {
            shown_ = put_on_terminal(in_its_place(line, terminal_columns())) || shown_;
        }
    }
    shown_bytes_ = progress.moved_bytes;
    shown_at_ = loop_.now();
    display_timer_.start(std::chrono::seconds{1});
}

void SendRun::clear_line() {
    if (shown_) put_on_terminal("\r\x1b[K");
    shown_ = false;
}

void SendRun::on_file(const CopiedFile& file) {
    clear_line();
    if (file.outcome == CopiedFile::Outcome::failed) {
        spdlog::error("{}", to_text(file, report_.checksum));
    } else {
        spdlog::info("{}", to_text(file, report_.checksum));
    }
    report_.files.push_back(file);
}

void SendRun::on_waiting(const std::string& why) {
    clear_line();
    spdlog::info("{}; trying again for {} s (--retry-for)", why, arguments_.retry_for_s);
}

void SendRun::on_finished(const std::string& problem) {
    report_.detail = problem;
    if (!problem.empty()) spdlog::error("{}", problem);
    loop_.stop();
}

int send(const Arguments& arguments) {
    netio::EventLoop loop;
    const LogObserver observer{loop};
    const netio::DeviceWatch devices{loop};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.way.provider});
    SendRun run{loop, *transport, arguments};
    return run.run();
}

// --- the server -----------------------------------------------------------------------------

std::function<void(Exposition&)> metrics_of(const Server& server) {
    return [counters = server.counters(), senders = server.sender_count()](Exposition& text) {
        text.counter("netio_copy_files_total", "Files that are complete, under their final names")
            .add(counters.files);
        text.counter("netio_copy_bytes_total",
                     "Bytes transferred, including those of unfinished files")
            .add(counters.bytes);
        text.counter("netio_copy_failures_total", "Files that failed").add(counters.failures);
        text.gauge("netio_copy_senders", "Senders that are connected").add(std::uint64_t{senders});
    };
}

int serve(const Arguments& arguments) {
    netio::EventLoop loop;
    const LogObserver observer{loop};
    const netio::DeviceWatch devices{loop};
    std::function<void()> interrupt; // the second signal does not wait
    // Constructed before any thread, and threads start when a sender connects.
    const netio::SignalWatch signals{
        loop, end_signals(), [&](int) { std::exchange(interrupt, [&] { loop.stop(); })(); }};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.way.provider});
    const auto keys =
        server_keys(loop, permitting(arguments.keys,
                                     std::max(arguments.senders_per_host, arguments.senders / 2)));
    ServerReport report;
    {
        Server server{loop,
                      *transport,
                      {.folder = arguments.serve,
                       .listen = {netio::parse_address(arguments.listen.address)},
                       .allow_remote_anonymous = arguments.listen.allow_remote_anonymous,
                       .keys = keys,
                       .sender_limit_count = arguments.senders,
                       .host_limit_count = arguments.senders_per_host,
                       .session = {.buffer_count = arguments.buffers,
                                   .idle_limit = std::chrono::milliseconds{std::llround(
                                       arguments.idle_limit_s * 1000)},
                                   .least_bytes_per_s = arguments.least_rate,
                                   .access = arguments.access,
                                   .remote_writes = arguments.way.remote_writes}}};
        tell_listening(server.endpoints());
        for (const auto& endpoint : server.endpoints()) {
            if (report.provider.find(endpoint.provider) != std::string::npos) continue;
            report.provider += (report.provider.empty() ? "" : "+") + endpoint.provider;
        }
        const auto metrics = show_metrics(loop, arguments.listen.metrics,
                                          with_gate(keys, [&] { return metrics_of(server); }));
        std::uint64_t shown_bytes = 0;
        netio::Timer display{loop, [&] {
                                 const std::uint64_t bytes = server.counters().bytes;
                                 spdlog::info("progress {:.3f} Gb/s  {} senders  {} files",
                                              static_cast<double>(bytes - shown_bytes) * 8e-9,
                                              server.sender_count(), server.counters().files);
                                 shown_bytes = bytes;
                                 display.start(std::chrono::seconds{1});
                             }};
        if (arguments.progress) display.start(std::chrono::seconds{1});
        interrupt = [&] { server.end([&] { loop.stop(); }); };
        loop.run();
        report.end = "interrupted";
        report.counters = server.counters();
    }
    print_report(arguments.json ? to_json(report) + "\n" : to_text(report));
    return 0;
}

int run(const Arguments& arguments) {
    // Exceeding the file size limit is an error of the write and does not end the program.
    std::signal(SIGXFSZ, SIG_IGN);
    if (!arguments.serve.empty()) {
        if (!arguments.files_and_destination.empty()) {
            throw std::invalid_argument{"--serve takes no files; the senders name them"};
        }
        return serve(arguments);
    }
    if (arguments.files_and_destination.size() < 2) {
        throw std::invalid_argument{
            "a file and a destination are required; usage: netio copy FILE... "
            "HOST:PORT[/FOLDER], or netio copy --serve FOLDER"};
    }
    return send(arguments);
}

Command add(CLI::App& program) {
    auto* command = program.add_subcommand("copy", "Copy files to another machine");
    const auto arguments = std::make_shared<Arguments>();
    command->add_option("files", arguments->files_and_destination,
                        "FILE... HOST:PORT[/FOLDER]; the folder is relative to the served one");
    auto* serve = command->add_option("--serve", arguments->serve,
                                      "Receive files into this folder until Ctrl-C");
    command->add_option("--listen", arguments->listen.address, "Listen at HOST:PORT")
        ->capture_default_str()
        ->needs(serve);
    add_allow_remote_anonymous(*command, arguments->listen.allow_remote_anonymous)->needs(serve);
    add_metrics(*command, arguments->listen.metrics)->needs(serve);
    add_count(*command, "--senders", arguments->senders, "Limit of connected senders",
              {.min = 1, .max = 1024})
        ->needs(serve);
    add_count(*command, "--senders-per-host", arguments->senders_per_host,
              "Limit of connected senders per host; 0: half of --senders", {.min = 0, .max = 1024})
        ->needs(serve);
    add_seconds(*command, "--idle-limit", arguments->idle_limit_s,
                "Abort a sender that has sent nothing for this long", Zero::refused)
        ->needs(serve);
    add_bytes(*command, "--least-rate", arguments->least_rate,
              "Abort a sender that was slower than this many bytes per second in that time",
              {.min = 0, .max = std::uint64_t{1} << 40U})
        ->needs(serve);
    command
        ->add_flag_callback(
            "--no-overwrite",
            [arguments] {
                if (arguments->access == TargetFile::Access::full)
                    arguments->access = TargetFile::Access::no_overwrite;
            },
            "Never replace existing files, even if a sender requests it")
        ->needs(serve);
    command
        ->add_flag_callback(
            "--write-only", [arguments] { arguments->access = TargetFile::Access::write_only; },
            "Also hide the contents of existing files from senders, and do not resume partial "
            "files")
        ->needs(serve);
    command->add_flag("--overwrite", arguments->overwrite, "Replace existing files at the server")
        ->excludes(serve);
    command
        ->add_flag_callback(
            "--sha256", [arguments] { arguments->checksum = ChecksumKind::sha256; },
            "Use SHA-256 instead of XXH3 for the checksum of the whole file")
        ->excludes(serve);
    add_seconds(*command, "--retry-for", arguments->retry_for_s,
                "Retry for this long while the server is full; 0: do not retry", Zero::taken)
        ->excludes(serve);
    command
        ->add_option(cli_flag<&netio::stream::StreamSocket::Options::local_host>(),
                     arguments->local, "Connect from this local address")
        ->excludes(serve);
    add_key(*command, arguments->keys);
    add_keys(*command, arguments->keys);
    add_count(*command, "--buffers", arguments->buffers, "Number of 1 MiB buffers per connection",
              {.min = 2, .max = 256});
    add_provider(*command, arguments->way.provider)->capture_default_str();
    add_remote_writes(*command, arguments->way.remote_writes);
    add_progress(*command, arguments->progress);
    add_json(*command, arguments->json);
    return [arguments] { return run(*arguments); };
}

} // namespace
} // namespace apps::copy

apps::Command apps::add_copy(CLI::App& program) {
    return copy::add(program);
}
