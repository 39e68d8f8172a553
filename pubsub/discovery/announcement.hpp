// SPDX-License-Identifier: Apache-2.0
#pragma once

// The announcement of a publisher on a bus (docs/discovery.md). It comes from an unauthenticated
// peer, so everything is bounded, and it is only a hint if keys are used. No I/O.

#include "netio/base/endpoint.hpp"
#include "netio/base/export.hpp"
#include "pubsub/core/fid.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Limits of one announcement.
inline constexpr std::size_t announcement_bytes_limit = std::size_t{4} << 20; // as text
inline constexpr std::size_t announced_name_limit = 128;
inline constexpr std::size_t announced_text_limit = 256; // of each other text
inline constexpr std::size_t announced_ranges_limit = 65536;
inline constexpr std::size_t announced_addresses_limit = 32;
inline constexpr std::size_t announced_parameters_limit = 64;
inline constexpr std::chrono::milliseconds least_lease{100};
inline constexpr std::chrono::milliseconds longest_lease{3'600'000};

struct AnnouncedFids {
    FidRange fids;
    std::string meaning; // for people; may be empty

    friend bool operator==(const AnnouncedFids&, const AnnouncedFids&) = default;
};

struct Announcement {
    // Unique on the bus: letters, digits and ._- , the first a letter or a digit.
    std::string name{};
    std::uint64_t instance = 0; // drawn at start-up; another one is another process
    std::uint64_t counter = 0;  // changes regularly while the publisher is alive
    std::vector<AnnouncedFids> fids{};
    std::vector<std::string> addresses{};            // PROVIDER:HOST:PORT, in order of preference
    std::string mode{};                              // buffered, unbuffered
    std::map<std::string, std::string> parameters{}; // page_size, ...
    std::string host{};
    int pid = 0;
    std::string started{}; // for people: UTC
    std::string metrics{}; // HOST:PORT, or empty
    // The publisher is gone if the counter has not changed for this time; 0: the reader's lease.
    std::chrono::milliseconds lease{0};

    friend bool operator==(const Announcement&, const Announcement&) = default;
};

// An announcement is invalid. what() has the position and the problem, in one printable line for
// any input.
class NETIO_EXPORT AnnouncementError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The problem of a text in an announcement; empty if there is none.
NETIO_EXPORT std::string announced_text_flaw(std::string_view text);
// Throws AnnouncementError if a limit or rule is violated.
NETIO_EXPORT void validate(const Announcement& announcement);
// The announcement as JSON. Throws what validate() throws.
NETIO_EXPORT std::string to_text(const Announcement& announcement);
// Throws AnnouncementError.
NETIO_EXPORT Announcement parse_announcement(std::string_view text);

NETIO_EXPORT bool is_announced_name(std::string_view name) noexcept;
// Parses PROVIDER:HOST:PORT; `nullopt` if malformed.
NETIO_EXPORT std::optional<Endpoint> parse_announced_address(std::string_view text);
NETIO_EXPORT std::string to_announced_address(const Endpoint& endpoint);
// Whether an address is valid only on the publisher's host. 127.0.0.0/8, ::1, localhost, 0.0.0.0
// and :: lead to the host of the program that uses them; the zone of a link-local address is an
// interface of the host that announces it.
NETIO_EXPORT bool is_of_one_host(const Address& address);
// Whether a program on `reader_host` (a name as in Announcement::host) reaches the publisher at an
// address of this announcement. An address of one host (is_of_one_host()) reaches it only on the
// announced host. True if no host is announced.
NETIO_EXPORT bool leads_there_from(std::string_view reader_host, const Announcement& announcement,
                                   const Address& address);
// Whether only the counter differs.
NETIO_EXPORT bool have_same_content(const Announcement& one, const Announcement& other);

} // namespace netio::pubsub::inline v0_3
