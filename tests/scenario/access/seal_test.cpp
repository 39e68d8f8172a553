// SPDX-License-Identifier: Apache-2.0

// Sessions with sealed frames: data arrives unchanged and in order, and an observer on the path
// cannot read private data.

#include "netio/access/crypto.hpp"
#include "netio/access/frame_seal.hpp"
#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/on_path.hpp"

#include <algorithm>

namespace netio::test::seal_test {
namespace {

using access::Protection;
using testing::SizeIs;

constexpr std::array sealed_levels{Protection::integrity, Protection::privacy};

Data text_of(std::size_t size, std::size_t seed) {
    Data text(size);
    for (std::size_t at = 0; at < size; ++at)
        text[at] = static_cast<std::byte>(at * 7 + seed * 31 + at / 251);
    return text;
}

bool holds(const Data& message, const Data& what) {
    return std::search(message.begin(), message.end(), what.begin(), what.end()) != message.end();
}

class Seals : public GateTest {
  protected:
    // Sends all texts, each in `slice_count` slices and one frame, and waits until the other side
    // has them and the memory is free again.
    void send_all(Session& session, const std::vector<Data>& texts, std::size_t slice_count,
                  const std::vector<Data>& arrived, const int& freed) {
        for (const Data& text : texts) {
            RegisteredBuffer memory{std::max<std::size_t>(text.size(), 1)};
            std::ranges::copy(text, memory.data());
            std::vector<Slice> slices;
            for (std::size_t at = 0; at < slice_count; ++at) {
                const std::size_t from = text.size() * at / slice_count;
                const std::size_t to = text.size() * (at + 1) / slice_count;
                slices.push_back(memory.slice(from, to - from));
            }
            const std::size_t before = arrived.size();
            const int freed_before = freed;
            ASSERT_TRUE(bed.run_until([&] { return session.has_capacity(); }));
            ASSERT_EQ(session.send({.kind = 16, .slices = slices}, Cookie{1}), Status::ok);
            ASSERT_TRUE(
                bed.run_until([&] { return arrived.size() > before && freed > freed_before; }));
            ASSERT_EQ(arrived.back(), text);
        }
    }
    void expect_orderly_end(Visitor& visitor) {
        visitor.session->close();
        ASSERT_TRUE(bed.run_until([&] { return !visitor.closed.empty() && !closed.empty(); }));
        EXPECT_EQ(visitor.closed.back().reason, CloseReason::orderly)
            << visitor.closed.back().detail;
        EXPECT_EQ(closed.back().reason, CloseReason::orderly) << closed.back().detail;
        closed.clear();
        frames.clear();
    }
    void open_with(Visitor& visitor, Protection level) {
        open = 0;
        visit(visitor, key(files.client(7), level));
        ASSERT_EQ(visitor.opened, 1) << visitor.closed.front().detail;
        ASSERT_TRUE(bed.run_until([&] { return open == 1; }));
    }
};

TEST_P(Seals, LeaveEveryFrameAsItWasInBothDirections) {
    files.permit(7, "services=messages");
    listen();
    for (const Protection level : sealed_levels) {
        SCOPED_TRACE(to_string(level));
        Visitor visitor{bed.transport()};
        open_with(visitor, level);
        const std::size_t limit = visitor.session->body_limit();
        for (const std::size_t slice_count : {0U, 1U, 2U, 3U, 28U}) {
            std::vector<Data> texts;
            for (const std::size_t size : {1U, 40U, 55U, 56U, 57U, 1000U, 20000U})
                texts.push_back(text_of(slice_count == 0 ? 0 : size, size));
            if (slice_count > 0) texts.push_back(text_of(limit, 9));
            send_all(*visitor.session, texts, slice_count, frames, visitor.sent);
            send_all(*sessions.front(), texts, slice_count, visitor.frames, sent);
        }
        expect_orderly_end(visitor);
    }
}

TEST_P(Seals, KeepAnExtensionTogetherWithItsSlices) {
    files.permit(7, "services=messages");
    listen();
    for (const Protection level : {Protection::peers, Protection::integrity, Protection::privacy}) {
        Visitor visitor{bed.transport()};
        open_with(visitor, level);
        const Data extension = text_of(frame_extension_limit, 3);
        for (const std::size_t size : {0U, 1U, 3000U}) {
            Data expected = extension;
            const Data text = text_of(size, 4);
            expected.insert(expected.end(), text.begin(), text.end());
            RegisteredBuffer memory{std::max<std::size_t>(size, 1)};
            std::ranges::copy(text, memory.data());
            const Slice slice = memory.slice(0, size);
            const int freed_before = visitor.sent;
            ASSERT_EQ(visitor.session->send(
                          {.kind = 20, .extension = extension, .slices = {&slice, 1}}, Cookie{1}),
                      Status::ok);
            ASSERT_TRUE(bed.run_until([&] {
                return !frames.empty() && frames.back() == expected && visitor.sent > freed_before;
            }));
        }
        expect_orderly_end(visitor);
    }
}

TEST_P(Seals, HideWhatIsPrivateAndShowWhatHasATagOnly) {
    files.permit(7, "services=messages");
    OnPath path{bed.transport()};
    std::vector<Data> seen;
    path.tamper = [&](Data message) {
        seen.push_back(message);
        return std::vector<Data>{std::move(message)};
    };
    over = &path;
    listen();
    for (const Protection level : sealed_levels) {
        for (const std::size_t size : {40U, 5000U}) {
            SCOPED_TRACE(std::string{to_string(level)} + ", " + std::to_string(size));
            seen.clear();
            Visitor visitor{path};
            open_with(visitor, level);
            const Data text = text_of(size, 5);
            send_all(*visitor.session, {text, text}, 1, frames, visitor.sent);
            send_all(*sessions.front(), {text}, 1, visitor.frames, sent);
            std::vector<Data> bodies;
            for (const Data& message : seen) {
                if (message[0] == std::byte{16})
                    bodies.emplace_back(message.begin() + 8, message.end());
            }
            ASSERT_THAT(bodies, SizeIs(3));
            for (const Data& body : bodies) {
                EXPECT_EQ(body.size(), size + access::seal_tag_bytes);
                EXPECT_EQ(holds(body, text), level == Protection::integrity);
            }
            if (level == Protection::privacy) {
                EXPECT_NE(bodies[0], bodies[1]) << "the same text never has the same ciphertext";
                EXPECT_FALSE(holds(bodies[0], Data(text.begin() + 8, text.begin() + 24)));
            }
            expect_orderly_end(visitor);
        }
    }
    over = nullptr;
    listener.reset();
}

TEST_P(Seals, ChangeTheirKeysInTheMiddleOfTrafficEachSideAsOftenAsItLikes) {
    files.permit(7, "services=messages");
    session_options.rekey_after_bytes = 300;
    listen();
    for (const Protection level : sealed_levels) {
        SCOPED_TRACE(to_string(level));
        Visitor visitor{bed.transport()};
        visitor.options.rekey_after_bytes = 1;
        open_with(visitor, level);
        std::vector<Data> texts;
        for (std::size_t at = 0; at < 100; ++at)
            texts.push_back(text_of(1 + at * 13, at));
        send_all(*visitor.session, texts, 1, frames, visitor.sent);
        send_all(*sessions.front(), texts, 1, visitor.frames, sent);
        expect_orderly_end(visitor);
    }
}

// The peer's key-exchange message uses a receive, as any other message does.
TEST_P(Seals, TakeNoReceiveForGood) {
    files.permit(7, "services=messages");
    listen();
    for (const Protection level : sealed_levels) {
        SCOPED_TRACE(to_string(level));
        Visitor visitor{bed.transport()};
        open_with(visitor, level);
        send_all(*visitor.session, {text_of(40, 1)}, 1, frames, visitor.sent);
        EXPECT_EQ(sessions.front()->counters().credits, visitor.options.receive_count);
        expect_orderly_end(visitor);
    }
}

TEST_P(Seals, AreOfOneSessionOnly) {
    files.permit(7, "services=messages");
    listen();
    OnPath path{bed.transport()};
    std::vector<Data> first, second;
    std::vector<Data>* seen = &first;
    path.tamper = [&](Data message) {
        seen->push_back(message);
        return std::vector<Data>{std::move(message)};
    };
    for (std::vector<Data>* each : {&first, &second}) {
        seen = each;
        Visitor visitor{path};
        open_with(visitor, Protection::privacy);
        send_all(*visitor.session, {text_of(40, 1)}, 1, frames, visitor.sent);
        expect_orderly_end(visitor);
    }
    ASSERT_GE(first.size(), 3U);
    ASSERT_GE(second.size(), 3U);
    for (std::size_t at = 0; at < 3; ++at)
        EXPECT_NE(first[at], second[at]) << "exchange, open frame and data with the same key";
}

INSTANTIATE_TEST_SUITE_P(Beds, Seals, all_beds(), bed_name);

} // namespace
} // namespace netio::test::seal_test
