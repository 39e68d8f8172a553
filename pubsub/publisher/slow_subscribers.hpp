// SPDX-License-Identifier: Apache-2.0
#pragma once

// Looks from time to time at what the subscribers of a publisher have taken, and lets those go that
// have to (pubsub/core/slow_judge.hpp). It looks as long as somebody has something to take.

#include "netio/loop/event_loop.hpp"
#include "pubsub/core/publisher_end.hpp"
#include "pubsub/core/shares.hpp"
#include "pubsub/core/slow_judge.hpp"
#include "pubsub/core/subscription_table.hpp"
#include "pubsub/publisher/subscriber_table.hpp"

#include <cstddef>
#include <functional>

namespace netio::pubsub::inline v0_2 {

class SlowSubscribers {
  public:
    // It reads the others, and ends the sessions of subscribers.
    SlowSubscribers(EventLoop& loop, const SlowJudge::Patience& patience, const Shares& shares,
                    const PublisherEnd& end, SubscriberTable& subscribers);

    // Publishing has to wait for this one: Subscriber::Owner::on_progress() follows when it can be
    // sent something, has taken something, or is gone. If its policy is to disconnect, it has to go
    // when it has made no progress for too long.
    void wait_for(const Interest& member);
    // Publishing waits for so much of the pool; 0: for nothing any more.
    void note_needed(std::size_t amount) noexcept { needed_ = amount; }
    // Something waits for a subscriber, or is on its way to one.
    void keep_watch();
    // The pool is too short for `needed` (Shares::is_short): has what waits for those who may miss
    // messages taken back, an item at a time, first from those who have stalled.
    using TakeBack = std::function<void(Subscriber&)>;
    void make_others_give_way(std::size_t needed, const TakeBack& take_back);

  private:
    // Of those who have stalled and have something that can be taken back; nullptr: nobody had at
    // the last look, or has now.
    Subscriber* longest_stalled_with_something() noexcept;
    void look();
    void make_who_keeps_most_give_way();

    EventLoop& loop_;
    SlowJudge judge_;
    SlowWatch watch_;
    const Shares& shares_;
    const PublisherEnd& end_;
    SubscriberTable& subscribers_;
    std::size_t needed_ = 0;
    bool stalled_have_something_ = false; // at the last look
    Timer watch_timer_;                   // the next look is due
    Timer look_timer_;                    // what had arrived by then has been taken in
};

} // namespace netio::pubsub::inline v0_2
