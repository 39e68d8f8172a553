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
    const std::int64_t plot = dice_.between(0, 9);
    if (plot < 3) return draw_changing();
    if (plot < 5) return draw_rivals();
    if (plot < 7) return draw_failing();
    draw_all({.large_percent = 60, .overwriting_percent = 60, .troubled_percent = 75});
    for (const ProcessPlan& plan : schedule.processes) {
        const std::int64_t breaks = dice_.between(0, 3);
        for (std::int64_t i = 0; i < breaks; ++i)
            schedule.at(moment(), plan.number, "sever");
    }
}

// After a broken copy, the partial file belongs to an older state when it is copied again.
void CopyDrawing::draw_changing() {
    const std::uint32_t copier = add_copier(add_server(), true);
    const std::int64_t files = dice_.between(1, 3);
    for (std::int64_t file = 0; file < files; ++file) {
        const std::int64_t when = file * 5'000'000 + dice_.between(0, span_us_);
        const std::int64_t broken = when + dice_.between(300, 900);
        copy(copier, when, file, large());
        if (dice_.percent(40)) {
            schedule_->at(broken, copier, "sever");
            copy(copier, broken + dice_.between(100, 250'000), file, dice_.between(0, 2'500'000));
        } else { // starts again after an idle time
            schedule_->at(broken, copier, "kill");
            schedule_->at(broken + dice_.between(100, 500'000), copier, "restart");
            copy(copier, broken + 2'000'000, file, dice_.percent(80) ? large() : 0);
        }
    }
}

// Two copiers start to write the same name at about the same moment.
void CopyDrawing::draw_rivals() {
    const std::uint32_t server = add_server();
    const std::uint32_t one = add_copier(server, true);
    const std::uint32_t other = add_copier(server, true);
    const std::int64_t files = dice_.between(1, 3);
    for (std::int64_t file = 0; file < files; ++file) {
        const std::int64_t when = file * 1'000'000 + dice_.between(0, span_us_);
        copy(one, when, file, large());
        copy(other, when + dice_.between(0, 500), file, large());
    }
}

// One of several files fails in its middle: all except the first are tried together, about 300 ms
// later.
void CopyDrawing::draw_failing() {
    const std::uint32_t server = add_server();
    const std::uint32_t copier = add_copier(server, dice_.percent(50));
    const std::int64_t when = dice_.between(0, span_us_);
    const std::int64_t files = dice_.between(3, 5);
    for (std::int64_t file = 0; file < files; ++file)
        copy(copier, when, file, large());
    Step& step = schedule_->at(when + dice_.between(300'800, 303'500),
                               dice_.percent(70) ? server : copier, "disk");
    step.with.set("mode", 1);
    step.with.set("us", dice_.between(1'000, 100'000));
}

void CopyDrawing::draw_all(const Terms& terms) {
    const bool overwrites = dice_.percent(terms.overwriting_percent);
    const std::uint32_t server = add_server();
    const std::int64_t copiers = dice_.between(1, 2);
    for (std::int64_t i = 0; i < copiers; ++i)
        draw_files(add_copier(server, overwrites), terms, overwrites);
    for (const std::uint32_t process : {server, server + 1}) {
        if (!dice_.percent(terms.troubled_percent)) continue;
        Step& step = schedule_->at(moment(), process, "disk");
        step.with.set("mode", dice_.between(0, 2));
        step.with.set("us", dice_.while_us());
    }
}

void CopyDrawing::draw_files(std::uint32_t copier, const Terms& terms, bool overwrites) {
    const std::int64_t files = dice_.between(1, 4);
    for (std::int64_t file = 0; file < files; ++file) {
        const std::int64_t when = dice_.percent(50) ? 0 : moment();
        // A repeated copy is another file with the same name.
        copy(copier, when, overwrites ? dice_.between(0, 2) : file,
             dice_.between(0, dice_.percent(terms.large_percent) ? 2'500'000 : 5000));
    }
}

std::uint32_t CopyDrawing::add_server() {
    Values& options = schedule_->add("copy-server").options;
    options.set("buffers", dice_.between(1, 3));
    if (dice_.percent(20)) options.set("idle_ms", dice_.between(1000, 20'000));
    if (dice_.percent(30)) options.set("trusts", 1);
    return schedule_->processes.back().number;
}

std::uint32_t CopyDrawing::add_copier(std::uint32_t server, bool overwrites) {
    Values& options = schedule_->add("copier").options;
    options.set("of", server);
    options.set("buffers", dice_.between(1, 3));
    if (overwrites) options.set("overwrite", 1);
    if (dice_.percent(30)) options.set("trusts", 1);
    return schedule_->processes.back().number;
}

void CopyDrawing::copy(std::uint32_t copier, std::int64_t when, std::int64_t file,
                       std::int64_t bytes) {
    Step& step = schedule_->at(when, copier, "copy");
    step.with.set("file", file);
    step.with.set("bytes", bytes);
}

// A size of several chunks (apps/copy/protocol.hpp).
std::int64_t CopyDrawing::large() {
    return dice_.between(1'100'000, 2'500'000);
}

// A small file takes less than a millisecond, so its fault follows immediately.
std::int64_t CopyDrawing::moment() {
    std::vector<std::int64_t> begun;
    for (const Step& step : schedule_->steps)
        if (step.what == "copy") begun.push_back(step.at_us);
    if (begun.empty() || dice_.percent(30)) return dice_.between(0, span_us_);
    return dice_.one_of(begun) + dice_.between(0, 3'000);
}

} // namespace netio::world
