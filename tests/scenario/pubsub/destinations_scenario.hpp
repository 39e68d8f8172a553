// SPDX-License-Identifier: Apache-2.0
#pragma once

// A client's destinations in virtual time: the tasks of its thread run when the test calls them.

#include "pubsub/client/destinations.hpp"
#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/forwarding_transport.hpp"
#include "tests/support/test_bed.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::test {

// Its route lookups fail for a while because memory is short.
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

class DestinationsScenario : public testing::TestWithParam<netio::test::Bed> {
  protected:
    static constexpr std::chrono::milliseconds retry_limit{4000};

    explicit DestinationsScenario(Destinations::Options options) {
        options.socket.socket.retry_interval = std::chrono::milliseconds{1};
        options.socket.socket.retry_limit = retry_limit;
        all = std::make_unique<Destinations>(
            std::move(options),
            ClientCalls{.post =
                                    [this](std::function<void()> task) {
                                        return tasks.push_back(std::move(task)), true;
                                    },
                                .report = [this](const std::string& line) { told.push_back(line); },
                                .ended = [this] { ++ended; }});
        all->set_transport(transport);
    }
    void do_tasks() {
        for (const auto& task : std::exchange(tasks, {}))
            task();
    }
    void send(const Address& to, std::size_t size) {
        ASSERT_EQ(all->send(to, netio::test::content(size, 0)), Status::ok);
        do_tasks();
    }
    bool have_arrived(const netio::test::Receiver& there, std::size_t count) {
        return bed.run_until([&] { return there.messages.size() == count; });
    }

    netio::test::TestBed bed{GetParam()};
    PoorTransport transport{bed.transport()};
    std::deque<std::function<void()>> tasks;
    std::vector<std::string> told;
    int ended = 0;
    std::unique_ptr<Destinations> all;
};

} // namespace netio::pubsub::test
