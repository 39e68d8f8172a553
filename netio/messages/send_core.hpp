// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of a SendSocket: the session that is its connection, and the search for one.
// Private to netio/messages.

#include "netio/base/back_off.hpp"
#include "netio/base/outlook.hpp"
#include "netio/messages/send_socket.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/send_times.hpp"
#include "netio/session/session.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_2 {

class SendCore final : private Session::Handler, private Connector::Handler {
  public:
    SendCore(SendSocket& socket, Transport& transport, SendSocket::Options options,
             SendSocket::Handler& handler);
    ~SendCore();
    SendCore(const SendCore&) = delete;
    SendCore& operator=(const SendCore&) = delete;

    void connect(const Address& remote);
    void close();
    void abort();
    // The end of this connection is the last one.
    void connect_no_more() noexcept { closing_ = true; }
    // since: when it was to leave, from which its time counts.
    Status send(const OutgoingFrame& frame, std::optional<Cookie> cookie, TimePoint since) {
        const Status status = session_ ? session_->send(frame, cookie) : Status::closed;
        if (cookie && status == Status::ok) times_.on_posted(since);
        return status;
    }

    EventLoop& loop() const noexcept { return transport_.loop(); }
    bool is_connected() const noexcept { return session_ && session_->is_open(); }
    bool is_retrying() const noexcept { return retry_timer_.armed() && !closing_; }
    // Only while there is one: while connected, and until on_closed.
    Session& session() noexcept { return *session_; }
    const std::string& provider() const noexcept { return provider_; }
    SendSocket::Counters counters() const noexcept;
    SendSnapshot snapshot() const noexcept;

  private:
    Outlook::Proof proof() const noexcept {
        return options_.key ? Outlook::Proof::by_key : Outlook::Proof::none;
    }
    void start();
    void retry();
    // The user is to be told of the end of a connection, or of an attempt at one.
    void conclude(const Closed& closed, bool may_change);
    void on_route(const Session::Target& target) override;
    void on_connect_failed(const Closed& closed) override;
    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    SendSocket& socket_;
    Transport& transport_;
    SendSocket::Options options_;
    SendSocket::Handler& handler_;
    Connector connector_;
    std::string provider_;
    std::uint64_t connections_ = 0; // that were open
    SendSocket::Counters ended_;    // of the connections before this one
    Address remote_;
    TimePoint opened_{}; // this connection
    BackOff back_off_;
    Outlook outlook_; // of attempts at remote_
    SendTimes times_; // of what completes
    bool closing_ = false;
    Timer retry_timer_;
    std::unique_ptr<Session> session_;
};

} // namespace netio::inline v0_2
