// SPDX-License-Identifier: Apache-2.0
#pragma once

// A list of addresses for options, which takes addresses and their texts:
//
//     pubsub::Subscriptions::Options texts{.publishers = {"10.0.0.1:1234", "10.0.0.2:1234"}};
//     pubsub::Subscriptions::Options addresses{.publishers = {{"10.0.0.1", 1234}}};
//
// A text alone is a list of one address.

#include "netio/base/status.hpp"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

class AddressList : public std::vector<Address> {
  public:
    AddressList() = default;
    AddressList(std::initializer_list<Address> addresses) : vector{addresses} {}
    // Throws as parse_address() does. No overload takes a list of std::string, because
    // {"10.0.0.1", 1234} would match a constructor of std::string, too.
    AddressList(std::initializer_list<const char*> texts) {
        for (const char* const text : texts)
            push_back(parse_address(text));
    }
    AddressList(Address address) : vector{std::move(address)} {}          // NOLINT: converts
    AddressList(const char* text) : vector{parse_address(text)} {}        // NOLINT
    AddressList(const std::string& text) : vector{parse_address(text)} {} // NOLINT
    AddressList(std::vector<Address> addresses) noexcept                  // NOLINT
        : vector{std::move(addresses)} {}
};

} // namespace netio::inline v0_3
