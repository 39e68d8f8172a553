// SPDX-License-Identifier: Apache-2.0
#pragma once

// The text of a key file:
//
//     netio-keys 1
//     # id name secret rights
//     7 monitor nk1-… services=pubsub fids=0-63:drop,0x100-0x1ff:block! links=4
//     8 camera nk1-… services=stream folder=incoming:overwrite folder=logs rma
//     0 anyone - services=probe
//     end
//
// Rights, each word once but `folder`:
//     services=  messages, pubsub, stream, probe; or all. There must be one
//     fids=      ranges that may be subscribed to; behind a colon the most that a slow subscriber
//     may
//                hold the publisher up (drop, disconnect, block), with ! that and nothing else
//     folder=    a folder that copies may be written into; :overwrite allows to replace files
//     links=     how many connections at once (64)
//     rma        writes into this side's memory: who has it is trusted with the process

#include "netio/access/key_ring.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace netio::access::inline v0_2 {

// what(): "FILE:LINE: problem; remedy" in one line, and never a secret.
class KeyFileError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Throws KeyFileError; `file` is its name.
KeyRing parse_keys(std::string_view text, const std::string& file);
// The text with one more line. Throws KeyFileError: the text is wrong, or the id is taken.
std::string with_key(std::string_view text, const Key& key, const std::string& file);
// Of a file with no key but this one.
std::string text_of_one(const Key& key);

// Throws std::invalid_argument: it must be 1 to 32 letters, digits, dots, dashes and underscores.
void check_name(std::string_view name);

} // namespace netio::access::inline v0_2
