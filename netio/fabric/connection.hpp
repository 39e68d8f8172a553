// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connection over a libfabric MSG endpoint. It turns the provider's many ways of ending (error
// completions, shutdown events in either order, silence after a close) into the seam's one: every
// outstanding operation ends, then on_closed.
//
//     idle --open--> opening --FI_CONNECTED--> open
//       |               |                       |
//       +---------------+----- break_off / close+--> closing --queue settled--> closed
//
// In `closing` what had arrived is still delivered, nothing is posted any more. What arrives while
// a connector is still `opening` is kept until its user was told that it is connected.

#include "netio/fabric/answer_check.hpp"
#include "netio/fabric/byte_account.hpp"
#include "netio/fabric/endpoint.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/fabric/queue_seat.hpp"
#include "netio/transport.hpp"

#include <optional>
#include <vector>

namespace netio::fabric {

// Where an endpoint comes from, and what is known of its kernel socket, if it has one.
struct Origin {
    bool accepting = false;
    KernelSocket socket = {};
    int descriptor_guess = -1; // of a socket that has no name yet
};

class Connection final : public netio::Connection {
  public:
    Connection(Domain& domain, Info info, EndpointHandle endpoint, Origin origin,
               const QueueLimits& limits, Handler& handler);
    ~Connection() override;

    void open(std::span<const std::byte> data) override;
    Status post_send(std::span<const Slice> slices, Cookie cookie) override;
    Status post_receive(std::span<const Slice> slices, Cookie cookie) override;
    Status post_write(std::span<const Slice> slices, const RemoteSlice& target,
                      std::optional<std::uint32_t> immediate, Cookie cookie) override;
    bool reserve_receives(std::size_t receive_count) override;
    void close() override;
    const Capabilities& capabilities() const noexcept override { return endpoint_.capabilities(); }
    MemoryDomain& domain() noexcept override { return domain_; }
    TimePoint last_sign_of_life(Duration interval) override;
    std::string peer_address() const override { return endpoint_.peer_address(); }

    // From the queues.
    // To be connected, and not answered yet.
    bool is_attempt() const noexcept {
        return !accepting_ && (state_ == State::idle || state_ == State::opening);
    }
    // Before the provider may read: asks the gate, and the handler what it makes of an answer. May
    // destroy this connection, and then says no.
    bool provider_may_read();
    void complete(std::uint32_t operation, const Completion& completion);
    void complete_with_error(std::uint32_t operation, int error);
    // By a peer whose write consumed none of our receives.
    void complete_remote_write(const Completion& completion);
    // Nothing can be on its way any more for one that is about to end.
    bool is_settled() const noexcept;
    void on_event(const CmEvent& event);
    void on_event_error(const CmError& error);
    // Tells of the next operation that is given up, and behind the last one that it is closed:
    // true. May destroy this connection.
    bool finish_close();
    // Cuts off a peer that sends what nobody is told of; `all_told`: its queue is empty.
    void audit(bool all_told);
    // Something broke: no more posting; on_closed follows when the queue is settled.
    void break_off(CloseReason reason, std::string detail);

  private:
    enum class State : std::uint8_t { idle, opening, open, closing, closed };

    std::uint32_t begin(Completion::Kind kind, Cookie cookie);
    // A completion that came before the connection was established.
    struct Held {
        std::uint32_t operation; // OperationTable::none: a remote write that consumed no receive
        Completion completion;
    };
    struct BelowMessages {
        KernelSocket socket;
        ByteAccount account;
        int descriptor_guess = -1;
        bool probed = false;
        TimePoint last_acknowledged = TimePoint::min(); // since it was established
        std::uint32_t question = OperationTable::none;  // outstanding, ours alone
    };

    void guard_answer();
    void end_unanswered();
    bool is_unchecked() const noexcept {
        return limits_.checks_answer && !(gate_ && gate_->is_open());
    }

    OperationTable& operations() const noexcept { return seat_.queue().operations(); }
    // False: the handler destroyed this connection.
    bool establish(std::span<const std::byte> data);
    bool must_wait(const Held& held);
    Status posted(long result, std::uint32_t operation, const char* step);
    void close_endpoint() noexcept;
    void give_up_outstanding();
    void ask_for_sign_of_life();

    // An attempt's event queue that is for it alone, released with this object.
    class OwnEvents {
      public:
        OwnEvents(Fabric& fabric, bool wanted)
            : fabric_{fabric}, queue_{wanted ? &fabric.own_events() : nullptr} {}
        ~OwnEvents() {
            if (queue_ != nullptr) fabric_.release(*queue_);
        }
        OwnEvents(const OwnEvents&) = delete;
        OwnEvents& operator=(const OwnEvents&) = delete;
        EventQueue* get() const noexcept { return queue_; }

      private:
        Fabric& fabric_;
        EventQueue* queue_;
    };

    Domain& domain_;
    OwnEvents own_events_; // goes behind the endpoint that is bound to it
    EventQueue& events_;
    bool accepting_;
    QueueLimits limits_;
    Handler& handler_;
    QueueSeat seat_;
    Endpoint endpoint_; // goes before the queue it is bound to
    BelowMessages life_;
    State state_ = State::idle;
    std::uint32_t outstanding_ = OperationTable::none; // head of the list
    std::size_t sends_outstanding_ = 0;
    std::size_t receives_outstanding_ = 0;
    std::optional<AnswerCheck> gate_; // looks at life_.socket
    std::vector<Held> held_;
    std::vector<Completion> given_up_; // and not yet told; the next one last
    Closed closed_;
    bool* destroyed_ = nullptr;
};

} // namespace netio::fabric
