// SPDX-License-Identifier: Apache-2.0
#pragma once

// One direction of a pump: Source keeps sends outstanding until so many bytes are on their way,
// Sink receives until so many have arrived. Their owner hands them the socket's completions.

#include "apps/common/sizes.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace apps::pump {

struct Plan {
    std::uint64_t bytes = 0;
    std::uint64_t seed = 0;
    bool verify = false;
    std::size_t size_min = 1; // of a send, or of a receive
    std::size_t size_max = 1;
    std::size_t outstanding = 1;
    netio::stream::Fill fill = netio::stream::Fill::some; // of a receive
};

class Source {
  public:
    Source(netio::stream::StreamSocket& socket, const Plan& plan);

    // Sends as much as may be outstanding. Where it has to be filled first that takes several
    // calls; false: there is something to do at once, when others have had their turn.
    bool drive();
    void on_send_completed(netio::Cookie key);
    bool all_submitted() const noexcept { return submitted_ == plan_.bytes; }

  private:
    netio::stream::StreamSocket& socket_;
    Plan plan_;
    SizeSequence sizes_;
    netio::RegisteredBuffer memory_;
    std::vector<std::uint64_t> free_; // pieces of memory_
    std::uint64_t submitted_ = 0;
};

class Sink {
  public:
    Sink(netio::stream::StreamSocket& socket, const Plan& plan);

    void drive();
    void on_received(const netio::stream::Received& received);
    bool is_complete() const noexcept { return received_ == plan_.bytes; }
    std::uint64_t received_bytes() const noexcept { return received_; }
    // The position of the first byte that was not what it should be.
    std::optional<std::uint64_t> wrong_at() const noexcept { return wrong_at_; }

  private:
    netio::stream::StreamSocket& socket_;
    Plan plan_;
    SizeSequence sizes_;
    netio::RegisteredBuffer memory_;
    std::vector<std::uint64_t> free_;
    std::vector<std::uint64_t> asked_; // bytes, of each piece that is lent
    std::uint64_t asked_bytes_ = 0;    // of all of them
    std::uint64_t received_ = 0;
    std::optional<std::uint64_t> wrong_at_;
};

} // namespace apps::pump
