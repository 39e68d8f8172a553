// SPDX-License-Identifier: Apache-2.0
#pragma once

// World: one complete direction of a stream: a sending user, a Sender, two ordered channels, a
// Receiver, a receiving user, and an oracle that knows the right place of every byte.
//
// A World is a value: a copy is a separate history, and fingerprint() shows whether two histories
// reached the same state. Scripted scenarios call the actions one by one; the explorer
// (explore.hpp) tries all of them. The oracle observes the state machines from outside and stores
// the first violation. A write lands when it is posted, the earliest moment that a network allows.

#include "stream/core/receiver.hpp"
#include "stream/core/sender.hpp"
#include "tests/model/action.hpp"
#include "tests/model/describe.hpp"
#include "tests/model/ring_memory.hpp"
#include "tests/model/world_options.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netio::stream {

class World {
  public:
    // `options` outlives the world and its copies.
    explicit World(const WorldOptions& options)
        : options_{&options}, sender_{options.sender}, receiver_{options.receiver},
          rings_{options.receiver.ring_bytes} {}

    // --- Actions ---

    void submit(std::uint64_t bytes) {
        sender_.submit(SendId{submitted_count_++}, bytes);
        submitted_ += bytes;
        if (options_->eager) pump_all();
    }
    void finish() {
        sender_.finish();
        finished_ = true;
        if (options_->eager) pump_all();
    }
    // Posts one transfer, or the end of the stream. Returns false if there was nothing to post.
    bool pump();
    void pump_all() {
        while (violation_.empty() && pump()) {
        }
    }
    void transfer_done() { finish_write(done_number_++); }
    void deliver_control();
    void post(std::uint64_t bytes, bool wait_all) {
        receives_.push_back(OpenReceive{bytes, 0, wait_all});
        receiver_.post(ReceiveId{first_receive_ + receives_.size() - 1}, bytes, wait_all);
        settle_receiver();
    }
    void deliver_data();
    // Copies one contiguous part out of the ring, at most `limit_bytes`.
    void copy(std::uint64_t limit_bytes = unlimited_bytes);
    // Sends one control message. Returns false if there was nothing to send.
    bool tell();
    void tell_all() {
        while (violation_.empty() && tell()) {
        }
    }

    std::vector<Action> enabled() const;
    void apply(const Action& action);

    // --- Observation ---

    const std::string& violation() const { return violation_; }
    bool is_complete() const {
        return finished_ && data_.empty() && control_.empty() && receiver_.is_finished() &&
               delivered_ == submitted_ && completed_sends_ == submitted_count_ && rings_.is_tidy();
    }
    const Sender& sender() const { return sender_; }
    const Receiver& receiver() const { return receiver_; }
    template <class Sink>
    void describe(Sink&& sink) const;

    // The history, if enabled, in the notation of the publication's figures:
    //     A1;2;100;2       advert 1: sequence, bytes, phase
    //     D;A1;2;100;2     direct transfer into advert 1: sequence, bytes, phase of the sender
    //     I1;0;2;1@0       indirect transfer 1: the same, and where in the ring
    //     ACK=100          total of ring bytes copied out
    //     R1=2             the first receive completes with 2 bytes
    void keep_log() { log_.emplace(); }
    std::vector<std::string> take_log() { return std::exchange(*log_, {}); }
    std::size_t data_in_flight() const { return data_.size(); }
    std::size_t control_in_flight() const { return control_.size(); }
    std::uint64_t unfinished_writes() const { return posted_number_ - done_number_; }

  private:
    struct Arrival {
        Transfer transfer{};
        Phase phase{}; // of the sender, for the oracle
        bool is_end = false;
        std::uint64_t end_bytes = 0;
    };
    struct Control {
        std::vector<Advert> adverts;
        std::optional<std::uint64_t> acknowledged_bytes;
        std::uint64_t ring_bytes = 0; // 0: no announcement of a ring
    };
    struct OpenReceive {
        std::uint64_t bytes;
        std::uint64_t filled;
        bool wait_all;
    };
    // Stands for memory addresses: the number of a receive in the high bits, the offset in the low
    // ones.
    static constexpr unsigned offset_bits = 20;

    void violate(std::string what) {
        if (violation_.empty()) violation_ = std::move(what);
    }
    void expect(bool condition, const char* what) {
        if (!condition) violate(what);
    }
    void expect_good(const char* complaint) {
        if (complaint != nullptr) violate(complaint);
    }
    void expect_none(ProtocolError error) {
        if (error != ProtocolError::none)
            violate("protocol error: " + std::string{to_string(error)});
    }
    // name;sequence;bytes;phase, as in the figures of the publication
    void log(const std::string& name, Sequence sequence, std::uint64_t bytes, Phase phase,
             const std::string& place = "") {
        if (!log_) return;
        log_->push_back(name + ";" + std::to_string(sequence.value()) + ";" +
                        std::to_string(bytes) + ";" + std::to_string(phase.value()) + place);
    }
    void log(const std::string& what, std::uint64_t number) {
        if (log_) log_->push_back(what + std::to_string(number));
    }
    void finish_write(std::uint64_t number);
    void land(const Transfer& transfer);
    void arrive_direct(const Transfer& transfer, Phase phase, bool more);
    void arrive_indirect(const Transfer& transfer);
    void take(const Transfer& transfer, bool more, std::uint64_t offset);
    void settle_receiver();
    bool tell_of_ring();
    void check_efficiency();

    const WorldOptions* options_;
    Sender sender_;
    Receiver receiver_;
    Fifo<Arrival> data_;
    Fifo<Control> control_;
    // The state of the oracle
    RingMemory rings_;
    Fifo<OpenReceive> receives_;
    std::uint64_t first_receive_ = 0; // number of the first of receives_
    std::uint64_t submitted_ = 0;
    std::uint64_t submitted_count_ = 0;
    std::uint64_t completed_sends_ = 0;
    std::uint64_t done_number_ = 0;
    std::uint64_t posted_number_ = 0;
    std::uint64_t delivered_ = 0;
    bool finished_ = false;
    std::uint64_t advert_count_ = 0;   // for the log
    std::uint64_t indirect_count_ = 0; // for the log
    std::string violation_;
    std::optional<std::vector<std::string>> log_;
};

template <class Sink>
void World::describe(Sink&& sink) const {
    Describe::state(sender_, sink);
    Describe::state(receiver_, sink);
    sink(data_.size());
    for (std::size_t i = 0; i < data_.size(); ++i) {
        const Arrival& arrival = data_[i];
        sink(std::uint64_t{arrival.transfer.bytes} << 2U | (arrival.is_end ? 2U : 0U) |
             (arrival.transfer.kind == TransferKind::direct ? 1U : 0U));
        sink(arrival.transfer.address);
        sink(arrival.phase.value() << 2U | (arrival.transfer.notice.waited ? 2U : 0U) |
             (arrival.transfer.notice.first ? 1U : 0U));
    }
    sink(control_.size());
    for (std::size_t i = 0; i < control_.size(); ++i) {
        const Control& control = control_[i];
        sink(control.acknowledged_bytes.value_or(unlimited_bytes));
        sink(control.ring_bytes);
        sink(control.adverts.size());
        for (const Advert& advert : control.adverts) {
            sink(advert.terms.sequence.value());
            sink(advert.terms.phase.value());
            sink(advert.address << 1U | (advert.terms.wait_all ? 1U : 0U));
            sink(advert.terms.bytes);
        }
    }
    sink(first_receive_);
    sink(submitted_count_);
    sink(completed_sends_);
    sink(finished_ ? 1U : 0U);
}

} // namespace netio::stream
