// SPDX-License-Identifier: Apache-2.0
#include "apps/pump/study.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace apps::pump {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::vector<StudyRow> some_rows() {
    return {{.link = "measured",
             .subject = "improved",
             .message_bytes = 65'536,
             .sends = 4,
             .receives = 8,
             .gbit_per_s = 12.5,
             .sender_processor_share = 0.25,
             .receiver_processor_share = 0.5,
             .direct_share = 1},
            {.link = "10 Gb/s over 48 ms", .subject = "published", .sends = 1, .receives = 1}};
}

TEST(PumpStudy, WritesATableWithALineForEachRow) {
    EXPECT_EQ(to_csv(some_rows()),
              "link,subject,message_bytes,sends,receives,gbit_per_s,"
              "sender_processor_share,receiver_processor_share,direct_share\n"
              "measured,improved,65536,4,8,12.5000,0.2500,0.5000,1.0000\n"
              "10 Gb/s over 48 ms,published,0,1,1,0.0000,0.0000,0.0000,0.0000\n");
}

TEST(PumpStudy, DrawsAFileForEachLink) {
    const std::string script = plot_script(some_rows(), "out/study.csv", "out");
    EXPECT_THAT(script, HasSubstr("set output 'out/measured.svg'"));
    EXPECT_THAT(script, HasSubstr("set output 'out/10-Gb-s-over-48-ms.svg'"));
    EXPECT_THAT(script, HasSubstr("'out/study.csv' using"));
}

TEST(PumpStudy, ComputesEverySubjectOnEveryLink) {
    const auto rows = compute_study();
    std::set<std::string> links;
    std::set<std::string> subjects;
    for (const StudyRow& row : rows) {
        links.insert(row.link);
        subjects.insert(row.subject);
        EXPECT_GT(row.gbit_per_s, 0) << row.link << ", " << row.subject << ", " << row.sends;
        EXPECT_TRUE(row.subject != "direct" || row.direct_share > 0.999);
        EXPECT_TRUE(row.subject != "indirect" || row.direct_share == 0);
    }
    EXPECT_THAT(links, SizeIs(2));
    EXPECT_THAT(subjects, SizeIs(4));
    EXPECT_THAT(rows, SizeIs(links.size() * subjects.size() * 6 * 2));
}

} // namespace
} // namespace apps::pump
