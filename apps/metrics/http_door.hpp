// SPDX-License-Identifier: Apache-2.0
#pragma once

// A listening socket, and those who ask there over HTTP. Each has so much time to ask and so much
// to take its answer, whatever it sends or takes meanwhile, and of more than there are places the
// one that has been there for the longest goes: nobody keeps anybody else out by being slow.

#include "apps/common/descriptor.hpp"
#include "apps/common/host_addresses.hpp"
#include "apps/metrics/http_exchange.hpp"
#include "netio/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace apps {

class HttpDoor {
  public:
    // What those are given who ask at the same time: an answer for each path.
    using Respond = std::function<std::vector<HttpAnswer>(std::span<const std::string> paths)>;

    struct Options {
        // The first that this machine has; port 0: any free one.
        std::vector<SocketAddress> addresses;
        std::size_t place_limit = 16;
        std::chrono::milliseconds asking_limit{2000};
        std::chrono::milliseconds taking_limit{30'000};
    };

    // Throws std::runtime_error: why it cannot be listened there.
    explicit HttpDoor(const Options& options);

    std::uint16_t port() const noexcept { return port_; }
    // Serves until stop().
    void run(const Respond& respond);
    // Any thread.
    void stop() noexcept;

  private:
    struct Visitor {
        Descriptor socket;
        netio::TimePoint until;
        HttpExchange exchange;
        bool is_gone = false;
    };

    void listen();
    int listen_at(const SocketAddress& address);
    int time_left() const;
    void look(bool somebody_is_new, std::span<const short> events);
    void take(Visitor& visitor) const;
    void respond(const Respond& respond);
    void send_to(Visitor& visitor) const;
    void let_in();

    Options options_;
    Descriptor listening_;
    Descriptor end_;
    std::uint16_t port_ = 0;
    std::deque<Visitor> visitors_; // in the order in which they came
};

} // namespace apps
