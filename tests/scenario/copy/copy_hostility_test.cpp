// SPDX-License-Identifier: Apache-2.0

// Peers that violate the copy protocol: the program keeps running, and its disk stays clean.

#include "tests/scenario/copy/copy_bed.hpp"

#include <random>
#include <utility>

namespace apps::copy::test::copy_hostility_test {
namespace {

using testing::HasSubstr;

class HostilePeer : public CopyBed {
  protected:
    static std::vector<std::byte> bytes(std::string_view text) {
        const auto some = std::as_bytes(std::span{text});
        return {some.begin(), some.end()};
    }
    static Digest digest(std::string_view text) {
        Checksum checksum{ChecksumKind::xxh3_128};
        checksum.add(std::as_bytes(std::span{text}));
        return checksum.digest();
    }
    static Chunk chunk(std::uint64_t position, std::string_view text) {
        return {.position = position,
                .bytes = text.size(),
                .digest = chunk_digest(std::as_bytes(std::span{text}))};
    }
    // Runs the protocol up to the first chunk.
    void begin(RawPeer& peer, const std::string& name, std::uint64_t size) {
        connect(peer);
        peer.send(encode(Open{.name = name, .size_bytes = size, .mode = 0600}));
        ASSERT_EQ(wait_for<Answer>(peer).outcome, Answer::Outcome::accepted);
        peer.send(encode(Start{}));
    }
    void expect_thrown_out(RawPeer& peer) {
        EXPECT_TRUE(bed.run_until([&] { return peer.closed; }));
        EXPECT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    }
    // Nothing was written outside the served folder, and an honest sender is still served.
    void expect_all_well() {
        std::vector<std::string> there;
        for (const auto& entry : fs::directory_iterator{root})
            there.push_back(entry.path().filename());
        EXPECT_THAT(there, testing::UnorderedElementsAre("served", "source"));
        put("source/honest", "content");
        Sender::Options what = options({"honest"});
        what.overwrite = true;
        const Outcome outcome = copy(what);
        EXPECT_EQ(outcome.files.at(0).outcome, CopiedFile::Outcome::copied);
        EXPECT_EQ(content("served/honest"), "content");
    }
    // After the peer has disconnected, nothing of its file remains.
    void expect_nothing_kept(RawPeer& peer) {
        expect_thrown_out(peer);
        EXPECT_TRUE(fs::is_empty(root + "/served"));
        expect_all_well();
    }
};

TEST_F(HostilePeer, NamesOutsideTheFolderAreRefusedAndTheConnectionContinues) {
    serve();
    fs::create_directory_symlink(root, root + "/served/up");
    RawPeer peer;
    connect(peer);
    for (const std::string& name :
         {std::string{"../escaped"}, root + "/escaped", std::string{"up/escaped"},
          std::string{"a/../../escaped"}, std::string{"a\0b", 3}, std::string{"\x1b[2J"},
          std::string{"a\xc2\x9b\x32J"}, std::string{"a\xe2\x80\xae\x67pj"}, std::string{},
          std::string{".a.netio-part"}, std::string(1000, 'x'), std::string{".."}}) {
        peer.send(encode(Open{.name = name, .size_bytes = 1, .mode = 0600}));
        const auto answer = wait_for<Answer>(peer);
        EXPECT_EQ(answer.outcome, Answer::Outcome::refused) << name;
        EXPECT_NE(answer.text, "");
    }
    fs::remove(root + "/served/up");
    EXPECT_TRUE(fs::is_empty(root + "/served"));
    expect_all_well();
}

TEST_F(HostilePeer, ADamagedChunkIsReportedAndNotWritten) {
    serve();
    RawPeer peer;
    begin(peer, "a", 8);
    peer.send(chunk(0, "good...."), "BAD.....");
    const auto verdict = wait_for<Verdict>(peer);
    EXPECT_FALSE(verdict.kept);
    EXPECT_THAT(verdict.text, HasSubstr("damaged"));
    peer.socket->close();
    expect_nothing_kept(peer);
}

TEST_F(HostilePeer, AFileWithAWrongChecksumGetsNoFinalName) {
    serve();
    RawPeer peer;
    begin(peer, "a", 4);
    peer.send(chunk(0, "good"), "good");
    peer.send(encode(End{.digest = digest("evil")}));
    EXPECT_FALSE(wait_for<Verdict>(peer).kept);
    peer.socket->close();
    expect_nothing_kept(peer);
}

TEST_F(HostilePeer, AChunkAtAWrongPositionOrLengthEndsTheConnection) {
    serve();
    for (const Chunk& bad : {chunk(1, "good"), chunk(0, "too long"), Chunk{}}) {
        RawPeer peer;
        begin(peer, "a", 4);
        peer.send(bad, "good");
        expect_thrown_out(peer);
    }
    EXPECT_TRUE(fs::is_empty(root + "/served"));
    expect_all_well();
}

TEST_F(HostilePeer, MessagesOutOfTurnEndTheConnection) {
    serve();
    const Message open = encode(Open{.name = "a", .size_bytes = 4, .mode = 0600});
    const std::vector<Message> firsts = {encode(Start{}), encode(End{}), encode(Answer{}),
                                         encode(Verdict{}), Message(prelude_bytes)};
    for (const Message& message : firsts) {
        RawPeer peer;
        connect(peer);
        peer.send(message);
        expect_thrown_out(peer);
    }
    for (const Message& message : {open, encode(End{}), encode(Start{1})}) {
        RawPeer peer;
        connect(peer);
        peer.send(open);
        static_cast<void>(wait_for<Answer>(peer));
        peer.send(message);
        expect_thrown_out(peer);
    }
    EXPECT_TRUE(fs::is_empty(root + "/served"));
    expect_all_well();
}

TEST_F(HostilePeer, APeerThatDoesNotReadGetsLimitedAnswers) {
    serve();
    RawPeer peer;
    connect(peer);
    const Message open = encode(Open{.name = "..", .size_bytes = 4, .mode = 0600});
    for (int i = 0; i < 500; ++i)
        peer.send(open);
    peer.socket->close();
    expect_thrown_out(peer);
    expect_all_well();
}

// Valid conversations with some bytes changed, removed or sent twice.
TEST_F(HostilePeer, AServerOutlivesAnything) {
    serve();
    std::mt19937 random{1};
    for (int run = 0; run < 150; ++run) {
        const std::string text(1 + random() % 3000, 'x');
        std::vector<std::vector<std::byte>> parts = {
            encode(Open{.name = "a", .size_bytes = text.size(), .mode = 0600, .overwrite = true}),
            encode(Start{}), std::vector<std::byte>(chunk_header_bytes), bytes(text),
            encode(End{.digest = digest(text)})};
        encode(chunk(0, text), std::span{parts[2]}.first<chunk_header_bytes>());
        for (auto changes = random() % 4; changes > 0; --changes) {
            auto& part = parts[random() % parts.size()];
            if (random() % 4 == 0) part.resize(random() % (part.size() + 3));
            if (random() % 4 == 0) std::swap(part, parts[random() % parts.size()]);
            if (!part.empty()) part[random() % part.size()] = static_cast<std::byte>(random());
        }
        RawPeer peer;
        connect(peer);
        ASSERT_TRUE(peer.connected);
        for (const auto& part : parts)
            peer.send(part);
        if (random() % 3 == 0) {
            peer.socket->abort();
        } else {
            peer.socket->close();
        }
        EXPECT_TRUE(bed.run_until([&] { return peer.closed; }));
        ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 0; })) << run;
    }
    expect_all_well();
}

// A server that answers with any bytes.
class HostileServer : public HostilePeer, private netio::stream::StreamListener::Handler {
  protected:
    HostileServer() {
        put("source/a", std::string(5'000'000, 'a'));
        put("source/b", "b");
        listener_ = std::make_unique<netio::stream::StreamListener>(
            bed.transport(),
            netio::stream::StreamListener::Options{.listen = {bed.address()},
                                                   .allow_remote_anonymous = true},
            static_cast<netio::stream::StreamListener::Handler&>(*this));
    }
    Sender::Options copied_from_it() const {
        return {.server = listener_->endpoints().front().address,
                .files = {{.path = root + "/source/a", .name = "a"},
                          {.path = root + "/source/b", .name = "b"}}};
    }
    Outcome copy_from_it() { return copy(copied_from_it()); }
    std::function<void(RawPeer&)> say;
    bool is_asked_first = false;

  private:
    // Sends its bytes as soon as it is connected, or on a request.
    struct Speaker final : netio::stream::StreamSocket::Handler {
        RawPeer peer;
        std::function<void(RawPeer&)> say;
        bool is_asked_first = false;

        void on_connected(netio::stream::StreamSocket& socket) override {
            peer.on_connected(socket);
            if (!is_asked_first) say(peer);
        }
        void on_send_completed(netio::stream::StreamSocket&, netio::Cookie,
                               netio::Completion::Outcome) override {}
        void on_received(netio::stream::StreamSocket& socket,
                         const netio::stream::Received& got) override {
            peer.on_received(socket, got);
            if (std::exchange(is_asked_first, false)) say(peer);
        }
        void on_end_of_stream(netio::stream::StreamSocket& socket) override { socket.close(); }
        void on_closed(netio::stream::StreamSocket&, const netio::Closed&) override {}
    };
    void on_incoming(netio::stream::IncomingStream& incoming) override {
        Speaker& speaker = *speakers_.emplace_back(std::make_unique<Speaker>());
        speaker.say = say;
        speaker.is_asked_first = is_asked_first;
        speaker.peer.socket = incoming.accept({}, speaker);
    }

    std::deque<std::unique_ptr<Speaker>> speakers_;
    std::unique_ptr<netio::stream::StreamListener> listener_;
};

TEST_F(HostileServer, AnInvalidMessageIsReported) {
    const std::vector<std::vector<std::byte>> nonsense = {
        bytes("HTTP/1.1 400 Bad Request\r\n\r\n"), encode(Verdict{.kept = true, .text = {}}),
        encode(Start{}),
        encode(Answer{.outcome = Answer::Outcome::accepted, .offset_bytes = 1U << 30U})};
    for (const auto& message : nonsense) {
        say = [&](RawPeer& peer) { peer.send(message); };
        const Outcome outcome = copy_from_it();
        EXPECT_NE(*outcome.problem, "");
        for (const CopiedFile& file : outcome.files)
            EXPECT_EQ(file.outcome, CopiedFile::Outcome::failed);
    }
}

TEST_F(HostileServer, AVerdictBeforeTheEndIsNotBelieved) {
    say = [](RawPeer& peer) {
        peer.send(encode(Answer{.outcome = Answer::Outcome::accepted,
                                .offset_bytes = 0,
                                .digest = Checksum{ChecksumKind::xxh3_128}.digest()}));
        peer.send(encode(Verdict{.kept = true, .text = {}}));
    };
    const Outcome outcome = copy_from_it();
    ASSERT_FALSE(outcome.files.empty());
    EXPECT_EQ(outcome.files[0].outcome, CopiedFile::Outcome::failed);
}

// An older sender would take the message for an invalid one.
TEST_F(HostileServer, ComparisonProgressIsSentOnlyToAServerThatSupportsIt) {
    fs::resize_file(put("source/a", ""), 3 * Sender::compare_step_bytes);
    RawPeer* old_server = nullptr;
    is_asked_first = true;
    say = [&](RawPeer& peer) {
        old_server = &peer;
        peer.send(encode(Answer{.outcome = Answer::Outcome::present,
                                .offset_bytes = 3 * Sender::compare_step_bytes,
                                .digest = {},
                                .text = {}}));
    };
    Sender::Options what = copied_from_it();
    what.files.pop_back();
    EXPECT_EQ(copy(std::move(what)).files.at(0).outcome, CopiedFile::Outcome::failed);
    ASSERT_NE(old_server, nullptr);
    EXPECT_EQ(wait_for<Open>(*old_server).name, "a");
    EXPECT_EQ(old_server->received, "");
}

TEST_F(HostileServer, ASenderOutlivesAnything) {
    std::mt19937 random{1};
    for (int run = 0; run < 100; ++run) {
        say = [&](RawPeer& peer) {
            for (auto i = 1 + random() % 3; i > 0; --i) {
                const auto outcome = static_cast<Answer::Outcome>(1 + random() % 3);
                Message message = random() % 2 == 0
                                      ? encode(Answer{.outcome = outcome,
                                                      .offset_bytes = random() % 3,
                                                      .digest = digest("a"),
                                                      .text = "\x1b[2J"})
                                      : encode(Verdict{.kept = random() % 2 == 0, .text = "no"});
                if (random() % 2 == 0)
                    message[random() % message.size()] = static_cast<std::byte>(random());
                peer.send(message);
            }
            peer.socket->shutdown_send();
        };
        copy_from_it();
    }
}

} // namespace
} // namespace apps::copy::test::copy_hostility_test
