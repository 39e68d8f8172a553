// SPDX-License-Identifier: Apache-2.0

// Pages that wait for one subscriber and leave in one frame.

#include "tests/unit/pubsub/publisher/queue_peer.hpp"

#include <gmock/gmock.h>

#include <array>
#include <utility>

namespace netio::pubsub {
namespace {

using test::body_limit;
using test::QueuePeer;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

// Pages of 64 bytes, with two messages of 8 bytes each whose number is the page's.
class JoinedPages : public testing::Test {
  protected:
    JoinedPages() { peer.slices = 3; }

    Slice page(std::uint64_t number) {
        std::byte* const begin = memory.data() + 64 * used_;
        PageWriter writer{{begin, 64}};
        for (const std::uint64_t fid : {number, number + 100})
            wire::store(writer.append(Fid{fid}, 0, 8), number);
        return memory.slice(64 * used_++, writer.used());
    }
    void add(std::uint64_t number, SendQueue::Handling handling = {}) {
        handling.cookie = Cookie{number};
        handling.amount = 10;
        peer.queue.add_frame(page_kind, {}, page(number), handling);
    }
    void add_some(std::uint64_t first, std::uint64_t last) {
        for (; first <= last; ++first)
            add(first);
    }
    // The numbers of the messages of the next frame.
    std::vector<std::uint64_t> next_messages() {
        ReadyFrame frame;
        if (!peer.queue.prepare(
                {.post_limit = SIZE_MAX, .body_limit = body_limit, .slice_limit = 3}, frame)) {
            return {};
        }
        std::vector<std::byte> body;
        for (const Slice& slice : std::span{frame.slices}.first(frame.slice_count))
            body.insert(body.end(), slice.data, slice.data + slice.size);
        std::vector<std::uint64_t> numbers;
        EXPECT_TRUE(visit_page(body, [&](Fid, std::span<const std::byte> message, std::uint8_t) {
            numbers.push_back(wire::load<std::uint64_t>(message.data()));
            return true;
        }));
        return numbers;
    }
    std::vector<std::uint64_t> complete() {
        std::vector<std::uint64_t> cookies;
        for (const SendQueue::Returned& each : peer.complete_one()) {
            EXPECT_EQ(each.frames, 1U);
            EXPECT_EQ(each.fate, Fate::sent);
            cookies.push_back(static_cast<std::uint64_t>(each.cookie));
        }
        return cookies;
    }

    RegisteredBuffer memory{64 * 32};
    QueuePeer peer;

  private:
    std::size_t used_ = 0;
};

TEST_F(JoinedPages, AreOnePageInTheirOrderAndEachCookieComesBackOnce) {
    add_some(1, 7);
    EXPECT_THAT(next_messages(), ElementsAre(1, 1, 2, 2, 3, 3));
    peer.take_all();
    EXPECT_THAT(peer.slice_counts, ElementsAre(3, 3, 1));
    EXPECT_THAT(peer.kinds, Each(page_kind));
    EXPECT_TRUE(peer.queue.has_drained());
    EXPECT_EQ(peer.queue.holding().posted, 70U);
    EXPECT_EQ(peer.queue.kept(), 70U);
    EXPECT_THAT(complete(), ElementsAre(1, 2, 3));
    EXPECT_EQ(peer.queue.holding().posted, 40U);
    EXPECT_THAT(complete(), ElementsAre(4, 5, 6));
    EXPECT_THAT(complete(), ElementsAre(7));
    EXPECT_EQ(peer.queue.holding().all(), 0U);
    EXPECT_EQ(peer.queue.kept(), 0U);
}

TEST_F(JoinedPages, AreAsManyAsLeaveFromWhereTheyLie) {
    for (const auto& [slices, expected] :
         {std::pair{0U, 1U}, {1U, 1U}, {2U, 2U}, {28U, SendQueue::joined_limit}}) {
        QueuePeer other;
        other.slices = slices;
        for (std::uint64_t i = 0; i < 12; ++i)
            other.queue.add_frame(page_kind, {}, memory.slice(0, 40), {.cookie = Cookie{i}});
        other.take_one();
        EXPECT_THAT(other.slice_counts, ElementsAre(expected)) << slices;
    }
}

TEST_F(JoinedPages, FitTheirFrame) {
    RegisteredBuffer large{body_limit};
    for (const std::size_t size : {body_limit / 2, body_limit / 2, std::size_t{1}})
        peer.queue.add_frame(page_kind, {}, large.slice(0, size), {.amount = 1});
    peer.take_all();
    EXPECT_THAT(peer.slice_counts, ElementsAre(2, 1));
}

TEST_F(JoinedPages, KeepToTheLimitOfWhatIsPosted) {
    add_some(1, 5);
    peer.take_all(20);
    EXPECT_THAT(peer.slice_counts, ElementsAre(2));
    EXPECT_EQ(peer.queue.holding().posted, 20U);
    EXPECT_THAT(complete(), ElementsAre(1, 2));
    peer.take_all(0);
    EXPECT_THAT(peer.slice_counts, ElementsAre(2, 1)) << "the first of all, whatever it takes";
}

TEST_F(JoinedPages, HaveNothingElseBetweenThem) {
    const std::array<std::byte, fragment_extension_bytes> extension{};
    add_some(1, 2);
    peer.queue.add_gap(Fid{1}, 1);
    add_some(3, 4);
    peer.queue.add_answer(subscription_answer_kind, std::array<std::byte, 8>{});
    add(5);
    peer.queue.add_frame(fragment_kind, extension, page(6), {.cookie = Cookie{6}});
    peer.queue.add_frame(fragment_kind, extension, page(7), {.cookie = Cookie{7}});
    add_some(8, 9);
    add(10, {.droppable = true, .mark = 1});
    add(11, {.droppable = true, .mark = 1});
    add_some(12, 13);
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, gap_kind, page_kind, subscription_answer_kind,
                                        page_kind, fragment_kind, fragment_kind, page_kind,
                                        page_kind, page_kind, page_kind));
    EXPECT_THAT(peer.slice_counts, ElementsAre(2, 0, 2, 0, 1, 1, 1, 2, 1, 1, 2));
}

TEST_F(JoinedPages, ThatHaveLeftAreNotTakenBackAndThoseThatWaitAre) {
    for (std::uint64_t number = 1; number <= 5; ++number)
        add(number, {.droppable = true});
    EXPECT_THAT(next_messages(), ElementsAre(1, 1, 2, 2, 3, 3)) << "which does not post it";
    EXPECT_EQ(peer.queue.holding().droppable, 50U);
    peer.take_one();
    EXPECT_EQ(peer.queue.holding().droppable, 20U);
    EXPECT_EQ(peer.queue.kept(), 30U);
    for (const std::uint64_t number : {5U, 4U}) {
        const auto taken = peer.queue.take_back();
        EXPECT_THAT(taken.cookies, ElementsAre(Cookie{number}));
        taken.gap->add(Fid{number}, 2);
    }
    EXPECT_THAT(peer.queue.take_back().cookies, IsEmpty());
    EXPECT_THAT(complete(), ElementsAre(1, 2, 3));
    peer.take_all();
    EXPECT_THAT(peer.kinds, ElementsAre(page_kind, gap_kind));
    EXPECT_EQ(peer.queue.holding().all(), 0U);
}

TEST_F(JoinedPages, OfAPeerThatIsGoneComeBackOnceEach) {
    add_some(1, 5);
    peer.take_one();
    const auto rest = peer.queue.take_rest(body_limit);
    EXPECT_THAT(rest, ElementsAre(testing::Field(&SendQueue::Returned::cookie, Cookie{4}),
                                  testing::Field(&SendQueue::Returned::cookie, Cookie{5})));
    EXPECT_THAT(complete(), ElementsAre(1, 2, 3));
}

} // namespace
} // namespace netio::pubsub
