// SPDX-License-Identifier: Apache-2.0
#include "apps/common/pattern.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <cstring>

namespace apps {
namespace {

using netio::pubsub::Fid;
using netio::wire::load;
using netio::wire::store;

constexpr std::uint32_t magic = 0x5441504e; // "NPAT"
constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
constexpr std::uint64_t window = 64;

// Spreads every input bit over all output bits.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93;
    return value ^ (value >> 32);
}

constexpr std::uint64_t seed_of(Fid fid, std::uint64_t sequence, std::size_t size) noexcept {
    return mix(mix(netio::pubsub::to_integer(fid) + odd) + sequence * odd + size);
}

} // namespace

void fill_pattern(std::span<std::byte> message, Fid fid, std::uint64_t sequence) {
    NETIO_CHECK(message.size() >= smallest_pattern_bytes);
    const std::uint64_t seed = seed_of(fid, sequence, message.size());
    std::byte* out = message.data();
    store(out, magic);
    store(out + 4, static_cast<std::uint32_t>(seed));
    store(out + 8, sequence);
    store(out + 16, fid);
    out += smallest_pattern_bytes;
    const std::size_t body = message.size() - smallest_pattern_bytes;
    const std::size_t words = body / 8;
    for (std::size_t i = 0; i < words; ++i)
        store(out + i * 8, seed + (i + 1) * odd);
    const std::uint64_t last = seed + (words + 1) * odd;
    std::memcpy(out + words * 8, &last, body % 8);
}

PatternCounts& PatternCounts::operator+=(const PatternCounts& other) {
    messages += other.messages;
    lost += other.lost;
    reordered += other.reordered;
    duplicates += other.duplicates;
    corrupt += other.corrupt;
    return *this;
}

void PatternChecker::check(Fid fid, std::span<const std::byte> message) {
    Stream& stream = streams_[fid];
    ++stream.counts.messages;
    if (message.size() < smallest_pattern_bytes) {
        ++stream.counts.corrupt;
        return;
    }
    const std::byte* in = message.data();
    const auto sequence = load<std::uint64_t>(in + 8);
    const std::uint64_t seed = seed_of(fid, sequence, message.size());
    std::uint64_t differences = (load<std::uint32_t>(in) ^ magic) |
                                (load<std::uint32_t>(in + 4) ^ static_cast<std::uint32_t>(seed)) |
                                (load<std::uint64_t>(in + 16) ^ netio::pubsub::to_integer(fid));
    in += smallest_pattern_bytes;
    const std::size_t body = message.size() - smallest_pattern_bytes;
    const std::size_t words = body / 8;
    for (std::size_t i = 0; i < words; ++i)
        differences |= load<std::uint64_t>(in + i * 8) ^ (seed + (i + 1) * odd);
    const std::uint64_t last = seed + (words + 1) * odd;
    if (differences != 0 || std::memcmp(in + words * 8, &last, body % 8) != 0) {
        ++stream.counts.corrupt;
        return;
    }
    place(stream, sequence);
}

// What the sequence number says, given those that came before.
void PatternChecker::place(Stream& stream, std::uint64_t sequence) {
    if (!stream.started || stream.anew) {
        if (!stream.started) stream.first = sequence;
        stream.started = true;
        stream.anew = false;
        stream.begin = sequence;
        stream.next = sequence + 1;
        stream.recent = 1;
        return;
    }
    if (sequence >= stream.next) {
        const std::uint64_t ahead = sequence - stream.next;
        stream.counts.lost += ahead;
        stream.recent = ahead + 1 >= window ? 1 : (stream.recent << (ahead + 1)) | 1;
        stream.next = sequence + 1;
        return;
    }
    const std::uint64_t age = stream.next - 1 - sequence;
    const std::uint64_t bit = age < window ? std::uint64_t{1} << age : 0;
    if (bit == 0 || (stream.recent & bit) != 0) {
        ++stream.counts.duplicates;
        return;
    }
    stream.recent |= bit;
    ++stream.counts.reordered;
    // One from before the first was never counted as missing.
    if (sequence > stream.begin) --stream.counts.lost;
}

void PatternChecker::begin_anew(Fid fid) {
    if (Stream* const stream = streams_.find(fid)) stream->anew = true;
}

PatternCounts PatternChecker::total() const {
    PatternCounts total;
    streams_.for_each([&](Fid, const Stream& stream) { total += stream.counts; });
    return total;
}

PatternCounts PatternChecker::counts(Fid fid) const {
    const Stream* stream = streams_.find(fid);
    return stream != nullptr ? stream->counts : PatternCounts{};
}

std::optional<std::uint64_t> PatternChecker::first(Fid fid) const {
    const Stream* stream = streams_.find(fid);
    return stream != nullptr && stream->started ? std::optional{stream->first} : std::nullopt;
}

} // namespace apps
