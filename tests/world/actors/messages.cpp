// SPDX-License-Identifier: Apache-2.0

// Processes that send point-to-point messages, buffered or unbuffered, and their receiver.

#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"
#include "tests/world/actors/actor.hpp"
#include "tests/world/actors/keeping.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

class SendActor final : public Actor,
                        public SendSocket::Handler,
                        public BufferedSendSocket::Handler {
  public:
    SendActor(World& world, Process& process);

    bool is_idle() const override;
    void probe() override;
    void check_served() override;
    void close() override;
    bool is_closed() const override { return (!plain_ && !buffered_) || closed_; }
    bool ends_first() const override { return true; }
    std::string feature() const override { return buffered_ ? "buffered-sender" : "sender"; }
    std::string state() const override;

  private:
    struct Flow {
        Flow(SendActor& actor, const Step& step)
            : left{step.with.get("count", 1)}, bytes{static_cast<std::size_t>(
                                                   step.with.get("bytes", 40))},
              gap{std::chrono::microseconds{step.with.get("gap_us", 100)}},
              timer{actor.process_.loop, [this, &actor] { actor.go_on(*this); }} {}
        std::int64_t left;
        std::size_t bytes;
        Duration gap;
        bool waits = false;
        Timer timer;
    };

    void carry_out(const Step& step) override;
    void destroy() override;
    void abort() override { destroy(); }
    void connect();
    bool is_connected() const;
    void go_on(Flow& flow);
    void go_on_all();
    Status send(Flow& flow);
    PipeOracle::Pipe pipe() const { return {.connection = connection_, .back = false}; }

    void connected();
    void writable();
    void closed(const Closed& closed);
    void on_connected(SendSocket&) override { connected(); }
    void on_send_completed(SendSocket&, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(SendSocket&) override { writable(); }
    void on_closed(SendSocket&, const Closed& why) override { closed(why); }
    void on_connected(BufferedSendSocket&) override { connected(); }
    void on_writable(BufferedSendSocket&) override { writable(); }
    void on_closed(BufferedSendSocket&, const Closed& why) override { closed(why); }

    std::uint32_t receiver_;
    std::vector<std::unique_ptr<Flow>> flows_;
    std::vector<std::pair<std::uint64_t, std::unique_ptr<RegisteredBuffer>>> lent_;
    std::size_t send_count_ = 0; // maximum sends in flight
    std::uint64_t next_cookie_ = 1;
    std::uint64_t connection_ = 0;
    std::optional<TimePoint> connected_since_;
    bool wanted_ = false; // connect was called
    bool connecting_ = false;
    bool closing_ = false;
    TimePoint closing_since_;
    bool closed_ = false;
    Timer retry_;
    Timer again_;
    std::unique_ptr<SendSocket> plain_;
    std::unique_ptr<BufferedSendSocket> buffered_;
};

SendActor::SendActor(World& world, Process& process)
    : Actor{world, process}, receiver_{static_cast<std::uint32_t>(option("of"))},
      retry_{process.loop, [this] { connect(); }}, again_{process.loop, [this] { go_on_all(); }} {
    SendSocket::Options options;
    options.key = world_.key_of(number_);
    options.session = session_options(options.session);
    send_count_ = options.session.send_count;
    if (option("mode") == 0) {
        plain_ = std::make_unique<SendSocket>(process.transport, options, *this);
        return;
    }
    BufferedSendSocket::Options all{.socket = options};
    all.page_size_bytes = static_cast<std::size_t>(option("page_size_bytes", 600));
    all.page_count = static_cast<std::size_t>(option("pages", 16));
    buffered_ = std::make_unique<BufferedSendSocket>(process.transport, all, *this);
}

std::string SendActor::state() const {
    if (is_closed()) return "ended";
    if (closing_) return "closing";
    if (connecting_) return "connecting";
    if (!connected_since_) return "apart";
    if (std::ranges::any_of(flows_, [](const auto& flow) { return flow->waits; })) return "again";
    return world_.pipes().is_empty(pipe()) ? "quiet" : "backlog";
}

void SendActor::carry_out(const Step& step) {
    if (is_closed()) return;
    if (step.what == "connect") {
        wanted_ = true;
        return connect();
    }
    if (step.what == "send") {
        flows_.push_back(std::make_unique<Flow>(*this, step));
        return go_on(*flows_.back());
    }
    if (step.what == "close") return close();
    if (step.what == "busy") return dawdle(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "destroy" || step.what == "abort") {
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
    }
}

void SendActor::connect() {
    if (is_closed() || closing_ || connecting_ || connected_since_) return;
    note("connect");
    connecting_ = true;
    try {
        plain_ ? plain_->connect(World::address_of(receiver_))
               : buffered_->connect(World::address_of(receiver_));
    } catch (const FabricError& error) {
        note("connect_refused");
        connecting_ = false;
        retry_.start(std::chrono::milliseconds{200});
    }
}

bool SendActor::is_connected() const {
    return plain_ ? plain_->is_connected() : buffered_ && buffered_->is_connected();
}

void SendActor::go_on(Flow& flow) {
    while (connected_since_ && !closing_ && !is_closed() && flow.left > 0) {
        const Status status = send(flow);
        note("send", static_cast<std::uint64_t>(status), flow.bytes);
        flow.waits = status == Status::again;
        if (flow.waits) react(Event::again);
        if (flow.waits || status == Status::closed) return;
        --flow.left;
        if (status != Status::ok) flow.left = 0;
        if (flow.gap > Duration{} && flow.left > 0) return flow.timer.start(flow.gap);
    }
}

void SendActor::go_on_all() {
    for (std::size_t i = 0; i < flows_.size(); ++i)
        if (!flows_[i]->timer.armed()) go_on(*flows_[i]);
}

Status SendActor::send(Flow& flow) {
    const MessageName name = world_.pipes().next_message(pipe());
    Status status = Status::ok;
    if (buffered_) {
        std::vector<std::byte> bytes(flow.bytes);
        fill(name, bytes);
        status = buffered_->send(bytes);
    } else {
        if (flow.bytes > plain_->message_limit()) return Status::too_large;
        auto memory = std::make_unique<RegisteredBuffer>(std::max<std::size_t>(1, flow.bytes));
        fill(name, {memory->data(), flow.bytes});
        const std::uint64_t cookie = next_cookie_++;
        status = plain_->send(memory->slice(0, flow.bytes), Cookie{cookie});
        if (status == Status::ok) {
            lent_.emplace_back(cookie, std::move(memory));
            world_.pipes().begins(number_, cookie, send_count_);
        }
    }
    if (status == Status::ok) world_.pipes().accepted(pipe(), flow.bytes);
    return status;
}

// --- callbacks ------------------------------------------------------------------------------

void SendActor::connected() {
    connection_ = newest_connection();
    note("connected", connection_);
    connecting_ = false;
    connected_since_ = world_.oracle().now();
    if (react(Event::connected)) return;
    again_.start(Duration{});
}

void SendActor::writable() {
    note("writable");
    if (react(Event::writable)) return;
    again_.start(Duration{});
}

void SendActor::on_send_completed(SendSocket&, Cookie cookie, Completion::Outcome outcome) {
    const auto number = static_cast<std::uint64_t>(cookie);
    note("completed", number, static_cast<std::uint64_t>(outcome));
    world_.pipes().ends(number_, number, "on_send_completed");
    std::erase_if(lent_, [&](auto& entry) {
        if (entry.first != number) return false;
        std::ranges::fill(entry.second->memory(), spoiled);
        return true;
    });
    react(Event::completed);
}

void SendActor::closed(const Closed& why) {
    note("closed", static_cast<std::uint64_t>(why.reason));
    connecting_ = false;
    world_.pipes().all_ended(number_, "the sender's connection has closed");
    if (const auto since = std::exchange(connected_since_, std::nullopt)) {
        if (why.reason == CloseReason::orderly) {
            world_.pipes().everything_arrived(pipe(), "the sender got orderly");
        }
        world_.judge_end(number_, receiver_, *since, why, dead_after());
        if (closing_ && why.reason != CloseReason::orderly &&
            world_.oracle().was_calm(closing_since_)) {
            world_.oracle().violate(RuleId::close_is_confirmed,
                                    "process " + std::to_string(number_) + " got " +
                                        std::string{to_string(why.reason)} + ' ' + why.detail);
        }
    }
    closed_ = closing_;
    if (react(Event::closed) || closed_) return;
    if (wanted_) retry_.start(std::chrono::milliseconds{200});
}

// --- the end --------------------------------------------------------------------------------

bool SendActor::is_idle() const {
    if (is_closed() || closing_ || !wanted_ || !world_.serves(receiver_)) return true;
    return std::ranges::all_of(flows_, [](const auto& flow) { return flow->left <= 0; });
}

void SendActor::probe() {
    if (is_closed() || closing_ || !wanted_) return;
    flows_.push_back(std::make_unique<Flow>(
        *this, Step{.at_us = 0, .process = number_, .what = "send", .with = {}}));
    go_on(*flows_.back());
}

void SendActor::check_served() {
    if (is_closed() || closing_ || !wanted_ || !world_.serves(receiver_)) return;
    if (!connected_since_ || !is_connected()) {
        world_.oracle().violate(RuleId::served_in_the_end,
                                "process " + std::to_string(number_) + " is not connected");
    } else if (!world_.pipes().is_empty(pipe())) {
        world_.oracle().violate(RuleId::served_in_the_end, "process " + std::to_string(number_) +
                                                               ": what it sent has not arrived");
    }
}

void SendActor::close() {
    if (is_closed() || std::exchange(closing_, true)) return;
    note("close");
    closing_since_ = world_.oracle().now();
    // A process that never connected has nothing to end.
    if (!connected_since_ && !connecting_) {
        closed_ = true;
        return;
    }
    plain_ ? plain_->close() : buffered_->close();
    react(Event::closing);
}

void SendActor::destroy() {
    note("destroy");
    world_.pipes().forget(number_);
    plain_.reset();
    buffered_.reset();
    lent_.clear();
}

// --- receiving ------------------------------------------------------------------------------

class ReceiveActor final : public Actor, public ListenSocket::Handler {
  public:
    ReceiveActor(World& world, Process& process);

    void behave() override {
        Actor::behave();
        kept_.stop();
        slow_ = Duration{};
        resume();
    }
    void close() override {
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
    }
    bool is_closed() const override { return socket_ == nullptr; }
    std::string feature() const override { return "receiver"; }
    std::string state() const override {
        if (resume_.armed()) return "paused";
        return peers_.empty() ? "alone" : "connected";
    }
    void pause(Duration time) override;

  private:
    void carry_out(const Step& step) override;
    void destroy() override {
        note("destroy");
        socket_.reset();
    }
    void abort() override { destroy(); }

    void on_connected(ReceiveSocket& socket) override;
    void on_message(ReceiveSocket& socket, std::span<const std::byte> message,
                    std::optional<std::uint64_t> immediate) override;
    void on_closed(ReceiveSocket& socket, const Closed& closed) override;

    void resume();

    Duration slow_;
    std::map<std::uint64_t, TimePoint> peers_;
    Timer resume_;
    OwnMemory own_memory_;
    KeptMessages kept_;
    std::unique_ptr<ListenSocket> socket_;
};

ReceiveActor::ReceiveActor(World& world, Process& process)
    : Actor{world, process}, slow_{std::chrono::microseconds{option("slow_us")}},
      resume_{process.loop, [this] { resume(); }}, own_memory_{process}, kept_{world, process} {
    ListenSocket::Options options;
    options.allow_remote_anonymous = true;
    options.keys = world_.keys_of_server(process.loop);
    for (std::int64_t i = 0; i < option("addresses", 1); ++i)
        options.listen.push_back(World::address_of(number_, i));
    options.session.receive_buffer_bytes = 1000;
    options.session.receive_count = 8;
    options.session = session_options(options.session);
    options.session.receive_memory = own_memory_.memory();
    socket_ = std::make_unique<ListenSocket>(process.transport, options, *this);
}

void ReceiveActor::carry_out(const Step& step) {
    if (is_closed()) return;
    if (step.what == "busy") return dawdle(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "pause") return pause(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "destroy" || step.what == "abort" || step.what == "close") {
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
    }
}

// A connection made during the pause is not paused.
void ReceiveActor::pause(Duration time) {
    process_.has_paused = true;
    if (is_closed()) return;
    note("pause");
    world_.oracle().lasts(Trouble::busy, number_, time);
    for (ReceiveSocket* const peer : socket_->peers())
        peer->pause();
    resume_.start(time);
}

void ReceiveActor::resume() {
    resume_.cancel();
    if (is_closed()) return;
    note("resume");
    for (ReceiveSocket* const peer : socket_->peers())
        peer->resume();
}

void ReceiveActor::on_connected(ReceiveSocket& socket) {
    note("connected", connection_of(socket.peer_address()));
    peers_[connection_of(socket.peer_address())] = world_.oracle().now();
    react(Event::connected);
}

void ReceiveActor::on_message(ReceiveSocket& socket, std::span<const std::byte> message,
                              std::optional<std::uint64_t>) {
    const std::uint64_t connection = connection_of(socket.peer_address());
    note("message", connection, message.size());
    world_.pipes().arrived({.connection = connection, .back = false}, number_, message);
    kept_.offer(message, [&](std::span<const std::byte> part) { return socket.keep(part); });
    dawdle(slow_);
    react(Event::message);
}

void ReceiveActor::on_closed(ReceiveSocket& socket, const Closed& closed) {
    const std::uint64_t connection = connection_of(socket.peer_address());
    note("closed", connection, static_cast<std::uint64_t>(closed.reason));
    const auto known = peers_.find(connection);
    if (known == peers_.end()) {
        world_.oracle().violate(RuleId::last_word,
                                "a receiver got the end of a connection that it did not have");
        return;
    }
    if (closed.reason == CloseReason::orderly) {
        world_.pipes().everything_arrived({.connection = connection, .back = false},
                                          "the receiver got orderly");
    }
    world_.judge_end(number_, world_.network().process_of(connection), known->second, closed,
                     dead_after());
    peers_.erase(known);
    react(Event::closed);
}

} // namespace

std::unique_ptr<Actor> make_sender(World& world, Process& process) {
    return std::make_unique<SendActor>(world, process);
}
std::unique_ptr<Actor> make_receiver(World& world, Process& process) {
    return std::make_unique<ReceiveActor>(world, process);
}

} // namespace netio::world
