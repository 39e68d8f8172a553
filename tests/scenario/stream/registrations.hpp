// SPDX-License-Identifier: Apache-2.0
#pragma once

// Registrations: a transport that counts the memory registered over it for writes by a peer.

#include "tests/support/forwarding_transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace netio::stream::test {

class Registrations final : public netio::test::ForwardingTransport {
  public:
    using ForwardingTransport::ForwardingTransport;

    // Number of all such registrations ever made.
    std::size_t writable_count() const noexcept { return writable_count_; }

    std::unique_ptr<netio::RouteSearch>
    find_routes(const netio::Address& remote, const std::string& local_host,
                std::function<void(netio::FoundRoutes)> found) override {
        return inner().find_routes(remote, local_host, std::move(found));
    }
    std::unique_ptr<netio::Connection>
    make_connection(const std::string& provider, const netio::Address& remote,
                    const std::string& local_host, const netio::QueueLimits& limits,
                    netio::Connection::Handler& handler) override {
        return std::make_unique<Connection>(
            *this, inner().make_connection(provider, remote, local_host, limits, handler));
    }
    std::unique_ptr<netio::Listener> listen(const std::string& provider,
                                            const netio::Address& local,
                                            const netio::ListenOptions& options,
                                            netio::Listener::Handler& handler) override {
        return std::make_unique<Listener>(*this, provider, local, options, handler);
    }

  private:
    class Domain final : public netio::MemoryDomain {
      public:
        Domain(Registrations& counter, netio::MemoryDomain& inner)
            : counter_{counter}, inner_{inner} {}
        std::unique_ptr<netio::Registration> register_memory(std::span<std::byte> memory,
                                                             netio::Access access) override {
            if (access == netio::Access::remote_write) ++counter_.writable_count_;
            return inner_.register_memory(memory, access);
        }

      private:
        Registrations& counter_;
        netio::MemoryDomain& inner_;
    };

    class Connection final : public netio::Connection {
      public:
        Connection(Registrations& counter, std::unique_ptr<netio::Connection> inner)
            : inner_{std::move(inner)}, domain_{counter.domain_of(inner_->domain())} {}
        void open(std::span<const std::byte> data) override { inner_->open(data); }
        Status post_send(std::span<const Slice> slices, Cookie cookie) override {
            return inner_->post_send(slices, cookie);
        }
        Status post_receive(std::span<const Slice> slices, Cookie cookie) override {
            return inner_->post_receive(slices, cookie);
        }
        Status post_write(std::span<const Slice> slices, const RemoteSlice& target,
                          std::optional<std::uint32_t> immediate, Cookie cookie) override {
            return inner_->post_write(slices, target, immediate, cookie);
        }
        void close() override { inner_->close(); }
        const Capabilities& capabilities() const noexcept override {
            return inner_->capabilities();
        }
        MemoryDomain& domain() noexcept override { return domain_; }
        TimePoint last_sign_of_life(Duration interval) override {
            return inner_->last_sign_of_life(interval);
        }
        std::string peer_address() const override { return inner_->peer_address(); }

      private:
        std::unique_ptr<netio::Connection> inner_;
        Domain& domain_;
    };

    class Request final : public netio::ConnectionRequest {
      public:
        Request(Registrations& counter, netio::ConnectionRequest& inner)
            : counter_{counter}, inner_{inner} {}
        std::span<const std::byte> data() const noexcept override { return inner_.data(); }
        std::string peer_address() const override { return inner_.peer_address(); }
        access::Host source() const override { return inner_.source(); }
        access::AuthAddress dialled() const override { return inner_.dialled(); }
        MemoryDomain& domain() override { return counter_.domain_of(inner_.domain()); }
        bool guards_memory() const noexcept override { return inner_.guards_memory(); }
        std::unique_ptr<netio::Connection>
        make_connection(const QueueLimits& limits, netio::Connection::Handler& handler) override {
            return std::make_unique<Connection>(counter_, inner_.make_connection(limits, handler));
        }
        void reject(std::span<const std::byte> data) override { inner_.reject(data); }
        bool is_answered() const noexcept override { return inner_.is_answered(); }

      private:
        Registrations& counter_;
        netio::ConnectionRequest& inner_;
    };

    class Listener final : public netio::Listener, private netio::Listener::Handler {
      public:
        Listener(Registrations& counter, const std::string& provider, const netio::Address& local,
                 const netio::ListenOptions& options, netio::Listener::Handler& handler)
            : counter_{counter}, handler_{handler}, inner_{counter.inner().listen(provider, local,
                                                                                  options, *this)} {
        }
        netio::Address address() const override { return inner_->address(); }
        const std::string& provider() const noexcept override { return inner_->provider(); }
        void prepare(netio::RegisteredBuffer& buffer) override { inner_->prepare(buffer); }

      private:
        void on_request(netio::ConnectionRequest& request) override {
            Request counted{counter_, request};
            handler_.on_request(counted);
        }
        Registrations& counter_;
        netio::Listener::Handler& handler_;
        std::unique_ptr<netio::Listener> inner_;
    };

    // Registrations identify their domain by its address, so each domain has one object.
    Domain& domain_of(netio::MemoryDomain& inner) {
        for (const auto& [known, domain] : domains_)
            if (known == &inner) return *domain;
        domains_.emplace_back(&inner, std::make_unique<Domain>(*this, inner));
        return *domains_.back().second;
    }

    std::size_t writable_count_ = 0;
    std::vector<std::pair<netio::MemoryDomain*, std::unique_ptr<Domain>>> domains_;
};

} // namespace netio::stream::test
