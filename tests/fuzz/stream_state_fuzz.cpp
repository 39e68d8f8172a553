// SPDX-License-Identifier: Apache-2.0

// Sender and receiver of a stream, with a peer that sends arbitrary messages in any order: they end
// with a protocol error, or continue with a consistent state.

#include "stream/core/receiver.hpp"
#include "stream/core/sender.hpp"
#include "tests/fuzz/target.hpp"

#include <array>

namespace netio::fuzz::stream_state_fuzz {
namespace {

using namespace netio::stream;

constexpr std::uint64_t operation_limit = 50;

// The codec refuses longer memory, so that sums do not overflow.
std::uint64_t memory_bytes(Input& input) {
    return input.wild() >> 2;
}

class SenderSide {
  public:
    explicit SenderSide(std::uint64_t ring_bytes) : sender_{improved_sender(ring_bytes)} {}

    void step(Input& input) {
        switch (input.below(6)) {
        case 0:
            if (!finished_ && submitted_ < operation_limit)
                sender_.submit(SendId{submitted_++}, input.number(2));
            break;
        case 1:
            static_cast<void>(
                sender_.on_advert({.terms = {Sequence{input.wild()}, Phase{input.wild32()},
                                             memory_bytes(input), input.flag()},
                                   .address = 0,
                                   .key = 0}));
            break;
        case 2:
            static_cast<void>(sender_.on_ack(input.wild()));
            break;
        case 3:
            static_cast<void>(sender_.on_ring(memory_bytes(input)));
            break;
        case 4:
            if (!finished_ && input.below(8) == 0) {
                sender_.finish();
                finished_ = true;
            }
            break;
        default:
            transfer(input);
        }
        sender_.check_invariants();
    }

  private:
    void transfer(Input& input) {
        std::array<Piece, 4> pieces;
        while (const auto transfer = sender_.next_transfer(pieces)) {
            NETIO_CHECK(transfer->number == transfers_ && transfer->bytes > 0);
            NETIO_CHECK(transfer->piece_count > 0 && transfer->piece_count <= pieces.size());
            ++transfers_;
        }
        while (done_ < transfers_ && input.flag())
            sender_.on_transfer_done(done_++);
        while (const auto completed = sender_.next_completion())
            NETIO_CHECK(*completed == SendId{completed_++});
        static_cast<void>(sender_.next_fin());
    }

    Sender sender_;
    std::uint64_t submitted_ = 0;
    std::uint64_t transfers_ = 0;
    std::uint64_t done_ = 0;
    std::uint64_t completed_ = 0;
    bool finished_ = false;
};

class ReceiverSide {
  public:
    explicit ReceiverSide(bool small)
        : receiver_{improved_receiver(small ? 64 : 4096, small ? 256 : 65536)} {}

    void step(Input& input) {
        switch (input.below(6)) {
        case 0:
            if (posted_ < operation_limit)
                receiver_.post(ReceiveId{posted_++}, input.number(2), input.flag());
            break;
        case 1:
            static_cast<void>(
                receiver_.on_transfer(input.flag() ? TransferKind::direct : TransferKind::indirect,
                                      static_cast<std::uint32_t>(input.number(2)),
                                      {.waited = input.flag(), .first = input.flag()}));
            break;
        case 2:
            static_cast<void>(receiver_.on_fin(input.wild()));
            break;
        case 3:
            while (receiver_.next_advert()) {
            }
            break;
        case 4:
            answer_ring(input);
            break;
        default:
            take(input);
        }
        receiver_.check_invariants();
    }

  private:
    void answer_ring(Input& input) {
        if (!receiver_.wanted_ring()) return;
        switch (input.below(3)) {
        case 0:
            return receiver_.announce_ring();
        case 1:
            return receiver_.refuse_ring();
        default:
            return receiver_.postpone_ring();
        }
    }
    void take(Input& input) {
        if (receiver_.next_copy(1 + input.number(1))) receiver_.on_copied();
        static_cast<void>(receiver_.next_ack());
        if (input.flag()) static_cast<void>(receiver_.next_early_ack());
        static_cast<void>(receiver_.next_unused_ring());
        while (const auto completed = receiver_.next_completion())
            NETIO_CHECK(completed->id == ReceiveId{completed_++});
        NETIO_CHECK(completed_ <= posted_);
    }

    Receiver receiver_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
};

const Target stream_state{"stream_state", [](Bytes bytes) {
                              Input input{bytes};
                              SenderSide sender{1 + input.number(2)};
                              ReceiverSide receiver{input.flag()};
                              while (!input.empty()) {
                                  if (input.flag()) {
                                      sender.step(input);
                                  } else {
                                      receiver.step(input);
                                  }
                              }
                          }};

} // namespace
} // namespace netio::fuzz::stream_state_fuzz
