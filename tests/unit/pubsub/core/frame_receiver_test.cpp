// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/frame_receiver.hpp"

#include "pubsub/core/page_view.hpp"

#include "tests/scenario/access/failing_new.hpp"

#include <gmock/gmock.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace netio::pubsub::frame_receiver_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = FrameReceiver::Outcome;

struct Sink {
    bool take_message(Fid fid, std::span<const std::byte> message, std::uint8_t) {
        messages.push_back(to_string(fid) + ":" + std::to_string(message.size()));
        last = message;
        return messages.size() < limit;
    }
    bool take_gap(Fid fid, std::uint64_t count) {
        gaps.push_back(to_string(fid) + ":" + std::to_string(count));
        return gaps.size() < limit;
    }
    bool is_gone() const { return gone; }
    bool take_change(const PublisherChange& change) {
        changes.push_back(change);
        return true;
    }
    bool take_lost(Fid fid, std::uint64_t count) {
        lost.push_back({.fid = fid, .count = count});
        return true;
    }
    bool gone = false;
    std::vector<PublisherChange> changes;
    std::vector<FidCount> lost;
    std::vector<std::string> messages, gaps;
    std::span<const std::byte> last;
    std::size_t limit = SIZE_MAX;
};

class FrameReceiverTest : public testing::Test {
  protected:
    FrameReceiverTest() {
        const FidRange fids{.first = Fid{1}, .last = Fid{9}};
        subscriptions.subscribe({&fids, 1}, {});
        subscriptions.begin(10);
        const std::uint32_t number = subscriptions.next()->number;
        subscriptions.sent();
        subscriptions.answered({.request = number, .result = SubscriptionResult::accepted});
        receiver.begin_connection();
    }
    Outcome take(std::uint8_t kind, std::span<const std::byte> body, std::uint8_t flags = 0) {
        return receiver.take({.kind = kind, .flags = flags, .body = body}, subscriptions, sink);
    }
    static std::vector<std::byte> page(std::initializer_list<std::uint64_t> fids) {
        std::vector<std::byte> memory(1024);
        PageWriter writer{memory};
        for (const std::uint64_t fid : fids)
            writer.append(Fid{fid}, 0, 5);
        memory.resize(writer.used());
        return memory;
    }
    static std::vector<std::byte> counts(std::initializer_list<FidCount> list) {
        std::vector<std::byte> body(list.size() * fid_count_bytes);
        encode(std::vector<FidCount>{list}, body);
        return body;
    }
    static std::vector<std::byte> message(std::uint64_t fid) {
        std::vector<std::byte> body(message_extension_bytes + 7);
        encode(MessageExtension{.fid = Fid{fid}, .status = 0}, body);
        return body;
    }
    static std::vector<std::byte> fragment(std::uint64_t fid, std::uint32_t offset,
                                           std::size_t bytes = 10) {
        std::vector<std::byte> body(fragment_extension_bytes + bytes);
        encode(
            FragmentExtension{
                .fid = Fid{fid}, .message_number = 1, .offset = offset, .total = 20, .status = 0},
            body);
        return body;
    }

    SubscriptionState subscriptions;
    FrameReceiver receiver{{.largest_message_bytes = 1000, .fids = 5}};
    Sink sink;
};

TEST_F(FrameReceiverTest, ReportsThatThereIsNoMemoryForAMessage) {
    const std::vector<std::byte> first = fragment(4, 0);
    netio::test::fail_new_at(1);
    EXPECT_EQ(take(fragment_kind, first), Outcome::no_memory);
    EXPECT_THAT(sink.messages, IsEmpty());
    EXPECT_EQ(take(fragment_kind, first), Outcome::taken);
    EXPECT_EQ(take(fragment_kind, fragment(4, 10)), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x4:20"));
}

TEST_F(FrameReceiverTest, FindsMessagesInPagesInFramesOfTheirOwnAndInFragments) {
    EXPECT_EQ(take(page_kind, page({1, 1, 2})), Outcome::taken);
    EXPECT_EQ(take(message_kind, message(3)), Outcome::taken);
    EXPECT_EQ(take(fragment_kind, fragment(4, 0)), Outcome::taken);
    EXPECT_EQ(take(fragment_kind, fragment(4, 10)), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5", "0x1:5", "0x2:5", "0x3:7", "0x4:20"));
    EXPECT_EQ(receiver.arrivals().messages(), 5U);
    EXPECT_EQ(receiver.arrivals().bytes(), 42U);
}

// For example a message slightly too large for a page.
TEST_F(FrameReceiverTest, AMessageThatIsOneFragmentIsHandedOverWhereItLies) {
    const std::vector<std::byte> whole = fragment(4, 0, 20);
    EXPECT_EQ(take(fragment_kind, whole), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x4:20"));
    EXPECT_EQ(sink.last.data(), whole.data() + fragment_extension_bytes);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken) << "no message is in progress";
}

// Immediately after a valid fragment, at the same memory address.
TEST_F(FrameReceiverTest, AFragmentWhoseReservedBytesAreNotZeroIsNotTheOneBefore) {
    const std::vector<std::byte> good = fragment(4, 0, 20);
    std::vector<std::byte> bad = good;
    bad[fragment_extension_bytes - 1] = std::byte{1};
    const Outcome of_good = take(fragment_kind, good);
    const Outcome of_bad = take(fragment_kind, bad);
    EXPECT_EQ(of_good, Outcome::taken);
    EXPECT_EQ(of_bad, Outcome::malformed);
    EXPECT_THAT(sink.messages, ElementsAre("0x4:20"));
}

TEST_F(FrameReceiverTest, ReportsWhichKindsOfFramesHaveArrived) {
    take(fragment_kind, fragment(4, 0));
    EXPECT_TRUE(receiver.seen().fragments);
    EXPECT_FALSE(receiver.seen().pages);
    EXPECT_FALSE(receiver.seen().messages);
    take(fragment_kind, fragment(4, 10));
    EXPECT_EQ(take(page_kind, page({1}), gathered_flag), Outcome::taken);
    EXPECT_TRUE(receiver.seen().gathered);
    EXPECT_FALSE(receiver.seen().pages);
    take(page_kind, page({1}));
    EXPECT_TRUE(receiver.seen().pages);
}

TEST_F(FrameReceiverTest, UnrequestedFidsAreRefusedAndNotRemembered) {
    EXPECT_EQ(take(page_kind, page({1, 10, 2})), Outcome::malformed);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5"));
    EXPECT_EQ(take(message_kind, message(0)), Outcome::malformed);
    EXPECT_EQ(take(gap_kind, counts({{Fid{10}, 1}})), Outcome::malformed);
    EXPECT_EQ(take(totals_kind, counts({{Fid{1}, 1}, {Fid{99}, 1}})), Outcome::malformed);
    EXPECT_THAT(sink.gaps, IsEmpty());
    EXPECT_EQ(receiver.arrivals().fids().size(), 1U);
}

// Five fids are counted.
TEST_F(FrameReceiverTest, APublisherDoesNotDecideHowManyFidsAreRemembered) {
    EXPECT_EQ(take(page_kind, page({1, 2, 3, 4, 5, 1})), Outcome::taken);
    EXPECT_EQ(take(page_kind, page({5, 6})), Outcome::too_many_fids);
    EXPECT_EQ(sink.messages.back(), "0x5:5");
    EXPECT_EQ(take(message_kind, message(6)), Outcome::too_many_fids);
    EXPECT_EQ(take(message_kind, message(10)), Outcome::malformed) << "it was not subscribed";
    EXPECT_EQ(take(gap_kind, counts({{Fid{6}, 1}})), Outcome::too_many_fids);
    EXPECT_EQ(take(totals_kind, counts({{Fid{6}, 1}})), Outcome::too_many_fids);
    EXPECT_EQ(receiver.arrivals().fids().size(), 5U);
    receiver.end_subscription({.first = Fid{1}, .last = Fid{1}});
    EXPECT_EQ(take(page_kind, page({6})), Outcome::taken);
}

TEST_F(FrameReceiverTest, WhatWasUnsubscribedIsRefusedOnceThePublisherHasConfirmedIt) {
    const FidRange one{.first = Fid{1}, .last = Fid{1}};
    take(page_kind, page({1}));
    subscriptions.unsubscribe(one);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken) << "it was in flight";
    const std::uint32_t number = subscriptions.next()->number;
    subscriptions.sent();
    subscriptions.answered({.request = number, .result = SubscriptionResult::accepted});
    receiver.end_subscription(one);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::malformed);
}

TEST_F(FrameReceiverTest, NothingIsTakenOnceTheSinkHasHadEnough) {
    sink.limit = 1;
    EXPECT_EQ(take(page_kind, page({1, 2, 3})), Outcome::left);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5"));
    sink.messages.clear();
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken) << "no more messages";
    sink.gone = true;
    sink.messages.clear();
    EXPECT_EQ(take(page_kind, page({1, 2, 3})), Outcome::taken) << "no more messages are read";
    EXPECT_EQ(take(gap_kind, counts({{Fid{1}, 2}, {Fid{2}, 3}})), Outcome::taken);
    EXPECT_THAT(sink.gaps, ElementsAre("0x1:2"));
}

TEST_F(FrameReceiverTest, TotalsComeInSeveralFramesAndOnce) {
    take(page_kind, page({1}));
    EXPECT_EQ(take(totals_kind, counts({{Fid{1}, 1}}), more_flag), Outcome::taken);
    EXPECT_FALSE(receiver.arrivals().complete());
    EXPECT_EQ(take(totals_kind, counts({{Fid{2}, 4}})), Outcome::totals);
    EXPECT_TRUE(receiver.arrivals().complete());
    EXPECT_EQ(receiver.arrivals().difference(),
              (ArrivalCounter::Difference{.lost = 4, .surplus = 0}));
    EXPECT_EQ(take(totals_kind, counts({})), Outcome::malformed) << "there are no more";
}

TEST_F(FrameReceiverTest, AFragmentedMessageIsNotInterruptedByAnother) {
    take(fragment_kind, fragment(4, 0));
    EXPECT_EQ(take(gap_kind, counts({{Fid{1}, 1}})), Outcome::taken);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::malformed);
    EXPECT_EQ(take(message_kind, message(1)), Outcome::malformed);
}

TEST_F(FrameReceiverTest, HalfAMessageDoesNotSurviveItsConnection) {
    take(fragment_kind, fragment(4, 0));
    receiver.end_connection(false);
    EXPECT_EQ(take(fragment_kind, fragment(4, 10)), Outcome::malformed);
    receiver.begin_connection();
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken);
}

TEST_F(FrameReceiverTest, FramesThatNoPublisherSendsAreRefused) {
    EXPECT_EQ(take(subscribe_kind, {}), Outcome::malformed);
    EXPECT_EQ(take(page_kind, page({1}), 2), Outcome::malformed) << "no other flags";
    EXPECT_EQ(take(message_kind, message(1), 1), Outcome::malformed) << "no flags";
    EXPECT_EQ(take(totals_kind, counts({}), 2), Outcome::malformed);
    const std::vector<std::byte> torn(15);
    for (const std::uint8_t kind : {page_kind, message_kind, fragment_kind, gap_kind, totals_kind})
        EXPECT_EQ(take(kind, torn), Outcome::malformed) << int{kind};
}

TEST_F(FrameReceiverTest, TheRestOfAPageGoesOnWithTheFidThatWasLast) {
    sink.limit = 2;
    const auto body = page({1, 2, 2, 2, 3});
    ASSERT_EQ(take(page_kind, body), Outcome::left);
    const std::size_t left = receiver.rest().size();
    sink.limit = 3;
    ASSERT_EQ(receiver.take({.kind = page_kind, .body = receiver.rest(), .continued = true},
                            subscriptions, sink),
              Outcome::left);
    EXPECT_LT(receiver.rest().size(), left);
    sink.limit = SIZE_MAX;
    EXPECT_EQ(receiver.take({.kind = page_kind, .body = receiver.rest(), .continued = true},
                            subscriptions, sink),
              Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5", "0x2:5", "0x2:5", "0x2:5", "0x3:5"));
    EXPECT_EQ(receiver.arrivals().messages(), 5U);
}

TEST_F(FrameReceiverTest, TheRestOfSomeGapsIsCountedWhenItIsTaken) {
    sink.limit = 1;
    const auto body = counts({{Fid{1}, 5}, {Fid{2}, 6}, {Fid{3}, 7}});
    ASSERT_EQ(take(gap_kind, body), Outcome::left);
    EXPECT_EQ(receiver.arrivals().dropped(), 5U);
    sink.limit = SIZE_MAX;
    const std::vector<std::byte> rest{receiver.rest().begin(), receiver.rest().end()};
    EXPECT_EQ(
        receiver.take({.kind = gap_kind, .body = rest, .continued = true}, subscriptions, sink),
        Outcome::taken);
    EXPECT_THAT(sink.gaps, ElementsAre("0x1:5", "0x2:6", "0x3:7"));
    EXPECT_EQ(receiver.arrivals().dropped(), 18U);
}

// --- positions ------------------------------------------------------------------------------

std::vector<std::byte> positions(std::uint32_t request, std::initializer_list<FidCount> list,
                                 std::uint64_t instance = 77) {
    std::vector<std::byte> body(positions_extension_bytes + list.size() * fid_count_bytes);
    encode(PositionsExtension{.instance = instance, .request = request}, body);
    encode(std::vector<FidCount>{list}, std::span{body}.subspan(positions_extension_bytes));
    return body;
}

TEST_F(FrameReceiverTest, PositionsAreTakenOfWhatWasAskedForAndIsNotAnswered) {
    const FidRange more{.first = Fid{20}, .last = Fid{29}};
    subscriptions.subscribe({&more, 1}, {});
    const std::uint32_t number = subscriptions.next()->number;
    EXPECT_EQ(take(positions_kind, positions(number, {})), Outcome::malformed) << "not yet sent";
    subscriptions.sent();
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{20}, 5}}), more_flag), Outcome::taken);
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{29}, 5}})), Outcome::taken);
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{30}, 5}})), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, positions(number + 1, {})), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, positions(number, {}), 2), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, positions(number, {}, 0)), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, {}), Outcome::malformed);
    EXPECT_THAT(sink.lost, IsEmpty()) << "it is the first connection";
    EXPECT_EQ(receiver.instance(), 77U);
    subscriptions.answered({.request = number, .result = SubscriptionResult::accepted});
    EXPECT_EQ(take(positions_kind, positions(number, {})), Outcome::malformed) << "too late";
}

// A user subscribes to ranges in any order, and some contain others; positions come in any order.
TEST_F(FrameReceiverTest, PositionsAreTakenOfRangesInWhicheverOrderTheyWereAskedFor) {
    subscriptions.subscribe(std::vector{FidRange{.first = Fid{40}, .last = Fid{49}},
                                        FidRange{.first = Fid{20}, .last = Fid{29}},
                                        FidRange{.first = Fid{21}, .last = Fid{21}}},
                            {});
    const std::uint32_t number = subscriptions.next()->number;
    subscriptions.sent();
    for (const std::uint64_t fid : {49U, 20U, 21U, 40U, 29U})
        EXPECT_EQ(take(positions_kind, positions(number, {{Fid{fid}, 5}}), more_flag),
                  Outcome::taken)
            << fid;
    for (const std::uint64_t fid : {19U, 30U, 39U, 50U})
        EXPECT_EQ(take(positions_kind, positions(number, {{Fid{fid}, 5}}), more_flag),
                  Outcome::malformed)
            << fid;
}

TEST_F(FrameReceiverTest, PositionsOfMoreFidsThanTheLimitAreRefused) {
    const FidRange more{.first = Fid{20}, .last = Fid{29}};
    subscriptions.subscribe({&more, 1}, {});
    const std::uint32_t number = subscriptions.next()->number;
    subscriptions.sent();
    const auto five = {FidCount{Fid{20}, 1}, FidCount{Fid{21}, 1}, FidCount{Fid{22}, 1},
                       FidCount{Fid{23}, 1}, FidCount{Fid{24}, 1}};
    EXPECT_EQ(take(positions_kind, positions(number, five)), Outcome::taken);
    EXPECT_EQ(take(positions_kind, positions(number, five)), Outcome::taken) << "the same fids";
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{25}, 1}})), Outcome::too_many_fids);
}

constexpr FidRange asked_fids{.first = Fid{0}, .last = Fid{9}};

// Accepts all messages, no second gap, and losses between connections up to a limit.
struct LimitedSink {
    bool take_message(Fid fid, std::span<const std::byte>, std::uint8_t) {
        messages.push_back(fid);
        return true;
    }
    bool take_gap(Fid, std::uint64_t) { return false; }
    bool is_gone() const { return false; }
    bool take_change(const PublisherChange& change) {
        changes.push_back(change);
        return wants_changes;
    }
    bool take_lost(Fid fid, std::uint64_t count) {
        lost.push_back({.fid = fid, .count = count});
        return lost.size() < limit;
    }
    bool wants_changes = true;
    std::size_t limit = SIZE_MAX;
    std::vector<PublisherChange> changes;
    std::vector<FidCount> lost;
    std::vector<Fid> messages;
};

class FrameReceiverReconnection : public testing::Test {
  protected:
    FrameReceiverReconnection() { subscriptions.subscribe({&asked_fids, 1}, {}); }
    // Requests everything; returns the number of the request.
    std::uint32_t connect() {
        subscriptions.begin(10);
        receiver.begin_connection();
        return ask();
    }
    std::uint32_t ask() {
        const std::uint32_t number = subscriptions.next()->number;
        subscriptions.sent();
        return number;
    }
    void answer(std::uint32_t request) {
        const SubscriptionState::Request answered =
            subscriptions.answered({.request = request, .result = SubscriptionResult::accepted})
                .value();
        for (const FidRange& range : answered.ranges)
            answered.subscribe ? receiver.begin_subscription(range)
                               : receiver.end_subscription(range);
    }
    void disconnect() {
        receiver.end_connection(false);
        subscriptions.end();
    }
    Outcome take(std::uint8_t kind, std::span<const std::byte> body, std::uint8_t flags = 0) {
        return receiver.take({.kind = kind, .flags = flags, .body = body}, subscriptions, sink);
    }
    Outcome positions(std::uint32_t request, std::initializer_list<FidCount> list,
                      std::uint64_t instance = 77) {
        std::vector<std::byte> body(positions_extension_bytes + list.size() * fid_count_bytes);
        encode(PositionsExtension{.instance = instance, .request = request}, body);
        encode(std::vector<FidCount>{list}, std::span{body}.subspan(positions_extension_bytes));
        return take(positions_kind, body);
    }
    // A first connection with `messages` messages of fid 1.
    void begin_with(std::size_t messages) {
        const std::uint32_t request = connect();
        EXPECT_EQ(positions(request, {}), Outcome::taken);
        answer(request);
        EXPECT_EQ(take(page_kind, page(Fid{1}, messages)), Outcome::taken);
        disconnect();
    }
    static std::vector<std::byte> page(Fid fid, std::size_t messages) {
        std::vector<std::byte> memory(1024);
        PageWriter writer{memory};
        for (std::size_t i = 0; i < messages; ++i)
            writer.append(fid, 0, 5);
        memory.resize(writer.used());
        return memory;
    }

    SubscriptionState subscriptions;
    FrameReceiver receiver{{.largest_message_bytes = 1000}};
    LimitedSink sink;
};

TEST_F(FrameReceiverReconnection, MessagesBetweenTwoConnectionsAreReportedMissing) {
    begin_with(3);
    const std::uint32_t request = connect();
    EXPECT_EQ(positions(request, {{Fid{1}, 5}, {Fid{2}, 4}, {Fid{3}, 0}}), Outcome::taken);
    EXPECT_THAT(sink.lost, ElementsAre(FidCount{Fid{1}, 2}, FidCount{Fid{2}, 4}));
    // Until each fid is granted again, messages may be missing.
    receiver.begin_subscription({.first = Fid{0}, .last = Fid{4}});
    EXPECT_TRUE(receiver.resume_state()->has_open_tail());
    answer(request);
    EXPECT_FALSE(receiver.resume_state()->has_open_tail());
}

TEST_F(FrameReceiverReconnection, ASinkThatStopsGetsNoMoreReports) {
    begin_with(3);
    sink.limit = 1;
    EXPECT_EQ(positions(connect(), {{Fid{1}, 5}, {Fid{2}, 4}}), Outcome::taken);
    EXPECT_THAT(sink.lost, ElementsAre(FidCount{Fid{1}, 2}));
    disconnect();
    sink.wants_changes = false;
    EXPECT_EQ(positions(connect(), {{Fid{1}, 5}}, 78), Outcome::taken);
    EXPECT_EQ(sink.changes.size(), 1U);
    EXPECT_FALSE(receiver.resume_state()->knows(Fid{1}))
        << "positions after the change were ignored";
}

TEST_F(FrameReceiverReconnection, AnotherPolicyForWhatIsGrantedMovesNoPosition) {
    std::uint32_t request = connect();
    EXPECT_EQ(positions(request, {}), Outcome::taken);
    answer(request);
    subscriptions.subscribe({&asked_fids, 1}, SlowPolicy::drop);
    request = ask();
    EXPECT_EQ(positions(request, {{Fid{1}, 100}}), Outcome::taken);
    EXPECT_THAT(sink.lost, IsEmpty()) << "they are in flight";
    answer(request);
    EXPECT_EQ(take(page_kind, page(Fid{1}, 3)), Outcome::taken);
    disconnect();
    EXPECT_EQ(positions(connect(), {{Fid{1}, 3}}), Outcome::taken);
    EXPECT_THAT(sink.lost, IsEmpty());
}

TEST_F(FrameReceiverReconnection, WhatWasUnsubscribedFromIsNotLost) {
    const std::uint32_t request = connect();
    EXPECT_EQ(positions(request, {}), Outcome::taken);
    answer(request);
    EXPECT_EQ(take(page_kind, page(Fid{1}, 3)), Outcome::taken);
    const FidRange one{.first = Fid{1}, .last = Fid{1}};
    subscriptions.unsubscribe(one);
    answer(ask());
    subscriptions.subscribe({&one, 1}, {});
    EXPECT_EQ(positions(ask(), {{Fid{1}, 50}}), Outcome::taken);
    EXPECT_THAT(sink.lost, IsEmpty());
}

TEST_F(FrameReceiverReconnection, RejectsMalformedAndUnrequestedPositions) {
    const std::uint32_t request = connect();
    std::vector<std::byte> torn(positions_extension_bytes + fid_count_bytes - 1);
    encode(PositionsExtension{.instance = 77, .request = request}, torn);
    EXPECT_EQ(take(positions_kind, torn), Outcome::malformed);
    answer(request);
    subscriptions.unsubscribe(asked_fids);
    EXPECT_EQ(positions(ask(), {}), Outcome::malformed);
}

TEST_F(FrameReceiverReconnection, EachConnectionHasItsCountersAndTotals) {
    const std::vector<std::byte> none;
    for (int i = 0; i < 2; ++i) {
        answer(connect());
        EXPECT_TRUE(receiver.arrivals().fids().empty());
        EXPECT_FALSE(receiver.arrivals().complete());
        EXPECT_EQ(take(page_kind, page(Fid{1}, 3)), Outcome::taken);
        EXPECT_EQ(take(totals_kind, none), Outcome::totals);
        disconnect();
        EXPECT_TRUE(receiver.arrivals().complete()) << "the totals stay until the next connection";
    }
    EXPECT_EQ(receiver.arrivals().messages(), 6U);
}

TEST_F(FrameReceiverReconnection, AnIncompleteMessageDoesNotBlockTheNextConnection) {
    answer(connect());
    std::vector<std::byte> half(fragment_extension_bytes + 10);
    encode(FragmentExtension{.fid = Fid{1}, .message_number = 1, .offset = 0, .total = 20}, half);
    EXPECT_EQ(take(fragment_kind, half), Outcome::taken);
    answer(connect()); // whether or not the end of the previous connection was noticed
    EXPECT_EQ(take(page_kind, page(Fid{1}, 1)), Outcome::taken);
}

TEST_F(FrameReceiverReconnection, NothingIsLeftAfterTheLastGapOfAFrame) {
    answer(connect());
    std::vector<std::byte> body(fid_count_bytes);
    encode(std::vector{FidCount{Fid{1}, 2}}, body);
    EXPECT_EQ(take(gap_kind, body), Outcome::taken) << "although no more was wanted";
    EXPECT_EQ(receiver.arrivals().dropped(), 2U);
}

TEST_F(FrameReceiverReconnection, FidZeroIsAFidAsAnyOther) {
    answer(connect());
    EXPECT_EQ(take(page_kind, page(Fid{0}, 2)), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre(Fid{0}, Fid{0}));
    ASSERT_NE(receiver.arrivals().fids().find(Fid{0}), nullptr);
    EXPECT_EQ(receiver.arrivals().fids().find(Fid{0})->messages, 2U);
}

TEST_F(FrameReceiverReconnection, AMessageInAFrameOfItsOwnIsSeenAsSuch) {
    answer(connect());
    std::vector<std::byte> body(message_extension_bytes);
    encode(MessageExtension{.fid = Fid{1}, .status = 0}, body);
    EXPECT_FALSE(receiver.seen().messages);
    EXPECT_EQ(take(message_kind, body), Outcome::taken) << "a message of 0 bytes";
    EXPECT_TRUE(receiver.seen().messages);
}

// --- whole pages ----------------------------------------------------------------------------

struct PageSink : Sink {
    static bool wants_pages() { return true; }
    void take_page(std::span<const std::byte> records, std::size_t count) {
        std::string text;
        for (const Message& each : PageView{records, count, nullptr})
            text += to_string(each.fid()) + ":" + std::to_string(each.size()) + " ";
        pages.push_back(text);
    }
    std::vector<std::string> pages;
};

TEST_F(FrameReceiverTest, AWholePageIsCountedAndHandedOverAtOnce) {
    PageSink whole;
    const auto body = page({1, 1, 2, 1});
    EXPECT_EQ(receiver.take({.kind = page_kind, .body = body}, subscriptions, whole),
              Outcome::taken);
    EXPECT_THAT(whole.pages, ElementsAre("0x1:5 0x1:5 0x2:5 0x1:5 "));
    EXPECT_THAT(whole.messages, IsEmpty());
    EXPECT_EQ(receiver.arrivals().messages(), 4U);
    EXPECT_EQ(receiver.arrivals().bytes(), 20U);
}

TEST_F(FrameReceiverTest, OfAPageThatIsInvalidAtItsEndNothingIsHandedOver) {
    PageSink whole;
    auto body = page({1, 2, 3});
    body.resize(body.size() - 1);
    EXPECT_EQ(receiver.take({.kind = page_kind, .body = body}, subscriptions, whole),
              Outcome::malformed);
    EXPECT_EQ(receiver.take({.kind = page_kind, .body = page({1, 77})}, subscriptions, whole),
              Outcome::malformed);
    EXPECT_EQ(receiver.take({.kind = page_kind, .body = {}}, subscriptions, whole), Outcome::taken);
    EXPECT_THAT(whole.pages, IsEmpty());
    EXPECT_EQ(receiver.arrivals().messages(), 0U);
}

TEST(PageViewTest, AKeptPageGivesTheSameMessagesAndSharesItsMemory) {
    std::vector<std::byte> memory(256);
    PageWriter writer{memory};
    const auto append = [&](Fid fid, std::uint8_t status, std::size_t size, int value) {
        std::byte* const out = writer.append(fid, status, size);
        std::fill_n(out, size, static_cast<std::byte>(value));
    };
    append(Fid{1}, 0, 3, 1);
    append(Fid{1}, 9, 0, 0);
    append(Fid{4}, 0, 2, 2);
    memory.resize(writer.used());
    const auto text = [](const auto& page) {
        std::string all;
        for (const Message& each : page)
            all += to_string(each.fid()) + ":" + std::to_string(each.size()) + "/" +
                   std::to_string(each.status()) + " ";
        return all;
    };
    KeptPage kept;
    KeptBytes last;
    {
        const PageView page{memory, 3, nullptr};
        EXPECT_EQ(text(page), "0x1:3/0 0x1:0/9 0x4:2/0 ");
        kept = page.keep();
        std::ranges::fill(memory, std::byte{0xff});
    }
    EXPECT_EQ(kept.size(), 3U);
    EXPECT_EQ(text(kept), "0x1:3/0 0x1:0/9 0x4:2/0 ");
    for (const Message& each : kept)
        if (each.fid() == Fid{4}) last = kept.keep(each.bytes());
    EXPECT_EQ(last.bytes().data() + 2, kept.bytes().data() + kept.bytes().size());
    const KeptPage moved = std::move(kept);
    EXPECT_EQ(text(moved), "0x1:3/0 0x1:0/9 0x4:2/0 ");
    EXPECT_EQ(std::to_integer<int>(last.bytes()[0]), 2);
}

} // namespace
} // namespace netio::pubsub::frame_receiver_test
