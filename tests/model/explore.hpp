// SPDX-License-Identifier: Apache-2.0
#pragma once

// explore: visits every reachable state of a world, breadth first, so that the trace of the first
// violation is the shortest possible one.
//
// A world is a copyable value with enabled(), apply(action), violation(), is_complete() and
// describe(sink). A 128-bit hash of the description identifies a state; with the 10^6 states of
// these tests, equal hashes of two states are not to be expected. A state that no action changes
// must be complete, otherwise it counts as a violation ("stuck"). With `find_cycles` the
// transitions are stored and must not form a cycle. Both checks together show that every execution
// ends with everything delivered.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::stream {

struct Exploration {
    std::size_t state_count = 0;
    std::size_t transition_count = 0;
    bool hit_limit = false;
    std::string violation; // with the trace that leads to it
};

struct ExploreOptions {
    std::size_t state_limit = 5'000'000;
    bool find_cycles = false;
};

namespace detail {

struct Fingerprint {
    std::uint64_t first = 0x9E3779B97F4A7C15;
    std::uint64_t second = 0xC2B2AE3D27D4EB4F;

    void add(std::uint64_t word) {
        first = mix(first ^ word);
        second = mix(second + word * 0x165667B19E3779F9);
    }
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;

  private:
    static std::uint64_t mix(std::uint64_t x) {
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
        return x ^ (x >> 31);
    }
};

struct FingerprintHash {
    std::size_t operator()(const Fingerprint& print) const {
        return static_cast<std::size_t>(print.first);
    }
};

template <class World>
Fingerprint fingerprint(const World& world) {
    Fingerprint print;
    world.describe([&print](std::uint64_t word) { print.add(word); });
    return print;
}

// Removes states without incoming transitions until none is left; the remaining states lie on
// cycles.
inline bool has_cycle(std::size_t state_count,
                      const std::vector<std::pair<std::uint32_t, std::uint32_t>>& transitions) {
    std::vector<std::uint32_t> incoming(state_count, 0);
    std::vector<std::size_t> begin(state_count + 1, 0); // transitions are sorted by origin
    for (const auto& [from, to] : transitions) {
        ++incoming[to];
        ++begin[from + 1];
    }
    for (std::size_t i = 0; i < state_count; ++i)
        begin[i + 1] += begin[i];
    std::vector<std::uint32_t> free{0};
    std::size_t removed = 0;
    while (!free.empty()) {
        const std::uint32_t state = free.back();
        free.pop_back();
        ++removed;
        for (std::size_t i = begin[state]; i < begin[state + 1]; ++i) {
            if (--incoming[transitions[i].second] == 0) free.push_back(transitions[i].second);
        }
    }
    return removed != state_count;
}

} // namespace detail

template <class World>
Exploration explore(const World& start, const ExploreOptions& options = {}) {
    using Action = typename decltype(start.enabled())::value_type;
    struct Origin {
        std::uint32_t parent;
        Action action;
    };
    std::unordered_map<detail::Fingerprint, std::uint32_t, detail::FingerprintHash> seen;
    std::vector<Origin> origins{{0, {}}};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> transitions;
    std::deque<World> frontier{start};
    Exploration result;
    seen.emplace(detail::fingerprint(start), 0);

    const auto explain = [&](const std::string& what, std::uint32_t state,
                             const std::string& last) {
        std::string trace = last;
        for (; state != 0; state = origins[state].parent) {
            trace.insert(0, to_string(origins[state].action) + "; ");
        }
        result.violation = what + " after: " + trace;
    };

    for (std::uint32_t current = 0; !frontier.empty(); ++current) {
        const World world = std::move(frontier.front());
        frontier.pop_front();
        const detail::Fingerprint here = detail::fingerprint(world);
        bool stuck = true;
        for (const Action& action : world.enabled()) {
            World next = world;
            next.apply(action);
            if (!next.violation().empty()) {
                explain(next.violation(), current, to_string(action));
                result.state_count = origins.size();
                return result;
            }
            const detail::Fingerprint there = detail::fingerprint(next);
            if (there == here) continue;
            stuck = false;
            ++result.transition_count;
            const auto [entry, is_new] =
                seen.emplace(there, static_cast<std::uint32_t>(origins.size()));
            if (options.find_cycles) transitions.emplace_back(current, entry->second);
            if (!is_new) continue;
            origins.push_back({current, action});
            frontier.push_back(std::move(next));
        }
        if (stuck && !world.is_complete()) {
            explain("stuck", current, "nothing more can happen");
            break;
        }
        if (origins.size() > options.state_limit) {
            result.hit_limit = true;
            break;
        }
    }
    result.state_count = origins.size();
    if (result.violation.empty() && options.find_cycles && !result.hit_limit &&
        detail::has_cycle(origins.size(), transitions)) {
        result.violation = "an execution that never ends";
    }
    return result;
}

} // namespace netio::stream
