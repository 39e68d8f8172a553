// SPDX-License-Identifier: Apache-2.0
// Subscribers that ask for history join a busy publisher at random moments, against a plain model
// of what is kept: 10,000 joins, without a gap that is not reported, and without a duplicate.

#include "pubsub/publisher/history.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace netio::pubsub::test::random_joins_test {
namespace {

constexpr std::uint64_t fid_count = 6;
using Numbers = std::map<Fid, std::uint64_t>;

// The newest messages that fit into the limit, as a list.
class Model {
  public:
    explicit Model(std::size_t limit) : limit_{limit} {}
    void publish(Fid fid, std::size_t bytes) {
        kept_.push_back({.fid = fid, .bytes = HistoryLog::bytes_for(bytes)});
        used_ += kept_.back().bytes;
        ++published[fid];
        while (used_ > limit_) {
            used_ -= kept_.front().bytes;
            kept_.pop_front();
        }
    }
    // The number of the oldest message of the fid that is kept, or of the next one.
    std::uint64_t first_of(Fid fid) const {
        const auto found = published.find(fid);
        const auto count = std::ranges::count(kept_, fid, &Kept::fid);
        return found == published.end() ? 0 : found->second - static_cast<std::uint64_t>(count);
    }

    Numbers published;

  private:
    struct Kept {
        Fid fid{};
        std::size_t bytes = 0;
    };
    std::size_t limit_;
    std::size_t used_ = 0;
    std::deque<Kept> kept_;
};

// One subscriber. Each message of a fid has the number that follows, after the reported gaps.
class Joiner final : public SubscribeSocket::Handler {
  public:
    void on_subscribed(SubscribeSocket& it, const FidRange&) override {
        is_subscribed = true;
        if (pauses) it.pause();
    }
    void on_unsubscribed(SubscribeSocket&, const FidRange& fids) override {
        for (std::uint64_t fid = to_integer(fids.first); fid <= to_integer(fids.last); ++fid)
            due.erase(Fid{fid});
        is_unsubscribed = true;
    }
    void on_message(SubscribeSocket& it, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override {
        std::uint64_t number = 0;
        ASSERT_GE(message.size(), sizeof number);
        std::memcpy(&number, message.data(), sizeof number);
        const auto found = due.find(fid);
        ASSERT_NE(found, due.end()) << "a fid that is not subscribed: " << to_string(fid);
        ASSERT_EQ(number, found->second) << to_string(fid);
        ASSERT_EQ(status, static_cast<std::uint8_t>(number));
        ASSERT_TRUE(std::ranges::equal(message, make_message(fid, number, message.size())));
        ++found->second;
        ++messages;
        if (pauses && messages % 5 == 0) it.pause();
    }
    void on_gap(SubscribeSocket&, Fid fid, std::uint64_t count) override {
        const auto found = due.find(fid);
        ASSERT_NE(found, due.end());
        if (waits_by_policy) {
            ASSERT_LE(found->second + count, since[fid]) << "lost with a policy that waits";
        }
        found->second += count;
        gaps += count;
    }
    void on_totals(SubscribeSocket& it) override {
        has_totals = true;
        const ArrivalCounter::Difference difference = it.arrivals().difference().value();
        EXPECT_EQ(difference.surplus, 0U);
    }
    void on_closed(SubscribeSocket&, const netio::Closed& closed, bool) override { end = closed; }

    bool pauses = false;
    bool waits_by_policy = false;
    Numbers due;   // the next message
    Numbers since; // the messages that were published when the subscription was accepted
    bool is_subscribed = false;
    bool is_unsubscribed = false;
    bool has_totals = false;
    std::uint64_t messages = 0;
    std::uint64_t gaps = 0;
    std::optional<netio::Closed> end;
    std::unique_ptr<SubscribeSocket> socket;
};

// The life of one publisher, and of its subscribers one after another, up to three at a time.
class World final : public PublishSocketBase::Handler {
  public:
    World(std::uint64_t seed, std::size_t joins)
        : bed_{seed % 2 == 0 ? Bed::sim_tcp : Bed::sim_verbs, seed}, random_{seed},
          limit_{std::size_t{4096} << draw(6)}, joins_left_{joins}, model_{limit_} {
        BufferedPublishSocket::Options options;
        options.publisher.listen = {bed_.address()};
        options.publisher.slow_policy = SlowPolicy::block;
        options.publisher.largest_message_bytes = 20000;
        options.page_size_bytes = 4096;
        options.page_count = 16 + draw(64);
        options.history_limit_bytes = limit_;
        if (draw(3) == 0) options.publisher.time_stamps = StampClock::tai;
        stamp_ = time_stamp::bytes_of(options.publisher.time_stamps);
        options.flush_time = std::chrono::microseconds{draw(2) * 40};
        publisher_ = std::make_unique<BufferedPublishSocket>(bed_.transport(), options, *this);
        address_ = publisher_->endpoints().front().address;
    }

    // Returns the number of joins after which nothing was wrong.
    void run() {
        while (joins_left_ > 0 && !testing::Test::HasFailure()) {
            ASSERT_TRUE(bed_.run_until([&] { return turn(); }));
        }
        publisher_->close();
        ASSERT_TRUE(bed_.run_until([&] {
            for (const auto& each : joiners_)
                each->socket->resume();
            return is_closed_;
        }));
        for (const auto& each : joiners_) {
            if (!each->has_totals) continue;
            for (const auto& [fid, number] : each->due)
                EXPECT_EQ(number, model_.published[fid]) << "at the end, " << to_string(fid);
        }
    }

    std::uint64_t messages = 0;
    std::uint64_t gaps = 0;
    std::uint64_t ended = 0; // sessions of late subscribers that were overrun

  private:
    std::size_t draw(std::size_t count) { return random_() % count; }

    void on_subscribing(PublishSocketBase&, const SubscriberPeer&, const FidRange& fids) override {
        ASSERT_NE(joining_, nullptr);
        for (std::uint64_t fid = to_integer(fids.first); fid <= to_integer(fids.last); ++fid) {
            const Fid each{fid};
            joining_->due.try_emplace(each, model_.first_of(each));
            joining_->since.try_emplace(each, model_.published[each]);
        }
    }
    void on_closed(PublishSocketBase&, const netio::Closed&) override { is_closed_ = true; }

    // Publishes some messages and changes a subscriber. Returns whether a join is complete.
    bool turn() {
        for (std::size_t i = draw(20); i > 0; --i)
            publish();
        if (draw(4) == 0) publisher_->flush();
        std::erase_if(joiners_,
                      [this](const std::unique_ptr<Joiner>& each) { return leaves(*each); });
        if (joining_ == nullptr) {
            if (joiners_.size() < 3) join();
            return false;
        }
        if (!joining_->is_subscribed && !joining_->end) return false;
        joining_ = nullptr;
        --joins_left_;
        return true;
    }
    void publish() {
        const Fid fid{draw(fid_count)};
        const std::size_t size = draw(30) == 0 ? 8 + draw(9000) : 8 + draw(200);
        const std::uint64_t number = model_.published[fid];
        const auto status = static_cast<std::uint8_t>(number);
        const auto outcome = publisher_->publish(fid, make_message(fid, number, size), status);
        if (outcome == netio::Status::again) return;
        ASSERT_TRUE(outcome == netio::Status::ok || outcome == netio::Status::no_subscribers);
        model_.publish(fid, size + stamp_);
    }
    void join() {
        joiners_.push_back(std::make_unique<Joiner>());
        joining_ = joiners_.back().get();
        SubscribeSocket::Options options;
        options.publisher = address_;
        options.history = true;
        options.session.receive_buffer_bytes = 8192;
        options.session.receive_count = 4 + draw(5);
        options.session.window_limit = 0;
        options.whole_pages = false;
        joining_->pauses = draw(2) == 0;
        const SlowPolicy policy = slow_policies[draw(slow_policies.size())];
        // Conflation leaves messages out, and the drop policy of a stopped subscriber drops.
        joining_->waits_by_policy = !may_drop(policy);
        joining_->socket = std::make_unique<SubscribeSocket>(bed_.transport(), options, *joining_);
        const std::uint64_t first = draw(fid_count);
        joining_->socket->subscribe(range(first, first + draw(fid_count - first)), policy);
    }
    // Returns whether it is over.
    bool leaves(Joiner& joiner) {
        joiner.socket->resume();
        if (joiner.end && joiner.end->reason == netio::CloseReason::too_slow) ++ended;
        const bool may_leave = &joiner != joining_ && draw(40) == 0;
        if (!joiner.end && !may_leave) {
            if (&joiner != joining_ && draw(100) == 0) unsubscribe(joiner);
            return false;
        }
        if (&joiner == joining_) return false;
        messages += joiner.messages;
        gaps += joiner.gaps;
        return true;
    }
    static void unsubscribe(Joiner& joiner) {
        if (joiner.due.size() < 2) return;
        const Fid fid = joiner.due.begin()->first;
        joiner.socket->unsubscribe({.first = fid, .last = fid});
    }

    TestBed bed_;
    std::minstd_rand random_;
    std::size_t limit_;
    std::size_t joins_left_;
    Model model_;
    std::size_t stamp_ = 0;
    std::unique_ptr<BufferedPublishSocket> publisher_;
    netio::Address address_;
    std::vector<std::unique_ptr<Joiner>> joiners_;
    Joiner* joining_ = nullptr;
    bool is_closed_ = false;
};

TEST(RandomJoins, BringNoGapAndNoDuplicateWithHistory) {
    constexpr std::size_t worlds = 100;
    constexpr std::size_t joins = 100;
    std::uint64_t messages = 0;
    std::uint64_t gaps = 0;
    std::uint64_t ended = 0;
    for (std::uint64_t seed = 1; seed <= worlds; ++seed) {
        SCOPED_TRACE(seed);
        World world{seed, joins};
        world.run();
        if (testing::Test::HasFailure()) return;
        messages += world.messages;
        gaps += world.gaps;
        ended += world.ended;
    }
    RecordProperty("messages", std::to_string(messages));
    RecordProperty("gaps", std::to_string(gaps));
    RecordProperty("ended", std::to_string(ended));
    EXPECT_GT(messages, 100 * worlds * joins / 10);
    EXPECT_GT(gaps, 0U) << "some were slow";
}

} // namespace
} // namespace netio::pubsub::test::random_joins_test
