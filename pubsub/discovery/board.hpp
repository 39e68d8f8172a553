// SPDX-License-Identifier: Apache-2.0
#pragma once

// A place where texts hang under names: what the back end of a bus is. It does I/O and may block,
// so that each has a thread of its own; only interrupt() may be called from another.

#include "netio/base/export.hpp"
#include "netio/base/time.hpp"

#include <optional>
#include <stdexcept>
#include <string>

namespace netio::pubsub::inline v0_2 {

// One line for people: the place, what failed, and why.
class NETIO_EXPORT BoardError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class NETIO_EXPORT Board {
  public:
    class Visitor {
      public:
        // A text that is new, or another one than before. Who is removed is told first.
        virtual void on_text(const std::string& name, const std::string& text) = 0;
        // The text is the same, and the board itself knows that its owner lives. False: it had not
        // been taken, and is to be told again as new.
        virtual bool on_kept(const std::string& name) = 0;
        virtual void on_removed(const std::string& name) = 0;
        // Something there is none of ours, or is damaged; the others are read.
        virtual void on_unreadable(const std::string& what) = 0;

      protected:
        ~Visitor() = default;
    };

    Board() = default;
    virtual ~Board() = default;
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;

    // These throw BoardError.
    virtual void put(const std::string& name, const std::string& text) = 0;
    // It takes away itself what nobody keeps, so that whatever stands there lives.
    virtual bool has_leases() const noexcept { return false; }
    // True: what was put is kept for another while without writing it again.
    virtual bool keep(const std::string& name) = 0;
    virtual std::optional<std::string> get(const std::string& name) = 0;
    virtual void remove(const std::string& name) = 0;
    // What has changed since the last look.
    virtual void look(Visitor& visitor) = 0;

    // Until something may have changed, or `until`, or interrupt(), also an earlier one.
    virtual void wait(TimePoint until) = 0;
    virtual void interrupt() noexcept = 0;
};

} // namespace netio::pubsub::inline v0_2
