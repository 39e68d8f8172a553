// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/copy.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace apps::copy::report_test {
namespace {

using testing::HasSubstr;

const Report report{.provider = "tcp",
                    .end = "failed",
                    .detail = "",
                    .checksum = ChecksumKind::sha256,
                    .moved_bytes = 1'000'000'000,
                    .seconds = 2,
                    .files = {{.path = "a",
                               .outcome = CopiedFile::Outcome::copied,
                               .size_bytes = 1'500'000'000,
                               .resumed_bytes = 500'000'000,
                               .moved_bytes = 1'000'000'000,
                               .checksum = "abcd",
                               .detail = {}},
                              {.path = "\xff",
                               .outcome = CopiedFile::Outcome::failed,
                               .size_bytes = 7,
                               .resumed_bytes = 0,
                               .checksum = {},
                               .detail = "why"}}};

TEST(Report, IsOneLineOfJson) {
    const std::string text = to_json(report);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json["role"], "copy");
    EXPECT_EQ(json["end"], "failed");
    EXPECT_EQ(json["checksum"], "sha256");
    EXPECT_DOUBLE_EQ(json["gbit_per_s"].get<double>(), 4.0);
    EXPECT_EQ(json["files"][0]["outcome"], "copied");
    EXPECT_EQ(json["files"][0]["resumed_bytes"], 500'000'000);
    EXPECT_EQ(json["files"][1]["detail"], "why");
}

TEST(Report, ForPeopleCountsFilesAndBytes) {
    EXPECT_EQ(to_text(report),
              "copy (tcp): failed, 1 of 2 files copied, 1 failed, 1000000000 bytes sent in 2.000 "
              "s: 500 MB/s\n");
    EXPECT_EQ(to_text(report.files[0], report.checksum),
              "a: 1500000000 bytes, sha256 abcd, resumed at 500000000");
    EXPECT_EQ(to_text(report.files[1], report.checksum), "\xff: why");
}

TEST(Report, ShowsNoSpeedForAFileThatAlreadyExists) {
    const Report present{.provider = "tcp",
                         .end = "finished",
                         .seconds = 0.25,
                         .files = {{.path = "a",
                                    .outcome = CopiedFile::Outcome::present,
                                    .size_bytes = 9,
                                    .checksum = "abcd",
                                    .detail = "its date could not be set"}}};
    EXPECT_EQ(to_text(present), "copy (tcp): finished, 0 of 1 files copied, 1 already there, 0 "
                                "bytes sent in 0.250 s\n");
    EXPECT_EQ(to_text(present.files[0], ChecksumKind::xxh3_128),
              "a: 9 bytes, xxh3-128 abcd, already there; its date could not be set");
}

TEST(Report, ShowsTheSentBytesOfASparseFile) {
    const CopiedFile file{.path = "a",
                          .outcome = CopiedFile::Outcome::copied,
                          .size_bytes = 1'000'000,
                          .moved_bytes = 4096,
                          .checksum = "abcd"};
    EXPECT_EQ(to_text(file, ChecksumKind::xxh3_128),
              "a: 1000000 bytes, xxh3-128 abcd, sparse: 4096 bytes of data sent");
}

TEST(Report, CountsTheFilesThatAServerKept) {
    const ServerReport server{.provider = "tcp",
                              .end = "interrupted",
                              .counters = {.files = 3, .bytes = 12, .failures = 1}};
    EXPECT_EQ(nlohmann::json::parse(to_json(server))["failures"], 1);
    EXPECT_THAT(to_text(server), HasSubstr("3 files kept, 12 bytes, 1 failures"));
}

TEST(Report, TheProgressShowsShareSpeedAndTimeLeft) {
    EXPECT_EQ(progress_line({.path = "a",
                             .size_bytes = 2'600'000'000,
                             .done_bytes = 1'300'000'000,
                             .moved_bytes = 1},
                            400e6),
              "a   50% [===============               ] 1.3 GB of 2.6 GB  400 MB/s  4 s left");
    EXPECT_EQ(progress_line({.path = "a", .size_bytes = 0, .done_bytes = 0, .moved_bytes = 0}, 0),
              "a  100% [==============================] 0 B of 0 B  0 B/s");
}

} // namespace
} // namespace apps::copy::report_test
