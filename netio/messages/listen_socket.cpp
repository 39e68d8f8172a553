// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/listen_socket.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/messages/message_frames.hpp"

#include <stdexcept>

namespace netio::inline v0_2 {

ListenSocket::ListenSocket(Transport& transport, Options options, Handler& handler)
    : options_{std::move(options)}, handler_{handler} {
    validate(options_.session);
    if (options_.largest_message_bytes > page::message_limit) {
        throw std::invalid_argument{"largest_message_bytes must be at most 1073741823"};
    }
    listener_ = std::make_unique<SessionListener>(
        transport,
        SessionListener::Options{.service = Service::messages,
                                 .addresses = options_.addresses,
                                 .service_bytes = messages::service_bytes},
        static_cast<SessionListener::Handler&>(*this));
}

void ReceiveSocket::abort() {
    session_->abort();
}

void ReceiveSocket::close() {
    session_->close();
}

ListenSocket::~ListenSocket() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

std::vector<Endpoint> ListenSocket::endpoints() const {
    return listener_->endpoints();
}

void ListenSocket::on_incoming(IncomingSession& incoming) {
    if (peers_.size() >= options_.peer_limit) return incoming.reject({.code = RejectCode::full});
    if (messages::largest_message_bytes(incoming.peer()) != 0) { // senders reassemble nothing
        return incoming.reject({.code = RejectCode::service_data});
    }
    auto socket = std::make_unique<ReceiveSocket>(options_.largest_message_bytes);
    const auto largest = static_cast<std::uint32_t>(options_.largest_message_bytes);
    socket->session_ = incoming.accept(messages::hello(largest), options_.session, *this);
    peers_.emplace(socket->session_.get(), std::move(socket));
}

void ListenSocket::on_accept_failed(const std::string& peer_address, const FabricError& why) {
    handler_.on_accept_failed(peer_address, why); // may destroy this listen socket
}

void ListenSocket::on_open(Session& session) {
    ReceiveSocket& socket = *peers_.at(&session);
    socket.announced_ = true;
    handler_.on_connected(socket);
}

void ListenSocket::on_frame(Session& session, const IncomingFrame& frame) {
    if (!session.is_open()) return session.add_unread(1); // it was closed here
    const DestructionWatch watch{destroyed_};
    const std::string_view problem = take_frame(*peers_.at(&session), frame);
    if (watch.destroyed() || problem.empty()) return;
    session.fail(CloseReason::protocol_error,
                 session.peer_address() + " sent " + std::string{problem});
}

std::string_view ListenSocket::take_frame(ReceiveSocket& socket, const IncomingFrame& frame) {
    if (frame.flags != 0 && frame.kind != messages::message_kind) return "a flag that is not known";
    if (frame.kind == messages::fragment_kind) return take_fragment(socket, frame.body);
    if (socket.reassembly_.in_progress()) return "something else before the last fragment";
    if (frame.kind == messages::page_kind) return take_page(socket, frame.body);
    if (frame.kind == messages::message_kind) return take_message(socket, frame);
    return "a frame of a kind that is not known";
}

std::string_view ListenSocket::take_message(ReceiveSocket& socket, const IncomingFrame& frame) {
    const bool has_immediate = frame.flags == messages::immediate_flag;
    const std::size_t header = has_immediate ? messages::immediate_bytes : 0;
    if ((frame.flags != 0 && !has_immediate) || frame.body.size() < header) {
        return "a malformed message frame";
    }
    std::optional<std::uint64_t> immediate;
    if (has_immediate) immediate = wire::load<std::uint64_t>(frame.body.data());
    handler_.on_message(socket, frame.body.subspan(header), immediate);
    return {};
}

std::string_view ListenSocket::take_page(ReceiveSocket& socket, std::span<const std::byte> body) {
    const DestructionWatch watch{destroyed_};
    bool rest_unread = false;
    const bool sound = visit_page(body, [&](std::span<const std::byte> message) {
        if (!socket.session_->is_open()) { // the handler has closed it
            rest_unread = true;
            return false;
        }
        handler_.on_message(socket, message, std::nullopt);
        return !watch.destroyed();
    });
    if (rest_unread) socket.session_->add_unread(1);
    return sound ? "" : "a malformed page";
}

std::string_view ListenSocket::take_fragment(ReceiveSocket& socket,
                                             std::span<const std::byte> body) {
    if (body.size() < messages::fragment_extension_bytes) return "a fragment without its place";
    const Reassembly::Outcome outcome = socket.reassembly_.take(
        messages::decode_fragment(body), body.subspan(messages::fragment_extension_bytes));
    if (outcome == Reassembly::Outcome::complete) {
        handler_.on_message(socket, socket.reassembly_.message(), std::nullopt);
        return {};
    }
    return outcome == Reassembly::Outcome::incomplete ? "" : to_string(outcome);
}

void ListenSocket::on_sent(Session&, Cookie, Completion::Outcome) {}

void ListenSocket::on_writable(Session&) {}

void ListenSocket::on_closed(Session& session, const Closed& closed) {
    // Out of the table first: the handler may destroy this listen socket.
    const auto node = peers_.extract(&session);
    // Who never finished the handshake was never announced.
    if (node.mapped()->announced_) handler_.on_closed(*node.mapped(), closed);
}

} // namespace netio::inline v0_2
