// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated listener; private to the simulator.

#include "tests/support/sim_transport.hpp"

#include <deque>
#include <vector>

namespace netio::test {

class SimListener final : public Listener, public EventSource {
  public:
    SimListener(SimTransport& transport, Address address, const SimProfile& profile,
                SimTransport::Domain& domain, Listener::Handler& handler);
    ~SimListener() override;

    Address address() const override { return address_; }
    const std::string& provider() const noexcept override { return profile_.capabilities.provider; }
    void prepare(RegisteredBuffer& buffer) override;
    int wait_fd() const noexcept override { return -1; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override { return requests_.empty(); }

    std::uint32_t process() const noexcept { return transport_.number(); }
    struct Asking {
        std::uint64_t connection = 0;
        std::vector<std::byte> data;
        Address dialled;
    };
    void request(Asking asking);
    // The process is killed. With `host`, its host vanishes too and the peers receive no
    // notification.
    void die(bool host);

  private:
    class Request;

    SimTransport& transport_;
    SimNetwork& network_;
    Address address_;
    const SimProfile& profile_;
    SimTransport::Domain& domain_;
    Listener::Handler& handler_;
    std::deque<Asking> requests_;
    Request* pending_ = nullptr; // currently in on_request
    bool* destroyed_ = nullptr;
};

} // namespace netio::test
