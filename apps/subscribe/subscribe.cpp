// SPDX-License-Identifier: Apache-2.0

// netio subscribe: receives fids, counts, verifies or records them.

#include "apps/common/log_observer.hpp"
#include "apps/common/option_values.hpp"
#include "apps/common/session_values.hpp"
#include "apps/program/commands.hpp"
#include "apps/subscribe/policy_words.hpp"
#include "apps/subscribe/subscribe_run.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace apps {
namespace subscribe {
namespace {

ExitStatus run(const Arguments& arguments) {
    const netio::LoopMode mode = arguments.loop == "busy"       ? netio::LoopMode::busy
                                 : arguments.loop == "adaptive" ? netio::LoopMode::adaptive
                                                                : netio::LoopMode::blocking;
    netio::EventLoop loop{{.mode = mode}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    const LogObserver observer{loop};
    const netio::DeviceWatch devices{loop};
    Run run{loop, *transport, arguments};
    return run.run();
}

void add_reading(CLI::App& command, Arguments::Reading& reading) {
    auto* const verify = command.add_flag("--verify", reading.verify,
                                          "Check pattern messages for loss, order, duplicates and "
                                          "corruption, and tell how long those with a time took");
    add_count(command, "--header-bytes", reading.header_bytes,
              "With --verify: so many bytes in front of each pattern are not looked at",
              {.min = 0, .max = 4096})
        ->needs(verify);
    add_duration(command, "--think", reading.think, "Be slow: take so long for each message");
    add_count(
        command, "--prescale", reading.prescale,
        "Record, and --think over, the first message of each fid and then every N-th; all are "
        "counted and verified",
        {.min = 1, .max = UINT32_MAX});
    command
        .add_option_function<std::string>(
            "--pause",
            [&reading](const std::string& word) {
                if (!parse_pause(word, reading.slowness))
                    throw CLI::ValidationError{
                        "--pause", fmt::format("'{}'; allowed: {}", word, pause_spelling)};
            },
            "Be slow: read nothing for so long, once in so long (500ms@10s)")
        ->type_name("TIME@TIME");
}

// Where both are given, the last one counts.
void add_recording(CLI::App& command, Arguments& arguments) {
    auto* const output = command.add_option("--output", arguments.output,
                                            "Write the messages of each fid to a file in this "
                                            "folder, which holds no recording of them yet");
    const auto existing = [&](const char* name, Existing value, const char* help) {
        command
            .add_flag_callback(
                name, [&arguments, value] { arguments.existing = value; }, help)
            ->needs(output);
    };
    existing("--append", Existing::append, "Go on behind the recordings that are there");
    existing("--overwrite", Existing::overwrite, "Replace the recordings that are there");
}

} // namespace
} // namespace subscribe

Command add_subscribe(CLI::App& program) {
    using subscribe::Arguments;
    auto* command = program.add_subcommand("subscribe", "Receive what a publisher publishes");
    const auto arguments = std::make_shared<Arguments>();
    auto* const publishers = command->add_option("publisher", arguments->from.publishers,
                                                 "HOST:PORT; several are asked for all fids");
    auto* const bus = add_bus(*command, arguments->from.bus);
    command->callback([publishers, bus] {
        if (publishers->empty() && bus->empty()) {
            throw CLI::RequiredError{"publisher or --bus"};
        }
    });
    command->add_flag("--reconnect", arguments->from.reconnect,
                      "Come back when a publisher was lost, and tell what was missed");
    command
        ->add_option("--fid", arguments->fids.wanted,
                     "A fid in decimal or hex, a range A-B, or a comma list; may be repeated")
        ->required();
    add_count(*command, "--messages", arguments->messages, "End after so many, all fids together");
    add_duration(*command, "--duration", arguments->duration, "End so long after the start");
    subscribe::add_reading(*command, arguments->reading);
    subscribe::add_recording(*command, *arguments);
    command
        ->add_option("--policy", arguments->policy,
                     "When this subscriber is slow: block, drop, disconnect, or newest (of a "
                     "buffered publisher); never one that holds the publisher up more than its own")
        ->check(one_of({subscribe::policy_words.begin(), subscribe::policy_words.end()}));
    command->add_option("--local", arguments->local, "Local address to connect from");
    add_receive_buffers(*command, arguments->socket.session);
    add_buffer_limit(*command, arguments->socket.receive_bytes_limit);
    add_largest_message(*command, arguments->socket.largest_message_bytes);
    add_session_times(*command, arguments->socket.session);
    add_retry_times(*command, arguments->socket.retry_interval, arguments->socket.retry_limit);
    add_count(*command, "--fid-limit", arguments->socket.fid_limit,
              "Fids that have an account; a publisher that sends more of them is left",
              {.min = 1, .max = 1U << 30});
    add_key(*command, arguments->key);
    add_decoding(*command, arguments->fids.decode);
    add_metrics(*command, arguments->metrics);
    add_provider(*command, arguments->provider)->capture_default_str();
    command->add_option("--loop", arguments->loop, "blocking, busy or adaptive")
        ->capture_default_str()
        ->check(one_of({"blocking", "busy", "adaptive"}));
    command->add_flag("--progress", arguments->progress, "Log what moves, once a second");
    command->add_flag("--json", arguments->json, "One JSON object as the last line of output");
    return [arguments] { return to_integer(subscribe::run(*arguments)); };
}

} // namespace apps
