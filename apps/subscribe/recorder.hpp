// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the messages of every fid, one behind the other, to a file of its own: FOLDER/<fid as 16
// hex digits>, which has the suffix .part until finish(). What was never finished keeps it.

#include "pubsub/core/fid_map.hpp"

#include <cstddef>
#include <cstdio>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace apps {

class Recorder {
  public:
    // Makes the folder if it is not there. Throws std::system_error naming what failed, as do all.
    explicit Recorder(std::string folder, std::size_t open_limit = 256);
    ~Recorder() = default;

    void write(netio::pubsub::Fid fid, std::span<const std::byte> message);
    // Everything is on the disk, and has its final name.
    void finish();

    std::string path_of(netio::pubsub::Fid fid) const;

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    struct File {
        std::unique_ptr<std::FILE, Close> file; // null: closed for the moment
        bool begun = false;
    };
    void open(netio::pubsub::Fid fid, File& file);
    void close_oldest();

    std::string folder_;
    std::size_t open_limit_; // descriptors
    netio::pubsub::FidMap<std::unique_ptr<File>> files_;
    std::deque<netio::pubsub::Fid> open_; // the oldest first
};

} // namespace apps
