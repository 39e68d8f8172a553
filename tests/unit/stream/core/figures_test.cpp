// SPDX-License-Identifier: Apache-2.0
// The publication's Figures 4 to 7, step by step: both sides with their numbers under the published
// policy, then the same schedule under this library's policy. tests/model/world.hpp checks every
// byte and explains the notation.
//
// Each figure begins with the two bytes by which the publication's program sends "go". No receive
// is advertised yet, so they go through the ring; three receives of 100 bytes follow.

#include "tests/model/world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace netio::stream::figures_test {
namespace {

using testing::HasSubstr;

// Both sides act only on request of the script.
WorldOptions published(std::uint64_t ring_bytes) {
    return {.sender = published_sender(ring_bytes),
            .receiver = published_receiver(ring_bytes),
            .eager = false};
}

// This library's policy as if 100 bytes were a large message. The last advert of a script is
// answered with the old total after it has been used (P10).
WorldOptions ours(std::uint64_t ring_bytes) {
    WorldOptions options{.sender = improved_sender(ring_bytes),
                         .receiver = improved_receiver(ring_bytes),
                         .eager = false};
    options.sender.direct_threshold_bytes = options.receiver.advert_threshold_bytes = 0;
    options.sender.coalesce_limit_bytes = 0;
    options.sender.backlog_limit_bytes = 100;
    return options;
}

// The same without P8, so that more data is in flight when the phases change.
WorldOptions ours_without_draining(std::uint64_t ring_bytes) {
    WorldOptions options = ours(ring_bytes);
    options.sender.drain = false;
    return options;
}

class Script {
  public:
    explicit Script(const WorldOptions& options) : options_{options}, world_{options_} {
        world_.keep_log();
        world_.submit(2);
        world_.pump_all();
        arrive(1);
        receive(2);
        receive(100, 3);
        tell();
    }
    Script(const Script&) = delete;
    Script& operator=(const Script&) = delete;

    void send(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            world_.submit(100);
        world_.pump_all();
    }
    void writes_finish() {
        while (world_.unfinished_writes() > 0)
            world_.transfer_done();
        world_.pump_all();
    }
    // Data arrives, and the receiving user does not react yet.
    void arrive(std::size_t count) {
        for (std::size_t i = 0; i < count && world_.data_in_flight() > 0; ++i)
            world_.deliver_data();
    }
    // The receiver takes its data and sends its control messages.
    void receive(std::uint64_t bytes = 0, std::size_t count = 1) {
        for (std::size_t i = 0; i < count && bytes > 0; ++i)
            world_.post(bytes, false);
        while (world_.receiver().ring_used_bytes() > 0 &&
               world_.receiver().open_receive_count() > 0) {
            world_.copy();
            if (options_.receiver.batch_limit_count == 1) world_.tell_all(); // each copy separately
        }
        world_.tell_all();
    }
    // All control messages arrive, and the sender continues.
    void tell() {
        while (world_.control_in_flight() > 0)
            world_.deliver_control();
        world_.pump_all();
    }
    std::string log() {
        std::string line;
        for (const std::string& event : world_.take_log())
            line += (line.empty() ? "" : " ") + event;
        return line;
    }
    const World& world() const { return world_; }

  private:
    WorldOptions options_;
    World world_;
};

// The beginning of every figure under each policy.
constexpr const char* published_start = "I1;0;2;1@0 R1=2 ACK=2 A1;2;100;2 A2;3;100;2 A3;4;100;2 ";
constexpr const char* our_start = "I1;0;2;1@0 R1=2 A1;2;100;2 A2;2;100;2 A3;2;100;2 ACK=2 ";

void expect_log(Script& script, const std::string& start, const std::string& rest) {
    EXPECT_EQ(script.log(), start + rest);
    EXPECT_EQ(script.world().violation(), "");
}

// --- Figure 4: an advert must wait until those of the finished direct phase are satisfied --------

void figure_4(Script& script) {
    script.send(5);      // D;A1 D;A2 D;A3, then two through the ring
    script.arrive(4);    // the three, and the first of those two
    script.receive(100); // takes it
    script.receive(100); // A4
    script.receive(100); // A5
    script.arrive(1);    // satisfies A4; A5 is outstanding
    script.receive(100); // the receive of A6
    script.tell();
    script.send(1);
    script.arrive(1);
    script.receive();
    script.tell();
    script.send(1);
    script.arrive(1);
    script.receive();
}

TEST(Figure4, PublishedHoldsTheAdvertOff) {
    Script script{published(400)};
    figure_4(script);
    expect_log(script, published_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;100;3@102 "
               "R2=100 R3=100 R4=100 R5=100 ACK=102 A4;402;100;4 A5;403;100;4 R6=100 ACK=202 "
               "I4;502;100;5@202 R7=100 ACK=302 A6;602;100;6 D;A6;602;100;6 R8=100");
    EXPECT_EQ(script.world().sender().counters().adverts_rejected_by_sequence, 1U); // A4
    EXPECT_EQ(script.world().sender().counters().adverts_rejected_by_phase, 1U);    // A5
}

TEST(Figure4, PublishedHitsNoWrongReceiveWhereOnlyTheBytesAreLookedAt) {
    WorldOptions options = published(400);
    options.data_checks_only = true;
    Script script{options};

    figure_4(script);

    EXPECT_EQ(script.world().violation(), "") << script.log();
}

TEST(Figure4, OursWaitsForTheRingToBeEmptyAndGoesDirectFromThere) {
    Script script{ours(400)};
    figure_4(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 R2=100 R3=100 "
               "R4=100 R5=100 ACK=102 A4;402;100;4 A5;402;100;4 A6;402;100;4 D;A4;402;100;4 "
               "D;A5;502;100;4 R6=100 D;A6;602;100;4 R7=100");
}

TEST(Figure4, OursWithoutDrainingIsDirectOneTransferEarlier) {
    Script script{ours_without_draining(400)};
    figure_4(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;100;3@102 "
               "R2=100 R3=100 R4=100 R5=100 ACK=102 A4;402;100;4 A5;402;100;4 R6=100 "
               "A6;502;100;6 A7;502;100;6 ACK=202 D;A6;502;100;6 R7=100 D;A7;602;100;6 R8=100 "
               "ACK=202");
    EXPECT_EQ(script.world().receiver().counters().adverts_revoked, 2U); // A4 and A5
}

// --- Figure 5: the advert that an indirect transfer satisfied is rejected, the next one accepted

void figure_5(Script& script) {
    script.send(5);
    script.arrive(4);
    script.receive(100); // takes I2
    script.receive(100); // A4
    script.arrive(1);    // I3 satisfies A4
    script.receive(100); // A5
    script.tell();
    script.send(1);
    script.arrive(1);
    script.receive();
}

TEST(Figure5, PublishedRejectsA4AndAcceptsA5) {
    Script script{published(400)};
    figure_5(script);
    expect_log(script, published_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;100;3@102 "
               "R2=100 R3=100 R4=100 R5=100 ACK=102 A4;402;100;4 R6=100 ACK=202 A5;502;100;6 "
               "D;A5;502;100;6 R7=100");
    EXPECT_EQ(script.world().sender().counters().adverts_rejected_by_sequence, 1U); // A4
    EXPECT_EQ(script.world().sender().phase(), Phase{6});
}

TEST(Figure5, OursWaitsForTheRingToBeEmptyAndGoesDirectFromThere) {
    Script script{ours(400)};
    figure_5(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 R2=100 R3=100 "
               "R4=100 R5=100 ACK=102 A4;402;100;4 A5;402;100;4 D;A4;402;100;4 D;A5;502;100;4 "
               "R6=100");
}

TEST(Figure5, OursWithoutDrainingGivesTheSameNumbersInFewerMessages) {
    Script script{ours_without_draining(400)};
    figure_5(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;100;3@102 "
               "R2=100 R3=100 R4=100 R5=100 ACK=102 A4;402;100;4 R6=100 A5;502;100;6 ACK=202 "
               "D;A5;502;100;6 R7=100 ACK=202");
}

// --- Figure 6: the same with two adverts satisfied by indirect transfers -------------------------

void figure_6(Script& script) {
    script.send(6);
    script.arrive(4);
    script.receive(100); // takes I2
    script.receive(100); // A4
    script.receive(100); // A5
    script.arrive(2);    // I3 satisfies A4, I4 satisfies A5
    script.receive(100); // A6
    script.tell();
    script.send(1);
    script.arrive(1);
    script.receive();
}

TEST(Figure6, PublishedRejectsTwoAndAcceptsTheThird) {
    Script script{published(400)};
    figure_6(script);
    expect_log(script, published_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;100;3@102 "
               "I4;502;100;3@202 R2=100 R3=100 R4=100 R5=100 ACK=102 A4;402;100;4 A5;403;100;4 "
               "R6=100 ACK=202 R7=100 ACK=302 A6;602;100;6 D;A6;602;100;6 R8=100");
    EXPECT_EQ(script.world().sender().counters().adverts_rejected_by_sequence, 1U); // A4
    EXPECT_EQ(script.world().sender().counters().adverts_rejected_by_phase, 1U);    // A5
}

TEST(Figure6, OursWaitsForTheRingToBeEmptyAndGoesDirectFromThere) {
    Script script{ours(400)};
    figure_6(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 R2=100 R3=100 "
               "R4=100 R5=100 ACK=102 A4;402;100;4 A5;402;100;4 A6;402;100;4 D;A4;402;100;4 "
               "D;A5;502;100;4 D;A6;602;100;4 R6=100");
}

TEST(Figure6, OursWithoutDrainingAcceptsTheThirdToo) {
    Script script{ours_without_draining(400)};
    figure_6(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;100;3@102 "
               "I4;502;100;3@202 R2=100 R3=100 R4=100 R5=100 ACK=102 A4;402;100;4 A5;402;100;4 "
               "R6=100 R7=100 A6;602;100;6 ACK=302 D;A6;602;100;6 R8=100 ACK=302");
}

// --- Figure 7: a small ring makes the number of a later advert fit by chance ---------------------

void figure_7(Script& script) {
    script.send(6);         // D;A1 D;A2 D;A3, then 100, 98 and 2 bytes until the ring is full
    script.arrive(5);       // all but the last
    script.receive(100, 2); // take 100 and 98 bytes
    script.receive(100, 3); // A4 A5 A6
    script.arrive(1);       // 2 bytes satisfy A4
    script.receive();
    script.tell();
    script.arrive(1);
    script.receive();
}

TEST(Figure7, PublishedJumpsPastThePhaseOfA4) {
    Script script{published(200)};
    figure_7(script);
    // A6 says 502, which is where the sender is, but A5's receive is the one at the head.
    expect_log(script, published_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;98;3@102 "
               "I4;500;2;3@0 R2=100 R3=100 R4=100 R5=100 ACK=102 R6=98 ACK=200 A4;500;100;4 "
               "A5;501;100;4 A6;502;100;4 R7=2 ACK=202 I5;502;100;5@2 R8=100 ACK=302");
    EXPECT_EQ(script.world().sender().phase(), Phase{5}); // from 3, by rejecting A4
    EXPECT_EQ(script.world().sender().counters().adverts_rejected_by_sequence, 1U); // A4
    EXPECT_EQ(script.world().sender().counters().adverts_rejected_by_phase, 2U);    // A5 and A6
}

TEST(Figure7, PublishedHitsNoWrongReceiveWhereOnlyTheBytesAreLookedAt) {
    WorldOptions options = published(200);
    options.data_checks_only = true;
    Script script{options};

    figure_7(script);

    const std::string log = script.log();
    EXPECT_THAT(log, HasSubstr("A4;500;100;4 A5;501;100;4 A6;502;100;4"));
    EXPECT_EQ(script.world().violation(), "") << log;
}

TEST(Figure7, OursWaitsForTheRingToBeEmptyAndGoesDirectFromThere) {
    Script script{ours(200)};
    figure_7(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 R2=100 R3=100 "
               "R4=100 R5=100 A4;402;100;4 ACK=102 A5;402;100;4 A6;402;100;4 A7;402;100;4 "
               "D;A4;402;100;4 D;A5;502;100;4 R6=100");
}

TEST(Figure7, OursWithoutDrainingNeedsNoCoincidenceAndIsDirectAgainAtOnce) {
    Script script{ours_without_draining(200)};
    figure_7(script);
    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 I2;302;100;3@2 I3;402;98;3@102 "
               "I4;500;2;3@0 R2=100 R3=100 R4=100 R5=100 R6=98 ACK=200 A4;500;100;4 A5;500;100;4 "
               "A6;500;100;4 R7=2 A7;502;100;6 A8;502;100;6 ACK=202 D;A7;502;100;6 R8=100");
}

TEST(Figure7, OursDecidesLateAndStaysDirectWhileTheLinkIsBusy) {
    WorldOptions options = ours(200);
    options.separate_done = true;
    Script script{options};
    script.writes_finish();

    script.send(6); // three direct ones are in flight, the other sends wait for an advert (P1)
    script.arrive(3);
    script.receive(100, 3);
    script.tell();
    script.arrive(3);

    expect_log(script, our_start,
               "D;A1;2;100;2 D;A2;102;100;2 D;A3;202;100;2 R2=100 R3=100 R4=100 A4;302;100;2 "
               "A5;302;100;2 A6;302;100;2 D;A4;302;100;2 D;A5;402;100;2 D;A6;502;100;2 R5=100 "
               "R6=100 R7=100");
    EXPECT_EQ(script.world().sender().counters().waits_for_advert, 1U);
}

} // namespace
} // namespace netio::stream::figures_test
