// SPDX-License-Identifier: Apache-2.0
#include "tests/world/draw_copies.hpp"

#include <vector>

namespace netio::world {

void CopyDrawing::draw(Schedule& schedule, std::int64_t span_us) {
    schedule_ = &schedule;
    span_us_ = span_us;
    draw_all({.large_percent = 30, .overwriting_percent = 40, .troubled_percent = 30});
}

void CopyDrawing::draw_troubled(Schedule& schedule, std::int64_t span_us) {
    schedule_ = &schedule;
    span_us_ = span_us;
    draw_all({.large_percent = 60, .overwriting_percent = 60, .troubled_percent = 75});
    for (const ProcessPlan& plan : schedule.processes) {
        const std::int64_t breaks = dice_.between(0, 3);
        for (std::int64_t i = 0; i < breaks; ++i)
            schedule.at(moment(), plan.number, "sever");
    }
}

void CopyDrawing::draw_all(const Terms& terms) {
    const std::uint32_t server = schedule_->next_number();
    const bool overwrites = dice_.percent(terms.overwriting_percent);
    schedule_->add("copy-server").options.set("buffers", dice_.between(1, 3));
    if (dice_.percent(20)) {
        schedule_->processes.back().options.set("idle_ms", dice_.between(1000, 20'000));
    }
    const std::int64_t copiers = dice_.between(1, 2);
    for (std::int64_t i = 0; i < copiers; ++i) {
        draw_copier(terms, overwrites);
        schedule_->processes.back().options.set("of", server);
    }
    for (const std::uint32_t process : {server, server + 1}) {
        if (dice_.percent(30)) schedule_->processes[process].options.set("trusts", 1);
        if (!dice_.percent(terms.troubled_percent)) continue;
        Step& step = schedule_->at(moment(), process, "disk");
        step.with.set("mode", dice_.between(0, 2));
        step.with.set("us", dice_.while_us());
    }
}

void CopyDrawing::draw_copier(const Terms& terms, bool overwrites) {
    const std::uint32_t number = schedule_->next_number();
    Values& options = schedule_->add("copier").options;
    options.set("buffers", dice_.between(1, 3));
    if (overwrites) options.set("overwrite", 1);
    const std::int64_t files = dice_.between(1, 4);
    for (std::int64_t file = 0; file < files; ++file) {
        Step& step = schedule_->at(dice_.percent(50) ? 0 : moment(), number, "copy");
        // The same again is another file under its name.
        step.with.set("file", overwrites ? dice_.between(0, 2) : file);
        const bool large = dice_.percent(terms.large_percent);
        step.with.set("bytes", dice_.between(0, large ? 2'500'000 : 5000));
    }
}

// A small file takes less than a millisecond: what is to meet it comes right behind it.
std::int64_t CopyDrawing::moment() {
    std::vector<std::int64_t> begun;
    for (const Step& step : schedule_->steps)
        if (step.what == "copy") begun.push_back(step.at_us);
    if (begun.empty() || dice_.percent(30)) return dice_.between(0, span_us_);
    return dice_.one_of(begun) + dice_.between(0, 3'000);
}

} // namespace netio::world
