// SPDX-License-Identifier: Apache-2.0

// The options of publishers and subscribers: errors name the option, and the limits themselves are
// accepted.

#include "netio/base/option_check.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

namespace netio::pubsub::options_test {
namespace {

using namespace std::chrono_literals;
using testing::StartsWith;

struct UnheardPublisher final : PublishSocket::Handler {
    void on_publish_completed(PublishSocket&, Cookie, const PublicationOutcome&) override {}
};

struct UnheardSubscriber final : SubscribeSocket::Handler {
    void on_message(SubscribeSocket&, Fid, std::span<const std::byte>, std::uint8_t) override {}
    void on_closed(SubscribeSocket&, const Closed&, bool) override {}
};

class OptionsTest : public testing::Test {
  protected:
    static constexpr const char* accepted = "accepted";

    static std::string refusal(const std::function<void()>& make) {
        try {
            make();
        } catch (const std::invalid_argument& refused) {
            return refused.what();
        }
        return accepted;
    }
    template <typename Change>
    std::string buffered(Change change) {
        BufferedPublishSocket::Options options;
        options.publisher.listen = {bed.address()};
        options.publisher.allow_remote_anonymous = true;
        change(options);
        return refusal([&] { BufferedPublishSocket{bed.transport(), options, publisher}; });
    }
    template <typename Change>
    std::string lent(Change change) {
        PublishSocket::Options options;
        options.publisher.listen = {bed.address()};
        options.publisher.allow_remote_anonymous = true;
        change(options);
        return refusal([&] { PublishSocket{bed.transport(), options, publisher}; });
    }
    template <typename Change>
    std::string subscribing(Change change) {
        SubscribeSocket::Options options;
        options.publisher = {.host = "127.0.0.1", .port = 1};
        change(options);
        return refusal([&] { SubscribeSocket{bed.transport(), options, subscriber}; });
    }

    test::TestBed bed{test::Bed::sim_tcp};
    UnheardPublisher publisher;
    UnheardSubscriber subscriber;
};

TEST_F(OptionsTest, BadOptionsOfEachPublisherAreRefusedByName) {
    using Options = Publisher::Options;
    const auto both = [&](const std::function<void(Options&)>& change) {
        const auto of_socket = [&](auto& options) { change(options.publisher); };
        std::string said = lent(of_socket);
        EXPECT_EQ(buffered(of_socket), said);
        return said;
    };
    EXPECT_THAT(both([](Options& it) { it.listen.clear(); }), StartsWith("listen"));
    EXPECT_THAT(both([](Options& it) { it.session.receive_count = 3; }),
                StartsWith("receive_count"));
    EXPECT_THAT(both([](Options& it) { it.disconnect_after = 0ms; }),
                StartsWith("disconnect_after"));
    EXPECT_THAT(both([](Options& it) { it.close_timeout = 0ms; }), StartsWith("close_timeout"));
    EXPECT_THAT(both([](Options& it) { it.close_limit = it.close_timeout - 1ms; }),
                StartsWith("close_limit"));
    EXPECT_THAT(both([](Options& it) { it.subscriber_limit = 0; }), StartsWith("subscriber_limit"));
    EXPECT_THAT(both([](Options& it) { it.ranges_per_subscriber_limit = 0; }),
                StartsWith("ranges_per_subscriber_limit"));
    EXPECT_THAT(both([](Options& it) { it.pending_reply_limit = 0; }),
                StartsWith("pending_reply_limit"));
    EXPECT_THAT(both([](Options& it) { it.largest_message_bytes = 0; }),
                StartsWith("largest_message_bytes"));
    EXPECT_THAT(both([](Options& it) { it.largest_message_bytes = std::size_t{1} << 30; }),
                StartsWith("largest_message_bytes is 1073741824; it must be from 1 to 1073741823"));
}

TEST_F(OptionsTest, OptionsOfEachPublisherAreValidAtTheirLimits) {
    const auto at_the_limits = [](auto& options) {
        Publisher::Options& it = options.publisher;
        it.fids = {{{.first = Fid{1}, .last = Fid{1}}}};
        it.disconnect_after = it.close_timeout = it.close_limit = 1ms;
        it.subscriber_limit = it.ranges_per_subscriber_limit = it.pending_reply_limit = 1;
        it.largest_message_bytes = (std::size_t{1} << 30) - 1;
    };
    EXPECT_EQ(lent(at_the_limits), accepted);
    EXPECT_EQ(buffered(at_the_limits), accepted);
}

TEST_F(OptionsTest, BufferedPublisherNamesARefusedOption) {
    using Options = BufferedPublishSocket::Options;
    EXPECT_THAT(buffered([](Options& it) { it.flush_time = -1us; }), StartsWith("flush_time"));
    EXPECT_THAT(buffered([](Options& it) { it.flush_time = longest_time + 1us; }),
                StartsWith("flush_time"));
    EXPECT_EQ(buffered([](Options& it) { it.flush_time = longest_time; }), accepted);
    EXPECT_EQ(buffered([](Options& it) { it.flush_time = 0us; }), accepted);
    EXPECT_THAT(buffered([](Options& it) { it.newest_bytes = 0; }), StartsWith("newest_bytes"));
    EXPECT_EQ(buffered([](Options& it) { it.newest_bytes = 1; }), accepted);
}

TEST_F(OptionsTest, ZeroCopyPublisherNamesARefusedOption) {
    using Options = PublishSocket::Options;
    EXPECT_THAT(lent([](Options& it) { it.outstanding_limit = 0; }),
                StartsWith("outstanding_limit"));
    EXPECT_THAT(lent([](Options& it) { it.outstanding_limit = 1; }),
                StartsWith("outstanding_limit is 1; it must be from 2 "));
    EXPECT_EQ(lent([](Options& it) { it.outstanding_limit = 2; }), accepted);
    EXPECT_EQ(lent([](Options& it) {
                  it.outstanding_limit = 2;
                  it.queue_limit_messages = 1;
              }),
              accepted);
    EXPECT_EQ(lent([](Options& it) {
                  it.outstanding_limit = 9;
                  it.queue_limit_messages = 4;
              }),
              accepted);
    EXPECT_THAT(lent([](Options& it) {
                    it.outstanding_limit = 9;
                    it.queue_limit_messages = 5;
                }),
                StartsWith("queue_limit_messages is 5"));
    EXPECT_THAT(lent([](Options& it) { it.publisher.slow_policy = SlowPolicy::newest; }),
                StartsWith("slow_policy newest"));
}

TEST_F(OptionsTest, SubscriberNamesARefusedOption) {
    using Options = SubscribeSocket::Options;
    EXPECT_THAT(subscribing([](Options& it) { it.session.send_count = 1; }),
                StartsWith("send_count"));
    EXPECT_THAT(subscribing([](Options& it) { it.largest_message_bytes = 0; }),
                StartsWith("largest_message_bytes"));
    EXPECT_EQ(subscribing([](Options& it) { it.largest_message_bytes = 1; }), accepted);
    EXPECT_EQ(subscribing([](Options& it) { it.largest_message_bytes = UINT32_MAX; }), accepted);
    EXPECT_THAT(
        subscribing([](Options& it) { it.largest_message_bytes = std::size_t{UINT32_MAX} + 1; }),
        StartsWith("largest_message_bytes"));
    EXPECT_THAT(subscribing([](Options& it) { it.fid_limit = 0; }), StartsWith("fid_limit"));
    EXPECT_THAT(subscribing([](Options& it) {
                    it.receive_buffer_limit_bytes = it.session.receive_buffer_bytes - 1;
                }),
                StartsWith("receive_buffer_limit_bytes"));
    EXPECT_EQ(subscribing([](Options& it) {
                  it.receive_buffer_limit_bytes = it.session.receive_buffer_bytes;
              }),
              accepted);
    EXPECT_THAT(subscribing([](Options& it) { it.retry_interval = 0ms; }),
                StartsWith("retry_interval"));
    EXPECT_THAT(subscribing([](Options& it) { it.retry_limit = longest_time + 1ms; }),
                StartsWith("retry_limit"));
    EXPECT_EQ(subscribing([](Options& it) { it.retry_limit = longest_time; }), accepted);
}

} // namespace
} // namespace netio::pubsub::options_test
