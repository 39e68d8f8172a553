// SPDX-License-Identifier: Apache-2.0
#include "tests/world/shrink.hpp"

#include <string>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

class Shrinker {
  public:
    Shrinker(Schedule schedule, const std::function<bool(const Schedule&)>& breaks,
             std::size_t limit)
        : best_{std::move(schedule)}, breaks_{breaks}, left_{limit} {}

    Schedule shrink() {
        while (std::exchange(shorter_, false) || first_) {
            first_ = false;
            drop_processes();
            drop_steps();
            fewer_messages();
            drop_options();
            if (left_ == 0) break;
        }
        return best_;
    }

  private:
    bool try_one(Schedule candidate) {
        if (left_ == 0) return false;
        --left_;
        if (!breaks_(candidate)) return false;
        best_ = std::move(candidate);
        shorter_ = true;
        return true;
    }

    void drop_processes() {
        for (std::size_t i = best_.processes.size(); i-- > 0;) {
            Schedule less = best_;
            const std::uint32_t number = less.processes[i].number;
            less.processes.erase(less.processes.begin() + static_cast<std::ptrdiff_t>(i));
            std::erase_if(less.steps, [&](const Step& step) {
                return step.process == number || step.with.get("other", -1) == number;
            });
            try_one(std::move(less));
        }
    }

    void drop_steps() {
        for (std::size_t width = best_.steps.size() / 2; width > 0; width /= 2) {
            for (std::size_t i = 0; i + width <= best_.steps.size();) {
                Schedule less = best_;
                const auto from = less.steps.begin() + static_cast<std::ptrdiff_t>(i);
                less.steps.erase(from, from + static_cast<std::ptrdiff_t>(width));
                if (!try_one(std::move(less))) i += width;
            }
        }
    }

    void fewer_messages() {
        for (std::size_t i = 0; i < best_.steps.size(); ++i) {
            for (const char* const name : {"count", "bytes"}) {
                while (best_.steps[i].with.get(name, 1) > 1) {
                    Schedule less = best_;
                    less.steps[i].with.set(name, less.steps[i].with.get(name) / 2);
                    if (!try_one(std::move(less))) break;
                }
            }
        }
    }

    void drop_from(const std::function<Values&(Schedule&)>& of) {
        const Values values = of(best_);
        for (const auto& [name, value] : values.all()) {
            Schedule less = best_;
            of(less).erase(name);
            try_one(std::move(less));
        }
    }

    void drop_options() {
        drop_from([](Schedule& schedule) -> Values& { return schedule.world; });
        for (std::size_t i = 0; i < best_.processes.size(); ++i)
            drop_from([i](Schedule& schedule) -> Values& { return schedule.processes[i].options; });
        for (std::size_t i = 0; i < best_.steps.size(); ++i)
            drop_from([i](Schedule& schedule) -> Values& { return schedule.steps[i].with; });
    }

    Schedule best_;
    const std::function<bool(const Schedule&)>& breaks_;
    std::size_t left_;
    bool first_ = true;
    bool shorter_ = false;
};

} // namespace

Schedule shrink(Schedule schedule, const std::function<bool(const Schedule&)>& breaks,
                std::size_t limit) {
    return Shrinker{std::move(schedule), breaks, limit}.shrink();
}

} // namespace netio::world
