// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/time.hpp"
#include "stream/socket/stream_socket.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace apps::pump {

// Measurement: the time and the processor time of a part of this process's life.

// Of this process so far, user and system.
double processor_seconds();

class Measurement {
  public:
    void begin(netio::TimePoint now);
    // Until now. The last one counts.
    void end(netio::TimePoint now);
    bool is_running() const noexcept { return begin_ != netio::TimePoint{} && end_ == begin_; }

    double seconds() const;
    double processor_s() const noexcept { return processor_s_; }
    // Of a core.
    double processor_share() const { return seconds() > 0 ? processor_s_ / seconds() : 0; }

  private:
    netio::TimePoint begin_;
    netio::TimePoint end_;
    double processor_begin_ = 0;
    double processor_s_ = 0;
};

// What one end of a pump says in the end: a JSON object, which the server's end sends to the
// client's. No I/O.

struct Facts {
    bool is_client = false;
    std::string provider;
    std::string error; // empty: none
    std::uint64_t bytes = 0;
    bool verified = false;
    bool receives = false; // which decides whose share of direct bytes is told first
    Measurement measurement;
    netio::stream::StreamSocket::Counters counters;
    std::string peer_report; // at the client: what the server has sent
};

nlohmann::ordered_json to_report(const Facts& facts);
// Lines for people.
std::string as_text(const nlohmann::ordered_json& report);

// Of a report that a stranger may have written; what is missing or of another kind is nothing.
std::string text_in(const nlohmann::ordered_json& report, const char* name);
double number_in(const nlohmann::ordered_json& report, const char* name);
// What the peer's report says has gone wrong; empty: nothing.
std::string problem_in(const std::string& peer_report);

} // namespace apps::pump
