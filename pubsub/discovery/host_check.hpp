// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds announced addresses that programs on other hosts cannot use, so that their publisher can
// warn about them. Otherwise only the subscribers notice, and they cannot correct it.

#include "pubsub/discovery/announcement.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Why a host name cannot be resolved; empty if it can. May block; called on another thread.
using ResolveHost = std::function<std::string(const std::string& host)>;
std::string resolve_here(const std::string& host); // by the system's resolver

class HostCheck {
  public:
    using Tell = std::function<void(const std::string&)>;
    explicit HostCheck(Tell tell, ResolveHost resolve = resolve_here);

    // Calls `tell` with one line for people for each such host: before it returns for a numeric
    // address, and on another thread for a name that cannot be resolved. A resolver may need half a
    // minute until it fails; the thread is not waited for, and may outlive this. There is one
    // thread at most: names of a later call replace those that it has not resolved yet. Loopback is
    // no problem: it is announced on purpose. Does nothing if the addresses are those of the last
    // call.
    void look(const Announcement& announcement);

  private:
    struct Search;

    Tell tell_;
    std::shared_ptr<Search> search_; // shared with the thread
    std::vector<std::string> addresses_;
    std::string metrics_;
};

} // namespace netio::pubsub::inline v0_3
