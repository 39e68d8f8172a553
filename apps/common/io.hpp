// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/signals_blocked.hpp"
#include "netio/base/status.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace apps {

// Signals, core files and threads of the process.

// The signals that ask a program to close in order. SIGHUP is one of them unless it is ignored
// (nohup) or blocked; a program blocks it if SIGHUP reopens the log file
// (apps/common/logging.hpp).
inline std::vector<int> end_signals() {
    std::vector<int> signals{SIGINT, SIGTERM};
    struct sigaction hang_up {};
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN &&
        ::sigismember(&blocked, SIGHUP) == 0)
        signals.push_back(SIGHUP);
    return signals;
}

// Whether one of these signals, which are blocked, waits to be handled.
inline bool is_signal_pending(const std::vector<int>& signals) noexcept {
    sigset_t pending;
    ::sigemptyset(&pending);
    ::sigpending(&pending);
    for (const int number : signals)
        if (::sigismember(&pending, number) == 1) return true;
    return false;
}

// For programs that have read a key: prevents core files, and prevents other processes of the same
// user from reading the memory (ptrace(2), prctl(2)).
inline void forbid_core_dumps() noexcept {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// Starts a detached thread that handles no signals. In it, writing to a closed pipe is an error
// (EPIPE), not a SIGPIPE. Throws std::system_error if no thread can be created.
template <typename Task>
void start_thread_without_signals(Task task) {
    const netio::AllSignalsBlocked blocked;
    std::thread{std::move(task)}.detach();
}

// File descriptors, files, addresses of sockets, and threads for reading and writing in the
// background.

// Owns a file descriptor.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) noexcept : fd_{fd} {}
    ~Descriptor() { reset(); }
    Descriptor(Descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }

    int get() const noexcept { return fd_; }
    bool is_open() const noexcept { return fd_ >= 0; }
    void reset() noexcept {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

  private:
    int fd_ = -1;
};

// Throws std::system_error "WHAT: REASON" with the reason from errno.
[[noreturn]] inline void throw_errno(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

// Some file systems have no locks (Lustre without -o flock, NFS without lockd, FUSE) or no fsync
// for a folder (SMB). These functions distinguish "not available" from failure, so that the caller
// can continue without it.

enum class LockOutcome : unsigned char {
    taken,
    held, // by another open file, here or in another process
    unavailable,
};
enum class LockWait : unsigned char { no, yes };

// An exclusive lock (flock(2)) that belongs to the open file. Only EWOULDBLOCK means that another
// holds it. With `unavailable`, errno is the reason.
inline LockOutcome lock_file(int fd, LockWait wait) noexcept {
    const int operation = wait == LockWait::yes ? LOCK_EX : LOCK_EX | LOCK_NB;
    for (;;) {
        if (::flock(fd, operation) == 0) return LockOutcome::taken;
        if (errno == EWOULDBLOCK) return LockOutcome::held;
        if (errno != EINTR) return LockOutcome::unavailable;
    }
}

// A warning: "FOLDER: its file system has no locks (REASON); CONSEQUENCE".
inline std::string no_locks_text(const std::string& folder, int error,
                                 const std::string& consequence) {
    return folder + ": its file system has no locks (" + std::generic_category().message(error) +
           "); " + consequence;
}

// Returns whether an errno of fsync(2) means that the file system does not support it, and not that
// bytes are lost.
inline bool has_no_sync(int error) noexcept {
    return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EBADF ||
           error == EISDIR || error == EROFS || error == EACCES || error == EPERM;
}

// Waits until the names in a folder are on the disk, if its file system can do that. On failure it
// returns false and sets errno.
inline bool sync_folder(int fd) noexcept {
    return ::fsync(fd) == 0 || has_no_sync(errno);
}

// The same for the data of a file.
inline bool sync_file(int fd) noexcept {
    return ::fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
}

// Renames a file within a directory (AT_FDCWD: paths) and fails with EEXIST if `to` exists. If the
// file system or a seccomp filter has no renameat2(2), it links the file to its new name, which
// replaces nothing either. Returns 0, or -1 and sets errno.
inline int rename_without_replacing(int directory, const char* from, const char* to) noexcept {
    if (::renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return -1;
    if (::linkat(directory, from, directory, to, 0) != 0) return -1;
    ::unlinkat(directory, from, 0);
    return 0;
}

// Reads a descriptor on its own thread, so that a loop never waits for a terminal, a pipe or a
// disk. The thread reads at most one piece ahead. The event descriptor becomes readable when a
// piece is available, at the end of the input, and on failure. Belongs to one thread. The
// destructor does not wait for a blocked read.
class BackgroundReader {
  public:
    static constexpr std::size_t piece_bytes = std::size_t{64} << 10;

    // `place` begins the text of a failure. Throws std::system_error: the system grants no thread
    // or no descriptor.
    BackgroundReader(int descriptor, std::string place);
    ~BackgroundReader();
    BackgroundReader(const BackgroundReader&) = delete;
    BackgroundReader& operator=(const BackgroundReader&) = delete;

    // Returns the next piece, valid until the next call. Returns an empty span if nothing has been
    // read yet, or if has_ended().
    std::span<const std::byte> take();
    // Returns true if all pieces were taken and no more follow.
    bool has_ended() const;
    // Why the input ended early; empty if it did not.
    std::string failure() const;

    int event_descriptor() const noexcept;
    void clear_event() noexcept;

  private:
    struct Shared; // shared with the thread, which may outlive this object
    std::shared_ptr<Shared> shared_;
};

// Writes queued bytes on its own thread, so that a loop never waits for a terminal, a pipe or a
// disk. The loop's thread queues bytes; while `is_full()` it receives no more from its peer. The
// event descriptor becomes readable when a full queue has space again, when everything is written,
// and when writing fails.
//
//     BackgroundWriter writer{DescriptorOutput{STDOUT_FILENO, "cannot write"}.write()};
//     DescriptorWatch watch{loop, writer.event_descriptor(), readable, [&] {
//         writer.clear_event();
//         if (writer.failure()) return loop.stop();
//         if (!writer.is_full()) socket.resume();
//     }};
//     writer.put(bytes);
//     if (writer.is_full()) socket.pause();
//
// Belongs to one thread. The destructor drops the queue and does not wait for a blocked write, so
// `Write` and `Finish` must own what they use.
class BackgroundWriter {
  public:
    // Runs on the thread and may block. Writes the first bytes of the queue and returns how many.
    // An exception ends the writing. Bytes of one put() arrive together.
    using Write = std::function<std::size_t(std::span<const std::byte>)>;
    // Runs on the thread after the last byte.
    using Finish = std::function<void()>;

    static constexpr std::size_t queue_limit_bytes = std::size_t{1} << 20;

    // Throws std::system_error: the system grants no thread or no descriptor.
    explicit BackgroundWriter(Write write, std::size_t limit_bytes = queue_limit_bytes);
    ~BackgroundWriter();
    BackgroundWriter(const BackgroundWriter&) = delete;
    BackgroundWriter& operator=(const BackgroundWriter&) = delete;

    // Queues all bytes, even beyond the limit: the caller checks is_full() before it receives more.
    // Does nothing after a failure.
    void put(std::span<const std::byte> bytes) { put({}, bytes); }
    void put(std::string_view text) { put({}, std::as_bytes(std::span{text})); }
    void put(std::span<const std::byte> head, std::span<const std::byte> body);
    // Announces the end of the data. is_done() returns true after `finish` has run. Later calls do
    // nothing.
    void finish(Finish finish = [] {});

    // True from the time when `limit_bytes` are queued until half of them are written.
    bool is_full() const;
    std::size_t queued_bytes() const;
    std::uint64_t written_bytes() const;
    // Returns true if everything is written, and `finish` has run if finish() was called.
    bool is_done() const;
    // Returns the first failure, at which writing stops; null if there is none.
    std::exception_ptr failure() const;

    int event_descriptor() const noexcept;
    void clear_event() noexcept;

    // For use after the loop has ended: waits until everything is written. Returns false if a
    // blocked end signal (end_signals()) arrives first. Throws the failure.
    bool wait();

  private:
    struct Shared; // shared with the thread, which may outlive this object
    std::shared_ptr<Shared> shared_;
};

// Writes to a duplicate of the descriptor. `place` begins the text of a failure, as in
// "cannot write to standard output".
class DescriptorOutput {
  public:
    DescriptorOutput(int descriptor, std::string_view place);

    BackgroundWriter::Write write() const;
    // Stops writing. The reader of a pipe or a socket receives the end of the stream. The
    // descriptor number stays in use and refers to /dev/null.
    void close() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Resolves the name of a host to addresses for the kernel's sockets.

class SocketAddress {
  public:
    SocketAddress(const sockaddr& address, socklen_t size) noexcept;

    const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
    socklen_t size() const noexcept { return size_; }
    int family() const noexcept { return storage_.ss_family; }
    std::uint16_t port() const noexcept;
    void set_port(std::uint16_t port) noexcept;

  private:
    sockaddr_storage storage_{};
    socklen_t size_;
};

enum class Lookup : std::uint8_t {
    by_name, // asks name servers, which may take long
    numeric, // immediate; finds only numeric addresses
};
// Returns at least one address, the best first. Throws std::runtime_error with the reason if there
// is none.
std::vector<SocketAddress> addresses_of(const netio::Address& address,
                                        Lookup lookup = Lookup::by_name);

} // namespace apps
