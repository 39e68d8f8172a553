// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/publisher_connection.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::publisher_connection_test {
namespace {

// Whether it counts as replaced when its lease ends now.
bool would_be_replaced(AnnouncedProcess process) {
    process.expire();
    return process.is_replaced();
}

TEST(AnnouncedProcess, ThatTheBusShowsOrThatAnswersItselfIsNotReplaced) {
    AnnouncedProcess process;
    process.announce(1);
    EXPECT_FALSE(would_be_replaced(process));
    process.change();
    EXPECT_FALSE(process.is_replaced()) << "the bus shows it";
    EXPECT_FALSE(process.is_expired());
}

TEST(AnnouncedProcess, IsReplacedIfAnotherAnswersAndItsLeaseHasEnded) {
    AnnouncedProcess process;
    process.announce(1);
    process.announce(1); // a changed announcement
    process.change();
    EXPECT_TRUE(would_be_replaced(process));
    process.announce(1);
    EXPECT_TRUE(would_be_replaced(process)) << "a further announcement does not change this";
}

TEST(AnnouncedProcess, AfterARestartIsNotReplacedInEitherOrder) {
    AnnouncedProcess announced_first;
    announced_first.announce(1);
    announced_first.announce(2);
    announced_first.change();
    EXPECT_FALSE(would_be_replaced(announced_first));
    AnnouncedProcess changed_first;
    changed_first.announce(1);
    changed_first.change();
    changed_first.announce(2);
    EXPECT_FALSE(would_be_replaced(changed_first));
    for (AnnouncedProcess* each : {&announced_first, &changed_first}) {
        each->change();
        EXPECT_TRUE(would_be_replaced(*each)) << "another change";
    }
}

TEST(AnnouncedProcess, AfterAMoveIsFoundAtItsNewAddress) {
    AnnouncedProcess process;
    process.announce(1);
    process.change();
    process.expire();
    process.move();
    process.announce(1);
    EXPECT_FALSE(would_be_replaced(process));
    process.change();
    EXPECT_FALSE(would_be_replaced(process)) << "from the other process back to itself";
    process.change();
    EXPECT_TRUE(would_be_replaced(process));
}

TEST(AnnouncedProcess, ThatIsShownOrLookedForAgainIsNotExpired) {
    AnnouncedProcess process;
    process.announce(1);
    process.expire();
    EXPECT_TRUE(process.is_expired());
    process.announce(1);
    EXPECT_FALSE(process.is_expired()) << "its lease continues";
    process.expire();
    process.move();
    EXPECT_FALSE(process.is_expired());
}

} // namespace
} // namespace netio::pubsub::publisher_connection_test
