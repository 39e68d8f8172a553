// SPDX-License-Identifier: Apache-2.0

// What the two sides say of themselves, what is made of a rejection, and the keys of a session.

#include "netio/session/handshake.hpp"

#include "netio/access/gate_client.hpp"
#include "netio/session/key_desk.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/support/key_files.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace netio::test {
namespace {

using namespace std::chrono_literals;
using access::Cipher;
using access::Protection;

Handshake handshake_of(const SessionOptions& options = {}) {
    return {Hello{.service = Service::stream, .service_data = {}}, options};
}

TEST(Handshake, SaysWhatItsOptionsAre) {
    Handshake handshake =
        handshake_of({.receive_bytes = 1000, .receive_count = 7, .heartbeat = 3s});
    ConnectionData data;
    const std::size_t size = handshake.put_hello(data);
    Hello said;
    ASSERT_EQ(decode(std::span{data}.first(size), 0, said), RejectCode::none);
    EXPECT_EQ(said.service, Service::stream);
    EXPECT_EQ(said.receive_bytes, 1000U);
    EXPECT_EQ(said.receive_count, 7U);
    EXPECT_EQ(said.heartbeat_ms, 3000U);
    EXPECT_EQ(said.instance, process_instance());
    EXPECT_NE(said.instance, 0U);
}

// What has to be known and is not, and what is cut off.
TEST(Handshake, TakesNoOpenFrameThatItDoesNotUnderstand) {
    const std::vector<std::byte> unknown{std::byte{1},    {}, {}, {}, std::byte{7},
                                         std::byte{0x80}, {}, {}};
    OpenOptionsBytes known;
    const std::size_t size = encode(OpenOptions{.roles = 8}, known);
    Handshake handshake{{.service = Service::publish_subscribe, .service_data = {}}, {}};
    ASSERT_TRUE(handshake.take_open(std::span{known}.first(size)));
    EXPECT_EQ(handshake.offered().roles, 8U);
    EXPECT_FALSE(handshake.take_open(unknown));
    for (std::size_t part = 1; part < size; ++part) {
        if (part == 4) continue; // offers nothing
        EXPECT_FALSE(handshake.take_open(std::span{known}.first(part))) << part;
    }
    EXPECT_EQ(handshake.offered().roles, 8U) << "what it had understood";
}

// --- rejected -------------------------------------------------------------------------------

Closed explained(Handshake& handshake) {
    Closed closed{.reason = CloseReason::rejected, .detail = "rejected"};
    handshake.explain(closed);
    return closed;
}

Closed explained(const Rejection& rejection) {
    Handshake handshake = handshake_of({.receive_bytes = 1000});
    ConnectionData data;
    handshake.take_rejection(std::span{data}.first(encode(rejection, data)));
    EXPECT_EQ(handshake.rejection(), rejection.code);
    return explained(handshake);
}

std::string told(RejectCode code) {
    return "rejected: " + std::string{to_string(code)};
}

TEST(Handshake, ARejectionThatGivesNoReasonIsNotExplained) {
    Handshake handshake = handshake_of();
    EXPECT_EQ(explained(handshake).detail, "rejected");
    handshake.take_rejection({});
    EXPECT_EQ(handshake.rejection(), RejectCode::none);
    EXPECT_EQ(explained(handshake).detail, "rejected");
}

TEST(Handshake, ARejectionIsToldWithWhatIsRequired) {
    EXPECT_EQ(explained({.code = RejectCode::full}).detail, told(RejectCode::full));
    const Closed small = explained({.code = RejectCode::receive_too_small, .required_bytes = 4096});
    EXPECT_EQ(small.detail,
              told(RejectCode::receive_too_small) + " (4096 bytes required, 1000 here)");
    EXPECT_EQ(small.required_receive_bytes, 4096U);
    const Closed large = explained({.code = RejectCode::messages_too_large, .required_bytes = 99});
    EXPECT_EQ(large.detail, told(RejectCode::messages_too_large) + " (99 bytes required)");
    EXPECT_EQ(large.required_receive_bytes, 0U) << "larger receives would not help";
}

TEST(Handshake, WhoHasNoKeyIsToldSoOnlyWhereOneIsAskedFor) {
    EXPECT_EQ(explained({.code = RejectCode::prove_key}).detail,
              told(RejectCode::prove_key) + "; this side was given none");
    for (const RejectCode code : {RejectCode::not_admitted, RejectCode::service_data,
                                  RejectCode::other_service, RejectCode::no_resources})
        EXPECT_EQ(explained({.code = code}).detail, told(code));
}

// --- the gate -------------------------------------------------------------------------------

access::Key key_of_client() {
    return {.id = 7,
            .name = "client",
            .secret = access::Secret::random(),
            .rights = access::parse_rights("services=all")};
}

TEST(GatePassage, WithoutAKeyNothingIsProtected) {
    const GatePassage passage{};
    EXPECT_EQ(passage.protection(), Protection::none);
    EXPECT_EQ(passage.cipher(), Cipher::aes_256_gcm);
    EXPECT_EQ(passage.rights(), nullptr);
    EXPECT_FALSE(passage.keys());
}

TEST(GatePassage, OfAClientIsProtectedAsItHasAsked) {
    for (const bool lacks_aes : {false, true}) {
        GatePassage passage;
        passage.connects(std::make_shared<access::GateClient>(
            key_of_client(),
            access::GateClient::Options{.protection = Protection::privacy, .lacks_aes = lacks_aes},
            access::GateAddress{}));
        EXPECT_EQ(passage.protection(), Protection::privacy);
        EXPECT_EQ(passage.cipher(), lacks_aes ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm);
        EXPECT_EQ(passage.rights(), nullptr) << "the peer may do everything";
        EXPECT_EQ(passage.hint(RejectCode::prove_key), "");
    }
}

TEST(GatePassage, OfWhoWasAdmittedIsProtectedAsItWasAgreed) {
    KeyFiles files;
    EventLoop loop;
    const auto keys = std::make_shared<ServerKeys>(loop, ServerKeys::Options{.file = files.site()});
    for (const bool lacks_aes : {false, true}) {
        const access::GateFlags agreed{
            .has_key = true, .protection = Protection::integrity, .lacks_aes = lacks_aes};
        GatePassage passage;
        passage.accepts(
            std::make_unique<Admittance>(keys, access::Admission{key_of_client(), agreed}, nullptr),
            nullptr);
        EXPECT_EQ(passage.protection(), Protection::integrity);
        EXPECT_EQ(passage.cipher(), lacks_aes ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm);
        ASSERT_NE(passage.rights(), nullptr);
        EXPECT_EQ(*passage.rights(), access::parse_rights("services=all"));
        EXPECT_EQ(keys->counters().sessions, 1U);
    }
    EXPECT_EQ(keys->counters().sessions, 0U);
}

// --- the exchange of keys -------------------------------------------------------------------

class KeysOfASession : public testing::Test {
  protected:
    KeyExchange side(KeyExchange::Side which, std::uint64_t key_bytes = 1000) const {
        return {which, {.level = Protection::integrity, .key_bytes = key_bytes}, keys_};
    }
    bool hears(std::span<const std::byte> message) const {
        return side(KeyExchange::Side::responder).hear(message);
    }

  private:
    access::GateKeys keys_ = [] {
        access::GateKeys keys;
        keys.psk = access::Secret::random();
        return keys;
    }();
};

TEST_F(KeysOfASession, AMessageOfAnotherSizeIsNotHeard) {
    const KeyExchange::Message message = side(KeyExchange::Side::initiator).say();
    EXPECT_TRUE(hears(message));
    std::vector<std::byte> longer{message.begin(), message.end()};
    longer.emplace_back();
    EXPECT_FALSE(hears(longer));
    for (std::size_t size = 0; size < message.size(); ++size)
        EXPECT_FALSE(hears(std::span{message}.first(size))) << size;
}

TEST_F(KeysOfASession, AMessageIsHeardOnceAndInItsTurn) {
    KeyExchange initiator = side(KeyExchange::Side::initiator);
    KeyExchange responder = side(KeyExchange::Side::responder);
    const KeyExchange::Message first = initiator.say();
    ASSERT_TRUE(responder.hear(first));
    EXPECT_FALSE(responder.hear(first));
    EXPECT_FALSE(responder.is_complete());
    const KeyExchange::Message second = responder.say();
    EXPECT_TRUE(responder.is_complete());
    ASSERT_TRUE(initiator.hear(second));
    EXPECT_TRUE(initiator.is_complete());
    EXPECT_FALSE(initiator.hear(second));
}

TEST_F(KeysOfASession, AKeyIsChangedInTimeAndNotForNothing) {
    constexpr std::uint64_t most = KeyExchange::most_key_bytes;
    for (const auto& [key_bytes, good] :
         {std::pair{std::uint64_t{0}, false}, {1, true}, {most, true}, {most + 1, false}}) {
        EXPECT_EQ(hears(side(KeyExchange::Side::initiator, key_bytes).say()), good) << key_bytes;
    }
}

} // namespace
} // namespace netio::test
