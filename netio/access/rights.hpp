// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the holder of a key may do.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netio::access::inline v0_2 {

// How long a subscriber that is too slow may hold its publisher up, from the least to the most.
enum class Patience : std::uint8_t { drop, newest, disconnect, block };

struct FidRight {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    // The most that may be asked for, and what is given to who asks for nothing; nothing: the
    // publisher's own policy decides.
    std::optional<Patience> patience;
    bool forced = false; // that one, whatever is asked for

    friend bool operator==(const FidRight&, const FidRight&) = default;
};

// A folder below the one that a server of copies serves, and what may be done there.
struct FolderRight {
    enum class May : std::uint8_t { write, overwrite }; // overwrite: write as well
    std::string folder;                                 // "." is the served one itself
    May may = May::write;

    friend bool operator==(const FolderRight&, const FolderRight&) = default;
};

struct Rights {
    static constexpr std::uint32_t default_links = 64;

    std::vector<std::uint8_t> services; // by their number on the wire, ascending
    std::vector<FidRight> fids;         // ascending, disjoint
    std::vector<FolderRight> folders;
    std::uint32_t links = default_links; // at once
    bool rma = false;                    // writes into memory of ours: trusted with the process

    bool may_use(std::uint8_t service) const noexcept;

    // For a whole range, which may need several of `fids`.
    struct Subscription {
        bool permitted = false;
        std::optional<Patience> patience; // nothing: the publisher's own policy
    };
    // Not permitted: a fid of it is not in `fids`; more patience is asked for than one of them
    // gives; or they demand different things, and the subscriber has to ask for each by itself.
    // Adds to `steps` how many of `fids` it looked at, as fids_from() does.
    Subscription subscribe(std::uint64_t first, std::uint64_t last, std::optional<Patience> asked,
                           std::size_t& steps) const noexcept;
    // The place in `fids` of the first that does not end before this one.
    std::size_t fids_from(std::uint64_t first, std::size_t& steps) const noexcept;

    // `path` is relative to the served folder and has no "." and no ".." in it. The widest that
    // permits it; null: none does.
    const FolderRight* folder_for(std::string_view path, bool over_another) const noexcept;
    bool may_write(std::string_view path, bool over_another) const noexcept {
        return folder_for(path, over_another) != nullptr;
    }

    friend bool operator==(const Rights&, const Rights&) = default;
};

} // namespace netio::access::inline v0_2
