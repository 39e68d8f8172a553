// SPDX-License-Identifier: Apache-2.0

// The program netio: sub-commands, logging, exit status.

#include "apps/common/exit_status.hpp"
#include "apps/common/standard_error.hpp"
#include "apps/program/command_line.hpp"
#include "apps/program/commands.hpp"
#include "apps/program/program_log.hpp"
#include "netio/base/version.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// A descriptor that is closed here would be given to the next socket, and what is printed would go
// there. What stands in for it refuses to be written, so that a lost report is an error as before.
void keep_standard_descriptors() {
    for (int descriptor = 0; descriptor <= 2; ++descriptor) {
        if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) != descriptor)
            std::_Exit(apps::to_integer(apps::ExitStatus::failed));
    }
}

// A connection costs a few descriptors; what the system grants is taken.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        spdlog::warn("the limit of open descriptors stays at its default");
    }
}

} // namespace

int main(int argc, char** argv) {
    keep_standard_descriptors();
    apps::add_etcd_bus();
    // A file that may not grow further is an error of the write, with a name and a report.
    std::signal(SIGXFSZ, SIG_IGN);
    CLI::App program{"Publish/subscribe data acquisition over libfabric", "netio"};
    program.set_version_flag("--version", std::string{"netio "} + netio::version() +
                                              " (netio info tells the libfabric that it finds)");
    program.require_subcommand(1);
    std::vector<std::pair<std::string, apps::Command>> commands;
    commands.emplace_back("publish", apps::add_publish(program));
    commands.emplace_back("subscribe", apps::add_subscribe(program));
    commands.emplace_back("pump", apps::add_pump(program));
    commands.emplace_back("cat", apps::add_cat(program));
    commands.emplace_back("copy", apps::add_copy(program));
    commands.emplace_back("dump", apps::add_dump(program));
    commands.emplace_back("info", apps::add_info(program));
    commands.emplace_back("doctor", apps::add_doctor(program));
    commands.emplace_back("key", apps::add_key(program));
    commands.emplace_back("list", apps::add_list(program));
    commands.emplace_back("listen", apps::add_listen(program));
    commands.emplace_back("send", apps::add_send(program));
    commands.emplace_back("top", apps::add_top(program));
    apps::LogArguments log_arguments;
    for (CLI::App* const command : program.get_subcommands({}))
        apps::add_log(*command, log_arguments);
    std::optional<apps::ProgramLog> log;
    try {
        if (const auto status = apps::parse_command_line(program, argc, argv))
            return to_integer(*status);
        log.emplace(log_arguments);
    } catch (const std::exception& error) {
        apps::tell_standard_error(fmt::format("netio: {}\n", error.what()));
        return to_integer(apps::ExitStatus::failed);
    }
    try {
        raise_descriptor_limit();
        for (const auto& [name, run] : commands) {
            if (program.got_subcommand(name)) return run();
        }
    } catch (const std::invalid_argument& error) { // a word, which has been looked at only now
        spdlog::error("{}", error.what());
        return to_integer(apps::ExitStatus::wrong_usage);
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
    }
    return to_integer(apps::ExitStatus::failed);
}
