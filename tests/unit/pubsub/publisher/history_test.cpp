// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

namespace netio::pubsub::test::history_test {
namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

constexpr TimePoint at(int ms) {
    return TimePoint{milliseconds{ms}};
}

Bytes message(Fid fid, std::uint64_t number, std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(to_integer(fid) * 7 + number * 31 + i);
    return bytes;
}

Bytes whole(const HistoryLog::Message& message) {
    Bytes bytes(message.parts[0].begin(), message.parts[0].end());
    bytes.insert(bytes.end(), message.parts[1].begin(), message.parts[1].end());
    return bytes;
}

struct Kept {
    Fid fid{};
    std::uint64_t number = 0;
    std::size_t size = 0;
};

// Every size and every place of the end of the memory within a message, against a plain list.
TEST(HistoryLog, KeepsTheNewestMessagesThatFit) {
    std::minstd_rand random{1};
    for (const std::size_t limit : {64U, 100U, 1000U, 4096U}) {
        HistoryLog log{{.bytes = limit, .time = {}}};
        std::deque<Kept> model;
        std::map<Fid, std::uint64_t> published;
        std::size_t used = 0;
        for (int i = 0; i < 4000; ++i) {
            const Fid fid{random() % 3};
            const std::size_t size = random() % (random() % 8 == 0 ? limit : 40);
            const std::uint64_t number = published[fid]++;
            const auto status = static_cast<std::uint8_t>(random());
            const Bytes bytes = message(fid, number, size);
            while (!log.has_room(size) && log.begin() < log.end()) {
                used -= HistoryLog::bytes_for(model.front().size);
                model.pop_front();
                log.drop_front();
            }
            const HistoryLog::Head head{.fid = fid, .status = status, .number = number, .time = {}};
            ASSERT_EQ(log.has_room(size), log.can_keep(size));
            if (!log.can_keep(size)) {
                log.skip(head);
                ASSERT_EQ(log.messages(), 0U);
                ASSERT_EQ(log.first_of(fid), number + 1);
                continue;
            }
            const std::span<const std::byte> all{bytes};
            const std::array parts{all.first(size / 3), all.subspan(size / 3)};
            log.append(head, parts);
            model.push_back({.fid = fid, .number = number, .size = size});
            used += HistoryLog::bytes_for(size);
            ASSERT_EQ(log.bytes(), used);
            ASSERT_LE(used, limit);
            ASSERT_EQ(log.messages(), model.size());
            HistoryLog::Place place = log.begin();
            std::map<Fid, std::uint64_t> first = published;
            for (const Kept& each : model) {
                const HistoryLog::Message found = log.at(place);
                ASSERT_EQ(found.fid, each.fid);
                ASSERT_EQ(found.number, each.number);
                ASSERT_EQ(whole(found), message(each.fid, each.number, each.size));
                first[each.fid] = std::min(first[each.fid], each.number);
                place = found.next;
            }
            ASSERT_EQ(place, log.end());
            for (const auto& [of, number_of_first] : first)
                ASSERT_EQ(log.first_of(of), number_of_first);
        }
    }
}

class LateSubscriptions : public testing::Test {
  protected:
    static constexpr SubscriberId a{1};
    static constexpr SubscriberId b{2};
    static std::vector<FidRange> fids(std::uint64_t first, std::uint64_t last) {
        return {{.first = Fid{first}, .last = Fid{last}}};
    }
    void publish(std::uint64_t fid, int ms = 0, std::size_t size = 96) {
        const Bytes bytes(size);
        const std::span<const std::byte> part{bytes};
        history.keep({.fid = Fid{fid}, .number = published[fid]++, .time = at(ms)}, {&part, 1},
                     [this](const History::CatchUp& late, Fid of, bool is_new) {
                         lost.push_back({late.subscriber, of, is_new});
                     });
    }
    std::vector<std::uint64_t> rest(History::CatchUp late) const {
        std::vector<std::uint64_t> numbers;
        for (std::size_t steps = 1000; history.find(late, steps);) {
            const HistoryLog::Message next = history.log().at(late.next);
            numbers.push_back(next.number);
            late.next = next.next;
        }
        return numbers;
    }

    struct Lost {
        SubscriberId subscriber{};
        Fid fid{};
        bool is_new = false;
        friend bool operator==(const Lost&, const Lost&) = default;
    };
    History history{{.bytes = 8 * 128, .time = milliseconds{100}}}; // for 8 messages
    std::map<std::uint64_t, std::uint64_t> published;
    std::vector<Lost> lost;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(LateSubscriptions, GetTheKeptMessagesOfTheirFidsOnly) {
    for (std::uint64_t i = 0; i < 6; ++i)
        publish(i % 3);
    history.begin(a, fids(1, 1));
    history.begin(b, fids(0, 1));
    EXPECT_EQ(rest(history.late()[0]), (Numbers{0, 1}));
    EXPECT_EQ(rest(history.late()[1]), (Numbers{0, 0, 1, 1}));
    publish(1);
    EXPECT_EQ(rest(history.late()[0]), (Numbers{0, 1, 2}));
    history.end(b, fids(0, 0));
    EXPECT_EQ(rest(history.late()[1]), (Numbers{0, 1, 2}));
    history.end(b, fids(0, 9));
    EXPECT_EQ(history.late_of(b), 0U);
    EXPECT_EQ(history.late_of(a), 1U);
}

TEST_F(LateSubscriptions, MissWhatIsDiscardedBeforeItIsSent) {
    for (int i = 0; i < 8; ++i)
        publish(1);
    history.begin(a, fids(1, 1));
    history.begin(b, fids(2, 2));
    publish(1);
    publish(2);
    EXPECT_EQ(lost, (std::vector<Lost>{{a, Fid{1}, false}, {a, Fid{1}, false}}));
    EXPECT_EQ(rest(history.late()[0]).front(), 2U);
    lost.clear();
    for (int i = 0; i < 8; ++i)
        publish(3);
    const auto new_ones = std::ranges::count_if(lost, [](const Lost& each) { return each.is_new; });
    EXPECT_EQ(new_ones, 2) << "one of either subscription";
    EXPECT_EQ(lost.size(), 8U);
    EXPECT_EQ(rest(history.late()[0]), Numbers{});
    // A message that is larger than the limit discards all, and is not kept either.
    lost.clear();
    publish(1, 0, 8 * 128);
    EXPECT_EQ(lost, (std::vector<Lost>{{a, Fid{1}, true}}));
    EXPECT_EQ(history.log().first_of(Fid{1}), 10U);
}

TEST_F(LateSubscriptions, KeepOldMessagesUntilTheyWereSent) {
    publish(1, 0);
    publish(1, 60);
    history.expire(at(100));
    EXPECT_EQ(history.log().messages(), 2U);
    history.expire(at(101));
    EXPECT_EQ(history.log().messages(), 1U);
    history.begin(a, fids(1, 1));
    publish(1, 300);
    EXPECT_EQ(rest(history.late()[0]), (Numbers{1, 2}));
    EXPECT_TRUE(lost.empty());
    history.late()[0].next = history.log().end();
    history.expire(at(300));
    EXPECT_EQ(history.log().messages(), 1U);
}

TEST_F(LateSubscriptions, BlockPublishingOfTheirFidsWhenHalfOfTheLogIsUnsent) {
    for (int i = 0; i < 8; ++i)
        publish(1);
    history.begin(a, fids(1, 1));
    bool waits_by_policy = true;
    const auto must_wait = [&](std::uint64_t fid) {
        std::vector<SubscriberId> waited_for;
        const auto may_wait = [&](SubscriberId, Fid) { return waits_by_policy; };
        return history.must_wait(Fid{fid}, 96, may_wait, waited_for);
    };
    for (int i = 0; i < 4; ++i) {
        EXPECT_FALSE(must_wait(1)) << i;
        publish(1);
    }
    waits_by_policy = false;
    EXPECT_FALSE(must_wait(1));
    waits_by_policy = true;
    EXPECT_FALSE(must_wait(2)) << "another fid";
    EXPECT_TRUE(must_wait(1));
    EXPECT_EQ(lost.size(), 4U) << "messages of before the subscription";
    // Until it is live: else it might stay behind for ever.
    history.late()[0].next = history.log().end();
    EXPECT_TRUE(must_wait(1));
    history.end(a, fids(1, 1));
    EXPECT_FALSE(must_wait(1));
}

TEST_F(LateSubscriptions, CountWhatIsQueuedForTheirSubscriber) {
    history.note_sent(3, a, 100);
    history.note_sent(4, a, 50);
    history.note_sent(5, b, 7);
    EXPECT_EQ(history.outstanding(a), 150U);
    EXPECT_TRUE(history.returned(3));
    EXPECT_FALSE(history.returned(3));
    EXPECT_EQ(history.outstanding(a), 50U);
    EXPECT_TRUE(history.returned(4));
    EXPECT_EQ(history.outstanding(a), 0U);
    EXPECT_EQ(history.outstanding(b), 7U);
}

TEST(HistoryOptions, AreCheckedAndHaveADefaultWithOnlyATime) {
    EXPECT_EQ(History::make(0, {}), nullptr);
    EXPECT_EQ(History::make(0, milliseconds{1})->snapshot().limit, std::size_t{64} << 20);
    EXPECT_EQ(History::make(4096, milliseconds{1})->snapshot().limit, 4096U);
    EXPECT_NO_THROW(History::check(4096, {}));
    EXPECT_THROW(History::check(4095, {}), std::invalid_argument);
    EXPECT_THROW(History::check(0, milliseconds{-1}), std::invalid_argument);
    EXPECT_THROW(History::check(0, std::chrono::hours{24 * 366}), std::invalid_argument);
}

} // namespace
} // namespace netio::pubsub::test::history_test
