// SPDX-License-Identifier: Apache-2.0

// The program netio: sub-commands, logging, exit status.

#include "apps/program/commands.hpp"
#include "netio/base/version.hpp"
#include "netio/fabric.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <sys/resource.h>

#include <exception>
#include <utility>
#include <vector>

namespace {

constexpr int status_failed = 1;

void log_to_standard_error() {
    spdlog::set_default_logger(spdlog::stderr_color_mt("netio"));
    spdlog::set_pattern("%H:%M:%S.%e %^%l%$ %v");
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
    log_to_standard_error();
    raise_descriptor_limit();
    CLI::App program{"Publish/subscribe data acquisition over libfabric", "netio"};
    program.set_version_flag("--version", std::string{"netio "} + netio::version() +
                                              ", libfabric " + netio::fabric_version());
    program.require_subcommand(1);
    std::vector<std::pair<std::string, apps::Command>> commands;
    commands.emplace_back("publish", apps::add_publish(program));
    commands.emplace_back("subscribe", apps::add_subscribe(program));
    commands.emplace_back("pump", apps::add_pump(program));
    commands.emplace_back("cat", apps::add_cat(program));
    commands.emplace_back("copy", apps::add_copy(program));
    commands.emplace_back("info", apps::add_info(program));
    commands.emplace_back("doctor", apps::add_doctor(program));
    CLI11_PARSE(program, argc, argv);
    try {
        for (const auto& [name, run] : commands) {
            if (program.got_subcommand(name)) return run();
        }
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
    }
    return status_failed;
}
