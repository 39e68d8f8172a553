// SPDX-License-Identifier: Apache-2.0
#include "apps/common/io.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace apps {

struct BackgroundReader::Shared {
    Shared(int descriptor, std::string whose)
        : place{std::move(whose)}, input{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)},
          event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, next(piece_bytes), given(piece_bytes) {
        if (!event.is_open())
            throw std::system_error{errno, std::generic_category(),
                                    "cannot begin a thread for input"};
    }

    void serve() {
        for (;;) {
            const ssize_t got = ::read(input.get(), next.data(), next.size());
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) { // another process has made it non-blocking
                pollfd waiting{.fd = input.get(), .events = POLLIN, .revents = 0};
                ::poll(&waiting, 1, -1);
                continue;
            }
            const int error = got < 0 ? errno : 0;
            std::unique_lock lock{mutex};
            if (error != 0) failure = place + ": " + std::generic_category().message(error);
            filled = got > 0 ? static_cast<std::size_t>(got) : 0;
            at_end = got <= 0;
            ::eventfd_write(event.get(), 1);
            if (at_end) return;
            changed.wait(lock, [this] { return filled == 0 || dropped; });
            if (dropped) return;
        }
    }

    const std::string place;
    const Descriptor input;
    const Descriptor event;
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::byte> next; // owned by the thread while `filled` is 0
    std::size_t filled = 0;
    std::vector<std::byte> given; // owned by the caller
    std::string failure;
    bool at_end = false;
    bool dropped = false; // the owner was destroyed
};

BackgroundReader::BackgroundReader(int descriptor, std::string place)
    : shared_{std::make_shared<Shared>(descriptor, std::move(place))} {
    start_thread_without_signals([shared = shared_] { shared->serve(); });
}

BackgroundReader::~BackgroundReader() {
    const std::lock_guard lock{shared_->mutex};
    shared_->dropped = true;
    shared_->changed.notify_one();
}

std::span<const std::byte> BackgroundReader::take() {
    const std::lock_guard lock{shared_->mutex};
    const std::size_t bytes = std::exchange(shared_->filled, 0);
    if (bytes == 0) return {}; // the thread may be reading into `next`
    std::swap(shared_->next, shared_->given);
    shared_->changed.notify_one();
    return std::span{shared_->given}.first(bytes);
}

bool BackgroundReader::has_ended() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->at_end && shared_->filled == 0;
}

std::string BackgroundReader::failure() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->failure;
}

int BackgroundReader::event_descriptor() const noexcept {
    return shared_->event.get();
}

void BackgroundReader::clear_event() noexcept {
    eventfd_t count = 0;
    ::eventfd_read(shared_->event.get(), &count);
}

namespace {

// What the user can do about this errno.
std::string_view remedy(int error) {
    switch (error) {
    case EPIPE:
        return "; the program that reads it has ended";
    case ENOSPC:
    case EDQUOT:
        return "; free space there, or redirect it to another file system";
    case EFBIG:
        return "; the file may not grow further (ulimit -f), redirect it elsewhere";
    case EBADF:
        return "; it is closed or opened for reading only, redirect it to a file or a pipe";
    case EIO:
        return "; the terminal or the device was closed";
    default:
        return "";
    }
}

// Returns whether one of the end signals, which the loop has blocked, is pending.
bool end_signal_has_come() {
    sigset_t wanted;
    ::sigemptyset(&wanted);
    for (const int number : end_signals())
        ::sigaddset(&wanted, number);
    const timespec at_once{};
    return ::sigtimedwait(&wanted, nullptr, &at_once) > 0;
}

} // namespace

struct BackgroundWriter::Shared {
    Shared(Write by, std::size_t limit_bytes)
        : write{std::move(by)}, limit{limit_bytes}, event{
                                                        ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (!event.is_open())
            throw std::system_error{errno, std::generic_category(),
                                    "cannot begin a thread for output"};
    }

    std::size_t total() const { return queue.size() + taken; }
    void tell() const { ::eventfd_write(event.get(), 1); }

    void serve() {
        std::vector<std::byte> chunk;
        try {
            while (take(chunk))
                write_all(chunk);
            if (finish) finish();
        } catch (...) {
            const std::lock_guard lock{mutex};
            failure = std::current_exception();
            queue.clear();
            taken = 0;
        }
        const std::lock_guard lock{mutex};
        ended = true;
        tell();
    }
    // Returns false if no more data follows.
    bool take(std::vector<std::byte>& chunk) {
        std::unique_lock lock{mutex};
        chunk.clear();
        changed.wait(lock, [this] { return !queue.empty() || finish || dropped; });
        if (dropped) finish = {};
        if (queue.empty() || dropped) return false;
        std::swap(chunk, queue);
        taken = chunk.size();
        return true;
    }
    void write_all(std::span<const std::byte> rest) {
        while (!rest.empty()) {
            const std::size_t bytes = write(rest);
            rest = rest.subspan(bytes);
            const std::lock_guard lock{mutex};
            if (dropped) return;
            taken -= bytes;
            written += bytes;
            const bool has_room = full && total() <= limit / 2;
            if (has_room) full = false;
            if (has_room || total() == 0) tell();
        }
    }

    const Write write;
    const std::size_t limit;
    const Descriptor event;
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::byte> queue;
    std::size_t taken = 0; // bytes that the thread holds and has not written yet
    std::uint64_t written = 0;
    Finish finish;
    std::exception_ptr failure;
    bool full = false;
    bool dropped = false; // the owner was destroyed
    bool ended = false;   // the thread has stopped writing
};

BackgroundWriter::BackgroundWriter(Write write, std::size_t limit_bytes)
    : shared_{std::make_shared<Shared>(std::move(write), limit_bytes)} {
    start_thread_without_signals([shared = shared_] { shared->serve(); });
}

BackgroundWriter::~BackgroundWriter() {
    const std::lock_guard lock{shared_->mutex};
    shared_->dropped = true;
    shared_->changed.notify_one();
}

void BackgroundWriter::put(std::span<const std::byte> head, std::span<const std::byte> body) {
    const std::lock_guard lock{shared_->mutex};
    if (shared_->failure || shared_->finish) return;
    std::vector<std::byte>& queue = shared_->queue;
    queue.insert(queue.end(), head.begin(), head.end());
    queue.insert(queue.end(), body.begin(), body.end());
    if (shared_->total() >= shared_->limit) shared_->full = true;
    shared_->changed.notify_one();
}

void BackgroundWriter::finish(Finish finish) {
    const std::lock_guard lock{shared_->mutex};
    if (shared_->finish) return; // the thread may be running it
    shared_->finish = std::move(finish);
    shared_->changed.notify_one();
}

bool BackgroundWriter::is_full() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->full;
}

std::size_t BackgroundWriter::queued_bytes() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->total();
}

std::uint64_t BackgroundWriter::written_bytes() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->written;
}

bool BackgroundWriter::is_done() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->ended || (shared_->total() == 0 && !shared_->finish);
}

std::exception_ptr BackgroundWriter::failure() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->failure;
}

int BackgroundWriter::event_descriptor() const noexcept {
    return shared_->event.get();
}

void BackgroundWriter::clear_event() noexcept {
    eventfd_t count = 0;
    ::eventfd_read(shared_->event.get(), &count);
}

bool BackgroundWriter::wait() {
    constexpr int between_looks_ms = 20;
    for (;;) {
        if (const auto failed = failure()) std::rethrow_exception(failed);
        if (is_done()) return true;
        pollfd event{.fd = event_descriptor(), .events = POLLIN, .revents = 0};
        ::poll(&event, 1, between_looks_ms);
        clear_event();
        if (!is_done() && end_signal_has_come()) return false;
    }
}

// --- a descriptor ---------------------------------------------------------------------------

struct DescriptorOutput::State {
    State(int descriptor, std::string_view whose)
        : number{descriptor}, place{whose}, duplicate{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)},
          piece{::isatty(descriptor) == 1 ? terminal_piece : any_piece} {}

    std::size_t write(std::span<const std::byte> bytes) const {
        const ssize_t written =
            ::write(duplicate.get(), bytes.data(), std::min(piece, bytes.size()));
        if (written > 0) return static_cast<std::size_t>(written);
        if (written < 0 && errno == EINTR) return 0;
        if (written < 0 && errno == EAGAIN) { // another process has made it non-blocking
            pollfd waiting{.fd = duplicate.get(), .events = POLLOUT, .revents = 0};
            ::poll(&waiting, 1, -1);
            return 0;
        }
        const int error = written < 0 ? errno : EIO;
        throw std::runtime_error{place + ": " + std::generic_category().message(error) +
                                 std::string{remedy(error)}};
    }

    // Small writes, so that the progress of a slow terminal or pipe is visible.
    static constexpr std::size_t terminal_piece = 256;
    static constexpr std::size_t any_piece = std::size_t{16} << 10;

    int number;
    std::string place;
    Descriptor duplicate;
    std::size_t piece;
};

DescriptorOutput::DescriptorOutput(int descriptor, std::string_view place)
    : state_{std::make_shared<State>(descriptor, place)} {}

BackgroundWriter::Write DescriptorOutput::write() const {
    return [state = state_](std::span<const std::byte> bytes) { return state->write(bytes); };
}

void DescriptorOutput::close() const {
    struct stat output {};
    struct stat log {};
    ::fstat(state_->number, &output);
    ::fstat(STDERR_FILENO, &log);
    // Standard input and the log may use the same socket, and the log continues.
    const bool is_log = output.st_dev == log.st_dev && output.st_ino == log.st_ino;
    if (S_ISSOCK(output.st_mode) && !is_log) ::shutdown(state_->number, SHUT_WR);
    state_->duplicate.reset();
    const Descriptor nowhere{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    ::dup2(nowhere.get(), state_->number);
}

SocketAddress::SocketAddress(const sockaddr& address, socklen_t size) noexcept
    : size_{std::min<socklen_t>(size, sizeof storage_)} {
    std::memcpy(&storage_, &address, size_);
}

std::uint16_t SocketAddress::port() const noexcept {
    return ntohs(family() == AF_INET ? reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port
                                     : reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
}

void SocketAddress::set_port(std::uint16_t port) noexcept {
    if (family() == AF_INET) {
        reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
    } else {
        reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
    }
}

std::vector<SocketAddress> addresses_of(const netio::Address& address, Lookup lookup) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = lookup == Lookup::numeric ? AI_NUMERICHOST : 0;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int failure = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
    if (failure != 0) throw std::runtime_error{::gai_strerror(failure)};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list{found, ::freeaddrinfo};
    std::vector<SocketAddress> addresses;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
        addresses.emplace_back(*each->ai_addr, each->ai_addrlen);
    return addresses;
}

} // namespace apps
