// SPDX-License-Identifier: Apache-2.0
#pragma once

// TwoWays: a transport that tries each address twice, so that an attempt can fall back.

#include "netio/transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace netio::stream::test {

// Reaches every address in two ways, as a machine with an RDMA device does.
class TwoWays final : public netio::Transport {
  public:
    explicit TwoWays(netio::Transport& inner) : inner_{inner} {}

    netio::EventLoop& loop() noexcept override { return inner_.loop(); }
    bool guards_memory(const std::string& provider) const override {
        return inner_.guards_memory(provider);
    }
    std::vector<std::string> providers_to(const netio::Address& remote) override {
        const std::string provider = inner_.providers_to(remote).front();
        return {provider, provider};
    }
    std::vector<std::string> providers_at(const netio::Address& local) override {
        return inner_.providers_at(local);
    }
    std::unique_ptr<netio::Connection>
    make_connection(const std::string& provider, const netio::Address& remote,
                    const std::string& local_host, const netio::QueueLimits& limits,
                    netio::Connection::Handler& handler) override {
        ++attempts;
        return inner_.make_connection(provider, remote, local_host, limits, handler);
    }
    std::unique_ptr<netio::Listener> listen(const std::string& provider,
                                            const netio::Address& local,
                                            const netio::ListenOptions& options,
                                            netio::Listener::Handler& handler) override {
        return inner_.listen(provider, local, options, handler);
    }

    std::size_t attempts = 0;

  private:
    netio::Transport& inner_;
};

} // namespace netio::stream::test
