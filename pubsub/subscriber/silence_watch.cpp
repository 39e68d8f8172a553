// SPDX-License-Identifier: Apache-2.0
#include "pubsub/subscriber/silence_watch.hpp"

#include "netio/base/destruction_watch.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {

SilenceWatch::SilenceWatch(Transport& transport, Options options, Calls calls)
    : transport_{transport}, options_{std::move(options)}, calls_{std::move(calls)},
      timer_{transport.loop(), [this] { ask(); }} {}

SilenceWatch::~SilenceWatch() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

void SilenceWatch::begin() {
    if (options_.after == std::chrono::milliseconds{0} || timer_.armed()) return;
    const TimePoint now = transport_.loop().now();
    timer_.start_at(std::max(now + options_.after, next_));
}

void SilenceWatch::stop() {
    timer_.cancel();
    query_.reset();
}

void SilenceWatch::ask() {
    std::vector<FidRange> silent = calls_.silent(ranges_at_once);
    if (silent.empty()) return;
    next_ = transport_.loop().now() + interval;
    FidQuery::Options options = options_.query;
    options.near = std::move(silent);
    query_ = std::make_unique<FidQuery>(transport_, std::move(options),
                                        [this](const FidQuery::Result& result) { take(result); });
}

// A failure is nothing to tell: the subscription itself goes on.
void SilenceWatch::take(const FidQuery::Result& result) {
    const DestructionWatch watch{destroyed_};
    for (const FidQuery::Near& near : result.near) {
        if (near.is_published) continue;
        calls_.tell(near);
        if (watch.destroyed() || !query_) return;
    }
}

} // namespace netio::pubsub::inline v0_2
