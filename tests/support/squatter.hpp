// SPDX-License-Identifier: Apache-2.0
#pragma once

// A process without a key that listens at a former server's address. It answers each request in a
// different way: with every rejection that exists, with an undefined rejection, with an answer of
// another protocol, and with an answer that proves nothing.

#include "netio/session/handshake.hpp"
#include "netio/transport.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace netio::test {

class Squatter final : private Listener::Handler, private Connection::Handler {
  public:
    Squatter(Transport& transport, const Address& at, Service service)
        : service_{service}, listener_{transport.listen(transport.providers_at(at).front(), at,
                                                        {.allow_remote_anonymous = true}, *this)} {}

    static constexpr std::size_t answers = 11;
    std::size_t requests = 0; // request n gets answer n, then the answers start again

  private:
    static constexpr std::uint32_t wanted_bytes = 1U << 20U;

    void on_request(ConnectionRequest& request) override {
        const std::size_t answer = requests++ % answers;
        ConnectionData data{};
        if (answer < 9) {
            const Rejection rejection{.code = static_cast<RejectCode>(answer + 1),
                                      .required_bytes = wanted_bytes};
            return request.reject(std::span{data}.first(encode(rejection, data)));
        }
        Hello hello{.service = service_, .receive_buffer_bytes = 4096, .receive_count = 8};
        hello.service_data.size = 4;
        const std::size_t size = answer == 9 ? data.size() : encode(hello, data);
        connections_.push_back(
            request.make_connection({.send_count = 1, .receive_count = 1}, *this));
        connections_.back()->open(std::span{data}.first(size));
    }
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion&) override {}
    void on_closed(const Closed&) override {}

    Service service_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::unique_ptr<Listener> listener_; // last member: destroyed first
};

} // namespace netio::test
