// SPDX-License-Identifier: Apache-2.0
#include "apps/top/screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace apps::top {
namespace {

// A share of the screen's lines for each, which needs so many: what one does not need the others
// get. Each gets at least one line while there are any.
std::vector<std::size_t> shares_of(const std::vector<std::size_t>& needed, std::size_t lines) {
    std::vector<std::size_t> shares(needed.size(), 0);
    for (bool any = true; any && lines > 0;) {
        any = false;
        for (std::size_t at = 0; at < needed.size() && lines > 0; ++at) {
            if (shares[at] == needed[at]) continue;
            ++shares[at];
            --lines;
            any = true;
        }
    }
    return shares;
}

class Drawing {
  public:
    Drawing(const std::vector<Look>& looks, const Window& window)
        : window_{window}, body_{window.height > 1 ? window.height - 1 : 0}, layout_{window.width} {
        for (const Look& look : looks) {
            parts_.push_back({.title = layout_.title(look), .rows = {}});
            for (const Row& row : look.rows)
                parts_.back().rows.push_back(layout_.line(row));
            rows_ += look.rows.size();
        }
    }

    Screen draw() {
        if (parts_.size() < body_) {
            draw_parts();
        } else {
            draw_flat();
        }
        if (window_.height > 0) add(status());
        return std::move(screen_);
    }

  private:
    struct Part {
        std::string title;
        std::vector<std::string> rows;
    };

    void add(const std::string& line) { screen_.lines.push_back(line.substr(0, window_.width)); }
    // One heading for all, and then each program with its share of the rows.
    void draw_parts() {
        std::vector<std::size_t> needed;
        for (const Part& part : parts_)
            needed.push_back(part.rows.size());
        const std::vector<std::size_t> shares = shares_of(needed, body_ - 1 - parts_.size());
        add(layout_.heading());
        screen_.page = body_;
        for (std::size_t at = 0; at < parts_.size(); ++at) {
            const auto& rows = parts_[at].rows;
            const std::size_t hidden = rows.size() - shares[at];
            const std::size_t first = std::min(window_.scroll, hidden);
            screen_.scroll_limit = std::max(screen_.scroll_limit, hidden);
            if (hidden > 0)
                screen_.page = std::min(screen_.page, std::max(shares[at], std::size_t{1}));
            shown_rows_ += shares[at];
            add(hidden == 0 ? parts_[at].title
                            : fmt::format("{} ({} of {} rows)", parts_[at].title,
                                          shares[at] == 0
                                              ? "none"
                                              : fmt::format("{}-{}", first + 1, first + shares[at]),
                                          rows.size()));
            for (std::size_t row = first; row < first + shares[at]; ++row)
                add(rows[row]);
        }
        shown_programs_ = parts_.size();
    }
    // More programs than lines: all lines one after the other, from the one that is scrolled to.
    void draw_flat() {
        const std::size_t all = rows_ + parts_.size();
        const std::size_t shown = std::min(body_, all);
        screen_.scroll_limit = all - shown;
        screen_.page = std::max<std::size_t>(body_, 1);
        const std::size_t first = std::min(window_.scroll, screen_.scroll_limit);
        std::size_t number = 0;
        const auto is_shown = [&] {
            const std::size_t at = number++;
            return at >= first && at < first + shown;
        };
        for (const Part& part : parts_) {
            if (is_shown()) {
                add(part.title);
                ++shown_programs_;
            }
            for (const std::string& row : part.rows) {
                if (!is_shown()) continue;
                add(row);
                ++shown_rows_;
            }
        }
    }
    std::string status() const {
        const std::size_t rows = rows_ - shown_rows_;
        const std::size_t programs = parts_.size() - shown_programs_;
        std::string text = fmt::format("{} of {} rows hidden", rows, rows_);
        if (programs > 0)
            text = fmt::format("{} of {} programs and ", programs, parts_.size()) + text;
        if (rows + programs == 0) return window_.has_keys ? "q: quit" : "";
        return text + (window_.has_keys ? "; arrows, PgUp, PgDn: scroll, q: quit"
                                        : "; enlarge the window to see them");
    }

    const Window& window_;
    std::size_t body_; // lines above the last one
    TableLayout layout_;
    std::vector<Part> parts_;
    std::size_t rows_ = 0;
    std::size_t shown_rows_ = 0;
    std::size_t shown_programs_ = 0;
    Screen screen_;
};

} // namespace

Screen screen_of(const std::vector<Look>& looks, const Window& window) {
    return Drawing{looks, window}.draw();
}

} // namespace apps::top
