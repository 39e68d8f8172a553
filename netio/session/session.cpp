// SPDX-License-Identifier: Apache-2.0
#include "netio/session/session.hpp"

#include "netio/base/check.hpp"
#include "netio/session/session_core.hpp"

#include <utility>

namespace netio::inline v0_2 {

Session::Session(Transport& transport, const Target& target, const Hello& hello,
                 const SessionOptions& options, Handler& handler)
    : core_{std::make_unique<SessionCore>(*this, transport, hello, options, handler,
                                          target.gate ? target.gate->protection()
                                                      : access::Protection::none)} {
    core_->connect(transport, target);
}

Session::Session(Transport& transport, ConnectionRequest& request, const Hello& peer,
                 const Hello& hello, const SessionOptions& options, Handler& handler,
                 std::unique_ptr<Admittance> admittance, std::shared_ptr<const void> place)
    : core_{std::make_unique<SessionCore>(*this, transport, hello, options, handler,
                                          admittance ? admittance->admission().protection()
                                                     : access::Protection::none)} {
    core_->accept(request, peer, std::move(admittance), std::move(place));
}

Session::~Session() = default;

void Session::Handler::on_written(Session& session, std::uint32_t) {
    session.fail(CloseReason::protocol_error, "this service takes no remote writes");
}

bool Session::Handler::on_shutdown(Session&) {
    return true;
}

// --- sending --------------------------------------------------------------------------------

Status Session::send(const OutgoingFrame& frame, std::optional<Cookie> cookie) {
    return core_->send(frame, cookie);
}

Status Session::write(const OutgoingWrite& write, Cookie cookie) {
    return core_->write(write, cookie);
}

bool Session::has_capacity() const noexcept {
    return core_->is_open() && core_->send_.can_send();
}

bool Session::request_capacity() {
    return core_->send_.request_send() && core_->is_open();
}

bool Session::request_write_capacity() {
    return core_->send_.request_write() && core_->is_open();
}

// --- receiving ------------------------------------------------------------------------------

void Session::pause() {
    core_->receive_.pause();
}

void Session::keep(std::span<const std::byte> rest) {
    NETIO_CHECK_MSG(core_->receive_.is_paused(), "only a paused session keeps anything");
    core_->receive_.keep(rest);
}

void Session::resume() {
    if (core_->receive_.resume() && core_->receive_.has_work()) core_->later_.start({});
}

// --- the end --------------------------------------------------------------------------------

void Session::close(TimePoint by) {
    core_->close(by);
}

void Session::abort() {
    core_->fail(CloseReason::local, {});
}

void Session::fail(CloseReason reason, std::string detail) {
    core_->fail(reason, std::move(detail));
}

void Session::cut_off(CloseReason reason, std::string detail, Duration took_nothing_for) {
    core_->cut_off({.reason = reason, .detail = std::move(detail)}, took_nothing_for);
}

void Session::add_unread(std::uint32_t count) noexcept {
    core_->shutdown_.add_unread(count);
}

bool Session::awaits_confirmation() const noexcept {
    return core_->state_ == SessionCore::State::open && core_->shutdown_.awaits_user();
}

void Session::confirm() {
    if (!awaits_confirmation()) return;
    core_->shutdown_.confirm();
    core_->advance_shutdown();
}

// --- what it is -----------------------------------------------------------------------------

bool Session::is_open() const noexcept {
    return core_->is_open();
}

bool Session::has_heard() const noexcept {
    return core_->receive_.has_heard();
}

const Hello& Session::peer() const noexcept {
    return core_->handshake_.peer();
}

const access::Rights* Session::rights() const noexcept {
    return core_->handshake_.gate().rights();
}

RejectCode Session::rejection() const noexcept {
    return core_->handshake_.rejection();
}

const Capabilities& Session::capabilities() const noexcept {
    return core_->connection_->capabilities();
}

std::size_t Session::segment_limit() const noexcept {
    return core_->send_.segment_limit();
}

MemoryDomain& Session::domain() noexcept {
    return core_->connection_->domain();
}

std::string Session::peer_address() const {
    return core_->connection_->peer_address();
}

EventLoop& Session::loop() noexcept {
    return core_->loop_;
}

std::size_t Session::body_limit() const noexcept {
    return core_->send_.body_limit();
}

SessionCounters Session::counters() const noexcept {
    SessionCounters counters = core_->send_.counters();
    counters.frames_received = core_->receive_.frames();
    counters.bytes_received = core_->receive_.bytes();
    counters.receives = core_->receive_.receive_count();
    return counters;
}

} // namespace netio::inline v0_2
