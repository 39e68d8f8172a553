// SPDX-License-Identifier: Apache-2.0
#include "apps/top/table.hpp"

#include "apps/common/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <tuple>

namespace apps::top {
namespace {

struct Sample {
    std::string name;
    std::string who; // the first label's value
    double value = 0;
};

// Returns the value of the label after `at`, and moves `at` past it.
std::string label_value(std::string_view line, std::size_t& at) {
    std::string value;
    for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) ++at;
        value += line[at];
    }
    return value;
}

std::optional<Sample> sample_of(std::string_view line) {
    const std::size_t end = line.find_first_of("{ ");
    if (line.starts_with('#') || end == std::string_view::npos) return std::nullopt;
    Sample sample{.name = std::string{line.substr(0, end)}, .who = {}};
    std::size_t at = end;
    bool first = true;
    for (; line[end] == '{' && at < line.size() && line[at] != '}'; ++at) {
        if (line[at] != '"') continue;
        const std::string value = label_value(line, at);
        if (first) sample.who = value;
        first = false;
    }
    const std::size_t space = line.find(' ', std::min(at, line.size()));
    if (space == std::string_view::npos) return std::nullopt;
    sample.value = std::strtod(std::string{line.substr(space + 1)}.c_str(), nullptr);
    return sample;
}

std::uint64_t whole(double value) {
    return value > 0 && value < 1.8e19 ? static_cast<std::uint64_t>(value) : 0;
}

// Takes a counter of a port: retransmissions, receiver not ready, and link errors.
bool take_port(const Sample& sample, Row& row, std::string_view figure) {
    if (figure == "retransmissions_total") {
        row.count = whole(sample.value);
    } else if (figure == "receiver_not_ready_total") {
        row.again = whole(sample.value);
    } else if (figure == "port_errors_total") {
        row.dropped = whole(sample.value);
    } else {
        return false;
    }
    return true;
}

// Assigns a metric to the kind of row and the column that it belongs to.
bool take(const Sample& sample, Row& row, std::string_view figure) {
    if (row.kind == "device") return take_port(sample, row, figure);
    if (row.kind == "stream" && figure.ends_with("_bytes_total")) {
        row.count += whole(sample.value); // sent and received, direct and indirect
        return true;
    }
    if (figure == "messages_total" || (row.kind == "peer" && figure == "frames_total")) {
        row.count = whole(sample.value);
    } else if (figure == "dropped_total" || figure == "missed_total") {
        row.dropped = whole(sample.value);
    } else if (figure == "again_total") {
        row.again = whole(sample.value);
    } else if (figure == "waiting") {
        row.waiting = sample.value;
    } else if (figure == "idle_seconds") {
        row.idle_seconds = sample.value;
    } else if (figure == "one_way_median_seconds") {
        row.one_way_p50_s = sample.value;
    } else if (figure == "one_way_p99_seconds") {
        row.one_way_p99_s = sample.value;
    } else if (figure == "clock_offset_seconds") {
        row.clock_offset_s = sample.value;
    } else if (figure == "clock_offset_error_seconds") {
        row.clock_offset_error_s = sample.value;
    } else {
        return false;
    }
    return true;
}

std::string shown(const std::optional<double>& value) {
    return value ? short_number(*value) : "-";
}

std::string in_us(const std::optional<double>& seconds) {
    return seconds ? fmt::format("{:.1f}", *seconds * 1e6) : "-";
}

struct Column {
    std::string_view title;
    std::size_t width;
    std::string (*text)(const Row&);
};
constexpr std::size_t kind_width = 10;
constexpr std::size_t name_width = 22;
constexpr std::size_t longest_name = 1024;
constexpr std::size_t least_name_width = 12;
const std::array<Column, 9> columns{{
    {"per s", 9, [](const Row& row) { return shown(row.rate); }},
    {"count", 12, [](const Row& row) { return std::to_string(row.count); }},
    {"waiting", 8, [](const Row& row) { return shown(row.waiting); }},
    {"idle s", 7,
     [](const Row& row) {
         return row.idle_seconds ? fmt::format("{:.1f}", *row.idle_seconds) : "-";
     }},
    {"again", 8, [](const Row& row) { return row.again ? std::to_string(*row.again) : "-"; }},
    {"p50 us", 9, [](const Row& row) { return in_us(row.one_way_p50_s); }},
    {"p99 us", 9, [](const Row& row) { return in_us(row.one_way_p99_s); }},
    {"clock us", 17,
     [](const Row& row) {
         return row.clock_offset_s
                    ? in_us(row.clock_offset_s) + " +- " + in_us(row.clock_offset_error_s)
                    : "-";
     }},
    {"dropped", 8, [](const Row& row) { return std::to_string(row.dropped); }},
}};
// Columns that a narrow terminal omits, in this order.
constexpr std::array<std::string_view, 9> dispensable{
    "clock us", "p99 us", "p50 us", "count", "again", "idle s", "waiting", "dropped", "per s"};

} // namespace

TableLayout::TableLayout(std::size_t width) : width_{width}, name_{name_width} {
    std::size_t taken = kind_width + 1;
    for (std::size_t at = 0; at < columns.size(); ++at) {
        columns_.push_back(at);
        taken += columns[at].width + 1;
    }
    for (const std::string_view title : dispensable) {
        if (taken + least_name_width <= width) break;
        const auto column =
            std::ranges::find(columns_, title, [](std::size_t at) { return columns[at].title; });
        taken -= columns[*column].width + 1;
        columns_.erase(column);
    }
    cuts_names_ = width < taken + name_width;
    if (cuts_names_) name_ = std::max(least_name_width, width - std::min(width, taken));
}

std::string TableLayout::heading() const {
    std::string line = fmt::format("{:<{}} {:<{}}", "what", kind_width, "who", name_);
    for (const std::size_t at : columns_)
        line += fmt::format(" {:>{}}", columns[at].title, columns[at].width);
    return line;
}

std::string TableLayout::line(const Row& row) const {
    const std::string name = printable(row.name, cuts_names_ ? name_ : longest_name);
    std::string line = fmt::format("{:<{}} {:<{}}", row.kind, kind_width, name, name_);
    for (const std::size_t at : columns_)
        line += fmt::format(" {:>{}}", columns[at].text(row), columns[at].width);
    return line;
}

std::string TableLayout::title(const Look& look) const {
    const std::string title =
        printable(look.source + (look.error.empty() ? "" : ": " + look.error));
    if (look.name.empty()) return title;
    std::string named = fmt::format("{} at {}", printable(look.name), title);
    return named.size() > width_ ? title : named;
}

std::vector<Row> rows_of(std::string_view text) {
    static constexpr std::string_view kinds[] = {"publisher", "peer",   "subscriber",
                                                 "fid",       "sender", "receiver",
                                                 "source",    "stream", "device"};
    std::vector<Row> rows;
    std::map<std::tuple<std::size_t, std::string>, std::size_t> places;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::optional<Sample> sample = sample_of(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        for (std::size_t kind = 0; sample && kind < std::size(kinds); ++kind) {
            const std::string prefix = fmt::format("netio_{}_", kinds[kind]);
            if (!sample->name.starts_with(prefix)) continue;
            const auto known = places.find({kind, sample->who});
            Row row{.kind = std::string{kinds[kind]}, .name = sample->who};
            if (known != places.end()) row = rows[known->second];
            if (!take(*sample, row, std::string_view{sample->name}.substr(prefix.size()))) continue;
            if (known != places.end()) {
                rows[known->second] = std::move(row);
            } else {
                places.emplace(std::tuple{kind, sample->who}, rows.size());
                rows.push_back(std::move(row));
            }
        }
    }
    return rows;
}

void add_rates(Look& now, const Look& before) {
    const double seconds = now.seconds - before.seconds;
    if (seconds <= 0) return;
    std::map<std::tuple<std::string, std::string>, std::uint64_t> counts;
    for (const Row& row : before.rows)
        counts[{row.kind, row.name}] = row.count;
    for (Row& row : now.rows) {
        const auto old = counts.find({row.kind, row.name});
        if (old == counts.end() || old->second > row.count) continue;
        row.rate = static_cast<double>(row.count - old->second) / seconds;
    }
}

void sort(std::vector<Row>& rows, Order order) {
    const auto key = [order](const Row& row) {
        switch (order) {
        case Order::rate:
            return row.rate.value_or(-1);
        case Order::count:
            return static_cast<double>(row.count);
        case Order::dropped:
            return static_cast<double>(row.dropped);
        case Order::again:
            return row.again ? static_cast<double>(*row.again) : -1;
        case Order::waiting:
            return row.waiting.value_or(-1);
        case Order::idle:
            return row.idle_seconds.value_or(-1);
        case Order::as_shown:
            break;
        }
        return 0.0;
    };
    std::ranges::stable_sort(rows, std::ranges::greater{}, key);
}

std::string to_text(const std::vector<Look>& looks) {
    const TableLayout layout{std::numeric_limits<std::size_t>::max()};
    std::string text;
    for (const Look& look : looks) {
        text += layout.title(look) + '\n';
        if (look.error.empty()) text += layout.heading() + '\n';
        for (const Row& row : look.rows)
            text += layout.line(row) + '\n';
    }
    return text;
}

std::string to_json(const std::vector<Look>& looks) {
    using Json = nlohmann::ordered_json;
    Json list = Json::array();
    for (const Look& look : looks) {
        Json rows = Json::array();
        for (const Row& row : look.rows) {
            Json each{{"kind", row.kind},
                      {"name", row.name},
                      {"count", row.count},
                      {"dropped", row.dropped}};
            if (row.rate) each["per_s"] = *row.rate;
            if (row.waiting) each["waiting"] = *row.waiting;
            if (row.idle_seconds) each["idle_s"] = *row.idle_seconds;
            if (row.again) each["again"] = *row.again;
            const auto us = [&each](const char* name, const std::optional<double>& seconds) {
                if (seconds) each[name] = *seconds * 1e6;
            };
            us("one_way_p50_us", row.one_way_p50_s);
            us("one_way_p99_us", row.one_way_p99_s);
            us("clock_offset_us", row.clock_offset_s);
            us("clock_offset_error_us", row.clock_offset_error_s);
            rows.push_back(std::move(each));
        }
        list.push_back({{"source", look.source}, {"error", look.error}, {"rows", std::move(rows)}});
        if (!look.name.empty()) list.back()["publisher"] = look.name;
    }
    const Json json{
        {"role", "top"}, {"report_version", report_version}, {"programs", std::move(list)}};
    return json_line(json);
}

namespace {

// Divides the screen's lines among programs that need these numbers of lines. Lines that a program
// does not need go to the others. Each gets at least one line while there are any.
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
    // Draws one heading, and then each program with its part of the lines.
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
    // Used with more programs than lines: draws all lines in sequence, from the scroll position.
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

// --- keys

namespace {

constexpr char escape = '\x1b';
constexpr char end_of_input = '\x04'; // Ctrl-D

constexpr std::array<std::pair<std::string_view, Key>, 22> keys{{
    {"q", Key::quit},
    {"Q", Key::quit},
    {"k", Key::up},
    {"\x1b[A", Key::up},
    {"\x1bOA", Key::up},
    {"j", Key::down},
    {"\x1b[B", Key::down},
    {"\x1bOB", Key::down},
    {"\n", Key::down},
    {"b", Key::page_up},
    {"\x1b[5~", Key::page_up},
    {" ", Key::page_down},
    {"f", Key::page_down},
    {"\x1b[6~", Key::page_down},
    {"g", Key::first},
    {"\x1b[H", Key::first},
    {"\x1bOH", Key::first},
    {"\x1b[1~", Key::first},
    {"G", Key::last},
    {"\x1b[F", Key::last},
    {"\x1bOF", Key::last},
    {"\x1b[4~", Key::last},
}};

std::optional<Key> key_of(std::string_view sequence) {
    if (sequence == std::string_view{&end_of_input, 1}) return Key::quit;
    const auto found = std::ranges::find(keys, sequence, &std::pair<std::string_view, Key>::first);
    return found == keys.end() ? std::nullopt : std::optional{found->second};
}

// ESC [ and ESC O are followed by parameters and end with a letter or a tilde.
bool is_whole(std::string_view sequence) {
    if (sequence.front() != escape) return true;
    if (sequence.size() == 1) return false;
    if (sequence[1] != '[' && sequence[1] != 'O') return true;
    return sequence.size() > 2 && sequence.back() >= '@' && sequence.back() <= '~';
}

} // namespace

std::vector<Key> KeyParser::parse(std::string_view bytes) {
    constexpr std::size_t longest = 16; // the keys of terminals are shorter
    std::vector<Key> found;
    for (const char byte : bytes) {
        if (byte == escape) begun_.clear();
        begun_ += byte;
        if (!is_whole(begun_) && begun_.size() < longest) continue;
        if (const auto key = key_of(begun_)) found.push_back(*key);
        begun_.clear();
    }
    return found;
}

} // namespace apps::top
