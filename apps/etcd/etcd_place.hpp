// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where an etcd is, and as whom it is asked:
//
//     etcd://HOST:PORT[/PREFIX][?user=FILE&ca=FILE]     etcds:// with TLS
//
// The file of the user has one line, NAME:PASSWORD, so that no password stands in a command line.
// It must belong to the user or root, and nobody else may have access to it (mode 0600), as a key
// file. No I/O.

#include "netio/base/status.hpp"

#include <string>
#include <string_view>

namespace apps {

struct EtcdPlace {
    netio::Address address;
    bool tls = false;
    std::string prefix = "netio"; // of the keys: /netio/NAME
    std::string user_file;        // empty: nobody in particular
    std::string ca_file;          // whose certificates are believed; empty: the system's
};

bool is_etcd_place(std::string_view text) noexcept;
// What a user should know of this place: the password travels unencrypted to another machine.
// "problem; remedy"; empty: nothing.
std::string warning_about(const EtcdPlace& place);
// Throws std::invalid_argument naming the text and what is allowed.
EtcdPlace parse_etcd_place(std::string_view text);

} // namespace apps
