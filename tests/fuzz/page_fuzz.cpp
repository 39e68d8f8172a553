// SPDX-License-Identifier: Apache-2.0

// Pages of both services: arbitrary bytes are read within their bounds, and written pages are read
// back.

#include "netio/coalescing/page.hpp"

#include "pubsub/core/wire.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <vector>

namespace netio::fuzz::page_fuzz {
namespace {

struct Message {
    pubsub::Fid fid{};
    std::uint8_t status = 0;
    std::size_t size = 0;

    friend bool operator==(const Message&, const Message&) = default;
};

void read_anything(Bytes bytes) {
    std::size_t messages = 0;
    std::size_t total = 0;
    pubsub::visit_page(bytes, [&](pubsub::Fid, Bytes message, std::uint8_t) {
        look_at(message);
        total += message.size();
        return ++messages % 100 != 0; // the visitor may stop
    });
    NETIO_CHECK(total <= bytes.size());
    total = 0;
    visit_page(bytes, [&](Bytes message) {
        look_at(message);
        total += message.size();
        return true;
    });
    NETIO_CHECK(total <= bytes.size());
}

void write_and_read(Input input) {
    std::vector<std::byte> memory(64 + input.below(512));
    pubsub::PageWriter writer{memory};
    std::vector<Message> written;
    while (!input.empty()) {
        const Message message{
            .fid = pubsub::Fid{input.below(3)}, .status = input.byte(), .size = input.byte()};
        std::byte* const place = writer.append(message.fid, message.status, message.size);
        if (place == nullptr) continue;
        std::fill_n(place, message.size, static_cast<std::byte>(message.size));
        written.push_back(message);
    }
    NETIO_CHECK(writer.used() <= memory.size() && writer.messages() == written.size());
    std::vector<Message> read;
    const Bytes page = Bytes{memory}.first(writer.used());
    NETIO_CHECK(pubsub::visit_page(page, [&](pubsub::Fid fid, Bytes bytes, std::uint8_t status) {
        for (const std::byte byte : bytes)
            NETIO_CHECK(byte == static_cast<std::byte>(bytes.size()));
        read.push_back({.fid = fid, .status = status, .size = bytes.size()});
        return true;
    }));
    NETIO_CHECK(read == written);
}

const Target page{"page", [](Bytes bytes) {
                      read_anything(bytes);
                      write_and_read(Input{bytes});
                  }};

} // namespace
} // namespace netio::fuzz::page_fuzz
