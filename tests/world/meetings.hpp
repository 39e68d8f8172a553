// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts which features and states each fault has met, to show what the seeds never tried.

#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace netio::world {

class Meetings {
  public:
    // feature, fault, state
    using Key = std::tuple<std::string, std::string, std::string>;

    void count(const Key& key) { ++met_[key]; }
    void add(const Meetings& other) {
        for (const auto& [key, count] : other.met_)
            met_[key] += count;
    }
    const std::map<Key, std::uint64_t>& met() const noexcept { return met_; }
    // Prints a line for each feature and fault with the count of each state, then the states never
    // met.
    void print(std::ostream& out) const {
        std::map<std::string, std::set<std::string>> states; // of a feature, with any fault
        std::map<std::pair<std::string, std::string>, std::map<std::string, std::uint64_t>> lines;
        std::set<std::string> faults;
        for (const auto& [key, count] : met_) {
            const auto& [feature, fault, state] = key;
            states[feature].insert(state);
            faults.insert(fault);
            lines[{feature, fault}][state] += count;
        }
        std::size_t all = 0;
        std::size_t never = 0;
        for (const auto& [feature, known] : states) {
            for (const std::string& fault : faults) {
                out << feature << " x " << fault << ':';
                for (const std::string& state : known) {
                    const std::uint64_t count = lines[{feature, fault}][state];
                    out << ' ' << state << ' ' << count;
                    ++all;
                    never += count == 0 ? 1 : 0;
                }
                out << '\n';
            }
        }
        out << all - never << " of " << all << " have met, " << never << " never\n";
    }

  private:
    std::map<Key, std::uint64_t> met_;
};

} // namespace netio::world
