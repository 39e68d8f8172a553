// SPDX-License-Identifier: Apache-2.0

// How the calls of the blocking API end: in order, by time-out, or with the connection.

#include "stream/socket/blocking_stream.hpp"

#include <gmock/gmock.h>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace netio::stream::test::blocking_end_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Far longer than any call takes.
const BlockingStream::Options patient{.call_timeout = 60s};

// The kind of error and its text.
std::pair<std::optional<StreamError::Kind>, std::string>
error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const StreamError& error) {
        return {error.kind(), error.what()};
    }
    return {};
}

BlockingStream::Options with_small_ring() {
    BlockingStream::Options options = patient;
    options.stream.receiver = improved_receiver(100'000);
    return options;
}

std::atomic<int> signals = 0;

class BlockingEnd : public testing::Test {
  protected:
    void connect(const BlockingStream::Options& options = patient) {
        auto connecting = std::async(std::launch::async,
                                     [&] { return BlockingStream::connect(address, options); });
        server.emplace(listener.accept());
        client.emplace(connecting.get());
    }
    // Runs `call` while another thread drives the otherwise unused server.
    void with_running_server(const std::function<void()>& call) {
        const int stopped = ::eventfd(0, EFD_CLOEXEC);
        std::thread running{[&] {
            while (server->wait_for(stopped) != BlockingStream::Ready::descriptor) {
            }
        }};
        call();
        ::eventfd_write(stopped, 1);
        running.join();
        ::close(stopped);
    }

    BlockingListener listener{"127.0.0.1:0", patient};
    std::string address = to_string(listener.address());
    std::optional<BlockingStream> server; // destroyed before its listener
    std::optional<BlockingStream> client;
};

TEST_F(BlockingEnd, WritingAndShuttingDownBeforeReadingDoesNotDeadlock) {
    // Bytes that do not fit into the peer's ring cannot leave before the peer reads.
    BlockingListener narrow{"127.0.0.1:0", with_small_ring()};
    auto connecting = std::async(std::launch::async, [&] {
        return BlockingStream::connect(to_string(narrow.address()), with_small_ring());
    });
    BlockingStream accepted = narrow.accept();
    BlockingStream connected = connecting.get();
    const auto use = [](BlockingStream& stream) {
        const std::vector<std::byte> piece(64 * 1024, std::byte{7});
        for (int i = 0; i < 7; ++i)
            stream.write(piece);
        stream.shutdown_send();
        std::vector<std::byte> got(7 * piece.size());
        stream.read_exactly(got);
        std::byte more{};
        EXPECT_EQ(stream.read({&more, 1}), 0U);
        stream.close();
    };
    auto other = std::async(std::launch::async, [&] { use(accepted); });
    use(connected);
    other.get();
}

TEST_F(BlockingEnd, ShortWritesToASlowReaderKeepTheirBytes) {
    constexpr std::size_t piece = 64 * 1024;
    constexpr std::size_t count = 60;                 // many more than there are slots
    for (const std::size_t sends : {1024U, 2U, 1U}) { // limit of sends in the socket
        SCOPED_TRACE(sends);
        BlockingListener slow{"127.0.0.1:0", with_small_ring()};
        auto writing = std::async(std::launch::async, [&] {
            BlockingStream::Options few = patient;
            few.stream.send_limit_count = sends;
            auto peer = BlockingStream::connect(to_string(slow.address()), few);
            std::vector<std::byte> bytes(piece);
            for (std::size_t i = 0; i < count; ++i) {
                std::ranges::fill(bytes, static_cast<std::byte>(i));
                peer.write(bytes);
            }
            peer.write(std::vector<std::byte>(3 * piece)); // sent in place, after the others
            peer.close();
        });
        auto peer = slow.accept();
        std::vector<std::byte> got(piece);
        for (std::size_t i = 0; i < count; ++i) {
            peer.read_exactly(got);
            EXPECT_EQ(std::ranges::count(got, static_cast<std::byte>(i)), std::ptrdiff_t{piece})
                << i;
        }
        for (int i = 0; i < 3; ++i)
            peer.read_exactly(got);
        std::byte more{};
        EXPECT_EQ(peer.read({&more, 1}), 0U);
        writing.get();
    }
}

TEST_F(BlockingEnd, ABlockedCloseFailsWithinItsTime) {
    BlockingStream::Options hasty = patient;
    hasty.stream.session.close_timeout = 50ms;
    connect(hasty);
    // From now on the server's loop does not run.
    while (client->has_capacity())
        client->write(std::vector<std::byte>(64 * 1024));
    const auto [kind, what] = error_of([&] { client->close(); });
    EXPECT_EQ(kind, StreamError::Kind::closed);
    EXPECT_THAT(what, HasSubstr("received nothing more for 50 ms"));
}

TEST_F(BlockingEnd, AReadOfTheEndDoesNotWaitForAPeerStoppedWhileClosing) {
    for (const bool by_farewell : {true, false}) {
        connect({.call_timeout = 60s, .farewell_timeout = by_farewell ? 20ms : 60s});
        const std::vector<std::byte> bytes(1'000);
        server->write(bytes);
        server->set_call_timeout(200ms);
        // It starts a close and gets no answer; from then on its loop does not run.
        EXPECT_EQ(error_of([&] { server->close(); }).first, StreamError::Kind::timed_out);
        const auto begin = std::chrono::steady_clock::now();
        std::vector<std::byte> got(bytes.size());
        client->read_exactly(got);
        if (!by_farewell) client->set_call_timeout(500ms);
        EXPECT_EQ(client->read(got), 0U);
        EXPECT_EQ(client->read(got), 0U);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s) << "a limit not set by the user";
    }
}

TEST_F(BlockingEnd, ALongWriteThatTimesOutEndsTheConnectionPermanently) {
    connect();
    client->set_call_timeout(1ms);
    const std::vector<std::byte> much(4 << 20);
    const auto [kind, what] = error_of([&] { client->write(much); });
    EXPECT_EQ(kind, StreamError::Kind::timed_out);
    EXPECT_THAT(what, HasSubstr("call_timeout"));
    // None of the memory may be in use any more, so the connection must be over.
    const auto [later, why] = error_of([&] { client->write(much); });
    EXPECT_EQ(later, StreamError::Kind::closed);
    EXPECT_THAT(why, HasSubstr("timed out"));
}

TEST_F(BlockingEnd, ACallThatMakesProgressDoesNotRunIntoTheProgressTimeout) {
    connect();
    client->set_progress_timeout(50ms);
    with_running_server([&] {
        const auto [kind, what] = error_of([&] { // without a receiver
            std::vector<std::byte> more(100);
            client->read(more);
        });
        EXPECT_EQ(kind, StreamError::Kind::timed_out);
        EXPECT_THAT(what, HasSubstr("no byte has moved for 50 ms (progress_timeout)"));
    });
    client->set_progress_timeout(30s);
    client->set_call_timeout(60s);
    std::vector<std::byte> got(8 << 20);
    std::thread writing{[&] {
        server->write(got);
        server->close();
    }};
    std::vector<std::byte> in(got.size());
    client->read_exactly(in);
    std::byte more{};
    EXPECT_EQ(client->read({&more, 1}), 0U);
    writing.join();
}

TEST_F(BlockingEnd, ALongReadOfAPeerThatDiesIsAnErrorAndNoData) {
    connect();
    client->write(std::vector<std::byte>(100));
    std::vector<std::byte> got(1 << 20);
    std::thread reading{[&] {
        const auto [kind, what] = error_of([&] { server->read_exactly(got); });
        EXPECT_EQ(kind, StreamError::Kind::closed) << what;
    }};
    client.reset();
    reading.join();
}

TEST_F(BlockingEnd, BytesArrivedFromADeadPeerAreStillRead) {
    connect();
    client->write(std::vector<std::byte>(100'000, std::byte{5}));
    std::vector<std::byte> got(100'000);
    server->read_exactly(std::span{got}.first(10)); // so all of it is in transit
    client.reset();
    try {
        server->read_exactly(std::span{got}.subspan(10));
        EXPECT_EQ(std::ranges::count(got, std::byte{5}), 100'000);
    } catch (const StreamError& error) { // the fabric had not delivered all of it
        EXPECT_EQ(error.kind(), StreamError::Kind::closed);
    }
}

TEST_F(BlockingEnd, AWriterToADeadPeerGetsTheReasonDespiteUnreadBytes) {
    connect();
    client->write(std::vector<std::byte>(100'000));
    std::vector<std::byte> got(10);
    server->read_exactly(got); // so all of it is in transit
    client.reset();
    const auto [kind, what] = error_of([&] {
        for (;;)
            server->write(got);
    });
    EXPECT_EQ(kind, StreamError::Kind::closed);
    EXPECT_NE(what, "the connection is closed");
}

TEST_F(BlockingEnd, ReadingToTheEndCompletesThePeersClose) {
    connect();
    std::thread closing{[&] {
        client->write(std::vector<std::byte>(10));
        client->close();
    }};
    std::vector<std::byte> got(10);
    server->read_exactly(got);
    EXPECT_EQ(server->read(got), 0U);
    closing.join(); // without another call of the server
}

TEST_F(BlockingEnd, CloseToAPeerThatLeavesSomethingUnreadIsAnError) {
    BlockingStream::Options hasty = patient;
    hasty.stream.session.close_timeout = 50ms;
    connect(hasty);
    client->write(std::vector<std::byte>(100));
    const auto [kind, what] = error_of([&] { client->close(); });
    EXPECT_EQ(kind, StreamError::Kind::closed);
    EXPECT_THAT(what, HasSubstr("unconfirmed"));
}

TEST_F(BlockingEnd, CloseReportsADeadPeerAlsoIfAnEarlierCallNoticedItSilently) {
    connect();
    server.reset();
    // A short write that notices it in its own turn returns without an error.
    error_of([&] {
        while (client->peer_address() != "no peer")
            client->write(std::vector<std::byte>(1));
    });
    const auto [kind, what] = error_of([&] { client->close(); });
    EXPECT_EQ(kind, StreamError::Kind::closed);
    EXPECT_NE(what, "the connection is closed");
    EXPECT_EQ(error_of([&] { client->close(); }).second, what) << "and reports it again";
}

TEST_F(BlockingEnd, CloseReportsBytesUnreadByThePeerAlsoAfterAReadOfTheEnd) {
    connect();
    client->write(std::vector<std::byte>(100'000)); // all of it has left
    std::thread closing{[&] {
        const auto [kind, what] = error_of([&] { server->close(); });
        EXPECT_FALSE(kind) << what << "; this side owed nothing";
    }};
    std::vector<std::byte> got(10);
    EXPECT_EQ(client->read(got), 0U);
    const auto [kind, what] = error_of([&] { client->close(); });
    EXPECT_EQ(kind, StreamError::Kind::closed);
    EXPECT_THAT(what, HasSubstr("unread"));
    closing.join();
}

TEST_F(BlockingEnd, WaitForReportsWhatIsReady) {
    using Ready = BlockingStream::Ready;
    connect();
    const int readable = ::eventfd(1, EFD_CLOEXEC);
    EXPECT_TRUE(client->has_capacity());
    EXPECT_EQ(client->wait_for(BlockingStream::no_descriptor), Ready::writable);
    EXPECT_EQ(client->wait_for(readable), Ready::descriptor);
    std::thread writing{[&] {
        server->write(std::vector<std::byte>(10));
        server->shutdown_send();
        std::byte none{};
        EXPECT_EQ(server->read({&none, 1}), 0U);
    }};
    const int silent = ::eventfd(0, EFD_CLOEXEC);
    EXPECT_EQ(client->wait_for(silent), Ready::peer);
    std::vector<std::byte> got(100);
    EXPECT_EQ(client->read(got), 10U);
    EXPECT_EQ(client->wait_for(silent), Ready::peer) << "the end";
    EXPECT_EQ(client->read(got), 0U);
    EXPECT_EQ(client->wait_for(readable), Ready::descriptor) << "the end was read";
    EXPECT_EQ(client->read(got), 0U) << "and it stays the end";
    client->close();
    writing.join();
    ::close(silent);
    ::close(readable);
}

TEST_F(BlockingEnd, WaitForStaysReadyUntilTheBytesAreRead) {
    using Ready = BlockingStream::Ready;
    connect(with_small_ring());
    const std::vector<std::byte> first(3, std::byte{1});
    const std::vector<std::byte> second(80'000, std::byte{2}); // so long that its write waits
    std::vector<std::byte> large(1'000'000); // longer than the ring: it arrives while it is read
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(client->wait_for(BlockingStream::no_descriptor), Ready::writable);
    std::thread answering{[&] {
        server->write(first);
        std::byte go{};
        server->read_exactly({&go, 1});
        server->write(second);
        server->read_exactly(large);
    }};
    const int silent = ::eventfd(0, EFD_CLOEXEC);
    EXPECT_EQ(client->wait_for(silent), Ready::peer);
    ::close(silent);
    client->write(std::vector<std::byte>(1));
    client->write(std::vector<std::byte>(large.size()));
    answering.join();
    std::vector<std::byte> got(3);
    client->read_exactly(got);
    ASSERT_EQ(got, first);
    got.resize(second.size());
    client->read_exactly(got);
    EXPECT_EQ(got, second);
}

TEST_F(BlockingEnd, WaitForAFileReportsItReadableAndMovesBytes) {
    using Ready = BlockingStream::Ready;
    connect();
    const int file = ::memfd_create("file", MFD_CLOEXEC); // like a disk file: not for epoll
    EXPECT_EQ(client->wait_for(file), Ready::descriptor);
    server->write(std::vector<std::byte>(10));
    with_running_server([&] {
        const auto deadline = std::chrono::steady_clock::now() + 30s;
        while (client->wait_for(file) != Ready::peer) {
            ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        }
    });
    ::close(file);
    EXPECT_THROW(client->wait_for(file), FabricError) << "it is not open any more";
}

TEST_F(BlockingEnd, InvalidArgumentsAreRefusedAndTheStreamContinues) {
    connect();
    for (const int descriptor : {-2, -1'000'000, 1'000'000}) {
        EXPECT_THROW(client->wait_for(descriptor), FabricError) << descriptor;
    }
    for (const std::size_t size : {1U, 70'000U}) {
        EXPECT_THROW(client->read({static_cast<std::byte*>(nullptr), size}), std::invalid_argument);
        EXPECT_THROW(client->read_exactly({static_cast<std::byte*>(nullptr), size}),
                     std::invalid_argument);
        EXPECT_THROW(client->write({static_cast<const std::byte*>(nullptr), size}),
                     std::invalid_argument);
    }
    EXPECT_THROW(client->set_call_timeout(-1ms), std::invalid_argument);
    EXPECT_THROW(client->set_progress_timeout(std::chrono::hours::min()), std::invalid_argument);
    client->set_call_timeout(std::chrono::nanoseconds{1}); // rounded up: 0 means no limit
    std::vector<std::byte> got(10);
    EXPECT_EQ(error_of([&] { client->read(got); }).first, StreamError::Kind::timed_out);
    client->set_call_timeout(std::chrono::hours::max());
    client->set_progress_timeout(std::chrono::nanoseconds::max());
    EXPECT_EQ(client->read({}), 0U);
    client->write({});
    std::thread answering{[&] { server->write(got); }};
    client->read_exactly(got);
    answering.join();
    const BlockingStream moved = std::move(*client);
    EXPECT_THROW(client->read(got), std::logic_error); // NOLINT: that is what it is about
}

TEST_F(BlockingEnd, ASignalDoesNotEndACall) {
    struct sigaction count {};
    count.sa_handler = [](int) { ++signals; };
    struct sigaction before {};
    ASSERT_EQ(::sigaction(SIGUSR1, &count, &before), 0);
    connect();
    std::atomic<bool> done = false;
    std::thread reading{[&] {
        std::vector<std::byte> got(10);
        EXPECT_FALSE(error_of([&] { client->read_exactly(got); }).first);
        done = true;
        while (signals < 1000)
            std::this_thread::yield();
    }};
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(::pthread_kill(reading.native_handle(), SIGUSR1), 0);
        while (signals <= i)
            std::this_thread::yield();
        EXPECT_FALSE(done);
    }
    server->write(std::vector<std::byte>(10));
    reading.join();
    ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(BlockingEnd, WaitForNoticesThatThePeerIsGoneAlthoughItsEndWasRead) {
    connect();
    std::thread ending{[&] {
        server->shutdown_send();
        std::byte one{};
        EXPECT_EQ(server->read({&one, 1}), 1U);
        server.reset();
    }};
    std::byte more{};
    EXPECT_EQ(client->read({&more, 1}), 0U);
    const int silent = ::eventfd(0, EFD_CLOEXEC);
    client->write({&more, 1}); // the server may continue, and die
    const auto [kind, what] = error_of([&] { client->wait_for(silent); });
    EXPECT_EQ(kind, StreamError::Kind::closed) << what;
    ending.join();
    ::close(silent);
}

TEST_F(BlockingEnd, AStoppedListenerRefusesAndItsStreamsContinue) {
    connect();
    listener.stop();
    const auto [kind, what] = error_of([&] { BlockingStream::connect(address, patient); });
    EXPECT_EQ(kind, StreamError::Kind::closed) << what;
    EXPECT_THAT(what, testing::HasSubstr("refused")) << "and not left without an answer";
    std::thread closing{[&] {
        client->write(std::vector<std::byte>(10));
        client->close();
    }};
    std::vector<std::byte> got(10);
    server->read_exactly(got);
    EXPECT_EQ(server->read(got), 0U);
    closing.join();
}

TEST_F(BlockingEnd, AMovedStreamContinuesAndTheReplacedOneIsAborted) {
    connect();
    BlockingStream moved = std::move(*client);
    std::thread closing{[&] {
        moved.write(std::vector<std::byte>(10));
        moved.close();
    }};
    std::vector<std::byte> got(10);
    server->read_exactly(got);
    EXPECT_EQ(server->read(got), 0U);
    closing.join();
    connect();
    *client = std::move(moved);
    EXPECT_EQ(error_of([&] { server->read(got); }).first, StreamError::Kind::closed);
}

} // namespace
} // namespace netio::stream::test::blocking_end_test
