// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages between the two sides of a copy on a byte stream (docs/wire-formats.md has every
// field). All numbers are little-endian. Every message has a prelude and a body; chunks, which
// follow the start message, have neither:
//
//     sender                        receiver
//     open    name, size, ...   ->
//                               <-  answer   accepted from an offset, present, or refused
//     comparing  so far         ->           now and then, while it reads what is there already
//     start   from an offset    ->
//     chunk   header, bytes     ->           until the size is reached; how long each is follows
//     ...                                    from the size and from where it began
//     attributes                ->           permissions and date, if the receiver takes them
//     end     checksum          ->
//                               <-  verdict  kept under its name, or why not; in case of failure
//                                            at any time after start
//     open    the next one      ->
//
//  prelude                                  chunk header
//   0       4         6      8       12      0          8       16            32
//  +-------+---------+------+-------+---+   +----------+-------+-------------+- - - -
//  | NCPY  | version | kind | bytes | 0 |   | position | bytes | XXH3-128 of | bytes
//  |       |  =1     |      | of body   |   |          | (u64) | the bytes   |
//  +-------+---------+------+-------+---+   +----------+-------+-------------+- - - -
//
// The checksum of `end` covers the whole file. The checksum of `answer` covers the first `offset`
// bytes that the receiver already has: a sender with other bytes there starts from 0. `present`
// means that a complete file of this size exists, and the sender compares. An interrupted sender
// just disconnects.
//
// A sparse file begins with sparse_start instead of start. Then `extents` messages announce the
// next data, and the chunks of these extents follow; the bytes in between are a hole. A hole of
// more than hole_step_bytes is announced in steps: an extents message with one extent of no bytes
// means that the hole continues up to its position, and the receiver does not answer.
//
//     sparse_start  offset, bytes of data  ->
//     extents       up to 64               ->
//     chunk, ...                           ->
//     extents, chunk, ..., end
//
// Comparing may take longer than a server waits for a silent sender, so the sender reports its
// progress. If the answer is `present` and the contents are the same, the sender may send its
// attributes, which the receiver applies and answers with a verdict.
//
// A sender sends the messages comparing, attributes, sparse_start and extents only to receivers
// that offer them in the text of their answer. Earlier versions neither send nor accept them.
//
// The decoders accept any bytes: they check every length and every value, and return a Flaw; `out`
// is valid only if the Flaw is `none`. No I/O.

#include "apps/copy/checksum.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace apps::copy {

// A part of a file.
struct Extent {
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;

    std::uint64_t end() const noexcept { return position + bytes; }
    friend bool operator==(const Extent&, const Extent&) = default;
};

inline constexpr std::size_t prelude_bytes = 16;
inline constexpr std::size_t body_limit_bytes = 2048;
inline constexpr std::size_t chunk_header_bytes = 32;
inline constexpr std::size_t chunk_bytes = std::size_t{1} << 20; // of all chunks except the last
inline constexpr std::size_t text_limit_bytes = 1024;
// Limited so that positions fit a file offset.
inline constexpr std::uint64_t size_limit_bytes = std::uint64_t{1} << 62;

enum class Kind : std::uint16_t {
    open = 1,
    answer = 2,
    start = 3,
    end = 4,
    verdict = 5,
    comparing = 6,
    attributes = 7,
    sparse_start = 8,
    extents = 9,
};
// The text of an answer other than refused: the messages that the receiver accepts beyond version
// 0.1.
inline constexpr std::string_view offer_text = "takes comparing, attributes, extents";
struct Offer {
    bool comparing = false;
    bool attributes = false;
    bool extents = false;
};
Offer offer_of(std::string_view text);

inline constexpr std::size_t extents_limit = 64; // per message
inline constexpr std::uint64_t hole_step_bytes = std::uint64_t{4} << 30;

enum class Flaw : std::uint8_t {
    none,
    no_copy_protocol, // wrong magic number
    other_version,
    unknown_kind,
    bad_length,
    bad_value,
};
std::string_view to_string(Flaw flaw);

struct Prelude {
    Kind kind{};
    std::uint32_t body_bytes = 0;
};

struct Open {
    std::string name; // the receiver checks the path (apps/copy/served_folder.hpp)
    std::uint64_t size_bytes = 0;
    std::int64_t modified_ns = 0; // since the epoch; clamped to the range
    std::uint32_t mode = 0;       // the permissions, at most 0777
    ChecksumKind checksum = ChecksumKind::xxh3_128;
    bool overwrite = false;

    friend bool operator==(const Open&, const Open&) = default;
};

struct Answer {
    enum class Outcome : std::uint8_t { accepted = 1, present = 2, refused = 3 };
    Outcome outcome = Outcome::refused;
    std::uint64_t offset_bytes = 0;
    Digest digest{};  // checksum of the bytes before the offset
    std::string text; // refused: the reason; otherwise offer_text

    friend bool operator==(const Answer&, const Answer&) = default;
};

struct Start {
    std::uint64_t offset_bytes = 0;

    friend bool operator==(const Start&, const Start&) = default;
};

// The bytes before the position have been read.
struct Comparing {
    std::uint64_t position = 0;

    friend bool operator==(const Comparing&, const Comparing&) = default;
};

// A file's date and permissions. The seconds may have any 64-bit value.
struct Attributes {
    std::int64_t modified_s = 0; // since the epoch
    std::uint32_t modified_ns = 0;
    std::uint32_t mode = 0; // the permissions, at most 0777

    friend bool operator==(const Attributes&, const Attributes&) = default;
};
// The attributes of a file whose sender does not send Attributes.
Attributes attributes_of(const Open& open) noexcept;
// Returns the nearest date that an Open can have.
std::int64_t modified_ns_of(const Attributes& attributes) noexcept;

struct SparseStart {
    std::uint64_t offset_bytes = 0;
    std::uint64_t data_bytes = 0; // approximate bytes that follow, and space needed on the disk

    friend bool operator==(const SparseStart&, const SparseStart&) = default;
};

// Ascending, without overlap, none of them empty; or a single empty extent, the end of a part of a
// hole.
struct Extents {
    std::vector<Extent> all;

    friend bool operator==(const Extents&, const Extents&) = default;
};

struct End {
    Digest digest{};

    friend bool operator==(const End&, const End&) = default;
};

struct Verdict {
    bool kept = false;
    std::string text; // the reason; for a kept file: attributes that could not be set

    friend bool operator==(const Verdict&, const Verdict&) = default;
};

struct Chunk {
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
    ChunkDigest digest{};

    friend bool operator==(const Chunk&, const Chunk&) = default;
};

// Complete messages, with prelude and body. Texts are cut at text_limit_bytes; a name must not be
// longer (checked).
using Message = std::vector<std::byte>;
Message encode(const Open& open);
Message encode(const Answer& answer);
Message encode(const Start& start);
Message encode(const Comparing& comparing);
Message encode(const Attributes& attributes);
Message encode(const SparseStart& start);
Message encode(const Extents& extents); // 1 to extents_limit (checked)
Message encode(const End& end);
Message encode(const Verdict& verdict);
void encode(const Chunk& chunk, std::span<std::byte, chunk_header_bytes> out);

Flaw decode(std::span<const std::byte> prelude, Prelude& out);
// Decode the bodies.
Flaw decode(std::span<const std::byte> body, Open& out);
Flaw decode(std::span<const std::byte> body, Answer& out);
Flaw decode(std::span<const std::byte> body, Start& out);
Flaw decode(std::span<const std::byte> body, Comparing& out);
Flaw decode(std::span<const std::byte> body, Attributes& out);
Flaw decode(std::span<const std::byte> body, SparseStart& out);
Flaw decode(std::span<const std::byte> body, Extents& out);
Flaw decode(std::span<const std::byte> body, End& out);
Flaw decode(std::span<const std::byte> body, Verdict& out);
Flaw decode(std::span<const std::byte> header, Chunk& out);

} // namespace apps::copy
