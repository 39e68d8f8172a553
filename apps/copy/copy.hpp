// SPDX-License-Identifier: Apache-2.0
#pragma once

// The progress and the final report of netio copy: text for people and one JSON object per line for
// programs. No I/O.

#include "apps/copy/checksum.hpp"
#include "apps/copy/sender.hpp"
#include "apps/copy/server.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace apps::copy {

struct Report {
    std::string provider; // empty: never connected
    std::string end;      // finished, failed, interrupted
    std::string detail;   // of the connection
    ChecksumKind checksum = ChecksumKind::xxh3_128;
    std::uint64_t moved_bytes = 0;
    double seconds = 0;
    std::vector<CopiedFile> files;
};

struct ServerReport {
    std::string provider; // several: joined by '+'
    std::string end;      // interrupted
    Server::Counters counters;
};

// Returns one line without a line end.
std::string to_json(const Report& report);
std::string to_json(const ServerReport& report);
// Returns one line with a line end.
std::string to_text(const Report& report);
std::string to_text(const ServerReport& report);

// Returns a line for one file, without a line end.
std::string to_text(const CopiedFile& file, ChecksumKind checksum);

// Returns the progress line: "NAME  45% [=====     ] 1.2 of 2.6 GB  410 MB/s  3 s left".
std::string progress_line(const Sender::Progress& progress, double bytes_per_s);

} // namespace apps::copy
