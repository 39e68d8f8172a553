// SPDX-License-Identifier: Apache-2.0
#pragma once

// The exit status of a subscription. No I/O.

#include "apps/common/report.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <utility>

namespace apps::subscribe {

// Which publishers have answered. A --duration that passes before the first answer is extended: on
// a loaded machine connecting may take longer, and no answer yet does not mean that there is none.
class Answers {
  public:
    // `given`: the publishers with a given address.
    explicit Answers(const std::set<std::string>& given) : awaited_{given} {}

    // The publisher has accepted a subscription. Returns true if the duration begins now.
    bool accepted(const std::string& publisher) {
        any_ = true;
        awaited_.erase(publisher);
        return std::exchange(extended_, false);
    }
    // A connection, or an attempt at one, has ended.
    void ended(const std::string& publisher) { tried_.insert(publisher); }
    bool is_tried(const std::string& publisher) const { return tried_.contains(publisher); }

    // The duration has passed. Returns true once if the run continues until is_hopeless(), or until
    // an attempt at a connection would have timed out. `possible`: a publisher is connected or not
    // tried yet.
    bool extend(bool possible) {
        if (extended_ || any_ || !possible) return false;
        extended_ = true;
        return true;
    }
    bool is_hopeless(bool possible) const noexcept { return extended_ && !possible; }

    bool any() const noexcept { return any_; } // has accepted a subscription
    // Publishers with a given address that have accepted none.
    std::size_t unreached() const noexcept { return awaited_.size(); }

  private:
    std::set<std::string> awaited_;
    std::set<std::string> tried_;
    bool any_ = false;
    bool extended_ = false;
};

struct Asked {
    bool messages = false; // a number of messages
    bool duration = false; // a duration
    bool sound = false;    // all messages and no others: verified
};

ExitStatus outcome(const SubscribeReport& report, const Asked& asked);

} // namespace apps::subscribe
