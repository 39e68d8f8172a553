// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subscription that is accepted and of which nothing arrives: after a while the publisher is
// asked whether it publishes such fids at all. Belongs to the loop's thread; may be destroyed in
// what it calls.

#include "netio/loop/event_loop.hpp"
#include "pubsub/subscriber/fid_query.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class SilenceWatch {
  public:
    static constexpr std::size_t ranges_at_once = 8;
    static constexpr std::chrono::seconds interval{60}; // between two questions, at least

    struct Options {
        std::chrono::milliseconds after{0}; // 0: never
        FidQuery::Options query{};          // but for what is asked
    };
    struct Calls {
        // Up to so many ranges of which nothing has arrived.
        std::function<std::vector<FidRange>(std::size_t limit)> silent;
        std::function<void(const FidQuery::Near&)> tell; // of each that is not published
    };
    SilenceWatch(Transport& transport, Options options, Calls calls);
    ~SilenceWatch();
    SilenceWatch(const SilenceWatch&) = delete;
    SilenceWatch& operator=(const SilenceWatch&) = delete;

    // A subscription was accepted.
    void begin();
    // The connection has ended.
    void stop();

  private:
    void ask();
    void take(const FidQuery::Result& result);

    Transport& transport_;
    Options options_;
    Calls calls_;
    Timer timer_;
    TimePoint next_; // question, not before
    bool* destroyed_ = nullptr;
    std::unique_ptr<FidQuery> query_;
};

} // namespace netio::pubsub::inline v0_2
