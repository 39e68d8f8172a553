// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program that serves others says of peers that it could not accept. They may try again
// several times a second for as long as the shortage lasts, so the first is told at once, and from
// then on a line each interval says how many there were and what happened to the last. Nothing is
// left untold. Belongs to the loop's thread.

#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace apps {

class AcceptFailureLog {
  public:
    using Write = std::function<void(const std::string& line)>;
    static constexpr std::chrono::seconds interval{10};

    // Warnings of the program's log.
    explicit AcceptFailureLog(netio::EventLoop& loop);
    AcceptFailureLog(netio::EventLoop& loop, Write write);
    // Tells what has not been told.
    ~AcceptFailureLog();
    AcceptFailureLog(const AcceptFailureLog&) = delete;
    AcceptFailureLog& operator=(const AcceptFailureLog&) = delete;

    void note(const std::string& peer_address, const netio::FabricError& why);

  private:
    void tell();

    Write write_;
    std::uint64_t untold_ = 0;
    std::string last_;
    netio::Timer timer_; // armed: a line was written less than an interval ago
};

} // namespace apps
