// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a descriptor on a thread of its own, so that a loop never waits for a terminal, a pipe or a
// disk. The thread reads at most one piece ahead. The event descriptor becomes readable when there
// is a piece, at the end, and at a failure.
//
// Belongs to one thread. Its destructor does not wait for a read that blocks.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace apps {

class BackgroundReader {
  public:
    static constexpr std::size_t piece_bytes = std::size_t{64} << 10;

    // `place` begins the text of a failure. Throws std::system_error: the system grants no thread
    // or no descriptor.
    BackgroundReader(int descriptor, std::string place);
    ~BackgroundReader();
    BackgroundReader(const BackgroundReader&) = delete;
    BackgroundReader& operator=(const BackgroundReader&) = delete;

    // The next piece, valid until the next call. Empty: nothing has been read yet, or has_ended().
    std::span<const std::byte> take();
    // All pieces were taken, and no more come.
    bool has_ended() const;
    // Why the input ended early; empty: it did not.
    std::string failure() const;

    int event_descriptor() const noexcept;
    void clear_event() noexcept;

  private:
    struct Shared; // with the thread, which may outlive this
    std::shared_ptr<Shared> shared_;
};

} // namespace apps
