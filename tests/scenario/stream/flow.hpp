// SPDX-License-Identifier: Apache-2.0
#pragma once

// Traffic that keeps a pair of streams busy, and the protocol variants that are tested with it.

#include "stream/core/wire.hpp"
#include "tests/scenario/stream/pair.hpp"

#include <random>
#include <vector>

namespace netio::stream::test {

// Keeps a stream busy in one direction: random sizes, a random number outstanding.
class Flow {
  public:
    Flow(netio::EventLoop& loop, Side& from, Side& to, std::uint64_t total, std::uint64_t seed)
        : loop_{loop}, from_{from}, to_{to}, total_{total}, random_{seed},
          longest_send_{between(1, 60'000)}, longest_receive_{between(1, 60'000)},
          sends_open_{between(1, 12)}, receives_open_{between(1, 12)}, delay_receives_{
                                                                           random_() % 2 == 0} {}

    void drive() {
        while (from_.sent < total_ && from_.sends - from_.sends_completed < sends_open_) {
            const auto bytes = std::min(total_ - from_.sent, between(1, longest_send_));
            ASSERT_EQ(from_.send(static_cast<std::size_t>(bytes)), Status::ok);
            if (from_.sent == total_) from_.socket->shutdown_send();
        }
        if (delay_receives_ && random_() % 4 != 0) {
            ASSERT_TRUE(loop_.post([] {})); // another turn
            return;
        }
        while (!to_.ended && to_.receives - to_.receives_completed < receives_open_) {
            const Fill fill = random_() % 2 == 0 ? Fill::all : Fill::some;
            if (to_.receive(static_cast<std::size_t>(between(1, longest_receive_)), fill) !=
                Status::ok) {
                return; // the peer is done, and so are we
            }
        }
    }
    bool is_done() const { return to_.received == total_ && to_.ended; }

  private:
    std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        return low + random_() % (high - low + 1);
    }
    netio::EventLoop& loop_;
    Side& from_;
    Side& to_;
    std::uint64_t total_;
    std::mt19937_64 random_;
    std::uint64_t longest_send_, longest_receive_, sends_open_, receives_open_;
    bool delay_receives_;
};

struct Variant {
    const char* name;
    StreamSocket::Options options;
    std::uint64_t total_bytes = 400'000;
};

inline std::vector<Variant> variants() {
    std::vector<Variant> all;
    all.push_back({"improved", {}});
    all.push_back({"small_ring", {.receiver = improved_receiver(5'000)}});
    all.push_back({"published", published_stream(100'000)});
    all.push_back({"published_with_a_ring_of_1_byte", published_stream(1), 300});
    StreamSocket::Options indirect{.receiver = improved_receiver(30'000)};
    indirect.sender.mode = indirect.receiver.mode = TransferMode::indirect_only;
    all.push_back({"indirect_only", indirect});
    StreamSocket::Options direct;
    direct.sender.mode = direct.receiver.mode = TransferMode::direct_only;
    direct.receiver.ring_bytes = 0;
    direct.receiver.ack_threshold_bytes = direct.receiver.advert_threshold_bytes = 0;
    all.push_back({"direct_only", direct});
    StreamSocket::Options notices{.receiver = improved_receiver(20'000)};
    notices.session.never_immediate = true;
    all.push_back({"notices", notices});
    StreamSocket::Options growing{.receiver = improved_receiver(1'000, 50'000)};
    growing.round_trip = std::chrono::hours{1}; // so that the distance limits the rate
    all.push_back({"growing_ring", growing});
    growing.session.never_immediate = true;
    growing.sender.mode = growing.receiver.mode = TransferMode::indirect_only;
    all.push_back({"growing_ring_notices", growing});
    StreamSocket::Options tight;
    tight.session.receive_count = 4;
    tight.session.send_count = 4;
    tight.copy_step_bytes = 1'000;
    tight.frame_bytes = control_limit_bytes;
    tight.frame_count = 4;
    all.push_back({"fewest_credits_and_slots", tight});
    StreamSocket::Options short_frames;
    short_frames.frame_bytes = 5'001;
    short_frames.sender.direct_threshold_bytes = short_frames.receiver.advert_threshold_bytes = 0;
    all.push_back({"short_frames", short_frames});
    return all;
}

} // namespace netio::stream::test
