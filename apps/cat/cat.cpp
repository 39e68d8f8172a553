// SPDX-License-Identifier: Apache-2.0

// netio cat: standard input to a stream, and the stream to standard output.

#include "apps/common/fabric_faults.hpp"
#include "apps/common/keys.hpp"
#include "apps/common/log_observer.hpp"
#include "apps/common/option_values.hpp"
#include "apps/common/remote_writes.hpp"
#include "apps/program/commands.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <CLI/CLI.hpp>

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

namespace apps::cat {
namespace {

using netio::stream::BlockingStream;

struct Arguments {
    std::string peer;
    std::string listen;
    bool open = false;
    std::string provider = "auto";
    netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
    double timeout_s = 0;
    KeyArguments keys;
};

constexpr std::size_t piece_bytes = 64 * 1024;

// Waits until a descriptor that does not block is ready.
void wait_until_ready(int descriptor, short what) {
    pollfd wanted{.fd = descriptor, .events = what, .revents = 0};
    static_cast<void>(::poll(&wanted, 1, -1)); // whatever went wrong, the next call says it
}

void write_out(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
        if (written >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            wait_until_ready(STDOUT_FILENO, POLLOUT);
        } else if (errno != EINTR) {
            throw std::system_error{errno, std::system_category(), "standard output"};
        }
    }
}

// Nothing: there is nothing now. 0: there never will be.
std::optional<std::size_t> read_in(std::span<std::byte> memory) {
    const ssize_t got = ::read(STDIN_FILENO, memory.data(), memory.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR || errno == EAGAIN) return std::nullopt;
    throw std::system_error{errno, std::system_category(), "standard input"};
}

// All waiting is done in wait_for(): so what was read leaves, and what the peer does is noticed,
// however long standard input is silent. Nor does it wait for the peer to take something without
// taking what it sends, for it may do the same.
void converse(BlockingStream& peer) {
    using Ready = BlockingStream::Ready;
    std::vector<std::byte> memory(piece_bytes);
    for (bool open = true; open;) {
        switch (peer.wait_for(peer.has_capacity() ? STDIN_FILENO : BlockingStream::no_descriptor)) {
        case Ready::writable:
            break;
        case Ready::peer: // 0 bytes: it has ended, but still listens
            write_out(std::span{memory}.first(peer.read(memory)));
            break;
        case Ready::descriptor:
            const auto bytes = read_in(memory);
            if (bytes) peer.write(std::span{memory}.first(*bytes));
            open = bytes != 0U;
            break;
        }
    }
    peer.shutdown_send();
    while (const std::size_t bytes = peer.read(memory))
        write_out(std::span{memory}.first(bytes));
    peer.close();
}

int run(const Arguments& arguments) {
    BlockingStream::Options options;
    options.provider = arguments.provider;
    options.stream.remote_writes = arguments.remote_writes;
    options.progress_timeout =
        std::chrono::milliseconds{static_cast<long>(1000 * arguments.timeout_s)};
    options.keys = server_keys(arguments.keys);
    options.stream.key = client_key(arguments.keys);
    if (arguments.listen.empty()) {
        auto peer = BlockingStream::connect(to_string(peer_address(arguments.peer)), options);
        converse(peer);
        return 0;
    }
    options.open = arguments.open;
    netio::stream::BlockingListener listener{arguments.listen, options};
    const LogObserver observer{listener.loop()};
    tell_listening(listener.endpoints());
    auto peer = listener.accept();
    listener.stop(); // a second one is refused
    converse(peer);
    return 0;
}

Command add(CLI::App& program) {
    auto* command = program.add_subcommand(
        "cat", "Standard input to a stream, and the stream to standard output");
    const auto arguments = std::make_shared<Arguments>();
    auto* const peer = command->add_option("peer", arguments->peer, "HOST:PORT to connect to");
    auto* const listen =
        command->add_option("--listen", arguments->listen, "Wait here for one peer instead");
    listen->excludes(peer);
    add_open(*command, arguments->open)->needs(listen);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_remote_writes(*command, arguments->remote_writes);
    add_seconds(*command, "--timeout", arguments->timeout_s,
                "Give up after so many silent seconds; 0: never", Zero::taken);
    add_key(*command, arguments->keys);
    add_keys(*command, arguments->keys);
    return [arguments] {
        if (arguments->peer.empty() && arguments->listen.empty()) {
            throw std::invalid_argument{"netio cat needs a peer's HOST:PORT, or --listen"};
        }
        return run(*arguments);
    };
}

} // namespace
} // namespace apps::cat

apps::Command apps::add_cat(CLI::App& program) {
    return cat::add(program);
}
