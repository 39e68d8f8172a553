// SPDX-License-Identifier: Apache-2.0
#pragma once

// The 2014 study of the stream protocol (Figures 11 to 14 of the talk) on this machine: throughput,
// processor use and share of direct bytes against the sends and receives outstanding, for the three
// modes, the published policy and ours; measured between two processes, and computed for links that
// are not here.

#include <cstdint>
#include <string>
#include <vector>

namespace apps::pump {

// A row of the table; a subject is direct, indirect, published or improved.
struct StudyRow {
    std::string link; // "measured", or the link that was computed
    std::string subject;
    std::uint64_t message_bytes = 0;
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
    double gbit_per_s = 0;
    double sender_processor_share = 0;   // of a core; not computed: 0
    double receiver_processor_share = 0; // of a core
    double direct_share = 0;             // of the bytes
};

struct StudyPlan {
    std::uint64_t bytes = 1 << 30; // of each measured run
    std::uint64_t message_bytes = 256 * 1024;
    std::string provider = "auto";
};

// Runs this program as server and client for each row. Throws std::runtime_error naming the run.
std::vector<StudyRow> measure_study(const StudyPlan& plan);
std::vector<StudyRow> compute_study();

std::string to_csv(const std::vector<StudyRow>& rows);
// A gnuplot script that draws `csv_file` into SVG files beside it, one for each link.
std::string plot_script(const std::vector<StudyRow>& rows, const std::string& csv_file,
                        const std::string& folder);

// Both, into the folder, and the plots if gnuplot is here. Returns the exit status.
int run_study(const StudyPlan& plan, const std::string& folder);

} // namespace apps::pump
