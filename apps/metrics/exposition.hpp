// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes metrics in the text format of Prometheus (version 0.0.4). No I/O.
//
//     Exposition text;
//     text.counter("netio_publisher_messages_total", "Messages accepted").add(7);
//     text.gauge("netio_peer_waiting", "In its queue").add({{"peer", "10.0.0.1:5"}}, 3);
//     std::string body = std::move(text).take();

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace apps {

class Exposition {
  public:
    using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    // The samples of one name; they must be added directly after the name.
    class Family {
      public:
        Family& add(std::uint64_t value) { return add({}, value); }
        Family& add(Labels labels, std::uint64_t value);
        Family& add(netio::Duration value) { return add({}, value); }
        Family& add(Labels labels, netio::Duration value); // in seconds

      private:
        friend class Exposition;
        Family(std::string& text, std::string_view name) : text_{text}, name_{name} {}
        void begin(Labels labels, std::string_view suffix = {});

        std::string& text_;
        std::string name_;
    };

    // The names of counters, and no others, end in _total (checked).
    Family counter(std::string_view name, std::string_view help);
    Family gauge(std::string_view name, std::string_view help);
    // In seconds; the buckets are powers of two in nanoseconds.
    void histogram(std::string_view name, std::string_view help,
                   const netio::LatencyHistogram& values);

    std::string take() && { return std::move(text_); }

  private:
    Family family(std::string_view name, std::string_view type, std::string_view help);

    std::string text_;
};

} // namespace apps
