// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two ends of a simulated connection; private to the simulator.

#include "tests/support/sim_transport.hpp"

#include <deque>
#include <variant>

namespace netio::test {

class SimConnection final : public Connection, public EventSource {
  public:
    // Connecting, if there is a remote; otherwise accepting a request of `peer`.
    SimConnection(SimTransport& transport, std::optional<Address> remote, std::uint64_t peer,
                  const QueueLimits& limits, Handler& handler);
    ~SimConnection() override;

    void open(std::span<const std::byte> data) override;
    Status post_send(std::span<const Slice> slices, Cookie cookie) override;
    Status post_receive(std::span<const Slice> slices, Cookie cookie) override;
    Status post_write(std::span<const Slice> slices, const RemoteSlice& target,
                      std::optional<std::uint32_t> immediate, Cookie cookie) override;
    void close() override;
    const Capabilities& capabilities() const noexcept override {
        return transport_.profile_.capabilities;
    }
    MemoryDomain& domain() noexcept override;
    TimePoint last_sign_of_life(Duration interval) override;
    std::string peer_address() const override;

    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override { return inbox_.empty(); }

    std::uint64_t number() const noexcept { return number_; }

  private:
    friend class SimTransport;
    friend class SimListener;

    enum class State : std::uint8_t { made, opening, established, ending, ended };
    using Bytes = std::vector<std::byte>;
    // Something that is on its way to this end, or has to be told to the handler.
    struct Connected {
        Bytes data;
    };
    struct Rejected {
        Bytes data;
    };
    using Event = std::variant<Connected, Rejected, Completion, Closed>;
    // A send or write until the handler has been told of its completion.
    struct Outstanding {
        Completion::Kind kind = Completion::Kind::send;
        std::vector<Slice> slices;
        Bytes copy; // of what was lent, to see whether it is changed too early
        bool completed = false;
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
    void depart(std::function<void(SimConnection&)> event);
    void release();
    void take_message(const Bytes& bytes);
    void take_write(const Bytes& bytes, const RemoteSlice& target,
                    std::optional<std::uint32_t> immediate);
    std::optional<Cookie> take_receive(std::size_t bytes, const Bytes* content);

    SimTransport& transport_;
    std::uint64_t number_;
    std::uint64_t peer_;
    std::optional<Address> remote_;
    QueueLimits limits_;
    Handler& handler_;
    State state_ = State::made;
    bool received_ = false; // something from the peer
    bool closed_here_ = false;
    std::size_t posted_count_ = 0; // sends and writes so far
    std::size_t receives_outstanding_ = 0;
    std::optional<TimePoint> cut_;
    bool held_ = false;
    std::deque<std::function<void(SimConnection&)>> waiting_; // while held
    TimePoint last_arrival_;                                  // of what this end has sent
    std::deque<std::pair<Cookie, std::vector<Slice>>> receives_;
    std::map<Cookie, Outstanding> outgoing_; // until the handler was told
    std::deque<Event> inbox_;
    bool* destroyed_ = nullptr;
};

class SimListener final : public Listener, public EventSource {
  public:
    SimListener(SimTransport& transport, Address address, std::string provider,
                Listener::Handler& handler);
    ~SimListener() override;

    Address address() const override { return address_; }
    const std::string& provider() const noexcept override { return provider_; }
    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override { return requests_.empty(); }

    void request(std::uint64_t connection, std::vector<std::byte> data);

  private:
    class Request;

    SimTransport& transport_;
    Address address_;
    std::string provider_;
    Listener::Handler& handler_;
    std::deque<std::pair<std::uint64_t, std::vector<std::byte>>> requests_;
    bool* destroyed_ = nullptr;
};

} // namespace netio::test
