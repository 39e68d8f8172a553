// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/listen_core.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/messages/message_frames.hpp"

#include <stdexcept>

namespace netio::inline v0_2 {
namespace {

constexpr std::size_t closes_per_turn = 64;

} // namespace

ListenCore::ListenCore(ListenSocket& socket, Transport& transport, ListenSocket::Options options,
                       ListenSocket::Handler& handler)
    : socket_{socket}, loop_{transport.loop()}, options_{std::move(options)}, handler_{handler},
      end_timer_{transport.loop(), [this] { go_on_ending(); }} {
    validate(options_.session);
    if (options_.largest_message_bytes > page::message_limit) {
        throw std::invalid_argument{"largest_message_bytes must be at most 1073741823"};
    }
    listener_ = std::make_unique<SessionListener>(
        transport,
        SessionListener::Options{.service = Service::messages,
                                 .addresses = options_.addresses,
                                 .open = options_.open,
                                 .service_bytes = messages::service_bytes,
                                 .place_limit = options_.peer_limit,
                                 .links_per_host = options_.links_per_host,
                                 .keys = options_.keys},
        static_cast<SessionListener::Handler&>(*this));
}

ListenCore::~ListenCore() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

// --- the end --------------------------------------------------------------------------------

void ListenCore::close() {
    if (end_) return;
    end_ = Closed{.reason = CloseReason::orderly, .detail = {}};
    stop_listening();
    for (const auto& [session, peer] : peers_) {
        peer->closed = true; // no message any more
        to_close_.push_back(session);
    }
    close_some();
}

// So many that a turn of the loop stays short; the others in later ones.
void ListenCore::close_some() {
    for (std::size_t i = 0; i < closes_per_turn && !to_close_.empty(); ++i) {
        const auto found = peers_.find(to_close_.back());
        to_close_.pop_back();
        if (found != peers_.end()) found->second->close();
    }
    if (!to_close_.empty() || peers_.empty()) end_timer_.start({});
}

void ListenCore::go_on_ending() {
    if (!to_close_.empty()) return close_some();
    if (peers_.empty()) handler_.on_listen_closed(socket_, Closed{*end_}); // may destroy it
}

void ListenCore::abort() {
    const bool is_first = !end_;
    end_ = Closed{.reason = CloseReason::local, .detail = {}};
    to_close_.clear();
    stop_listening();
    for (const auto& [session, peer] : peers_)
        peer->abort();
    if (is_first && peers_.empty()) end_timer_.start({});
}

std::vector<Endpoint> ListenCore::endpoints() const {
    return listener_ ? listener_->endpoints() : std::vector<Endpoint>{};
}

std::vector<ReceiveSocket*> ListenCore::peers() const {
    std::vector<ReceiveSocket*> peers;
    for (const auto& [session, peer] : peers_) {
        if (peer->announced) peers.push_back(&peer->socket);
    }
    return peers;
}

// --- senders --------------------------------------------------------------------------------

void ListenCore::on_incoming(IncomingSession& incoming) {
    if (messages::largest_message_bytes(incoming.peer()) != 0) { // senders reassemble nothing
        return incoming.reject({.code = RejectCode::service_data});
    }
    auto peer = std::make_unique<ReceiveCore>(loop_, options_.largest_message_bytes);
    const auto largest = static_cast<std::uint32_t>(options_.largest_message_bytes);
    peer->session = incoming.accept(messages::hello(largest), options_.session, *this);
    const Session* const session = peer->session.get();
    peers_.emplace(session, std::move(peer));
}

void ListenCore::on_accept_failed(const std::string&, const FabricError&) {
    ++counters_.accept_failed;
}

void ListenCore::on_peer_rejected(const std::string&, const std::string&) {
    ++counters_.rejected;
}

void ListenCore::on_open(Session& session) {
    ReceiveCore& peer = *peers_.at(&session);
    peer.announced = true;
    ++counters_.connected;
    handler_.on_connected(peer.socket);
}

void ListenCore::on_frame(Session& session, const IncomingFrame& frame) {
    ReceiveCore& peer = *peers_.at(&session);
    if (peer.closed) return session.add_unread(1);
    const DestructionWatch watch{destroyed_};
    const std::string_view problem = take_frame(peer, frame);
    if (watch.destroyed() || problem.empty()) return;
    session.fail(CloseReason::protocol_error,
                 session.peer_address() + " sent " + std::string{problem});
}

std::string_view ListenCore::take_frame(ReceiveCore& peer, const IncomingFrame& frame) {
    if (frame.flags != 0 && frame.kind != messages::message_kind) return "a flag that is not known";
    if (frame.kind == messages::fragment_kind) return take_fragment(peer, frame.body);
    if (peer.reassembly.in_progress()) return "something else before the last fragment";
    if (frame.kind == messages::page_kind) return take_page(peer, frame.body);
    if (frame.kind == messages::message_kind) return take_message(peer, frame);
    return "a frame of a kind that is not known";
}

std::string_view ListenCore::take_message(ReceiveCore& peer, const IncomingFrame& frame) {
    const bool has_immediate = frame.flags == messages::immediate_flag;
    const std::size_t header = has_immediate ? messages::immediate_bytes : 0;
    if ((frame.flags != 0 && !has_immediate) || frame.body.size() < header) {
        return "a malformed message frame";
    }
    std::optional<std::uint64_t> immediate;
    if (has_immediate) immediate = wire::load<std::uint64_t>(frame.body.data());
    hand_over(peer, frame.body.subspan(header), immediate);
    return {};
}

std::string_view ListenCore::take_page(ReceiveCore& peer, std::span<const std::byte> body) {
    const DestructionWatch watch{destroyed_};
    Session& session = *peer.session;
    const bool sound = visit_page(body, [&](std::span<const std::byte> message) {
        // What the handler has done to the socket counts from this message on.
        if (peer.closed) {
            session.add_unread(1);
            return false;
        }
        if (peer.paused) {
            const std::byte* const record = message.data() - page::record_header_bytes;
            session.keep(body.last(static_cast<std::size_t>(body.data() + body.size() - record)));
            return false;
        }
        hand_over(peer, message, std::nullopt);
        return !watch.destroyed();
    });
    return sound ? "" : "a malformed page";
}

void ListenCore::hand_over(ReceiveCore& peer, std::span<const std::byte> message,
                           std::optional<std::uint64_t> immediate) {
    peer.count(message.size());
    ++counters_.messages;
    counters_.bytes += message.size();
    handler_.on_message(peer.socket, message, immediate); // may destroy this listen socket
}

std::string_view ListenCore::take_fragment(ReceiveCore& peer, std::span<const std::byte> body) {
    if (body.size() < messages::fragment_extension_bytes) return "a fragment without its place";
    const Reassembly::Outcome outcome = peer.reassembly.take(
        messages::decode_fragment(body), body.subspan(messages::fragment_extension_bytes));
    if (outcome == Reassembly::Outcome::complete) {
        hand_over(peer, peer.reassembly.message(), std::nullopt);
        return {};
    }
    return outcome == Reassembly::Outcome::incomplete ? "" : to_string(outcome);
}

void ListenCore::on_sent(Session&, Cookie, Completion::Outcome) {}

void ListenCore::on_writable(Session&) {}

void ListenCore::on_closed(Session& session, const Closed& closed) {
    // Out of the table first: the handler may destroy this listen socket.
    const auto node = peers_.extract(&session);
    const bool announced = node.mapped()->announced;
    if (end_) {
        // Nobody has heard of who never finished the handshake.
        if (announced && closed.reason != CloseReason::orderly &&
            end_->reason == CloseReason::orderly) {
            end_->reason = CloseReason::unconfirmed;
            end_->detail = closed.detail;
        }
        if (peers_.empty()) end_timer_.start({});
    }
    if (announced) return handler_.on_closed(node.mapped()->socket, closed);
    if (closed.reason != CloseReason::local) ++counters_.rejected;
}

} // namespace netio::inline v0_2
