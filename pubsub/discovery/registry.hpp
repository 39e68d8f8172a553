// SPDX-License-Identifier: Apache-2.0
#pragma once

// The back end of a bus: a registry of texts under names. It does I/O and may block, so each
// registry has its own thread. Only interrupt() may be called from another thread.

#include "netio/base/export.hpp"
#include "netio/base/time.hpp"

#include <optional>
#include <stdexcept>
#include <string>

namespace netio::pubsub::inline v0_3 {

// A registry cannot be read or written. what() is one line for people: the registry, what failed,
// and why.
class NETIO_EXPORT RegistryError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class NETIO_EXPORT Registry {
  public:
    class Visitor {
      public:
        // A new or changed text. Removals are reported first.
        virtual void on_text(const std::string& name, const std::string& text) = 0;
        // The text is unchanged, and the registry itself knows that its owner is alive. Returns
        // false if the text was not accepted before and must be reported again as new.
        virtual bool on_kept(const std::string& name) = 0;
        virtual void on_removed(const std::string& name) = 0;
        // An entry that is damaged or not an announcement. The other entries are read.
        virtual void on_unreadable(const std::string& what) = 0;

      protected:
        ~Visitor() = default;
    };

    Registry() = default;
    virtual ~Registry() = default;
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;

    // These functions throw RegistryError.
    virtual void put(const std::string& name, const std::string& text) = 0;
    // Whether the registry removes a text by itself when its lease expires, so that the owner of
    // each text is alive.
    virtual bool has_leases() const noexcept { return false; }
    // Extends the lease of a text. Returns false if the caller must write the text again with
    // put().
    virtual bool keep(const std::string& name) = 0;
    // Returns nullopt if the registry has no text under this name.
    virtual std::optional<std::string> get(const std::string& name) = 0;
    virtual void remove(const std::string& name) = 0;
    // Reports the changes since the previous call to the visitor; the first call reports all texts.
    virtual void look(Visitor& visitor) = 0;

    // Waits until a text may have changed, until the time `until`, or until interrupt(). Returns at
    // once if interrupt() was called since the last wait().
    virtual void wait(TimePoint until) = 0;
    virtual void interrupt() noexcept = 0;
};

} // namespace netio::pubsub::inline v0_3
