// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ranges of fids that come one after another, for one line of a log: the first ones, and how many
// more. No I/O.

#include "apps/common/fid_spec.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace apps {

class RangeLine {
  public:
    static constexpr std::size_t shown_ranges = 4;

    // Shows fids by its fields from now on; null: as numbers.
    void decode_by(const netio::pubsub::FidLayout* layout) noexcept { layout_ = layout; }
    void add(const netio::pubsub::FidRange& range) {
        if (count_ < shown_ranges) text_ += (count_ > 0 ? ", " : "") + shown(range, layout_);
        ++count_;
    }
    bool empty() const noexcept { return count_ == 0; }
    // What was added since the last one.
    std::string take() {
        std::string line = std::exchange(text_, {});
        const std::size_t count = std::exchange(count_, 0);
        if (count > shown_ranges)
            line += " and " + std::to_string(count - shown_ranges) + " more ranges";
        return line;
    }

  private:
    const netio::pubsub::FidLayout* layout_ = nullptr;
    std::string text_;
    std::size_t count_ = 0;
};

} // namespace apps
