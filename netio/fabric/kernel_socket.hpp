// SPDX-License-Identifier: Apache-2.0
#pragma once

// The descriptors of this process, and the kernel sockets of endpoints among them.

// The descriptors of this process: how many are free, and which ones a library has opened.

#include "netio/access/host.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <rdma/fi_endpoint.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::fabric {

// The number that the next descriptor will get; -1: none is free.
int lowest_free_descriptor() noexcept;
// Whether so few are free that no new peer may use one, because existing peers must be served and
// closed.
bool descriptors_are_short() noexcept;

// Visits the descriptors that are open now. Throws FabricError if they cannot be listed.
void for_each_descriptor(const std::function<void(int fd)>& visit);

// Marks descriptors that libfabric opens while this object lives as close-on-exec, and those that
// other threads open during that time. Otherwise programs that are exec'ed would inherit them
// (measured, libfabric 1.17 and 2.5): a port stays in use, and a peer does not notice that this
// process has ended. Lists all descriptors, so it is for set-up only.
class CloseOnExec {
  public:
    CloseOnExec();
    ~CloseOnExec();
    CloseOnExec(const CloseOnExec&) = delete;
    CloseOnExec& operator=(const CloseOnExec&) = delete;

    static void set(int fd) noexcept;

  private:
    const AllSignalsBlocked blocked_; // libfabric may start threads
    std::vector<int> before_;
};

// The same for a call that opens a few descriptors and is made often: it checks only the numbers
// that the next descriptors will get.
class FewCloseOnExec {
  public:
    FewCloseOnExec() noexcept;
    ~FewCloseOnExec();
    FewCloseOnExec(const FewCloseOnExec&) = delete;
    FewCloseOnExec& operator=(const FewCloseOnExec&) = delete;

  private:
    std::array<int, 12> next_; // -1: none
};

// What libfabric's tcp provider does not offer, done on its kernel sockets:
//   - a low-water mark on a listening socket, which accepted sockets inherit: a connection request
//     is reported when all of it is there. The provider reads the second half of a request
//     blocking, so an unauthenticated peer that sends only the first half would block the event
//     loop (measured, libfabric 1.17 and 2.5). A request contains its own length, and the socket
//     waits for the longest one, so requests of this library are padded to that length. If the
//     kernel reports fewer bytes, because it is short of memory, a receive time-out bounds the
//     wait.
//   - a mark on a listening socket that the sockets accepted from it inherit, so that pending peers
//     of this listener are never mistaken for other sockets of this process, or the other way
//     round.
//   - the kernel's acknowledgements as signs of life (tcp(7), TCP_INFO and keepalive).
// Each socket is searched for once among the descriptors of this process: newer providers return
// the descriptor (FI_GET_FD), the oldest supported version does not. Sockets that were found are
// entered in a table of the process, so that they are not searched again.

// For a connection request or answer of the tcp provider: the number of bytes before the connection
// data, and the most that it reads of the data.
inline constexpr std::size_t tcp_message_header_bytes = 32;
inline constexpr std::size_t tcp_message_data_bytes = 256;

// A socket of the provider, in the table during the lifetime of this object. The provider owns the
// descriptor; this object must be destroyed before the provider closes it.
class KernelSocket {
  public:
    KernelSocket() = default; // no socket
    explicit KernelSocket(int fd);
    ~KernelSocket();
    KernelSocket(KernelSocket&& other) noexcept;
    KernelSocket& operator=(KernelSocket&& other) noexcept;

    explicit operator bool() const noexcept { return fd_ >= 0; }
    int fd() const noexcept { return fd_; }
    // The local address.
    access::AuthAddress local() const noexcept;
    // Reports all bytes that arrive from now on. Returns false if the kernel refuses it.
    [[nodiscard]] bool report_all() const noexcept { return report_from(1); }
    // Makes the socket readable once `byte_count` bytes or the end have arrived. Returns false if
    // the kernel refuses it.
    [[nodiscard]] bool report_from(std::size_t byte_count) const noexcept;
    // Whether bytes were passed to the kernel for sending, delivered or not.
    bool has_sent() const noexcept;
    // Copies the bytes that have arrived, without removing them. Returns their number; 0: the peer
    // has ended the connection; negative: an error of errno.
    long peek(std::span<std::byte> into) const noexcept;
    // Whether no more bytes can arrive.
    bool is_at_end() const noexcept;

    // For a connection: makes the kernel probe an idle peer about once per interval.
    void probe_when_idle(Duration interval) const noexcept;
    // The number of bytes of the peer that were read here; nullopt if the kernel does not report
    // it.
    std::optional<std::uint64_t> read_bytes() const noexcept;
    // The time since the peer's kernel last acknowledged or sent anything.
    Duration silence() const noexcept;

  private:
    int fd_ = -1;
};

// The socket of an endpoint that has begun to connect; `guess` is checked first.
KernelSocket find_attempt(::fid_ep& endpoint, const void* remote, int guess);
// The socket of a connected endpoint; `guess` is checked first.
KernelSocket find_connection(::fid_ep& endpoint, int guess);
// A connected socket of this process with these addresses, or none; `guess` is checked first.
KernelSocket find_connection(const access::AuthAddress& local, const access::AuthAddress& peer,
                             int guess);
// Whether the descriptor is a stream socket that is not in the table; for the `guess` above.
bool may_be_new_socket(int fd);

// The listening socket of a provider, and the sockets accepted from it.
class ListeningSocket {
  public:
    // Finds the socket that is bound to this address. Throws FabricError if it cannot be found or
    // set up.
    ListeningSocket(const access::AuthAddress& local, std::chrono::milliseconds receive_limit);

    // Whether the descriptor is a socket that was accepted here and is not in the table yet.
    bool has_accepted(int fd) const;
    // The socket that was accepted here from this peer; none if it is gone. `known`: its
    // descriptor; -1: all are checked.
    KernelSocket find_accepted(const access::AuthAddress& peer, int known) const;
    static std::optional<access::AuthAddress> peer_of(int fd);
    static std::string name_of_peer(int fd); // for display
    // Whether all of a request has arrived, read or not.
    static bool has_requested(int fd);
    // Visits the sockets accepted here that are not in the table yet.
    void for_each_pending(
        const std::function<void(const access::AuthAddress& peer, int fd)>& visit) const;

    // Shuts them down, also those that were shut down before. Returns how many are still open.
    std::size_t cut_off_pending() const;

  private:
    // Two settings that have no effect until keepalive is switched on, and that accepted sockets
    // inherit.
    struct Mark {
        int idle;
        int interval;
        friend bool operator==(const Mark&, const Mark&) = default;
    };
    static Mark next_mark() noexcept;
    static std::optional<Mark> mark_of(int fd) noexcept;

    access::AuthAddress local_;
    KernelSocket socket_;
    Mark mark_;
};

// Shuts a socket down. The provider owns the descriptor and closes it when it reads the end.
void cut_off(int fd) noexcept;

// Prevents the tcp provider from reading messages of a peer before this side has checked the peer's
// answer. The provider parses messages without sufficient checks (docs/security.md), and continues
// with them after it has read an accept. So the answer is first copied from the socket (MSG_PEEK):
//
//     asking --the provider has sent the request--> waiting
//     waiting --an accept has arrived--> judging --open()--> open
//     waiting --any other message--> passed: the provider makes an error or a rejection of it
//
// The provider may read only when look() permits it. look() decides without waiting.
class AnswerCheck {
  public:
    // The socket must outlive this.
    explicit AnswerCheck(const KernelSocket& socket) noexcept;

    enum class Next : std::uint8_t {
        read,  // the provider may read: it is connecting, or no accept has arrived
        wait,  // it may not read; the socket becomes readable
        judge, // it may not read before answer() is checked and open() called
        ended, // the peer has ended the connection without an answer: error()
    };
    Next look() noexcept;
    // The data of an accept.
    std::span<const std::byte> answer() const noexcept;
    void open() noexcept { let_read(State::open); }
    // Whether an accept was checked.
    bool is_open() const noexcept { return state_ == State::open; }
    // 0: closed in order.
    int error() const noexcept { return error_; }

  private:
    enum class State : std::uint8_t { asking, waiting, judging, passed, open };

    Next look_at_answer() noexcept;
    void let_read(State state) noexcept;

    const KernelSocket& socket_;
    State state_ = State::asking;
    std::array<std::byte, tcp_message_header_bytes + tcp_message_data_bytes> bytes_{};
    std::size_t size_ = 0; // of the whole answer
    int error_ = 0;
};

} // namespace netio::fabric
