// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of one file: a value.

#include "netio/access/rights.hpp"
#include "netio/access/secret.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace netio::access::inline v0_2 {

// 1 to 255. Two clients never share one; to change a client's key it has two for a while.
using KeyId = std::uint8_t;
// Who has no key is this one, where the file has a line for them.
inline constexpr KeyId anyone = 0;

struct Key {
    KeyId id = anyone;
    std::string name;
    Secret secret;
    Rights rights;

    friend bool operator==(const Key&, const Key&) = default;
};

class KeyRing {
  public:
    // False: the id is taken, and nothing was done.
    bool add(Key key) {
        const KeyId id = key.id;
        return keys_.emplace(id, std::move(key)).second;
    }
    const Key* find(KeyId id) const {
        const auto found = keys_.find(id);
        return found == keys_.end() ? nullptr : &found->second;
    }
    const std::map<KeyId, Key>& keys() const noexcept { return keys_; }
    // Those of an earlier ring whose holders must go: the key is no longer there, or is another
    // one, or gives other rights.
    std::vector<KeyId> revoked_since(const KeyRing& earlier) const {
        std::vector<KeyId> list;
        for (const auto& [id, key] : earlier.keys_) {
            const Key* const now = find(id);
            if (now == nullptr || *now != key) list.push_back(id);
        }
        return list;
    }

  private:
    std::map<KeyId, Key> keys_;
};

} // namespace netio::access::inline v0_2
