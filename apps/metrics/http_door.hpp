// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/host_addresses.hpp"
#include "apps/common/io.hpp"
#include "netio/base/time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

// One HTTP request and its answer, without a socket. The size of a request is limited; all clients
// that ask at the same time share one answer.

struct HttpAnswer {
    unsigned status = 200;
    std::string_view type = "text/plain"; // a literal
    std::shared_ptr<const std::string> text;
};

class HttpExchange {
  public:
    static constexpr std::size_t request_limit_bytes = 8192;

    // Takes received bytes. Answers immediately if they are not a request, too long, or not a GET.
    void take(std::string_view bytes);
    // The requested path; empty before the request is complete and after the answer.
    const std::string& path() const noexcept { return path_; }
    void answer(const HttpAnswer& answer);
    bool is_answered() const noexcept { return answered_; }
    // The part of the answer that has not been sent.
    std::string_view rest() const noexcept;
    void sent(std::size_t bytes) noexcept { sent_ += bytes; }

  private:
    void refuse(unsigned status);

    std::string request_;
    std::string path_;
    std::string head_;
    std::shared_ptr<const std::string> text_;
    std::size_t sent_ = 0;
    bool answered_ = false;
};

// A listening socket and its HTTP clients. Each client has a time limit for its request and one for
// its answer. If there are too many clients, the oldest is closed, so that slow clients cannot
// block others.

class HttpDoor {
  public:
    // Returns an answer for each path of the clients that ask at the same time.
    using Respond = std::function<std::vector<HttpAnswer>(std::span<const std::string> paths)>;

    struct Options {
        // Listens at the first address that this machine has; port 0: any free one.
        std::vector<SocketAddress> addresses;
        std::size_t place_limit = 16;
        std::chrono::milliseconds asking_limit{2000};
        std::chrono::milliseconds taking_limit{30'000};
    };

    // Throws std::runtime_error if it cannot listen there.
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
    std::deque<Visitor> visitors_; // in order of arrival
};

} // namespace apps
