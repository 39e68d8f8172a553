// SPDX-License-Identifier: Apache-2.0
#pragma once

// A key file as it is used: read when something of it has changed, and the keys that were read last
// stay in force while what is there is wrong.

#include "netio/access/key_text.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace netio::access::inline v0_2 {

// What the system says of a file without opening it.
struct FileFacts {
    bool exists = false;
    bool is_regular = false;
    std::uint32_t mode = 0; // the last nine bits
    std::uint32_t owner = 0;
    std::uint64_t bytes = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t changed_ns = 0; // its contents
    std::int64_t touched_ns = 0; // its mode, owner or name as well

    friend bool operator==(const FileFacts&, const FileFacts&) = default;
};

// Where a key file is read; the system, or a test.
class KeySource {
  public:
    struct Content {
        FileFacts before; // of what was opened, around reading it
        FileFacts after;
        std::string text;
        std::string error; // why it could not be read
    };

    virtual ~KeySource() = default;
    virtual FileFacts look(const std::string& path) = 0;
    virtual Content read(const std::string& path) = 0;
    // Whose files are trusted, besides root's.
    virtual std::uint32_t user() const = 0;
};

inline constexpr std::uint64_t key_file_limit_bytes = 1024 * 1024;

// What keeps a file with a secret, a key or a password, from being used: it is missing, too large,
// no regular file, or another user owns it or has access to it. "problem; remedy"; empty: nothing.
std::string judge_secret_file(const FileFacts& facts, std::uint32_t user, const std::string& path);
// The same of a key file.
std::string judge(const FileFacts& facts, std::uint32_t user, const std::string& path);

class KeyFile {
  public:
    // Nothing is read yet.
    KeyFile(std::string path, KeySource& source) : path_{std::move(path)}, source_{source} {}

    // Reads it. Throws KeyFileError, and leaves everything as it was.
    void load();

    enum class Refreshed {
        unchanged,
        changed, // ring() is another
        broken,  // problem() says why, once for each state of the file; ring() is as before
    };
    // To be called now and then; looks, and reads only if there is something new.
    Refreshed refresh();

    const KeyRing& ring() const noexcept { return ring_; }
    // After a change: whose connections must end.
    const std::vector<KeyId>& revoked() const noexcept { return revoked_; }
    const std::string& problem() const noexcept { return problem_; }
    const std::string& path() const noexcept { return path_; }

  private:
    KeyRing read();

    std::string path_;
    KeySource& source_;
    std::optional<FileFacts> seen_;
    KeyRing ring_;
    std::vector<KeyId> revoked_;
    std::string problem_;
};

} // namespace netio::access::inline v0_2
