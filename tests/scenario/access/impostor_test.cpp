// SPDX-License-Identifier: Apache-2.0

// A client with a key sends nothing to a server that does not prove the same key, and sessions with
// tags accept no frame made by a third party.

#include "tests/scenario/access/gate_fixture.hpp"

#include "netio/access/auth.hpp"
#include "netio/access/crypto.hpp"
#include "netio/access/frame_seal.hpp"

namespace netio::test::impostor_test {
namespace {

using access::AuthTranscript;
using access::Protection;
using testing::HasSubstr;

// Requests the key like a server, and then answers as the test wants. A connection that it has
// accepted must never receive a frame.
class FalseServer final : private Listener::Handler, private Connection::Handler {
  public:
    using Answer = std::function<Data(const Data& request, const access::ServerNonce& nonce)>;

    FalseServer(Transport& transport, const Address& address, Answer answer)
        : answer_{std::move(answer)}, listener_{transport.listen(
                                          transport.providers_at(address).front(), address,
                                          {.allow_remote_anonymous = true}, *this)} {
        nonce_.fill(std::byte{5});
    }
    Address address() const { return listener_->address(); }

    int requests = 0;
    int frames = 0;

  private:
    void on_request(ConnectionRequest& request) override {
        ++requests;
        const Data data{request.data().begin(), request.data().end()};
        const bool has_key = data[access::auth_flags_at] != std::byte{0};
        if (has_key && data[access::auth_kind_at] == std::byte{0}) return challenge(request);
        connection_ = request.make_connection({.send_count = 1, .receive_count = 1}, *this);
        const Slice slice = memory_.slice();
        ASSERT_EQ(connection_->post_receive({&slice, 1}, Cookie{0}), Status::ok);
        connection_->open(answer_(data, nonce_));
    }
    void challenge(ConnectionRequest& request) {
        ConnectionData data;
        const std::size_t size = encode(Rejection{.code = RejectCode::prove_key}, data);
        std::ranges::copy(nonce_, data.begin() + static_cast<std::ptrdiff_t>(size) + 2);
        request.reject(std::span{data}.first(access::auth_challenge_bytes));
    }
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion& completion) override {
        if (completion.outcome == Completion::Outcome::done) ++frames;
    }
    void on_closed(const Closed&) override {}

    Answer answer_;
    access::ServerNonce nonce_;
    RegisteredBuffer memory_{8192};
    std::unique_ptr<Listener> listener_;
    std::unique_ptr<Connection> connection_;
};

class Impostor : public GateTest {
  protected:
    static Data hello_with(access::AuthFlags flags) {
        Hello hello = gate_hello();
        hello.flags = access::encode(flags);
        ConnectionData data;
        const std::size_t size = encode(hello, data);
        return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    }
    static void put_behind(Data& answer, std::span<const std::byte> proof) {
        answer.insert(answer.end(), proof.begin(), proof.end());
    }
    void expect_refused(Protection protection, FalseServer::Answer answer, const std::string& why) {
        SCOPED_TRACE(why);
        files.permit(7, "services=messages");
        FalseServer server{bed.transport(), bed.address(), std::move(answer)};
        address = server.address();
        here = dialled();
        Visitor visitor{bed.transport()};
        visit(visitor, key(files.client(7), protection));
        EXPECT_EQ(visitor.opened, 0);
        ASSERT_EQ(visitor.closed.size(), 1U);
        EXPECT_EQ(visitor.closed[0].reason, CloseReason::not_admitted);
        EXPECT_THAT(visitor.closed[0].detail, HasSubstr(why));
        EXPECT_EQ(server.requests, 2);
        EXPECT_EQ(server.frames, 0) << "not even an open frame";
    }
    // The answer of a server that has this key, with these flags.
    Data proved_answer(const Data& request, const access::ServerNonce& nonce,
                       const access::Secret& secret, access::AuthFlags flags) const {
        Data answer = hello_with(flags);
        const AuthTranscript transcript{std::span{request}.first<access::auth_proof_at>(), nonce,
                                        here};
        put_behind(answer,
                   transcript.server_proof(derive(secret, access::Purpose::auth),
                                           std::span{answer}.first<access::auth_hello_bytes>()));
        return answer;
    }

    access::AuthAddress here; // the address that the client uses
};

TEST_P(Impostor, WithoutAProofIsNotTheServer) {
    expect_refused(
        Protection::none, [](const Data&, const auto&) { return hello_with({}); },
        "without a proof");
    expect_refused(
        Protection::none, [](const Data&, const auto&) { return hello_with({.has_key = true}); },
        "without a proof");
}

TEST_P(Impostor, ThatGivesTheClientsOwnProofBackIsNotTheServer) {
    expect_refused(
        Protection::none,
        [](const Data& request, const auto&) {
            Data answer = hello_with({.has_key = true});
            put_behind(answer,
                       std::span{request}.subspan(access::auth_proof_at, access::auth_proof_bytes));
            return answer;
        },
        "does not have the key");
}

TEST_P(Impostor, WithAnotherKeyIsNotTheServer) {
    expect_refused(
        Protection::none,
        [this](const Data& request, const access::ServerNonce& nonce) {
            return proved_answer(request, nonce, access::Secret::random(), {.has_key = true});
        },
        "does not have the key");
}

// Even a server with the key cannot lower the protection that the client asked for.
TEST_P(Impostor, MayNotLowerTheProtectionEvenIfItHasTheKey) {
    expect_refused(
        Protection::peers,
        [this](const Data& request, const access::ServerNonce& nonce) {
            return proved_answer(request, nonce, files.key(7).secret, {.has_key = true});
        },
        "another protection");
}

TEST_P(Impostor, AClientThatWasNotAskedForAKeyAcceptsNoAnswerWithOne) {
    FalseServer server{bed.transport(), bed.address(),
                       [](const Data&, const auto&) { return hello_with({.has_key = true}); }};
    address = server.address();
    Visitor visitor{bed.transport()};
    visit(visitor);
    EXPECT_EQ(visitor.opened, 0);
    EXPECT_EQ(server.frames, 0);
}

// --- tags -----------------------------------------------------------------------------------

class Tags : public GateTest {
  protected:
    // A client that has proved its key now sends a hand-made first frame.
    void expect_open_frame(const std::function<Data(const access::AuthKeys&, Data)>& tag,
                           bool taken) {
        files.permit(7, "services=messages");
        listen(Protection::peers);
        access::AuthClient client{files.key(7), {.protection = Protection::peers}, dialled()};
        const auto dialer = dial(proved_request(client));
        ASSERT_TRUE(dialer->answer.has_value());
        ASSERT_EQ(client.take_answer(*dialer->answer), access::AuthClient::Answer::genuine);
        Data frame(frame_header_bytes);
        encode({.kind = static_cast<std::uint8_t>(FrameKind::open)},
               std::span{frame}.first<frame_header_bytes>());
        dialer->send(tag(*client.keys(), frame));
        ASSERT_TRUE(bed.run_until([&] { return open == 1 || !closed.empty(); }));
        EXPECT_EQ(open, taken ? 1 : 0);
        if (taken) return;
        EXPECT_EQ(closed.front().reason, CloseReason::protocol_error);
        EXPECT_THAT(closed.front().detail, HasSubstr("whose tag is wrong"));
    }
    static Data tagged(const access::Secret& secret, Data frame) {
        access::Tagger tagger{secret};
        const auto tag = tagger.next(frame, {});
        frame.insert(frame.end(), tag.begin(), tag.end());
        return frame;
    }
};

TEST_P(Tags, OfTheRightKeyAndDirectionAreTaken) {
    expect_open_frame([](const access::AuthKeys& agreed,
                         Data frame) { return tagged(agreed.tags_up, std::move(frame)); },
                      true);
}

TEST_P(Tags, AreWantedWherePeersAreProtected) {
    expect_open_frame([](const access::AuthKeys&, Data frame) { return frame; }, false);
}

TEST_P(Tags, OfTheOtherDirectionAreNoneOfThisOne) {
    expect_open_frame([](const access::AuthKeys& agreed,
                         Data frame) { return tagged(agreed.tags_down, std::move(frame)); },
                      false);
}

TEST_P(Tags, HoldForEveryBitOfTheFrame) {
    expect_open_frame(
        [](const access::AuthKeys& agreed, Data frame) {
            Data all = tagged(agreed.tags_up, std::move(frame));
            all[2] ^= std::byte{1}; // the credits
            return all;
        },
        false);
}

TEST_P(Tags, LetASessionOpenCarryAndEndInOrder) {
    files.permit(7, "services=messages");
    listen(Protection::peers);
    Visitor visitor{bed.transport()};
    visit(visitor, key(files.client(7), Protection::peers));
    ASSERT_EQ(visitor.opened, 1);
    ASSERT_TRUE(bed.run_until([&] { return open == 1; }));
    RegisteredBuffer memory{3000};
    const Slice slice = memory.slice();
    ASSERT_EQ(visitor.session->send({.kind = 20, .slices = {&slice, 1}}, Cookie{1}), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return frames.size() == 1; }));
    EXPECT_EQ(frames[0].size(), 3000U);
    visitor.session->close();
    ASSERT_TRUE(bed.run_until([&] { return !visitor.closed.empty() && !closed.empty(); }));
    EXPECT_EQ(visitor.closed[0].reason, CloseReason::orderly) << visitor.closed[0].detail;
    EXPECT_EQ(closed[0].reason, CloseReason::orderly) << closed[0].detail;
}

INSTANTIATE_TEST_SUITE_P(Beds, Impostor, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, Tags, all_beds(), bed_name);

} // namespace
} // namespace netio::test::impostor_test
