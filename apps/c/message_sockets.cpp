// SPDX-License-Identifier: Apache-2.0
// Level 2 of the C interface: send and listen sockets.
#include "apps/c/call.hpp"
#include "apps/c/loop.hpp"
#include "apps/c/options.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

using netio::Closed;
using netiodaq::call;
using netiodaq::done;
using netiodaq::guarded;
using netiodaq::on_loop;
using netiodaq::required;

// --- send sockets ----------------------------------------------------------------------------

// Its callbacks may free it, so each handler calls them last.
struct netiodaq_send_socket final : netio::SendSocket::Handler, netio::BufferedSendSocket::Handler {
    netiodaq_send_socket(netiodaq_loop& its, const netiodaq_send_callbacks* of_user)
        : loop{its}, callbacks{netiodaq::copy_of(of_user)} {}

    void on_connected(netio::SendSocket&) override { call_connected(); }
    void on_connected(netio::BufferedSendSocket&) override { call_connected(); }
    void on_send_completed(netio::SendSocket&, netio::Cookie cookie,
                           netio::Completion::Outcome outcome) override {
        call(callbacks.on_send_completed, this, static_cast<std::uint64_t>(cookie),
             static_cast<std::int32_t>(outcome), callbacks.user);
    }
    void on_writable(netio::SendSocket&) override { call_writable(); }
    void on_writable(netio::BufferedSendSocket&) override { call_writable(); }
    void on_closed(netio::SendSocket& socket, const Closed& closed) override {
        call_closed(closed, socket.is_retrying());
    }
    void on_closed(netio::BufferedSendSocket& socket, const Closed& closed) override {
        call_closed(closed, socket.is_retrying());
    }

    // Calls `use` with the socket of either kind.
    template <typename Use>
    decltype(auto) with_socket(Use use) const {
        return buffered ? use(*buffered) : use(*unbuffered);
    }

    netiodaq_loop& loop;
    const netiodaq_send_callbacks callbacks;
    bool in_use = false; // from connect() until the end without another attempt
    std::unique_ptr<netio::SendSocket> unbuffered; // or:
    std::unique_ptr<netio::BufferedSendSocket> buffered;

  private:
    void call_connected() { call(callbacks.on_connected, this, callbacks.user); }
    void call_writable() { call(callbacks.on_writable, this, callbacks.user); }
    void call_closed(const Closed& closed, bool retrying) {
        in_use = retrying;
        call(callbacks.on_closed, this, netiodaq::number_of(closed.reason), closed.detail.c_str(),
             retrying ? 1 : 0, callbacks.user);
    }
};

namespace {

static_assert(static_cast<int>(netio::Completion::Outcome::done) == NETIODAQ_SEND_DONE);
static_assert(static_cast<int>(netio::Completion::Outcome::canceled) == NETIODAQ_SEND_CANCELED);
static_assert(static_cast<int>(netio::Completion::Outcome::failed) == NETIODAQ_SEND_FAILED);

netiodaq_result sendv(netiodaq_send_socket* socket, const netiodaq_slice* slices,
                      std::uint64_t count, std::uint64_t key,
                      std::optional<std::uint64_t> immediate) {
    netiodaq_send_socket& by = on_loop(socket, "socket");
    if (by.buffered) {
        throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT,
                                "the socket is buffered; use netiodaq_send_socket_send_copy"};
    }
    const netiodaq::Slices parts{by.loop, slices, count};
    if (parts.are_too_many()) return netiodaq::failed(NETIODAQ_TOO_MANY_SEGMENTS);
    return netiodaq::result_of(by.unbuffered->sendv(parts.all(), netio::Cookie{key}, immediate));
}

} // namespace

netiodaq_result netiodaq_send_socket_new(netiodaq_loop* loop, const netiodaq_options* options,
                                         const netiodaq_send_callbacks* callbacks,
                                         netiodaq_send_socket** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::SendSettings>(options);
        settings.options.key = netiodaq::key_of(settings.key);
        auto socket = std::make_unique<netiodaq_send_socket>(on_loop(loop), callbacks);
        socket->unbuffered =
            std::make_unique<netio::SendSocket>(*loop->transport, settings.options, *socket);
        return socket.release();
    });
}

netiodaq_result netiodaq_send_socket_new_buffered(netiodaq_loop* loop,
                                                  const netiodaq_options* options,
                                                  const netiodaq_send_callbacks* callbacks,
                                                  netiodaq_send_socket** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::BufferedSendSettings>(options);
        settings.options.socket.key = netiodaq::key_of(settings.key);
        auto socket = std::make_unique<netiodaq_send_socket>(on_loop(loop), callbacks);
        socket->buffered = std::make_unique<netio::BufferedSendSocket>(*loop->transport,
                                                                       settings.options, *socket);
        return socket.release();
    });
}

netiodaq_result netiodaq_send_socket_connect(netiodaq_send_socket* socket, const char* address) {
    return done([&] {
        netiodaq_send_socket& by = on_loop(socket, "socket");
        const auto remote = netio::parse_address(netiodaq::text_of(address, "address"));
        if (by.in_use) {
            throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT,
                                    "the socket is connected or connecting; wait for on_closed"};
        }
        by.with_socket([&](auto& to) { to.connect(remote); });
        by.in_use = true;
    });
}

netiodaq_result netiodaq_send_socket_disconnect(netiodaq_send_socket* socket) {
    return done([&] { on_loop(socket, "socket").with_socket([](auto& of) { of.close(); }); });
}

netiodaq_result netiodaq_send_socket_abort(netiodaq_send_socket* socket) {
    return done([&] { on_loop(socket, "socket").with_socket([](auto& of) { of.abort(); }); });
}

netiodaq_result netiodaq_send_socket_sendv(netiodaq_send_socket* socket,
                                           const netiodaq_slice* slices, std::uint64_t count,
                                           std::uint64_t key) {
    return guarded([&] { return sendv(socket, slices, count, key, std::nullopt); });
}

netiodaq_result netiodaq_send_socket_sendv_immediate(netiodaq_send_socket* socket,
                                                     const netiodaq_slice* slices,
                                                     std::uint64_t count, std::uint64_t key,
                                                     std::uint64_t immediate) {
    return guarded([&] { return sendv(socket, slices, count, key, immediate); });
}

netiodaq_result netiodaq_send_socket_send_copy(netiodaq_send_socket* socket, const void* data,
                                               std::uint64_t size_bytes) {
    return guarded([&] {
        netiodaq_send_socket& by = on_loop(socket, "socket");
        const auto bytes = netiodaq::bytes_of(data, size_bytes);
        return netiodaq::result_of(by.buffered ? by.buffered->send(bytes)
                                               : by.unbuffered->send_inline(bytes));
    });
}

netiodaq_result netiodaq_send_socket_flush(netiodaq_send_socket* socket) {
    return done([&] {
        netiodaq_send_socket& by = on_loop(socket, "socket");
        if (by.buffered) by.buffered->flush();
    });
}

std::int32_t netiodaq_send_socket_is_connected(const netiodaq_send_socket* socket) {
    bool connected = false;
    static_cast<void>(done([&] {
        connected =
            on_loop(socket, "socket").with_socket([](auto& of) { return of.is_connected(); });
    }));
    return connected ? 1 : 0;
}

std::uint64_t netiodaq_send_socket_message_limit_bytes(const netiodaq_send_socket* socket) {
    std::uint64_t limit = 0;
    static_cast<void>(done([&] {
        limit = on_loop(socket, "socket").with_socket([](auto& of) -> std::uint64_t {
            return of.is_connected() ? of.message_limit() : 0;
        });
    }));
    return limit;
}

void netiodaq_send_socket_free(netiodaq_send_socket* socket) {
    delete socket;
}

// --- listen sockets --------------------------------------------------------------------------

namespace {

// netio::ReceiveSocket is owned by the listen socket; its context leads from it to the C side.
struct Peer {
    explicit Peer(netiodaq_loop& its) : loop{its} {}
    netiodaq_loop& loop;
    void* user = nullptr;
    netiodaq::Delivery delivery;
};

netiodaq_receive_socket* handle_of(netio::ReceiveSocket& socket) {
    return reinterpret_cast<netiodaq_receive_socket*>(&socket);
}

Peer& peer_of(const netio::ReceiveSocket& socket) {
    return *static_cast<Peer*>(socket.context.get());
}

netio::ReceiveSocket& socket_of(netiodaq_receive_socket* socket) {
    auto& found = reinterpret_cast<netio::ReceiveSocket&>(required(socket, "socket"));
    peer_of(found).loop.check_thread();
    return found;
}

} // namespace

// Its callbacks may free it, so each handler calls them last.
struct netiodaq_listen_socket final : netio::ListenSocket::Handler {
    netiodaq_listen_socket(netiodaq_loop& its, const netiodaq_listen_callbacks* of_user)
        : loop{its}, callbacks{netiodaq::copy_of(of_user)} {}

    void on_connected(netio::ReceiveSocket& socket) override {
        socket.context = std::make_shared<Peer>(loop);
        call(callbacks.on_connected, handle_of(socket), callbacks.user);
    }
    void on_message(netio::ReceiveSocket& socket, std::span<const std::byte> message,
                    std::optional<std::uint64_t> immediate) override {
        peer_of(socket).delivery.run({0U, message, 0, 0}, [&] {
            call(callbacks.on_message, handle_of(socket), static_cast<const void*>(message.data()),
                 std::uint64_t{message.size()},
                 static_cast<const std::uint64_t*>(immediate ? &*immediate : nullptr),
                 callbacks.user);
        });
    }
    void on_closed(netio::ReceiveSocket& socket, const Closed& closed) override {
        call(callbacks.on_closed, handle_of(socket), netiodaq::number_of(closed.reason),
             closed.detail.c_str(), callbacks.user);
    }
    void on_listen_closed(netio::ListenSocket&, const Closed& closed) override {
        call(callbacks.on_listen_closed, this, netiodaq::number_of(closed.reason),
             closed.detail.c_str(), callbacks.user);
    }

    netiodaq_loop& loop;
    const netiodaq_listen_callbacks callbacks;
    std::unique_ptr<netio::ListenSocket> listener;
    std::string address;
};

netiodaq_result netiodaq_listen_socket_new(netiodaq_loop* loop, const char* addresses,
                                           const netiodaq_options* options,
                                           const netiodaq_listen_callbacks* callbacks,
                                           netiodaq_listen_socket** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::ListenSettings>(options);
        auto socket = std::make_unique<netiodaq_listen_socket>(on_loop(loop), callbacks);
        settings.options.listen = netiodaq::addresses_of(addresses);
        settings.options.keys = netiodaq::keys_of(*loop, settings.keys);
        socket->listener = std::make_unique<netio::ListenSocket>(
            *loop->transport, std::move(settings.options), *socket);
        socket->address = netiodaq::first_address(*socket->listener);
        return socket.release();
    });
}

netiodaq_result netiodaq_listen_socket_close(netiodaq_listen_socket* socket) {
    return done([&] { on_loop(socket, "socket").listener->close(); });
}

netiodaq_result netiodaq_listen_socket_abort(netiodaq_listen_socket* socket) {
    return done([&] { on_loop(socket, "socket").listener->abort(); });
}

const char* netiodaq_listen_socket_address(const netiodaq_listen_socket* socket) {
    return socket != nullptr ? socket->address.c_str() : nullptr;
}

void netiodaq_listen_socket_free(netiodaq_listen_socket* socket) {
    delete socket;
}

netiodaq_result netiodaq_receive_socket_set_user(netiodaq_receive_socket* socket, void* user) {
    return done([&] { peer_of(socket_of(socket)).user = user; });
}

void* netiodaq_receive_socket_user(const netiodaq_receive_socket* socket) {
    return socket != nullptr ? peer_of(reinterpret_cast<const netio::ReceiveSocket&>(*socket)).user
                             : nullptr;
}

netiodaq_result netiodaq_receive_socket_peer_address(const netiodaq_receive_socket* socket,
                                                     char* text, std::uint64_t size_bytes) {
    return done([&] {
        const auto& of = reinterpret_cast<const netio::ReceiveSocket&>(required(socket, "socket"));
        peer_of(of).loop.check_thread();
        required(text, "text");
        if (size_bytes == 0) throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT, "size_bytes is 0"};
        const std::string address = of.peer_address();
        const std::size_t length = std::min<std::size_t>(address.size(), size_bytes - 1);
        std::memcpy(text, address.data(), length);
        text[length] = '\0';
    });
}

netiodaq_result netiodaq_receive_socket_keep(netiodaq_receive_socket* socket, const void* data,
                                             std::uint64_t size_bytes, netiodaq_message** out) {
    return netiodaq::new_object(out, [&] {
        netio::ReceiveSocket& of = socket_of(socket);
        const auto bytes = netiodaq::bytes_of(data, size_bytes);
        return peer_of(of).delivery.keep(of, bytes);
    });
}

netiodaq_result netiodaq_receive_socket_pause(netiodaq_receive_socket* socket) {
    return done([&] { socket_of(socket).pause(); });
}

netiodaq_result netiodaq_receive_socket_resume(netiodaq_receive_socket* socket) {
    return done([&] { socket_of(socket).resume(); });
}

netiodaq_result netiodaq_receive_socket_close(netiodaq_receive_socket* socket) {
    return done([&] { socket_of(socket).close(); });
}
