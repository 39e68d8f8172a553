// SPDX-License-Identifier: Apache-2.0

// Requesters and responders on one loop, in virtual time and over the fabric.

#include "netio/messages/request_table.hpp"
#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"
#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/protected_bed.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace netio::test::requests_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Requests : public testing::TestWithParam<Bed> {
  protected:
    Requests() {
        asking.context.emplace(bed.transport());
        asking.socket.retry_interval = 1ms;
        answering.context.emplace(bed.transport());
        answering.allow_remote_anonymous = true;
    }
    void respond() {
        responder = std::make_unique<Responder>(
            AddressList{address.port != 0 ? address : bed.address()}, answering);
        address = responder->endpoints().front().address;
        if (!requester) requester = std::make_unique<Requester>(AddressList{address}, asking);
    }
    // The next request at the responder.
    Request next() {
        std::optional<Request> request;
        EXPECT_TRUE(bed.run_until([&] {
            request = responder->receive(0ms);
            return request.has_value();
        }));
        return *std::move(request);
    }
    bool ends(const Reply& reply) {
        return bed.run_until([&] { return reply.end() != RequestEnd::open; });
    }
    static std::string failure(Reply& reply) {
        try {
            static_cast<void>(reply.next());
        } catch (const RequestError& error) {
            return error.what();
        }
        return "none";
    }
    std::uint64_t ended() const {
        const Requester::Stats stats = requester->stats();
        return stats.replied + stats.timed_out + stats.canceled + stats.disconnected + stats.failed;
    }

    LogLines lines;
    TestBed bed{GetParam()};
    Requester::Options asking;
    Responder::Options answering;
    Address address;
    std::unique_ptr<Responder> responder;
    std::unique_ptr<Requester> requester;
};

INSTANTIATE_TEST_SUITE_P(Beds, Requests, all_beds(), bed_name);

TEST_P(Requests, AreRepliedToInAnyOrder) {
    respond();
    std::vector<Reply> replies;
    for (int i = 0; i < 20; ++i)
        replies.push_back(requester->send("question " + std::to_string(i)));
    std::vector<Request> open;
    for (int i = 0; i < 20; ++i)
        open.push_back(next());
    EXPECT_EQ(responder->stats().open, 20U);
    for (std::size_t i = open.size(); i > 0; --i)
        EXPECT_TRUE(open[i - 1].reply("re: " + std::string{open[i - 1].text()}));
    for (int i = 0; i < 20; ++i) {
        Reply& reply = replies[static_cast<std::size_t>(i)];
        ASSERT_TRUE(ends(reply));
        const auto message = reply.next();
        ASSERT_TRUE(message);
        EXPECT_EQ(message->text(), "re: question " + std::to_string(i));
        EXPECT_FALSE(reply.next());
        EXPECT_EQ(reply.end(), RequestEnd::replied);
    }
    EXPECT_EQ(requester->stats().replied, 20U);
    EXPECT_EQ(responder->stats().open, 0U);
    EXPECT_FALSE(open[0].reply("twice"));
}

TEST_P(Requests, AReplyOfSeveralMessagesArrivesInOrderAndLargeOnesWhole) {
    respond();
    Reply reply = requester->send(content(300'000, 1));
    Request request = next();
    EXPECT_TRUE(std::ranges::equal(request.bytes(), content(300'000, 1)));
    for (unsigned i = 0; i < 5; ++i)
        EXPECT_TRUE(request.reply_part(content(100'000 + i, i)));
    EXPECT_TRUE(request.reply(""));
    ASSERT_TRUE(ends(reply));
    for (unsigned i = 0; i < 5; ++i)
        EXPECT_TRUE(std::ranges::equal(reply.next()->bytes(), content(100'000 + i, i)));
    EXPECT_EQ(requester->stats().reply_bytes, 64U) << "an empty message counts, too";
    EXPECT_TRUE(reply.next()->empty());
    EXPECT_EQ(requester->stats().reply_bytes, 0U);
    EXPECT_FALSE(reply.next());
}

TEST_P(Requests, BothSidesMayCloseInOnReady) {
    std::optional<Reply> reply;
    answering.on_ready = [&] {
        while (auto request = responder->receive(0ms)) {
            EXPECT_TRUE(request->reply(request->bytes()));
            responder->close();
        }
    };
    asking.on_ready = [&] {
        if (reply && reply->is_ready()) requester->close();
    };
    respond();
    reply = requester->send("a question");
    ASSERT_TRUE(ends(*reply) && bed.run_until([&] { return responder->is_closed(); }));
    EXPECT_EQ(reply->end(), RequestEnd::replied);
    EXPECT_EQ(reply->next()->text(), "a question");
    EXPECT_THROW(static_cast<void>(requester->send("late")), Error);
    EXPECT_EQ(ended(), 1U);
}

TEST_P(Requests, OneThatIsDestroyedOrFailsEndsWithTheReason) {
    respond();
    Reply destroyed = requester->send("a");
    Reply failed = requester->send("b");
    { const Request request = next(); }
    EXPECT_TRUE(next().fail("no such file"));
    ASSERT_TRUE(ends(destroyed) && ends(failed));
    EXPECT_EQ(destroyed.end(), RequestEnd::no_reply);
    EXPECT_EQ(failed.end(), RequestEnd::failed);
    EXPECT_THAT(failure(failed), HasSubstr(to_string(address) + ": no such file"));
    EXPECT_EQ(responder->stats().no_reply, 1U);
    EXPECT_EQ(responder->stats().failed, 1U);
}

TEST_P(Requests, TimeOutAndTheirLateReplyIsDroppedAndCounted) {
    respond();
    Reply slow = requester->send("a", 2s);
    Reply other = requester->send("b", 1h);
    Request request = next();
    Request second = next();
    ASSERT_TRUE(ends(slow));
    EXPECT_EQ(slow.end(), RequestEnd::timed_out);
    EXPECT_THAT(failure(slow), HasSubstr("no reply in time"));
    EXPECT_TRUE(request.reply("late"));
    EXPECT_TRUE(second.reply("in time"));
    ASSERT_TRUE(ends(other));
    EXPECT_EQ(requester->stats().late, 1U);
    EXPECT_EQ(slow.end(), RequestEnd::timed_out);
    EXPECT_EQ(other.next()->text(), "in time");
}

TEST_P(Requests, WithoutAResponderATimeOutNamesTheReason) {
    respond();
    responder.reset();
    Reply reply = requester->send("a", 500ms);
    ASSERT_TRUE(ends(reply));
    EXPECT_EQ(reply.end(), RequestEnd::timed_out);
    EXPECT_THAT(failure(reply), HasSubstr("not connected: "));
}

TEST_P(Requests, ThoseThatEndedUnsentLeaveTheQueueToOthers) {
    asking.queue_limit_bytes = 1000;
    respond();
    responder.reset();
    const auto is_full = [&] {
        try {
            const Reply reply = requester->send(content(300, 0));
            return false; // it is canceled
        } catch (const Error& error) {
            return error.status() == Status::again;
        }
    };
    std::vector<Reply> replies;
    for (int i = 0; i < 2; ++i)
        replies.push_back(requester->send(content(300, 0), 500ms));
    EXPECT_TRUE(is_full());
    for (const Reply& reply : replies)
        ASSERT_TRUE(ends(reply)); // timed out
    ASSERT_TRUE(bed.run_until([&] { return requester->stats().queued_bytes == 0; }));
    for (int i = 0; i < 10; ++i) {
        EXPECT_FALSE(is_full());
        bed.loop().run_once();
    }
    Reply last = requester->send("a");
    respond();
    EXPECT_TRUE(next().reply("b"));
    ASSERT_TRUE(ends(last));
    EXPECT_EQ(last.next()->text(), "b");
    EXPECT_EQ(responder->stats().requests, 1U);
}

TEST_P(Requests, ACanceledRequestIsCanceledAtTheResponder) {
    respond();
    Reply queued = requester->send("a");
    Reply taken = requester->send("b");
    std::optional<Request> first = next();
    ASSERT_TRUE(bed.run_until([&] { return responder->stats().waiting == 1; }));
    taken.cancel();
    queued = Reply{}; // its destruction cancels as well
    EXPECT_EQ(taken.end(), RequestEnd::canceled);
    ASSERT_TRUE(bed.run_until([&] { return responder->stats().canceled == 2; }));
    EXPECT_TRUE(first->is_canceled());
    EXPECT_FALSE(first->reply("after the cancel"));
    EXPECT_FALSE(responder->receive(0ms));
    EXPECT_EQ(responder->stats().open, 1U); // as long as the user has it
    first.reset();
    EXPECT_EQ(responder->stats().open, 0U);
    EXPECT_EQ(ended(), 2U);
}

TEST_P(Requests, EndOnceWhenTheResponderIsGoneAndTheNextOnesReachAnother) {
    respond();
    std::vector<Reply> replies;
    for (int i = 0; i < 50; ++i)
        replies.push_back(requester->send("a"));
    Request held = next();
    ASSERT_TRUE(bed.run_until([&] { return responder->stats().requests == 50; }));
    responder.reset();
    for (const Reply& reply : replies) {
        ASSERT_TRUE(ends(reply));
        EXPECT_TRUE(reply.end() == RequestEnd::disconnected || reply.end() == RequestEnd::no_reply);
    }
    EXPECT_FALSE(held.reply("too late"));
    EXPECT_EQ(ended(), 50U);
    respond();
    Reply again = requester->send("b");
    EXPECT_TRUE(next().reply("c"));
    ASSERT_TRUE(ends(again));
    EXPECT_EQ(again.next()->text(), "c");
}

TEST_P(Requests, AreLimitedInNumberAndBytesAtBothSides) {
    asking.outstanding_limit = 30;
    asking.queue_limit_bytes = 2000;
    answering.request_limit = 8;
    answering.socket.session.receive_count = 4;
    answering.socket.session.window_limit = 0;
    respond();
    std::vector<Reply> replies;
    std::optional<Status> refusal;
    const auto fill = [&] {
        try {
            for (;;)
                replies.push_back(requester->send(content(100, 0)));
        } catch (const Error& error) {
            refusal = error.status();
        }
    };
    fill();
    EXPECT_EQ(refusal, Status::again);
    EXPECT_LT(replies.size(), 30U); // the bytes of the queue
    ASSERT_TRUE(bed.run_until([&] { return requester->stats().connected; }));
    for (int i = 0; i < 100; ++i) {
        bed.loop().run_once();
        fill();
    }
    EXPECT_LE(requester->stats().outstanding, 30U);
    EXPECT_LE(responder->stats().open, 4U + 4U); // half of the limit, and what is in one page
    std::size_t served = 0;
    while (served < replies.size()) {
        Request request = next();
        EXPECT_TRUE(request.reply("ok"));
        ++served;
    }
    for (const Reply& reply : replies)
        ASSERT_TRUE(ends(reply));
    EXPECT_EQ(requester->stats().replied, replies.size());
}

TEST_P(Requests, ARequestOrReplyThatIsTooLargeIsNamed) {
    asking.socket.largest_message_bytes = 200'000;
    asking.reply_limit_bytes = 150'000;
    answering.socket.largest_message_bytes = 100'000;
    respond();
    Reply large = requester->send(content(100'000, 0));
    ASSERT_TRUE(ends(large));
    EXPECT_EQ(large.end(), RequestEnd::too_large);
    EXPECT_THAT(failure(large), HasSubstr("the limit is 99984"));
    Reply reply = requester->send(content(99'984, 0));
    Request request = next();
    EXPECT_THROW(request.reply(content(200'000, 0)), Error);
    EXPECT_TRUE(request.reply(content(160'000, 0)));
    ASSERT_TRUE(ends(reply));
    EXPECT_EQ(reply.end(), RequestEnd::too_large);
    EXPECT_THAT(failure(reply), HasSubstr("reply_limit_bytes"));
}

TEST_P(Requests, ClosingTheRequesterEndsAllOfItsRequests) {
    respond();
    Reply reply = requester->send("a");
    Request request = next();
    requester.reset();
    EXPECT_EQ(reply.end(), RequestEnd::canceled);
    ASSERT_TRUE(bed.run_until([&] { return request.is_canceled(); }));
    EXPECT_FALSE(request.reply("after the cancel"));
    EXPECT_THROW(static_cast<void>(reply.next()), RequestError);
}

TEST_P(Requests, ClosingTheResponderStillSendsItsReplies) {
    respond();
    Reply reply = requester->send("a");
    const Reply open = requester->send("b");
    const Reply waiting = requester->send("c");
    {
        Request request = next();
        Request late = next();
        ASSERT_TRUE(bed.run_until([&] { return responder->stats().waiting == 1; }));
        EXPECT_TRUE(request.reply("last"));
        responder->close();
        EXPECT_FALSE(responder->receive(0ms));
        EXPECT_FALSE(late.reply("after close()"));
        ASSERT_TRUE(ends(open));
    }
    ASSERT_TRUE(ends(reply) && ends(waiting));
    EXPECT_EQ(reply.next()->text(), "last");
    EXPECT_EQ(open.end(), RequestEnd::disconnected);
    EXPECT_EQ(waiting.end(), RequestEnd::no_reply);
    ASSERT_TRUE(bed.run_until([&] { return responder->is_closed(); }));
}

TEST_P(Requests, APlainMessageSocketIsNoRequester) {
    respond();
    std::optional<Closed> closed;
    MessageSocket socket{
        bed.transport(), {}, {.on_closed = [&](const Closed& why) { closed = why; }}};
    socket.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return closed.has_value(); }));
    EXPECT_EQ(closed->reason, CloseReason::rejected);
    // A peer with the right protocol and wrong messages is disconnected, and nothing else happens.
    closed.reset();
    MessageSocket liar{bed.transport(),
                       {.protocol = 3},
                       {.on_connected = [&] { EXPECT_EQ(liar.send(content(40, 9)), Status::ok); },
                        .on_closed = [&](const Closed& why) { closed = why; }}};
    liar.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return closed.has_value(); }));
    EXPECT_EQ(responder->stats().requests, 0U);
    Reply reply = requester->send("a");
    EXPECT_TRUE(next().reply("b"));
    ASSERT_TRUE(ends(reply));
}

// A responder that sends any headers: only the request that they name ends, and memory is bounded.
TEST_P(Requests, EndlessEmptyPartsAndUnknownRepliesHarmOneRequestOnly) {
    using requests::Header;
    asking.reply_limit_bytes = 64 * 1000;
    std::unique_ptr<MessageSocket> liar;
    std::vector<std::uint64_t> asked;
    const MessageListener listener{
        bed.transport(),
        {.listen = {bed.address()}, .allow_remote_anonymous = true, .protocol = 3},
        [&](IncomingPeer& peer) {
            liar = peer.accept({}, {.on_message = [&](const IncomingMessage& message) {
                                   const auto header = requests::decode(message.bytes());
                                   if (header && header->kind == Header::Kind::request)
                                       asked.push_back(header->number);
                               }});
        }};
    address = listener.endpoints().front().address;
    requester = std::make_unique<Requester>(AddressList{address}, asking);
    Reply endless = requester->send("endless");
    Reply other = requester->send("other");
    ASSERT_TRUE(bed.run_until([&] { return asked.size() == 2; }));
    const auto answer = [&](const Header& header) {
        return liar->send(requests::encode(header)) == Status::ok;
    };
    std::uint64_t parts = 0;
    std::uint64_t unknown = 0;
    ASSERT_TRUE(bed.run_until([&] {
        for (std::uint64_t i = 2; i < 50; ++i) {
            if (answer({.number = asked[0], .kind = Header::Kind::reply, .more = true})) ++parts;
            if (answer({.number = asked[0] + i, .kind = Header::Kind::no_reply})) ++unknown;
            if (answer({.number = asked[1] + (i << 32), .kind = Header::Kind::reply})) ++unknown;
        }
        return endless.end() != RequestEnd::open;
    })) << parts;
    EXPECT_EQ(endless.end(), RequestEnd::too_large);
    EXPECT_EQ(requester->stats().reply_bytes, 64'000U);
    ASSERT_TRUE(bed.run_until([&] { return requester->stats().late >= unknown; }));
    endless = {};
    EXPECT_EQ(other.end(), RequestEnd::open);
    ASSERT_TRUE(bed.run_until([&] { return answer({asked[1], Header::Kind::reply}); }));
    ASSERT_TRUE(ends(other));
    EXPECT_EQ(other.end(), RequestEnd::replied);
    EXPECT_EQ(requester->stats().reply_bytes, 64U); // of the other one
}

// A requester that accepts nothing large, or receives nothing, harms only itself.
class OddRequester : public Requests {
  protected:
    void ask(MessageSocket::Options options) {
        respond();
        options.protocol = 3;
        socket = std::make_unique<MessageSocket>(
            bed.transport(), options,
            MessageSocket::Functions{.on_connected =
                                         [this] {
                                             std::vector<std::byte> question(16);
                                             question[8] = std::byte{1};
                                             for (std::uint8_t i = 0; i < 2; ++i) {
                                                 question[0] = std::byte{i};
                                                 EXPECT_EQ(socket->send(question), Status::ok);
                                             }
                                         },
                                     .on_message =
                                         [this](const IncomingMessage& message) {
                                             last = message.size();
                                             if (++messages == pause_after) socket->pause();
                                         },
                                     .on_closed = [this](const Closed&) { closed = true; }});
        socket->connect(address);
    }

    // Sends parts until there is no space for another one. Returns false if the requester is
    // disconnected.
    bool is_blocked(Request& request) {
        try {
            while (request.reply_part(content(60'000, 0)))
                bed.loop().run_once();
        } catch (const Error& error) {
            EXPECT_EQ(error.status(), Status::again);
            return true;
        }
        return false;
    }

    std::size_t last = 0;
    unsigned messages = 0;
    unsigned pause_after = 0;
    bool closed = false;
    std::unique_ptr<MessageSocket> socket;
};

INSTANTIATE_TEST_SUITE_P(Beds, OddRequester, simulated_beds(), bed_name);

TEST_P(OddRequester, WithTinyBuffersGetsAShortenedReason) {
    ask({.session = {.receive_buffer_bytes = 256, .receive_count = 4, .window_limit = 0},
         .largest_message_bytes = 1});
    Request request = next();
    EXPECT_THROW(request.reply(content(300, 0)), Error);
    EXPECT_TRUE(request.fail(std::string(5000, 'x')));
    ASSERT_TRUE(bed.run_until([&] { return last > 0; }));
    EXPECT_GT(last, 200U);
    EXPECT_LE(last, 256U);
    EXPECT_EQ(responder->stats().failed, 1U);
}

TEST_P(OddRequester, ThatReceivesNothingIsDisconnectedAfterTheSendTimeout) {
    answering.reply_queue_limit_bytes = 1'000'000;
    answering.send_timeout = 5s;
    ask({.session = {.window_limit = 0}});
    Request request = next();
    Request other = next();
    socket->pause();
    EXPECT_TRUE(is_blocked(request));
    bed.let_pass(4s);
    EXPECT_TRUE(is_blocked(request));
    // Until its receive buffers are full there is progress.
    unsigned rounds = 0;
    for (bed.let_pass(6s); rounds < 5 && is_blocked(request); ++rounds)
        bed.let_pass(6s);
    EXPECT_LT(rounds, 5U);
    ASSERT_TRUE(bed.run_until([&] { return other.is_canceled(); }));
    EXPECT_EQ(responder->stats().too_slow, 1U);
}

TEST_P(OddRequester, ThatReceivesSlowlyIsNotDisconnected) {
    answering.reply_queue_limit_bytes = 1'000'000;
    answering.send_timeout = 5s;
    ask({.session = {.receive_count = 4, .window_limit = 0}});
    Request request = next();
    socket->pause();
    EXPECT_TRUE(is_blocked(request));
    for (int i = 0; i < 5; ++i) {
        bed.let_pass(3s);
        EXPECT_TRUE(is_blocked(request));
        pause_after = messages + 8;
        socket->resume();
        ASSERT_TRUE(bed.run_until([&] { return messages == pause_after; }));
    }
    EXPECT_EQ(responder->stats().too_slow, 0U);
}

// Requests at random: canceled, timed out, replied to in any order and in parts, given up, failed;
// the responder dies and is replaced. Every request ends once, with its own reply.
class RandomRequests : public Requests {
  protected:
    struct Asked {
        Reply reply;
        std::vector<std::byte> question;
    };
    struct Open {
        Request request;
        unsigned parts = 0; // so far
    };

    unsigned below(unsigned end) { return static_cast<unsigned>(dice() % end); }
    void begin(unsigned seed) {
        dice.seed(seed);
        requester.reset();
        responder.reset();
        address = {};
        asking.outstanding_limit = 10 + below(50);
        answering.request_limit = 2 + below(20);
        answering.request_limit_bytes = 10'000 + below(100'000);
        answering.reply_queue_limit_bytes = 1'000'000;
        respond();
    }
    void ask(unsigned salt) {
        const auto question = content(8 + (below(6) == 0 ? below(20'000) : below(50)), salt);
        const auto timeout = below(3) == 0 ? std::chrono::milliseconds{below(30)} : 1h;
        try {
            asked.push_back({requester->send(question, timeout), question});
        } catch (const Error& error) {
            EXPECT_EQ(error.status(), Status::again) << error.what();
        }
    }
    // The question, and the number of the part.
    static void send(Open& to, bool is_last) {
        std::vector<std::byte> bytes{to.request.bytes().begin(), to.request.bytes().end()};
        bytes.push_back(static_cast<std::byte>(to.parts));
        try {
            if (is_last) {
                to.request.reply(bytes);
            } else {
                to.request.reply_part(bytes);
                ++to.parts;
            }
        } catch (const Error& error) {
            EXPECT_EQ(error.status(), Status::again) << error.what();
        }
    }
    void answer() {
        if (open.empty()) return;
        const auto at = static_cast<std::ptrdiff_t>(below(static_cast<unsigned>(open.size())));
        Open& each = open[static_cast<std::size_t>(at)];
        const unsigned what = below(8);
        if (what == 0) return send(each, false);
        if (what == 1) each.request.fail("at random");
        if (what > 2) send(each, true); // else it is destroyed without a reply
        open.erase(open.begin() + at);
    }
    void act(unsigned step) {
        switch (below(10)) {
        case 0:
        case 1:
        case 2:
            return ask(step);
        case 3:
            if (!asked.empty() && below(3) == 0)
                asked[below(static_cast<unsigned>(asked.size()))].reply.cancel();
            return;
        case 4:
        case 5:
            if (auto request = responder->receive(0ms))
                open.push_back({.request = *std::move(request)});
            return;
        case 6:
        case 7:
            return answer();
        case 8:
            if (below(100) > 0) return;
            responder.reset();
            return respond();
        default:
            bed.loop().run_once();
        }
    }
    bool have_ended() {
        if (auto request = responder->receive(0ms)) {
            Open last{.request = *std::move(request)};
            send(last, true);
        }
        return std::ranges::all_of(
            asked, [](const Asked& each) { return each.reply.end() != RequestEnd::open; });
    }
    // Returns how many have a whole reply.
    std::uint64_t look_at_replies() {
        std::uint64_t replied = 0;
        for (Asked& each : asked) {
            if (each.reply.end() != RequestEnd::replied) continue;
            ++replied;
            unsigned part = 0;
            while (const auto message = each.reply.next()) {
                auto expected = each.question;
                expected.push_back(static_cast<std::byte>(part++));
                EXPECT_TRUE(std::ranges::equal(message->bytes(), expected));
            }
            EXPECT_GT(part, 0U);
        }
        return replied;
    }

    std::mt19937 dice;
    std::vector<Asked> asked;
    std::vector<Open> open;
};

INSTANTIATE_TEST_SUITE_P(Beds, RandomRequests, all_beds(), bed_name);

TEST_P(RandomRequests, EndExactlyOnceEach) {
    const unsigned seeds = bed.sim() != nullptr ? 15 : 2;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE(seed);
        begin(seed);
        for (unsigned step = 0; step < 1500; ++step)
            act(step);
        for (Open& each : open)
            send(each, true);
        open.clear();
        ASSERT_TRUE(bed.run_until([&] { return have_ended(); }));
        const std::uint64_t replied = look_at_replies();
        EXPECT_GT(replied, 0U);
        EXPECT_EQ(ended(), asked.size());
        EXPECT_EQ(requester->stats().replied, replied);
        EXPECT_EQ(requester->stats().outstanding, 0U);
        asked.clear();
        EXPECT_EQ(requester->stats().reply_bytes, 0U);
        const Responder::Stats stats = responder->stats();
        EXPECT_EQ(stats.open, 0U);
        EXPECT_EQ(stats.waiting, 0U);
        EXPECT_EQ(stats.requests, stats.replied + stats.failed + stats.no_reply + stats.canceled);
    }
}

class ProtectedRequests : public testing::TestWithParam<ProtectedBed> {};

INSTANTIATE_TEST_SUITE_P(Beds, ProtectedRequests, all_protected_beds(), protected_bed_name);

TEST_P(ProtectedRequests, AreRepliedToWithAKeyAndRefusedWithoutOne) {
    const LogLines lines;
    TestBed bed{std::get<0>(GetParam())};
    AgreedKeys keys{bed.loop(), std::get<1>(GetParam())};
    const Context context{bed.transport()};
    Responder responder{AddressList{bed.address()}, {.context = context, .keys = keys.server()}};
    const Address address = responder.endpoints().front().address;
    Requester::Options options{.context = context, .key = keys.client()};
    Requester requester{AddressList{address}, options};
    options.key = nullptr;
    Requester stranger{AddressList{address}, options};
    Reply reply = requester.send(content(100'000, 3));
    const Reply refused = stranger.send("a", 200ms);
    std::optional<Request> request;
    ASSERT_TRUE(bed.run_until([&] { return (request = responder.receive(0ms)).has_value(); }));
    EXPECT_TRUE(request->reply(request->bytes()));
    ASSERT_TRUE(bed.run_until([&] { return reply.end() != RequestEnd::open; }));
    EXPECT_TRUE(std::ranges::equal(reply.next()->bytes(), content(100'000, 3)));
    ASSERT_TRUE(bed.run_until([&] { return refused.end() == RequestEnd::timed_out; }));
    EXPECT_EQ(responder.stats().requests, 1U);
}

} // namespace
} // namespace netio::test::requests_test
