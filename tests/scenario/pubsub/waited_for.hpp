// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publisher with policy block and stopped subscribers with their own fids, and another subscriber
// that keeps reading.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <vector>

namespace netio::pubsub::test {

// Publishes until one publication waits for the stopped subscriber of this fid.
inline bool keep_one_waiting(TestBed& bed, PublishSocket& publisher, Fid fid,
                             const netio::Slice& message) {
    return bed.run_until([&] {
        if (publisher.outstanding() == 0)
            static_cast<void>(publisher.publish(fid, message, netio::Cookie{UINT64_MAX}));
        const auto subscribers = publisher.snapshot().subscribers;
        return std::ranges::any_of(
            subscribers, [](const SubscriberSnapshot& each) { return each.waiting == 1; });
    });
}

class WaitedFor : public PubSubScenario {
  protected:
    static constexpr std::uint64_t crowd = 80;
    static constexpr Fid free_fid{9};
    static constexpr int receives = 6; // left for messages, per slow subscriber

    // A publisher with 64 KiB; it stays usable while each slow subscriber has a fid of its own.
    std::unique_ptr<BufferedPublishSocket> small_buffered(Publisher::Options options = {}) {
        return buffered(
            {.publisher = std::move(options), .page_size_bytes = 1024, .page_count = 64});
    }
    void gather(std::uint64_t guests) {
        honest = &subscribe({range(9, 9)});
        ASSERT_TRUE(run_until([&] { return honest->actor.subscribed.size() == 1; }));
        for (std::uint64_t guest = 0; guest < guests; ++guest)
            stopped.push_back(stuck(range(100 + guest, 100 + guest)));
    }
    // Waits until all that can leave has left.
    void settle(Publisher& publisher) {
        ASSERT_TRUE(run_until([&] {
            return std::ranges::all_of(
                publisher.snapshot().subscribers,
                [](const SubscriberSnapshot& each) { return each.posted == 0; });
        }));
    }
    // Publishes this many messages for each of them, one after the other, if they are accepted.
    template <typename Publish>
    void for_all(Publisher& publisher, int count, Publish publish_for) {
        for (int i = 0; i < count; ++i) {
            for (std::uint64_t guest = 0; guest < stopped.size(); ++guest) {
                publish_for(Fid{100 + guest});
                settle(publisher);
            }
        }
    }
    void publish_for_all(BufferedPublishSocket& publisher, int count, std::size_t size) {
        for_all(publisher, count, [&](Fid fid) {
            static_cast<void>(publish(publisher, fid, 0, size));
            publisher.flush();
        });
    }
    void publish_for_all(PublishSocket& publisher, int count) {
        for_all(publisher, count, [&](Fid fid) {
            if (publisher.publish(fid, memory.slice(0, 500), netio::Cookie{key}) ==
                netio::Status::ok)
                ++key;
        });
    }
    // The fid without a stopped subscriber waits only for messages that are just leaving.
    void expect_free(BufferedPublishSocket& publisher, int count = 10) {
        for (int i = 0; i < count; ++i) {
            const std::uint64_t number = honest->actor.messages;
            ASSERT_TRUE(run_until(
                [&] { return publish(publisher, free_fid, number, 900) == netio::Status::ok; }));
            publisher.flush();
            ASSERT_TRUE(run_until([&] { return honest->actor.messages == number + 1; }));
        }
    }
    void expect_free(PublishSocket& publisher, int count = 10) {
        for (int i = 0; i < count; ++i) {
            const std::uint64_t number = honest->actor.messages;
            ASSERT_TRUE(run_until([&] {
                return publisher.publish(free_fid, memory.slice(0, 500), netio::Cookie{key}) ==
                       netio::Status::ok;
            }));
            ++key;
            ASSERT_TRUE(run_until([&] { return honest->actor.messages == number + 1; }));
        }
    }

    Subscription* honest = nullptr;
    std::vector<std::unique_ptr<Impostor>> stopped;
    netio::RegisteredBuffer memory{4096};
    std::uint64_t key = 0;
};

} // namespace netio::pubsub::test
