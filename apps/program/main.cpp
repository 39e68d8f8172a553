// SPDX-License-Identifier: Apache-2.0

// The program netio: sub-commands, logging, exit status.

#include "apps/common/parse.hpp"
#include "apps/common/report.hpp"
#include "apps/common/terminal.hpp"
#include "apps/program/commands.hpp"
#include "apps/program/program_log.hpp"
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

// The parser looks for what is missing before it looks at what it does not know, and so would blame
// another word than the one that is wrong.
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

// As a rule it is of a variable that is not set. Taken for no word it would silently leave out what
// was asked for: the keys, the recording.
void refuse_empty_words(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
        if (std::ranges::find(option->results(), "") == option->results().end()) continue;
        throw WrongUsage{fmt::format("{}: the word given is empty; leave it out if it is not meant",
                                     option->get_name())};
    }
}

const CLI::App& chosen(const CLI::App& program, std::span<char*> words) {
    if (words.empty()) throw WrongUsage{"a command is missing"};
    const std::string_view word = words.front();
    if (is_option(word)) return program;
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands({})) {
        if (command->get_name() == word) return *command;
        names.push_back(command->get_name());
    }
    if (word == "help" || word == "version") names = {"--" + std::string{word}};
    refuse_word("command", word, names);
}

// Never longer than a person reads.
std::string first_line(std::string_view text) {
    return std::string{text.substr(0, text.find('\n'))};
}

// Reads the command line. Returns nullopt if a sub-command shall run. Else the program ends with
// the returned status: it has shown the help or the version, or one line names the wrong word and
// the word that was probably meant.
std::optional<ExitStatus> parse_command_line(CLI::App& program, int argc, char** argv) {
    const std::span<char*> words{argv + 1, argv + (argc > 0 ? argc : 1)};
    const CLI::App* command = &program;
    std::string flaw;
    try {
        command = &chosen(program, words);
        refuse_unknown_options(*command, words.subspan(command == &program ? 0 : 1));
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
    const std::string name = program.get_name();
    tell_standard_error(fmt::format("{}: {}\n{} --help says what there is\n", name, flaw,
                                    command == &program ? name : name + " " + command->get_name()));
    return ExitStatus::wrong_usage;
}

} // namespace
} // namespace apps

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
