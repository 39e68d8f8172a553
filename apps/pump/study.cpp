// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/study.hpp"

#include "apps/common/child_process.hpp"
#include "apps/common/standard_output.hpp"
#include "apps/pump/stream_study.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>

namespace apps::pump {
namespace {

using Json = nlohmann::json;

constexpr std::array subjects{"direct", "indirect", "published", "improved"};
constexpr std::array<std::uint64_t, 6> send_counts{1, 2, 4, 8, 16, 32};
constexpr std::array<std::uint64_t, 2> receives_per_send{1, 2};

std::vector<std::string> mode_arguments(std::string_view subject) {
    if (subject == "published") return {"--policy", "published"};
    if (subject == "improved") return {};
    return {"--mode", std::string{subject}};
}

std::string address_of(ChildProcess& server) {
    constexpr std::string_view marker = "listening at ";
    while (const auto line = server.read_line()) {
        const std::size_t at = line->find(marker);
        if (at == std::string::npos) continue;
        const std::size_t begin = at + marker.size();
        return line->substr(begin, line->find(' ', begin) - begin);
    }
    throw std::runtime_error{"the server of the study ended before it listened"};
}

StudyRow measure(const StudyPlan& plan, std::string_view subject, std::uint64_t sends,
                 std::uint64_t receives) {
    std::vector<std::string> common = mode_arguments(subject);
    for (const auto& word : {std::string{"--receives"}, std::to_string(receives),
                             std::string{"--provider"}, plan.provider})
        common.push_back(word);

    std::vector<std::string> serving{"pump", "--serve", "--once", "--listen", "127.0.0.1:0"};
    serving.insert(serving.end(), common.begin(), common.end());
    ChildProcess server{"", serving, ChildProcess::Listen::standard_error};

    std::vector<std::string> pumping{"pump",
                                     address_of(server),
                                     "--json",
                                     "--bytes",
                                     std::to_string(plan.bytes),
                                     "--size",
                                     std::to_string(plan.message_bytes),
                                     "--sends",
                                     std::to_string(sends)};
    pumping.insert(pumping.end(), common.begin(), common.end());
    ChildProcess client{"", pumping, ChildProcess::Listen::standard_output};
    const std::string output = client.read_all();
    const int status = client.wait();
    const Json report = Json::parse(output, nullptr, false);
    if (status != 0 || !report.contains("server")) {
        throw std::runtime_error{fmt::format("the run '{}' with {} sends failed with status {}: {}",
                                             subject, sends, status, output)};
    }
    static_cast<void>(server.wait());
    return {.link = "measured",
            .subject = std::string{subject},
            .message_bytes = plan.message_bytes,
            .sends = sends,
            .receives = receives,
            .gbit_per_s = report["server"].value("gbit_per_s", 0.0),
            .sender_processor_share = report.value("processor_share", 0.0),
            .receiver_processor_share = report["server"].value("processor_share", 0.0),
            .direct_share = report.value("direct_share_sent", 0.0)};
}

StreamPolicy policy_of(std::string_view subject, std::uint64_t ring_bytes) {
    if (subject == "direct") return direct_only_stream_policy(ring_bytes);
    if (subject == "indirect") return indirect_only_stream_policy(ring_bytes);
    if (subject == "published") return published_stream_policy(ring_bytes);
    return our_stream_policy(ring_bytes);
}

struct ComputedLink {
    const char* name;
    StreamLink link;
    std::uint64_t message_bytes;
    std::uint64_t ring_bytes;
};

std::vector<ComputedLink> computed_links() {
    return {
        {"100 Gb/s over 3 us",
         {.gigabits_per_second = 100, .one_way_ns = 1'500},
         256 << 10,
         1 << 20},
        {"10 Gb/s over 48 ms", {.gigabits_per_second = 10, .one_way_ns = 24e6}, 2 << 20, 4 << 20}};
}

// Links are named by people; files are not.
std::string file_name(std::string name) {
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
    return name;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    std::ofstream file{path};
    file << text << std::flush;
    if (!file) throw std::system_error{errno, std::system_category(), path.string()};
}

} // namespace

std::vector<StudyRow> measure_study(const StudyPlan& plan) {
    std::vector<StudyRow> rows;
    for (const std::uint64_t factor : receives_per_send) {
        for (const std::uint64_t sends : send_counts) {
            for (const char* const subject : subjects) {
                rows.push_back(measure(plan, subject, sends, factor * sends));
                const StudyRow& row = rows.back();
                spdlog::info("{:>9}, {:2} sends, {:2} receives: {:6.2f} Gb/s, {:5.1f} % direct",
                             subject, sends, row.receives, row.gbit_per_s, 100 * row.direct_share);
            }
        }
    }
    return rows;
}

std::vector<StudyRow> compute_study() {
    std::vector<StudyRow> rows;
    for (const ComputedLink& computed : computed_links()) {
        for (const std::uint64_t factor : receives_per_send) {
            for (const std::uint64_t sends : send_counts) {
                for (const char* const subject : subjects) {
                    const StreamLoad load{.message_bytes = computed.message_bytes,
                                          .send_count = sends,
                                          .receive_count = factor * sends};
                    const StreamStudy study =
                        study_stream(computed.link, load, policy_of(subject, computed.ring_bytes));
                    rows.push_back({.link = computed.name,
                                    .subject = subject,
                                    .message_bytes = load.message_bytes,
                                    .sends = sends,
                                    .receives = load.receive_count,
                                    .gbit_per_s = study.gigabits_per_second,
                                    .sender_processor_share = 0,
                                    .receiver_processor_share = study.receiver_busy_share,
                                    .direct_share = study.direct_share});
                }
            }
        }
    }
    return rows;
}

std::string to_csv(const std::vector<StudyRow>& rows) {
    std::string csv = "link,subject,message_bytes,sends,receives,gbit_per_s,"
                      "sender_processor_share,receiver_processor_share,direct_share\n";
    for (const StudyRow& row : rows) {
        csv +=
            fmt::format("{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.4f}\n", row.link, row.subject,
                        row.message_bytes, row.sends, row.receives, row.gbit_per_s,
                        row.sender_processor_share, row.receiver_processor_share, row.direct_share);
    }
    return csv;
}

std::string plot_script(const std::vector<StudyRow>& rows, const std::string& csv_file,
                        const std::string& folder) {
    struct Panel {
        const char* title;
        const char* column;
    };
    constexpr std::array<Panel, 3> panels{{{"throughput, Gb/s", "6"},
                                           {"receiver, % of a core", "(100*$8)"},
                                           {"direct, % of the bytes", "(100*$9)"}}};
    std::string script = "set datafile separator ','\nset logscale x 2\nset grid\n"
                         "set xlabel 'sends outstanding'\nset yrange [0:*]\nset key bottom right\n";
    std::set<std::string> links;
    for (const StudyRow& row : rows)
        links.insert(row.link);
    for (const std::string& link : links) {
        script += fmt::format("set terminal svg size 1200,800 background 'white'\n"
                              "set output '{}/{}.svg'\n"
                              "set multiplot layout 2,3 title '{}'\n",
                              folder, file_name(link), link);
        for (const std::uint64_t factor : receives_per_send) {
            for (const Panel& panel : panels) {
                script += fmt::format("set title '{} (receives = {} x sends)'\nplot ", panel.title,
                                      factor);
                for (const char* const subject : subjects) {
                    script += fmt::format(
                        "'{}' using ((strcol(1) eq '{}' && strcol(2) eq '{}' && $5 == {}*$4) ? $4 "
                        ": NaN):{} with linespoints title '{}', ",
                        csv_file, link, subject, factor, panel.column, subject);
                }
                script += '\n';
            }
        }
        script += "unset multiplot\n";
    }
    return script;
}

int run_study(const StudyPlan& plan, const std::string& folder) {
    std::filesystem::create_directories(folder);
    std::vector<StudyRow> rows = measure_study(plan);
    const std::vector<StudyRow> computed = compute_study();
    rows.insert(rows.end(), computed.begin(), computed.end());
    const std::string csv = folder + "/study.csv";
    const std::string script = folder + "/study.gnuplot";
    write_file(csv, to_csv(rows));
    write_file(script, plot_script(rows, csv, folder));
    print_report(fmt::format("{}\n{}\n", csv, script));
    try {
        ChildProcess gnuplot{"gnuplot", {script}, ChildProcess::Listen::standard_error};
        const std::string complaints = gnuplot.read_all();
        const int status = gnuplot.wait();
        if (status == 0) {
            print_report(fmt::format("plots: {}/*.svg\n", folder));
            return 0;
        }
        spdlog::error("gnuplot ended with status {}: {}", status, complaints);
    } catch (const std::system_error& error) {
        spdlog::warn("no plots: {} (install gnuplot, then: gnuplot {})", error.what(), script);
        return 0;
    }
    return 1;
}

} // namespace apps::pump
