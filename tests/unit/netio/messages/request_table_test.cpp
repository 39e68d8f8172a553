// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/message_frames.hpp"
#include "netio/messages/request_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace netio::test::request_table_test {
namespace {

using namespace std::chrono_literals;
using requests::Header;

TimePoint at(std::int64_t milliseconds) {
    return TimePoint{} + std::chrono::milliseconds{milliseconds};
}

// The table, and the oracle: the open requests with their deadlines, and all numbers so far.
class RandomTable {
  public:
    explicit RandomTable(unsigned seed) : dice_{seed} {}

    void step() {
        switch (below(8)) {
        case 0:
        case 1:
        case 2:
            return add();
        case 3:
        case 4:
            return end();
        case 5:
            return expire();
        case 6:
            return send();
        default:
            if (below(20) == 0) disconnect(below(4) == 0);
        }
    }
    void look() {
        ASSERT_EQ(table_.size(), open_.size());
        const auto first = std::ranges::min_element(
            open_, {}, [](const auto& each) { return each.second.deadline; });
        ASSERT_EQ(table_.next_deadline(),
                  open_.empty() ? std::nullopt : std::optional{first->second.deadline});
    }

  private:
    struct Open {
        TimePoint deadline;
        int value = 0;
        bool sent = false;
    };
    static constexpr std::size_t limit = 40;

    unsigned below(unsigned end) { return static_cast<unsigned>(dice_() % end); }
    auto any_open() { return std::next(open_.begin(), below(static_cast<unsigned>(open_.size()))); }

    void add() {
        const TimePoint deadline = at(now_ + below(100));
        const auto number = table_.add(deadline, ++last_);
        ASSERT_EQ(number.has_value(), open_.size() < limit);
        if (!number) return;
        ASSERT_TRUE(used_.insert(*number).second);
        open_[*number] = {deadline, last_, false};
    }
    // An open request, one that has ended, or none.
    void end() {
        std::uint64_t number = 7;
        if (!open_.empty() && below(4) > 0) {
            number = any_open()->first;
        } else if (!ended_.empty()) {
            number = ended_[below(static_cast<unsigned>(ended_.size()))];
        }
        const auto value = table_.end(number);
        ASSERT_EQ(value.has_value(), open_.contains(number));
        if (!value) return;
        EXPECT_EQ(*value, open_[number].value);
        EXPECT_EQ(table_.find(number), nullptr);
        ended_.push_back(number);
        open_.erase(number);
    }
    void expire() {
        now_ += below(10);
        while (const auto expired = table_.take_expired(at(now_))) {
            ASSERT_TRUE(open_.contains(expired->number));
            const Open entry = open_[expired->number];
            EXPECT_EQ(expired->value, entry.value);
            EXPECT_EQ(expired->was_sent, entry.sent);
            EXPECT_LE(entry.deadline, at(now_));
            for (const auto& [number, other] : open_)
                ASSERT_GE(other.deadline, entry.deadline);
            ended_.push_back(expired->number);
            open_.erase(expired->number);
        }
    }
    void send() {
        if (open_.empty()) return;
        auto& [number, entry] = *any_open();
        entry.sent = below(3) > 0;
        table_.set_sent(number, entry.sent);
        EXPECT_EQ(table_.is_sent(number), entry.sent);
    }
    void disconnect(bool unsent) {
        std::multiset<int> expected;
        for (auto each = open_.begin(); each != open_.end();) {
            if (!unsent && !each->second.sent) {
                ++each;
                continue;
            }
            expected.insert(each->second.value);
            ended_.push_back(each->first);
            each = open_.erase(each);
        }
        const std::vector<int> taken = table_.take_all(unsent);
        EXPECT_EQ(std::multiset<int>(taken.begin(), taken.end()), expected);
    }

    std::mt19937 dice_;
    RequestTable<int> table_{limit};
    std::map<std::uint64_t, Open> open_;
    std::set<std::uint64_t> used_;
    std::vector<std::uint64_t> ended_;
    int last_ = 0;
    std::int64_t now_ = 0;
};

TEST(RequestTable, EndsEachRequestOnceInAnyOrder) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        RandomTable random{seed};
        for (int step = 0; step < 5000 && !testing::Test::HasFatalFailure(); ++step) {
            random.step();
            random.look();
        }
    }
}

// An old ListenSocket refuses every hello whose service bytes are not zero.
TEST(TwoWayHello, NamesTheFeatureTheProtocolAndTheLargestMessage) {
    const Hello plain = messages::two_way_hello(1, 0);
    EXPECT_NE(messages::largest_message_bytes(plain), 0U);
    EXPECT_EQ(plain.features, 0x04);
    EXPECT_EQ(plain.service, Service::messages);
    EXPECT_FALSE(messages::is_two_way(messages::hello(0)));
    const Hello requests = messages::two_way_hello((1U << 30) - 1, 3);
    EXPECT_EQ(messages::two_way_protocol(requests), 3);
    EXPECT_EQ(messages::largest_message_bytes(requests) & messages::two_way_size_mask,
              (1U << 30) - 1);
}

TEST(RequestHeader, IsReadAsWrittenAndRefusedIfMalformed) {
    const Header header{.number = 0x0102030405060708, .kind = Header::Kind::reply, .more = true};
    requests::HeaderBytes bytes = requests::encode(header);
    EXPECT_EQ(bytes[0], std::byte{8}); // little-endian
    const auto read = requests::decode(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->number, header.number);
    EXPECT_EQ(read->kind, header.kind);
    EXPECT_TRUE(read->more);
    EXPECT_FALSE(requests::decode(std::span{bytes}.first(15)));
    const auto with = [&](std::size_t place, std::uint8_t value) {
        requests::HeaderBytes changed = bytes;
        changed[place] = std::byte{value};
        return requests::decode(changed).has_value();
    };
    EXPECT_FALSE(with(8, 0));
    EXPECT_FALSE(with(8, 6));
    EXPECT_FALSE(with(8, 1)); // only replies have more messages
    EXPECT_FALSE(with(9, 2));
    EXPECT_FALSE(with(15, 1));
    EXPECT_TRUE(with(9, 0));
}

} // namespace
} // namespace netio::test::request_table_test
