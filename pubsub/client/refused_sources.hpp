// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publishers on a bus that have refused for good, with what they announced. A key that is not
// admitted may be a minute later, and no announcement changes for that: they are asked again,
// though not soon.

#include "netio/loop/event_loop.hpp"
#include "pubsub/core/assignment.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class RefusedSources {
  public:
    // May destroy this.
    using Ask = std::function<void(SourceId, const std::vector<FidRange>& fids)>;

    RefusedSources(EventLoop& loop, Ask ask)
        : loop_{loop}, ask_{std::move(ask)}, next_{loop, [this] { ask_next(); }} {}

    void put(SourceId id, std::vector<FidRange> fids, Duration pause) {
        waiting_.insert_or_assign(id, Waiting{.due = loop_.now() + pause, .fids = std::move(fids)});
        next_.start_at(first()->second.due);
    }
    void forget(SourceId id) { waiting_.erase(id); }

  private:
    struct Waiting {
        TimePoint due;
        std::vector<FidRange> fids;
    };
    using All = std::map<SourceId, Waiting>;

    All::iterator first() {
        return std::ranges::min_element(waiting_, {},
                                        [](const auto& each) { return each.second.due; });
    }
    void ask_next() {
        if (waiting_.empty()) return;
        const auto next = first();
        if (next->second.due > loop_.now()) return next_.start_at(next->second.due);
        const auto node = waiting_.extract(next);
        if (!waiting_.empty()) next_.start_at(first()->second.due);
        const Ask ask = ask_;
        ask(node.key(), node.mapped().fids);
    }

    EventLoop& loop_;
    Ask ask_;
    All waiting_;
    Timer next_;
};

} // namespace netio::pubsub::inline v0_2
