// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/slow_subscribers.hpp"

#include "pubsub/publisher/stall_notice.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {
namespace {

std::size_t droppable(const Subscriber& subscriber) noexcept {
    return subscriber.queue().holding().droppable;
}

// What is kept would leave at once, and the publisher has no memory for it: others have it.
bool waits_for_memory(const Subscriber& subscriber) noexcept {
    return subscriber.is_turn_of_kept() && subscriber.can_send_now();
}

// Publishing waits until it can be sent something, so there may be nothing here for it to take.
bool is_waited_for_and_cannot_be_sent(const Subscriber& subscriber) noexcept {
    return subscriber.idle.waited_for && !subscriber.can_send_now();
}

bool has_stalled_with_something(const Subscriber& subscriber) noexcept {
    return SlowWatch::stalled(subscriber.idle) && droppable(subscriber) > 0;
}

} // namespace

SlowSubscribers::SlowSubscribers(EventLoop& loop, const SlowJudge::Patience& patience,
                                 const Shares& shares, const PublisherEnd& end,
                                 SubscriberTable& subscribers)
    : loop_{loop}, judge_{patience}, watch_{std::min(patience.disconnect_after,
                                                     patience.close_timeout)},
      shares_{shares}, end_{end}, subscribers_{subscribers},
      watch_timer_{loop, [this] { look_timer_.start(Duration::zero()); }}, look_timer_{loop,
                                                                                       [this] {
                                                                                           look();
                                                                                       }} {}

void SlowSubscribers::wait_for(const Interest& member) {
    Subscriber& subscriber = subscribers_[member.subscriber];
    subscriber.idle.waited_for = true;
    if (member.policy == SlowPolicy::disconnect) subscriber.idle.limited = true;
    subscriber.request_capacity();
    keep_watch();
}

void SlowSubscribers::keep_watch() {
    if (!watch_timer_.armed() && !look_timer_.armed()) watch_timer_.start(watch_.period());
}

void SlowSubscribers::look() {
    watch_.look(loop_.now());
    bool busy = false;
    stalled_have_something_ = false;
    subscribers_.for_each([&](Subscriber& each) {
        const bool has_more =
            end_.has_begun() || !each.is_idle() || is_waited_for_and_cannot_be_sent(each);
        // Whoever wants memory waits for all who hold it.
        if (needed_ > 0 && each.queue().holding().limited > 0)
            wait_for({.subscriber = each.id(), .policy = SlowPolicy::disconnect});
        const Duration before = each.idle.time;
        watch_.see(each.idle, {.has_more = has_more && !waits_for_memory(each),
                               .progress = each.queue().progress()});
        tell_observer(loop_.observer, each.session(), before, each.idle);
        const std::string why = judge_.verdict(each.idle, end_, attended(loop_));
        if (!why.empty()) each.fail(CloseReason::too_slow, why);
        busy = busy || has_more || each.idle.waited_for;
        if (has_stalled_with_something(each)) stalled_have_something_ = true;
    });
    make_who_keeps_most_give_way();
    busy ? keep_watch() : watch_.rest();
}

Subscriber* SlowSubscribers::longest_stalled_with_something() noexcept {
    Subscriber* longest = nullptr;
    if (!stalled_have_something_) return longest;
    subscribers_.for_each([&](Subscriber& each) {
        if (!has_stalled_with_something(each)) return;
        if (longest == nullptr || each.idle.time > longest->idle.time) longest = &each;
    });
    stalled_have_something_ = longest != nullptr;
    return longest;
}

void SlowSubscribers::make_others_give_way(std::size_t needed, const TakeBack& take_back) {
    while (shares_.is_recovering() || shares_.is_short(needed)) {
        Subscriber* const longest = longest_stalled_with_something();
        if (longest == nullptr) break;
        longest->idle.gave_way = true;
        while (has_stalled_with_something(*longest))
            take_back(*longest);
    }
    while (shares_.is_short(needed)) {
        Subscriber* most = nullptr;
        subscribers_.for_each([&](Subscriber& each) {
            if (most == nullptr || droppable(each) > droppable(*most)) most = &each;
        });
        // Whoever holds no more than the others keeps it, unless there is nothing else.
        const std::size_t fair = shares_.free() < needed ? 0 : shares_.allowance(SIZE_MAX);
        if (most == nullptr || droppable(*most) <= fair) return;
        const std::size_t aim = std::max(fair, droppable(*most) / 4 * 3);
        while (droppable(*most) > aim && shares_.is_short(needed))
            take_back(*most);
    }
}

void SlowSubscribers::make_who_keeps_most_give_way() {
    const auto has_stalled = [](const Subscriber& each) {
        return each.session().is_open() && SlowWatch::stalled(each.idle);
    };
    // Of what can be taken back nobody has to give way for: that is taken back.
    std::size_t sum = 0;
    SlowJudge::Need need{.amount = needed_, .in_vain = needed_ > 0};
    subscribers_.for_each([&](const Subscriber& each) {
        if (has_stalled(each)) {
            sum += each.queue().kept();
        } else if (each.queue().holding().all() > 0) {
            need.in_vain = false;
        }
    });
    // However much of it several have.
    if (!need.in_vain && !shares_.posts_hold_too_much(sum, needed_)) return;
    std::vector<SlowJudge::Keeper> keepers;
    subscribers_.for_each([&](const Subscriber& each) {
        if (!has_stalled(each)) return;
        SlowJudge::Keeper keeper{.subscriber = each.id(),
                                 .idle = each.idle.time,
                                 .posts = {},
                                 .rest = each.queue().holding().all() - each.queue().kept()};
        each.queue().for_each_kept(
            [&](Cookie cookie, std::size_t amount) { keeper.posts.emplace_back(cookie, amount); });
        const bool keeps = each.queue().rest_of_begun() > 0 || !keeper.posts.empty();
        if (keeps) keepers.push_back(std::move(keeper));
    });
    for (const SubscriberId each : SlowJudge::who_gives_way(std::move(keepers), shares_, need)) {
        subscribers_[each].fail(
            CloseReason::too_slow,
            "took nothing of what was being sent to it, and the others need the memory");
    }
}

} // namespace netio::pubsub::inline v0_2
