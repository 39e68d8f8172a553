// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connection over a libfabric MSG endpoint. Providers end connections in many ways (error
// completions, shutdown events in either order, no event after a close). This class turns them into
// the one of the transport interface: every outstanding operation ends, then on_closed.
//
//     idle --open--> opening --FI_CONNECTED--> open
//       |               |                       |
//       +---------------+----- break_off / close+--> closing --queue settled--> closed
//
// In `closing`, messages that had arrived are still delivered, and nothing is posted any more.
// Messages that arrive while a connector is still `opening` are kept until its user was notified of
// the connection.

#include "netio/fabric/domain.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/transport.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::fabric {

// --- the endpoint ----------------------------------------------------------------------------

// A libfabric MSG endpoint: the provider's calls, with the library's types. Connection keeps track
// of outstanding operations and interprets the results.
class Endpoint {
  public:
    // Opens an endpoint from an info of fi_getinfo (to connect) or of a connection request (to
    // accept). A request is used up only if this succeeds. Changes the info, which remains the
    // caller's. Throws FabricError.
    static EndpointHandle open(Domain& domain, ::fi_info& info, const QueueLimits& limits);

    Endpoint(Domain& domain, Info info, EndpointHandle handle);

    // Binds the endpoint to these queues; after that it may be used. Throws FabricError.
    void enable(::fid_eq& events, ::fid_cq& completions, const QueueLimits& limits);
    bool is_open() const noexcept { return handle_ != nullptr; }
    ::fid_ep& handle() const noexcept { return *handle_; }
    const Capabilities& capabilities() const noexcept { return capabilities_; }
    // The number of outstanding receives that the provider allows.
    std::size_t receive_limit() const noexcept { return info_->rx_attr->size; }
    std::string peer_address() const;
    const void* remote() const noexcept { return info_->dest_addr; }

    // These return libfabric's result: 0, or a negative error. `context` is the name of the
    // operation.
    int connect(std::span<const std::byte> data) noexcept;
    int accept(std::span<const std::byte> data) noexcept;
    long send(std::span<const Slice> slices, void* context);
    long receive(std::span<const Slice> slices, void* context);
    long write(std::span<const Slice> slices, const RemoteSlice& target,
               std::optional<std::uint32_t> immediate, void* context);
    // Writes zero bytes, which the peer's device acknowledges.
    long write_nothing(void* context) noexcept;

    // Called when the peer has answered, or the attempt has failed.
    void on_answer() noexcept { is_unanswered_ = false; }
    // Whether closing it now would wait for the answer, with iWARP (AbandonedEndpoint).
    bool waits_to_close() const noexcept {
        return is_unanswered_ && capabilities_.connector_speaks_first;
    }
    EndpointHandle release() noexcept { return std::move(handle_); }
    // `was_used`: the peer knows this endpoint and is notified.
    void close(bool was_used) noexcept;

  private:
    // The pieces of one post in libfabric's terms.
    struct Vectors {
        std::array<::iovec, 32> pieces;
        std::array<void*, 32> descriptors;
        std::size_t count = 0;
    };
    void gather(std::span<const Slice> slices, std::size_t limit, Vectors& vectors);

    Domain& domain_;
    Info info_;
    Capabilities capabilities_;
    EndpointHandle handle_;
    bool is_unanswered_ = false; // connect() or accept() was called
};

// --- the audit of received bytes -------------------------------------------------------------

// Compares the bytes that were read from a kernel socket with the messages that were reported.
// libfabric's tcp provider accepts some packets without reporting them, such as a write of no bytes
// that asks for an acknowledgement: it needs no credit, and each costs memory until the peer reads
// the acknowledgement (measured, libfabric 1.17: 344 bytes for 16; 2.6: 1,100 for 24). This library
// sends no such packets, so a peer that sends many of them is disconnected. A plain value.
class ReceivedByteAudit {
  public:
    // `receive_count`: receives that may be outstanding.
    explicit ReceivedByteAudit(std::size_t receive_count) noexcept
        : receive_count_{receive_count} {}

    // Changes the number of receives.
    void allow(std::size_t receive_count) noexcept { receive_count_ = receive_count; }

    // Notes the size of a posted receive: bytes that were read and not reported yet may fill it.
    void on_receive_posted(std::size_t bytes) noexcept { largest_ = std::max(largest_, bytes); }
    void on_message(std::size_t bytes) noexcept { messages_ += bytes + header_bytes; }

    // Whether `read_bytes` minus the reported messages are more than messages in flight can
    // explain: one message that is being read if `all_told`, else one for each receive.
    bool is_exceeded(std::uint64_t read_bytes, bool all_told) const noexcept {
        const std::size_t under_way = all_told ? 1 : receive_count_;
        return read_bytes > messages_ + under_way * (largest_ + header_bytes) + slack_bytes;
    }

  private:
    static constexpr std::size_t header_bytes = 16; // the provider's, of a message
    // Bytes that are permitted in addition: the connection data, and what the provider reads ahead.
    static constexpr std::size_t slack_bytes = 64 * 1024;

    std::size_t receive_count_;
    std::size_t largest_ = 0;
    std::uint64_t messages_ = 0;
};

// --- the connection --------------------------------------------------------------------------

// How an endpoint is created, and what is known of its kernel socket, if it has one.
struct Origin {
    bool accepting = false;
    KernelSocket socket = {};
    int descriptor_guess = -1; // of a socket that is not connected yet
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

    // For the queues. Whether it is connecting and not answered yet.
    bool is_attempt() const noexcept {
        return !accepting_ && (state_ == State::idle || state_ == State::opening);
    }
    // Whether the provider may read. Consults AnswerCheck, and lets the handler check an answer.
    // May destroy this connection, and then returns false.
    bool provider_may_read();
    void complete(std::uint32_t operation, const Completion& completion);
    void complete_with_error(std::uint32_t operation, int error);
    // For a write of the peer that used up no receive of this side.
    void complete_remote_write(const Completion& completion);
    // Whether no event can arrive any more for a connection that is about to end.
    bool is_settled() const noexcept;
    void on_event(const CmEvent& event);
    void on_event_error(const CmError& error);
    // Reports the next canceled operation; after the last one, reports the end and returns true.
    // May destroy this connection.
    bool finish_close();
    // Disconnects a peer that sends bytes which the provider does not report. `all_told`: the
    // completion queue is empty.
    void audit(bool all_told);
    // Ends the connection after a failure: no more posting; on_closed follows when the queue is
    // settled.
    void break_off(CloseReason reason, std::string detail);

  private:
    enum class State : std::uint8_t { idle, opening, open, closing, closed };

    std::uint32_t begin(Completion::Kind kind, Cookie cookie);
    // A completion that came before the connection was established.
    struct Held {
        std::uint32_t operation; // OperationTable::none: a remote write that used up no receive
        Completion completion;
    };
    struct BelowMessages {
        KernelSocket socket;
        ReceivedByteAudit account;
        int descriptor_guess = -1;
        bool probed = false;
        TimePoint last_acknowledged = TimePoint::min(); // since the connection was established
        std::uint32_t question = OperationTable::none;  // outstanding: zero bytes
    };

    void guard_answer();
    void end_unanswered();
    bool is_unchecked() const noexcept {
        return limits_.checks_answer && !(answer_check_ && answer_check_->is_open());
    }

    OperationTable& operations() const noexcept { return queue_ref_.queue().operations(); }
    // Returns false if the handler destroyed this connection.
    bool establish(std::span<const std::byte> data);
    bool must_wait(const Held& held);
    Status posted(long result, std::uint32_t operation, const char* step);
    void close_endpoint() noexcept;
    void give_up_outstanding();
    void probe_peer();

    // The event queue of a single attempt, released with this object.
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
    OwnEvents own_events_; // released after the endpoint that is bound to it
    EventQueue& events_;
    bool accepting_;
    QueueLimits limits_;
    Handler& handler_;
    ProviderQueueRef queue_ref_;
    Endpoint endpoint_; // closed before the queue that it is bound to
    BelowMessages life_;
    State state_ = State::idle;
    std::uint32_t outstanding_ = OperationTable::none; // head of the list
    std::size_t sends_outstanding_ = 0;
    std::size_t receives_outstanding_ = 0;
    std::optional<AnswerCheck> answer_check_; // reads life_.socket
    std::vector<Held> held_;
    std::vector<Completion> given_up_; // not reported yet; the next one last
    Closed closed_;
    bool* destroyed_ = nullptr;
};

} // namespace netio::fabric
