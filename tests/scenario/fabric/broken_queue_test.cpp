// SPDX-License-Identifier: Apache-2.0

// Provider queues that fail permanently: each connection is notified once, and the queues are not
// polled endlessly. Also an endpoint that is refused. Real providers cannot be made to do this, so
// their calls are replaced.

#include "netio/fabric/domain.hpp"
#include "tests/scenario/fabric/ends.hpp"

#include <cerrno>

namespace netio::test::broken_queue_test {
namespace {

using netio::fabric::Domain;

std::size_t reads = 0;

ssize_t fail_to_read(::fid_cq*, void*, std::size_t) {
    ++reads;
    return -EIO;
}
ssize_t fail_to_read_event(::fid_eq*, std::uint32_t*, void*, std::size_t, std::uint64_t) {
    ++reads;
    return -EIO;
}

class BrokenQueue : public testing::Test {
  protected:
    BrokenQueue() {
        reads = 0;
        end = std::make_unique<End>(*fabric.transport, door.listener->address());
        EXPECT_TRUE(fabric.run_until([&] { return end->connected && other() != nullptr; }));
    }
    End* other() {
        return !door.ends.empty() && door.ends.front()->connected ? door.ends.front().get()
                                                                  : nullptr;
    }
    Domain& domain() { return static_cast<Domain&>(end->connection->domain()); }
    void break_completions() {
        ::fid_cq& queue = domain().queue_for(1, false).handle();
        completion_calls_ = *queue.ops;
        completion_calls_.read = fail_to_read;
        queue.ops = &completion_calls_;
        end->send(); // so that there is a completion to read
    }
    void break_events() {
        ::fid_eq& queue = domain().fabric().events_for(true).handle();
        event_calls_ = *queue.ops;
        event_calls_.read = fail_to_read_event;
        queue.ops = &event_calls_;
        fabric.loop.activate(domain().fabric().events_for(true));
    }
    static void expect_told_once(const End& one, const std::string& what) {
        ASSERT_EQ(one.closed.size(), 1U);
        EXPECT_EQ(one.closed.front().reason, CloseReason::failed);
        EXPECT_NE(one.closed.front().detail.find(what), std::string::npos)
            << one.closed.front().detail;
    }

  private:
    ::fi_ops_cq completion_calls_{};
    ::fi_ops_eq event_calls_{};

  protected:
    Fabric fabric;
    Door door{*fabric.transport, {"127.0.0.1", 0}};
    std::unique_ptr<End> end;
};

TEST_F(BrokenQueue, OfCompletionsEndsItsConnectionsOnceWithAllTheirOperations) {
    break_completions();
    ASSERT_TRUE(fabric.run_until([&] { return !end->closed.empty() && !other()->closed.empty(); }));
    expect_told_once(*end, "completion queue failed");
    expect_told_once(*other(), "completion queue failed");
    EXPECT_EQ(end->completions, receive_count + 1) << "the send as well";
    EXPECT_EQ(other()->completions, receive_count);
}

TEST_F(BrokenQueue, OfCompletionsIsNotReadAnyMoreAndAcceptsNoConnection) {
    break_completions();
    ASSERT_TRUE(fabric.run_until([&] { return !end->closed.empty(); }));
    EXPECT_EQ(reads, 1U);
    End later{*fabric.transport, door.listener->address()};
    ASSERT_TRUE(fabric.run_until([&] { return later.connected && door.ends.back()->connected; }));
    ASSERT_TRUE(later.send());
    ASSERT_TRUE(fabric.run_until([&] { return door.ends.back()->messages == 1; }));
    EXPECT_EQ(reads, 1U);
}

TEST_F(BrokenQueue, OfEventsEndsItsConnectionsOnceAndIsNotReadAnyMore) {
    break_events();
    ASSERT_TRUE(fabric.run_until([&] { return !end->closed.empty() && !other()->closed.empty(); }));
    expect_told_once(*end, "event queue failed");
    const std::size_t until_then = reads;
    End later{*fabric.transport, door.listener->address()};
    ASSERT_TRUE(fabric.run_until([&] { return !later.closed.empty(); }));
    expect_told_once(later, "event queue failed");
    EXPECT_EQ(later.completions, 0U) << "its receives were refused: its queue was already broken";
    EXPECT_EQ(reads, until_then);
}

const ::fi_ops_fabric* fabric_calls = nullptr; // the provider's
::fid_eq* last_opened = nullptr;
int remember_event_queue(::fid_fabric* fabric, ::fi_eq_attr* attributes, ::fid_eq** queue,
                         void* context) {
    const int result = fabric_calls->eq_open(fabric, attributes, queue, context);
    last_opened = *queue;
    return result;
}

TEST_F(BrokenQueue, OfAListenerPausesAndThenAcceptsTheWaitingPeers) {
    ::fid_fabric& provider = domain().fabric().handle();
    fabric_calls = provider.ops;
    ::fi_ops_fabric calls = *provider.ops;
    calls.eq_open = remember_event_queue;
    provider.ops = &calls;
    const Door later{*fabric.transport, {"127.0.0.1", 0}};
    provider.ops = const_cast<::fi_ops_fabric*>(fabric_calls);
    ASSERT_NE(last_opened, nullptr);
    ::fi_ops_eq* const own_calls = last_opened->ops;
    ::fi_ops_eq broken = *own_calls;
    broken.read = fail_to_read_event;
    last_opened->ops = &broken;

    const End newcomer{*fabric.transport, later.listener->address()};
    const TimePoint begin = Clock::now();
    ASSERT_TRUE(fabric.run_until([] { return reads >= 3 * fabric::nameless_error_limit; }));
    EXPECT_GE(Clock::now() - begin, 200ms) << "two pauses";
    last_opened->ops = own_calls;
    EXPECT_TRUE(fabric.run_until([&] { return newcomer.connected; }));
    EXPECT_TRUE(end->closed.empty()) << "the others have their own queue";
}

int refuse_to_control(::fid*, int, void*) {
    return -ENOMEM;
}
const ::fi_ops_domain* domain_calls = nullptr; // the provider's
::fi_ops endpoint_calls;
// Returns the provider's own endpoint, which cannot be enabled.
int open_endpoint(::fid_domain* domain, ::fi_info* info, ::fid_ep** endpoint, void* context) {
    const int result = domain_calls->endpoint(domain, info, endpoint, context);
    if (result == 0) {
        endpoint_calls = *(*endpoint)->fid.ops;
        endpoint_calls.control = refuse_to_control;
        (*endpoint)->fid.ops = &endpoint_calls;
    }
    return result;
}

TEST(RefusedEndpoint, LeavesItsSlotInTheQueueToTheNext) {
    Fabric fabric{{.queue_endpoint_limit = 3}}; // one slot is left when two ends are connected
    Door door{*fabric.transport, {"127.0.0.1", 0}};
    const End end{*fabric.transport, door.listener->address()};
    ASSERT_TRUE(fabric.run_until([&] { return end.connected && door.ends.front()->connected; }));
    auto& domain = static_cast<Domain&>(end.connection->domain());
    const auto* const queue = &domain.queue_for(1, false);

    ::fi_ops_domain* const own_calls = domain.handle().ops;
    domain_calls = own_calls;
    ::fi_ops_domain calls = *own_calls;
    calls.endpoint = open_endpoint;
    domain.handle().ops = &calls;
    EXPECT_THROW(End(*fabric.transport, door.listener->address()), FabricError);
    domain.handle().ops = own_calls;

    EXPECT_EQ(&domain.queue_for(1, false), queue);
    const End next{*fabric.transport, door.listener->address()};
    EXPECT_TRUE(fabric.run_until([&] { return next.connected; }));
}

} // namespace
} // namespace netio::test::broken_queue_test
