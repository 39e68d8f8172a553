// SPDX-License-Identifier: Apache-2.0
#pragma once

// A completion queue shared by a group of connections. Besides reading completions it settles
// what connections leave behind: when the provider has nothing more to report, no completion of
// an endpoint that was closed before can still come, so orphaned operations are freed and broken
// connections give their last word. Settling at this moment and no other keeps the order "all
// that arrived, then the end", whichever queue told of the end first.

#include "netio/fabric/handles.hpp"
#include "netio/fabric/operations.hpp"
#include "netio/loop/event_loop.hpp"

#include <array>
#include <rdma/fi_eq.h>
#include <vector>

namespace netio::fabric {

class Domain;

class CompletionQueue final : public EventSource {
  public:
    CompletionQueue(Domain& domain, std::size_t entry_limit, std::size_t endpoint_limit);
    ~CompletionQueue();

    // The sum of the windows of a queue's endpoints never exceeds its size: on verbs an overrun is
    // fatal for all of them.
    bool has_capacity(std::size_t entry_count) const noexcept;
    void join(Connection& connection, std::size_t entry_count);
    void leave(Connection& connection, std::size_t entry_count) noexcept;

    OperationTable& operations() noexcept { return operations_; }
    // The endpoint of this operation is closed; free the slot once nothing can come any more.
    void settle_operation(std::uint32_t index);
    // Calls connection.finish_close() once everything that was delivered has been read.
    void settle_connection(Connection& connection);
    // There is, or may be, something to read.
    void activate() { loop_.activate(*this); }

    ::fid_cq& handle() noexcept { return *queue_; }
    bool draining() const noexcept { return draining_; }

    int wait_fd() const noexcept override { return wait_fd_; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override;
    bool worth_polling() const noexcept override { return true; }

  private:
    std::size_t read_and_settle(std::size_t budget);
    void deliver(const ::fi_cq_data_entry& entry);
    void deliver_error();
    std::size_t settle();
    void fail_all(long error);

    EventLoop& loop_;
    ::fid_fabric& fabric_;
    std::size_t entry_limit_;
    std::size_t endpoint_limit_;
    std::size_t entries_reserved_ = 0;
    CompletionQueueHandle queue_;
    int wait_fd_ = -1;
    bool draining_ = false;
    OperationTable operations_;
    std::vector<Connection*> members_;
    std::vector<Connection*> closing_; // nullptr: destroyed meanwhile
    std::vector<std::uint32_t> orphans_;
    std::array<::fi_cq_data_entry, 64> entries_{};
};

} // namespace netio::fabric
