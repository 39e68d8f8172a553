// SPDX-License-Identifier: Apache-2.0
// Receives messages into memory of its own, a memfd that other processes could map, and keeps them
// there without a copy: own_receive_memory [MESSAGES]
#include "netio/fabric.hpp"
#include "netio/memory/receive_memory.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <vector>

constexpr std::size_t buffer_bytes = std::size_t{64} * 1024;
constexpr std::size_t message_bytes = 50'000;
constexpr std::size_t memory_bytes = std::size_t{4} * 1024 * 1024;

// A memfd: other processes that get its descriptor see what arrives, at the same offsets.
class SharedMemory {
  public:
    explicit SharedMemory(std::size_t bytes) : bytes_{bytes}, fd_{::memfd_create("messages", 0)} {
        if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail();
        memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        if (memory_ == MAP_FAILED) fail();
    }
    ~SharedMemory() {
        ::munmap(memory_, bytes_);
        ::close(fd_);
    }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }

  private:
    [[noreturn]] static void fail() {
        throw std::system_error{errno, std::system_category(), "cannot make shared memory"};
    }

    std::size_t bytes_;
    int fd_;
    void* memory_ = nullptr;
};

// Keeps the last messages, and prints where they are.
struct Receiver final : netio::ListenSocket::Handler {
    void on_message(netio::ReceiveSocket& socket, std::span<const std::byte> message,
                    std::optional<std::uint64_t>) override {
        ++messages;
        kept.push_back(socket.keep(message)); // stays where it is
        if (kept.size() > 16) kept.erase(kept.begin());
    }
    void on_closed(netio::ReceiveSocket&, const netio::Closed&) override { loop.stop(); }

    explicit Receiver(netio::EventLoop& its_loop) : loop{its_loop} {}
    netio::EventLoop& loop;
    unsigned long messages = 0;
    std::vector<netio::KeptBytes> kept;
};

// Sends the messages, one after the other.
struct Sender final : netio::SendSocket::Handler {
    explicit Sender(unsigned long its_count) : left{its_count} {}

    void on_connected(netio::SendSocket& socket) override { send(socket); }
    void on_send_completed(netio::SendSocket& socket, netio::Cookie,
                           netio::Completion::Outcome) override {
        if (left > 0) return send(socket);
        socket.close();
    }
    void on_writable(netio::SendSocket& socket) override { send(socket); }
    void on_closed(netio::SendSocket&, const netio::Closed& closed) override {
        failed = closed.reason != netio::CloseReason::orderly;
    }
    void send(netio::SendSocket& socket) {
        if (left > 0 && socket.send(memory.slice(), netio::Cookie{}) == netio::Status::ok) --left;
    }

    unsigned long left;
    bool failed = true;
    netio::RegisteredBuffer memory{message_bytes};
};

int main(int argc, char** argv) try {
    const unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
    // Before the loop and its network: the memory must outlive them.
    const SharedMemory file{memory_bytes};
    const std::span<std::byte> shared = file.bytes();
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    const auto memory = std::make_shared<netio::ReceiveMemory>(shared);
    netio::ListenSocket::Options options{.listen = {{"127.0.0.1", 0}}};
    options.session.receive_buffer_bytes = buffer_bytes;
    options.session.receive_count = 8;
    options.session.receive_memory = memory;
    Receiver receiver{loop};
    netio::ListenSocket listener{*transport, options, receiver};
    Sender sender{count};
    netio::SendSocket socket{*transport, {}, sender};
    socket.connect(listener.endpoints().at(0).address);
    loop.run();
    for (const netio::KeptBytes& each : receiver.kept) {
        const auto offset = each.bytes().data() - shared.data();
        if (offset < 0 || static_cast<std::size_t>(offset) + each.size() > shared.size()) return 1;
    }
    std::printf("received %lu messages; the last %zu are in the memory of this program, of which "
                "%zu bytes are free\n",
                receiver.messages, receiver.kept.size(), memory->free_bytes());
    return sender.left == 0 && receiver.messages == count ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "own_receive_memory: %s\n", error.what());
    return 1;
}
