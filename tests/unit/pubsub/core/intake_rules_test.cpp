// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/intake.hpp"

#include <gmock/gmock.h>

#include <initializer_list>
#include <vector>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = Intake::Outcome;

constexpr FidRange fids{.first = Fid{0}, .last = Fid{9}};

// Takes all messages, no second gap, and what is missing between connections up to a limit.
struct Sink {
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
    bool take_missed(Fid fid, std::uint64_t count) {
        missed.push_back({.fid = fid, .count = count});
        return missed.size() < limit;
    }
    bool wants_changes = true;
    std::size_t limit = SIZE_MAX;
    std::vector<PublisherChange> changes;
    std::vector<FidCount> missed;
    std::vector<Fid> messages;
};

class IntakeOverConnections : public testing::Test {
  protected:
    IntakeOverConnections() { book.subscribe({&fids, 1}, {}); }
    // Everything is asked for: the number of the request.
    std::uint32_t connect() {
        book.begin(10);
        intake.begin_connection();
        return ask();
    }
    std::uint32_t ask() {
        const std::uint32_t number = book.next()->number;
        book.sent();
        return number;
    }
    void answer(std::uint32_t request) {
        const SubscriptionBook::Request answered =
            book.answered({.request = request, .result = SubscriptionResult::accepted}).value();
        for (const FidRange& range : answered.ranges)
            answered.subscribe ? intake.begin_subscription(range) : intake.end_subscription(range);
    }
    void disconnect() {
        intake.end_connection(false);
        book.end();
    }
    Outcome take(std::uint8_t kind, std::span<const std::byte> body, std::uint8_t flags = 0) {
        return intake.take({.kind = kind, .flags = flags, .body = body}, book, sink);
    }
    Outcome positions(std::uint32_t request, std::initializer_list<FidCount> list,
                      std::uint64_t instance = 77) {
        std::vector<std::byte> body(positions_extension_bytes + list.size() * fid_count_bytes);
        encode(PositionsExtension{.instance = instance, .request = request}, body);
        encode(std::vector<FidCount>{list}, std::span{body}.subspan(positions_extension_bytes));
        return take(positions_kind, body);
    }
    // A connection with so many messages of fid 1, which had none before.
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

    SubscriptionBook book;
    Intake intake{{.largest_message_bytes = 1000}};
    Sink sink;
};

TEST_F(IntakeOverConnections, WhatWasPublishedBetweenTwoOfThemIsToldMissing) {
    begin_with(3);
    const std::uint32_t request = connect();
    EXPECT_EQ(positions(request, {{Fid{1}, 5}, {Fid{2}, 4}, {Fid{3}, 0}}), Outcome::taken);
    EXPECT_THAT(sink.missed, ElementsAre(FidCount{Fid{1}, 2}, FidCount{Fid{2}, 4}));
    // Until each fid is granted again something may be missing.
    intake.begin_subscription({.first = Fid{0}, .last = Fid{4}});
    EXPECT_TRUE(intake.continuity()->has_open_tail());
    answer(request);
    EXPECT_FALSE(intake.continuity()->has_open_tail());
}

TEST_F(IntakeOverConnections, WhoWantsNothingMoreIsToldNothingMore) {
    begin_with(3);
    sink.limit = 1;
    EXPECT_EQ(positions(connect(), {{Fid{1}, 5}, {Fid{2}, 4}}), Outcome::taken);
    EXPECT_THAT(sink.missed, ElementsAre(FidCount{Fid{1}, 2}));
    disconnect();
    sink.wants_changes = false;
    EXPECT_EQ(positions(connect(), {{Fid{1}, 5}}, 78), Outcome::taken);
    EXPECT_EQ(sink.changes.size(), 1U);
    EXPECT_FALSE(intake.continuity()->knows(Fid{1})) << "nothing behind the change was taken";
}

TEST_F(IntakeOverConnections, AnotherPolicyForWhatIsGrantedMovesNoPosition) {
    std::uint32_t request = connect();
    EXPECT_EQ(positions(request, {}), Outcome::taken);
    answer(request);
    book.subscribe({&fids, 1}, SlowPolicy::drop);
    request = ask();
    EXPECT_EQ(positions(request, {{Fid{1}, 100}}), Outcome::taken);
    EXPECT_THAT(sink.missed, IsEmpty()) << "they are on their way";
    answer(request);
    EXPECT_EQ(take(page_kind, page(Fid{1}, 3)), Outcome::taken);
    disconnect();
    EXPECT_EQ(positions(connect(), {{Fid{1}, 3}}), Outcome::taken);
    EXPECT_THAT(sink.missed, IsEmpty());
}

TEST_F(IntakeOverConnections, WhatWasUnsubscribedFromIsNotMissed) {
    const std::uint32_t request = connect();
    EXPECT_EQ(positions(request, {}), Outcome::taken);
    answer(request);
    EXPECT_EQ(take(page_kind, page(Fid{1}, 3)), Outcome::taken);
    const FidRange one{.first = Fid{1}, .last = Fid{1}};
    book.unsubscribe(one);
    answer(ask());
    book.subscribe({&one, 1}, {});
    EXPECT_EQ(positions(ask(), {{Fid{1}, 50}}), Outcome::taken);
    EXPECT_THAT(sink.missed, IsEmpty());
}

TEST_F(IntakeOverConnections, PositionsThatAreNoListOrAnswerNoSubscriptionAreRefused) {
    const std::uint32_t request = connect();
    std::vector<std::byte> torn(positions_extension_bytes + fid_count_bytes - 1);
    encode(PositionsExtension{.instance = 77, .request = request}, torn);
    EXPECT_EQ(take(positions_kind, torn), Outcome::malformed);
    answer(request);
    book.unsubscribe(fids);
    EXPECT_EQ(positions(ask(), {}), Outcome::malformed);
}

TEST_F(IntakeOverConnections, EachHasItsAccountsAndItsTotals) {
    const std::vector<std::byte> none;
    for (int i = 0; i < 2; ++i) {
        answer(connect());
        EXPECT_TRUE(intake.arrivals().fids().empty());
        EXPECT_FALSE(intake.arrivals().complete());
        EXPECT_EQ(take(page_kind, page(Fid{1}, 3)), Outcome::taken);
        EXPECT_EQ(take(totals_kind, none), Outcome::totals);
        disconnect();
        EXPECT_TRUE(intake.arrivals().complete()) << "what was told stands till the next one";
    }
    EXPECT_EQ(intake.arrivals().messages(), 6U);
}

TEST_F(IntakeOverConnections, AMessageThatHasBegunDoesNotHoldUpTheNextOne) {
    answer(connect());
    std::vector<std::byte> half(fragment_extension_bytes + 10);
    encode(FragmentExtension{.fid = Fid{1}, .message_number = 1, .offset = 0, .total = 20}, half);
    EXPECT_EQ(take(fragment_kind, half), Outcome::taken);
    answer(connect()); // whether or not the end of the former one was noticed
    EXPECT_EQ(take(page_kind, page(Fid{1}, 1)), Outcome::taken);
}

TEST_F(IntakeOverConnections, BehindTheLastGapOfAFrameNothingIsLeft) {
    answer(connect());
    std::vector<std::byte> body(fid_count_bytes);
    encode(std::vector{FidCount{Fid{1}, 2}}, body);
    EXPECT_EQ(take(gap_kind, body), Outcome::taken) << "though no more was wanted";
    EXPECT_EQ(intake.arrivals().missed(), 2U);
}

TEST_F(IntakeOverConnections, FidZeroIsAFidAsAnyOther) {
    answer(connect());
    EXPECT_EQ(take(page_kind, page(Fid{0}, 2)), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre(Fid{0}, Fid{0}));
    ASSERT_NE(intake.arrivals().fids().find(Fid{0}), nullptr);
    EXPECT_EQ(intake.arrivals().fids().find(Fid{0})->messages, 2U);
}

TEST_F(IntakeOverConnections, AMessageInAFrameOfItsOwnIsSeenAsSuch) {
    answer(connect());
    std::vector<std::byte> body(message_extension_bytes);
    encode(MessageExtension{.fid = Fid{1}, .status = 0}, body);
    EXPECT_FALSE(intake.seen().messages);
    EXPECT_EQ(take(message_kind, body), Outcome::taken) << "it has no bytes";
    EXPECT_TRUE(intake.seen().messages);
}

} // namespace
} // namespace netio::pubsub
