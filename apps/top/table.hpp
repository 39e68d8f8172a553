// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apps::top {

// The table of netio top from the metrics of programs (apps/metrics/): a row for each publisher,
// subscriber and fid, sender and receiver, stream, and port of an RDMA device. No I/O.

struct Row {
    std::string kind; // publisher, peer, subscriber, fid, sender, receiver, source, stream, device
    std::string name;
    std::uint64_t count = 0;    // messages; for a peer frames, for a stream bytes
    std::optional<double> rate; // of the count per second; needs two looks
    std::optional<double> waiting;
    std::optional<double> idle_seconds;
    std::optional<std::uint64_t> again;
    std::uint64_t dropped = 0;
    // Of a subscriber's publisher with time stamps.
    std::optional<double> one_way_p50_s{};
    std::optional<double> one_way_p99_s{};
    std::optional<double> clock_offset_s{}; // this machine's clock minus the publisher's, estimated
    std::optional<double> clock_offset_error_s{};
};

// A program with metrics.
struct Source {
    std::string address;   // HOST:PORT
    std::string name = {}; // of the publisher there, if known from a bus
};

// The metrics of one program at one time.
struct Look {
    std::string source;    // HOST:PORT
    std::string name = {}; // as of a source
    std::string error;     // empty: the rows are valid
    double seconds = 0;    // of any monotonic clock
    std::vector<Row> rows;
};
// Parses the text that a program shows; unknown lines are ignored.
std::vector<Row> rows_of(std::string_view text);
// Adds the rates since the previous look.
void add_rates(Look& now, const Look& before);

enum class Order : std::uint8_t { as_shown, rate, count, dropped, waiting, idle, again };
void sort(std::vector<Row>& rows, Order order);

// The columns that fit into a width.
class TableLayout {
  public:
    explicit TableLayout(std::size_t width);
    std::string heading() const;
    std::string line(const Row& row) const;
    // Omits the publisher's name if it does not fit completely.
    std::string title(const Look& look) const;

  private:
    std::size_t width_;
    std::size_t name_;                 // columns
    bool cuts_names_ = false;          // longer names are cut
    std::vector<std::size_t> columns_; // indexes into the table of all columns
};

// Returns all programs, each with its heading.
std::string to_text(const std::vector<Look>& looks);
// Returns one object, without a line end.
std::string to_json(const std::vector<Look>& looks);

// The screen of netio top. Each program has a part of the screen, and all parts scroll together. If
// there are more programs than lines, the programs scroll. The last line shows how much is hidden.

struct Window {
    std::size_t width = 80;
    std::size_t height = 24;
    std::size_t scroll = 0; // lines from the top; a larger number means the end
    bool has_keys = false;
};

struct Screen {
    std::vector<std::string> lines; // at most `height`, of at most `width` columns
    std::size_t scroll_limit = 0;   // scrolling further changes nothing
    std::size_t page = 1;           // lines that a page scrolls
};

Screen screen_of(const std::vector<Look>& looks, const Window& window);

enum class Key : std::uint8_t { quit, up, down, page_up, page_down, first, last };

// Finds keys in the bytes that a terminal sends. A key may arrive in several pieces; other bytes
// are ignored.
class KeyParser {
  public:
    std::vector<Key> parse(std::string_view bytes);

  private:
    std::string begun_; // the beginning of an escape sequence
};

} // namespace apps::top
