// SPDX-License-Identifier: Apache-2.0
#pragma once

// study_stream: computes, without measuring, the performance of a stream policy on a link.
//
// A discrete-event simulation of one direction in virtual time, with the real netio::stream::Sender
// and netio::stream::Receiver: one wire with a bandwidth and a delay, one core at each end with a
// cost for each operation, and a user at each end who keeps a number of operations outstanding. It
// compares policies and finds out what a link needs; it does not model caches, registrations and
// interrupts. No I/O, no clock, the same result every time. Throws std::invalid_argument that names
// impossible options.
//
//     const StreamStudy study = study_stream(
//         {.gigabits_per_second = 100, .one_way_ns = 1'500},
//         {.message_bytes = 256 * 1024, .send_count = 32, .receive_count = 32},
//         our_stream_policy(4 << 20));
//     std::cout << study.link_share << ' ' << study.direct_share << '\n';

#include "stream/core/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct StreamLink {
    double gigabits_per_second = 100;
    double one_way_ns = 1'500;
    double copy_gigabytes_per_second = 10;    // copy out of the ring
    double post_ns = 150;                     // sender: posting a write
    double arrival_ns = 250;                  // receiver: a write that arrived
    double control_ns = 250;                  // either side: a control message ...
    double advert_ns = 20;                    // ... and each advert in it
    double receive_ns = 100;                  // receiver: posting a receive
    double register_gigabytes_per_second = 5; // receiver: making a larger ring
};

struct StreamLoad {
    std::uint64_t message_bytes = 256 * 1024; // size of each send
    std::uint64_t send_count = 16;            // outstanding
    std::uint64_t receive_count = 32;         // outstanding
    std::uint64_t receive_bytes = 0;          // size of each receive; 0: as message_bytes
    bool wait_all = false;
    // Receives are posted this long before the first send; negative: after it.
    double receiver_lead_ns = 20'000;
    double consume_ns = 0;         // time of the receiving user per receive
    std::uint64_t total_bytes = 0; // 0: enough to neglect start and end
};

struct StreamPolicy {
    netio::stream::SenderOptions sender{};
    netio::stream::ReceiverOptions receiver{};
};
StreamPolicy our_stream_policy(std::uint64_t ring_bytes);
StreamPolicy published_stream_policy(std::uint64_t ring_bytes);
// The current policy with a growing ring and indirect transfers only.
StreamPolicy growing_stream_policy(std::uint64_t ring_bytes, std::uint64_t ring_limit_bytes);
// The baselines: all data waits for an advert, or all data goes through the ring.
StreamPolicy direct_only_stream_policy(std::uint64_t ring_bytes);
StreamPolicy indirect_only_stream_policy(std::uint64_t ring_bytes);

struct StreamStudy {
    double gigabits_per_second = 0; // from the first send to the last byte in a receive
    double link_share = 0;          // fraction of the link's bandwidth
    double direct_share = 0;        // fraction of the bytes sent directly
    double copy_share = 0;          // fraction of time in which the receiver's core was copying
    double receiver_busy_share = 0; // fraction of time in which it was busy
    std::uint64_t transfers = 0;
    std::uint64_t control_messages = 0;
    std::uint64_t phase_switches = 0;
    std::uint64_t ring_bytes = 0; // at the end
    std::uint64_t ring_growths = 0;
};

StreamStudy study_stream(const StreamLink& link, const StreamLoad& load,
                         const StreamPolicy& policy);

// A row of the study's table: Figures 11 to 14 of the 2014 talk for links that are not available
// here. The columns are those of bench/study.py, which measures the same on this machine.
struct StudyRow {
    std::string link;
    std::string subject; // direct, indirect, published or improved
    std::uint64_t message_bytes = 0;
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
    StreamStudy study;
};
std::vector<StudyRow> compute_study();
// Returns the rows without a heading.
std::string to_csv(const std::vector<StudyRow>& rows);

} // namespace bench
