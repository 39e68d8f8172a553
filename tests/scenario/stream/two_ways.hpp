// SPDX-License-Identifier: Apache-2.0
#pragma once

// TwoWays: a transport that tries each address twice, so that an attempt can fall back to another
// provider.

#include "tests/support/forwarding_transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace netio::stream::test {

// Reaches every address in two ways, like a machine with an RDMA device.
class TwoWays final : public netio::test::ForwardingTransport {
  public:
    using ForwardingTransport::ForwardingTransport;

    std::vector<std::string> providers_to(const netio::Address& remote) override {
        const std::string provider = inner().providers_to(remote).front();
        return {provider, provider};
    }
    std::unique_ptr<netio::Connection>
    make_connection(const std::string& provider, const netio::Address& remote,
                    const std::string& local_host, const netio::QueueLimits& limits,
                    netio::Connection::Handler& handler) override {
        ++attempts;
        return inner().make_connection(provider, remote, local_host, limits, handler);
    }

    std::size_t attempts = 0;
};

} // namespace netio::stream::test
