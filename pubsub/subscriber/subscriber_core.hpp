// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a SubscribeSocket is made of: one attempt to connect after the other, what is wanted, what
// arrives.

#include "netio/session/connector.hpp"
#include "netio/session/session.hpp"
#include "pubsub/core/intake.hpp"
#include "pubsub/core/retry_rule.hpp"
#include "pubsub/core/subscription_book.hpp"
#include "pubsub/subscriber/request_queue.hpp"
#include "pubsub/subscriber/silence_watch.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class SubscriberCore final : private Session::Handler, private Connector::Handler {
  public:
    // The socket is the user's. Throws as its constructor.
    SubscriberCore(Transport& transport, SubscribeSocket::Options options,
                   SubscribeSocket::Handler& handler, SubscribeSocket& socket);
    ~SubscriberCore();
    SubscriberCore(const SubscriberCore&) = delete;
    SubscriberCore& operator=(const SubscriberCore&) = delete;

    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy);
    void unsubscribe(const FidRange& range);
    void release(const FidRange& range);
    void close();
    void abort();
    void pause();
    void resume();

    EventLoop& loop() const noexcept { return transport_.loop(); }
    std::vector<FidRange> wanted() const { return book_.wanted(); }
    bool is_connected() const noexcept { return session_ && session_->is_open(); }
    const std::string& provider() const noexcept { return target_.provider; }
    bool is_paused() const noexcept { return paused_; }
    const SubscribeSocket::Counters& counters() noexcept;
    const Intake& intake() const noexcept { return intake_; }

  private:
    struct Sink; // what the intake finds, for the handler

    void start();
    void retry();
    void connect();
    void attempt_failed(const Closed& closed, RejectCode rejection);
    void end_books(bool in_order);
    // The user is to be told of the end of a connection, or of an attempt at one.
    void conclude(const Closed& closed);
    // Up to so many of the ranges that are wanted and of which nothing has arrived.
    std::vector<FidRange> silent_ranges(std::size_t limit) const;
    void tell_silence(const FidQuery::Near& near);

    void on_route(const Session::Target& target) override;
    void on_connect_failed(const Closed& closed) override;
    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;
    Intake::Outcome take_answer(Session& session, std::span<const std::byte> body);

    SubscribeSocket& socket_;
    Transport& transport_;
    SubscribeSocket::Options options_;
    SubscribeSocket::Handler& handler_;
    SubscriptionBook book_;
    RequestQueue requests_;
    Intake intake_;
    RetryRule rule_;
    Connector connector_;
    Session::Target target_; // in use, or tried last
    SubscribeSocket::Counters counters_;
    bool closing_ = false;
    bool paused_ = false;
    bool* destroyed_ = nullptr;
    Timer retry_timer_;
    SilenceWatch silence_;
    std::unique_ptr<Session> session_; // last: goes first
};

} // namespace netio::pubsub::inline v0_2
