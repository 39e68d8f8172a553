// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/listen_socket.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/coalescing/reassembly.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/memory/receive_memory.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/session/session.hpp"
#include "netio/session/session_listener.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {
namespace {

constexpr std::size_t closes_per_turn = 64;

} // namespace

// --- one sender -----------------------------------------------------------------------------

// One connected sender: the implementation of a ReceiveSocket.
class ReceiveCore final {
  public:
    ReceiveCore(EventLoop& its_loop, std::size_t largest_message_bytes) noexcept
        : loop{its_loop}, socket{*this}, reassembly{largest_message_bytes} {}

    void pause();
    void resume();
    void close();
    void abort();
    void count(std::size_t bytes) noexcept {
        ++counters.messages;
        counters.bytes += bytes;
    }

    EventLoop& loop;
    ReceiveSocket socket;
    Reassembly reassembly;
    ReceiveSocket::Counters counters;
    bool announced = false;
    bool paused = false;
    bool closed = false; // close() or abort() was called here
    std::unique_ptr<Session> session;
};

void ReceiveCore::pause() {
    if (closed) return; // only the end is still to be reported
    paused = true;
    session->pause();
}

void ReceiveCore::resume() {
    paused = false;
    session->resume();
}

void ReceiveCore::close() {
    closed = true;
    session->close();
    resume(); // discards waiting messages; the sender is notified
}

void ReceiveCore::abort() {
    closed = true;
    session->abort();
    resume();
}

std::string ReceiveSocket::peer_address() const {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    return core_.session->peer_address();
}

void ReceiveSocket::pause() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.pause();
}

void ReceiveSocket::resume() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.resume();
}

KeptBytes ReceiveSocket::keep(std::span<const std::byte> message) {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    Session& session = *core_.session;
    auto joined = core_.reassembly.keep(
        message, [&](std::vector<std::byte> memory) { return session.keep(std::move(memory)); });
    return joined ? *std::move(joined) : session.keep(message);
}

KeepStats ReceiveSocket::kept() const {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    return core_.session->kept();
}

void ReceiveSocket::close() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.close();
}

void ReceiveSocket::abort() {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    core_.abort();
}

const ReceiveSocket::Counters& ReceiveSocket::counters() const noexcept {
    NETIO_CHECK_CALLER(core_.loop, "ReceiveSocket");
    return core_.counters;
}

// --- all senders ----------------------------------------------------------------------------

// The connected senders, and how their frames become messages.
struct ListenSocket::Impl final : private SessionListener::Handler, private Session::Handler {
    Impl(ListenSocket& user, Transport& transport, Options options_,
         ListenSocket::Handler& handler_);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void close_some();

    ListenSocket& socket;
    EventLoop& loop;
    Options options;
    ListenSocket::Handler& handler;
    std::unique_ptr<SessionListener> listener;
    std::unordered_map<const Session*, std::unique_ptr<ReceiveCore>> peers;
    Counters counters;
    std::optional<Closed> end; // after close() or abort()
    std::vector<const Session*> to_close;
    bool* destroyed = nullptr;
    Timer end_timer; // closes further senders, and reports the end when the last one has closed

  private:
    void on_incoming(IncomingSession& incoming) override;
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override;
    void on_peer_rejected(const std::string& peer_address, const std::string& why) override;
    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    void continue_ending();
    void hand_over(ReceiveCore& peer, std::span<const std::byte> message,
                   std::optional<std::uint64_t> immediate);
    // Returns the problem of the frame; empty if it is valid.
    std::string_view take_frame(ReceiveCore& peer, const IncomingFrame& frame);
    std::string_view take_message(ReceiveCore& peer, const IncomingFrame& frame);
    std::string_view take_page(ReceiveCore& peer, std::span<const std::byte> body);
    std::string_view take_fragment(ReceiveCore& peer, std::span<const std::byte> body);
};

ListenSocket::Impl::Impl(ListenSocket& user, Transport& transport, ListenSocket::Options options_,
                         ListenSocket::Handler& handler_)
    : socket{user}, loop{transport.loop()}, options{std::move(options_)}, handler{handler_},
      end_timer{transport.loop(), [this] { continue_ending(); }} {
    validate(options.session);
    if (options.largest_message_bytes > page::message_limit) {
        throw std::invalid_argument{"largest_message_bytes must be at most 1073741823"};
    }
    listener = std::make_unique<SessionListener>(
        transport,
        SessionListener::Options{.service = Service::messages,
                                 .listen = options.listen,
                                 .allow_remote_anonymous = options.allow_remote_anonymous,
                                 .service_bytes = messages::service_bytes,
                                 .peer_limit = options.peer_limit,
                                 .connections_per_host = options.connections_per_host,
                                 .keys = options.keys},
        static_cast<SessionListener::Handler&>(*this));
    if (options.session.receive_memory) listener->prepare(options.session.receive_memory->buffer());
}

ListenSocket::Impl::~Impl() {
    if (destroyed != nullptr) *destroyed = true;
}

// --- the end --------------------------------------------------------------------------------

// Closes some senders, so that a turn of the loop stays short; the others follow in later turns.
void ListenSocket::Impl::close_some() {
    for (std::size_t i = 0; i < closes_per_turn && !to_close.empty(); ++i) {
        const auto found = peers.find(to_close.back());
        to_close.pop_back();
        if (found != peers.end()) found->second->close();
    }
    if (!to_close.empty() || peers.empty()) end_timer.start({});
}

void ListenSocket::Impl::continue_ending() {
    if (!to_close.empty()) return close_some();
    if (peers.empty()) handler.on_listen_closed(socket, Closed{*end}); // may destroy the socket
}

// --- senders --------------------------------------------------------------------------------

void ListenSocket::Impl::on_incoming(IncomingSession& incoming) {
    if (messages::largest_message_bytes(incoming.peer()) != 0) { // senders reassemble nothing
        return incoming.reject({.code = RejectCode::service_data});
    }
    auto peer = std::make_unique<ReceiveCore>(loop, options.largest_message_bytes);
    const auto largest = static_cast<std::uint32_t>(options.largest_message_bytes);
    peer->session = incoming.accept(messages::hello(largest), options.session, *this);
    const Session* const session = peer->session.get();
    peers.emplace(session, std::move(peer));
}

void ListenSocket::Impl::on_accept_failed(const std::string&, const FabricError&) {
    ++counters.accept_failed;
}

void ListenSocket::Impl::on_peer_rejected(const std::string&, const std::string&) {
    ++counters.rejected;
}

void ListenSocket::Impl::on_open(Session& session) {
    ReceiveCore& peer = *peers.at(&session);
    peer.announced = true;
    ++counters.connected;
    handler.on_connected(peer.socket);
}

void ListenSocket::Impl::on_frame(Session& session, const IncomingFrame& frame) {
    ReceiveCore& peer = *peers.at(&session);
    if (peer.closed) return session.add_unread(1);
    const DestructionWatch watch{destroyed};
    const std::string_view problem = take_frame(peer, frame);
    if (watch.destroyed() || problem.empty()) return;
    session.fail(CloseReason::protocol_error,
                 session.peer_address() + " sent " + std::string{problem});
}

std::string_view ListenSocket::Impl::take_frame(ReceiveCore& peer, const IncomingFrame& frame) {
    if (frame.flags != 0 && frame.kind != messages::message_kind) return "a flag that is not known";
    if (frame.kind == messages::fragment_kind) return take_fragment(peer, frame.body);
    if (peer.reassembly.in_progress()) return "another frame before the last fragment";
    if (frame.kind == messages::page_kind) return take_page(peer, frame.body);
    if (frame.kind == messages::message_kind) return take_message(peer, frame);
    return "a frame of a kind that is not known";
}

std::string_view ListenSocket::Impl::take_message(ReceiveCore& peer, const IncomingFrame& frame) {
    const auto message = messages::decode_message(frame);
    if (!message) return "a malformed message frame";
    hand_over(peer, message->bytes, message->immediate);
    return {};
}

std::string_view ListenSocket::Impl::take_page(ReceiveCore& peer, std::span<const std::byte> body) {
    const DestructionWatch watch{destroyed};
    Session& session = *peer.session;
    const bool sound = visit_page(body, [&](std::span<const std::byte> message) {
        // A call that the handler has made on the socket applies from this message on.
        if (peer.closed) {
            session.add_unread(1);
            return false;
        }
        if (peer.paused) {
            const std::byte* const record = message.data() - page::record_header_bytes;
            session.put_back(
                body.last(static_cast<std::size_t>(body.data() + body.size() - record)));
            return false;
        }
        hand_over(peer, message, std::nullopt);
        return !watch.destroyed();
    });
    return sound ? "" : "a malformed page";
}

void ListenSocket::Impl::hand_over(ReceiveCore& peer, std::span<const std::byte> message,
                                   std::optional<std::uint64_t> immediate) {
    peer.count(message.size());
    ++counters.messages;
    counters.bytes += message.size();
    handler.on_message(peer.socket, message, immediate); // may destroy this listen socket
}

std::string_view ListenSocket::Impl::take_fragment(ReceiveCore& peer,
                                                   std::span<const std::byte> body) {
    if (body.size() < messages::fragment_extension_bytes) return "a fragment without its header";
    const Reassembly::Outcome outcome = peer.reassembly.take(
        messages::decode_fragment(body), body.subspan(messages::fragment_extension_bytes));
    if (outcome == Reassembly::Outcome::complete) {
        const DestructionWatch watch{destroyed};
        hand_over(peer, peer.reassembly.message(), std::nullopt);
        if (!watch.destroyed()) peer.reassembly.end_of_message();
        return {};
    }
    return outcome == Reassembly::Outcome::incomplete ? "" : to_string(outcome);
}

void ListenSocket::Impl::on_sent(Session&, Cookie, Completion::Outcome) {}

void ListenSocket::Impl::on_writable(Session&) {}

void ListenSocket::Impl::on_closed(Session& session, const Closed& closed) {
    // Out of the table first: the handler may destroy this listen socket.
    const auto node = peers.extract(&session);
    const bool announced = node.mapped()->announced;
    if (end) {
        // The user does not know a peer that did not finish the handshake.
        if (announced && closed.reason != CloseReason::orderly &&
            end->reason == CloseReason::orderly) {
            end->reason = CloseReason::unconfirmed;
            end->detail = closed.detail;
        }
        if (peers.empty()) end_timer.start({});
    }
    if (announced) return handler.on_closed(node.mapped()->socket, closed);
    if (closed.reason != CloseReason::local) ++counters.rejected;
}

// --- the user's calls -----------------------------------------------------------------------

ListenSocket::ListenSocket(Transport& transport, Options options, Handler& handler)
    : impl_{std::make_unique<Impl>(*this, transport, std::move(options), handler)} {}

ListenSocket::~ListenSocket() {
    check_destructor(impl_->loop, "ListenSocket", impl_);
}

void ListenSocket::stop_listening() noexcept {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    impl_->listener.reset();
}

void ListenSocket::close() {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    if (impl_->end) return;
    impl_->end = Closed{.reason = CloseReason::orderly, .detail = {}};
    stop_listening();
    for (const auto& [session, peer] : impl_->peers) {
        peer->closed = true; // no further message
        impl_->to_close.push_back(session);
    }
    impl_->close_some();
}

void ListenSocket::abort() {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    const bool is_first = !impl_->end;
    impl_->end = Closed{.reason = CloseReason::local, .detail = {}};
    impl_->to_close.clear();
    stop_listening();
    for (const auto& [session, peer] : impl_->peers)
        peer->abort();
    if (is_first && impl_->peers.empty()) impl_->end_timer.start({});
}

std::vector<Endpoint> ListenSocket::endpoints() const {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    return impl_->listener ? impl_->listener->endpoints() : std::vector<Endpoint>{};
}

std::size_t ListenSocket::peer_count() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    return impl_->peers.size();
}

std::vector<ReceiveSocket*> ListenSocket::peers() const {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    std::vector<ReceiveSocket*> peers;
    for (const auto& [session, peer] : impl_->peers) {
        if (peer->announced) peers.push_back(&peer->socket);
    }
    return peers;
}

KeepStats ListenSocket::kept() const {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    KeepStats sum;
    for (const auto& [session, peer] : impl_->peers)
        sum += peer->session->kept();
    return sum;
}

const ListenSocket::Counters& ListenSocket::counters() const noexcept {
    NETIO_CHECK_CALLER(impl_->loop, "ListenSocket");
    return impl_->counters;
}

} // namespace netio::inline v0_3
