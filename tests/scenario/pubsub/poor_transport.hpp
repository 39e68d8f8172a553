// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/forwarding_transport.hpp"

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace netio::pubsub::test {

// Whose searches for a way cannot begin for a while, as there is no memory for them.
class PoorTransport final : public netio::test::ForwardingTransport {
  public:
    using ForwardingTransport::ForwardingTransport;

    std::unique_ptr<RouteSearch> find_routes(const Address& remote, const std::string& local_host,
                                             std::function<void(FoundRoutes)> found) override {
        if (is_poor) throw std::bad_alloc{};
        return Transport::find_routes(remote, local_host, std::move(found));
    }

    bool is_poor = false;
};

} // namespace netio::pubsub::test
