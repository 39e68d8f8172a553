// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/intake.hpp"

#include "tests/scenario/access/failing_new.hpp"

#include <gmock/gmock.h>

#include <string>

namespace netio::pubsub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = Intake::Outcome;

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
    bool take_missed(Fid fid, std::uint64_t count) {
        missed.push_back({.fid = fid, .count = count});
        return true;
    }
    bool gone = false;
    std::vector<PublisherChange> changes;
    std::vector<FidCount> missed;
    std::vector<std::string> messages, gaps;
    std::span<const std::byte> last;
    std::size_t limit = SIZE_MAX;
};

class IntakeTest : public testing::Test {
  protected:
    IntakeTest() {
        const FidRange fids{.first = Fid{1}, .last = Fid{9}};
        book.subscribe({&fids, 1}, {});
        book.begin(10);
        const std::uint32_t number = book.next()->number;
        book.sent();
        book.answered({.request = number, .result = SubscriptionResult::accepted});
        intake.begin_connection();
    }
    Outcome take(std::uint8_t kind, std::span<const std::byte> body, std::uint8_t flags = 0) {
        return intake.take({.kind = kind, .flags = flags, .body = body}, book, sink);
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

    SubscriptionBook book;
    Intake intake{{.largest_message_bytes = 1000, .fids = 5}};
    Sink sink;
};

TEST_F(IntakeTest, SaysThatThereIsNoMemoryForAMessage) {
    const std::vector<std::byte> first = fragment(4, 0);
    netio::test::fail_new_at(1);
    EXPECT_EQ(take(fragment_kind, first), Outcome::no_memory);
    EXPECT_THAT(sink.messages, IsEmpty());
    EXPECT_EQ(take(fragment_kind, first), Outcome::taken);
    EXPECT_EQ(take(fragment_kind, fragment(4, 10)), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x4:20"));
}

TEST_F(IntakeTest, FindsMessagesInPagesInFramesOfTheirOwnAndInFragments) {
    EXPECT_EQ(take(page_kind, page({1, 1, 2})), Outcome::taken);
    EXPECT_EQ(take(message_kind, message(3)), Outcome::taken);
    EXPECT_EQ(take(fragment_kind, fragment(4, 0)), Outcome::taken);
    EXPECT_EQ(take(fragment_kind, fragment(4, 10)), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5", "0x1:5", "0x2:5", "0x3:7", "0x4:20"));
    EXPECT_EQ(intake.arrivals().messages(), 5U);
    EXPECT_EQ(intake.arrivals().bytes(), 42U);
}

// One that just does not fit a page, for instance.
TEST_F(IntakeTest, AMessageThatIsOneFragmentIsHandedOverWhereItLies) {
    const std::vector<std::byte> whole = fragment(4, 0, 20);
    EXPECT_EQ(take(fragment_kind, whole), Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x4:20"));
    EXPECT_EQ(sink.last.data(), whole.data() + fragment_extension_bytes);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken) << "nothing is in progress";
}

// Right behind one that is good, whose place in memory it has.
TEST_F(IntakeTest, AFragmentWhoseReservedBytesAreNotZeroIsNotTheOneBefore) {
    const std::vector<std::byte> good = fragment(4, 0, 20);
    std::vector<std::byte> bad = good;
    bad[fragment_extension_bytes - 1] = std::byte{1};
    const Outcome of_good = take(fragment_kind, good);
    const Outcome of_bad = take(fragment_kind, bad);
    EXPECT_EQ(of_good, Outcome::taken);
    EXPECT_EQ(of_bad, Outcome::malformed);
    EXPECT_THAT(sink.messages, ElementsAre("0x4:20"));
}

TEST_F(IntakeTest, SaysWhichKindsOfFramesThereWere) {
    take(fragment_kind, fragment(4, 0));
    EXPECT_TRUE(intake.seen().fragments);
    EXPECT_FALSE(intake.seen().pages);
    EXPECT_FALSE(intake.seen().messages);
    take(fragment_kind, fragment(4, 10));
    EXPECT_EQ(take(page_kind, page({1}), gathered_flag), Outcome::taken);
    EXPECT_TRUE(intake.seen().gathered);
    EXPECT_FALSE(intake.seen().pages);
    take(page_kind, page({1}));
    EXPECT_TRUE(intake.seen().pages);
}

TEST_F(IntakeTest, WhatNobodyAskedForIsRefusedAndNotRemembered) {
    EXPECT_EQ(take(page_kind, page({1, 10, 2})), Outcome::malformed);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5"));
    EXPECT_EQ(take(message_kind, message(0)), Outcome::malformed);
    EXPECT_EQ(take(gap_kind, counts({{Fid{10}, 1}})), Outcome::malformed);
    EXPECT_EQ(take(totals_kind, counts({{Fid{1}, 1}, {Fid{99}, 1}})), Outcome::malformed);
    EXPECT_THAT(sink.gaps, IsEmpty());
    EXPECT_EQ(intake.arrivals().fids().size(), 1U);
}

// Five have an account.
TEST_F(IntakeTest, APublisherDoesNotDecideHowManyFidsAreRemembered) {
    EXPECT_EQ(take(page_kind, page({1, 2, 3, 4, 5, 1})), Outcome::taken);
    EXPECT_EQ(take(page_kind, page({5, 6})), Outcome::too_many_fids);
    EXPECT_EQ(sink.messages.back(), "0x5:5");
    EXPECT_EQ(take(message_kind, message(6)), Outcome::too_many_fids);
    EXPECT_EQ(take(message_kind, message(10)), Outcome::malformed) << "nobody asked for it";
    EXPECT_EQ(take(gap_kind, counts({{Fid{6}, 1}})), Outcome::too_many_fids);
    EXPECT_EQ(take(totals_kind, counts({{Fid{6}, 1}})), Outcome::too_many_fids);
    EXPECT_EQ(intake.arrivals().fids().size(), 5U);
    intake.end_subscription({.first = Fid{1}, .last = Fid{1}});
    EXPECT_EQ(take(page_kind, page({6})), Outcome::taken);
}

TEST_F(IntakeTest, WhatWasUnsubscribedIsRefusedOnceThePublisherHasConfirmedIt) {
    const FidRange one{.first = Fid{1}, .last = Fid{1}};
    take(page_kind, page({1}));
    book.unsubscribe(one);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken) << "it was on its way";
    const std::uint32_t number = book.next()->number;
    book.sent();
    book.answered({.request = number, .result = SubscriptionResult::accepted});
    intake.end_subscription(one);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::malformed);
}

TEST_F(IntakeTest, NothingIsTakenOnceTheSinkHasHadEnough) {
    sink.limit = 1;
    EXPECT_EQ(take(page_kind, page({1, 2, 3})), Outcome::left);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5"));
    sink.messages.clear();
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken) << "there was no more";
    sink.gone = true;
    sink.messages.clear();
    EXPECT_EQ(take(page_kind, page({1, 2, 3})), Outcome::taken) << "nothing more is looked at";
    EXPECT_EQ(take(gap_kind, counts({{Fid{1}, 2}, {Fid{2}, 3}})), Outcome::taken);
    EXPECT_THAT(sink.gaps, ElementsAre("0x1:2"));
}

TEST_F(IntakeTest, TotalsComeInSeveralFramesAndOnce) {
    take(page_kind, page({1}));
    EXPECT_EQ(take(totals_kind, counts({{Fid{1}, 1}}), more_flag), Outcome::taken);
    EXPECT_FALSE(intake.arrivals().complete());
    EXPECT_EQ(take(totals_kind, counts({{Fid{2}, 4}})), Outcome::totals);
    EXPECT_TRUE(intake.arrivals().complete());
    EXPECT_EQ(intake.arrivals().books(), (ArrivalCounter::Books{.lost = 4, .surplus = 0}));
    EXPECT_EQ(take(totals_kind, counts({})), Outcome::malformed) << "there are no more";
}

TEST_F(IntakeTest, AFragmentedMessageIsNotInterruptedByAnother) {
    take(fragment_kind, fragment(4, 0));
    EXPECT_EQ(take(gap_kind, counts({{Fid{1}, 1}})), Outcome::taken);
    EXPECT_EQ(take(page_kind, page({1})), Outcome::malformed);
    EXPECT_EQ(take(message_kind, message(1)), Outcome::malformed);
}

TEST_F(IntakeTest, HalfAMessageDoesNotSurviveItsConnection) {
    take(fragment_kind, fragment(4, 0));
    intake.end_connection(false);
    EXPECT_EQ(take(fragment_kind, fragment(4, 10)), Outcome::malformed);
    intake.begin_connection();
    EXPECT_EQ(take(page_kind, page({1})), Outcome::taken);
}

TEST_F(IntakeTest, FramesThatNoPublisherSendsAreRefused) {
    EXPECT_EQ(take(subscribe_kind, {}), Outcome::malformed);
    EXPECT_EQ(take(page_kind, page({1}), 2), Outcome::malformed) << "no other flags";
    EXPECT_EQ(take(message_kind, message(1), 1), Outcome::malformed) << "no flags";
    EXPECT_EQ(take(totals_kind, counts({}), 2), Outcome::malformed);
    const std::vector<std::byte> torn(15);
    for (const std::uint8_t kind : {page_kind, message_kind, fragment_kind, gap_kind, totals_kind})
        EXPECT_EQ(take(kind, torn), Outcome::malformed) << int{kind};
}

TEST_F(IntakeTest, TheRestOfAPageGoesOnWithTheFidThatWasLast) {
    sink.limit = 2;
    const auto body = page({1, 2, 2, 2, 3});
    ASSERT_EQ(take(page_kind, body), Outcome::left);
    const std::size_t left = intake.rest().size();
    sink.limit = 3;
    ASSERT_EQ(
        intake.take({.kind = page_kind, .body = intake.rest(), .continued = true}, book, sink),
        Outcome::left);
    EXPECT_LT(intake.rest().size(), left);
    sink.limit = SIZE_MAX;
    EXPECT_EQ(
        intake.take({.kind = page_kind, .body = intake.rest(), .continued = true}, book, sink),
        Outcome::taken);
    EXPECT_THAT(sink.messages, ElementsAre("0x1:5", "0x2:5", "0x2:5", "0x2:5", "0x3:5"));
    EXPECT_EQ(intake.arrivals().messages(), 5U);
}

TEST_F(IntakeTest, TheRestOfSomeGapsIsCountedWhenItIsTaken) {
    sink.limit = 1;
    const auto body = counts({{Fid{1}, 5}, {Fid{2}, 6}, {Fid{3}, 7}});
    ASSERT_EQ(take(gap_kind, body), Outcome::left);
    EXPECT_EQ(intake.arrivals().missed(), 5U);
    sink.limit = SIZE_MAX;
    const std::vector<std::byte> rest{intake.rest().begin(), intake.rest().end()};
    EXPECT_EQ(intake.take({.kind = gap_kind, .body = rest, .continued = true}, book, sink),
              Outcome::taken);
    EXPECT_THAT(sink.gaps, ElementsAre("0x1:5", "0x2:6", "0x3:7"));
    EXPECT_EQ(intake.arrivals().missed(), 18U);
}

// --- positions ------------------------------------------------------------------------------

std::vector<std::byte> positions(std::uint32_t request, std::initializer_list<FidCount> list,
                                 std::uint64_t instance = 77) {
    std::vector<std::byte> body(positions_extension_bytes + list.size() * fid_count_bytes);
    encode(PositionsExtension{.instance = instance, .request = request}, body);
    encode(std::vector<FidCount>{list}, std::span{body}.subspan(positions_extension_bytes));
    return body;
}

TEST_F(IntakeTest, PositionsAreTakenOfWhatWasAskedForAndIsNotAnswered) {
    const FidRange more{.first = Fid{20}, .last = Fid{29}};
    book.subscribe({&more, 1}, {});
    const std::uint32_t number = book.next()->number;
    EXPECT_EQ(take(positions_kind, positions(number, {})), Outcome::malformed) << "not asked yet";
    book.sent();
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{20}, 5}}), more_flag), Outcome::taken);
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{29}, 5}})), Outcome::taken);
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{30}, 5}})), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, positions(number + 1, {})), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, positions(number, {}), 2), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, positions(number, {}, 0)), Outcome::malformed);
    EXPECT_EQ(take(positions_kind, {}), Outcome::malformed);
    EXPECT_THAT(sink.missed, IsEmpty()) << "it is the first connection";
    EXPECT_EQ(intake.instance(), 77U);
    book.answered({.request = number, .result = SubscriptionResult::accepted});
    EXPECT_EQ(take(positions_kind, positions(number, {})), Outcome::malformed) << "too late";
}

// A user asks for ranges in any order, and some of them lie in others; positions come in no order.
TEST_F(IntakeTest, PositionsAreTakenOfRangesInWhicheverOrderTheyWereAskedFor) {
    book.subscribe(std::vector{FidRange{.first = Fid{40}, .last = Fid{49}},
                               FidRange{.first = Fid{20}, .last = Fid{29}},
                               FidRange{.first = Fid{21}, .last = Fid{21}}},
                   {});
    const std::uint32_t number = book.next()->number;
    book.sent();
    for (const std::uint64_t fid : {49U, 20U, 21U, 40U, 29U})
        EXPECT_EQ(take(positions_kind, positions(number, {{Fid{fid}, 5}}), more_flag),
                  Outcome::taken)
            << fid;
    for (const std::uint64_t fid : {19U, 30U, 39U, 50U})
        EXPECT_EQ(take(positions_kind, positions(number, {{Fid{fid}, 5}}), more_flag),
                  Outcome::malformed)
            << fid;
}

TEST_F(IntakeTest, PositionsOfMoreFidsThanTheLimitAreRefused) {
    const FidRange more{.first = Fid{20}, .last = Fid{29}};
    book.subscribe({&more, 1}, {});
    const std::uint32_t number = book.next()->number;
    book.sent();
    const auto five = {FidCount{Fid{20}, 1}, FidCount{Fid{21}, 1}, FidCount{Fid{22}, 1},
                       FidCount{Fid{23}, 1}, FidCount{Fid{24}, 1}};
    EXPECT_EQ(take(positions_kind, positions(number, five)), Outcome::taken);
    EXPECT_EQ(take(positions_kind, positions(number, five)), Outcome::taken) << "the same ones";
    EXPECT_EQ(take(positions_kind, positions(number, {{Fid{25}, 1}})), Outcome::too_many_fids);
}

} // namespace
} // namespace netio::pubsub
