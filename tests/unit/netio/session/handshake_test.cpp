// SPDX-License-Identifier: Apache-2.0
#include "netio/session/handshake.hpp"

#include "netio/access/auth.hpp"
#include "netio/access/protection.hpp"
#include "netio/base/frame.hpp"
#include "netio/random_number.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/support/key_files.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace netio::test::handshake_test {
namespace {

using access::Cipher;
using access::Protection;
using namespace std::chrono_literals;

Hello example() {
    Hello hello{.service = Service::publish_subscribe,
                .features = 0x81,
                .receive_buffer_bytes = 0x01020304,
                .receive_count = 0x0506,
                .heartbeat_ms = 0x0708,
                .instance = 0x1112131415161718,
                .service_data = {}};
    for (std::size_t i = 0; i < 4; ++i)
        hello.service_data.bytes[i] = static_cast<std::byte>(0xa0 + i);
    hello.service_data.size = 4;
    return hello;
}

TEST(Hello, HasTheDocumentedBytes) {
    ConnectionData data;
    ASSERT_EQ(encode(example(), data), 28U);
    const std::vector<int> expected{'N',  'T',  'I',  'O',  3,    0x81, 2,    0,    4,    3,
                                    2,    1,    6,    5,    8,    7,    0x18, 0x17, 0x16, 0x15,
                                    0x14, 0x13, 0x12, 0x11, 0xa0, 0xa1, 0xa2, 0xa3};
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(data[i]), expected[i]) << "byte " << i;
}

TEST(Hello, ComesBackAlsoWhenTheFabricPadsIt) {
    ConnectionData data;
    const std::size_t size = encode(example(), data);
    for (const std::size_t given : {size, data.size()}) {
        Hello hello;
        ASSERT_EQ(decode(std::span{data}.first(given), 4, hello), RejectCode::none);
        EXPECT_EQ(hello.service, Service::publish_subscribe);
        EXPECT_EQ(hello.features, 0x81U) << "unassigned bits are ignored, not refused";
        EXPECT_EQ(hello.receive_buffer_bytes, 0x01020304U);
        EXPECT_EQ(hello.receive_count, 0x0506U);
        EXPECT_EQ(hello.heartbeat_ms, 0x0708U);
        EXPECT_EQ(hello.instance, 0x1112131415161718U);
        EXPECT_EQ(hello.service_data.bytes[3], std::byte{0xa3});
    }
}

TEST(Hello, EveryTruncationIsRefused) {
    ConnectionData data;
    const std::size_t size = encode(example(), data);
    for (std::size_t cut = 0; cut < size; ++cut) {
        Hello hello;
        EXPECT_NE(decode(std::span{data}.first(cut), 4, hello), RejectCode::none) << cut;
    }
}

TEST(Hello, APeerThatCannotBeSentToIsRefusedAtTheBounds) {
    Hello peer = example();
    peer.receive_buffer_bytes = 1000;
    peer.receive_count = least_session_receive_count;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::none);
    EXPECT_EQ(judge_receives(peer, 1001), RejectCode::receive_too_small);
    peer.receive_count = least_session_receive_count - 1;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::service_data);
    peer.receive_count = most_session_receive_count;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::none);
    peer.receive_count = most_session_receive_count + 1;
    EXPECT_EQ(judge_receives(peer, 1000), RejectCode::service_data);
    peer.receive_count = least_session_receive_count;
    peer.receive_buffer_bytes = least_receive_bytes - 1;
    EXPECT_EQ(judge_receives(peer, 0), RejectCode::receive_too_small);
}

TEST(Hello, AnyChangeOfMagicVersionOrReservedBitsIsRefused) {
    ConnectionData sound;
    const std::size_t size = encode(example(), sound);
    for (const std::size_t byte : {0U, 1U, 2U, 3U, 4U, 7U}) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            if (byte == 7 && bit == 0) continue; // announces a key
            ConnectionData data = sound;
            data[byte] ^= static_cast<std::byte>(1U << bit);
            Hello hello;
            EXPECT_EQ(decode(std::span{data}.first(size), 4, hello), RejectCode::not_this_protocol)
                << byte << ", " << bit;
        }
    }
}

TEST(Hello, FlagsOfTheGateComeThroughAndOthersAreRefused) {
    ConnectionData data;
    for (unsigned flags = 0; flags < 256; ++flags) {
        Hello said = example();
        said.flags = static_cast<std::uint8_t>(flags);
        const std::size_t size = encode(said, data);
        Hello heard;
        const RejectCode code = decode(std::span{data}.first(size), 4, heard);
        const bool known = access::decode_flags(said.flags).has_value();
        EXPECT_EQ(code, known ? RejectCode::none : RejectCode::not_this_protocol) << flags;
        EXPECT_EQ(heard.flags, known ? said.flags : 0U);
    }
}

TEST(Hello, RejectionsComeBackAndAnythingElseIsNone) {
    ConnectionData data;
    const std::size_t size =
        encode(Rejection{.code = RejectCode::receive_too_small, .required_bytes = 77}, data);
    const Rejection rejection = decode_rejection(std::span{data}.first(size));
    EXPECT_EQ(rejection.code, RejectCode::receive_too_small);
    EXPECT_EQ(rejection.required_bytes, 77U);
    for (std::size_t cut = 0; cut < size; ++cut)
        EXPECT_EQ(decode_rejection(std::span{data}.first(cut)).code, RejectCode::none);
    data[0] ^= std::byte{1};
    EXPECT_EQ(decode_rejection(std::span{data}.first(size)).code, RejectCode::none);
}

ConnectionData full_of(std::byte value) {
    ConnectionData data;
    data.fill(value);
    return data;
}

TEST(Hello, OverwritesAllOfItsMemory) {
    ConnectionData clean = full_of(std::byte{0});
    ConnectionData used = full_of(std::byte{0xff});
    ASSERT_EQ(encode(example(), clean), encode(example(), used));
    EXPECT_EQ(used, clean) << "the fabric pads with zeros as well";
}

TEST(Hello, KnowsHowMuchOfItIsTheServices) {
    ConnectionData data;
    const std::size_t size = encode(example(), data);
    Hello hello;
    ASSERT_EQ(decode(std::span{data}.first(size), 4, hello), RejectCode::none);
    EXPECT_EQ(hello.service_data.span().size(), 4U);
    ASSERT_EQ(decode(std::span{data}.first(size), 0, hello), RejectCode::none);
    EXPECT_EQ(hello.service_data.span().size(), 0U) << "the rest is padding by the fabric";
}

TEST(Hello, ARejectionHasTheDocumentedBytesWhateverWasInItsMemory) {
    ConnectionData data = full_of(std::byte{0xff});
    const Rejection rejection{.code = RejectCode::receive_too_small, .required_bytes = 0x04030201};
    ASSERT_EQ(encode(rejection, data), 12U);
    const std::vector<int> expected{'N', 'T', 'I', 'O', 3, 0, 3, 0, 1, 2, 3, 4};
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(data[i]), expected[i]) << "byte " << i;
}

TEST(Frame, HeaderHasTheDocumentedBytesAndComesBack) {
    std::array<std::byte, frame_header_bytes> bytes;
    const FrameHeader header{.kind = 17, .flags = 1, .credits = 0x0203, .sequence = 0x04050607};
    encode(header, bytes);
    const int expected[] = {17, 1, 3, 2, 7, 6, 5, 4};
    for (std::size_t i = 0; i < bytes.size(); ++i)
        EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]);
    EXPECT_EQ(decode_frame_header(bytes), header);
}

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
    std::vector<std::byte> bytes;
    for (const int number : numbers)
        bytes.push_back(static_cast<std::byte>(number));
    return bytes;
}

TEST(OpenOptions, ComeOutAsTheyWentIn) {
    for (unsigned roles = 0; roles < 256; ++roles) {
        OpenOptionsBytes out;
        const OpenOptions options{.roles = static_cast<std::uint8_t>(roles)};
        const std::size_t size = encode(options, out);
        EXPECT_EQ(size, roles == 0 ? 0U : 9U);
        EXPECT_EQ(decode_open_options(std::span{out}.first(size)), options);
    }
}

TEST(OpenOptions, HaveTheDocumentedLayout) {
    OpenOptionsBytes out;
    const std::size_t size = encode({.roles = 6}, out);
    const auto expected = bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 6});
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin()));
    EXPECT_EQ(size, expected.size());
}

TEST(OpenOptions, UnknownOptionsAreIgnoredUnlessMandatory) {
    const auto optional = bytes_of({1, 0, 0, 0, 7, 0, 2, 0, 9, 9, 0x01, 0x80, 1, 0, 6});
    EXPECT_EQ(decode_open_options(optional), (OpenOptions{.roles = 6}));
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 7, 0x80, 0, 0, 8, 0x80, 0, 0})),
              (OpenOptions{.unknown = 0x8007}));
}

TEST(OpenOptions, RefusesWhatIsMalformed) {
    for (const auto& bytes :
         {bytes_of({1}), bytes_of({2, 0, 0, 0}), bytes_of({1, 0, 0, 1}), bytes_of({1, 0, 0, 0, 7}),
          bytes_of({1, 0, 0, 0, 7, 0, 3, 0, 1}), bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 0}),
          bytes_of({1, 0, 0, 0, 0x01, 0x80, 2, 0, 1, 1}),
          bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 1, 0x01, 0x80, 1, 0, 1})})
        EXPECT_EQ(decode_open_options(bytes), std::nullopt);
    EXPECT_EQ(decode_open_options({}), OpenOptions{});
}

TEST(OpenOptions, OverwriteAllOfTheirMemory) {
    OpenOptionsBytes out;
    out.fill(std::byte{0xff});
    const std::size_t size = encode({.roles = 6}, out);
    const auto expected = bytes_of({1, 0, 0, 0, 0x01, 0x80, 1, 0, 6});
    ASSERT_EQ(size, expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin()));
}

TEST(OpenOptions, MayBeAListOfNothingAndHaveAnOptionWithoutAValue) {
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0})), OpenOptions{});
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 7, 0, 0, 0})), OpenOptions{});
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 7, 0, 0, 0, 0x01, 0x80, 1, 0, 6})),
              (OpenOptions{.roles = 6}));
    EXPECT_EQ(decode_open_options(bytes_of({1, 0, 0, 0, 0x01, 0x80, 0, 0})), std::nullopt)
        << "roles need one";
}

// The data that both sides send, the meaning of a rejection, and the keys of a session.

Handshake handshake_of(const SessionOptions& options = {}) {
    return {Hello{.service = Service::stream, .service_data = {}}, options};
}

TEST(Handshake, AnnouncesItsOptionsInTheHello) {
    Handshake handshake =
        handshake_of({.receive_buffer_bytes = 1000, .receive_count = 7, .heartbeat = 3s});
    ConnectionData data;
    const std::size_t size = handshake.put_hello(data);
    Hello said;
    ASSERT_EQ(decode(std::span{data}.first(size), 0, said), RejectCode::none);
    EXPECT_EQ(said.service, Service::stream);
    EXPECT_EQ(said.receive_buffer_bytes, 1000U);
    EXPECT_EQ(said.receive_count, 7U);
    EXPECT_EQ(said.heartbeat_ms, 3000U);
    EXPECT_EQ(said.instance, process_instance());
    EXPECT_NE(said.instance, 0U);
}

// Frames with an unknown mandatory option, and truncated frames.
TEST(Handshake, TakesNoOpenFrameThatItDoesNotUnderstand) {
    const std::vector<std::byte> unknown{std::byte{1},    {}, {}, {}, std::byte{7},
                                         std::byte{0x80}, {}, {}};
    OpenOptionsBytes known;
    const std::size_t size = encode(OpenOptions{.roles = 8}, known);
    Handshake handshake{{.service = Service::publish_subscribe, .service_data = {}}, {}};
    ASSERT_EQ(handshake.take_open(std::span{known}.first(size)), 0U);
    EXPECT_EQ(handshake.offered().roles, 8U);
    EXPECT_EQ(handshake.take_open(unknown), 0x8007U);
    for (std::size_t part = 1; part < size; ++part) {
        if (part == 4) continue; // an empty list
        EXPECT_FALSE(handshake.take_open(std::span{known}.first(part))) << part;
    }
    EXPECT_EQ(handshake.offered().roles, 8U) << "the last valid options remain";
}

// --- rejected -------------------------------------------------------------------------------

Closed explained(Handshake& handshake) {
    Closed closed{.reason = CloseReason::rejected, .detail = "rejected"};
    handshake.explain(closed);
    return closed;
}

Closed explained(const Rejection& rejection) {
    Handshake handshake = handshake_of({.receive_buffer_bytes = 1000});
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

TEST(Handshake, ARejectionIsReportedWithTheRequirement) {
    EXPECT_EQ(explained({.code = RejectCode::full}).detail, told(RejectCode::full));
    const Closed small = explained({.code = RejectCode::receive_too_small, .required_bytes = 4096});
    EXPECT_EQ(small.detail,
              told(RejectCode::receive_too_small) + " (4096 bytes required, 1000 here)");
    EXPECT_EQ(small.required_receive_bytes, 4096U);
    const Closed large = explained({.code = RejectCode::messages_too_large, .required_bytes = 99});
    EXPECT_EQ(large.detail, told(RejectCode::messages_too_large) + " (99 bytes required)");
    EXPECT_EQ(large.required_receive_bytes, 0U) << "larger receives would not help";
}

TEST(Handshake, ARejectionForAnotherServiceNamesBoth) {
    const std::string here = "; this side is for byte streams: connect to another port";
    const auto publisher = static_cast<std::uint32_t>(Service::publish_subscribe);
    EXPECT_EQ(explained({.code = RejectCode::other_service, .required_bytes = publisher}).detail,
              told(RejectCode::other_service) + ": publish/subscribe" + here);
    EXPECT_EQ(explained({.code = RejectCode::other_service, .required_bytes = 77}).detail,
              told(RejectCode::other_service) + ": service 77" + here);
}

TEST(Handshake, AMissingKeyIsMentionedOnlyIfOneIsRequired) {
    EXPECT_EQ(explained({.code = RejectCode::prove_key}).detail,
              told(RejectCode::prove_key) + "; this side was given none (set key, --key FILE)");
    for (const RejectCode code : {RejectCode::not_admitted, RejectCode::service_data,
                                  RejectCode::other_service, RejectCode::no_resources})
        EXPECT_EQ(explained({.code = code}).detail, told(code));
}

// --- authentication -------------------------------------------------------------------------

access::Key key_of_client() {
    return {.id = 7,
            .name = "client",
            .secret = access::Secret::random(),
            .rights = access::parse_rights("services=all")};
}

TEST(Handshake, WithoutAKeyNothingIsProtected) {
    const Handshake handshake = handshake_of();
    EXPECT_EQ(handshake.protection(), Protection::none);
    EXPECT_EQ(handshake.cipher(), Cipher::aes_256_gcm);
    EXPECT_EQ(handshake.rights(), nullptr);
    EXPECT_FALSE(handshake.keys());
}

TEST(Handshake, HasTheProtectionThatTheClientRequested) {
    for (const bool lacks_aes : {false, true}) {
        Handshake handshake = handshake_of();
        handshake.connects(least_receive_bytes, {},
                           std::make_shared<access::AuthClient>(
                               key_of_client(),
                               access::AuthClient::Options{.protection = Protection::privacy,
                                                           .lacks_aes = lacks_aes},
                               access::AuthAddress{}));
        EXPECT_EQ(handshake.protection(), Protection::privacy);
        EXPECT_EQ(handshake.cipher(), lacks_aes ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm);
        EXPECT_EQ(handshake.rights(), nullptr) << "the peer may do everything";
        ConnectionData data;
        const std::size_t size = encode(Rejection{.code = RejectCode::prove_key}, data);
        handshake.take_rejection(std::span{data}.first(size));
        Closed closed{.reason = CloseReason::rejected, .detail = {}};
        handshake.explain(closed);
        EXPECT_EQ(closed.detail.find("this side was given none"), std::string::npos);
    }
}

TEST(Handshake, HasTheProtectionAgreedWithAnAdmittedPeer) {
    KeyFiles files;
    EventLoop loop;
    const auto keys = std::make_shared<ServerKeys>(loop, ServerKeys::Options{.file = files.site()});
    for (const bool lacks_aes : {false, true}) {
        const access::AuthFlags agreed{
            .has_key = true, .protection = Protection::integrity, .lacks_aes = lacks_aes};
        Handshake handshake = handshake_of();
        handshake.admit(std::make_unique<AdmittedPeer>(
                            keys, access::AuthResult{key_of_client(), agreed}, nullptr),
                        nullptr);
        EXPECT_EQ(handshake.protection(), Protection::integrity);
        EXPECT_EQ(handshake.cipher(), lacks_aes ? Cipher::chacha20_poly1305 : Cipher::aes_256_gcm);
        ASSERT_NE(handshake.rights(), nullptr);
        EXPECT_EQ(*handshake.rights(), access::parse_rights("services=all"));
        EXPECT_EQ(keys->counters().sessions, 1U);
    }
    EXPECT_EQ(keys->counters().sessions, 0U);
}

// --- the exchange of keys -------------------------------------------------------------------

class KeysOfASession : public testing::Test {
  protected:
    access::KeyExchange side(access::KeyExchange::Side which,
                             std::uint64_t key_bytes = 1000) const {
        return {which, {.level = Protection::integrity, .key_bytes = key_bytes}, keys_};
    }
    bool hears(std::span<const std::byte> message) const {
        return side(access::KeyExchange::Side::responder).hear(message);
    }

  private:
    access::AuthKeys keys_ = [] {
        access::AuthKeys keys;
        keys.psk = access::Secret::random();
        return keys;
    }();
};

TEST_F(KeysOfASession, AMessageOfAnotherSizeIsRefused) {
    const access::KeyExchange::Message message = side(access::KeyExchange::Side::initiator).say();
    EXPECT_TRUE(hears(message));
    std::vector<std::byte> longer{message.begin(), message.end()};
    longer.emplace_back();
    EXPECT_FALSE(hears(longer));
    for (std::size_t size = 0; size < message.size(); ++size)
        EXPECT_FALSE(hears(std::span{message}.first(size))) << size;
}

TEST_F(KeysOfASession, AMessageIsAcceptedOnceAndInItsTurn) {
    access::KeyExchange initiator = side(access::KeyExchange::Side::initiator);
    access::KeyExchange responder = side(access::KeyExchange::Side::responder);
    const access::KeyExchange::Message first = initiator.say();
    ASSERT_TRUE(responder.hear(first));
    EXPECT_FALSE(responder.hear(first));
    EXPECT_FALSE(responder.is_complete());
    const access::KeyExchange::Message second = responder.say();
    EXPECT_TRUE(responder.is_complete());
    ASSERT_TRUE(initiator.hear(second));
    EXPECT_TRUE(initiator.is_complete());
    EXPECT_FALSE(initiator.hear(second));
}

TEST_F(KeysOfASession, AKeyIsChangedInTimeAndNotForNothing) {
    constexpr std::uint64_t most = access::KeyExchange::most_key_bytes;
    for (const auto& [key_bytes, good] :
         {std::pair{std::uint64_t{0}, false}, {1, true}, {most, true}, {most + 1, false}}) {
        EXPECT_EQ(hears(side(access::KeyExchange::Side::initiator, key_bytes).say()), good)
            << key_bytes;
    }
}

} // namespace
} // namespace netio::test::handshake_test
