// SPDX-License-Identifier: Apache-2.0

// An attacker on the path of a session with sealed frames, or a peer without the keys: nothing from
// the attacker is delivered, and the session ends with a reason.

#include "netio/access/crypto.hpp"
#include "netio/access/frame_seal.hpp"
#include "tests/scenario/access/gate_fixture.hpp"
#include "tests/support/on_path.hpp"

#include <algorithm>
#include <tuple>

namespace netio::test::seal_attack_test {
namespace {

using access::Protection;
using testing::HasSubstr;

constexpr std::array sealed_levels{Protection::integrity, Protection::privacy};

// What the attacker does to a frame, and perhaps to the next one.
struct Attack {
    const char* name;
    std::function<std::vector<Data>(const Data& frame, const Data& one_before)> act;
    bool needs_another = false; // detected with the next frame
};

std::vector<Attack> attacks() {
    const auto flip = [](std::size_t from_end, std::size_t from_begin) {
        return [=](const Data& frame, const Data&) {
            Data wrong = frame;
            wrong[from_end > 0 ? wrong.size() - from_end : from_begin] ^= std::byte{0x10};
            return std::vector<Data>{wrong};
        };
    };
    return {
        {"the kind is changed", flip(0, 0)},
        {"the flags are changed", flip(0, 1)},
        {"the credits are changed", flip(0, 2)},
        {"the number is changed", flip(0, 4)},
        {"a bit of the body is changed", flip(0, 9)},
        {"a bit of the tag is changed", flip(1, 0)},
        {"it is cut",
         [](const Data& frame, const Data&) {
             return std::vector<Data>{Data(frame.begin(), frame.end() - 1)};
         }},
        {"its tag is cut off",
         [](const Data& frame, const Data&) {
             return std::vector<Data>{Data(frame.begin(), frame.end() - 16)};
         }},
        {"only its header is left",
         [](const Data& frame, const Data&) {
             return std::vector<Data>{Data(frame.begin(), frame.begin() + 8)};
         }},
        {"it is longer",
         [](const Data& frame, const Data&) {
             Data longer = frame;
             longer.push_back(std::byte{0});
             return std::vector<Data>{longer};
         }},
        {"it is left out", [](const Data&, const Data&) { return std::vector<Data>{}; }, true},
        {"it comes twice",
         [](const Data& frame, const Data&) {
             return std::vector<Data>{frame, frame};
         }},
        {"the one before comes again",
         [](const Data&, const Data& before) { return std::vector<Data>{before}; }},
    };
}

class SealAttack : public GateTest {
  protected:
    // The client sends ten frames; the attacker changes its frame `number`: 0 is its key-exchange
    // message, 1 its open frame, 2 and higher are data.
    void expect_nothing_delivered(const Attack& attack, Protection level, std::size_t number) {
        SCOPED_TRACE(std::string{to_string(level)} + ", frame " + std::to_string(number) + ": " +
                     attack.name);
        frames.clear();
        closed.clear();
        OnPath path{bed.transport()};
        std::vector<Data> travelled;
        path.tamper = [&](Data message) {
            travelled.push_back(message);
            const std::size_t at = travelled.size() - 1;
            if (at != number) return std::vector<Data>{std::move(message)};
            return attack.act(message, at > 0 ? travelled[at - 1] : Data(64, std::byte{1}));
        };
        Visitor visitor{path};
        visitor.options.handshake_timeout = std::chrono::hours{1};
        visitor.connect(address, key(files.client(7), level));
        bool is_over = false;
        ASSERT_TRUE(bed.run_until([&] {
            is_over = is_over || !closed.empty() || !visitor.closed.empty();
            while (!is_over && visitor.opened > 0 && travelled.size() < 12 && visitor.session &&
                   visitor.session->has_capacity()) {
                // Small, so it is copied.
                RegisteredBuffer memory{40};
                memory.data()[0] = static_cast<std::byte>(travelled.size());
                const Slice slice = memory.slice();
                if (visitor.session->send({.kind = 16, .slices = {&slice, 1}}, {}) != Status::ok)
                    break;
            }
            return is_over;
        }));
        visitor.session.reset();
        ASSERT_TRUE(bed.run_until([&] { return !closed.empty(); }));
        const std::size_t whole = number < 2 ? 0 : number - 2;
        const bool twice = std::string_view{attack.name} == "it comes twice";
        EXPECT_EQ(frames.size(), whole + (twice && number >= 2 ? 1 : 0));
        for (std::size_t at = 0; at < frames.size(); ++at)
            EXPECT_EQ(frames[at].front(), static_cast<std::byte>(at + 2));
        if (number == 0 && attack.needs_another) return; // nothing was sent at all
        EXPECT_THAT(closed.front().reason,
                    testing::AnyOf(CloseReason::protocol_error, CloseReason::not_admitted));
        EXPECT_THAT(closed.front().detail,
                    testing::AnyOf(HasSubstr("whose tag is wrong"), HasSubstr("exchange of keys"),
                                   HasSubstr("part of the session's keys"),
                                   HasSubstr("without a header"), HasSubstr("out of order"),
                                   HasSubstr("credits before it may"),
                                   HasSubstr("unexpected frame")));
        if (number > 0 && std::string_view{attack.name} != "only its header is left") {
            EXPECT_THAT(closed.front().detail, HasSubstr("whose tag is wrong"));
        }
    }
    // A client that is authenticated and continues with hand-made frames.
    struct Raw {
        std::unique_ptr<RawDialer> dialer;
        access::AuthKeys keys;
        access::Cipher cipher;
    };
    Raw through_the_gate(Protection level) {
        access::AuthClient client{files.key(7), {.protection = level}, dialled()};
        Raw raw{dial(proved_request(client)), {}, {}};
        EXPECT_EQ(client.take_answer(*raw.dialer->answer), access::AuthClient::Answer::genuine);
        raw.keys = *client.keys();
        raw.cipher = client.cipher();
        return raw;
    }
    static Data framed(FrameKind kind, std::span<const std::byte> body, FrameHeader more = {}) {
        Data frame(frame_header_bytes);
        more.kind = static_cast<std::uint8_t>(kind);
        encode(more, std::span{frame}.first<frame_header_bytes>());
        frame.insert(frame.end(), body.begin(), body.end());
        return frame;
    }
    void expect_ended(CloseReason reason, const std::string& why) {
        ASSERT_TRUE(bed.run_until([&] { return !closed.empty(); }));
        EXPECT_EQ(closed.front().reason, reason);
        EXPECT_THAT(closed.front().detail, HasSubstr(why));
        EXPECT_EQ(open, 0);
        closed.clear();
    }
};

TEST_P(SealAttack, OnOneFrameIsNoticedAndNothingOfItIsDelivered) {
    files.permit(7, "services=messages");
    session_options.handshake_timeout = std::chrono::hours{1};
    listen();
    for (const Protection level : sealed_levels) {
        for (const Attack& attack : attacks()) {
            for (const std::size_t number : {1U, 2U, 7U})
                expect_nothing_delivered(attack, level, number);
        }
    }
}

TEST_P(SealAttack, OnTheExchangeOfKeysIsNoticedBeforeAnyFrame) {
    files.permit(7, "services=messages");
    session_options.handshake_timeout = std::chrono::hours{1};
    listen();
    for (const Protection level : sealed_levels) {
        for (const Attack& attack : attacks()) {
            if (attack.needs_another || std::string_view{attack.name} == "it comes twice") continue;
            expect_nothing_delivered(attack, level, 0);
        }
    }
}

TEST_P(SealAttack, OnTheAnswerOfTheAcceptingSideIsNoticedByTheOther) {
    files.permit(7, "services=messages");
    OnPath path{bed.transport()};
    path.tamper = [](Data message) {
        message.back() ^= std::byte{1};
        return std::vector<Data>{std::move(message)};
    };
    over = &path;
    listen();
    for (const Protection level : sealed_levels) {
        Visitor visitor{bed.transport()};
        visit(visitor, key(files.client(7), level));
        EXPECT_EQ(visitor.opened, 0);
        ASSERT_EQ(visitor.closed.size(), 1U);
        EXPECT_EQ(visitor.closed[0].reason, CloseReason::not_admitted);
        EXPECT_THAT(visitor.closed[0].detail, HasSubstr("exchange of keys"));
        ASSERT_TRUE(bed.run_until([&] { return sessions.empty(); }));
    }
    listener.reset();
}

TEST_P(SealAttack, WithAnotherSecretInTheExchangeIsNotAdmitted) {
    files.permit(7, "services=messages");
    listen();
    for (const Protection level : sealed_levels) {
        Raw raw = through_the_gate(level);
        raw.keys.psk = access::Secret::random();
        access::KeyExchange exchange{
            access::KeyExchange::Side::initiator, {.level = level, .cipher = raw.cipher}, raw.keys};
        raw.dialer->send(framed(FrameKind::key_exchange, exchange.say()));
        expect_ended(CloseReason::not_admitted, "exchange of keys");
    }
}

TEST_P(SealAttack, WithTheExchangeOfAnotherPassThroughTheGateIsNotAdmitted) {
    files.permit(7, "services=messages");
    listen();
    Raw one = through_the_gate(Protection::privacy);
    Raw other = through_the_gate(Protection::privacy);
    access::KeyExchange exchange{
        access::KeyExchange::Side::initiator, {.cipher = one.cipher}, one.keys};
    other.dialer->send(framed(FrameKind::key_exchange, exchange.say()));
    expect_ended(CloseReason::not_admitted, "exchange of keys");
}

TEST_P(SealAttack, AClientThatRequestedSealsMayNotContinueWithoutThem) {
    files.permit(7, "services=messages");
    listen();
    for (const Protection level : sealed_levels) {
        for (const FrameKind kind : {FrameKind::open, FrameKind::credit, FrameKind{16}}) {
            Raw raw = through_the_gate(level);
            raw.dialer->send(framed(kind, {}));
            expect_ended(CloseReason::protocol_error, "did not begin with its part");
        }
        Raw raw = through_the_gate(level);
        access::KeyExchange exchange{
            access::KeyExchange::Side::initiator, {.level = level, .cipher = raw.cipher}, raw.keys};
        raw.dialer->send(framed(FrameKind::key_exchange, exchange.say()));
        raw.dialer->send(framed(FrameKind::open, {}, {.sequence = 1}));
        expect_ended(CloseReason::protocol_error, "whose tag is wrong");
    }
}

TEST_P(SealAttack, AnExchangeWithCreditsOrFlagsOrOutOfTurnEndsTheSession) {
    files.permit(7, "services=messages");
    listen();
    for (const FrameHeader& header : {FrameHeader{.flags = 1}, FrameHeader{.credits = 1}}) {
        Raw raw = through_the_gate(Protection::integrity);
        access::KeyExchange exchange{
            access::KeyExchange::Side::initiator, {.cipher = raw.cipher}, raw.keys};
        raw.dialer->send(framed(FrameKind::key_exchange, exchange.say(), header));
        expect_ended(CloseReason::protocol_error,
                     header.flags != 0 ? "unexpected frame" : "credits before it may");
    }
    for (const Protection level : {Protection::none, Protection::peers}) {
        Raw raw = through_the_gate(level);
        raw.dialer->send(framed(FrameKind::key_exchange, Data(56)));
        expect_ended(CloseReason::protocol_error, "out of turn");
    }
}

// The peer has a key and chooses its exchange message so that no shared secret results: the message
// is authentic, but no keys can follow from it.
TEST_P(SealAttack, APartOfKeysThatGivesNoSecretEndsItsSessionAndNothingElse) {
    files.permit(7, "services=messages");
    listen();
    for (const std::byte low : {std::byte{0}, std::byte{1}}) {
        Raw raw = through_the_gate(Protection::privacy);
        const bool is_aes = raw.cipher == access::Cipher::aes_256_gcm;
        const access::Bytes name = access::as_bytes(
            is_aes ? "Noise_NNpsk0_25519_AESGCM_SHA256" : "Noise_NNpsk0_25519_ChaChaPoly_SHA256");
        access::Digest hash = access::sha256({name});
        if (is_aes) std::ranges::copy(name, hash.begin());
        access::Secret ignored;
        const auto [chaining, mixed] =
            access::hkdf(access::Secret{hash}, raw.keys.psk.bytes(), &ignored);
        access::PublicKey weak{};
        weak[0] = low;
        for (const access::Bytes part :
             {access::Bytes{raw.keys.prologue}, access::Bytes{mixed.bytes()}, access::Bytes{weak}})
            hash = access::sha256({hash, part});
        const access::Secret key = access::hkdf(chaining, weak).second;
        Data message(access::KeyExchange::message_bytes);
        std::ranges::copy(weak, message.begin());
        const std::array payload{std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0},
                                 std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}};
        const access::Bytes associated{hash};
        const access::Bytes plain{payload};
        access::Aead{raw.cipher, key}.seal(0, {&associated, 1}, {&plain, 1},
                                           std::span{message}.subspan(weak.size()));
        raw.dialer->send(framed(FrameKind::key_exchange, message));
        expect_ended(CloseReason::not_admitted, "exchange of keys");
    }
    expect_let_in(key(files.client(7), Protection::privacy));
}

TEST_P(SealAttack, AKeyThatWouldNeverChangeIsNotAgreedOn) {
    files.permit(7, "services=messages");
    listen();
    for (const std::uint64_t bytes : {std::uint64_t{0}, access::KeyExchange::most_key_bytes + 1}) {
        Raw raw = through_the_gate(Protection::privacy);
        access::KeyExchange exchange{
            access::KeyExchange::Side::initiator,
            {.level = Protection::privacy, .cipher = raw.cipher, .key_bytes = bytes},
            raw.keys};
        raw.dialer->send(framed(FrameKind::key_exchange, exchange.say()));
        expect_ended(CloseReason::not_admitted, "exchange of keys");
    }
}

// There is no attacker on the path, but the peer is slow on purpose or gone.
TEST_P(SealAttack, APeerThatNeverSendsItsExchangeTimesOut) {
    files.permit(7, "services=messages");
    session_options.handshake_timeout = std::chrono::milliseconds{20};
    listen();
    const Raw silent = through_the_gate(Protection::privacy);
    expect_ended(CloseReason::handshake_timeout, "no part of the session's keys");

    session_options.handshake_timeout = std::chrono::hours{1};
    OnPath path{bed.transport()};
    path.tamper = [](const Data&) { return std::vector<Data>{}; };
    Visitor visitor{path};
    visitor.options.handshake_timeout = std::chrono::milliseconds{20};
    visit(visitor, key(files.client(7), Protection::privacy));
    ASSERT_EQ(visitor.closed.size(), 1U);
    EXPECT_EQ(visitor.closed[0].reason, CloseReason::handshake_timeout);
}

INSTANTIATE_TEST_SUITE_P(Beds, SealAttack, all_beds(), bed_name);

} // namespace
} // namespace netio::test::seal_attack_test
