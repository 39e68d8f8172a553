// SPDX-License-Identifier: Apache-2.0
#pragma once

// The key file of a site and the files of its clients, in a folder removed with this object.

#include "netio/access/key_source.hpp"
#include "netio/access/rights.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

namespace netio::test {

class KeyFiles {
  public:
    KeyFiles() {
        std::string folder = testing::TempDir() + "netio_keys_XXXXXX";
        if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error{"no folder for keys"};
        folder_ = folder;
        write();
    }
    ~KeyFiles() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    KeyFiles(const KeyFiles&) = delete;
    KeyFiles& operator=(const KeyFiles&) = delete;

    // Adds a key to the site's file, changes its rights, or permits a revoked key again.
    void permit(int id, const std::string& rights) {
        keys_.insert(revoked_.extract(id));
        access::Key& key = keys_.try_emplace(id, make(id)).first->second;
        key.rights = access::parse_rights(rights);
        write();
    }
    void permit_anyone(const std::string& rights) {
        keys_[0] = {.name = "anyone", .rights = access::parse_rights(rights)};
        write();
    }
    void revoke(int id) {
        revoked_.insert(keys_.extract(id));
        write();
    }
    void spoil() const { access::write_key_file(site(), "netio-keys 1\n7 ", true); }

    std::string site() const { return folder_ + "/site.keys"; }
    // The file of a client, including one that the site does not know or has revoked.
    std::string client(int id) {
        for (const auto* known : {&keys_, &revoked_}) {
            if (const auto found = known->find(id); found != known->end())
                return put("client" + std::to_string(id), found->second);
        }
        return put("client" + std::to_string(id), make(id));
    }
    // The file of an impostor that uses a known id with another secret.
    std::string forged(int id) { return put("forged" + std::to_string(id), make(id)); }
    // The secret that only the site and its client know.
    const access::Key& key(int id) const { return keys_.at(id); }

  private:
    static access::Key make(int id) {
        return {.id = static_cast<access::KeyId>(id),
                .name = "key" + std::to_string(id),
                .secret = access::Secret::random(),
                .rights = access::parse_rights("services=all")};
    }
    std::string put(const std::string& name, const access::Key& key) const {
        std::string path = folder_ + "/" + name + ".key";
        access::write_key_file(path, access::text_of_one(key), true);
        return path;
    }
    void write() const {
        std::string text = "netio-keys 1\nend\n";
        for (const auto& [id, key] : keys_)
            text = access::with_key(text, key, site());
        access::write_key_file(site(), text, true);
    }

    std::string folder_;
    std::map<int, access::Key> keys_;
    std::map<int, access::Key> revoked_;
};

} // namespace netio::test
