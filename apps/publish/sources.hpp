// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the messages of a test publisher come from.

#include "apps/publish/fault_plan.hpp"
#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace apps {

class Source {
  public:
    enum class Outcome : std::uint8_t {
        message,   // `bytes` of memory are the message
        ended,     // there are no more
        not_ready, // none now; wait_fd() becomes readable when it is worth trying
    };
    struct Result {
        Outcome outcome = Outcome::ended;
        std::size_t bytes = 0;
    };

    virtual ~Source() = default;
    // The next message, of memory.size() bytes unless the source ends within it; the same place
    // again until accept(). Throws std::system_error naming the file.
    virtual Result fill(std::span<std::byte> memory) = 0;
    // The message that was filled last has been published.
    virtual void accept() = 0;
    virtual int wait_fd() const noexcept { return -1; }
    // Of the next message, from zero: what an event's number is compared with.
    virtual std::uint64_t number() const noexcept = 0;
    // What a checker of all that was accepted finds.
    virtual FaultCounts faults() const { return {}; }
};

// Self-checking messages (apps/common/pattern.hpp); `timed` ones are stamped by who publishes them.
std::unique_ptr<Source> make_pattern_source(netio::pubsub::Fid fid, bool timed);
std::unique_ptr<Source> make_faulty_source(netio::pubsub::Fid fid, bool timed,
                                           const FaultConfig& faults, std::uint64_t seed);
// Opened at the first fill(). With `repeat` it begins again when it ends (an empty file ends).
std::unique_ptr<Source> make_file_source(std::string path, bool repeat);
// A descriptor that is not owned; ends with it.
std::unique_ptr<Source> make_pipe_source(int fd);

} // namespace apps
