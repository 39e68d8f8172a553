// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/listen_socket.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/messages/message_frames.hpp"

#include <stdexcept>

namespace netio::inline v0_2 {

ListenSocket::ListenSocket(Transport& transport, Options options, Handler& handler)
    : options_{std::move(options)}, handler_{handler},
      end_timer_{transport.loop(), [this] { handler_.on_listen_closed(*this, Closed{*end_}); }} {
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

void ReceiveSocket::pause() {
    paused_ = true;
    session_->pause();
}

void ReceiveSocket::resume() {
    paused_ = false;
    session_->resume();
}

void ReceiveSocket::close() {
    closed_ = true;
    session_->close();
    resume(); // what waits is not wanted any more, and the sender is to know
}

std::string ReceiveSocket::peer_address() const {
    return session_->peer_address();
}

void ReceiveSocket::abort() {
    closed_ = true;
    session_->abort();
    resume();
}

ListenSocket::~ListenSocket() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- the end --------------------------------------------------------------------------------

void ListenSocket::close() {
    if (end_) return;
    end_ = Closed{.reason = CloseReason::orderly, .detail = {}};
    stop_listening();
    for (const auto& [session, socket] : peers_)
        socket->close();
    if (peers_.empty()) end_timer_.start({});
}

void ListenSocket::abort() {
    const bool is_first = !end_;
    end_ = Closed{.reason = CloseReason::local, .detail = {}};
    stop_listening();
    for (const auto& [session, socket] : peers_)
        socket->abort();
    if (is_first && peers_.empty()) end_timer_.start({});
}

std::vector<Endpoint> ListenSocket::endpoints() const {
    return listener_ ? listener_->endpoints() : std::vector<Endpoint>{};
}

std::vector<ReceiveSocket*> ListenSocket::peers() const {
    std::vector<ReceiveSocket*> peers;
    for (const auto& [session, socket] : peers_) {
        if (socket->announced_) peers.push_back(socket.get());
    }
    return peers;
}

// --- senders --------------------------------------------------------------------------------

void ListenSocket::reject(IncomingSession& incoming, RejectCode code) {
    ++counters_.rejected;
    incoming.reject({.code = code});
}

void ListenSocket::on_incoming(IncomingSession& incoming) {
    if (peers_.size() >= options_.peer_limit) return reject(incoming, RejectCode::full);
    if (messages::largest_message_bytes(incoming.peer()) != 0) { // senders reassemble nothing
        return reject(incoming, RejectCode::service_data);
    }
    auto socket = std::make_unique<ReceiveSocket>(options_.largest_message_bytes);
    const auto largest = static_cast<std::uint32_t>(options_.largest_message_bytes);
    socket->session_ = incoming.accept(messages::hello(largest), options_.session, *this);
    peers_.emplace(socket->session_.get(), std::move(socket));
}

void ListenSocket::on_accept_failed(const std::string& peer_address, const FabricError& why) {
    ++counters_.accept_failed;
    handler_.on_accept_failed(peer_address, why); // may destroy this listen socket
}

void ListenSocket::on_open(Session& session) {
    ReceiveSocket& socket = *peers_.at(&session);
    socket.announced_ = true;
    ++counters_.connected;
    handler_.on_connected(socket);
}

void ListenSocket::on_frame(Session& session, const IncomingFrame& frame) {
    ReceiveSocket& socket = *peers_.at(&session);
    if (socket.closed_) return session.add_unread(1);
    const DestructionWatch watch{destroyed_};
    const std::string_view problem = take_frame(socket, frame);
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
    hand_over(socket, frame.body.subspan(header), immediate);
    return {};
}

std::string_view ListenSocket::take_page(ReceiveSocket& socket, std::span<const std::byte> body) {
    const DestructionWatch watch{destroyed_};
    Session& session = *socket.session_;
    const bool sound = visit_page(body, [&](std::span<const std::byte> message) {
        // What the handler has done to the socket counts from this message on.
        if (socket.closed_) {
            session.add_unread(1);
            return false;
        }
        if (socket.paused_) {
            const std::byte* const record = message.data() - page::record_header_bytes;
            session.keep(body.last(static_cast<std::size_t>(body.data() + body.size() - record)));
            return false;
        }
        hand_over(socket, message, std::nullopt);
        return !watch.destroyed();
    });
    return sound ? "" : "a malformed page";
}

void ListenSocket::hand_over(ReceiveSocket& socket, std::span<const std::byte> message,
                             std::optional<std::uint64_t> immediate) {
    for (auto* const counters : {&socket.counters_.messages, &counters_.messages})
        ++*counters;
    for (auto* const counters : {&socket.counters_.bytes, &counters_.bytes})
        *counters += message.size();
    handler_.on_message(socket, message, immediate); // may destroy this listen socket
}

std::string_view ListenSocket::take_fragment(ReceiveSocket& socket,
                                             std::span<const std::byte> body) {
    if (body.size() < messages::fragment_extension_bytes) return "a fragment without its place";
    const Reassembly::Outcome outcome = socket.reassembly_.take(
        messages::decode_fragment(body), body.subspan(messages::fragment_extension_bytes));
    if (outcome == Reassembly::Outcome::complete) {
        hand_over(socket, socket.reassembly_.message(), std::nullopt);
        return {};
    }
    return outcome == Reassembly::Outcome::incomplete ? "" : to_string(outcome);
}

void ListenSocket::on_sent(Session&, Cookie, Completion::Outcome) {}

void ListenSocket::on_writable(Session&) {}

void ListenSocket::on_closed(Session& session, const Closed& closed) {
    // Out of the table first: the handler may destroy this listen socket.
    const auto node = peers_.extract(&session);
    if (end_) {
        if (closed.reason != CloseReason::orderly && end_->reason == CloseReason::orderly) {
            end_->reason = CloseReason::unconfirmed;
            end_->detail = closed.detail;
        }
        if (peers_.empty()) end_timer_.start({});
    }
    // Who never finished the handshake was never announced.
    if (node.mapped()->announced_) handler_.on_closed(*node.mapped(), closed);
}

} // namespace netio::inline v0_2
