// SPDX-License-Identifier: Apache-2.0
// Level 1 of the C interface: byte streams with blocking calls.
#include "apps/c/call.hpp"
#include "apps/c/options.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <string>
#include <utility>

using netio::stream::BlockingListener;
using netio::stream::BlockingStream;
using netiodaq::done;
using netiodaq::guarded;
using netiodaq::required;

struct netiodaq_stream {
    explicit netiodaq_stream(BlockingStream connected)
        : stream{std::move(connected)}, peer{stream.peer_address()} {}
    BlockingStream stream;
    std::string peer;
};

struct netiodaq_stream_listener {
    netiodaq_stream_listener(const char* at, const BlockingStream::Options& options)
        : listener{netiodaq::text_of(at, "address"), options}, address{netio::to_string(
                                                                   listener.address())} {}
    BlockingListener listener;
    std::string address;
};

namespace {

BlockingStream::Options stream_options(const netiodaq_options* options) {
    auto settings = netiodaq::settings_of<netiodaq::StreamSettings>(options);
    settings.options.keys = settings.keys;
    settings.options.stream.key = netiodaq::key_of(settings.key);
    return settings.options;
}

} // namespace

netiodaq_result netiodaq_stream_connect(const char* address, const netiodaq_options* options,
                                        netiodaq_stream** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_stream{BlockingStream::connect(netiodaq::text_of(address, "address"),
                                                           stream_options(options))};
    });
}

netiodaq_result netiodaq_stream_read(netiodaq_stream* stream, void* memory,
                                     std::uint64_t size_bytes, std::uint64_t* read_bytes) {
    return guarded([&]() -> netiodaq_result {
        required(read_bytes, "read_bytes") = 0;
        BlockingStream& from = required(stream, "stream").stream;
        const auto to = netiodaq::memory_of(memory, size_bytes);
        if (to.empty()) throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT, "size_bytes is 0"};
        *read_bytes = from.read(to);
        return *read_bytes > 0 ? netiodaq::ok : netiodaq::failed(NETIODAQ_END);
    });
}

netiodaq_result netiodaq_stream_read_exactly(netiodaq_stream* stream, void* memory,
                                             std::uint64_t size_bytes) {
    return done([&] {
        BlockingStream& from = required(stream, "stream").stream;
        from.read_exactly(netiodaq::memory_of(memory, size_bytes));
    });
}

netiodaq_result netiodaq_stream_write(netiodaq_stream* stream, const void* data,
                                      std::uint64_t size_bytes) {
    return done([&] {
        BlockingStream& to = required(stream, "stream").stream;
        to.write(netiodaq::bytes_of(data, size_bytes));
    });
}

netiodaq_result netiodaq_stream_shutdown_send(netiodaq_stream* stream) {
    return done([&] { required(stream, "stream").stream.shutdown_send(); });
}

netiodaq_result netiodaq_stream_close(netiodaq_stream* stream) {
    return done([&] { required(stream, "stream").stream.close(); });
}

netiodaq_result netiodaq_stream_set_call_timeout_ms(netiodaq_stream* stream,
                                                    std::int64_t timeout_ms) {
    return done([&] {
        required(stream, "stream").stream.set_call_timeout(std::chrono::milliseconds{timeout_ms});
    });
}

netiodaq_result netiodaq_stream_set_progress_timeout_ms(netiodaq_stream* stream,
                                                        std::int64_t timeout_ms) {
    return done([&] {
        required(stream, "stream")
            .stream.set_progress_timeout(std::chrono::milliseconds{timeout_ms});
    });
}

const char* netiodaq_stream_peer_address(const netiodaq_stream* stream) {
    return stream != nullptr ? stream->peer.c_str() : nullptr;
}

void netiodaq_stream_free(netiodaq_stream* stream) {
    delete stream;
}

netiodaq_result netiodaq_stream_listener_new(const char* address, const netiodaq_options* options,
                                             netiodaq_stream_listener** out) {
    return netiodaq::new_object(out, [&] {
        return new netiodaq_stream_listener{address, stream_options(options)};
    });
}

netiodaq_result netiodaq_stream_listener_accept(netiodaq_stream_listener* listener,
                                                netiodaq_stream** out) {
    return netiodaq::new_object(
        out, [&] { return new netiodaq_stream{required(listener, "listener").listener.accept()}; });
}

netiodaq_result netiodaq_stream_listener_stop(netiodaq_stream_listener* listener) {
    return done([&] { required(listener, "listener").listener.stop(); });
}

const char* netiodaq_stream_listener_address(const netiodaq_stream_listener* listener) {
    return listener != nullptr ? listener->address.c_str() : nullptr;
}

void netiodaq_stream_listener_free(netiodaq_stream_listener* listener) {
    delete listener;
}
