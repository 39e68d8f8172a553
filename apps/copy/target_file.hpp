// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that is being received. Its bytes go to a partial file beside it, ".NAME.netio-part",
// which is locked against others and gets the final name only when all of it is right and on the
// disk. What an interruption leaves of it is where the next attempt goes on, if its bytes are those
// of the source: the checksum decides, not names or dates.
//
// Everything blocks; every failure throws std::system_error or std::runtime_error whose text names
// the file as the peer knows it. Destroying it closes the partial file, and removes an empty one.

#include "apps/common/io.hpp"
#include "apps/copy/checksum.hpp"
#include "apps/copy/file_data.hpp"
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

// The right to write a partial file, within this process: what keeps two senders of one server
// apart on a file system without locks. Released when destroyed. Any thread.
class PartClaim {
  public:
    // Nothing: another has it.
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
    // How much a sender may learn of what is there, and change.
    enum class Access : std::uint8_t {
        full,         // compare with it, go on behind a part, replace it where the request says so
        no_overwrite, // the same, but nothing is replaced
        write_only,   // nothing but that a name is taken
    };

    // Refuses a path with a flaw.
    explicit TargetFile(Open request, Access access = Access::full);
    ~TargetFile();
    TargetFile(const TargetFile&) = delete;
    TargetFile& operator=(const TargetFile&) = delete;

    // What is there already: accepted from an offset, or present. Refuses to replace a file. Once,
    // but for nothing: another holds the part, which may be a killed sender whose connection is not
    // known to be gone. It is worth another try in `held_pause`, until the tries are used up, and
    // it is refused.
    std::optional<Answer> examine(const ServedFolder& folder, const std::stop_token& stop,
                                  const std::string& within = {});
    static constexpr std::chrono::milliseconds held_pause{50};
    // Goes on after the offset that examine() returned, or from 0. Refuses what the disk has no
    // room for now: `data_bytes` of the rest, or all of it.
    void start(std::uint64_t offset, std::optional<std::uint64_t> data_bytes = {});
    void write(std::span<const std::byte> bytes);
    // Up to the position there is a hole, which takes no room where the file system has holes.
    void pass_hole(std::uint64_t position, const std::stop_token& stop);
    // In place of the date and the permissions that the request has.
    void set(const Attributes& attributes) { attributes_ = attributes; }
    // Compares the checksum, and gives the file its name once everything is on the disk. A hole
    // goes to the end. Returns which attributes the file system did not take, for people; empty:
    // none.
    std::string finish(const Digest& expected, const std::stop_token& stop = {});
    // Of a file that is present, whose content is that of the source: gives it these attributes,
    // unless `may_change` is false. Returns as finish().
    std::string repair(const Attributes& attributes, bool may_change) const;

    // Of the partial file, which are good.
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
    Descriptor present_; // a whole file of the same size
    Checksum checksum_;
    std::uint64_t position_ = 0;
    BulkWriter writer_;
    bool finished_ = false;
    int tries_left_ = 40;
};

} // namespace apps::copy
