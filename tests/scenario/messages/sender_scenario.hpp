// SPDX-License-Identifier: Apache-2.0
#pragma once

// A netio::Sender and its receiver on a loop in virtual time.

#include "netio/messages/sender.hpp"
#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/forwarding_transport.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/test_bed.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace netio::test {

// Its route lookups fail for a while because memory is short.
class PoorTransport final : public ForwardingTransport {
  public:
    using ForwardingTransport::ForwardingTransport;

    std::unique_ptr<RouteSearch> find_routes(const Address& remote, const std::string& local_host,
                                             std::function<void(FoundRoutes)> found) override {
        if (is_poor) throw std::bad_alloc{};
        return Transport::find_routes(remote, local_host, std::move(found));
    }

    bool is_poor = false;
};

class SenderScenario : public testing::TestWithParam<Bed> {
  protected:
    static constexpr std::chrono::milliseconds retry_limit{4000};

    SenderScenario() {
        options.context.emplace(transport);
        options.socket.page_size_bytes = 256;
        options.socket.page_count = 8;
        options.socket.socket.retry_interval = std::chrono::milliseconds{1};
        options.socket.socket.retry_limit = retry_limit;
    }
    void listen(ListenSocket::Options with = {}) {
        with.listen = {address.port != 0 ? address : bed.address()};
        with.allow_remote_anonymous = true;
        listener = std::make_unique<ListenSocket>(bed.transport(), with, receiver);
        address = listener->endpoints().front().address;
        if (!sender) sender = std::make_unique<netio::Sender>(address, options);
    }
    void send(std::size_t size) {
        ASSERT_EQ(sender->try_send(content(size, 0)), Status::ok);
        turn();
    }
    // Runs the tasks that wait.
    void turn() { bed.loop().run_once(); }
    void close() {
        sender->close();
        turn();
    }
    bool have_arrived(std::size_t count) {
        return bed.run_until([&] { return receiver.messages.size() == count; });
    }
    bool ends() {
        return bed.run_until([&] { return sender->is_closed(); });
    }

    LogLines lines;
    TestBed bed{GetParam()};
    PoorTransport transport{bed.transport()};
    netio::Sender::Options options;
    Receiver receiver;
    std::unique_ptr<ListenSocket> listener;
    Address address;
    std::unique_ptr<netio::Sender> sender;
};

} // namespace netio::test
