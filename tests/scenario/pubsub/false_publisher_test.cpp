// SPDX-License-Identifier: Apache-2.0

// A publisher admits its subscriber, grants its requests, and then sends unrequested messages or
// too many of them. Only its own connection ends: the same program's subscription to an honest
// publisher continues, and no state of the refused messages remains.

#include "tests/scenario/pubsub/false_publisher.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <vector>

namespace netio::pubsub::test::false_publisher_test {
namespace {

using netio::CloseReason;
using netio::Status;
using Bytes = std::vector<std::byte>;

Bytes page_of(std::uint64_t first, std::size_t fids) {
    Bytes memory(64 * 1024);
    PageWriter page{memory};
    for (std::uint64_t fid = first; fid < first + fids; ++fid)
        *page.append(Fid{fid}, 0, 1) = std::byte{1};
    memory.resize(page.used());
    return memory;
}

Bytes counts_of(std::uint64_t first, std::size_t fids) {
    std::vector<FidCount> counts;
    for (std::uint64_t fid = first; fid < first + fids; ++fid)
        counts.push_back({Fid{fid}, 1});
    Bytes body(counts.size() * fid_count_bytes);
    encode(counts, body);
    return body;
}

struct Attack {
    const char* what;
    std::function<void(FalsePublisher&)> send;
};

// Fids 10 to 1009 were requested, and a subscriber keeps state for a hundred fids.
std::vector<Attack> attacks() {
    return {
        {"a page of a fid that nobody asked for",
         [](FalsePublisher& it) { it.send(page_kind, page_of(9, 1)); }},
        {"one behind messages that were",
         [](FalsePublisher& it) { it.send(page_kind, page_of(1009, 2)); }},
        {"pages of more fids than are remembered",
         [](FalsePublisher& it) { it.send(page_kind, page_of(10, 101)); }},
        {"gaps of a fid that nobody asked for",
         [](FalsePublisher& it) { it.send(gap_kind, counts_of(9, 1)); }},
        {"gaps of more fids than are remembered",
         [](FalsePublisher& it) { it.send(gap_kind, counts_of(10, 101)); }},
        {"totals of fids that nobody asked for",
         [](FalsePublisher& it) { it.send(totals_kind, counts_of(2000, 1000), more_flag); }},
        {"totals of more fids than are remembered",
         [](FalsePublisher& it) {
             it.send(totals_kind, counts_of(10, 60), more_flag);
             it.send(totals_kind, counts_of(70, 60), more_flag);
         }},
        {"positions of what it was not asked for",
         [](FalsePublisher& it) {
             Bytes body(positions_extension_bytes);
             encode({.instance = 1, .request = 77}, body);
             it.send(positions_kind, body);
         }},
        {"an answer to what it was not asked",
         [](FalsePublisher& it) {
             Bytes body(answer_bytes);
             encode({.request = 77, .result = SubscriptionResult::accepted}, body);
             it.send(subscription_answer_kind, body);
         }},
    };
}

class FalsePublishers : public PubSubScenario {};

TEST_P(FalsePublishers, EndTheirOwnConnectionAndNothingElse) {
    const auto honest_publisher = buffered({});
    Subscription& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return honest.actor.subscribed.size() == 1; }));
    std::uint64_t published = 0;
    for (const Attack& attack : attacks()) {
        SCOPED_TRACE(attack.what);
        FalsePublisher publisher{transport(), bed.address()};
        SubscriberActor actor;
        SubscribeSocket::Options options;
        options.publisher = publisher.address();
        options.fid_limit = 100;
        SubscribeSocket victim{transport(), options, actor};
        victim.subscribe(range(10, 1009));
        ASSERT_TRUE(run_until([&] { return publisher.has_granted(); }));
        attack.send(publisher);
        ASSERT_TRUE(run_until([&] { return !actor.closed.empty(); }));
        EXPECT_EQ(actor.closed[0].reason, CloseReason::protocol_error) << actor.closed[0].detail;
        EXPECT_LE(victim.arrivals().fids().size(), 100U);
        EXPECT_EQ(actor.by_fid.count(Fid{9}), 0U);
        EXPECT_EQ(actor.by_fid.count(Fid{1010}), 0U);
        // The honest publisher's messages still arrive.
        for (int i = 0; i < 20; ++i) {
            ASSERT_TRUE(run_until(
                [&] { return publish(*honest_publisher, Fid{1}, published, 100) == Status::ok; }));
            ++published;
        }
        ASSERT_TRUE(run_until([&] { return honest.actor.messages == published; }));
    }
    honest_publisher->close();
    ASSERT_TRUE(run_until([&] { return !honest.actor.closed.empty(); }));
    honest.actor.expect_contiguous(Fid{1}, 0, published);
    EXPECT_EQ(honest.actor.lost, 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, FalsePublishers, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::false_publisher_test
