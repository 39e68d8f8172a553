// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_scheduler.hpp"

#include <algorithm>

namespace netio::test {

void SimScheduler::add(SimProcess& process, EventLoop& loop) {
    entries_.push_back({.process = &process, .loop = &loop});
}

void SimScheduler::remove(SimProcess& process) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.process == &process; });
}

SimScheduler::Entry* SimScheduler::find(const SimProcess& process) {
    const auto found = std::ranges::find(entries_, &process, &Entry::process);
    return found == entries_.end() ? nullptr : &*found;
}

void SimScheduler::stop(SimProcess& process) {
    if (Entry* const entry = find(process)) entry->stopped = true;
}

void SimScheduler::go_on(SimProcess& process) {
    if (Entry* const entry = find(process)) entry->stopped = false;
}

void SimScheduler::step(TimePoint until) {
    TimePoint next = until;
    std::size_t due_count = 0;
    Entry* chosen = nullptr;
    for (Entry& entry : entries_) {
        if (entry.stopped) continue;
        const TimePoint due = entry.process->due();
        next = std::min(next, due);
        // Chooses among all due loops with equal probability.
        if (due <= clock_.now() && random_() % ++due_count == 0) chosen = &entry;
    }
    if (chosen == nullptr) {
        const TimePoint before = clock_.now();
        clock_.step(next);
        if (clock_.now() != before) turns_at_once_ = 0;
        return;
    }
    ++turns_at_once_;
    ++turns_;
    SimProcess& process = *chosen->process;
    process.begin_turn();
    if (!chosen->loop->dispatch(Duration{})) chosen->loop->pollable_fd(); // and waits for it
    process.end_turn();
}

} // namespace netio::test
