// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of a session: it lets the parts decide and does what they say.
//
//     Handshake      who the two sides are, and whether they suit each other
//     SendWindow     what may be sent now, and what is under way
//     ReceiveWindow  what has arrived and is not done with
//     Shutdown       how it ends in order, and what an end means
//     Liveness       whether the peer is dead, and when it must hear of us
//
// Private to netio/session.

#include "netio/session/handshake.hpp"
#include "netio/session/liveness.hpp"
#include "netio/session/patient_timer.hpp"
#include "netio/session/receive_window.hpp"
#include "netio/session/send_window.hpp"
#include "netio/session/session.hpp"
#include "netio/session/shutdown.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_2 {

class SessionCore final : private Connection::Handler {
  public:
    SessionCore(Session& session, Transport& transport, const Hello& hello,
                const SessionOptions& options, Session::Handler& handler,
                access::Protection protection);
    ~SessionCore();
    SessionCore(const SessionCore&) = delete;
    SessionCore& operator=(const SessionCore&) = delete;
    void connect(Transport& transport, const Session::Target& target);
    void accept(ConnectionRequest& request, const Hello& peer,
                std::unique_ptr<Admittance> admittance, std::shared_ptr<const void> place);

  private:
    friend class Session; // whose calls these are, or its parts'
    Status send(const OutgoingFrame& frame, std::optional<Cookie> cookie);
    Status write(const OutgoingWrite& write, Cookie cookie);
    void close(TimePoint by);
    void cut_off(Closed verdict, Duration took_nothing_for);
    void fail(CloseReason reason, std::string detail);
    bool is_open() const noexcept { return state_ == State::open && shutdown_.may_send(); }

    // parting: the peer is being told why this side ends. ended: the connection is gone, and what
    // arrived before is still to be handed over.
    // exchanging: the peer's part of the keys is awaited.
    enum class State : std::uint8_t {
        opening,
        exchanging,
        awaiting_open,
        open,
        parting,
        closing,
        ended
    };

    void on_answer(std::span<const std::byte> data) override;
    void on_connected(std::span<const std::byte> data) override;
    void on_rejected(std::span<const std::byte> data) override;
    void on_completion(const Completion& completion) override;
    void on_closed(const Closed& closed) override;

    void open_connection(std::chrono::milliseconds timeout);
    void become_open();
    // Each of these: false: the session has ended, or is destroyed.
    bool is_answer_genuine(std::span<const std::byte> data);
    bool say_open();
    bool take_keys(std::span<const std::byte> message);
    bool take_arrival(const Completion& completion);
    bool take_own_frame(ReceiveWindow::Arrival& arrival);
    bool send_own(FrameKind kind, std::span<const std::byte> body = {});
    bool protocol_error(const std::string& what);

    void hand_over();
    void deliver(const ReceiveWindow::Arrival& arrival);
    template <class Post>
    Status post_or_fail(Post post);
    // What the session itself has to say, and then whether the service may.
    void go_on();
    void advance_shutdown();
    void await_peer();
    void on_deadline();
    void beat();

    EventLoop& loop_;
    SessionOptions options_;
    Session& session_;
    Session::Handler& handler_;
    State state_ = State::opening;
    Handshake handshake_;
    SendWindow send_;
    ReceiveWindow receive_;
    Shutdown shutdown_;
    Liveness liveness_;
    std::optional<Closed> verdict_; // the reason of the end, as soon as there is one
    bool is_answered_ = false;
    bool* destroyed_ = nullptr;
    PatientTimer deadline_; // connecting, handshake, shutdown, parting
    Timer beat_;
    Timer later_;                            // hands over what has waited
    std::unique_ptr<Connection> connection_; // last: goes first
};

} // namespace netio::inline v0_2
