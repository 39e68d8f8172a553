// SPDX-License-Identifier: Apache-2.0
#pragma once

// Completion queues: the queue itself, the table of operations whose completions it reports, and
// the share of a connection in it.

#include "netio/base/check.hpp"
#include "netio/fabric/libfabric.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/transport.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <rdma/fi_eq.h>
#include <vector>

namespace netio::fabric {

class Connection;
class Domain;

// The operations that are in the provider's hands, one table per completion queue. Towards the
// provider an operation has a number as its name (its `op_context`), made of a slot and the slot's
// generation, never a pointer: completions arrive also after their connection was destroyed
// (libfabric's tcp reports the cancelled receives of a closed endpoint), and must be recognised
// safely. The table grows to the largest number of operations that were ever outstanding; then it
// allocates no more.
struct Operation {
    Connection* owner = nullptr; // null: free
    Cookie cookie{};
    Completion::Kind kind = Completion::Kind::send;
    bool outstanding = false;
    std::uint32_t generation = 0;
    // The connection's own operations form a list (most recent first); free slots another.
    std::uint32_t next = 0;
    std::uint32_t previous = 0;
};

class OperationTable {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    // Enters an operation at the head of its connection's list.
    std::uint32_t begin(Connection& owner, Completion::Kind kind, Cookie cookie,
                        std::uint32_t& list) {
        if (free_ == none) {
            free_ = static_cast<std::uint32_t>(slots_.size());
            slots_.push_back({.next = none, .previous = none});
        }
        const std::uint32_t index = free_;
        Operation& slot = slots_[index];
        free_ = slot.next;
        slot.owner = &owner;
        slot.cookie = cookie;
        slot.kind = kind;
        slot.outstanding = true;
        slot.previous = none;
        slot.next = list;
        if (list != none) slots_[list].previous = index;
        list = index;
        return index;
    }

    // Ends it: the slot is free for another operation, and its old name means nothing any more.
    void end(std::uint32_t index, std::uint32_t& list) noexcept {
        Operation& slot = slots_[index];
        if (slot.previous != none) slots_[slot.previous].next = slot.next;
        if (slot.next != none) slots_[slot.next].previous = slot.previous;
        if (list == index) list = slot.next;
        release(index);
    }

    // Without the list around it, as its connection gives all of them up. The provider may still
    // report it; its name means nothing then.
    void release(std::uint32_t index) noexcept {
        Operation& slot = slots_[index];
        slot.owner = nullptr;
        slot.outstanding = false;
        ++slot.generation;
        slot.next = free_;
        slot.previous = none;
        free_ = index;
    }

    // Never null, so that a completion without a context can be recognised.
    void* name_of(std::uint32_t index) const noexcept {
        const std::uint64_t number =
            (static_cast<std::uint64_t>(slots_[index].generation) << 32U) | (index + 1U);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the provider only hands it back
        return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
    }

    // The slot a name stands for, or `none` if that operation has ended.
    std::uint32_t find(const void* name) const noexcept {
        const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(name));
        const auto index = static_cast<std::uint32_t>(number) - 1U;
        if (index >= slots_.size() || !slots_[index].outstanding) return none;
        return slots_[index].generation == static_cast<std::uint32_t>(number >> 32U) ? index : none;
    }

    Operation& operator[](std::uint32_t index) noexcept { return slots_[index]; }
    std::size_t size() const noexcept { return slots_.size(); }

  private:
    std::vector<Operation> slots_;
    std::uint32_t free_ = none;
};

// A completion queue that a group of connections shares. It also settles connections that are about
// to end: their on_closed comes after all that had arrived for them was delivered, whichever queue
// reported the end first. That is so when none of their operations is outstanding, when as many
// completions were read as the queue can hold, or when the queue was empty. Waiting for an empty
// queue alone would not do, since under load it never is.
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
    // For QueueReservation. Returns false if the queue has not enough free entries.
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
        std::uint64_t due = 0;            // number of the entry after which it is settled
    };

    struct Batch { // read, and not yet delivered from `next` up to `filled`
        std::array<::fi_cq_data_entry, 64> entries{};
        std::size_t next = 0;
        std::size_t filled = 0;
        bool is_last = false; // the queue was empty after it
    };
    struct Audits {
        TimePoint due{};
        std::size_t next = 0; // place in members_
    };

    std::size_t read_and_settle(std::size_t budget);
    // Reads more entries if none are left. Returns false if there are none.
    bool refill();
    void deliver(const ::fi_cq_data_entry& entry);
    void deliver_error();
    // `empty`: nothing is left to read. Reports at most `budget` events, and none when the time is
    // up.
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

// The entries that an endpoint may need in a completion queue, released with this object. It must
// outlive the endpoint.
class QueueReservation {
  public:
    // `alone`: in a queue of its own, which is closed with it.
    QueueReservation(Domain& domain, std::size_t entry_count, bool alone);
    ~QueueReservation();
    QueueReservation(const QueueReservation&) = delete;
    QueueReservation& operator=(const QueueReservation&) = delete;

    // Reserves more entries. Returns false if the queue has not enough.
    bool reserve(std::size_t entry_count) noexcept {
        if (!queue_.reserve(entry_count)) return false;
        entry_count_ += entry_count;
        return true;
    }
    CompletionQueue& queue() const noexcept { return queue_; }
    bool is_alone() const noexcept { return alone_; }

  private:
    Domain& domain_;
    std::size_t entry_count_;
    bool alone_;
    CompletionQueue& queue_;
};

// A connection's membership in a completion queue, ended with this object.
class CompletionQueueRef {
  public:
    CompletionQueueRef(Domain& domain, Connection& connection, std::size_t entry_count, bool alone)
        : connection_{connection}, reservation_{std::make_shared<QueueReservation>(
                                       domain, entry_count, alone)} {
        queue().join(connection_);
    }
    ~CompletionQueueRef() { queue().leave(connection_); }
    CompletionQueueRef(const CompletionQueueRef&) = delete;
    CompletionQueueRef& operator=(const CompletionQueueRef&) = delete;

    bool reserve(std::size_t entry_count) noexcept { return reservation_->reserve(entry_count); }
    CompletionQueue& queue() const noexcept { return reservation_->queue(); }
    bool is_alone() const noexcept { return reservation_->is_alone(); }
    // For an endpoint that outlives its connection.
    const std::shared_ptr<QueueReservation>& reservation() const noexcept { return reservation_; }

  private:
    Connection& connection_;
    std::shared_ptr<QueueReservation> reservation_;
};

// libfabric's tcp provider up to 1.17 signals a completion queue to threads that wait for it: it
// writes a byte into a pipe for completions, and reads it at the next look. These are two system
// calls for every message of a paced stream, and not needed here: a queue and all its endpoints
// belong to one thread, which looks into the queue after each call to one of them.
//
// Takes the pipe out of what a new queue's descriptor (an epoll's) waits for: the first byte stays
// in it, and no other is written. True: it is out; fi_trywait must not be called for the queue any
// more, as it would read that byte. False: all is as it was.
bool take_out_signal_pipe(int wait_fd) noexcept;

} // namespace netio::fabric
