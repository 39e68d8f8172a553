// SPDX-License-Identifier: Apache-2.0
#pragma once

// A world as plain data: its processes, their options and the steps. A seed is drawn into a
// schedule (draw.hpp), a run carries it out (world.hpp), and a failing schedule is shrunk
// (shrink.hpp). As text it has one line per item, which can be pasted into a named test:
//
//     world seed=7 verbs=1
//     process 0 publisher pages=4 page_size_bytes=1024
//     process 1 subscriber of=0
//     at 0 process 1 subscribe first=0 last=3
//     at 2000 process 0 publish fid=1 count=20 bytes=300 gap_us=50
//
// Every value is a number with a name; a value that is not given has its default. Times are in
// microseconds.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace netio::world {

inline constexpr std::uint64_t fid_count = 32; // fids of a world: 0, 1, ...

class Values {
  public:
    std::int64_t get(const std::string& name, std::int64_t otherwise = 0) const {
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }
    bool has(const std::string& name) const { return values_.contains(name); }
    void set(const std::string& name, std::int64_t value) { values_[name] = value; }
    void erase(const std::string& name) { values_.erase(name); }
    const std::map<std::string, std::int64_t>& all() const noexcept { return values_; }

  private:
    std::map<std::string, std::int64_t> values_;
};

struct ProcessPlan {
    std::uint32_t number = 0;
    std::string kind;
    Values options;
};

struct Step {
    std::int64_t at_us = 0;
    std::uint32_t process = 0;
    std::string what;
    Values with;
};

struct Schedule {
    Values world;
    std::vector<ProcessPlan> processes;
    std::vector<Step> steps;

    // The reference is valid until the next process is added.
    ProcessPlan& add(const std::string& kind) {
        return processes.emplace_back(
            ProcessPlan{.number = next_number(), .kind = kind, .options = {}});
    }
    Step& at(std::int64_t when, std::uint32_t process, const std::string& what) {
        return steps.emplace_back(
            Step{.at_us = when, .process = process, .what = what, .with = {}});
    }
    // The number of the next added process.
    std::uint32_t next_number() const noexcept {
        return static_cast<std::uint32_t>(processes.size());
    }
};

std::string to_text(const Schedule& schedule);
// Throws std::invalid_argument with the line.
Schedule parse_schedule(std::string_view text);

} // namespace netio::world
