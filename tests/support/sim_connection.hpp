// SPDX-License-Identifier: Apache-2.0
#pragma once

// One end of a simulated connection; private to the simulator.

#include "tests/support/sim_transport.hpp"

#include <deque>
#include <variant>

namespace netio::test {

class SimConnection final : public Connection, public EventSource {
  public:
    // Connects if there is a remote; otherwise accepts a request of `peer`.
    SimConnection(SimTransport& transport, const SimProfile& profile, SimTransport::Domain& domain,
                  std::optional<Address> remote, std::uint64_t peer, const QueueLimits& limits,
                  Handler& handler);
    ~SimConnection() override;

    void open(std::span<const std::byte> data) override;
    Status post_send(std::span<const Slice> slices, Cookie cookie) override;
    Status post_receive(std::span<const Slice> slices, Cookie cookie) override;
    Status post_write(std::span<const Slice> slices, const RemoteSlice& target,
                      std::optional<std::uint32_t> immediate, Cookie cookie) override;
    bool reserve_receives(std::size_t receive_count) override;
    void close() override;
    const Capabilities& capabilities() const noexcept override { return profile_.capabilities; }
    MemoryDomain& domain() noexcept override;
    TimePoint last_sign_of_life(Duration interval) override;
    std::string peer_address() const override;

    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override { return inbox_.empty(); }

    std::uint32_t process() const noexcept { return transport_.number(); }
    const SimProfile& profile() const noexcept { return profile_; }
    // The result of a connection request that was not accepted.
    void turned_away(CloseReason how, const std::vector<std::byte>& data);
    // The process is killed. With `host`, its host vanishes too and the peers receive no
    // notification.
    void die(bool host);

  private:
    friend class SimNetwork;

    enum class State : std::uint8_t { made, opening, established, ending, ended };
    using Bytes = std::vector<std::byte>;
    // An event that is in transit to this end or waits for the handler.
    struct Connected {
        Bytes data;
    };
    struct Rejected {
        Bytes data;
    };
    using Event = std::variant<Connected, Rejected, Completion, Closed>;
    // A send or write whose completion the handler has not received yet.
    struct Outstanding {
        Completion::Kind kind = Completion::Kind::send;
        std::vector<Slice> slices;
        Bytes copy; // of the borrowed memory, to detect a change that is too early
        bool completed = false;
    };
    // Data that this end has sent and that a blocked path holds back.
    struct Stuck {
        std::size_t bytes = 0;
        std::function<void(SimConnection&)> event;
    };

    void tell(Event event);
    void hand_over(const Completion& completion);
    void end(Closed closed);
    void tell_peer_of_end();
    bool good_slices(std::span<const Slice> slices, bool for_receiving);
    Bytes collect(std::span<const Slice> slices) const;
    Status post_outgoing(std::span<const Slice> slices, Cookie cookie, Completion::Kind kind,
                         std::function<void(SimConnection&, const Bytes&)> at_peer);
    void complete_outgoing(Cookie cookie);
    void complete_later(Cookie cookie, Duration delay);
    void complete_left();
    // The event reaches the peer after everything that this end has sent before.
    void depart(std::size_t bytes, std::function<void(SimConnection&)> event);
    void depart_again();
    void travel(std::size_t bytes, std::function<void(SimConnection&)> event);
    void arrive(std::uint64_t from, std::function<void(SimConnection&)> event);
    void give_up_if_stuck(std::uint64_t since);
    void leave_stuck_behind();
    void release();
    void request(const Bytes& data);
    void accept(const Bytes& answer);
    // Since when the peer's host has not answered, or nullopt if it answers.
    std::optional<TimePoint> unanswered_since() const;
    void ask_device();
    void reset_later();
    void heard(TimePoint when) { last_heard_ = std::max(last_heard_, when); }
    TimePoint now() const { return network_.clock().now(); }
    TimePoint arrival(TimePoint not_before, Duration delay = {});
    void take_message(const Bytes& bytes);
    void take_write(const Bytes& bytes, const RemoteSlice& target,
                    std::optional<std::uint32_t> immediate);
    std::optional<Cookie> take_receive(std::size_t bytes, const Bytes* content);

    SimTransport& transport_;
    SimNetwork& network_;
    const SimProfile& profile_;
    SimTransport::Domain& domain_;
    std::uint64_t number_;
    std::uint64_t peer_;
    std::optional<Address> remote_;
    QueueLimits limits_;
    Handler& handler_;
    State state_ = State::made;
    bool received_ = false; // something from the peer
    bool closed_here_ = false;
    bool dead_ = false; // its process is dead
    bool held_ = false;
    std::size_t posted_count_ = 0; // sends and writes so far
    std::size_t receives_outstanding_ = 0;
    std::optional<TimePoint> cut_;
    std::deque<std::function<void(SimConnection&)>> waiting_; // while the end is held
    std::deque<Stuck> stuck_;
    std::uint64_t stuck_count_ = 0; // total so far
    TimePoint last_arrival_;        // of what this end has sent
    TimePoint last_heard_;          // from the peer's host or device
    std::optional<TimePoint> signs_wanted_since_;
    bool sign_asked_for_ = false;
    std::size_t unread_bytes_ = 0; // arrived, but not yet seen by its process
    std::deque<Cookie> not_left_;  // sends for which the peer's kernel has no space
    std::deque<std::pair<Cookie, std::vector<Slice>>> receives_;
    std::map<Cookie, Outstanding> outgoing_; // until the handler has received the completion
    std::deque<Event> inbox_;
    bool* destroyed_ = nullptr;
};

} // namespace netio::test
