// SPDX-License-Identifier: Apache-2.0
// Messages with the time of their publication.

#include "netio/memory/buffer.hpp"
#include "pubsub/publisher/stamp_clock.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace netio::pubsub::test::time_stamps_test {
namespace {

constexpr std::int64_t first_time = -3; // any number is a time

// Keeps each message with its time stamp.
class Reader final : public SubscribeSocket::Handler {
  public:
    void on_subscribed(SubscribeSocket&, const FidRange&) override { ++subscribed; }
    void on_message(SubscribeSocket& socket, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override {
        const StampFormat stamps = socket.stamps();
        const Message view{fid, message, status, 0, nullptr, stamps};
        copies.emplace_back(view);
        kept.emplace_back(view, socket.keep(time_stamp::with_stamp(message, stamps)));
        if (pause_every > 0 && kept.size() % pause_every == 0) socket.pause();
    }
    void on_gap(SubscribeSocket&, Fid, std::uint64_t count) override { dropped += count; }
    void on_closed(SubscribeSocket&, const netio::Closed& closed, bool) override {
        ends.push_back(closed);
    }

    // Each message is what was published, with the time that follows from its number.
    void expect_intact() const {
        for (std::size_t i = 0; i < kept.size(); ++i) {
            const KeptMessage& each = kept[i];
            std::uint64_t number = 0;
            ASSERT_GE(each.size(), sizeof number);
            std::memcpy(&number, each.bytes().data(), sizeof number);
            ASSERT_TRUE(
                std::ranges::equal(each.bytes(), make_message(each.fid(), number, each.size())));
            ASSERT_TRUE(std::ranges::equal(each.bytes(), copies[i].bytes()));
            ASSERT_TRUE(each.time()) << number;
            ASSERT_EQ(each.time()->time, first_time + static_cast<std::int64_t>(number));
            ASSERT_EQ(each.time(), copies[i].time());
        }
    }

    std::size_t pause_every = 0; // messages; 0: never
    int subscribed = 0;
    std::uint64_t dropped = 0;
    std::deque<OwnedMessage> copies;
    std::deque<KeptMessage> kept;
    std::vector<netio::Closed> ends;
};

// Passes whole pages on.
class PageReader final : public SubscribeSocket::Handler {
  public:
    explicit PageReader(const SubscribeSocket::Functions& functions) : functions_{functions} {}
    void on_subscribed(SubscribeSocket&, const FidRange& fids) override {
        functions_.on_subscribed(fids);
    }
    void on_page(SubscribeSocket&, const PageView& page) override { functions_.on_page(page); }
    void on_message(SubscribeSocket&, Fid, std::span<const std::byte>, std::uint8_t) override {
        ADD_FAILURE() << "a message outside a page";
    }
    void on_closed(SubscribeSocket&, const netio::Closed&, bool) override {}

  private:
    const SubscribeSocket::Functions& functions_;
};

class TimeStamps : public PubSubScenario {
  protected:
    std::unique_ptr<SubscribeSocket> read(const FidRange& fids,
                                          std::optional<SlowPolicy> policy = {}) {
        SubscribeSocket::Options options;
        options.publisher = address;
        options.session.receive_buffer_bytes = 64 * 1024;
        auto socket = std::make_unique<SubscribeSocket>(transport(), options, reader);
        socket->subscribe(fids, policy);
        EXPECT_TRUE(run_until([&] { return reader.subscribed == 1; }));
        return socket;
    }
    static BufferedPublishSocket::Options with(StampClock clock) {
        BufferedPublishSocket::Options options{.page_size_bytes = 32 * 1024, .page_count = 64};
        options.publisher.time_stamps = clock;
        options.publisher.largest_message_bytes = 100000;
        return options;
    }
    // Publishes a numbered message with the time that belongs to it.
    static netio::Status publish_one(BufferedPublishSocket& publisher, Fid fid,
                                     std::uint64_t number, std::size_t size) {
        return publisher.publish_at(first_time + static_cast<std::int64_t>(number), fid,
                                    make_message(fid, number, size));
    }

    Reader reader;
};

TEST_P(TimeStamps, ArriveWithMessagesOfEachKind) {
    // In a page with others, as the only one of a page, in fragments, and of the largest size.
    const std::vector<std::size_t> sizes{8, 40, 9000, 31000, 70000, 100000};
    auto publisher = buffered(with(StampClock::own));
    reader.pause_every = 7; // the rest of a page waits
    auto socket = read(range(1, 3));
    std::uint64_t number = 0;
    ASSERT_TRUE(run_until([&] {
        socket->resume();
        while (number < 300 && publish_one(*publisher, Fid{1 + number % 3}, number,
                                           sizes[number % sizes.size()]) == netio::Status::ok)
            ++number;
        publisher->flush();
        return reader.kept.size() == 300;
    }));
    EXPECT_EQ(publish_one(*publisher, Fid{1}, 0, 100001), netio::Status::too_large);
    EXPECT_EQ(publisher->message_limit(), 100000U);
    EXPECT_EQ(socket->counters().bytes, publisher->counters().bytes) << "without time stamps";
    socket.reset();
    reader.expect_intact();
}

TEST_P(TimeStamps, ArriveWithWholePages) {
    auto publisher = buffered(with(StampClock::own));
    std::vector<KeptPage> pages;
    std::size_t messages = 0;
    bool is_subscribed = false;
    SubscribeSocket::Functions functions;
    functions.on_page = [&](const PageView& page) {
        for (const Message& message : page)
            messages += message.time() ? 1U : 0U;
        pages.push_back(page.keep());
    };
    functions.on_subscribed = [&](const FidRange&) { is_subscribed = true; };
    SubscribeSocket::Options options;
    options.whole_pages = true;
    options.publisher = address;
    PageReader pages_reader{functions};
    SubscribeSocket socket{transport(), options, pages_reader};
    socket.subscribe(range(1, 3));
    ASSERT_TRUE(run_until([&] { return is_subscribed; }));
    const std::vector<std::size_t> sizes{8, 40, 70000};
    std::uint64_t number = 0;
    ASSERT_TRUE(run_until([&] {
        while (number < 60 && publish_one(*publisher, Fid{1 + number % 3}, number,
                                          sizes[number / 20]) == netio::Status::ok)
            ++number;
        publisher->flush();
        return messages == 60;
    }));
    for (const KeptPage& page : pages) {
        for (const Message& each : page) {
            reader.copies.emplace_back(each);
            reader.kept.push_back(each.keep());
        }
    }
    EXPECT_EQ(reader.kept.size(), 60U);
    pages.clear();
    reader.expect_intact();
}

// With a slow subscriber, for each policy that drops or conflates.
TEST_P(TimeStamps, BelongToTheirMessagesWhenOthersAreDropped) {
    for (const SlowPolicy policy : {SlowPolicy::drop, SlowPolicy::newest}) {
        reader = {};
        auto options = with(StampClock::own);
        options.publisher.slow_policy = policy;
        options.page_count = 8;
        auto publisher = buffered(options);
        auto socket = read(range(1, 3), policy);
        socket->pause();
        constexpr std::uint64_t count = 900;
        std::uint64_t number = 0;
        ASSERT_TRUE(run_until([&] {
            for (int i = 0; i < 30 && number < count; ++i, ++number)
                EXPECT_EQ(publish_one(*publisher, Fid{1 + number % 3}, number, 20000),
                          netio::Status::ok);
            return number == count;
        }));
        publisher->close();
        socket->resume();
        ASSERT_TRUE(run_until([&] { return !reader.ends.empty(); }));
        EXPECT_GT(reader.dropped, 0U);
        EXPECT_EQ(reader.kept.size() + reader.dropped, count);
        reader.expect_intact();
    }
}

TEST_P(TimeStamps, ArriveWithMessagesThatAreNotCopied) {
    PublishSocket::Options options;
    options.publisher.time_stamps = StampClock::own;
    options.publisher.largest_message_bytes = 200000;
    auto publisher = unbuffered(options);
    auto socket = read(range(1, 1));
    // In a frame of its own, packed with others while the first is in flight, and in fragments.
    const std::vector<std::size_t> sizes{40, 500, 50000, 200000};
    std::deque<netio::RegisteredBuffer> buffers;
    for (std::uint64_t number = 0; number < 40; ++number) {
        const std::size_t size = sizes[number / 10];
        const auto message = make_message(Fid{1}, number, size);
        netio::RegisteredBuffer& buffer = buffers.emplace_back(size, netio::Access::send);
        std::ranges::copy(message, buffer.memory().begin());
        const std::size_t header = number % 2 == 0 ? 0 : 8; // the first bytes, copied
        const netio::Slice slice = buffer.slice(header, size - header);
        ASSERT_EQ(publisher->publishv(Fid{1}, {&slice, 1}, netio::Cookie{number},
                                      {.header = std::span{message}.first(header),
                                       .time = first_time + static_cast<std::int64_t>(number)}),
                  netio::Status::ok);
    }
    ASSERT_TRUE(run_until(
        [&] { return reader.kept.size() == 40 && publisher_actor.completions.size() == 40; }));
    socket.reset();
    reader.expect_intact();
}

TEST_P(TimeStamps, OfTheLibraryAreTheTimeOfPublication) {
    auto publisher = buffered(with(StampClock::tai));
    auto socket = read(range(1, 1));
    const std::int64_t before = time_stamp::now();
    const auto message = make_message(Fid{1}, 0, 40);
    ASSERT_EQ(publisher->publish(Fid{1}, message), netio::Status::ok);
    const std::int64_t after = time_stamp::now();
    ASSERT_EQ(publisher->publish_at(42, Fid{1}, message), netio::Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return reader.kept.size() == 2; }));
    const TimeStamp stamp = reader.kept[0].time().value();
    EXPECT_GE(stamp.time, before);
    EXPECT_LE(stamp.time, after);
    EXPECT_EQ(stamp.utc_ns(), stamp.time - stamp.format.utc_offset_s * std::int64_t{1000000000});
    EXPECT_EQ(stamp.format, time_stamp::format_here(StampClock::tai));
    EXPECT_EQ(reader.kept[1].time()->time, 42);
}

TEST_P(TimeStamps, AreAbsentWhereNoneIsGivenOrSent) {
    const auto message = make_message(Fid{1}, 7, 40);
    for (const StampClock clock : {StampClock::own, StampClock::none}) {
        reader = {};
        auto publisher = buffered(with(clock));
        auto socket = read(range(1, 1));
        ASSERT_EQ(publisher->publish(Fid{1}, message), netio::Status::ok);
        if (clock == StampClock::none) {
            ASSERT_EQ(publisher->publish_at(42, Fid{1}, message), netio::Status::ok);
        }
        publisher->flush();
        const std::size_t count = clock == StampClock::none ? 2 : 1;
        ASSERT_TRUE(run_until([&] { return reader.kept.size() == count; }));
        for (const KeptMessage& each : reader.kept) {
            EXPECT_FALSE(each.time());
            EXPECT_TRUE(std::ranges::equal(each.bytes(), message));
        }
    }
}

// After a reconnection to a publisher with another clock, messages are read as it sends them.
TEST_P(TimeStamps, FollowThePublisherThatIsConnected) {
    std::vector<std::optional<TimeStamp>> times;
    auto publisher = buffered(with(StampClock::own));
    SubscribeSocket::Options options;
    options.publisher = address;
    options.reconnect = true;
    options.retry_interval = options.retry_limit = std::chrono::milliseconds{1};
    int subscribed = 0;
    SubscribeSocket socket{transport(), options, reader};
    socket.subscribe(range(1, 1));
    const auto message = make_message(Fid{1}, 0, 40);
    for (const StampClock clock : {StampClock::own, StampClock::none, StampClock::tai}) {
        if (clock != StampClock::own) {
            publisher.reset();
            auto again = with(clock);
            again.publisher.listen = {address};
            again.publisher.allow_remote_anonymous = true;
            publisher =
                std::make_unique<BufferedPublishSocket>(transport(), again, publisher_actor);
        }
        ++subscribed;
        ASSERT_TRUE(run_until([&] { return reader.subscribed == subscribed; }));
        const std::size_t before = reader.kept.size();
        ASSERT_EQ(publisher->publish_at(5, Fid{1}, message), netio::Status::ok);
        publisher->flush();
        ASSERT_TRUE(run_until([&] { return reader.kept.size() == before + 1; }));
        EXPECT_EQ(reader.kept.back().time().has_value(), clock != StampClock::none);
        EXPECT_TRUE(std::ranges::equal(reader.kept.back().bytes(), message));
    }
}

// A subscriber of a version without time stamps would take them for bytes of the message.
TEST_P(TimeStamps, AreNotSentToASubscriberThatCannotReadThem) {
    auto publisher = buffered(with(StampClock::own));
    Impostor old{transport(), address, netio::Service::publish_subscribe};
    ASSERT_TRUE(run_until([&] { return old.rejected != netio::RejectCode::none; }));
    EXPECT_EQ(old.rejected, netio::RejectCode::missing_feature);
    EXPECT_FALSE(old.connected);
}

INSTANTIATE_TEST_SUITE_P(Beds, TimeStamps, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::time_stamps_test
