// SPDX-License-Identifier: Apache-2.0
#include "netio/access/key_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace netio::access::inline v0_3 {
namespace {

constexpr std::string_view first_line = "netio-keys 1";
constexpr std::string_view last_line = "end";
constexpr std::string_view blanks = " \t";
constexpr std::size_t name_limit = 32;
constexpr const char* anyone_name = "anyone";

[[noreturn]] void refuse_line(const std::string& file, std::size_t line, const std::string& what) {
    throw KeyFileError{file + ":" + std::to_string(line) + ": " + what};
}

std::string_view next_word(std::string_view& line) {
    const std::size_t begin = line.find_first_not_of(blanks);
    line.remove_prefix(begin == std::string_view::npos ? line.size() : begin);
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

KeyId parse_id(std::string_view word) {
    unsigned id = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, id);
    if (error != std::errc{} || stop != end || id > 255 || word.empty())
        throw std::invalid_argument{"a line begins with the key's id, a number from 0 to 255"};
    return static_cast<KeyId>(id);
}

Key parse_line(std::string_view line) {
    Key key;
    key.id = parse_id(next_word(line));
    const std::string_view name = next_word(line);
    check_name(name);
    key.name = name;
    const std::string_view secret = next_word(line);
    if ((key.id == anyone) != (secret == "-") || (key.id == anyone) != (name == anyone_name)) {
        throw std::invalid_argument{"the line for peers without a key, and no other, begins with "
                                    "'0 anyone -'"};
    }
    if (key.id != anyone) {
        const auto parsed = Secret::parse(secret);
        if (!parsed) {
            throw std::invalid_argument{"the third word is not a complete secret; copy it "
                                        "again, or make a key with 'netio key new'"};
        }
        key.secret = *parsed;
    }
    key.rights = parse_rights(line);
    return key;
}

std::string line_of(const Key& key) {
    return std::to_string(key.id) + " " + key.name + " " +
           (key.id == anyone ? "-" : key.secret.text()) + " " + to_string(key.rights) + "\n";
}

// Parses a key file line by line.
class Reader {
  public:
    Reader(std::string_view text, const std::string& file) : rest_{text}, file_{file} {
        if (next() != first_line) {
            refuse_line(file_, 1,
                        "this is no key file: its first line must be '" + std::string{first_line} +
                            "'; 'netio key new' makes one");
        }
    }

    KeyRing ring() {
        KeyRing ring;
        std::map<KeyId, std::size_t> seen;
        for (;;) {
            const std::string_view line = next();
            if (line == last_line) break;
            const std::size_t begin = line.find_first_not_of(blanks);
            if (begin == std::string_view::npos || line[begin] == '#') continue;
            Key key = parse(line);
            const auto [earlier, fresh] = seen.emplace(key.id, number_);
            if (!fresh) {
                refuse_line(file_, number_,
                            "the id " + std::to_string(key.id) + " is used in line " +
                                std::to_string(earlier->second) +
                                " already; give one of them another id");
            }
            refuse_known_secret(ring, key);
            ring.add(std::move(key));
        }
        if (!rest_.empty()) refuse_line(file_, number_ + 1, "remove the text after 'end'");
        return ring;
    }

    // Offset of the line "end"; valid after ring().
    std::size_t end_at() const noexcept { return line_at_; }

  private:
    std::string_view next() {
        ++number_;
        const std::size_t size = rest_.find('\n');
        if (size == std::string_view::npos) {
            refuse_line(
                file_, number_,
                "the file ends here, without a line 'end': a part of it is missing; fetch it "
                "from where it was made");
        }
        line_at_ = at_;
        at_ += size + 1;
        const std::string_view line = rest_.substr(0, size);
        rest_.remove_prefix(size + 1);
        return line;
    }

    // Two keys with the same secret could not be distinguished.
    void refuse_known_secret(const KeyRing& ring, const Key& key) const {
        for (const auto& [id, other] : ring.keys()) {
            if (id != anyone && key.id != anyone && other.secret == key.secret) {
                refuse_line(file_, number_,
                            "the key " + std::to_string(id) +
                                " has the same secret; make another with 'netio key new'");
            }
        }
    }

    Key parse(std::string_view line) const {
        try {
            return parse_line(line);
        } catch (const std::invalid_argument& error) {
            refuse_line(file_, number_, error.what());
        }
    }

    std::string_view rest_;
    const std::string& file_;
    std::size_t number_ = 0;
    std::size_t at_ = 0;
    std::size_t line_at_ = 0;
};

std::string octal(std::uint32_t mode) {
    std::string text = "0000";
    for (std::size_t at = text.size(); at-- > 1; mode >>= 3)
        text[at] = static_cast<char>('0' + (mode & 7U));
    return text;
}

} // namespace

// --- keys -----------------------------------------------------------------------------------

std::vector<KeyId> KeyRing::revoked_since(const KeyRing& earlier) const {
    std::vector<KeyId> list;
    for (const auto& [id, key] : earlier.keys_) {
        const Key* const now = find(id);
        if (now == nullptr || *now != key) list.push_back(id);
    }
    return list;
}

// --- text -----------------------------------------------------------------------------------

void check_name(std::string_view name) {
    const auto good = [](char each) {
        return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
               (each >= '0' && each <= '9') || each == '.' || each == '-' || each == '_';
    };
    if (name.empty() || name.size() > name_limit || !std::ranges::all_of(name, good)) {
        throw std::invalid_argument{"a key's name is 1 to 32 letters, digits, dots, dashes and "
                                    "underscores"};
    }
}

KeyRing parse_keys(std::string_view text, const std::string& file) {
    return Reader{text, file}.ring();
}

std::string with_key(std::string_view text, const Key& key, const std::string& file) {
    Reader reader{text, file};
    const KeyRing ring = reader.ring();
    if (const Key* const other = ring.find(key.id)) {
        throw KeyFileError{file + ": the id " + std::to_string(key.id) + " belongs to " +
                           other->name + "; choose another"};
    }
    std::string longer{text};
    longer.insert(reader.end_at(), line_of(key));
    return longer;
}

std::string text_of_one(const Key& key) {
    return std::string{first_line} + "\n# id name secret rights\n" + line_of(key) +
           std::string{last_line} + "\n";
}

// --- files ----------------------------------------------------------------------------------

std::string judge(const FileFacts& facts, std::uint32_t user, const std::string& path) {
    if (!facts.exists) {
        return path + ": there is no such file; make a key with 'netio key new', or copy the file "
                      "that was made for this client";
    }
    return judge_secret_file(facts, user, path);
}

std::string judge_secret_file(const FileFacts& facts, std::uint32_t user, const std::string& path) {
    if (!facts.exists) return path + ": there is no such file";
    if (!facts.is_regular) return path + ": this is not a regular file; name the file itself";
    if (facts.owner != user && facts.owner != 0) {
        return path + ": it belongs to user " + std::to_string(facts.owner) +
               ", who could change it; chown it to the user that runs this program (" +
               std::to_string(user) + ")";
    }
    if ((facts.mode & 077U) != 0) {
        return path + ": others have access to it (mode " + octal(facts.mode) +
               "); chmod 600 it, and replace the secret if another user may have read it";
    }
    if (facts.bytes > key_file_limit_bytes)
        return path + ": " + std::to_string(facts.bytes) + " bytes are too many for such a file";
    return {};
}

KeyRing KeyFile::read() {
    KeySource::Content content = source_.read(path_);
    const std::string problem = judge(content.before, source_.user(), path_);
    if (!problem.empty()) throw KeyFileError{problem};
    if (!content.error.empty()) throw KeyFileError{path_ + ": it cannot be read: " + content.error};
    if (content.before != content.after || content.text.size() != content.before.bytes) {
        throw KeyFileError{path_ + ": it changed while it was read; write another file and rename "
                                   "it, as 'netio key new' does"};
    }
    try {
        KeyRing ring = parse_keys(content.text, path_);
        wipe(std::as_writable_bytes(std::span{content.text}));
        return ring;
    } catch (...) {
        wipe(std::as_writable_bytes(std::span{content.text}));
        throw;
    }
}

void KeyFile::load() {
    const FileFacts facts = source_.look(path_);
    KeyRing ring = read();
    revoked_ = ring.revoked_since(ring_);
    ring_ = std::move(ring);
    problem_.clear();
    seen_ = facts;
}

KeyFile::Refreshed KeyFile::refresh() {
    const FileFacts facts = source_.look(path_);
    if (seen_ == facts) return Refreshed::unchanged;
    try {
        load();
        return Refreshed::changed;
    } catch (const KeyFileError& error) {
        seen_ = facts;
        problem_ = error.what();
        return Refreshed::broken;
    }
}

} // namespace netio::access::inline v0_3
