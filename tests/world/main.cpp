// SPDX-License-Identifier: Apache-2.0

// Runs many worlds, each drawn from a seed: world_run [--seeds N] [--seed S] [--show]
// [--no-shrink]. A tenth of the seeds runs twice and must do the same. What breaks a rule is shrunk
// and printed.

#include "tests/world/draw.hpp"
#include "tests/world/shrink.hpp"
#include "tests/world/world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace netio::world;

struct Arguments {
    std::uint64_t first = 1;
    std::uint64_t count = 1000;
    bool show = false;
    bool shrinks = true;
    bool meetings = false;
    std::string file; // a schedule instead of seeds
};

std::optional<Arguments> parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        const auto number = [&]() -> std::uint64_t {
            return ++i < argc ? std::strtoull(argv[i], nullptr, 10) : 0;
        };
        if (name == "--seeds") {
            arguments.count = number();
        } else if (name == "--seed") {
            arguments.first = number();
            arguments.count = 1;
        } else if (name == "--from") {
            arguments.first = number();
        } else if (name == "--show") {
            arguments.show = true;
        } else if (name == "--meetings") {
            arguments.meetings = true;
        } else if (name == "--no-shrink") {
            arguments.shrinks = false;
        } else if (name == "--schedule" && ++i < argc) {
            arguments.file = argv[i];
        } else {
            return std::nullopt;
        }
    }
    return arguments;
}

Outcome run(const Schedule& schedule, bool show = false) {
    std::function<void(const std::string&)> print;
    if (show) print = [](const std::string& line) { std::cout << line << std::endl; };
    return World{schedule, print}.run();
}

bool breaks(const Schedule& schedule, RuleId rule) {
    return std::ranges::any_of(run(schedule).violations,
                               [&](const Violation& violation) { return violation.rule == rule; });
}

void report(std::uint64_t seed, const Schedule& schedule, const Outcome& outcome, bool shrinks) {
    const Violation& first = outcome.violations.front();
    std::cout << "seed " << seed << ": " << to_text(first) << '\n';
    if (!shrinks) return;
    const RuleId broken = first.rule;
    const Schedule least = shrink(
        schedule, [&](const Schedule& candidate) { return breaks(candidate, broken); }, 400);
    const Outcome again = run(least);
    std::cout << to_text(least);
    for (const Violation& violation : again.violations)
        std::cout << "  " << to_text(violation) << '\n';
    std::cout << std::flush;
}

int run_file(const Arguments& arguments) {
    std::ifstream in{arguments.file};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    const Outcome outcome = run(parse_schedule(text), arguments.show);
    for (const Violation& violation : outcome.violations)
        std::cout << to_text(violation) << '\n';
    return outcome.violations.empty() ? 0 : 1;
}

int run_seeds(const Arguments& arguments) {
    const auto begin = std::chrono::steady_clock::now();
    Meetings meetings;
    std::uint64_t failed = 0;
    std::uint64_t delivered = 0;
    std::map<RuleId, std::uint64_t> by_rule;
    for (std::uint64_t i = 0; i < arguments.count; ++i) {
        const std::uint64_t seed = arguments.first + i;
        const Schedule schedule = draw(seed);
        if (arguments.show) std::cout << to_text(schedule);
        Outcome outcome = run(schedule, arguments.show);
        if (seed % 10 == 0 && run(schedule).trace_hash != outcome.trace_hash) {
            outcome.violations.push_back({.rule = RuleId::deterministic,
                                          .at_us = 0,
                                          .what = "another trace the second time"});
        }
        meetings.add(outcome.meetings);
        delivered += outcome.delivered;
        if (outcome.violations.empty()) continue;
        ++failed;
        ++by_rule[outcome.violations.front().rule];
        report(seed, schedule, outcome, arguments.shrinks);
    }
    const double spent =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (arguments.meetings) meetings.print(std::cout);
    std::cout << arguments.count << " seeds from " << arguments.first << ", " << failed
              << " failed, " << delivered << " messages delivered, "
              << static_cast<double>(arguments.count) / spent << " seeds per second\n";
    for (const auto& [broken, count] : by_rule)
        std::cout << "  " << rule(broken).name << ": " << count << '\n';
    return failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    const std::optional<Arguments> arguments = parse(argc, argv);
    if (!arguments) {
        std::cerr << "world_run [--seeds N] [--from S] [--seed S] [--schedule FILE] [--show] "
                     "[--meetings] [--no-shrink]\n";
        return 2;
    }
    return arguments->file.empty() ? run_seeds(*arguments) : run_file(*arguments);
}
