// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/time.hpp"
#include "netio/memory/buffer.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/recording/recording_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace apps::replay {

// Replaces fids: "5=7", or equally long ranges, "0-63=100-163". The first rule for a fid decides.
class FidReplacements {
  public:
    // Throws std::invalid_argument: "PROBLEM; allowed: ...".
    void add(std::string_view text);
    netio::Fid operator()(netio::Fid fid) const noexcept;
    // The fids that those of the range become.
    std::vector<netio::FidRange> operator()(const netio::FidRange& range) const;
    bool empty() const noexcept { return ranges_.empty(); }

  private:
    struct Range {
        netio::FidRange from;
        netio::Fid to;
    };
    std::vector<Range> ranges_;
};

struct ReplayMessage {
    netio::Fid fid{};
    std::uint8_t status = 0;
    bool has_time = false;    // the publisher had sent utc_ns
    std::int64_t utc_ns = 0;  // since 1970
    netio::Duration after{0}; // the first message; never less than the one before
    std::size_t offset = 0;   // in the block's memory
    std::size_t bytes = 0;
};

// Messages in registered memory.
struct Block {
    explicit Block(std::size_t bytes) : memory{bytes} {}

    netio::RegisteredBuffer memory;
    std::vector<ReplayMessage> messages;
};

// Reads a recording on its own thread, so that no disk and no decompression delays the loop. The
// thread fills at most read_ahead_limit_bytes of blocks. The event descriptor becomes readable when
// a block is ready, at the end, and on failure. Belongs to the loop's thread, as the blocks do
// while they are taken.
class ReadAhead {
  public:
    static constexpr std::size_t block_bytes = std::size_t{4} << 20; // a larger message has its own
    static constexpr std::size_t read_ahead_limit_bytes = std::size_t{64} << 20;

    struct Options {
        FidReplacements replacements;
        netio::FidSet fids; // after the replacement; other messages are skipped. Empty: all
        std::uint64_t repeat = 1;
    };
    // Throws std::system_error: the system grants no thread or no descriptor.
    ReadAhead(netio::RecordingReader reader, Options options);
    ~ReadAhead(); // waits until the thread has ended
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    // Returns null if no block is ready now, or has_ended().
    std::unique_ptr<Block> take();
    // The block's memory is used no longer.
    void give(std::unique_ptr<Block> block);
    // True after all blocks were taken and no more follow.
    bool has_ended() const;
    // Why the recording ended early; empty if it did not. Call after has_ended().
    std::string failure() const;
    // What the reader has found so far: torn ends, foreign messages. Call after has_ended().
    const netio::RecordingReader& reader() const;

    int event_descriptor() const noexcept;
    void clear_event() noexcept;

  private:
    class State;
    std::unique_ptr<State> state_;
};

} // namespace apps::replay
