// SPDX-License-Identifier: Apache-2.0
#pragma once

// ForwardingTransport forwards every call to another transport; a test overrides some of them.

#include "netio/transport.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace netio::test {

class ForwardingTransport : public Transport {
  public:
    explicit ForwardingTransport(Transport& inner, std::size_t copies_limit = usual_limit)
        : Transport{usual_limit, copies_limit}, inner_{inner} {}

    EventLoop& loop() noexcept override { return inner_.loop(); }
    bool guards_memory(const std::string& provider) const override {
        return inner_.guards_memory(provider);
    }
    std::vector<std::string> providers_to(const Address& remote) override {
        return inner_.providers_to(remote);
    }
    std::vector<std::string> providers_at(const Address& local) override {
        return inner_.providers_at(local);
    }
    std::unique_ptr<Connection> make_connection(const std::string& provider, const Address& remote,
                                                const std::string& local_host,
                                                const QueueLimits& limits,
                                                Connection::Handler& handler) override {
        return inner_.make_connection(provider, remote, local_host, limits, handler);
    }
    std::unique_ptr<Listener> listen(const std::string& provider, const Address& local,
                                     const ListenOptions& options,
                                     Listener::Handler& handler) override {
        return inner_.listen(provider, local, options, handler);
    }

  protected:
    Transport& inner() noexcept { return inner_; }

  private:
    Transport& inner_;
};

} // namespace netio::test
