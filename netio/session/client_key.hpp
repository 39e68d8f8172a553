// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a connecting socket shows to be let in, and by which it knows that it has come to the right
// place: a peer that does not prove that it has the same key gets nothing from it. Several sockets
// may share one, also those of several loops.

#include "netio/access/protection.hpp"
#include "netio/base/export.hpp"

#include <memory>
#include <string>

namespace netio::access::inline v0_2 {
class GateClient;
struct GateAddress;
} // namespace netio::access::inline v0_2

namespace netio::inline v0_2 {

class NETIO_EXPORT ClientKey final {
  public:
    struct Options {
        std::string file{}; // with one key, made by `netio key new --client`
        // Asked for, and never less than this.
        access::Protection protection = access::Protection::none;
    };

    // Reads the file; again at an attempt to connect if it has changed meanwhile. While it is wrong
    // then, the key of before stays, and the observer of the loop that connects is told, once for
    // each state of it. Throws std::runtime_error (access::KeyFileError), naming file, line and
    // remedy, if it cannot be used.
    explicit ClientKey(const Options& options);
    ~ClientKey();
    ClientKey(const ClientKey&) = delete;
    ClientKey& operator=(const ClientKey&) = delete;

  private:
    friend class Connector;
    struct InUse; // the key, and the file that it is of
    // An attempt begins. What is wrong with the file, if that is news; empty: nothing.
    std::string look() const;
    std::shared_ptr<access::GateClient> dial(const access::GateAddress& dialled) const;

    std::unique_ptr<InUse> in_use_;
    access::Protection protection_;
};

} // namespace netio::inline v0_2
