// SPDX-License-Identifier: Apache-2.0
#include "netio/access/key_file.hpp"

#include "netio/access/secret.hpp"

#include <array>
#include <utility>

namespace netio::access::inline v0_2 {
namespace {

std::string octal(std::uint32_t mode) {
    std::string text = "0000";
    for (std::size_t at = text.size(); at-- > 1; mode >>= 3)
        text[at] = static_cast<char>('0' + (mode & 7U));
    return text;
}

} // namespace

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
               "); chmod 600 it, and replace the secret if somebody may have read it";
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

} // namespace netio::access::inline v0_2
