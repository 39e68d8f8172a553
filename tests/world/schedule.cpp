// SPDX-License-Identifier: Apache-2.0
#include "tests/world/schedule.hpp"

#include <sstream>
#include <stdexcept>

namespace netio::world {
namespace {

void write(std::ostream& out, const Values& values) {
    for (const auto& [name, value] : values.all())
        out << ' ' << name << '=' << value;
    out << '\n';
}

Values read_values(std::istream& in) {
    Values values;
    std::string word;
    while (in >> word) {
        const std::size_t middle = word.find('=');
        if (middle == std::string::npos) throw std::invalid_argument{"no value: " + word};
        values.set(word.substr(0, middle), std::stoll(word.substr(middle + 1)));
    }
    return values;
}

void read_line(Schedule& schedule, const std::string& line) {
    std::istringstream in{line};
    std::string first;
    std::string word;
    if (!(in >> first)) return;
    if (first == "world") {
        schedule.world = read_values(in);
    } else if (first == "process") {
        ProcessPlan plan;
        in >> plan.number >> plan.kind;
        plan.options = read_values(in);
        schedule.processes.push_back(std::move(plan));
    } else if (first == "at") {
        Step step;
        in >> step.at_us >> word >> step.process >> step.what;
        if (word != "process") throw std::invalid_argument{"not understood: " + line};
        step.with = read_values(in);
        schedule.steps.push_back(std::move(step));
    } else {
        throw std::invalid_argument{"not understood: " + line};
    }
}

} // namespace

std::string to_text(const Schedule& schedule) {
    std::ostringstream out;
    out << "world";
    write(out, schedule.world);
    for (const ProcessPlan& plan : schedule.processes) {
        out << "process " << plan.number << ' ' << plan.kind;
        write(out, plan.options);
    }
    for (const Step& step : schedule.steps) {
        out << "at " << step.at_us << " process " << step.process << ' ' << step.what;
        write(out, step.with);
    }
    return out.str();
}

Schedule parse_schedule(std::string_view text) {
    Schedule schedule;
    std::istringstream lines{std::string{text}};
    std::string line;
    while (std::getline(lines, line))
        read_line(schedule, line);
    return schedule;
}

} // namespace netio::world
