// SPDX-License-Identifier: Apache-2.0

// Fragments in any order and of any size: the message is complete, or it is refused.

#include "pubsub/core/wire.hpp"

#include "netio/coalescing/reassembly.hpp"
#include "tests/fuzz/target.hpp"

#include <vector>

namespace netio::fuzz::reassembly_fuzz {
namespace {

constexpr std::size_t largest_bytes = 4096;

// The expected complete message: the fragments in their order.
class Expected {
  public:
    void add(std::uint32_t offset, std::size_t size, std::byte value) {
        if (offset == 0) bytes_.clear();
        NETIO_CHECK(offset == bytes_.size());
        bytes_.resize(offset + size, value);
    }
    void check(Bytes message, std::uint32_t total) const {
        NETIO_CHECK(message.size() == total && total <= largest_bytes);
        NETIO_CHECK(std::vector<std::byte>(message.begin(), message.end()) == bytes_);
    }

  private:
    std::vector<std::byte> bytes_;
};

template <class Assembler, class MakePlace>
void assemble(Input input, MakePlace make_place) {
    Assembler assembler{largest_bytes};
    Expected expected;
    while (!input.empty()) {
        const auto place = make_place(input);
        const std::byte value{input.byte()};
        const std::vector<std::byte> bytes(input.below(5000), value);
        const auto outcome = assembler.take(place, bytes);
        if (outcome == Reassembly::Outcome::too_large ||
            outcome == Reassembly::Outcome::out_of_order) {
            assembler.abandon(); // as at the end of its session
            NETIO_CHECK(!assembler.in_progress());
            continue;
        }
        expected.add(place.offset, bytes.size(), value);
        const bool complete = outcome == Reassembly::Outcome::complete;
        NETIO_CHECK(assembler.in_progress() != complete);
        if (complete) expected.check(assembler.message(), place.total);
    }
}

const Target reassembly{"reassembly", [](Bytes bytes) {
                            assemble<Reassembly>(Input{bytes}, [](Input& input) {
                                const auto offset = static_cast<std::uint32_t>(input.number(2));
                                return FragmentPlace{.offset = offset, .total = input.wild32()};
                            });
                            assemble<pubsub::Reassembly>(Input{bytes}, [](Input& input) {
                                const auto offset = static_cast<std::uint32_t>(input.number(2));
                                return pubsub::FragmentExtension{.fid = pubsub::Fid{input.below(2)},
                                                                 .message_number =
                                                                     input.flag() ? 1U : 0U,
                                                                 .offset = offset,
                                                                 .total = input.wild32()};
                            });
                        }};

} // namespace
} // namespace netio::fuzz::reassembly_fuzz
