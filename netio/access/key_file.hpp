// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key files: their format, the keys of one file, and reloading a file that changed. While the file
// is invalid, the keys that were read last stay in force. The file itself is read through KeySource
// (netio/access/key_source.hpp reads files of this machine).
//
//     netio-keys 1
//     # id name secret rights
//     7 monitor nk1-… services=pubsub fids=0-63:drop,0x100-0x1ff:block! connections=4
//     8 camera nk1-… services=stream folder=incoming:overwrite folder=logs rma
//     0 anyone - services=probe
//     end
//
// Rights; only `folder` may occur more than once:
//     services=  messages, pubsub, stream, probe, or all; required
//     fids=      ranges that may be subscribed to; after a colon the most that a slow subscriber
//     may
//                ask for (drop, disconnect, block); with ! the subscriber always gets that
//     folder=    a folder that copies may be written into; :overwrite allows to replace files
//     connections= simultaneous connections (64)
//     rma        writes into this side's memory: the holder is trusted with the process

#include "netio/access/crypto.hpp"
#include "netio/access/rights.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::access::inline v0_3 {

// --- keys -----------------------------------------------------------------------------------

// 1 to 255. Two clients never share an id; while a client's key is replaced, it has two.
using KeyId = std::uint8_t;
// The id of peers without a key; the file may have a line for them.
inline constexpr KeyId anyone = 0;

struct Key {
    KeyId id = anyone;
    std::string name;
    Secret secret;
    Rights rights;

    friend bool operator==(const Key&, const Key&) = default;
};

// The keys of one file: a value.
class KeyRing {
  public:
    // Returns false and changes nothing if the id is taken.
    bool add(Key key) {
        const KeyId id = key.id;
        return keys_.emplace(id, std::move(key)).second;
    }
    const Key* find(KeyId id) const {
        const auto found = keys_.find(id);
        return found == keys_.end() ? nullptr : &found->second;
    }
    const std::map<KeyId, Key>& keys() const noexcept { return keys_; }
    // The keys of an earlier ring whose connections must end: they were removed, replaced, or have
    // different rights now.
    std::vector<KeyId> revoked_since(const KeyRing& earlier) const;

  private:
    std::map<KeyId, Key> keys_;
};

// --- text -----------------------------------------------------------------------------------

// what(): "FILE:LINE: problem; remedy" in one line; never contains a secret.
class KeyFileError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Parses the text of the file named `file`. Throws KeyFileError.
KeyRing parse_keys(std::string_view text, const std::string& file);
// Returns the text with one more line. Throws KeyFileError if the text is invalid or the id taken.
std::string with_key(std::string_view text, const Key& key, const std::string& file);
// The text of a file with this key only.
std::string text_of_one(const Key& key);

// Throws std::invalid_argument unless the name has 1 to 32 letters, digits, dots, dashes and
// underscores.
void check_name(std::string_view name);

// --- files ----------------------------------------------------------------------------------

// Attributes of a file.
struct FileFacts {
    bool exists = false;
    bool is_regular = false;
    std::uint32_t mode = 0; // the last nine bits
    std::uint32_t owner = 0;
    std::uint64_t bytes = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t changed_ns = 0; // of the content
    std::int64_t touched_ns = 0; // of the content, mode, owner or name

    friend bool operator==(const FileFacts&, const FileFacts&) = default;
};

// Reads files; a test replaces it.
class KeySource {
  public:
    struct Content {
        FileFacts before; // of the opened file, before and after reading
        FileFacts after;
        std::string text;
        std::string error; // why the file could not be read
    };

    virtual ~KeySource() = default;
    virtual FileFacts look(const std::string& path) = 0;
    virtual Content read(const std::string& path) = 0;
    // A user whose files are trusted, in addition to root.
    virtual std::uint32_t user() const = 0;
};

inline constexpr std::uint64_t key_file_limit_bytes = 1024 * 1024;

// Whether a file with a secret (a key or a password) may be used: "problem; remedy", or empty if it
// may. It must exist, be a regular file of at most key_file_limit_bytes, and be accessible to its
// trusted owner only.
std::string judge_secret_file(const FileFacts& facts, std::uint32_t user, const std::string& path);
// The same for a key file; the remedy for a missing file names the command that makes one.
std::string judge(const FileFacts& facts, std::uint32_t user, const std::string& path);

class KeyFile {
  public:
    // Does not read the file yet.
    KeyFile(std::string path, KeySource& source) : path_{std::move(path)}, source_{source} {}

    // Reads the file. Throws KeyFileError and then changes nothing.
    void load();

    enum class Refreshed {
        unchanged,
        changed, // ring() is new
        broken,  // problem() has the reason, once for each state of the file; ring() is unchanged
    };
    // To be called periodically. Reads the file only if its attributes changed.
    Refreshed refresh();

    const KeyRing& ring() const noexcept { return ring_; }
    // After a change: the keys whose connections must end.
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

} // namespace netio::access::inline v0_3
