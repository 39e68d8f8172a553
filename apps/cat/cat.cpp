// SPDX-License-Identifier: Apache-2.0

// netio cat: standard input to a stream, and the stream to standard output.

#include "apps/program/commands.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

namespace apps {
namespace {

struct CatArguments {
    std::string peer;
    std::string listen;
    std::string provider = "auto";
    double timeout_s = 0;
};

constexpr std::size_t piece_bytes = 64 * 1024;

void write_out(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw std::system_error{errno, std::system_category(), "standard output"};
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

std::size_t read_in(std::span<std::byte> memory) {
    while (true) {
        const ssize_t got = ::read(STDIN_FILENO, memory.data(), memory.size());
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) {
            throw std::system_error{errno, std::system_category(), "standard input"};
        }
    }
}

// What to wait for instead of standard input where that is a file: always readable, and epoll does
// not take it.
int always_readable() {
    const int descriptor = ::eventfd(1, EFD_CLOEXEC);
    if (descriptor < 0) throw std::system_error{errno, std::system_category(), "eventfd"};
    return descriptor;
}

void converse(netio::stream::BlockingStream& peer) {
    using Ready = netio::stream::BlockingStream::Ready;
    std::vector<std::byte> memory(piece_bytes);
    const bool is_file = ::lseek(STDIN_FILENO, 0, SEEK_CUR) >= 0;
    const int input = is_file ? always_readable() : STDIN_FILENO;
    // Never waits for the peer to take something without taking what it sends: it may do the same.
    bool peer_ended = false;
    for (bool open = true; open;) {
        if (peer_ended) { // but it still listens
            const std::size_t bytes = read_in(memory);
            open = bytes > 0;
            if (open) peer.write(std::span{memory}.first(bytes));
            continue;
        }
        switch (peer.wait_for(peer.has_capacity() ? input
                                                  : netio::stream::BlockingStream::no_descriptor)) {
        case Ready::room:
            break;
        case Ready::peer: {
            const std::size_t bytes = peer.read(memory);
            peer_ended = bytes == 0;
            write_out(std::span{memory}.first(bytes));
            break;
        }
        case Ready::descriptor: {
            const std::size_t bytes = read_in(memory);
            open = bytes > 0;
            if (open) peer.write(std::span{memory}.first(bytes));
            break;
        }
        }
    }
    peer.finish();
    while (const std::size_t bytes = peer.read(memory))
        write_out(std::span{memory}.first(bytes));
    peer.close();
}

int run(const CatArguments& arguments) {
    netio::stream::BlockingOptions options;
    options.provider = arguments.provider;
    options.timeout = std::chrono::milliseconds{static_cast<long>(1000 * arguments.timeout_s)};
    if (arguments.listen.empty()) {
        auto peer = netio::stream::BlockingStream::connect(arguments.peer, options);
        converse(peer);
        return 0;
    }
    netio::stream::BlockingListener listener{arguments.listen, options};
    spdlog::info("listening at {}", to_string(listener.address()));
    auto peer = listener.accept();
    converse(peer);
    return 0;
}

} // namespace

Command add_cat(CLI::App& program) {
    auto* command = program.add_subcommand(
        "cat", "Standard input to a stream, and the stream to standard output");
    const auto arguments = std::make_shared<CatArguments>();
    auto* const peer = command->add_option("peer", arguments->peer, "HOST:PORT to connect to");
    command->add_option("--listen", arguments->listen, "Wait here for one peer instead")
        ->excludes(peer);
    command->add_option("--provider", arguments->provider, "auto, tcp or verbs")
        ->capture_default_str();
    command
        ->add_option("--timeout", arguments->timeout_s,
                     "Give up after so many silent seconds; 0: never")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 86'400.0));
    return [arguments] {
        if (arguments->peer.empty() && arguments->listen.empty()) {
            throw std::invalid_argument{"netio cat needs a peer's HOST:PORT, or --listen"};
        }
        return run(*arguments);
    };
}

} // namespace apps
