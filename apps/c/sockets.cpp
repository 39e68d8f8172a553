// SPDX-License-Identifier: Apache-2.0
// Level 2 of the C interface: publish, subscribe, send and listen sockets.
#include "apps/c/call.hpp"
#include "apps/c/loop.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

using netio::Closed;
using netio::Fid;
using netio::FidRange;
using netio::pubsub::BufferedPublishSocket;
using netio::pubsub::PublicationOutcome;
using netio::pubsub::PublishSocket;
using netio::pubsub::PublishSocketBase;
using netio::pubsub::SubscriberPeer;
using netio::pubsub::SubscribeSocket;
using netiodaq::call;
using netiodaq::done;
using netiodaq::guarded;
using netiodaq::on_loop;
using netiodaq::required;

// --- publish sockets -------------------------------------------------------------------------

// Its callbacks may free it, so each handler calls them last.
struct netiodaq_publish_socket final : PublishSocket::Handler {
    netiodaq_publish_socket(netiodaq_loop& its, const netiodaq_publish_callbacks* of_user)
        : loop{its}, callbacks{netiodaq::copy_of(of_user)} {}

    void on_subscriber_connected(PublishSocketBase&, const SubscriberPeer& peer) override {
        call(callbacks.on_subscriber_connected, this, peer.address.c_str(), callbacks.user);
    }
    void on_subscribed(PublishSocketBase&, const SubscriberPeer& peer,
                       const FidRange& fids) override {
        call(callbacks.on_subscribed, this, peer.address.c_str(), fids.first.value(),
             fids.last.value(), callbacks.user);
    }
    void on_unsubscribed(PublishSocketBase&, const SubscriberPeer& peer,
                         const FidRange& fids) override {
        call(callbacks.on_unsubscribed, this, peer.address.c_str(), fids.first.value(),
             fids.last.value(), callbacks.user);
    }
    void on_subscriber_closed(PublishSocketBase&, const SubscriberPeer& peer,
                              const Closed& closed) override {
        call(callbacks.on_subscriber_closed, this, peer.address.c_str(),
             netiodaq::number_of(closed.reason), closed.detail.c_str(), callbacks.user);
    }
    void on_publish_completed(PublishSocket&, netio::Cookie cookie,
                              const PublicationOutcome& outcome) override {
        const netiodaq_outcome counts{.sent = outcome.sent,
                                      .dropped = outcome.dropped,
                                      .unsubscribed = outcome.unsubscribed,
                                      .lost = outcome.lost};
        call(callbacks.on_publish_completed, this, static_cast<std::uint64_t>(cookie), &counts,
             callbacks.user);
    }
    void on_writable(PublishSocketBase&) override {
        call(callbacks.on_writable, this, callbacks.user);
    }
    void on_closed(PublishSocketBase&, const Closed& closed) override {
        call(callbacks.on_closed, this, netiodaq::number_of(closed.reason), closed.detail.c_str(),
             callbacks.user);
    }

    PublishSocketBase& either() const noexcept {
        return buffered ? static_cast<PublishSocketBase&>(*buffered) : *unbuffered;
    }

    netiodaq_loop& loop;
    const netiodaq_publish_callbacks callbacks;
    std::unique_ptr<PublishSocket> unbuffered; // or:
    std::unique_ptr<BufferedPublishSocket> buffered;
    std::string address;
};

struct netiodaq_ticket {
    netiodaq_loop& loop;
    netio::pubsub::PublishTicket ticket;
};

namespace {

// Creates a socket of the kind of the settings; `kind`: the member that is for it.
template <typename Of, typename Socket>
netiodaq_publish_socket* new_socket(netiodaq_loop* loop, const char* addresses,
                                    const netiodaq_options* options,
                                    const netiodaq_publish_callbacks* callbacks,
                                    std::unique_ptr<Socket> netiodaq_publish_socket::*kind) {
    auto settings = netiodaq::settings_of<Of>(options);
    auto socket = std::make_unique<netiodaq_publish_socket>(on_loop(loop), callbacks);
    settings.options.publisher.listen = netiodaq::addresses_of(addresses);
    settings.options.publisher.keys = netiodaq::keys_of(*loop, settings.keys);
    (*socket).*kind = std::make_unique<Socket>(*loop->transport, settings.options, *socket);
    socket->address = netiodaq::first_address(socket->either());
    return socket.release();
}

PublishSocket& unbuffered_of(netiodaq_publish_socket* socket) {
    netiodaq_publish_socket& by = on_loop(socket, "socket");
    if (by.unbuffered) return *by.unbuffered;
    throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT,
                            "the socket is buffered; use netiodaq_publish_socket_publish_copy"};
}

PublishSocket::Extras extras_of(std::uint8_t status, const void* header,
                                std::uint64_t header_bytes) {
    return {.status = status, .header = netiodaq::bytes_of(header, header_bytes, "header")};
}

} // namespace

netiodaq_result netiodaq_publish_socket_new(netiodaq_loop* loop, const char* addresses,
                                            const netiodaq_options* options,
                                            const netiodaq_publish_callbacks* callbacks,
                                            netiodaq_publish_socket** out) {
    return netiodaq::new_object(out, [&] {
        return new_socket<netiodaq::PublishSettings>(loop, addresses, options, callbacks,
                                                     &netiodaq_publish_socket::unbuffered);
    });
}

netiodaq_result netiodaq_publish_socket_new_buffered(netiodaq_loop* loop, const char* addresses,
                                                     const netiodaq_options* options,
                                                     const netiodaq_publish_callbacks* callbacks,
                                                     netiodaq_publish_socket** out) {
    return netiodaq::new_object(out, [&] {
        return new_socket<netiodaq::BufferedPublishSettings>(loop, addresses, options, callbacks,
                                                             &netiodaq_publish_socket::buffered);
    });
}

netiodaq_result netiodaq_publish_socket_publishv(netiodaq_publish_socket* socket, std::uint64_t fid,
                                                 const netiodaq_slice* slices, std::uint64_t count,
                                                 std::uint64_t key, std::uint8_t status,
                                                 const void* header, std::uint64_t header_bytes) {
    return guarded([&] {
        PublishSocket& to = unbuffered_of(socket);
        const netiodaq::Slices parts{socket->loop, slices, count};
        if (parts.are_too_many()) return netiodaq::failed(NETIODAQ_TOO_MANY_SEGMENTS);
        return netiodaq::result_of(to.publishv(fid, parts.all(), netio::Cookie{key},
                                               extras_of(status, header, header_bytes)));
    });
}

netiodaq_result
netiodaq_publish_socket_try_publishv(netiodaq_publish_socket* socket, std::uint64_t fid,
                                     const netiodaq_slice* slices, std::uint64_t count,
                                     std::uint64_t key, std::uint8_t status, const void* header,
                                     std::uint64_t header_bytes, netiodaq_ticket** out) {
    return guarded([&] {
        netiodaq::store_null(out);
        PublishSocket& to = unbuffered_of(socket);
        const netiodaq::Slices parts{socket->loop, slices, count};
        if (parts.are_too_many()) return netiodaq::failed(NETIODAQ_TOO_MANY_SEGMENTS);
        auto ticket = std::unique_ptr<netiodaq_ticket>{new netiodaq_ticket{socket->loop, {}}};
        PublishSocket::Attempt attempt = to.try_publishv(fid, parts.all(), netio::Cookie{key},
                                                         extras_of(status, header, header_bytes));
        if (attempt.status == netio::Status::partial) {
            ticket->ticket = std::move(attempt.ticket);
            *out = ticket.release();
        }
        return netiodaq::result_of(attempt.status);
    });
}

netiodaq_result netiodaq_publish_socket_resume(netiodaq_publish_socket* socket,
                                               netiodaq_ticket* ticket) {
    return guarded([&] {
        PublishSocket& by = unbuffered_of(socket);
        return netiodaq::result_of(by.resume(required(ticket, "ticket").ticket));
    });
}

void netiodaq_ticket_free(netiodaq_ticket* ticket) {
    if (ticket == nullptr) return;
    ticket->loop.loop.check_caller("netiodaq_ticket", "netiodaq_ticket_free");
    delete ticket;
}

netiodaq_result netiodaq_publish_socket_publish_copy(netiodaq_publish_socket* socket,
                                                     std::uint64_t fid, const void* data,
                                                     std::uint64_t size_bytes,
                                                     std::uint8_t status) {
    return guarded([&] {
        netiodaq_publish_socket& by = on_loop(socket, "socket");
        if (!by.buffered) {
            throw netiodaq::Failure{
                NETIODAQ_INVALID_ARGUMENT,
                "the socket is not buffered; use netiodaq_publish_socket_publishv"};
        }
        return netiodaq::result_of(
            by.buffered->publish(fid, netiodaq::bytes_of(data, size_bytes), status));
    });
}

netiodaq_result netiodaq_publish_socket_flush(netiodaq_publish_socket* socket) {
    return done([&] {
        netiodaq_publish_socket& by = on_loop(socket, "socket");
        if (by.buffered) by.buffered->flush();
    });
}

netiodaq_result netiodaq_publish_socket_prepare(netiodaq_publish_socket* socket,
                                                netiodaq_buffer* buffer) {
    return done([&] { unbuffered_of(socket).prepare(required(buffer, "buffer").buffer); });
}

netiodaq_result netiodaq_publish_socket_close(netiodaq_publish_socket* socket) {
    return done([&] { on_loop(socket, "socket").either().close(); });
}

netiodaq_result netiodaq_publish_socket_abort(netiodaq_publish_socket* socket) {
    return done([&] { on_loop(socket, "socket").either().abort(); });
}

const char* netiodaq_publish_socket_address(const netiodaq_publish_socket* socket) {
    return socket != nullptr ? socket->address.c_str() : nullptr;
}

void netiodaq_publish_socket_free(netiodaq_publish_socket* socket) {
    delete socket;
}

// --- subscribe sockets -----------------------------------------------------------------------

// Its callbacks may free it, so each handler calls them last.
struct netiodaq_subscribe_socket final : SubscribeSocket::Handler {
    netiodaq_subscribe_socket(netiodaq_loop& its, const netiodaq_subscribe_callbacks* of_user)
        : loop{its}, callbacks{netiodaq::copy_of(of_user)} {}

    void on_connected(SubscribeSocket&) override {
        call(callbacks.on_connected, this, callbacks.user);
    }
    void on_subscribed(SubscribeSocket&, const FidRange& fids) override {
        call(callbacks.on_subscribed, this, fids.first.value(), fids.last.value(), callbacks.user);
    }
    void on_unsubscribed(SubscribeSocket&, const FidRange& fids) override {
        call(callbacks.on_unsubscribed, this, fids.first.value(), fids.last.value(),
             callbacks.user);
    }
    // Also for a policy and for a right that is missing, whose handlers call it.
    void on_subscription_refused(SubscribeSocket&, const FidRange& fids) override {
        call(callbacks.on_refused, this, fids.first.value(), fids.last.value(), callbacks.user);
    }
    void on_message(SubscribeSocket&, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override {
        delivery.run({fid, message, status, 0}, [&] {
            call(callbacks.on_message, this, fid.value(), static_cast<const void*>(message.data()),
                 std::uint64_t{message.size()}, status, callbacks.user);
        });
    }
    void on_gap(SubscribeSocket&, Fid fid, std::uint64_t count) override {
        call(callbacks.on_lost, this, fid.value(), count, callbacks.user);
    }
    void on_lost_while_disconnected(SubscribeSocket&, Fid fid, std::uint64_t count) override {
        call(callbacks.on_lost, this, fid.value(), count, callbacks.user);
    }
    void on_publisher_changed(SubscribeSocket&, const netio::pubsub::PublisherChange&) override {
        call(callbacks.on_publisher_changed, this, callbacks.user);
    }
    void on_closed(SubscribeSocket&, const Closed& closed, bool retrying) override {
        call(callbacks.on_closed, this, netiodaq::number_of(closed.reason), closed.detail.c_str(),
             retrying ? 1 : 0, callbacks.user);
    }
    netiodaq_loop& loop;
    const netiodaq_subscribe_callbacks callbacks;
    netiodaq::Delivery delivery;
    std::unique_ptr<SubscribeSocket> socket;
};

netiodaq_result netiodaq_subscribe_socket_new(netiodaq_loop* loop, const char* addresses,
                                              const netiodaq_options* options,
                                              const netiodaq_subscribe_callbacks* callbacks,
                                              netiodaq_subscribe_socket** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::SubscribeSettings>(options);
        auto socket = std::make_unique<netiodaq_subscribe_socket>(on_loop(loop), callbacks);
        netio::AddressList publisher = netiodaq::addresses_of(addresses);
        settings.options.publisher = publisher.front();
        publisher.erase(publisher.begin());
        settings.options.fallback_addresses = std::move(publisher);
        settings.options.key = netiodaq::key_of(settings.key);
        socket->socket = std::make_unique<SubscribeSocket>(*loop->transport,
                                                           std::move(settings.options), *socket);
        return socket.release();
    });
}

namespace {

// Throws Failure if the range ends before it begins.
FidRange checked_range(std::uint64_t first_fid, std::uint64_t last_fid) {
    if (last_fid < first_fid) {
        throw netiodaq::Failure{NETIODAQ_INVALID_ARGUMENT,
                                "the range from " + std::to_string(first_fid) + " to " +
                                    std::to_string(last_fid) + " ends before it begins"};
    }
    return {.first = first_fid, .last = last_fid};
}

} // namespace

netiodaq_result netiodaq_subscribe_socket_subscribe(netiodaq_subscribe_socket* socket,
                                                    std::uint64_t first_fid, std::uint64_t last_fid,
                                                    std::int32_t policy) {
    return done([&] {
        on_loop(socket, "socket")
            .socket->subscribe(checked_range(first_fid, last_fid), netiodaq::policy_of(policy));
    });
}

netiodaq_result netiodaq_subscribe_socket_unsubscribe(netiodaq_subscribe_socket* socket,
                                                      std::uint64_t first_fid,
                                                      std::uint64_t last_fid) {
    return done(
        [&] { on_loop(socket, "socket").socket->unsubscribe(checked_range(first_fid, last_fid)); });
}

netiodaq_result netiodaq_subscribe_socket_keep(netiodaq_subscribe_socket* socket, const void* data,
                                               std::uint64_t size_bytes, netiodaq_message** out) {
    return netiodaq::new_object(out, [&] {
        netiodaq_subscribe_socket& by = on_loop(socket, "socket");
        const auto bytes = netiodaq::bytes_of(data, size_bytes);
        return by.delivery.keep(*by.socket, bytes);
    });
}

netiodaq_result netiodaq_subscribe_socket_pause(netiodaq_subscribe_socket* socket) {
    return done([&] { on_loop(socket, "socket").socket->pause(); });
}

netiodaq_result netiodaq_subscribe_socket_resume(netiodaq_subscribe_socket* socket) {
    return done([&] { on_loop(socket, "socket").socket->resume(); });
}

std::int32_t netiodaq_subscribe_socket_is_connected(const netiodaq_subscribe_socket* socket) {
    bool connected = false;
    static_cast<void>(done([&] { connected = on_loop(socket, "socket").socket->is_connected(); }));
    return connected ? 1 : 0;
}

netiodaq_result netiodaq_subscribe_socket_close(netiodaq_subscribe_socket* socket) {
    return done([&] { on_loop(socket, "socket").socket->close(); });
}

netiodaq_result netiodaq_subscribe_socket_abort(netiodaq_subscribe_socket* socket) {
    return done([&] { on_loop(socket, "socket").socket->abort(); });
}

void netiodaq_subscribe_socket_free(netiodaq_subscribe_socket* socket) {
    delete socket;
}

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
