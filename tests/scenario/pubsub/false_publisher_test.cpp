// SPDX-License-Identifier: Apache-2.0

// A publisher that lets its subscriber in, grants what it asks for, and then sends what was never
// asked for, or too much of it. It ends that connection only: the same program's subscription to an
// honest publisher goes on, and nothing is remembered of what was refused.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace netio::pubsub::test {
namespace {

using netio::CloseReason;
using netio::Status;
using Bytes = std::vector<std::byte>;

class FalsePublisher final : private netio::Listener::Handler, private netio::Connection::Handler {
  public:
    FalsePublisher(netio::Transport& transport, const netio::Address& at)
        : listener_{transport.listen(transport.providers_at(at).front(), at, {.open = true},
                                     static_cast<netio::Listener::Handler&>(*this))} {}
    netio::Address address() const { return listener_->address(); }
    bool has_granted() const { return has_granted_; }
    void send(std::uint8_t kind, const Bytes& body, std::uint8_t flags = 0) {
        Bytes message(netio::frame_header_bytes + body.size());
        netio::encode({.kind = kind, .flags = flags, .credits = 0, .sequence = sequence_++},
                      std::span{message}.first<netio::frame_header_bytes>());
        std::ranges::copy(body, message.begin() + netio::frame_header_bytes);
        ASSERT_LT(posted_, count);
        const netio::Slice slice = send_memory_.slice(posted_ * bytes, message.size());
        std::ranges::copy(message, slice.data);
        EXPECT_EQ(connection_->post_send({&slice, 1}, netio::Cookie{posted_++}), Status::ok);
    }

  private:
    static constexpr std::size_t bytes = 128 * 1024;
    static constexpr std::size_t count = 8;

    void on_request(netio::ConnectionRequest& request) override {
        connection_ = request.make_connection({.send_count = count, .receive_count = count},
                                              static_cast<netio::Connection::Handler&>(*this));
        for (std::size_t i = 0; i < count; ++i) {
            const netio::Slice slice = receive_memory_.slice(i * bytes, bytes);
            EXPECT_EQ(connection_->post_receive({&slice, 1}, netio::Cookie{i}), Status::ok);
        }
        netio::Hello hello{.service = netio::Service::publish_subscribe,
                           .receive_bytes = bytes,
                           .receive_count = count,
                           .heartbeat_ms = 0,
                           .instance = 1,
                           .service_data = {}};
        constexpr std::uint32_t largest = 1 << 20;
        std::memcpy(hello.service_data.bytes.data(), &largest, sizeof largest);
        hello.service_data.size = sizeof largest;
        netio::ConnectionData data;
        const std::size_t size = netio::encode(hello, data);
        connection_->open(std::span{data}.first(size));
    }
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const netio::Completion& completion) override {
        if (completion.kind != netio::Completion::Kind::receive) return;
        const netio::Slice slice =
            receive_memory_.slice(static_cast<std::size_t>(completion.cookie) * bytes, bytes);
        const std::span<const std::byte> message{slice.data, completion.bytes};
        if (completion.outcome != netio::Completion::Outcome::done) return;
        ASSERT_GE(message.size(), netio::frame_header_bytes);
        const auto header = message.first<netio::frame_header_bytes>();
        if (netio::decode_frame_header(header).kind != subscribe_kind) return;
        const auto request = decode_request(message.subspan(netio::frame_header_bytes));
        ASSERT_TRUE(request.has_value());
        Bytes answer(answer_bytes);
        encode({.request = request->request, .result = SubscriptionResult::accepted}, answer);
        send(subscription_answer_kind, answer);
        has_granted_ = true;
    }
    void on_closed(const netio::Closed&) override {}

    netio::RegisteredBuffer receive_memory_{count * bytes};
    netio::RegisteredBuffer send_memory_{count * bytes};
    std::size_t posted_ = 0;
    std::uint32_t sequence_ = 0;
    bool has_granted_ = false;
    std::unique_ptr<netio::Listener> listener_;
    std::unique_ptr<netio::Connection> connection_; // last: goes first
};

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

// 10 to 1009 were asked for, and a subscriber remembers a hundred fids.
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
        // What is honest has not felt it.
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
} // namespace netio::pubsub::test
