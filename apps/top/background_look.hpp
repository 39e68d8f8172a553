// SPDX-License-Identifier: Apache-2.0
#pragma once

// A look at all programs on a thread of its own: those that do not answer take the loop no time.
// One look at a time. Belongs to the loop's thread; its destructor does not wait for a look.

#include "apps/top/name_search.hpp"
#include "apps/top/table.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace apps::top {

class BackgroundLook {
  public:
    // `on_seen` runs on the loop's thread.
    BackgroundLook(netio::EventLoop& loop, std::function<void(std::vector<Look>)> on_seen);
    BackgroundLook(const BackgroundLook&) = delete;
    BackgroundLook& operator=(const BackgroundLook&) = delete;

    // Not before on_seen() of the look before it.
    void start(std::vector<std::string> sources);

  private:
    struct Shared; // with the thread, which may outlive this
    NameSearch names_;
    std::shared_ptr<Shared> shared_;
    netio::DescriptorWatch watch_;
};

} // namespace apps::top
