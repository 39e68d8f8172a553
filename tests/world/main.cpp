// SPDX-License-Identifier: Apache-2.0

// Runs many worlds, each drawn from a seed: world_run [--seeds N] [--seed S] [--show]
// [--no-shrink]. A tenth of the seeds runs twice and must do the same. A schedule that breaks a
// rule is shrunk and printed.

#include "tests/world/draw.hpp"
#include "tests/world/shrink.hpp"
#include "tests/world/steering.hpp"
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

constexpr const char* usage =
    "world_run [--seed S] [--seeds N | --seconds T] [--steer K] [--meetings] [--no-shrink]\n"
    "world_run --seed S | --schedule FILE [--show]\n"
    "  --seed S         begin with this seed, and run only it unless told how many\n"
    "  --steer K        run the one of K seeds whose world has met least so far\n"
    "  --stop           end with the first seed that fails\n"
    "  --meetings       print which features, faults and states have met\n"
    "  --show           print all actions and events\n";
// If many seeds break the same rule, only the first ones are shrunk.
constexpr std::uint64_t shrinks_of_a_rule = 2;

struct Arguments {
    std::uint64_t first = 1;
    std::optional<std::uint64_t> count;
    std::optional<double> seconds;
    std::uint64_t steer = 1;
    bool one = false; // a seed was given
    bool show = false;
    bool stops = false;
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
        } else if (name == "--seconds") {
            arguments.seconds = static_cast<double>(number());
        } else if (name == "--seed") {
            arguments.first = number();
            arguments.one = true;
        } else if (name == "--steer") {
            arguments.steer = std::max<std::uint64_t>(1, number());
        } else if (name == "--show") {
            arguments.show = true;
        } else if (name == "--stop") {
            arguments.stops = true;
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
    std::cout << "seed " << seed << ": " << to_text(first) << std::endl;
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

class Seeds {
  public:
    explicit Seeds(const Arguments& arguments) : arguments_{arguments} {}

    int run() {
        const std::uint64_t count = arguments_.count.value_or(arguments_.seconds ? UINT64_MAX
                                                              : arguments_.one   ? 1
                                                                                 : 1000);
        std::uint64_t done = 0;
        while (done < count && spent() < arguments_.seconds.value_or(1e9) &&
               !(arguments_.stops && failed_ > 0))
            run_one(next_seed(done++));
        if (arguments_.meetings) meetings_.print(std::cout);
        std::cout << done << " seeds from " << arguments_.first << ", " << failed_ << " failed, "
                  << delivered_ << " messages delivered, " << static_cast<double>(done) / spent()
                  << " seeds per second\n";
        for (const auto& [broken, times] : by_rule_)
            std::cout << "  " << rule(broken).name << ": " << times << '\n';
        return failed_ == 0 ? 0 : 1;
    }

  private:
    double spent() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

    // From the group of seeds with this number, the seed whose world has the highest worth.
    std::uint64_t next_seed(std::uint64_t group) const {
        const std::uint64_t first = arguments_.first + group * arguments_.steer;
        std::uint64_t best = first;
        double most = -1;
        for (std::uint64_t seed = first; arguments_.steer > 1 && seed < first + arguments_.steer;
             ++seed) {
            const double worth = steering_.worth(draw(seed));
            if (worth > most) best = seed;
            most = std::max(most, worth);
        }
        return best;
    }

    void run_one(std::uint64_t seed) {
        const Schedule schedule = draw(seed);
        steering_.note(schedule);
        if (arguments_.show) std::cout << to_text(schedule);
        Outcome outcome = ::run(schedule, arguments_.show);
        if (seed % 10 == 0 && ::run(schedule).trace_hash != outcome.trace_hash) {
            outcome.violations.push_back({.rule = RuleId::deterministic,
                                          .at_us = 0,
                                          .what = "another trace the second time"});
        }
        meetings_.add(outcome.meetings);
        delivered_ += outcome.delivered;
        if (outcome.violations.empty()) return;
        ++failed_;
        const std::uint64_t times = ++by_rule_[outcome.violations.front().rule];
        report(seed, schedule, outcome,
               arguments_.shrinks && !arguments_.stops && times <= shrinks_of_a_rule);
    }

    const Arguments& arguments_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    Meetings meetings_;
    Steering steering_;
    std::uint64_t failed_ = 0;
    std::uint64_t delivered_ = 0;
    std::map<RuleId, std::uint64_t> by_rule_;
};

} // namespace

int main(int argc, char** argv) {
    const std::optional<Arguments> arguments = parse(argc, argv);
    if (!arguments) {
        std::cerr << usage;
        return 2;
    }
    return arguments->file.empty() ? Seeds{*arguments}.run() : run_file(*arguments);
}
