// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/protocol.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace apps::copy {
namespace {

constexpr std::uint32_t magic = 0x5950434E; // "NCPY"
constexpr std::uint16_t version = 1;
constexpr std::uint8_t overwrite_flag = 1;
constexpr std::uint32_t mode_limit = 0777;
constexpr std::int64_t second_ns = 1'000'000'000;

class Writer {
  public:
    explicit Writer(Kind kind) : message_(prelude_bytes) {
        netio::wire::store(message_.data(), magic);
        netio::wire::store(message_.data() + 4, version);
        netio::wire::store(message_.data() + 6, kind);
    }
    template <typename Integer>
    Writer& put(Integer value) {
        const std::size_t at = message_.size();
        message_.resize(at + sizeof value);
        netio::wire::store(message_.data() + at, value);
        return *this;
    }
    Writer& put(std::span<const std::byte> bytes) {
        message_.insert(message_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    // Writes the length, then the text.
    Writer& put(std::string_view text) {
        text = text.substr(0, text_limit_bytes);
        put(static_cast<std::uint16_t>(text.size()));
        return put(std::as_bytes(std::span{text}));
    }
    Message take() {
        const std::size_t body = message_.size() - prelude_bytes;
        NETIO_CHECK(body <= body_limit_bytes);
        netio::wire::store(message_.data() + 8, static_cast<std::uint32_t>(body));
        return std::move(message_);
    }

  private:
    Message message_;
};

// Reads values and remembers whether they were complete; missing values are zero.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_{bytes} {}

    template <typename Integer>
    Integer get() {
        Integer value{};
        if (const auto bytes = take(sizeof value); bytes.size() == sizeof value) {
            value = netio::wire::load<Integer>(bytes.data());
        }
        return value;
    }
    template <typename Bytes>
    void get(Bytes& out) {
        const auto bytes = take(out.size());
        std::ranges::copy(bytes, out.begin());
    }
    std::string get_text() {
        const auto size = get<std::uint16_t>();
        if (size > text_limit_bytes) good_ = false;
        const auto bytes = take(size);
        std::string text(bytes.size(), '\0');
        if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
        return text;
    }
    bool is_empty() const { return bytes_.empty(); }
    // Returns true if all values were complete and no bytes are left.
    bool is_complete() const { return good_ && bytes_.empty(); }

  private:
    std::span<const std::byte> take(std::size_t size) {
        if (size > bytes_.size()) good_ = false;
        if (!good_) return {};
        const auto taken = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return taken;
    }
    std::span<const std::byte> bytes_;
    bool good_ = true;
};

} // namespace

std::string_view to_string(Flaw flaw) {
    switch (flaw) {
    case Flaw::none:
        return "none";
    case Flaw::no_copy_protocol:
        return "does not use the copy protocol";
    case Flaw::other_version:
        return "uses another version of the copy protocol; this side uses version 1";
    case Flaw::unknown_kind:
        return "sent a message of an unknown kind";
    case Flaw::bad_length:
        return "sent a message of a wrong length";
    case Flaw::bad_value:
        return "sent a message with an invalid value";
    }
    return "unknown";
}

Offer offer_of(std::string_view text) {
    constexpr std::string_view begin = "takes ";
    Offer offer;
    if (!text.starts_with(begin)) return offer;
    text.remove_prefix(begin.size());
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(", "), text.size());
        const std::string_view word = text.substr(0, comma);
        if (word == "comparing") offer.comparing = true;
        if (word == "attributes") offer.attributes = true;
        if (word == "extents") offer.extents = true;
        text.remove_prefix(std::min(comma + 2, text.size()));
    }
    return offer;
}

Attributes attributes_of(const Open& open) noexcept {
    const std::int64_t rest = open.modified_ns % second_ns;
    return {.modified_s = open.modified_ns / second_ns - (rest < 0 ? 1 : 0),
            .modified_ns = static_cast<std::uint32_t>(rest < 0 ? rest + second_ns : rest),
            .mode = open.mode};
}

std::int64_t modified_ns_of(const Attributes& attributes) noexcept {
    constexpr std::int64_t most_s = std::numeric_limits<std::int64_t>::max() / second_ns - 1;
    if (attributes.modified_s > most_s) return std::numeric_limits<std::int64_t>::max();
    if (attributes.modified_s < -most_s) return std::numeric_limits<std::int64_t>::min();
    return attributes.modified_s * second_ns + attributes.modified_ns;
}

Message encode(const Open& open) {
    NETIO_CHECK(open.name.size() <= text_limit_bytes);
    return Writer{Kind::open}
        .put(open.size_bytes)
        .put(open.modified_ns)
        .put(open.mode)
        .put(open.checksum)
        .put(open.overwrite ? overwrite_flag : std::uint8_t{0})
        .put(std::string_view{open.name})
        .take();
}

Message encode(const Answer& answer) {
    return Writer{Kind::answer}
        .put(answer.offset_bytes)
        .put(std::span<const std::byte>{answer.digest})
        .put(answer.outcome)
        .put(std::string_view{answer.text})
        .take();
}

Message encode(const Start& start) {
    return Writer{Kind::start}.put(start.offset_bytes).take();
}

Message encode(const Comparing& comparing) {
    return Writer{Kind::comparing}.put(comparing.position).take();
}

Message encode(const Attributes& attributes) {
    return Writer{Kind::attributes}
        .put(attributes.modified_s)
        .put(attributes.modified_ns)
        .put(attributes.mode)
        .take();
}

Message encode(const SparseStart& start) {
    return Writer{Kind::sparse_start}.put(start.offset_bytes).put(start.data_bytes).take();
}

Message encode(const Extents& extents) {
    NETIO_CHECK(!extents.all.empty() && extents.all.size() <= extents_limit);
    Writer writer{Kind::extents};
    for (const Extent& each : extents.all)
        writer.put(each.position).put(each.bytes);
    return writer.take();
}

Message encode(const End& end) {
    return Writer{Kind::end}.put(std::span<const std::byte>{end.digest}).take();
}

Message encode(const Verdict& verdict) {
    return Writer{Kind::verdict}
        .put(static_cast<std::uint8_t>(verdict.kept))
        .put(std::string_view{verdict.text})
        .take();
}

void encode(const Chunk& chunk, std::span<std::byte, chunk_header_bytes> out) {
    netio::wire::store(out.data(), chunk.position);
    netio::wire::store(out.data() + 8, chunk.bytes);
    std::ranges::copy(chunk.digest, out.begin() + 16);
}

Flaw decode(std::span<const std::byte> prelude, Prelude& out) {
    if (prelude.size() != prelude_bytes) return Flaw::bad_length;
    if (netio::wire::load<std::uint32_t>(prelude.data()) != magic) {
        return Flaw::no_copy_protocol;
    }
    if (netio::wire::load<std::uint16_t>(prelude.data() + 4) != version) {
        return Flaw::other_version;
    }
    out.kind = netio::wire::load<Kind>(prelude.data() + 6);
    if (out.kind < Kind::open || out.kind > Kind::extents) return Flaw::unknown_kind;
    out.body_bytes = netio::wire::load<std::uint32_t>(prelude.data() + 8);
    if (out.body_bytes == 0 || out.body_bytes > body_limit_bytes) return Flaw::bad_length;
    if (netio::wire::load<std::uint32_t>(prelude.data() + 12) != 0) return Flaw::bad_value;
    return Flaw::none;
}

Flaw decode(std::span<const std::byte> body, Open& out) {
    Reader reader{body};
    out.size_bytes = reader.get<std::uint64_t>();
    out.modified_ns = reader.get<std::int64_t>();
    out.mode = reader.get<std::uint32_t>();
    out.checksum = reader.get<ChecksumKind>();
    const auto flags = reader.get<std::uint8_t>();
    out.overwrite = flags == overwrite_flag;
    out.name = reader.get_text();
    if (!reader.is_complete()) return Flaw::bad_length;
    const bool known_checksum =
        out.checksum == ChecksumKind::xxh3_128 || out.checksum == ChecksumKind::sha256;
    if (!known_checksum || (flags & ~overwrite_flag) != 0 || out.mode > mode_limit ||
        out.size_bytes > size_limit_bytes) {
        return Flaw::bad_value;
    }
    return Flaw::none;
}

Flaw decode(std::span<const std::byte> body, Answer& out) {
    Reader reader{body};
    out.offset_bytes = reader.get<std::uint64_t>();
    reader.get(out.digest);
    out.outcome = reader.get<Answer::Outcome>();
    out.text = reader.get_text();
    if (!reader.is_complete()) return Flaw::bad_length;
    const bool known =
        out.outcome >= Answer::Outcome::accepted && out.outcome <= Answer::Outcome::refused;
    return known && out.offset_bytes <= size_limit_bytes ? Flaw::none : Flaw::bad_value;
}

Flaw decode(std::span<const std::byte> body, Start& out) {
    Reader reader{body};
    out.offset_bytes = reader.get<std::uint64_t>();
    return reader.is_complete() ? Flaw::none : Flaw::bad_length;
}

Flaw decode(std::span<const std::byte> body, Comparing& out) {
    Reader reader{body};
    out.position = reader.get<std::uint64_t>();
    return reader.is_complete() ? Flaw::none : Flaw::bad_length;
}

Flaw decode(std::span<const std::byte> body, Attributes& out) {
    Reader reader{body};
    out.modified_s = reader.get<std::int64_t>();
    out.modified_ns = reader.get<std::uint32_t>();
    out.mode = reader.get<std::uint32_t>();
    if (!reader.is_complete()) return Flaw::bad_length;
    return out.modified_ns < second_ns && out.mode <= mode_limit ? Flaw::none : Flaw::bad_value;
}

Flaw decode(std::span<const std::byte> body, SparseStart& out) {
    Reader reader{body};
    out.offset_bytes = reader.get<std::uint64_t>();
    out.data_bytes = reader.get<std::uint64_t>();
    if (!reader.is_complete()) return Flaw::bad_length;
    return out.data_bytes <= size_limit_bytes ? Flaw::none : Flaw::bad_value;
}

Flaw decode(std::span<const std::byte> body, Extents& out) {
    out.all.clear();
    if (body.empty() || body.size() > extents_limit * 16) return Flaw::bad_length;
    Reader reader{body};
    std::uint64_t end = 0;
    while (!reader.is_empty()) {
        Extent extent;
        extent.position = reader.get<std::uint64_t>();
        extent.bytes = reader.get<std::uint64_t>();
        if (body.size() % 16 != 0) return Flaw::bad_length;
        const bool fits = extent.position >= end && extent.position <= size_limit_bytes &&
                          extent.bytes <= size_limit_bytes - extent.position;
        if (!fits || (extent.bytes == 0 && body.size() > 16)) return Flaw::bad_value;
        end = extent.end();
        out.all.push_back(extent);
    }
    return Flaw::none;
}

Flaw decode(std::span<const std::byte> body, End& out) {
    Reader reader{body};
    reader.get(out.digest);
    return reader.is_complete() ? Flaw::none : Flaw::bad_length;
}

Flaw decode(std::span<const std::byte> body, Verdict& out) {
    Reader reader{body};
    const auto kept = reader.get<std::uint8_t>();
    out.kept = kept == 1;
    out.text = reader.get_text();
    if (!reader.is_complete()) return Flaw::bad_length;
    return kept <= 1 ? Flaw::none : Flaw::bad_value;
}

Flaw decode(std::span<const std::byte> header, Chunk& out) {
    Reader reader{header};
    out.position = reader.get<std::uint64_t>();
    out.bytes = reader.get<std::uint64_t>();
    reader.get(out.digest);
    return reader.is_complete() ? Flaw::none : Flaw::bad_length;
}

} // namespace apps::copy
