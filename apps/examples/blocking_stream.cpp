// SPDX-License-Identifier: Apache-2.0
// A byte stream as a plain socket: reads, writes, and no handler. One side answers each line with
// its length: blocking_stream --serve HOST:PORT, blocking_stream HOST:PORT LINE...
#include "stream/socket/blocking_stream.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

namespace stream = netio::stream;

namespace {

void serve(const char* address) {
    stream::BlockingListener listener{
        address, {.allow_remote_anonymous = true}}; // any peer that reaches the address may connect
    std::printf("listening at %s\n", to_string(listener.address()).c_str());
    std::fflush(stdout);
    stream::BlockingStream client = listener.accept();
    std::byte memory[1024];
    std::uint64_t length = 0;
    // 0: the peer has ended its direction, after the last byte.
    while (const std::size_t count = client.read(memory)) {
        for (const std::byte byte : std::span{memory, count}) {
            ++length;
            if (byte != std::byte{'\n'}) continue;
            client.write(std::as_bytes(std::span{&length, 1}));
            length = 0;
        }
    }
    client.close(); // returns when the peer has received everything
}

void ask(const char* address, std::span<char*> lines) {
    stream::BlockingStream server = stream::BlockingStream::connect(address);
    for (const std::string line : lines) {
        const std::string text = line + "\n";
        server.write(std::as_bytes(std::span{text}));
        std::uint64_t length = 0;
        server.read_exactly(std::as_writable_bytes(std::span{&length, 1}));
        std::printf("%s: %llu bytes\n", line.c_str(), static_cast<unsigned long long>(length));
    }
    server.close();
}

} // namespace

int main(int argc, char** argv) try {
    if (argc == 3 && std::strcmp(argv[1], "--serve") == 0) {
        serve(argv[2]);
    } else if (argc > 1) {
        ask(argv[1], std::span{argv + 2, argv + argc});
    }
} catch (const stream::StreamError& error) { // timed_out, ended or closed: error.kind()
    std::fprintf(stderr, "blocking_stream: %s\n", error.what());
    return 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "blocking_stream: %s\n", error.what());
    return 1;
}
