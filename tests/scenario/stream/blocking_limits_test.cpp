// SPDX-License-Identifier: Apache-2.0

// The effect of a failed blocking call on the data, and how long a call lasts: in virtual time,
// with a scripted peer on the same loop.

#include "stream/socket/blocking_connection.hpp"
#include "tests/scenario/stream/pair.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <vector>

namespace netio::stream::test::blocking_limits_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Kind = StreamError::Kind;

class BlockingTimes : public PairOnBed {
  protected:
    // The client is blocking; the server is scripted.
    void connect_blocking(BlockingStream::Options options = {},
                          const StreamSocket::Options& server_side = {}) {
        listen(server_side);
        options.stream = carried(options.stream);
        blocking = std::make_unique<BlockingConnection>(
            engine, to_string(listener->endpoints().front().address), options);
        ASSERT_TRUE(bed.run_until([&] { return server.connected; }));
    }
    // Prepares another connection.
    void begin_anew() {
        blocking.reset();
        server.socket.reset();
        server.forget();
        read = written = 0;
    }
    // Runs `action` after this time of a call.
    void later(Duration delay, std::function<void()> action) {
        timers.push_back(std::make_unique<Timer>(bed.loop(), std::move(action)));
        timers.back()->start(delay);
    }
    TimePoint now() { return bed.world()->now(); }

    // The kind and the text of the error, and the duration of the call.
    struct Failure {
        std::optional<Kind> kind;
        std::string text;
        Duration took{};
    };
    Failure failure_of(const std::function<void()>& call) {
        const TimePoint begin = now();
        try {
            call();
        } catch (const StreamError& error) {
            return {error.kind(), error.what(), now() - begin};
        }
        return {std::nullopt, "no error", now() - begin};
    }
    void expect_content(std::span<const std::byte> bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            ASSERT_EQ(bytes[i], content(2, read + i)) << "at " << read + i;
        read += bytes.size();
    }
    void read_exactly(std::size_t bytes) {
        std::vector<std::byte> memory(bytes);
        blocking->read_exactly(memory);
        expect_content(memory);
    }
    Failure failed_read(std::size_t bytes) {
        std::vector<std::byte> memory(bytes);
        return failure_of([&] { blocking->read_exactly(memory); });
    }
    // Reads everything until an error or the end.
    Failure read_the_rest() {
        std::vector<std::byte> memory(1'000'000);
        return failure_of([&] {
            while (const std::size_t bytes = blocking->read(memory))
                expect_content(std::span{memory}.first(bytes));
        });
    }
    // The next bytes that this side sends.
    std::vector<std::byte> outgoing(std::size_t bytes) {
        std::vector<std::byte> memory(bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            memory[i] = content(1, written + i);
        return memory;
    }
    void write(std::size_t bytes) {
        blocking->write(outgoing(bytes));
        written += bytes;
    }
    // A read that the peer writes directly into the caller's memory.
    bool ends_with(std::size_t bytes) const { return has_writes() && bytes > copy_limit_bytes; }

    std::shared_ptr<BlockingEngine> engine =
        std::make_shared<BlockingEngine>(bed.loop(), bed.transport());
    std::vector<std::unique_ptr<Timer>> timers;
    std::unique_ptr<BlockingConnection> blocking;
    std::uint64_t read = 0;
    std::uint64_t written = 0;
};

TEST_P(BlockingTimes, AReadThatTimesOutConsumesNothing) {
    connect_blocking();
    for (const std::size_t size : {8U, 65'536U, 65'537U, 200'000U}) {
        if (ends_with(size)) continue; // tested below
        SCOPED_TRACE(size);
        blocking->limits.call = 200ms;
        for (const std::size_t part : {std::size_t{0}, size / 3, size - 1 - size / 3}) {
            if (part > 0) {
                ASSERT_EQ(server.send(part), Status::ok);
            }
            const Failure failure = failed_read(size);
            EXPECT_EQ(failure.kind, Kind::timed_out);
            EXPECT_EQ(failure.took, 200ms);
            EXPECT_THAT(failure.text, HasSubstr("call_timeout"));
        }
        EXPECT_THAT(failed_read(size).text,
                    HasSubstr(std::to_string(size - 1) + " of " + std::to_string(size) + " bytes"));
        ASSERT_EQ(server.send(1), Status::ok);
        blocking->limits.call = 0ms;
        read_exactly(size);
    }
}

TEST_P(BlockingTimes, ALongReadThatTimesOutKeepsWhatArrived) {
    connect_blocking({.call_timeout = 200ms});
    ASSERT_EQ(server.send(70'000), Status::ok);
    bed.let_pass(10ms);
    read_exactly(10); // the rest is in the library's memory or in the ring
    later(50ms, [&] { ASSERT_EQ(server.send(30'000), Status::ok); });
    const Failure failure = failed_read(400'000);
    EXPECT_EQ(failure.kind, Kind::timed_out);
    EXPECT_EQ(failure.took, 200ms);
    EXPECT_THAT(failure.text, HasSubstr("99990 of 400000 bytes have arrived"));
    EXPECT_EQ(blocking->has_failed(), has_writes()) << failure.text;
    read_exactly(1);
    const Failure rest = read_the_rest();
    EXPECT_EQ(read, 100'000U);
    EXPECT_EQ(rest.kind, has_writes() ? Kind::closed : Kind::timed_out);
    EXPECT_EQ(rest.text.find("an earlier call timed out") != std::string::npos, has_writes());
}

TEST_P(BlockingTimes, ADripDoesNotExtendACall) {
    connect_blocking({.call_timeout = 300ms});
    for (const std::size_t size : {50U, 70'000U}) {
        SCOPED_TRACE(size);
        if (size > copy_limit_bytes) {
            ASSERT_EQ(server.send(size - 10), Status::ok);
        }
        Timer drip{bed.loop(), [&] {
                       ASSERT_EQ(server.send(1), Status::ok);
                       drip.start(70ms);
                   }};
        drip.start(70ms);
        const Failure failure = failed_read(size);
        EXPECT_EQ(failure.kind, Kind::timed_out);
        EXPECT_EQ(failure.took, 300ms);
        drip.cancel();
        blocking->limits.call = 300ms;
        if (ends_with(size)) break;
        read_exactly(server.sent - read);
    }
}

// Each piece of it needs its own wait.
TEST_P(BlockingTimes, AWriteOfManyPiecesHasOneDeadline) {
    StreamSocket::Options narrow;
    narrow.receiver = improved_receiver(10'000);
    connect_blocking({.call_timeout = 300ms}, narrow);
    Timer drip{bed.loop(), [&] {
                   ASSERT_EQ(server.receive(2'000, Fill::some), Status::ok);
                   drip.start(70ms);
               }};
    drip.start(70ms);
    const auto bytes = outgoing(1'000'000);
    const Failure failure = failure_of([&] { blocking->write(bytes); });
    EXPECT_EQ(failure.kind, Kind::timed_out);
    EXPECT_EQ(failure.took, 300ms);
    EXPECT_THAT(failure.text, HasSubstr("may have received a part"));
    EXPECT_EQ(failure_of([&] { blocking->write(bytes); }).kind, Kind::closed);
}

TEST_P(BlockingTimes, AShortWriteThatTimesOutSendsNothing) {
    StreamSocket::Options narrow;
    narrow.receiver = improved_receiver(10'000);
    connect_blocking({.call_timeout = 300ms}, narrow);
    while (blocking->has_capacity())
        write(20'000);
    for (const std::size_t size : {10U, 65'536U, 100'000U}) { // nothing borrowed of the last
        const Failure failure = failure_of([&] { blocking->write(outgoing(size)); });
        EXPECT_EQ(failure.kind, Kind::timed_out);
        EXPECT_EQ(failure.took, 300ms);
        EXPECT_THAT(failure.text, HasSubstr("nothing of this write was sent"));
    }
    server.at_received = [&](const Received&) {
        ASSERT_EQ(server.receive(50'000, Fill::some), Status::ok);
    };
    ASSERT_EQ(server.receive(50'000, Fill::some), Status::ok);
    for (const std::size_t size : {10U, 65'536U, 100'000U})
        write(size);
    ASSERT_TRUE(bed.run_until([&] { return server.received == written; }));
}

TEST_P(BlockingTimes, ALongWriteThatTimesOutLosesNothingThatHasArrived) {
    connect_blocking({.call_timeout = 300ms});
    ASSERT_EQ(server.send(150'000), Status::ok);
    bed.let_pass(10ms);
    read_exactly(10);
    const std::vector<std::byte> bytes(20'000'000);
    EXPECT_EQ(failure_of([&] { blocking->write(bytes); }).kind, Kind::timed_out);
    EXPECT_EQ(read_the_rest().kind, Kind::closed);
    EXPECT_EQ(read, 150'000U);
}

TEST_P(BlockingTimes, BytesBeforeAnEarlyEndCanStillBeRead) {
    for (const std::size_t there : {7U, 60'000U, 100'000U}) {
        for (const std::size_t asked : {there + 1, there + 100'000}) {
            SCOPED_TRACE(asked);
            begin_anew();
            connect_blocking();
            ASSERT_EQ(server.send(there), Status::ok);
            server.socket->shutdown_send();
            const Failure failure = failed_read(asked);
            EXPECT_EQ(failure.kind, Kind::ended);
            EXPECT_EQ(failure.text, "the stream ended after " + std::to_string(there) + " of " +
                                        std::to_string(asked) +
                                        " bytes; the next read returns what has arrived");
            EXPECT_FALSE(read_the_rest().kind) << "the end is no error";
            EXPECT_EQ(read, there);
            const Failure at_the_end = failed_read(8);
            EXPECT_EQ(at_the_end.kind, Kind::ended);
            EXPECT_EQ(at_the_end.text, "the stream ended before the first of 8 bytes");
        }
    }
}

TEST_P(BlockingTimes, BytesBeforeALossCanStillBeRead) {
    connect_blocking();
    ASSERT_EQ(server.send(100'000), Status::ok);
    bed.let_pass(10ms);
    read_exactly(10);
    later(20ms, [&] { server.socket->abort(); });
    EXPECT_EQ(failed_read(500'000).kind, Kind::closed);
    EXPECT_EQ(read_the_rest().kind, Kind::closed);
    EXPECT_EQ(read, 100'000U);
}

// Reads of all sizes with time limits of all lengths, in both directions at once.
TEST_P(BlockingTimes, ReadsThatTimeOutNeitherLoseNorShift) {
    std::size_t timed_out = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random{seed};
        const auto draw = [&](std::size_t least, std::size_t most) {
            return least + random() % (most - least + 1);
        };
        begin_anew();
        server.at_received = [&](const Received&) {
            ASSERT_EQ(server.receive(300'000, Fill::some), Status::ok);
        };
        connect_blocking();
        ASSERT_EQ(server.receive(300'000, Fill::some), Status::ok);
        Timer sending{bed.loop(), [&] {
                          if (server.sent > 3'000'000) return server.socket->shutdown_send();
                          if (server.sends - server.sends_completed < 3) { // of its memory
                              const std::size_t bytes = draw(1, random() % 3 == 0 ? 200'000 : 20);
                              ASSERT_EQ(server.send(bytes), Status::ok);
                          }
                          sending.start(std::chrono::microseconds{draw(0, 20'000)});
                      }};
        sending.start(1ms);
        std::vector<std::byte> memory(300'000);
        for (bool ended = false; !ended;) {
            const std::size_t size = draw(1, random() % 2 == 0 ? 300'000 : 100);
            blocking->limits.call = std::chrono::milliseconds{ends_with(size) ? 0 : draw(1, 40)};
            const auto part = std::span{memory}.first(size);
            try {
                if (random() % 2 == 0) {
                    blocking->read_exactly(part);
                    expect_content(part);
                } else {
                    const std::size_t bytes = blocking->read(part);
                    expect_content(part.first(bytes));
                    ended = bytes == 0;
                }
            } catch (const StreamError& error) {
                ASSERT_NE(error.kind(), Kind::closed) << error.what();
                timed_out += error.kind() == Kind::timed_out;
            }
            if (HasFatalFailure()) return;
            blocking->limits.call = 0ms;
            if (random() % 4 == 0) write(draw(1, 100'000));
        }
        EXPECT_EQ(read, server.sent);
        ASSERT_TRUE(bed.run_until([&] { return server.received == written; }));
    }
    EXPECT_GT(timed_out, 0U);
}

TEST_P(BlockingTimes, ACloseThatTimesOutContinuesWithTheNextCall) {
    BlockingStream::Options options{.call_timeout = 300ms};
    options.stream.session.close_timeout = 1s;
    connect_blocking(options);
    write(100);
    const TimePoint begin = now();
    for (int i = 0; i < 3; ++i) {
        const Failure failure = failure_of([&] { blocking->close(); });
        EXPECT_EQ(failure.kind, Kind::timed_out);
        EXPECT_EQ(failure.took, 300ms);
        EXPECT_THAT(failure.text, HasSubstr("still closing"));
    }
    EXPECT_EQ(failure_of([&] { blocking->close(); }).kind, Kind::closed);
    EXPECT_GE(now() - begin, 1s);
    EXPECT_LT(now() - begin, 1'010ms) << "close_timeout counts from the first close()";
}

TEST_P(BlockingTimes, ProgressTimeoutLimitsTheSilenceAndNotTheCall) {
    connect_blocking({.progress_timeout = 400ms});
    int left = 10;
    Timer drip{bed.loop(), [&] {
                   ASSERT_EQ(server.send(1), Status::ok);
                   if (--left > 0) drip.start(300ms);
               }};
    drip.start(300ms);
    const Failure failure = failed_read(100);
    EXPECT_EQ(failure.kind, Kind::timed_out);
    EXPECT_GE(failure.took, 3'400ms);
    EXPECT_LE(failure.took, 3'600ms);
    EXPECT_THAT(failure.text, HasSubstr("progress_timeout"));
    read_exactly(10);
}

TEST_P(BlockingTimes, TimesBeyondAYearAreUnlimited) {
    StreamSocket::Options silent;
    silent.session.heartbeat = silent.session.dead_after = 0ms;
    BlockingStream::Options options;
    options.stream = silent;
    connect_blocking(options, silent);
    for (const auto time : {std::chrono::milliseconds::max(), clamped_milliseconds(24h * 366)}) {
        blocking->limits.call = blocking->limits.progress = time;
        later(24h * 500, [&] { ASSERT_EQ(server.send(8), Status::ok); });
        read_exactly(8);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, BlockingTimes, simulated_stages(), stage_name);

} // namespace
} // namespace netio::stream::test::blocking_limits_test
