// SPDX-License-Identifier: Apache-2.0

// The blocking API, with a thread at either end.

#include "stream/socket/blocking_stream.hpp"

#include "netio/session/client_key.hpp"
#include "tests/scenario/stream/impostor.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/seen.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace netio::stream::test::blocking_test {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> numbered(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(i * 31 + i / 256);
    return bytes;
}

// Far longer than any call takes.
const BlockingStream::Options patient{.call_timeout = 60s};

class Blocking : public testing::Test {
  protected:
    BlockingListener listener{"127.0.0.1:0", patient};
    std::string address = to_string(listener.address());
};

TEST_F(Blocking, ReadsWhatWasWrittenInPiecesOfAnySize) {
    const auto data = numbered(3'000'000);
    std::thread client{[&] {
        auto peer = BlockingStream::connect(address, patient);
        std::size_t at = 0;
        for (std::size_t size = 1; at < data.size(); size = size * 3 + 1) {
            const std::size_t bytes = std::min(size, data.size() - at);
            peer.write(std::span{data}.subspan(at, bytes));
            at += bytes;
        }
        peer.close();
    }};
    auto peer = listener.accept();
    std::vector<std::byte> got(data.size());
    peer.read_exactly(std::span{got}.first(10));
    const std::size_t some = peer.read(std::span{got}.subspan(10, 5));
    EXPECT_GE(some, 1U);
    peer.read_exactly(std::span{got}.subspan(10 + some));
    EXPECT_EQ(got, data);
    std::byte more{};
    EXPECT_EQ(peer.read({&more, 1}), 0U) << "the end";
    EXPECT_EQ(peer.read({&more, 1}), 0U) << "and it stays the end";
    client.join();
}

// Large reads go directly into the caller's memory, and each waits for its own bytes.
TEST_F(Blocking, ConsecutiveLargeReadsGetTheirOwnBytes) {
    const auto data = numbered(4'000'000);
    std::thread client{[&] {
        auto peer = BlockingStream::connect(address, patient);
        peer.write(data);
        peer.close();
    }};
    auto peer = listener.accept();
    std::vector<std::byte> got(data.size());
    for (std::size_t at = 0; at < got.size(); at += 1'000'000)
        peer.read_exactly(std::span{got}.subspan(at, 1'000'000));
    EXPECT_EQ(got, data);
    peer.close();
    client.join();
}

TEST_F(Blocking, AskAndAnswer) {
    std::thread client{[&] {
        auto peer = BlockingStream::connect(address, patient);
        for (std::uint32_t i = 0; i < 200; ++i) {
            peer.write(std::as_bytes(std::span{&i, 1}));
            std::uint32_t answer = 0;
            peer.read_exactly(std::as_writable_bytes(std::span{&answer, 1}));
            EXPECT_EQ(answer, i + 1);
        }
        peer.close();
    }};
    auto peer = listener.accept();
    std::uint32_t question = 0;
    while (peer.read(std::as_writable_bytes(std::span{&question, 1})) == sizeof question) {
        ++question;
        peer.write(std::as_bytes(std::span{&question, 1}));
    }
    peer.close();
    client.join();
}

TEST_F(Blocking, AnEarlyEndIsReportedWithTheNumberOfBytes) {
    std::thread client{[&] {
        auto peer = BlockingStream::connect(address, patient);
        peer.write(numbered(7));
        peer.close();
    }};
    auto peer = listener.accept();
    std::vector<std::byte> got(8);
    try {
        peer.read_exactly(got);
        ADD_FAILURE() << "there were only 7 bytes";
    } catch (const StreamError& error) {
        EXPECT_EQ(error.kind(), StreamError::Kind::ended);
        EXPECT_THAT(error.what(), testing::HasSubstr("7 of 8"));
    }
    client.join();
}

TEST_F(Blocking, AReadThatTimesOutLosesNothing) {
    // One thread is both sides, so that nothing arrives before the time-out.
    std::thread connecting;
    std::optional<BlockingStream> client;
    connecting = std::thread{[&] { client = BlockingStream::connect(address, patient); }};
    auto peer = listener.accept();
    connecting.join();
    peer.set_call_timeout(1ms);
    std::vector<std::byte> got(100);
    try {
        peer.read(got);
        ADD_FAILURE() << "nothing was sent";
    } catch (const StreamError& error) {
        EXPECT_EQ(error.kind(), StreamError::Kind::timed_out);
    }
    peer.set_call_timeout(std::chrono::milliseconds::max());
    std::thread writing{[&] {
        client->write(numbered(100));
        client->close();
    }};
    peer.read_exactly(got);
    EXPECT_EQ(got, numbered(100));
    peer.close();
    writing.join();
}

TEST_F(Blocking, ADeadPeerIsReportedAsSuch) {
    std::thread client{[&] { BlockingStream::connect(address, patient); }}; // then it is gone
    auto peer = listener.accept();
    client.join();
    std::vector<std::byte> got(100);
    try {
        peer.read(got);
        ADD_FAILURE() << "nothing was sent";
    } catch (const StreamError& error) {
        EXPECT_EQ(error.kind(), StreamError::Kind::closed);
    }
    EXPECT_THROW(peer.write(numbered(10)), StreamError);
}

TEST(BlockingListening, WhereOtherMachinesReachItHasToBeMeant) {
    EXPECT_THROW(BlockingListener{"0.0.0.0:0"}, std::invalid_argument);
    EXPECT_NO_THROW((BlockingListener{"0.0.0.0:0", {.allow_remote_anonymous = true}}));
}

// And not only when the first peer connects.
TEST(BlockingListening, AnOptionOfItsStreamsIsRefusedByTheConstructor) {
    BlockingStream::Options options = patient;
    options.stream.copy_step_bytes = 0;
    EXPECT_THROW((BlockingListener{"127.0.0.1:0", options}), std::invalid_argument);
}

TEST(BlockingListening, RefusesANegativeTimeLimit) {
    for (const auto limit :
         {&BlockingStream::Options::call_timeout, &BlockingStream::Options::progress_timeout,
          &BlockingStream::Options::farewell_timeout}) {
        BlockingStream::Options options = patient;
        options.*limit = -1ms;
        EXPECT_THROW((BlockingListener{"127.0.0.1:0", options}), std::invalid_argument);
        EXPECT_THROW(BlockingStream::connect("127.0.0.1:1", options), std::invalid_argument);
    }
}

TEST(BlockingListening, AcceptAfterStopThrows) {
    BlockingListener listener{"127.0.0.1:0"};
    listener.stop();
    for (int i = 0; i < 2; ++i) {
        try {
            listener.accept();
            ADD_FAILURE() << "it was stopped";
        } catch (const StreamError& error) {
            EXPECT_EQ(error.kind(), StreamError::Kind::closed);
            EXPECT_THAT(error.what(), testing::HasSubstr("stopped"));
        }
        listener.stop();
    }
}

TEST(BlockingListening, StopInAnotherThreadEndsAWaitingAccept) {
    BlockingListener listener{"127.0.0.1:0"};
    std::atomic<bool> entered = false;
    std::thread waiting{[&] {
        EXPECT_TRUE(listener.loop().post([&] { entered = true; }));
        EXPECT_THROW(listener.accept(), StreamError);
    }};
    while (!entered)
        std::this_thread::yield();
    listener.stop();
    EXPECT_THROW(BlockingStream::connect(to_string(listener.address()), patient), StreamError)
        << "stop() has returned, so there is no listener";
    waiting.join();
}

TEST(BlockingListening, StopInAnotherThreadLeavesAReadOfItsStreamAlone) {
    BlockingListener listener{"127.0.0.1:0", patient};
    const std::string address = to_string(listener.address());
    std::promise<BlockingStream> connected;
    std::thread connecting{[&] { connected.set_value(BlockingStream::connect(address, patient)); }};
    BlockingStream accepted = listener.accept();
    connecting.join();
    BlockingStream client = connected.get_future().get();
    std::atomic<bool> entered = false;
    std::thread reading{[&] {
        EXPECT_TRUE(listener.loop().post([&] { entered = true; }));
        std::vector<std::byte> got(100);
        accepted.read_exactly(got);
        EXPECT_EQ(got, numbered(100));
    }};
    while (!entered)
        std::this_thread::yield();
    listener.stop();
    EXPECT_THROW(BlockingStream::connect(address, patient), StreamError);
    client.write(numbered(100));
    reading.join();
}

// Between two calls the key file is not read.
TEST(BlockingListening, ARevokedKeyEndsItsStreamInTheNextCall) {
    netio::test::KeyFiles files;
    files.permit(7, "services=stream");
    BlockingStream::Options options = patient;
    options.keys =
        ServerKeys::Options{.file = files.site(), .look_interval = std::chrono::milliseconds{1}};
    BlockingListener listener{"127.0.0.1:0", options};
    BlockingStream::Options with_key = patient;
    with_key.stream.key = std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
    std::thread client{[&, address = to_string(listener.address())] {
        auto peer = BlockingStream::connect(address, with_key);
        const std::byte one{1};
        peer.write({&one, 1});
        std::byte none{};
        EXPECT_THROW(static_cast<void>(peer.read({&none, 1})), StreamError);
    }};
    BlockingStream peer = listener.accept();
    std::byte some{};
    EXPECT_EQ(peer.read({&some, 1}), 1U);
    files.revoke(7);
    try {
        static_cast<void>(peer.read({&some, 1}));
        ADD_FAILURE() << "the key was revoked";
    } catch (const StreamError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("was removed or changed"));
    }
    client.join();
}

// Callbacks come only within the calls, so there is no data race.
TEST(BlockingListening, ReportsRejectedPeersToItsObserver) {
    netio::test::KeyFiles files;
    files.permit(7, "services=stream");
    netio::test::Seen seen;
    BlockingStream::Options options = patient;
    options.keys = ServerKeys::Options{.file = files.site()};
    options.observer = &seen;
    BlockingListener listener{"127.0.0.1:0", options};
    const std::string address = to_string(listener.address());
    netio::test::Seen seen_by_stranger;
    std::thread client{[&] {
        BlockingStream::Options with_key = patient;
        with_key.stream.key =
            std::make_shared<ClientKey>(ClientKey::Options{.file = files.forged(7)});
        with_key.observer = &seen_by_stranger;
        EXPECT_THROW(BlockingStream::connect(address, with_key), StreamError);
        with_key.stream.key =
            std::make_shared<ClientKey>(ClientKey::Options{.file = files.client(7)});
        BlockingStream::connect(address, with_key).close();
    }};
    BlockingStream peer = listener.accept();
    std::byte none{};
    EXPECT_EQ(peer.read({&none, 1}), 0U);
    client.join();
    ASSERT_FALSE(seen.not_admitted.empty());
    EXPECT_THAT(seen.not_admitted.front(), testing::StartsWith("7: "));
    EXPECT_THAT(seen.connected, testing::SizeIs(1));
    EXPECT_THAT(seen_by_stranger.routes_failed, testing::SizeIs(1));
    EXPECT_EQ(listener.endpoints().front().provider, "tcp");
}

// The maximum number of peers waiting for accept have finished the handshake of their session and
// send nothing more.
TEST(BlockingStrangers, WithoutARingAnnouncementBlockNoSlotForLong) {
    constexpr std::size_t places = 64;
    BlockingStream::Options hasty = patient;
    hasty.stream.session.handshake_timeout = 300ms;
    hasty.stream.receiver = improved_receiver(10'000);
    BlockingListener listener{"127.0.0.1:0", hasty};
    std::thread serving{[&] {
        BlockingStream peer = listener.accept();
        std::byte none{};
        EXPECT_EQ(peer.read({&none, 1}), 0U);
    }};
    netio::test::TestBed bed{netio::test::Bed::fabric_tcp};
    std::vector<std::unique_ptr<Impostor>> strangers;
    for (std::size_t i = 0; i < places; ++i) {
        strangers.push_back(std::make_unique<Impostor>(bed.transport(), listener.address()));
    }
    EXPECT_TRUE(bed.run_until([&] {
        return std::ranges::all_of(strangers,
                                   [](const auto& each) { return each->closed.has_value(); });
    }));
    EXPECT_TRUE(std::ranges::all_of(strangers, [](const auto& each) { return each->has_ring(); }));
    BlockingStream::connect(to_string(listener.address()), patient).close();
    serving.join();
}

TEST(BlockingConnect, IsRefusedWithTheAddress) {
    std::string address;
    {
        const BlockingListener listener{"127.0.0.1:0"};
        address = to_string(listener.address());
    }
    try {
        BlockingStream::connect(address, patient);
        ADD_FAILURE() << "there is no listener";
    } catch (const StreamError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr(address));
    }
    EXPECT_THROW(BlockingStream::connect("nonsense"), std::invalid_argument);
}

} // namespace
} // namespace netio::stream::test::blocking_test
