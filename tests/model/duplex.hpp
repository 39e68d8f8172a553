// SPDX-License-Identifier: Apache-2.0
#pragma once

// Duplex: two endpoints with real memory, both directions at once, over the wire codec and with
// credits: everything that a stream socket does except networking. One seed determines the options,
// the sizes, the likelihood of each action (some have 0, "swarm" testing), and then every step. A
// write lands when it is posted or when it arrives, at random, because a network may do either.

#include "netio/session/send_window.hpp"
#include "stream/core/receiver.hpp"
#include "stream/core/sender.hpp"
#include "stream/core/wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace netio::stream {

class Chance {
  public:
    explicit Chance(std::uint64_t seed) : engine_{seed} {}

    std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : engine_() % limit; }
    std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        return low + below(high - low + 1);
    }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
    template <class T>
    T one_of(std::initializer_list<T> choices) {
        return *(choices.begin() + below(choices.size()));
    }

  private:
    std::mt19937_64 engine_;
};

// The options of one direction, as both sides would agree on them.
struct Direction {
    SenderOptions sender{};
    ReceiverOptions receiver{};
};
Direction random_direction(Chance& chance);

class Duplex {
  public:
    // Both directions begin with this phase, which is even.
    explicit Duplex(std::uint64_t seed, Phase first_phase = {});

    // Runs until both directions have ended and everything has arrived. Returns the first error, or
    // "".
    std::string run();
    const Sender& sender(std::size_t side) const { return sides_[side].sender; }

  private:
    enum class Act : std::uint8_t {
        submit,
        post,
        pump,
        done,
        deliver,
        begin_copy,
        end_copy,
        tell,
        count,
    };

    struct Landing {
        bool in_ring = false;
        std::size_t ring = 0; // number of it
        ReceiveId receive{};
        std::uint64_t offset = 0;
        std::vector<std::uint8_t> bytes;
    };
    struct Message {
        bool is_write = false;
        std::uint32_t immediate = 0; // value of a write, or of the notice after it
        std::uint32_t credits = 0;
        std::vector<std::byte> bytes;     // of a control message
        std::uint64_t ring_bytes = 0;     // of the announced larger ring; 0: no announcement
        std::optional<Landing> landing;   // at arrival
        std::optional<FrameNotice> frame; // R16: its bytes are in `content`
        std::vector<std::uint8_t> content;
    };
    // A transfer that travels in frames, until the last of them is posted.
    struct Unsent {
        Transfer transfer;
        std::vector<std::uint8_t> bytes;
        std::size_t sent = 0;
    };
    struct Receive {
        ReceiveId id;
        std::vector<std::uint8_t> memory;
    };
    struct Side {
        Side(const Direction& out, const Direction& in, const netio::CreditOptions& credit_options,
             bool sends_notices);

        Sender sender;
        Receiver receiver;
        netio::Credits credits;
        bool notices;                  // instead of immediate data
        std::uint64_t frame_bytes = 0; // limit of a frame; 0: the peer allows remote writes
        std::optional<Unsent> unsent;
        std::uint32_t receive_count;
        std::uint64_t content_seed;
        std::vector<std::vector<std::uint8_t>> rings; // released rings are empty
        std::size_t peer_ring = 0;                    // number of the ring that this side writes to
        std::deque<Receive> receives;
        std::map<SendId, std::uint64_t> send_begins;
        std::vector<std::uint64_t> writes; // posted, not completed
        std::deque<Message> inbox;
        std::optional<Copy> copy;
        std::uint64_t bytes_left = 0;
        std::uint64_t submitted = 0;
        std::uint64_t next_send = 0;
        std::uint64_t next_receive = 0;
        std::uint64_t received = 0;
        std::uint64_t open_receive_limit = 1;
        std::uint64_t longest_send = 1;
        std::uint64_t longest_receive = 1;
        bool finished = false;
        bool is_complete = false; // the stream of the peer has ended here
    };

    void act(std::size_t index, Act act);
    void submit(Side& side);
    void post(Side& side);
    void pump(std::size_t index);
    void write(std::size_t index, const Transfer& transfer, std::vector<std::uint8_t> bytes);
    void send_frame(std::size_t index);
    void done(Side& side);
    void deliver(std::size_t index);
    void end_copy(Side& side);
    void tell(std::size_t index);
    bool tell_of_ring(std::size_t index);
    void settle(std::size_t index);
    void send(std::size_t from, Message message);
    void land(Side& side, const Landing& landing);
    void arrive(Side& side, const Message& message);
    void take_frame(Side& side, const Message& message);
    void take_control(Side& side, const Message& message);
    void violate(const std::string& what) {
        if (violation_.empty()) violation_ = what;
    }
    void expect(bool condition, const char* what) {
        if (!condition) violate(what);
    }
    void expect_none(ProtocolError error) {
        if (error != ProtocolError::none)
            violate("protocol error: " + std::string{to_string(error)});
    }
    static std::uint8_t content(std::uint64_t seed, std::uint64_t position);

    Chance chance_;
    std::vector<Side> sides_;
    std::string violation_;
};

} // namespace netio::stream
