// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that is being received. Its bytes go to a partial file in the same folder,
// ".NAME.netio-part", which is locked. It gets the final name only when it is complete, correct and
// on the disk. After an interruption the next attempt resumes the partial file if its bytes match
// the source: the checksum decides, not names or dates.
//
// All functions block; every failure throws std::system_error or std::runtime_error whose text
// names the file as the peer knows it. The destructor closes the partial file, and removes an empty
// one.

#include "apps/common/io.hpp"
#include "apps/copy/checksum.hpp"
#include "apps/copy/disk.hpp"
#include "apps/copy/protocol.hpp"
#include "apps/copy/served_folder.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include <sys/stat.h>

namespace apps::copy {

// The right to write a partial file, within this process. It separates two senders of one server on
// a file system without locks. Released on destruction. Any thread.
class PartClaim {
  public:
    // Returns nullopt if another sender has it.
    static std::optional<PartClaim> take(const struct stat& file);
    ~PartClaim() { release(); }
    PartClaim(PartClaim&& other) noexcept : file_{std::exchange(other.file_, std::nullopt)} {}
    PartClaim& operator=(PartClaim&& other) noexcept {
        if (this != &other) {
            release();
            file_ = std::exchange(other.file_, std::nullopt);
        }
        return *this;
    }

  private:
    using File = std::pair<dev_t, ino_t>;
    explicit PartClaim(const File& file) : file_{file} {}
    void release() noexcept;

    std::optional<File> file_;
};

class TargetFile {
  public:
    // How much a sender may learn about existing files, and change.
    enum class Access : std::uint8_t {
        full,         // compare, resume a part, replace on request
        no_overwrite, // the same, but replace nothing
        write_only,   // learn only that a name exists
    };

    // Refuses an invalid path.
    explicit TargetFile(Open request, Access access = Access::full);
    ~TargetFile();
    TargetFile(const TargetFile&) = delete;
    TargetFile& operator=(const TargetFile&) = delete;

    // Examines the existing file: accepted from an offset, or present. Refuses to replace a file.
    // Call once, except after nullopt: then another sender, possibly a killed one whose connection
    // is not closed yet, holds the part. In that case retry after `held_pause`, until the tries are
    // used up and the file is refused.
    std::optional<Answer> examine(const ServedFolder& folder, const std::stop_token& stop,
                                  const std::string& within = {});
    static constexpr std::chrono::milliseconds held_pause{50};
    // Starts at the offset that examine() returned, or at 0. Refuses if the disk currently has no
    // space for the rest: `data_bytes`, or all of it.
    void start(std::uint64_t offset, std::optional<std::uint64_t> data_bytes = {});
    void write(std::span<const std::byte> bytes);
    // Skips a hole that ends at the position; it needs no space on file systems with holes.
    void pass_hole(std::uint64_t position, const std::stop_token& stop);
    // Replaces the date and the permissions of the request.
    void set(const Attributes& attributes) { attributes_ = attributes; }
    // Compares the checksum, and renames the file once everything is on the disk. Extends the file
    // over a final hole. Returns the attributes that the file system did not accept, as text for
    // people; empty: none.
    std::string finish(const Digest& expected, const std::stop_token& stop = {});
    // Sets the attributes of a present file with the same content, unless `may_change` is false.
    // Returns as finish().
    std::string repair(const Attributes& attributes, bool may_change) const;

    // Number of correct bytes in the partial file.
    std::uint64_t size_bytes() const noexcept { return position_; }

  private:
    bool try_lock();
    void look_for_target();
    void release_part();
    void rename();
    bool is_large() const noexcept;
    void take_in(int fd, std::uint64_t bytes, const std::stop_token& stop);

    Open request_;
    Attributes attributes_;
    const Access access_;
    std::string folder_name_;
    std::string leaf_;
    std::string part_name_;
    Descriptor folder_;
    std::optional<PartClaim> claim_; // of the partial file
    Descriptor part_;
    Descriptor present_; // a complete file of the same size
    Checksum checksum_;
    std::uint64_t position_ = 0;
    BulkWriter writer_;
    bool finished_ = false;
    int tries_left_ = 40;
};

} // namespace apps::copy
