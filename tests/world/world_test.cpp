// SPDX-License-Identifier: Apache-2.0

// A few hundred fixed seeds, and each schedule that has ever broken a rule, in its shrunk form.

#include "tests/world/draw.hpp"
#include "tests/world/expect_good.hpp"
#include "tests/world/shrink.hpp"
#include "tests/world/world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string>

namespace netio::world::world_test {
namespace {

// The words of a text without comment marks.
std::string words_of(std::string_view text) {
    std::string words;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i, 2) == "//")
            ++i;
        else if (std::isspace(static_cast<unsigned char>(text[i])) == 0)
            words += text[i];
    }
    return words;
}

// --- the world itself -----------------------------------------------------------------------

TEST(WorldRules, QuoteSentencesThatTheDocumentsHave) {
    for (const Rule& one : rules()) {
        std::ifstream in{std::string{NETIO_SOURCE_DIR} + '/' + one.file};
        const std::string text{std::istreambuf_iterator<char>{in}, {}};
        EXPECT_NE(words_of(text).find(words_of(one.sentence)), std::string::npos)
            << one.name << ": " << one.file << " does not say: " << one.sentence;
    }
}

TEST(WorldSchedule, IsTheSameAfterItWasText) {
    for (std::uint64_t seed = 1; seed < 100; ++seed) {
        const std::string text = to_text(draw(seed));
        EXPECT_EQ(to_text(parse_schedule(text)), text);
    }
}

TEST(WorldRun, IsTheSameEveryTime) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const Schedule schedule = draw(seed);
        EXPECT_EQ(World{schedule}.run().trace_hash, World{schedule}.run().trace_hash)
            << "seed " << seed;
    }
}

TEST(WorldShrinking, LeavesOnlyWhatBreaksTheRule) {
    const Schedule schedule = parse_schedule("world device=1\n"
                                             "process 0 publisher pages=4\n"
                                             "process 1 subscriber of=0\n"
                                             "at 5 process 0 publish count=80 fid=2\n"
                                             "at 9 process 1 subscribe last=3\n");
    const auto breaks = [](const Schedule& candidate) {
        return std::ranges::any_of(candidate.steps, [](const Step& step) {
            return step.what == "publish" && step.with.get("count") >= 5;
        });
    };
    EXPECT_EQ(to_text(shrink(schedule, breaks, 100)),
              "world\nprocess 0 publisher\nat 5 process 0 publish count=5\n");
}

// --- seeds ----------------------------------------------------------------------------------

class WorldSeeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(WorldSeeds, BreakNoRule) {
    for (std::uint64_t seed = GetParam(); seed < GetParam() + 10; ++seed) {
        SCOPED_TRACE("replay with: world_run --seed " + std::to_string(seed));
        expect_no_violation(World{draw(seed)}.run());
    }
}
INSTANTIATE_TEST_SUITE_P(Tens, WorldSeeds, testing::Range<std::uint64_t>(0, 200, 10));

// --- what seeds have found ------------------------------------------------------------------

TEST(World, AHealthyPairOnTcpOutlivesAStopOfEither) {
    expect_good("world\n"
                "process 0 publisher\n"
                "process 1 subscriber\n"
                "at 0 process 1 subscribe\n"
                "at 9796 process 1 stop us=36799215\n");
}

TEST(World, ADisconnectionInAPartitionIsNotifiedWhenThePathIsFree) {
    expect_good("world\n"
                "process 0 publisher dead_ms=3000 heartbeat_ms=100\n"
                "process 1 subscriber\n"
                "at 0 process 1 subscribe\n"
                "at 1499421 process 0 block other=1 us=5138531\n"
                "at 1935890 process 0 publish\n");
}

TEST(World, AStreamIsNotifiedOfAPeerKilledBeyondABlockedPath) {
    expect_good("world\n"
                "process 0 stream\n"
                "process 1 stream of=0\n"
                "at 0 process 1 connect\n"
                "at 774 process 0 send bytes=1007 count=17\n"
                "at 13892 process 1 block us=2791\n"
                "at 14888 process 1 kill\n");
}

TEST(World, ABusyProcessIsNotifiedLateThatItsPeerWasKilled) {
    expect_good("world\n"
                "process 3 stream\n"
                "process 4 stream of=3\n"
                "at 0 process 4 connect\n"
                "at 82 process 4 busy us=15991854\n"
                "at 14153 process 3 kill\n");
}

TEST(World, EverySubscriberIsServedAfterAUserThatWasSlowForAll) {
    expect_good("world\n"
                "process 0 publisher\n"
                "process 1 subscriber\n"
                "at 4404 process 1 subscribe\n"
                "at 8851 process 1 busy us=28850481\n"
                "at 12340 process 1 busy us=34538273\n"
                "at 15199 process 1 busy us=32161765\n");
}

TEST(World, AnAnswerDoesNotCoverLaterRequests) {
    expect_good("world\n"
                "process 0 publisher\n"
                "process 2 subscriber\n"
                "at 4657 process 0 block delay_us=2798 other=2 us=131987\n"
                "at 7129 process 2 unsubscribe\n"
                "at 7942 process 2 subscribe\n"
                "at 9714 process 2 unsubscribe\n"
                "at 10021 process 0 publish count=14\n");
}

TEST(World, LossesBeforeAnUnsubscriptionDoNotCountForTheNextOne) {
    expect_good("world\n"
                "process 0 publisher mode=1 outstanding=12\n"
                "process 3 subscriber receives=5\n"
                "at 0 process 3 subscribe policy=1\n"
                "at 975 process 3 stop us=2842146\n"
                "at 4209 process 3 subscribe last=-1\n"
                "at 7034 process 3 unsubscribe\n"
                "at 13370 process 0 publish count=9\n"
                "at 19564 process 3 subscribe\n");
}

TEST(World, ADeviceGivesUpLongBeforeThePathIsFreeAgain) {
    expect_good("world device=1\n"
                "process 0 publisher\n"
                "process 1 subscriber\n"
                "at 1642136 process 0 block both=0 other=1 us=28645318\n");
}

TEST(World, ABlockingSubscriberIsDisconnectedAlsoAfterRecentProgress) {
    expect_good("world\n"
                "process 0 publisher page_size_bytes=1000 policy=2\n"
                "process 3 subscriber\n"
                "at 3617 process 3 subscribe\n"
                "at 10187 process 0 publish\n"
                "at 12831 process 3 vanish\n"
                "at 15835 process 0 publish bytes=1873 count=6\n");
}

TEST(World, TheRestOfAPartlySentMessageBlocksOthersOnlyBriefly) {
    expect_good("world\n"
                "process 0 publisher flush_us=0 page_size_bytes=256 pages=8 policy=1\n"
                "process 3 subscriber\n"
                "at 6648 process 3 subscribe\n"
                "at 13087 process 0 publish count=47\n"
                "at 16683 process 0 publish bytes=1009 count=5 gap_us=1000\n"
                "at 17687 process 3 vanish\n");
}

TEST(World, AProcessBusyForLongDetectsItsVanishedPeerInTime) {
    expect_good("world\n"
                "process 0 publisher\n"
                "process 1 subscriber\n"
                "at 799593 process 1 busy us=21951617\n"
                "at 1059134 process 1 leap us=30451642\n"
                "at 1659046 process 1 subscribe\n"
                "at 1659348 process 1 busy us=39802872\n"
                "at 1709345 process 0 vanish\n"
                "at 1712054 process 0 restart\n");
}

TEST(World, AServedSubscriberOfAPartialDeliveryDoesNotDelayTheOthers) {
    expect_good("world\n"
                "process 0 publisher mode=2 outstanding=2 patient=1\n"
                "process 1 subscriber\n"
                "process 2 subscriber\n"
                "at 0 process 2 subscribe\n"
                "at 185745 process 1 subscribe first=2 last=3\n"
                "at 1924028 process 2 subscribe first=2 last=-1\n");
}

TEST(World, ADisconnectedIdleSubscriberReconnectsOnSubscribe) {
    expect_good("world\n"
                "process 0 publisher\n"
                "process 1 subscriber\n"
                "at 0 process 1 subscribe\n"
                "at 159 process 1 unsubscribe\n"
                "at 9000 process 1 subscribe last=3\n"
                "at 19000 process 0 publish count=20\n");
}

TEST(World, AHostOfAStoppedProcessShowsLifeUntilItsPathIsBlocked) {
    expect_good("world\n"
                "process 0 publisher dead_ms=3000 heartbeat_ms=20\n"
                "process 1 subscriber\n"
                "at 542183 process 1 stop us=38280130\n"
                "at 1765206 process 1 block both=0 us=5105143\n");
}

TEST(World, ClosingOnALostMessageReportsAnIncompleteSubscriber) {
    expect_good("world\n"
                "process 0 publisher mode=2\n"
                "process 1 subscriber receive_buffer_bytes=256 slow_us=1522\n"
                "at 0 process 1 subscribe\n"
                "at 0 process 0 when deed=2 event=8 nth=6\n"
                "at 3372 process 0 publish bytes=4089 count=9\n"
                "at 11843 process 1 sever\n");
}

TEST(World, ABlockedPublisherIsNotifiedWhenItsSubscriberUnsubscribes) {
    expect_good("world\n"
                "process 0 publisher mode=2\n"
                "process 2 subscriber\n"
                "at 0 process 2 subscribe\n"
                "at 18628 process 2 pause us=32964209\n"
                "at 147335 process 0 publish count=9\n"
                "at 1389957 process 2 unsubscribe\n"
                "at 2976380 process 2 subscribe\n");
}

TEST(World, ASubscriberOnAVanishedHostBlocksAlsoWhenTheHostIsBack) {
    expect_good("world\n"
                "process 0 publisher mode=1 remainder=3\n"
                "process 2 subscriber\n"
                "at 0 process 2 subscribe\n"
                "at 3141 process 2 vanish\n"
                "at 3209 process 2 restart\n"
                "at 12172 process 2 subscribe policy=1\n"
                "at 16172 process 0 publish count=7\n");
}

TEST(World, ALossAfterAnUnsubscriptionIsNotOfEarlierMessages) {
    expect_good("world protection=2\n"
                "process 0 publisher mode=2 slot_bytes=16448\n"
                "process 1 subscriber reconnect=0\n"
                "process 3 subscriber\n"
                "at 0 process 1 subscribe last=2\n"
                "at 0 process 3 subscribe\n"
                "at 669 process 1 block us=3627639\n"
                "at 2790 process 1 unsubscribe\n"
                "at 7459 process 0 publish bytes=6925 count=7 gap_us=0\n"
                "at 12248 process 1 subscribe policy=1\n");
}

TEST(World, MessagesAbandonedForOneSubscriberLeaveMemoryForOtherFids) {
    expect_good("world device=1\n"
                "process 0 publisher abandons=1 mode=2 outstanding=11 receives=5\n"
                "process 1 subscriber\n"
                "process 4 subscriber receives=5\n"
                "at 0 process 1 subscribe last=4\n"
                "at 0 process 4 subscribe\n"
                "at 2980 process 4 busy us=15469846\n"
                "at 4964 process 0 publish count=18 gap_us=10\n"
                "at 5259 process 4 busy us=12619816\n"
                "at 6617 process 0 publish fid=4\n");
}

TEST(World, AMessageOfMoreThanAQuarterOfTheMemoryMayWaitForOthers) {
    expect_good("world\n"
                "process 3 publisher page_size_bytes=1000 pages=7\n"
                "process 4 subscriber of=3 receives=4\n"
                "at 0 process 4 subscribe policy=1\n"
                "at 169 process 4 subscribe first=1 last=2\n"
                "at 7181 process 4 vanish\n"
                "at 11001 process 3 publish bytes=483 count=7 fid=2 gap_us=10\n"
                "at 11551 process 3 publish bytes=3862\n");
}

TEST(World, AProcessWhoseClockLeapsInItsSleepMayTakeItForSilence) {
    expect_good("world device=2\n"
                "process 3 publisher\n"
                "process 4 subscriber of=3\n"
                "at 16587 process 4 leap us=17739588\n"
                "at 18551 process 3 stop us=31277362\n");
}

TEST(World, AProcessShowsLifeAfterAStopAlsoIfItSentDataBefore) {
    expect_good("world device=2\n"
                "process 0 receiver\nprocess 1 sender\nat 0 process 1 connect\n"
                "at 1612471 process 1 stop us=28604412\n");
}

TEST(World, ALargeMessageUsesTheFreePagesBetweenThoseOfAVanishedOne) {
    expect_good("world\n"
                "process 0 publisher page_size_bytes=256 pages=2\n"
                "process 1 subscriber receives=4\n"
                "at 0 process 1 subscribe policy=1\n"
                "at 216799 process 1 vanish\n"
                "at 512275 process 0 publish count=8\n"
                "at 907247 process 0 publish bytes=245\n");
}

TEST(World, AMessageDoesNotWaitForTheDeathOfAVanishedSubscriber) {
    expect_good("world\n"
                "process 3 publisher page_size_bytes=1000 pages=5\n"
                "process 4 subscriber of=3\n"
                "at 0 process 4 when deed=7 event=3 kind=1 whom=4\n"
                "at 888 process 4 subscribe policy=1\n"
                "at 2550 process 3 publish bytes=3676 count=4 gap_us=10\n");
}

TEST(World, AMessageAboveHalfThePoolDoesNotWaitForAVanishedSubscriber) {
    expect_good("world\n"
                "process 3 publisher page_size_bytes=1000 pages=6\n"
                "process 4 subscriber of=3 receives=4\n"
                "at 888 process 4 subscribe policy=1\n"
                "at 2000 process 4 vanish\n"
                "at 2550 process 3 publish bytes=2200 count=9 gap_us=10\n"
                "at 9550 process 3 publish bytes=3900 count=1 gap_us=10\n");
}

// The lease expires and the connection ends; the process stays alive.
TEST(World, AFinderThatReconnectsGetsItsLossesExactly) {
    expect_good("world\n"
                "process 0 announced\n"
                "process 1 finder\n"
                "at 0 process 1 subscribe last=1\n"
                "at 1000000 process 0 publish count=5\n"
                "at 1100000 process 0 bus_cut us=6000000\n"
                "at 4000000 process 0 sever\n"
                "at 4500000 process 0 publish count=7\n"
                "at 9000000 process 0 publish count=3\n");
}

TEST(World, AFinderIsNotifiedOfAnotherLifeOfItsPublisher) {
    expect_good("world\n"
                "process 0 announced\n"
                "process 1 finder\n"
                "at 0 process 1 subscribe last=1\n"
                "at 1000000 process 0 publish count=5\n"
                "at 1100000 process 0 kill\n"
                "at 5000000 process 0 restart\n"
                "at 9000000 process 0 publish count=3\n");
}

// A process with two loops appears as two publishers, but faults hit it as one process.
TEST(World, AProcessWithTwoLoopsIsFoundTwiceButStopsAndRestartsAsOne) {
    expect_good("world\n"
                "process 0 announced loops=2\n"
                "process 1 finder\n"
                "at 0 process 1 subscribe last=1\n"
                "at 1000000 process 0 publish count=5\n"
                "at 1000100 process 0 publish fid=1 count=7\n"
                "at 1100000 process 0 stop us=3000000\n"
                "at 5000000 process 0 publish fid=1 count=4\n"
                "at 6000000 process 0 kill\n"
                "at 8000000 process 0 restart\n"
                "at 12000000 process 0 publish fid=1 count=3\n"
                "at 12000000 process 0 publish count=2\n");
}

TEST(World, BothEndsMayCloseAtTheSameTime) {
    expect_good("world\n"
                "process 0 publisher\n"
                "process 2 subscriber\n"
                "at 734 process 0 close\n"
                "at 743 process 2 close\n");
}

TEST(World, NoPartOfAMessageIsRemovedOnceItHasBegunToLeave) {
    expect_good("world\n"
                "process 0 publisher page_size_bytes=256\n"
                "process 2 subscriber\n"
                "process 3 subscriber\n"
                "at 0 process 2 subscribe policy=1\n"
                "at 0 process 3 subscribe\n"
                "at 1777 process 0 publish bytes=686 count=8 gap_us=0\n");
}

TEST(World, APageThatIsShorterThanOthersIsNotFilledBeyondItsEnd) {
    expect_good("world\n"
                "process 0 publisher flush_us=0 page_size_bytes=1000 pages=6\n"
                "process 1 subscriber\n"
                "process 4 subscriber\n"
                "at 6309 process 1 subscribe\n"
                "at 7604 process 4 subscribe first=2\n"
                "at 9580 process 0 publish bytes=242 count=8 gap_us=1000\n"
                "at 12691 process 0 publish count=28 fid=2\n");
}

TEST(World, FilesAreCopiedInTheEndDespiteServerAndDiskFaults) {
    expect_good("world protection=3\n"
                "process 0 copy-server idle_ms=2000\n"
                "process 1 copier overwrite=1 of=0 key_bytes=1000\n"
                "process 2 copier overwrite=1 of=0 trusts=1\n"
                "at 0 process 1 copy file=1 bytes=2500000\n"
                "at 0 process 2 copy file=1 bytes=1300000\n"
                "at 300 process 1 disk mode=2 us=3000000\n"
                "at 900 process 0 kill\n"
                "at 50000 process 0 restart\n"
                "at 60000 process 0 disk mode=1 us=500000\n"
                "at 70000 process 2 revoke us=4000000\n"
                "at 80000 process 2 copy file=1 bytes=1200000\n"
                "at 5000000 process 2 kill\n"
                "at 5001000 process 2 restart\n"
                "at 5002000 process 2 copy file=2 bytes=0\n");
}

TEST(World, AStoppedSubscriberOfAnOwnFidLeavesPublicationsForOthers) {
    expect_good("world\nprocess 0 publisher mode=1 outstanding=2\nprocess 1 subscriber\nprocess 2 "
                "subscriber\nprocess 3 subscriber\nat 0 process 1 subscribe\nat 0 process 2 "
                "subscribe first=1 last=1\nat 0 process 3 subscribe first=2 last=2\nat 900 process "
                "1 busy us=9999999\nat 900 process 2 busy us=9999999\nat 990 process 0 publish "
                "count=80 fids=2\nat 9999 process 0 publish fid=2\nat 9000000 process 0 flush\n");
}

// The burst is large enough that several of its pages are in flight at once.
TEST(World, ABurstOfSmallZeroCopyMessagesArrivesOnce) {
    for (const char* const device : {"0", "1"}) {
        expect_good((std::string{"world device="} + device +
                     "\n"
                     "process 0 publisher mode=1 slot_bytes=16448\n"
                     "process 1 subscriber receive_buffer_bytes=66000\n"
                     "at 0 process 1 subscribe last=3\n"
                     "at 5000 process 0 publish count=200 bytes=4000 gap_us=0\n")
                        .c_str());
    }
}

TEST(World, WithoutMoreLockableMemoryOnlyThatCopyEnds) {
    for (const char* const whose : {"0", "1"}) {
        for (const char* const which : {"1", "2", "3", "4", "5", "6", "7", "8"}) {
            const std::string schedule = std::string{"world\n"
                                                     "process 0 copy-server\n"
                                                     "process 1 copier of=0 trusts=1\n"
                                                     "at 0 process "} +
                                         whose + " fail call=0 count=1 first=" + which +
                                         "\nat 10 process 1 copy file=1 bytes=250000\n";
            expect_good(schedule.c_str());
        }
    }
}

} // namespace
} // namespace netio::world::world_test
