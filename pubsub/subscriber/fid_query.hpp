// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks a publisher which fids it publishes, over a separate connection:
//
//     pubsub::FidQuery query{*transport, {.publisher = {"10.0.0.1", 1234}},
//                            [](const pubsub::FidQuery::Result& result) {
//                                for (const FidRange fids : result.fids)
//                                    std::cout << to_string(fids) << '\n';
//                            }};
//
// A publisher lists the fids that it has published since its start and that the key permits to
// read. It supports the query since version 0.3. Belongs to the loop's thread; may be destroyed in
// the function that it calls.

#include "netio/base/export.hpp"
#include "netio/transport.hpp"
#include "pubsub/core/fid.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::inline v0_3 {
class ClientKey;
} // namespace netio::inline v0_3

namespace netio::pubsub::inline v0_3 {

class NETIO_EXPORT FidQuery final {
  public:
    struct Options {
        Address publisher{};
        std::vector<Address> fallback_addresses{}; // of the same publisher, tried in order
        std::string local_host{};                  // empty: any
        std::shared_ptr<const ClientKey> key{};    // nullptr: none
        // If empty, asks for the whole list. Otherwise asks for each of these ranges whether any of
        // its fids is published, and for the nearest published fids.
        std::vector<FidRange> near{};
        std::size_t range_limit = 65536; // of the whole list; further ranges are omitted
        // The limit of the receive buffers, which are as large as the publisher requires.
        std::size_t receive_buffer_limit_bytes = std::size_t{64} * 1024 * 1024;
        std::chrono::milliseconds timeout{10000}; // of the whole query
    };
    struct Near {
        FidRange asked;
        bool is_published = false;
        std::vector<FidRange> nearest; // ascending; the first may lie below `asked`; empty: none
    };
    struct Result {
        std::string failure; // one line for people; empty: success
        std::string provider;
        std::vector<FidRange> fids; // the whole list: disjoint, not adjacent, ascending
        bool is_complete = true;    // no range was omitted
        std::vector<Near> near;
    };
    // Called once, from the loop.
    using OnEnd = std::function<void(const Result&)>;

    // Starts the query. If the object is destroyed before the end, on_end is not called.
    FidQuery(Transport& transport, Options options, OnEnd on_end);
    ~FidQuery();
    FidQuery(const FidQuery&) = delete;
    FidQuery& operator=(const FidQuery&) = delete;

  private:
    class Core;
    std::unique_ptr<Core> core_;
};

// For people: "nothing is published under 0x5 so far; the nearest published fids are 0x3-0x4 and
// 0x9".
NETIO_EXPORT std::string to_string(const FidQuery::Near& near);

} // namespace netio::pubsub::inline v0_3
