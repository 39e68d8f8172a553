// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rights of a key: services, fids to subscribe to, folders to write into, connections. Also
// their text form, the last words of a line in a key file (netio/access/key_file.hpp lists them).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netio::access::inline v0_3 {

// The policies of pubsub::SlowPolicy, from the least to the most backpressure.
enum class SlowPolicy : std::uint8_t { drop, newest, disconnect, block };

struct FidRight {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    // The most that a subscriber may ask for, and the default if it asks for nothing. `nullopt`:
    // the publisher's own policy decides.
    std::optional<SlowPolicy> slow_policy;
    bool forced = false; // `slow_policy` holds, whatever the subscriber asks for

    friend bool operator==(const FidRight&, const FidRight&) = default;
};

// A folder below the one that a copy server serves.
struct FolderRight {
    enum class May : std::uint8_t { write, overwrite }; // overwrite includes write
    std::string folder;                                 // ".": the served folder itself
    May may = May::write;

    friend bool operator==(const FolderRight&, const FolderRight&) = default;
};

struct Rights {
    static constexpr std::uint32_t default_connections = 64;

    std::vector<std::uint8_t> services; // numbers on the wire, ascending
    std::vector<FidRight> fids;         // ascending, disjoint
    std::vector<FolderRight> folders;
    std::uint32_t connections = default_connections; // simultaneous connections
    bool rma = false; // may write into this side's memory: fully trusted

    bool may_use(std::uint8_t service) const noexcept;

    // The answer to a request for a range, which may need several of `fids`.
    struct Subscription {
        bool permitted = false;
        std::optional<SlowPolicy> slow_policy; // `nullopt`: the publisher's own policy
    };
    // Not permitted if a fid of the range is not in `fids`, if the request exceeds the policy of
    // one entry, or if entries demand different policies; the subscriber then has to request each
    // part separately. Adds the number of inspected entries to `steps`, as fids_from() does.
    Subscription subscribe(std::uint64_t first, std::uint64_t last, std::optional<SlowPolicy> asked,
                           std::size_t& steps) const noexcept;
    // Index of the first entry of `fids` that does not end before `first`.
    std::size_t fids_from(std::uint64_t first, std::size_t& steps) const noexcept;

    // The widest entry that permits writing `path`, or null. `path` is relative to the served
    // folder and contains neither "." nor "..".
    const FolderRight* folder_for(std::string_view path, bool over_another) const noexcept;
    bool may_write(std::string_view path, bool over_another) const noexcept {
        return folder_for(path, over_another) != nullptr;
    }

    friend bool operator==(const Rights&, const Rights&) = default;
};

std::string to_string(const Rights& rights);
// Throws std::invalid_argument if the words are not valid rights.
Rights parse_rights(std::string_view words);

} // namespace netio::access::inline v0_3
