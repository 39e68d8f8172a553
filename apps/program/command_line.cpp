// SPDX-License-Identifier: Apache-2.0
#include "apps/program/command_line.hpp"

#include "apps/common/spelling.hpp"
#include "apps/common/standard_error.hpp"
#include "apps/common/standard_output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
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

} // namespace

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

} // namespace apps
