// SPDX-License-Identifier: Apache-2.0
#pragma once

// A completion queue shared by a group of connections. Besides reading completions it settles
// connections that are about to end: their on_closed comes when all that had arrived for them was
// delivered, whichever queue told of the end first. That is so when nothing of theirs is
// outstanding, or when so many completions were read as the queue can hold, or when it was empty;
// it does not wait for an empty queue alone, since under load it never is.

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
    struct Limits {
        std::size_t entries;
        std::size_t endpoints;
        bool alone = false; // one endpoint, and never another one
    };
    CompletionQueue(Domain& domain, const Limits& limits);
    ~CompletionQueue();

    // The sum of the windows of a queue's endpoints never exceeds its size: on verbs an overrun is
    // fatal for all of them.
    bool has_capacity(std::size_t entry_count) const noexcept;
    void join(Connection& connection);
    void leave(Connection& connection) noexcept;
    // Of an endpoint (netio/fabric/queue_seat.hpp). False: there is no room for so many.
    bool reserve(std::size_t entry_count) noexcept;
    void give_back(std::size_t entry_count) noexcept;

    OperationTable& operations() noexcept { return operations_; }
    // Calls connection.finish_close() until it has, once everything that was delivered was read.
    void settle_connection(Connection& connection);
    // There is, or may be, something to read.
    void activate() { loop_.activate(*this); }
    // Keeps the provider from doing anything until release().
    void hold() noexcept { held_ = true; }
    void release() {
        held_ = false;
        activate();
    }

    ::fid_cq& handle() noexcept { return *queue_; }
    bool draining() const noexcept { return draining_; }

    int wait_fd() const noexcept override { return wait_fd_; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override;
    bool worth_polling() const noexcept override { return true; }

  private:
    struct Closing {
        Connection* connection = nullptr; // null: settled, or destroyed meanwhile
        std::uint64_t due = 0;            // when so many entries were read
    };

    struct Batch { // read, and not yet delivered from `next` up to `filled`
        std::array<::fi_cq_data_entry, 64> entries{};
        std::size_t next = 0;
        std::size_t filled = 0;
        bool is_last = false; // the queue was empty behind it
    };
    struct Audits {
        TimePoint due{};
        std::size_t next = 0; // place in members_
    };

    std::size_t read_and_settle(std::size_t budget);
    // Reads more entries if none are left; false: there are none.
    bool refill();
    void deliver(const ::fi_cq_data_entry& entry);
    void deliver_error();
    // `empty`: nothing is left to read. At most so many pieces, and none when the time is up.
    std::size_t settle(bool empty, std::size_t budget);
    std::size_t finish(std::size_t place, std::size_t budget);
    void fail_all(long error);
    void audit_some();

    EventLoop& loop_;
    ::fid_fabric& fabric_;
    const Limits limits_;
    std::size_t entries_reserved_ = 0;
    CompletionQueueHandle queue_;
    int wait_fd_ = -1;
    bool draining_ = false;
    OperationTable operations_;
    std::vector<Connection*> members_;
    std::vector<Closing> closing_;
    Batch batch_;
    std::uint64_t delivered_ = 0; // so far
    Audits audits_;
    bool unsignalled_ = false; // its descriptor says nothing of completions, only of sockets
    bool failed_ = false;      // for good: it is not read any more
    bool held_ = false;        // it is not read for the time being
};

} // namespace netio::fabric
