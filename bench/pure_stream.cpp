// SPDX-License-Identifier: Apache-2.0

// The core of the stream protocol: both state machines; every transfer, advert and acknowledgement
// is passed to the other one immediately.

#include "stream/core/receiver.hpp"
#include "stream/core/sender.hpp"

#include <array>
#include <benchmark/benchmark.h>

namespace {

constexpr std::uint64_t ring_bytes = 1 << 20;

struct Stream {
    netio::stream::Sender sender{netio::stream::improved_sender(ring_bytes)};
    netio::stream::Receiver receiver{netio::stream::improved_receiver(ring_bytes)};

    void transfer() {
        std::array<netio::stream::Piece, 8> pieces;
        while (const auto transfer = sender.next_transfer(pieces)) {
            require(receiver.on_transfer(transfer->kind, transfer->bytes));
            sender.on_transfer_done(transfer->number);
            while (receiver.next_copy())
                receiver.on_copied();
            if (const auto total = receiver.next_ack()) require(sender.on_ack(*total));
        }
        while (sender.next_completion()) {
        }
        while (receiver.next_completion()) {
        }
    }
    void advertise() {
        while (const auto advert = receiver.next_advert())
            require(sender.on_advert({.terms = advert->terms, .address = 4096, .key = 1}));
    }

  private:
    static void require(netio::stream::ProtocolError error) {
        if (error != netio::stream::ProtocolError::none) std::abort();
    }
};

// Receives are posted first: every send goes directly into a receive.
void send_direct(benchmark::State& state) {
    const auto bytes = static_cast<std::uint64_t>(state.range(0));
    Stream stream;
    std::uint64_t number = 0;
    for ([[maybe_unused]] const auto step : state) {
        stream.receiver.post(netio::stream::ReceiveId{number}, bytes, false);
        stream.advertise();
        stream.sender.submit(netio::stream::SendId{number++}, bytes);
        stream.transfer();
    }
    state.SetItemsProcessed(state.iterations());
    state.counters["direct"] = static_cast<double>(stream.sender.counters().direct_transfers);
}
BENCHMARK(send_direct)->Arg(8192)->Arg(65536);

// Sends come first, and go through the ring.
void send_through_the_ring(benchmark::State& state) {
    const auto bytes = static_cast<std::uint64_t>(state.range(0));
    Stream stream;
    std::uint64_t number = 0;
    for ([[maybe_unused]] const auto step : state) {
        stream.sender.submit(netio::stream::SendId{number}, bytes);
        stream.transfer();
        stream.receiver.post(netio::stream::ReceiveId{number++}, bytes, true);
        stream.transfer();
    }
    state.SetItemsProcessed(state.iterations());
    state.counters["indirect"] = static_cast<double>(stream.sender.counters().indirect_transfers);
}
BENCHMARK(send_through_the_ring)->Arg(64)->Arg(65536);

} // namespace
