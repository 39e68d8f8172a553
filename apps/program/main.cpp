// SPDX-License-Identifier: Apache-2.0

// The program netio: sub-commands, logging, exit status.

#include "apps/common/logging.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/base/version.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps {
namespace {

struct WrongUsage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

bool is_option(std::string_view word) {
    if (word.starts_with("--")) return word.size() > 2;
    return word.size() > 1 && word[0] == '-' &&
           std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
        for (const std::string& name : option->get_snames())
            names.push_back("-" + name);
    }
    return names;
}

[[noreturn]] void refuse_word(std::string_view what, std::string_view word,
                              const std::vector<std::string>& names) {
    const std::vector<std::string_view> views{names.begin(), names.end()};
    throw WrongUsage{fmt::format("unknown {} '{}'{}", what, word, suggestion(word, views))};
}

// Called before the parser, because the parser checks for missing options before unknown ones, and
// would report the wrong word.
void refuse_unknown_options(const CLI::App& command, std::span<char*> words) {
    const std::vector<std::string> names = option_names(command);
    for (const std::string_view word : words) {
        if (word == "--") return;
        if (!is_option(word)) continue;
        const std::string_view name =
            word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
        if (std::ranges::find(names, name) == names.end()) refuse_word("option", name, names);
    }
}

// An empty value usually comes from an unset shell variable. If it counted as "no value", an option
// such as --keys or --output would be ignored silently.
void refuse_empty_words(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
        if (std::ranges::find(option->results(), "") == option->results().end()) continue;
        throw WrongUsage{fmt::format(
            "{}: the value is empty; set the value or leave out the option", option->get_name())};
    }
}

// Returns the command that the first words name, or a command's own action, and removes these
// words.
const CLI::App& chosen(const CLI::App& program, std::span<char*>& words) {
    if (words.empty()) throw WrongUsage{"a command is missing"};
    const std::string_view word = words.front();
    if (is_option(word)) return program;
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands({})) {
        names.push_back(command->get_name());
        if (names.back() != word) continue;
        words = words.subspan(1);
        return command->get_subcommands({}).empty() ? *command : chosen(*command, words);
    }
    if (word == "help" || word == "version") names = {"--" + std::string{word}};
    refuse_word("command", word, names);
}

// "netio file info"
std::string full_name(const CLI::App& command) {
    const CLI::App* const parent = command.get_parent();
    return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

// Keeps only the first line of a parser error.
std::string first_line(std::string_view text) {
    return std::string{text.substr(0, text.find('\n'))};
}

// Reads the command line. Returns nullopt if a sub-command shall run. Otherwise the program ends
// with the returned status: it has shown the help or the version, or one line that names the wrong
// word and the most similar valid word.
std::optional<ExitStatus> parse_command_line(CLI::App& program, int argc, char** argv) {
    std::span<char*> words{argv + 1, argv + (argc > 0 ? argc : 1)};
    const CLI::App* command = &program;
    std::string flaw;
    try {
        command = &chosen(program, words);
        refuse_unknown_options(*command, words);
        program.parse(argc, argv);
        refuse_empty_words(*command);
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) { // help or version
            std::ostringstream text;
            program.exit(error, text, text);
            print_report(text.str());
            return ExitStatus::done;
        }
        flaw = first_line(error.what());
    } catch (const WrongUsage& error) {
        flaw = error.what();
    }
    tell_standard_error(fmt::format("{}: {}\nrun {} --help for the options\n", program.get_name(),
                                    flaw, full_name(*command)));
    return ExitStatus::wrong_usage;
}

} // namespace
} // namespace apps

namespace {

// If a standard descriptor is closed, the next socket would get its number and receive the printed
// text. A read-only /dev/null takes its place, so that writing a report still fails with an error.
void keep_standard_descriptors() {
    for (int descriptor = 0; descriptor <= 2; ++descriptor) {
        if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) != descriptor)
            std::_Exit(apps::to_integer(apps::ExitStatus::failed));
    }
}

// Each connection needs a few descriptors, so the soft limit is raised to the hard limit.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        spdlog::warn("cannot raise the limit of open descriptors; it stays at its default");
    }
}

} // namespace

int main(int argc, char** argv) {
    keep_standard_descriptors();
    apps::add_etcd_bus();
    // Exceeding the file size limit is then an error of the write, with a name and a report.
    std::signal(SIGXFSZ, SIG_IGN);
    CLI::App program{"Publish/subscribe data acquisition over libfabric", "netio"};
    program.set_version_flag("--version", std::string{"netio "} + netio::version() +
                                              " (netio info shows the version of libfabric)");
    program.require_subcommand(1);
    std::vector<std::pair<std::string, apps::Command>> commands;
    commands.emplace_back("publish", apps::add_publish(program));
    commands.emplace_back("subscribe", apps::add_subscribe(program));
    commands.emplace_back("record", apps::add_record(program));
    commands.emplace_back("pump", apps::add_pump(program));
    commands.emplace_back("cat", apps::add_cat(program));
    commands.emplace_back("copy", apps::add_copy(program));
    commands.emplace_back("dump", apps::add_dump(program));
    commands.emplace_back("file", apps::add_file(program));
    commands.emplace_back("info", apps::add_info(program));
    commands.emplace_back("doctor", apps::add_doctor(program));
    commands.emplace_back("key", apps::add_key(program));
    commands.emplace_back("list", apps::add_list(program));
    commands.emplace_back("listen", apps::add_listen(program));
    commands.emplace_back("replay", apps::add_replay(program));
    commands.emplace_back("request", apps::add_request(program));
    commands.emplace_back("respond", apps::add_respond(program));
    commands.emplace_back("send", apps::add_send(program));
    commands.emplace_back("top", apps::add_top(program));
    apps::LogArguments log_arguments;
    for (CLI::App* const command : program.get_subcommands({})) {
        const std::vector<CLI::App*> actions = command->get_subcommands({});
        if (actions.empty()) apps::add_log(*command, log_arguments);
        for (CLI::App* const action : actions)
            apps::add_log(*action, log_arguments);
    }
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
    } catch (const std::invalid_argument&
                 error) { // a value on the command line that is checked only here
        spdlog::error("{}", error.what());
        return to_integer(apps::ExitStatus::wrong_usage);
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
    }
    return to_integer(apps::ExitStatus::failed);
}
