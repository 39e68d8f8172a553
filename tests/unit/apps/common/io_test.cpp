// SPDX-License-Identifier: Apache-2.0
#include "apps/common/io.hpp"

#include <gmock/gmock.h>

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <stdexcept>
#include <string>

namespace apps::io_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void wait_for_event(BackgroundWriter& writer) {
    pollfd event{.fd = writer.event_descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&event, 1, 60'000), 1);
    writer.clear_event();
}

TEST(BackgroundWriter, AcceptsBytesWhileAWriteBlocksAndReportsWhenItIsFull) {
    std::promise<void> go_on;
    std::string written;
    const auto blocked = [&, ready = go_on.get_future().share()](std::span<const std::byte> bytes) {
        ready.wait();
        written.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return bytes.size();
    };
    BackgroundWriter writer{blocked, 8};
    writer.put("1234567");
    EXPECT_FALSE(writer.is_full());
    writer.put("8");
    EXPECT_TRUE(writer.is_full());
    writer.put("9"); // also the lines that were being written when the queue became full
    EXPECT_EQ(writer.queued_bytes(), 9U);
    go_on.set_value();
    while (writer.is_full())
        wait_for_event(writer);
    EXPECT_TRUE(writer.wait());
    EXPECT_EQ(written, "123456789");
    EXPECT_EQ(writer.written_bytes(), 9U);
}

TEST(BackgroundWriter, StopsAtTheFirstFailureAndReportsIt) {
    std::atomic<int> calls = 0;
    BackgroundWriter writer{[&](std::span<const std::byte>) -> std::size_t {
        ++calls;
        throw std::runtime_error{"no space"};
    }};
    writer.put("a");
    wait_for_event(writer);
    EXPECT_THAT([&] { writer.wait(); }, ThrowsMessage<std::runtime_error>("no space"));
    writer.put("b");
    EXPECT_EQ(writer.queued_bytes(), 0U);
    EXPECT_EQ(calls, 1);
}

TEST(BackgroundWriter, ClosesADescriptorAfterTheLastByte) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const DescriptorOutput output{ends[1], "pipe"};
    BackgroundWriter writer{output.write()};
    writer.put("last");
    writer.finish([output] { output.close(); });
    std::string read;
    std::array<char, 16> piece{};
    for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;)
        read.append(piece.data(), static_cast<std::size_t>(got));
    EXPECT_EQ(read, "last");
    EXPECT_TRUE(writer.wait());
    EXPECT_TRUE(writer.is_done());
    for (const int each : ends)
        ::close(each);
}

TEST(BackgroundWriter, NamesPlaceCauseAndRemedy) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ::close(ends[0]);
    BackgroundWriter writer{DescriptorOutput{ends[1], "cannot write to standard output"}.write()};
    writer.put("lost");
    EXPECT_THAT([&] { writer.wait(); },
                ThrowsMessage<std::runtime_error>(
                    HasSubstr("cannot write to standard output: Broken pipe; the program that "
                              "reads it has ended")));
    ::close(ends[1]);
}

} // namespace
} // namespace apps::io_test
