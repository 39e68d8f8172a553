// SPDX-License-Identifier: Apache-2.0

// A listener with keys admits clients that have one; other peers get no endpoint at all.

#include "netio/access/auth.hpp"
#include "tests/scenario/access/gate_fixture.hpp"

namespace netio::test::gate_test {
namespace {

using access::Protection;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using Gate = GateTest;
using GateInVirtualTime = GateTest; // this many connections would take real time

TEST_P(Gate, LetsAClientInThatHasTheKeyAtItsSecondAttempt) {
    files.permit(7, "services=messages");
    listen();
    Visitor visitor{bed.transport()};
    visit(visitor, key(files.client(7)));
    ASSERT_EQ(visitor.opened, 1);
    EXPECT_EQ(visitor.attempts, 2);
    ASSERT_TRUE(bed.run_until([&] { return open == 1; }));
    ASSERT_NE(sessions.front()->rights(), nullptr);
    EXPECT_EQ(visitor.session->rights(), nullptr);
    const ServerKeys::Counters counters = keys->counters();
    EXPECT_EQ(counters.admitted, 1U);
    EXPECT_EQ(counters.challenged, 1U);
    EXPECT_EQ(counters.refused, 0U);
    EXPECT_EQ(counters.sessions, 1U);
    visitor.session->close();
    ASSERT_TRUE(bed.run_until([&] { return sessions.empty(); }));
    EXPECT_EQ(keys->counters().sessions, 0U);
}

TEST_P(Gate, GivesPeersWithoutAKeyNoEndpoint) {
    files.permit(7, "services=messages");
    listen();
    expect_kept_out(nullptr, "it asks for a key; this side was given none");
    ConnectionData hello;
    const std::size_t size = encode(gate_hello(), hello);
    for (std::size_t bytes = 0; bytes <= hello.size(); ++bytes) {
        for (const unsigned flags : {0U, 1U, 3U, 7U}) {
            hello[7] = static_cast<std::byte>(flags);
            hello[size] = std::byte{7};
            hello[size + 1] = static_cast<std::byte>(bytes % 3);
            const auto dialer = dial(std::span{hello}.first(bytes));
            EXPECT_FALSE(dialer->answer.has_value()) << bytes << ", " << flags;
        }
    }
    EXPECT_EQ(incoming, 0);
    EXPECT_EQ(keys->counters().admitted, 0U);
    EXPECT_EQ(keys->counters().sessions, 0U);
    expect_let_in(key(files.client(7)));
}

TEST_P(Gate, RejectsAnotherKeyOfTheSameIdAndAnUnknownId) {
    files.permit(7, "services=messages");
    listen();
    expect_kept_out(key(files.forged(7)), "it does not admit this side");
    expect_kept_out(key(files.client(8)), "it does not admit this side");
    EXPECT_THAT(refused, ElementsAre(HasSubstr("7: it does not have the key"),
                                     HasSubstr("7: it does not have the key"),
                                     HasSubstr("8: there is no such key"),
                                     HasSubstr("8: there is no such key")))
        << "each tries once more, because the server may have been restarted";
}

TEST_P(Gate, TakesARequestOnceOnly) {
    files.permit(7, "services=messages");
    listen();
    access::AuthClient client{files.key(7), {}, dialled()};
    const Data request = proved_request(client);
    const auto first = dial(request);
    EXPECT_TRUE(first->answer.has_value());
    EXPECT_EQ(incoming, 1);
    const auto again = dial(request);
    EXPECT_EQ(again->code(), RejectCode::not_admitted);
    EXPECT_EQ(incoming, 1);
    EXPECT_THAT(refused, ElementsAre(HasSubstr("was used before")));
}

TEST_P(Gate, TakesNoProofForAnotherAddressOrForOtherFlags) {
    files.permit(7, "services=messages");
    listen();
    access::AuthAddress elsewhere = dialled();
    ++elsewhere.port;
    access::AuthClient lured{files.key(7), {}, elsewhere};
    EXPECT_EQ(dial(proved_request(lured))->code(), RejectCode::not_admitted);
    access::AuthClient client{files.key(7), {.protection = Protection::peers}, dialled()};
    Data request = proved_request(client);
    request[access::auth_flags_at] =
        access::encode({.has_key = true}) == 1 ? std::byte{1} : std::byte{0};
    EXPECT_EQ(dial(request)->code(), RejectCode::not_admitted);
    EXPECT_EQ(incoming, 0);
    EXPECT_THAT(refused, ElementsAre(HasSubstr("dialled another address"),
                                     HasSubstr("does not have the key")));
}

// The client connects to an address that the network translates: each side sees another one.
TEST_P(Gate, AcceptsAProofForAnAdvertisedAddress) {
    files.permit(7, "services=messages");
    ServerKeys::Options options{.file = files.site()};
    options.advertised_addresses = {{"203.0.113.9", 4321}, {"2001:db8::9", 4321}};
    listen_with(std::make_shared<ServerKeys>(bed.loop(), options));
    access::AuthAddress outside{.host = access::host_of_ipv4(std::array{
                                    std::byte{203}, std::byte{0}, std::byte{113}, std::byte{9}}),
                                .port = 4321};
    for (const bool known : {true, false}) {
        if (!known) ++outside.port;
        access::AuthClient client{files.key(7), {}, outside};
        const auto dialer = dial(proved_request(client));
        ASSERT_EQ(dialer->answer.has_value(), known);
        if (known) {
            EXPECT_EQ(client.take_answer(*dialer->answer), access::AuthClient::Answer::genuine);
        }
    }
    access::AuthClient inside{files.key(7), {}, dialled()};
    EXPECT_TRUE(dial(proved_request(inside))->answer.has_value());
}

TEST_P(Gate, RejectsLessProtectionThanRequiredAndGrantsMoreIfRequested) {
    constexpr std::array levels{Protection::none, Protection::peers, Protection::integrity,
                                Protection::privacy};
    files.permit(7, "services=messages");
    for (const Protection least : levels) {
        listener.reset();
        listen(least);
        for (const Protection asked : levels) {
            SCOPED_TRACE(std::string{to_string(least)} + ", " + std::string{to_string(asked)});
            incoming = 0;
            if (asked < least) {
                expect_kept_out(key(files.client(7), asked), "or this protection");
            } else {
                expect_let_in(key(files.client(7), asked));
            }
        }
    }
}

TEST_P(Gate, RejectsAKeyForAnotherService) {
    files.permit(7, "services=pubsub,stream");
    listen();
    expect_kept_out(key(files.client(7)), "not with these rights");
    EXPECT_THAT(refused.front(), HasSubstr("does not permit this service"));
}

TEST_P(Gate, AdmitsClientsWithoutAKeyWithTheRightsInTheFile) {
    files.permit_anyone("services=messages connections=1");
    files.permit(7, "services=messages");
    listen();
    expect_let_in();
    expect_let_in(key(files.client(7)));
    files.permit_anyone("services=pubsub");
    listener.reset();
    listen();
    incoming = 0;
    expect_kept_out(nullptr, "not with these rights");
}

TEST_P(Gate, LimitsSlotsPerKeyAndReleasesThem) {
    files.permit(7, "services=messages connections=2");
    listen();
    const auto shown = key(files.client(7));
    Visitor one{bed.transport()}, two{bed.transport()}, three{bed.transport()};
    visit(one, shown);
    visit(two, shown);
    visit(three, shown);
    EXPECT_EQ(three.opened, 0);
    EXPECT_THAT(three.closed.front().detail, HasSubstr("it has no free slot for another peer"));
    EXPECT_EQ(keys->counters().busy, 1U);
    EXPECT_EQ(keys->counters().admitted, 2U);
    EXPECT_THAT(bed.seen().rejected,
                ElementsAre(HasSubstr("key 7 (key7) has its maximum number of connections")));
    one.session->close();
    ASSERT_TRUE(bed.run_until([&] { return sessions.size() == 1; }));
    expect_let_in(shown);
}

TEST_P(GateInVirtualTime, AKeyUsedTooOftenIsReportedAndLimitsOnlyItsOwnClients) {
    files.permit(7, "services=messages connections=1");
    files.permit(8, "services=messages");
    listen();
    const auto proof = [&] {
        access::AuthClient client{files.key(7), {}, dialled()};
        return dial(proved_request(client));
    };
    std::unique_ptr<RawDialer> last;
    for (std::size_t each = 0; each < access::AuthServer::Options{}.proofs_per_key + 1; ++each)
        last = proof();
    EXPECT_EQ(last->code(), RejectCode::full);
    EXPECT_THAT(bed.seen().rejected.back(), HasSubstr("key 7 (key7) connects too often"));
    expect_let_in(key(files.client(8)));
}

TEST_P(Gate, LimitsSlotsPerHostWhateverTheKeys) {
    files.permit(7, "services=messages");
    files.permit(8, "services=messages");
    listen(Protection::none, 1);
    Visitor one{bed.transport()}, two{bed.transport()};
    visit(one, key(files.client(7)));
    visit(two, key(files.client(8)));
    EXPECT_EQ(one.opened, 1);
    EXPECT_EQ(two.opened, 0);
    EXPECT_THAT(bed.seen().rejected,
                ElementsAre(HasSubstr("its host has the maximum number of connections")));
    // The next rejection is reported, because its reason is different.
    Hello other = gate_hello();
    other.service = Service::stream;
    ConnectionData data;
    const std::size_t size = encode(other, data);
    EXPECT_EQ(dial(std::span{data}.first(size))->code(), RejectCode::other_service);
    EXPECT_THAT(bed.seen().rejected.back(), HasSubstr("another service"));
}

TEST_P(Gate, ReleasesTheSlotOfARequestRejectedForAnotherReason) {
    files.permit(7, "services=messages connections=1");
    listen();
    access::AuthClient client{files.key(7), {}, dialled()};
    static_cast<void>(proved_request(client));
    ConnectionData data;
    Hello small = gate_hello();
    small.receive_buffer_bytes = 8;
    static_cast<void>(encode(small, data));
    access::ClientNonce nonce{};
    const std::size_t size = client.request(data, nonce);
    EXPECT_EQ(dial(std::span{data}.first(size))->code(), RejectCode::receive_too_small);
    EXPECT_EQ(keys->counters().admitted, 1U);
    EXPECT_EQ(keys->counters().sessions, 0U);
    expect_let_in(key(files.client(7)));
}

TEST_P(Gate, RejectsAClientWithAKeyWhereThereAreNone) {
    files.permit(7, "services=messages");
    listen_with(nullptr);
    expect_kept_out(key(files.client(7)), "it does not admit this side");
    EXPECT_THAT(bed.seen().rejected, Each(HasSubstr("it uses a key, and this side has none")));
    EXPECT_THAT(turned_away, SizeIs(bed.seen().rejected.size()));
    EXPECT_THAT(turned_away, Not(IsEmpty()));
    expect_let_in();
}

INSTANTIATE_TEST_SUITE_P(Beds, Gate, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, GateInVirtualTime, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::gate_test
