// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/time.hpp"
#include "stream/socket/stream_socket.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace apps::pump {

// Measures the elapsed time and the processor time of a part of this process's run.

// Processor time of this process so far, user and system.
double processor_seconds();

class Measurement {
  public:
    void begin(netio::TimePoint now);
    // Ends the measurement; the last call counts.
    void end(netio::TimePoint now);
    bool is_running() const noexcept { return begin_ != netio::TimePoint{} && end_ == begin_; }

    double seconds() const;
    double processor_s() const noexcept { return processor_s_; }
    // Fraction of a core.
    double processor_share() const { return seconds() > 0 ? processor_s_ / seconds() : 0; }

  private:
    netio::TimePoint begin_;
    netio::TimePoint end_;
    double processor_begin_ = 0;
    double processor_s_ = 0;
};

// The final report of one end of a pump: a JSON object, which the server sends to the client. No
// I/O.

struct Facts {
    bool is_client = false;
    std::string provider;
    std::string error; // empty: none
    std::uint64_t bytes = 0;
    bool verified = false;
    bool receives = false; // decides whether the receiver's or the sender's fraction of direct
                           // bytes comes first
    Measurement measurement;
    netio::stream::StreamSocket::Counters counters;
    std::string peer_report; // at the client: the server's report
};

nlohmann::ordered_json to_report(const Facts& facts);
// Returns lines for people.
std::string as_text(const nlohmann::ordered_json& report);

// Returns a text from an untrusted report; empty if it is missing or not a text.
std::string text_in(const nlohmann::ordered_json& report, const char* name);
double number_in(const nlohmann::ordered_json& report, const char* name);
// Returns the error in the peer's report; empty if there is none.
std::string problem_in(const std::string& peer_report);

} // namespace apps::pump
