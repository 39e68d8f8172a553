// SPDX-License-Identifier: Apache-2.0

// Who is slow, and the orderly end of a publisher: every subscriber gets what is still due to it,
// then the number of messages that were published to it per fid, and answers that it has them.

#include "pubsub/publisher/subscriber_sessions.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace netio::pubsub::inline v0_2 {
namespace {

// Who keeps what is posted for so long may have to give it up for the others.
constexpr std::chrono::seconds post_patience{1};

} // namespace

// --- who is slow ----------------------------------------------------------------------------

void SubscriberSessions::note_waited_for(const Interest& interest) {
    if (interest.policy != SlowPolicy::disconnect) return;
    subscriber(interest.subscriber).idle.waited_for = true;
    keep_watch();
}

void SubscriberSessions::keep_watch() {
    if (!watch_timer_.armed() && !look_timer_.armed()) watch_timer_.start(watch_.period());
}

void SubscriberSessions::look() {
    watch_.look(loop_.now());
    bool busy = false;
    for_each([&](Subscriber& each) {
        judge(each);
        busy = busy || end_.begun || each.idle.waited_for || each.holding().all() > 0;
    });
    close_who_keeps_most_posts();
    busy ? keep_watch() : watch_.rest();
}

void SubscriberSessions::judge(Subscriber& subscriber) {
    Idleness& idle = subscriber.idle;
    watch_.see(idle, end_.begun || idle.waited_for || subscriber.holding().all() > 0,
               subscriber.queue().progress());
    if (idle.waited_for && idle.time >= options_.disconnect_after) {
        subscriber.fail(CloseReason::too_slow,
                        "took nothing for more than " +
                            std::to_string(options_.disconnect_after.count()) + " ms");
    } else if (end_.begun && idle.time >= options_.close_timeout) {
        subscriber.fail(CloseReason::too_slow, "took nothing while the publisher was ending");
    } else if (loop_.now() >= end_.limit) {
        subscriber.fail(CloseReason::too_slow, "did not take everything within close_limit");
    }
}

void SubscriberSessions::close_who_keeps_most_posts() {
    for (;;) {
        std::size_t sum = 0;
        Subscriber* longest = nullptr;
        for_each([&](Subscriber& each) {
            if (!each.is_open() || !SlowWatch::stalled(each.idle) || each.holding().posted == 0)
                return;
            sum += each.holding().posted;
            if (longest == nullptr || each.idle.time > longest->idle.time) longest = &each;
        });
        if (!shares_.posts_hold_too_much(sum) || longest->idle.time < post_patience) return;
        std::unordered_map<Cookie, std::size_t> kept; // what several have counts once
        for_each([&](Subscriber& each) {
            if (!each.is_open() || !SlowWatch::stalled(each.idle)) return;
            each.queue().for_each_posted(
                [&](Cookie cookie, std::size_t amount) { kept[cookie] = amount; });
        });
        sum = 0;
        for (const auto& [cookie, amount] : kept)
            sum += amount;
        if (!shares_.posts_hold_too_much(sum)) return;
        longest->fail(CloseReason::too_slow,
                      "took nothing of what was being sent to it, and the others need the memory");
    }
}

// --- the end --------------------------------------------------------------------------------

void SubscriberSessions::close() {
    if (end_.begun) return;
    end_.begun = true;
    end_.limit = loop_.now() + options_.close_limit;
    fan_out_.begin_totals();
    for_each([this](Subscriber& each) { ask(each); });
    keep_watch();
    check_closed();
}

void SubscriberSessions::ask(Subscriber& subscriber) {
    subscriber.idle = {.progress = subscriber.queue().progress()};
    if (subscriber.stage() != Subscriber::Stage::subscribing) return;
    subscriber.set_stage(Subscriber::Stage::asked);
    subscriber.send_totals(
        [this, id = subscriber.id(), next = std::size_t{0}](std::span<FidCount> out) mutable {
            return fan_out_.totals(id, next, out);
        });
}

void SubscriberSessions::abort() {
    end_.begun = end_.at_once = true;
    for_each([](Subscriber& each) { each.abort(); });
    check_closed();
}

void SubscriberSessions::check_closed() {
    if (!end_.begun || subscribers_.size() > 0) return;
    if (!closed_timer_.armed()) closed_timer_.start(Duration::zero());
}

void SubscriberSessions::tell_closed() {
    Closed closed{.reason = CloseReason::orderly, .detail = {}};
    if (end_.unconfirmed > 0) {
        closed.reason = CloseReason::unconfirmed;
        closed.detail = std::to_string(end_.unconfirmed) +
                        " subscriber(s) did not confirm that they have everything";
    }
    if (end_.at_once) closed.reason = CloseReason::local;
    user_.handler.on_closed(user_.publisher, closed);
}

} // namespace netio::pubsub::inline v0_2
