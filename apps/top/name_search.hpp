// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the addresses of hosts within a time. A name server that does not answer holds up whoever
// asks it for as long as it likes, so a thread of its own asks for each name, which nobody waits
// for at the end. There are so many at most, and one for a name: while it is under way, whoever
// asks for the name again waits for the same answer.

#include "apps/common/host_addresses.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace apps::top {

class NameSearch {
  public:
    // Of a host, with port 0; throws std::runtime_error. From any thread, also when the search is
    // gone.
    using Resolve = std::function<std::vector<SocketAddress>(const std::string& host)>;
    static constexpr std::size_t thread_limit = 64;

    NameSearch();
    explicit NameSearch(Resolve resolve, std::size_t limit = thread_limit);

    // Any thread. What is no name is found at once. Throws std::runtime_error: not found, or not in
    // time; an answer that comes later is for who asks next.
    std::vector<SocketAddress> find(const netio::Address& address, netio::TimePoint until);

  private:
    struct Searches; // shared with the threads, which may outlive this
    std::shared_ptr<Searches> searches_;
};

} // namespace apps::top
