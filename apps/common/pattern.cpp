// SPDX-License-Identifier: Apache-2.0
#include "apps/common/pattern.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

namespace apps {
namespace {

using netio::pubsub::Fid;
using netio::wire::load;
using netio::wire::store;

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

// For a short message only the bytes of the sequence number that it contains count.
constexpr std::uint64_t seed_of(Fid fid, std::uint64_t sequence, std::size_t size) noexcept {
    if (size < whole_pattern_bytes) sequence &= UINT32_MAX;
    return mix(mix(netio::pubsub::to_integer(fid) + odd) + sequence * odd + size);
}

std::uint32_t check_of(std::uint64_t seed) noexcept {
    return static_cast<std::uint32_t>(mix(seed));
}

void fill_body(std::span<std::byte> body, std::uint64_t seed) {
    std::byte* const out = body.data();
    const std::size_t words = body.size() / 8;
    for (std::size_t i = 0; i < words; ++i)
        store(out + i * 8, seed + (i + 1) * odd);
    const std::uint64_t last = seed + (words + 1) * odd;
    std::memcpy(out + words * 8, &last, body.size() % 8);
}

bool is_body(std::span<const std::byte> body, std::uint64_t seed) {
    const std::byte* const in = body.data();
    const std::size_t words = body.size() / 8;
    std::uint64_t differences = 0;
    for (std::size_t i = 0; i < words; ++i)
        differences |= load<std::uint64_t>(in + i * 8) ^ (seed + (i + 1) * odd);
    const std::uint64_t last = seed + (words + 1) * odd;
    return differences == 0 && std::memcmp(in + words * 8, &last, body.size() % 8) == 0;
}

void fill_whole(std::span<std::byte> message, Fid fid, std::uint64_t sequence) {
    const std::uint64_t seed = seed_of(fid, sequence, message.size());
    std::byte* const out = message.data();
    store(out, static_cast<std::uint32_t>(message.size()));
    store(out + 4, check_of(seed));
    store(out + 8, sequence);
    store(out + 16, fid);
    fill_body(message.subspan(whole_pattern_bytes), seed);
}

} // namespace

void fill_pattern(std::span<std::byte> message, Fid fid, std::uint64_t sequence) {
    NETIO_CHECK(message.size() >= smallest_pattern_bytes);
    if (message.size() >= whole_pattern_bytes) return fill_whole(message, fid, sequence);
    const std::uint64_t seed = seed_of(fid, sequence, message.size());
    store(message.data(), static_cast<std::uint32_t>(sequence));
    store(message.data() + 4, check_of(seed));
    fill_body(message.subspan(smallest_pattern_bytes), seed);
}

PatternCounts& PatternCounts::operator+=(const PatternCounts& other) {
    messages += other.messages;
    lost += other.lost;
    reordered += other.reordered;
    duplicates += other.duplicates;
    corrupt += other.corrupt;
    truncated += other.truncated;
    return *this;
}

void PatternChecker::check(Fid fid, std::span<const std::byte> message, std::uint32_t publisher) {
    Stream& stream = streams_[fid];
    ++stream.counts.messages;
    if (message.size() < whole_pattern_bytes) return check_short(stream, fid, message, publisher);
    const std::byte* const in = message.data();
    const std::size_t size = load<std::uint32_t>(in);
    const auto sequence = load<std::uint64_t>(in + 8);
    const std::uint64_t seed = seed_of(fid, sequence, size);
    if (size < whole_pattern_bytes || load<std::uint64_t>(in + 16) != to_integer(fid) ||
        load<std::uint32_t>(in + 4) != check_of(seed)) {
        ++stream.counts.corrupt;
        return;
    }
    place(stream, sequence, publisher);
    if (message.size() < size) {
        ++stream.counts.truncated;
    } else if (message.size() > size || !is_body(message.subspan(whole_pattern_bytes), seed)) {
        ++stream.counts.corrupt;
    }
}

void PatternChecker::check_short(Stream& stream, Fid fid, std::span<const std::byte> message,
                                 std::uint32_t publisher) {
    if (message.size() < smallest_pattern_bytes) {
        ++stream.counts.corrupt;
        return;
    }
    const auto low = load<std::uint32_t>(message.data());
    const std::uint64_t seed = seed_of(fid, low, message.size());
    if (load<std::uint32_t>(message.data() + 4) != check_of(seed)) {
        ++stream.counts.corrupt;
        return;
    }
    if (!is_body(message.subspan(smallest_pattern_bytes), seed)) ++stream.counts.corrupt;
    // The sequence number with these bytes that is nearest to the expected one.
    const std::uint64_t next = stream.of(publisher).next;
    const std::uint64_t ahead = static_cast<std::uint32_t>(low - next);
    const std::uint64_t behind = (std::uint64_t{1} << 32) - ahead;
    place(stream, ahead > INT32_MAX && next >= behind ? next - behind : next + ahead, publisher);
}

PatternChecker::Numbers& PatternChecker::Stream::of(std::uint32_t publisher) {
    if (now.publisher == publisher) return now;
    if (former.publisher != publisher) former = {.publisher = publisher};
    std::swap(now, former);
    return now;
}

// Classifies the message by its sequence number and the earlier ones.
void PatternChecker::place(Stream& stream, std::uint64_t sequence, std::uint32_t publisher) {
    if (!stream.first) stream.first = sequence;
    Numbers& numbers = stream.of(publisher);
    if (numbers.recent == 0) {
        numbers.begin = sequence;
        numbers.next = sequence + 1;
        numbers.recent = 1;
        return;
    }
    if (sequence >= numbers.next) {
        const std::uint64_t ahead = sequence - numbers.next;
        stream.counts.lost += ahead;
        numbers.recent = ahead + 1 >= window ? 1 : (numbers.recent << (ahead + 1)) | 1;
        numbers.next = sequence + 1;
        return;
    }
    const std::uint64_t age = numbers.next - 1 - sequence;
    const std::uint64_t bit = age < window ? std::uint64_t{1} << age : 0;
    if (bit == 0 || (numbers.recent & bit) != 0) {
        ++stream.counts.duplicates;
        return;
    }
    numbers.recent |= bit;
    ++stream.counts.reordered;
    // A message before the first one was never counted as lost.
    if (sequence > numbers.begin) --stream.counts.lost;
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
    return stream != nullptr ? stream->first : std::nullopt;
}

namespace {

template <typename... Cases>
struct Match : Cases... {
    using Cases::operator()...;
};
template <typename... Cases>
Match(Cases...) -> Match<Cases...>;

// Returns a number in (0, 1]. Written by hand, because the distributions of the standard library
// differ between implementations and a seed must give the same numbers everywhere.
double unit(std::mt19937_64& random) {
    return (static_cast<double>(random() >> 11) + 1.0) * 0x1p-53;
}

std::size_t clamp(double value, std::size_t min, std::size_t max) {
    if (!(value > static_cast<double>(min))) return min;
    if (value >= static_cast<double>(max)) return max;
    return static_cast<std::size_t>(std::llround(value));
}

} // namespace

std::size_t smallest(const Sizes& sizes) {
    return std::visit(Match{[](const FixedSize& size) { return size.bytes; },
                            [](const SizeList& list) { return std::ranges::min(list.bytes); },
                            [](const auto& range) { return range.min; }},
                      sizes);
}

std::size_t largest(const Sizes& sizes) {
    return std::visit(Match{[](const FixedSize& size) { return size.bytes; },
                            [](const SizeList& list) { return std::ranges::max(list.bytes); },
                            [](const auto& range) { return range.max; }},
                      sizes);
}

SizeSequence::SizeSequence(Sizes sizes, std::uint64_t seed)
    : sizes_{std::move(sizes)}, random_{seed} {}

std::size_t SizeSequence::next() {
    return std::visit(
        Match{[](const FixedSize& size) { return size.bytes; },
              [&](const UniformSize& range) {
                  return range.min +
                         static_cast<std::size_t>(random_() % (range.max - range.min + 1));
              },
              [&](const NormalSize& normal) {
                  const double radius = std::sqrt(-2.0 * std::log(unit(random_)));
                  const double angle = 2.0 * std::numbers::pi * unit(random_);
                  return clamp(normal.mean + normal.stddev * radius * std::cos(angle), normal.min,
                               normal.max);
              },
              [&](const ExponentialSize& exponential) {
                  return clamp(-exponential.mean * std::log(unit(random_)), exponential.min,
                               exponential.max);
              },
              [&](const SizeList& list) { return list.bytes[position_++ % list.bytes.size()]; }},
        sizes_);
}

} // namespace apps
