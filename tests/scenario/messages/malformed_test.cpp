// SPDX-License-Identifier: Apache-2.0

// Misbehaving peers of the message service lose their own session only.

#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/message_frames.hpp"
#include "tests/scenario/messages/receiver.hpp"
#include "tests/scenario/pubsub/intruder.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <random>

namespace netio::test::malformed_test {
namespace {

using netio::pubsub::test::Impostor;
using testing::HasSubstr;
using testing::IsEmpty;
using Bytes = std::vector<std::byte>;

struct Honest final : BufferedSendSocket::Handler {
    void on_connected(BufferedSendSocket&) override { ++connected; }
    void on_writable(BufferedSendSocket&) override {}
    void on_closed(BufferedSendSocket&, const Closed& why) override { closed.push_back(why); }
    int connected = 0;
    std::vector<Closed> closed;
};

class MalformedMessages : public testing::TestWithParam<Bed> {
  protected:
    MalformedMessages()
        : listener{bed.transport(),
                   {.listen = {bed.address()},
                    .allow_remote_anonymous = true,
                    .largest_message_bytes = 1000},
                   receiver},
          address{listener.endpoints().front().address}, socket{bed.transport(), {}, honest} {
        socket.connect(address);
        EXPECT_TRUE(bed.run_until([&] { return honest.connected == 1; }));
    }
    void expect_service() {
        const std::size_t before = receiver.messages.size();
        ASSERT_EQ(socket.send(content(50, 1)), Status::ok);
        socket.flush();
        ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == before + 1; }));
        EXPECT_EQ(receiver.messages.back().bytes, content(50, 1));
        EXPECT_THAT(honest.closed, IsEmpty());
    }

    TestBed bed{GetParam()};
    Receiver receiver;
    ListenSocket listener;
    Address address;
    Honest honest;
    BufferedSendSocket socket;
};

struct Frame {
    std::uint8_t kind = messages::page_kind;
    Bytes body;
    std::uint8_t flags = 0;
};

struct Case {
    const char* what;
    std::vector<Frame> frames;
    const char* detail;
    std::size_t delivered = 0; // before the malformed part
};

// A page with the given records: header, then this many bytes.
Bytes page_of(const std::vector<std::pair<std::uint32_t, std::size_t>>& records) {
    Bytes page;
    for (const auto& [header, bytes] : records) {
        page.resize(page.size() + 4 + bytes);
        wire::store(page.data() + page.size() - bytes - 4, header);
    }
    return page;
}

Frame fragment(std::uint32_t offset, std::uint32_t total, std::size_t bytes) {
    Bytes body(messages::fragment_extension_bytes + bytes);
    std::ranges::copy(messages::encode({.offset = offset, .total = total}), body.begin());
    return {.kind = messages::fragment_kind, .body = body};
}

std::vector<Case> cases() {
    const Frame good{.body = page_of({{3, 3}, {0, 0}})};
    const Frame message{.kind = messages::message_kind, .body = Bytes(9)};
    return {
        {"a record longer than its page", {{.body = page_of({{5, 4}})}}, "malformed page"},
        {"the longest record", {{.body = page_of({{page::size_mask, 4}})}}, "malformed page"},
        {"half a record header", {{.body = Bytes(3)}}, "malformed page"},
        {"rubbish behind a record", {{.body = page_of({{2, 3}})}}, "malformed page", 1},
        {"a record too long behind good ones",
         {{.body = page_of({{1, 1}, {2, 2}, {9, 8}})}},
         "malformed page",
         2},
        {"a fid, which only publishers send",
         {{.body = page_of({{1U << 31 | 8, 16}})}},
         "malformed page"},
        {"a status, which only publishers send",
         {{.body = page_of({{1U << 30 | 8, 16}})}},
         "malformed page"},
        {"a page with a flag", {{.body = good.body, .flags = 1}}, "flag"},
        {"a bad page after a good one", {good, {.body = Bytes(2)}}, "malformed page", 2},
        {"a fragment without its header",
         {{.kind = messages::fragment_kind, .body = Bytes(7)}},
         "without its header"},
        {"an empty fragment", {fragment(0, 10, 0)}, "does not follow"},
        {"a fragment of nothing", {fragment(0, 0, 0)}, "does not follow"},
        {"a fragment from the middle", {fragment(5, 10, 5)}, "does not follow"},
        {"a fragment beyond the end", {fragment(0, 10, 11)}, "does not follow"},
        {"a fragment twice", {fragment(0, 10, 5), fragment(0, 10, 5)}, "does not follow"},
        {"a fragment of another message", {fragment(0, 10, 5), fragment(5, 11, 6)}, "does not"},
        {"a message larger than agreed", {fragment(0, 1001, 500)}, "larger than agreed"},
        {"the largest message", {fragment(0, UINT32_MAX, 500)}, "larger than agreed"},
        {"a fragment with a flag",
         {{.kind = messages::fragment_kind, .body = fragment(0, 1, 1).body, .flags = 2}},
         "flag"},
        {"a page within a message", {fragment(0, 10, 5), good}, "before the last fragment"},
        {"a message within a message", {fragment(0, 10, 5), message}, "before the last fragment"},
        {"an unknown flag of a message",
         {{.kind = messages::message_kind, .body = Bytes(9), .flags = 2}},
         "malformed message"},
        {"half the immediate data",
         {{.kind = messages::message_kind, .body = Bytes(7), .flags = 1}},
         "malformed message"},
        {"an unknown kind", {{.kind = 77, .body = Bytes(9)}}, "kind"},
        {"a whole message, then rubbish",
         {fragment(0, 10, 5), fragment(5, 10, 5), {.body = Bytes(1)}},
         "malformed page",
         1},
    };
}

TEST_P(MalformedMessages, CloseOnlyTheirOwnConnection) {
    for (const Case& each : cases()) {
        SCOPED_TRACE(each.what);
        receiver.messages.clear();
        receiver.closed.clear();
        Impostor impostor{bed.transport(), address, Service::messages};
        ASSERT_TRUE(bed.run_until([&] { return impostor.connected; }));
        impostor.send_open();
        std::uint32_t sequence = 1;
        for (const Frame& frame : each.frames) {
            impostor.send_frame(
                {.kind = frame.kind, .flags = frame.flags, .credits = 0, .sequence = sequence++},
                frame.body);
        }
        ASSERT_TRUE(bed.run_until([&] { return impostor.closed && !receiver.closed.empty(); }));
        EXPECT_EQ(receiver.closed[0].reason, CloseReason::protocol_error);
        EXPECT_THAT(receiver.closed[0].detail, HasSubstr(each.detail));
        EXPECT_EQ(receiver.messages.size(), each.delivered);
        expect_service();
    }
}

// The same frames truncated at random, and random frames: other peers are not affected.
TEST_P(MalformedMessages, AtRandomCloseOnlyTheirOwnConnection) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random{seed};
        Impostor impostor{bed.transport(), address, Service::messages};
        ASSERT_TRUE(bed.run_until([&] { return impostor.connected; }));
        impostor.send_open();
        Bytes body(random() % 300);
        for (std::byte& byte : body)
            byte = static_cast<std::byte>(random() % (seed % 2 == 0 ? 256 : 3));
        impostor.send_frame({.kind = static_cast<std::uint8_t>(messages::message_kind + seed % 4),
                             .flags = static_cast<std::uint8_t>(seed % 16 == 0 ? 1 : 0),
                             .credits = 0,
                             .sequence = 1},
                            body);
        impostor.send_frame({.kind = 255, .sequence = 9999}); // if the first was valid by chance
        ASSERT_TRUE(bed.run_until([&] { return impostor.closed; }));
    }
    expect_service();
}

TEST_P(MalformedMessages, ASenderThatAnnouncesALargestMessageIsAcceptFailed) {
    Impostor impostor{bed.transport(), address, Service::messages, 1};
    ASSERT_TRUE(bed.run_until([&] { return impostor.closed; }));
    EXPECT_FALSE(impostor.connected);
    EXPECT_EQ(listener.counters().rejected, 1U);
    expect_service();
}

INSTANTIATE_TEST_SUITE_P(Beds, MalformedMessages, all_beds(), bed_name);

} // namespace
} // namespace netio::test::malformed_test
