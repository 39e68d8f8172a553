// SPDX-License-Identifier: Apache-2.0
#include "apps/common/subscriber_log.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace apps {

SubscriberLog::SubscriberLog(netio::EventLoop& loop)
    : SubscriberLog{loop, [](const std::string& line) { spdlog::info("{}", line); },
                    [](const std::string& line) { spdlog::warn("{}", line); }} {}

SubscriberLog::SubscriberLog(netio::EventLoop& loop, LimitedLog::Write inform,
                             LimitedLog::Write warn)
    : log_{loop, std::move(inform)}, warnings_{loop, std::move(warn)}, timer_{loop,
                                                                              [this] { tell(); }} {}

void SubscriberLog::subscribed(const netio::pubsub::SubscriberPeer& peer,
                               const netio::pubsub::FidRange& range) {
    if (!ranges_.empty() && peer.id != peer_.id) tell();
    peer_ = peer;
    subscribed_.insert(peer.id);
    if (ranges_.empty()) timer_.start(netio::Duration::zero());
    ranges_.add(range);
}

void SubscriberLog::tell() {
    if (ranges_.empty()) return;
    log_.note(fmt::format("{} subscribes to {}", peer_.address, ranges_.take()));
}

void SubscriberLog::closed(const netio::pubsub::SubscriberPeer& peer, const netio::Closed& closed) {
    tell();
    using netio::CloseReason;
    const bool in_order =
        closed.reason == CloseReason::local || closed.reason == CloseReason::orderly;
    if (subscribed_.erase(peer.id) > 0 && ending_ && !in_order) ++unconfirmed_;
    if (in_order) {
        log_.note(fmt::format("{} has disconnected", peer.address));
    } else if (closed.reason == CloseReason::unconfirmed) {
        log_.note(fmt::format("{} has disconnected: {}", peer.address, explain(closed)));
    } else {
        ++disconnected_;
        warnings_.note(fmt::format("{}: {}", peer.address, explain(closed)));
    }
}

} // namespace apps
