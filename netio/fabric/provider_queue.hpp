// SPDX-License-Identifier: Apache-2.0
#pragma once

// Completion queues: the queue, the table of operations whose completions it reports, and the
// membership of a connection in it.

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

// The operations that were passed to the provider, one table per completion queue. The provider
// gets a number as the name of an operation (its `op_context`), made of a slot and the slot's
// generation, never a pointer: completions also arrive after their connection was destroyed
// (libfabric's tcp reports the cancelled receives of a closed endpoint), and must be recognised
// safely. The table grows to the largest number of simultaneous operations and does not shrink.
struct Operation {
    Connection* owner = nullptr; // null: free
    Cookie cookie{};
    Completion::Kind kind = Completion::Kind::send;
    bool outstanding = false;
    std::uint32_t generation = 0;
    // The operations of a connection form a list (the latest first); free slots form another.
    std::uint32_t next = 0;
    std::uint32_t previous = 0;
};

class OperationTable {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;

    // Adds an operation at the head of its connection's list.
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

    // Ends an operation: its slot is free, and its old name is invalid.
    void end(std::uint32_t index, std::uint32_t& list) noexcept {
        Operation& slot = slots_[index];
        if (slot.previous != none) slots_[slot.previous].next = slot.next;
        if (slot.next != none) slots_[slot.next].previous = slot.previous;
        if (list == index) list = slot.next;
        release(index);
    }

    // Ends an operation without updating the list, when its connection ends all of them. The
    // provider may still report it; its name is invalid then.
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
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the provider only returns it
        return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
    }

    // The slot of a name, or `none` if that operation has ended.
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

// A completion queue that several connections share. It also settles connections that are about to
// end: their on_closed comes after everything that had arrived for them was delivered, whichever
// queue reported the end first. A connection is settled when none of its operations is outstanding,
// when as many completions were read as the queue can hold, or when the queue was empty. The last
// condition alone is not enough, because under load the queue is never empty.
class ProviderQueue final : public EventSource {
  public:
    struct Limits {
        std::size_t entries;
        std::size_t endpoints;
        bool alone = false; // one endpoint, never shared
    };
    ProviderQueue(Domain& domain, const Limits& limits);
    ~ProviderQueue();

    // Whether an endpoint that needs this number of entries may join. The sum over all endpoints of
    // a queue never exceeds its size: on verbs an overrun is fatal for all of them.
    bool has_capacity(std::size_t entry_count) const noexcept;
    void join(Connection& connection);
    void leave(Connection& connection) noexcept;
    // For QueueReservation. Returns false if the queue has too few free entries.
    bool reserve(std::size_t entry_count) noexcept;
    void give_back(std::size_t entry_count) noexcept;

    OperationTable& operations() noexcept { return operations_; }
    // Calls connection.finish_close() until it is done, after all delivered completions were read.
    void settle_connection(Connection& connection);
    // Call it when there may be completions to read.
    void activate() { loop_.activate(*this); }
    // Stops all reading by the provider until release().
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
        Connection* connection = nullptr; // null: settled, or destroyed in the meantime
        std::uint64_t due = 0; // the connection is settled after the entry of this number
    };

    struct Batch { // entries that were read; those from `next` to `filled` are not delivered yet
        std::array<::fi_cq_data_entry, 64> entries{};
        std::size_t next = 0;
        std::size_t filled = 0;
        bool is_last = false; // the queue was empty after it
    };
    struct Audits {
        TimePoint due{};
        std::size_t next = 0; // index in members_
    };

    std::size_t read_and_settle(std::size_t budget);
    // Reads more entries if none are left. Returns false if there are none.
    bool refill();
    void deliver(const ::fi_cq_data_entry& entry);
    void deliver_error();
    // Reports the ends of connections that are settled; `empty`: the queue has no entry left to
    // read. Reports at most `budget` events, and none when the loop's time for this turn is up.
    // Returns the number of events.
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
    bool unsignalled_ = false; // its descriptor reports no completions, only sockets
    bool failed_ = false;      // permanently: it is not read any more
    bool held_ = false;        // temporarily: it is not read now
};

// The entries that an endpoint may need in a completion queue, released with this object. It must
// outlive the endpoint.
class QueueReservation {
  public:
    // `alone`: in a separate queue, which is closed with this object.
    QueueReservation(Domain& domain, std::size_t entry_count, bool alone);
    ~QueueReservation();
    QueueReservation(const QueueReservation&) = delete;
    QueueReservation& operator=(const QueueReservation&) = delete;

    // Reserves more entries. Returns false if the queue has too few.
    bool reserve(std::size_t entry_count) noexcept {
        if (!queue_.reserve(entry_count)) return false;
        entry_count_ += entry_count;
        return true;
    }
    ProviderQueue& queue() const noexcept { return queue_; }
    bool is_alone() const noexcept { return alone_; }

  private:
    Domain& domain_;
    std::size_t entry_count_;
    bool alone_;
    ProviderQueue& queue_;
};

// A connection's membership in a completion queue, ended with this object.
class ProviderQueueRef {
  public:
    ProviderQueueRef(Domain& domain, Connection& connection, std::size_t entry_count, bool alone)
        : connection_{connection}, reservation_{std::make_shared<QueueReservation>(
                                       domain, entry_count, alone)} {
        queue().join(connection_);
    }
    ~ProviderQueueRef() { queue().leave(connection_); }
    ProviderQueueRef(const ProviderQueueRef&) = delete;
    ProviderQueueRef& operator=(const ProviderQueueRef&) = delete;

    bool reserve(std::size_t entry_count) noexcept { return reservation_->reserve(entry_count); }
    ProviderQueue& queue() const noexcept { return reservation_->queue(); }
    bool is_alone() const noexcept { return reservation_->is_alone(); }
    // For an endpoint that outlives its connection.
    const std::shared_ptr<QueueReservation>& reservation() const noexcept { return reservation_; }

  private:
    Connection& connection_;
    std::shared_ptr<QueueReservation> reservation_;
};

// libfabric's tcp provider up to 1.17 signals a completion queue to threads that wait for it: it
// writes a byte into a pipe for completions, and reads it when the queue is read next. These are
// two system calls for every message of a paced stream. They are not needed here: a queue and all
// its endpoints belong to one thread, which reads the queue after each call to one of them.
//
// Removes the pipe from a new queue's descriptor (an epoll instance): the first byte stays in the
// pipe, and no other is written. Returns true if it was removed; then fi_trywait must not be called
// for the queue any more, because it would read that byte. Returns false if nothing was changed.
bool take_out_signal_pipe(int wait_fd) noexcept;

} // namespace netio::fabric
