// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/connection.hpp"

#include <gtest/gtest.h>

namespace netio::fabric::connection_test {
namespace {

TEST(ReceivedByteAudit, AcceptsMessagesThatWereReported) {
    ReceivedByteAudit audit{4};
    audit.on_receive_posted(1000);
    std::uint64_t read = 288; // the connection data
    for (int i = 0; i < 100'000; ++i) {
        audit.on_message(1000);
        read += 16 + 1000;
        ASSERT_FALSE(audit.is_exceeded(read, true)) << i;
    }
}

TEST(ReceivedByteAudit, AcceptsFullReceivesThatAreNotReportedYet) {
    ReceivedByteAudit audit{4};
    audit.on_receive_posted(1'000'000);
    audit.on_receive_posted(10);
    EXPECT_FALSE(audit.is_exceeded(288 + 4 * (16 + 1'000'000), false));
}

TEST(ReceivedByteAudit, AcceptsOneMessageThatIsBeingRead) {
    ReceivedByteAudit audit{4};
    audit.on_receive_posted(1'000'000);
    EXPECT_FALSE(audit.is_exceeded(288 + 16 + 1'000'000, true));
    EXPECT_TRUE(audit.is_exceeded(288 + 2 * (16 + 1'000'000), true));
    audit.on_message(1'000'000);
    EXPECT_FALSE(audit.is_exceeded(288 + 2 * (16 + 1'000'000), true));
}

TEST(ReceivedByteAudit, RejectsUnreportedBytesBeforeTheyCostMuch) {
    ReceivedByteAudit audit{8};
    audit.on_receive_posted(4096);
    constexpr std::uint64_t packet_bytes = 16;
    std::uint64_t packets = 0;
    while (!audit.is_exceeded(packets * packet_bytes, false))
        ++packets;
    EXPECT_LT(packets * 344, 4U << 20U);
    // Earlier correct messages do not compensate for this.
    audit.on_message(500);
    EXPECT_TRUE(audit.is_exceeded(2 * packets * packet_bytes, false));
}

} // namespace
} // namespace netio::fabric::connection_test
