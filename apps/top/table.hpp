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

// What netio top makes of the figures that programs show (apps/metrics/): a row for each publisher,
// subscriber and fid, sender and receiver, stream, and port of an RDMA device. No I/O.

struct Row {
    std::string kind; // publisher, peer, subscriber, fid, sender, receiver, source, stream, device
    std::string name;
    std::uint64_t count = 0;    // messages; of a peer frames, of a stream bytes
    std::optional<double> rate; // of them, a second; once there are two looks
    std::optional<double> waiting;
    std::optional<double> idle_seconds;
    std::optional<std::uint64_t> again;
    std::uint64_t dropped = 0;
};

// Where to look.
struct Source {
    std::string address;   // HOST:PORT
    std::string name = {}; // of the publisher there, if a bus has told it
};

// One look at one program.
struct Look {
    std::string source;    // HOST:PORT
    std::string name = {}; // as of a source
    std::string error;     // empty: the rows are what it shows
    double seconds = 0;    // by any clock that goes on
    std::vector<Row> rows;
};
// Of the text that it shows; what is not understood is left out.
std::vector<Row> rows_of(std::string_view text);
// Adds what has happened since the look before it.
void add_rates(Look& now, const Look& before);

enum class Order : std::uint8_t { as_shown, rate, count, dropped, waiting, idle, again };
void sort(std::vector<Row>& rows, Order order);

// The columns that a width has room for.
class TableLayout {
  public:
    explicit TableLayout(std::size_t width);
    std::string heading() const;
    std::string line(const Row& row) const;
    // The publisher's name is left out where the width has no room for all of it.
    std::string title(const Look& look) const;

  private:
    std::size_t width_;
    std::size_t name_;                 // columns
    bool cuts_names_ = false;          // that are longer
    std::vector<std::size_t> columns_; // by their places in the table of all columns
};

// All of it: each program with its heading.
std::string to_text(const std::vector<Look>& looks);
// One object, without an end of line.
std::string to_json(const std::vector<Look>& looks);

// The screen of netio top. Each program has its part of the screen, and all parts scroll together.
// If there are more programs than lines, the programs scroll. The last line reports how much is
// hidden.

struct Window {
    std::size_t width = 80;
    std::size_t height = 24;
    std::size_t scroll = 0; // lines, from the beginning; more than there are: to the end
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
