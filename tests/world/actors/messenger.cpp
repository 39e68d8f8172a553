// SPDX-License-Identifier: Apache-2.0

// Processes with message sockets: one listens, the others connect; both sides send and receive. A
// process receives into memory of the library, of which it keeps some, or into slices that it
// posts.

#include "netio/messages/message_socket.hpp"
#include "tests/world/actors/actor.hpp"
#include "tests/world/actors/keeping.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

// Larger than every message that is drawn.
constexpr std::size_t largest_slice = 8192;

class MessengerActor final : public Actor {
  public:
    MessengerActor(World& world, Process& process);

    void behave() override;
    bool is_idle() const override;
    void probe() override;
    void check_served() override;
    void close() override;
    bool is_closed() const override;
    bool serves() const override { return listener_ != nullptr && !closing_; }
    bool ends_first() const override { return true; }
    std::string feature() const override {
        return serves_ ? "messenger-server" : "messenger-client";
    }
    std::string state() const override;
    void pause(Duration time) override;

  private:
    struct Posted {
        std::uint64_t key = 0;
        std::vector<std::byte> memory;
    };
    struct End;
    struct Flow {
        Flow(MessengerActor& actor, End& its_end, const Step& step);
        End& end;
        std::int64_t left;
        std::size_t bytes;
        Duration gap;
        bool borrows; // sends without a copy
        bool waits = false;
        Timer timer;
    };
    struct End {
        std::uint64_t connection = 0;
        TimePoint since;
        bool open = false;
        bool finished = false; // finish() was called on this connection
        bool peer_finished = false;
        bool over = false; // the last connection of this end has ended
        bool closes = false;
        bool peer_reads = false; // since before it was closed
        std::vector<std::unique_ptr<Flow>> flows;
        std::map<std::uint64_t, std::unique_ptr<RegisteredBuffer>> sends;
        std::deque<Posted> posted;
        std::size_t wanted_bytes = 0;          // of the message that found no slice
        std::unique_ptr<MessageSocket> socket; // last member: destroyed first
    };

    void carry_out(const Step& step) override;
    void destroy() override;
    void abort() override;
    void connect();
    MessageSocket::Options options() const;
    MessageSocket::Functions functions(End& end);
    bool posts() const { return option("posts") != 0; }
    std::chrono::milliseconds close_limit() const {
        return std::max(std::chrono::milliseconds{option("close_limit_ms", 60'000)},
                        std::chrono::milliseconds{option("session_close_ms", 10'000)});
    }
    // Whether it ends with close(), and not with finish().
    bool closes() const { return option("closes") != 0; }
    PipeOracle::Pipe out(const End& end) const { return {end.connection, serves_}; }
    PipeOracle::Pipe in(const End& end) const { return {end.connection, !serves_}; }

    void send_on_all(const Step& step);
    void go_on(Flow& flow);
    void go_on_all(End& end);
    Status send(Flow& flow);
    Status send_copy(End& end, std::span<const std::byte> bytes);
    Status send_borrowed(End& end, std::size_t bytes, std::optional<std::uint64_t> immediate);
    void check_size(const End& end, Status status, std::size_t bytes, std::size_t limit);
    void post_more(End& end);
    void finish(End& end);
    void close_end(End& end);
    void resume();
    void judge_close(const End& end, const Closed& closed);
    void violate(RuleId rule, const End& end, const std::string& what);

    void on_incoming(IncomingPeer& incoming);
    void on_connected(End& end);
    void on_message(End& end, const IncomingMessage& message);
    void on_received(End& end, const MessageSocket::Received& received);
    void on_too_large(End& end, const Posted& slice, std::size_t bytes);
    void on_sent(End& end, Cookie cookie, Completion::Outcome outcome);
    void on_peer_finished(End& end);
    void on_closed(End& end, const Closed& closed);

    bool serves_;
    std::uint32_t server_;
    Duration slow_;
    std::size_t depth_ = 0; // slices that wait
    bool closing_ = false;
    bool behaves_ = false; // from the same time for all
    bool is_wanted_ = false;
    bool is_paused_ = false;
    std::uint64_t next_key_ = 1;
    Dice dice_;
    Timer resume_;
    Timer retry_;
    OwnMemory own_memory_;
    KeptMessages kept_;
    std::vector<std::unique_ptr<End>> ends_;
    std::unique_ptr<MessageListener> listener_;
};

MessengerActor::Flow::Flow(MessengerActor& actor, End& its_end, const Step& step)
    : end{its_end}, left{step.with.get("count", 1)}, bytes{static_cast<std::size_t>(
                                                         step.with.get("bytes", 100))},
      gap{std::chrono::microseconds{step.with.get("gap_us", 0)}},
      borrows{step.with.get("borrows") != 0}, timer{actor.process_.loop,
                                                    [this, &actor] { actor.go_on(*this); }} {}

MessengerActor::MessengerActor(World& world, Process& process)
    : Actor{world, process}, serves_{!process.plan.options.has("of")},
      server_{static_cast<std::uint32_t>(option("of"))},
      slow_{std::chrono::microseconds{option("slow_us")}}, depth_{static_cast<std::size_t>(
                                                               option("depth", 2))},
      dice_{static_cast<std::uint64_t>(number_) * 31 + 7}, resume_{process.loop,
                                                                   [this] { resume(); }},
      retry_{process.loop, [this] { connect(); }}, own_memory_{process}, kept_{world, process} {
    if (!serves_) return;
    listener_ = std::make_unique<MessageListener>(
        process.transport,
        MessageListener::Options{.listen = {World::address_of(number_)},
                                 .allow_remote_anonymous = true,
                                 .keys = world.keys_of_server(process.loop)},
        [this](IncomingPeer& incoming) { on_incoming(incoming); });
}

MessageSocket::Options MessengerActor::options() const {
    MessageSocket::Options options;
    options.session.receive_buffer_bytes = 1000;
    options.session.receive_count = 8;
    options.session = session_options(options.session);
    options.session.close_limit = close_limit();
    options.session.receive_memory = own_memory_.memory();
    if (!serves_) options.key = world_.key_of(number_);
    options.reconnect = option("reconnect") != 0;
    options.retry_interval = std::chrono::milliseconds{option("retry_ms", 250)};
    options.page_size_bytes = static_cast<std::size_t>(option("page_size_bytes", 600));
    options.page_count = static_cast<std::size_t>(option("pages", 16));
    options.largest_message_bytes = static_cast<std::size_t>(option("largest", largest_slice));
    options.receive_into_posted = posts();
    options.posted_limit = static_cast<std::size_t>(option("posted_limit", 4));
    return options;
}

MessageSocket::Functions MessengerActor::functions(End& end) {
    return {
        .on_connected = [this, &end] { on_connected(end); },
        .on_message = [this, &end](const IncomingMessage& message) { on_message(end, message); },
        .on_received = [this, &end](const auto& received) { on_received(end, received); },
        .on_sent = [this, &end](Cookie cookie,
                                Completion::Outcome outcome) { on_sent(end, cookie, outcome); },
        .on_writable =
            [this, &end] {
                note("writable", end.connection);
                if (!react(Event::writable)) go_on_all(end);
            },
        .on_peer_finished = [this, &end] { on_peer_finished(end); },
        .on_closed = [this, &end](const Closed& closed) { on_closed(end, closed); }};
}

std::string MessengerActor::state() const {
    if (resume_.armed()) return "paused";
    for (const auto& end : ends_) {
        if (!end->open) continue;
        if (end->closes) return "closing";
        if (end->finished) return "finished";
        if (end->peer_finished) return "peer-finished";
        if (posts() && end->posted.empty()) return "no-slice";
        if (std::ranges::any_of(end->flows, [](const auto& flow) { return flow->waits; }))
            return "again";
        return world_.pipes().is_empty(out(*end)) ? "quiet" : "backlog";
    }
    return ends_.empty() ? "alone" : "apart";
}

void MessengerActor::violate(RuleId rule, const End& end, const std::string& what) {
    world_.oracle().violate(rule, "process " + std::to_string(number_) + ", connection " +
                                      std::to_string(end.connection) + ": " + what);
}

// --- actions --------------------------------------------------------------------------------

void MessengerActor::carry_out(const Step& step) {
    if (step.what == "connect") {
        is_wanted_ = true;
        return connect();
    }
    if (step.what == "send") return send_on_all(step);
    if (step.what == "post") {
        depth_ = static_cast<std::size_t>(step.with.get("depth", 1));
        for (const auto& end : ends_)
            post_more(*end);
    } else if (step.what == "finish") {
        for (const auto& end : ends_)
            finish(*end);
    } else if (step.what == "close") {
        for (const auto& end : ends_)
            close_end(*end);
    } else if (step.what == "busy") {
        dawdle(std::chrono::microseconds{step.with.get("us")});
    } else if (step.what == "pause") {
        pause(std::chrono::microseconds{step.with.get("us")});
    } else if (step.what == "destroy" || step.what == "abort") {
        world_.oracle().happens(Trouble::gone, number_);
        step.what == "abort" ? abort() : destroy();
    }
}

// After an end of this socket, it is used again.
void MessengerActor::connect() {
    if (serves_ || closing_ || !is_wanted_) return;
    if (ends_.empty()) {
        End& made = *ends_.emplace_back(std::make_unique<End>());
        made.socket =
            std::make_unique<MessageSocket>(process_.transport, options(), functions(made));
        if (is_paused_) made.socket->pause();
    } else if (!ends_.front()->over || !ends_.front()->socket) {
        return;
    }
    End& end = *ends_.front();
    note("connect");
    end.over = false;
    end.closes = false;
    post_more(end);
    try {
        end.socket->connect(World::address_of(server_));
    } catch (const FabricError& refused) {
        note("connect_refused");
        end.over = true;
        retry_.start(std::chrono::milliseconds{200});
    }
}

void MessengerActor::send_on_all(const Step& step) {
    for (const auto& end : ends_) {
        if ((serves_ && end->over) || !end->socket) continue;
        end->flows.push_back(std::make_unique<Flow>(*this, *end, step));
        go_on(*end->flows.back());
    }
}

void MessengerActor::go_on(Flow& flow) {
    End& end = flow.end;
    while (end.open && end.socket && flow.left > 0) {
        const Status status = send(flow);
        note("send", static_cast<std::uint64_t>(status), flow.bytes);
        const bool may_send = !end.finished && !end.closes;
        if (!may_send && status != Status::closed)
            violate(RuleId::messages_finish, end, "it has sent a message after its last one");
        flow.waits = status == Status::again;
        if (flow.waits) react(Event::again);
        if (flow.waits || status == Status::closed) return;
        --flow.left;
        if (status != Status::ok) flow.left = 0;
        if (dice_.percent(10)) end.socket->flush();
        if (flow.gap > Duration{} && flow.left > 0) return flow.timer.start(flow.gap);
    }
}

void MessengerActor::go_on_all(End& end) {
    for (std::size_t i = 0; i < end.flows.size(); ++i)
        if (!end.flows[i]->timer.armed()) go_on(*end.flows[i]);
}

Status MessengerActor::send(Flow& flow) {
    End& end = flow.end;
    const std::optional<std::uint64_t> immediate = flow.borrows && flow.left % 3 == 0
                                                       ? std::optional{end.connection + flow.bytes}
                                                       : std::nullopt;
    Status status = Status::ok;
    if (flow.borrows) {
        status = send_borrowed(end, flow.bytes, immediate);
    } else {
        std::vector<std::byte> bytes(flow.bytes);
        fill(world_.pipes().next_message(out(end)), bytes);
        status = send_copy(end, bytes);
        std::ranges::fill(bytes, spoiled);
    }
    check_size(end, status, flow.bytes,
               flow.borrows ? end.socket->frame_limit() : end.socket->message_limit());
    if (status == Status::ok) world_.pipes().accepted(out(end), flow.bytes, immediate);
    return status;
}

Status MessengerActor::send_copy(End& end, std::span<const std::byte> bytes) {
    if (dice_.percent(70)) return end.socket->send(bytes);
    const auto size = static_cast<std::int64_t>(bytes.size());
    const auto middle = static_cast<std::size_t>(dice_.between(0, size));
    const std::array parts{bytes.first(middle), bytes.subspan(middle)};
    return end.socket->send_parts(parts);
}

Status MessengerActor::send_borrowed(End& end, std::size_t bytes,
                                     std::optional<std::uint64_t> immediate) {
    auto memory = std::make_unique<RegisteredBuffer>(std::max<std::size_t>(1, bytes));
    fill(world_.pipes().next_message(out(end)), {memory->data(), bytes});
    const std::uint64_t key = next_key_++;
    const std::size_t middle = dice_.percent(50) ? bytes / 2 : bytes;
    const std::array slices{memory->slice(0, middle), memory->slice(middle, bytes - middle)};
    const Status status =
        end.socket->sendv(std::span{slices}.first(middle == bytes ? 1 : 2), Cookie{key}, immediate);
    if (status != Status::ok) return status;
    end.sends.emplace(key, std::move(memory));
    world_.pipes().begins(number_, key);
    return status;
}

void MessengerActor::check_size(const End& end, Status status, std::size_t bytes,
                                std::size_t limit) {
    if (!end.socket->is_connected()) return;
    if ((status == Status::too_large && bytes <= limit) || (status == Status::ok && bytes > limit))
        violate(RuleId::message_limit, end,
                std::to_string(bytes) + " bytes with the limit " + std::to_string(limit));
}

void MessengerActor::post_more(End& end) {
    // A page waits for slices as it does for a paused user (World::check_turns).
    if (posts()) process_.has_paused = true;
    if (!posts() || !end.socket || end.over) return;
    while (end.posted.size() < depth_) {
        const auto drawn = static_cast<std::size_t>(dice_.between(0, option("slice_bytes", 1000)));
        const std::size_t bytes = behaves_            ? largest_slice
                                  : dice_.percent(50) ? std::max(drawn, end.wanted_bytes)
                                                      : drawn;
        Posted slice{.key = next_key_++, .memory = std::vector<std::byte>(bytes, spoiled)};
        const Status status = end.socket->post_receive(slice.memory, Cookie{slice.key});
        const bool is_full =
            end.posted.size() >= static_cast<std::size_t>(option("posted_limit", 4));
        if ((status == Status::again) != is_full)
            violate(RuleId::message_slices, end,
                    std::to_string(end.posted.size()) + " slices wait, a further one returned " +
                        std::string{to_string(status)});
        if (status != Status::ok) return;
        end.posted.push_back(std::move(slice));
    }
}

void MessengerActor::finish(End& end) {
    if (!end.open || end.closes || std::exchange(end.finished, true)) return;
    note("finish", end.connection);
    is_wanted_ = false;
    world_.pipes().finishes(out(end));
    end.socket->finish();
    react(Event::closing);
}

void MessengerActor::close_end(End& end) {
    if (end.over || !end.socket || std::exchange(end.closes, true)) return;
    note("closes", end.connection);
    end.peer_reads = behaves_;
    if (end.open) {
        world_.pipes().closes(out(end), number_,
                              std::chrono::milliseconds{option("session_close_ms", 10'000)},
                              close_limit(), RuleId::messages_close);
    } else {
        // A connection that is open only at its peer is aborted.
        world_.oracle().happens(Trouble::gone, number_);
    }
    end.socket->close();
    react(Event::closing);
}

void MessengerActor::pause(Duration time) {
    process_.has_paused = true;
    note("pause");
    world_.oracle().lasts(Trouble::busy, number_, time);
    is_paused_ = true;
    for (const auto& end : ends_)
        if (end->socket) end->socket->pause();
    resume_.start(time);
}

void MessengerActor::resume() {
    resume_.cancel();
    if (!std::exchange(is_paused_, false)) return;
    note("resume");
    for (const auto& end : ends_)
        if (end->socket) end->socket->resume();
}

// --- callbacks ------------------------------------------------------------------------------

void MessengerActor::on_incoming(IncomingPeer& incoming) {
    if (closing_) return;
    End& end = *ends_.emplace_back(std::make_unique<End>());
    end.connection = connection_of(incoming.peer_address());
    try {
        end.socket = incoming.accept(options(), functions(end));
    } catch (...) {
        ends_.pop_back();
        throw;
    }
    if (is_paused_) end.socket->pause();
    post_more(end);
}

void MessengerActor::on_connected(End& end) {
    if (!serves_) end.connection = newest_connection();
    note("connected", end.connection);
    end.open = true;
    end.finished = false;
    end.peer_finished = false;
    end.since = world_.oracle().now();
    if (react(Event::connected)) return;
    post_more(end);
    go_on_all(end);
}

void MessengerActor::on_message(End& end, const IncomingMessage& message) {
    note("message", end.connection, message.size());
    if (posts() || end.closes || is_paused_ || end.peer_finished || !end.open)
        violate(RuleId::messages_paused, end, "a message came that must not come now");
    world_.pipes().arrived(in(end), number_, message.bytes(), message.immediate(),
                           RuleId::messages_in_order);
    kept_.offer(message.bytes(), [&](std::span<const std::byte> part) {
        // A small message is kept as a copy.
        const KeptBytes whole = message.keep();
        return whole.part(whole.bytes().last(part.size()));
    });
    dawdle(slow_);
    if (!react(Event::message)) go_on_all(end);
}

void MessengerActor::on_received(End& end, const MessageSocket::Received& received) {
    const auto key = static_cast<std::uint64_t>(received.cookie);
    note("received", key, received.bytes);
    if (end.closes || is_paused_ || end.peer_finished || !end.open)
        violate(RuleId::messages_paused, end, "a slice was used that must not be used now");
    if (end.posted.empty() || end.posted.front().key != key)
        return violate(RuleId::message_slices, end,
                       "slice " + std::to_string(key) + " was used, it is not the next one");
    const Posted slice = std::move(end.posted.front());
    end.posted.pop_front();
    if (received.status == Status::too_large) {
        on_too_large(end, slice, received.bytes);
    } else if (received.bytes > slice.memory.size()) {
        return violate(RuleId::message_slices, end, "a message is larger than its slice");
    } else {
        world_.pipes().arrived(in(end), number_, std::span{slice.memory}.first(received.bytes),
                               received.immediate, RuleId::messages_in_order);
    }
    dawdle(slow_);
    if (react(Event::message)) return;
    post_more(end);
    go_on_all(end);
}

void MessengerActor::on_too_large(End& end, const Posted& slice, std::size_t bytes) {
    end.wanted_bytes = bytes;
    const std::optional<std::size_t> due = world_.pipes().next_size(in(end));
    const bool is_unchanged =
        std::ranges::all_of(slice.memory, [](const std::byte each) { return each == spoiled; });
    if (due == bytes && bytes > slice.memory.size() && is_unchanged) return;
    violate(RuleId::message_too_large, end,
            "a slice of " + std::to_string(slice.memory.size()) + " bytes" +
                (is_unchanged ? "" : ", which has changed,") + " was returned for a message of " +
                std::to_string(bytes) + " bytes; the next one has " +
                (due ? std::to_string(*due) : std::string{"not been sent"}));
}

void MessengerActor::on_sent(End& end, Cookie cookie, Completion::Outcome outcome) {
    const auto key = static_cast<std::uint64_t>(cookie);
    note("sent", key, static_cast<std::uint64_t>(outcome));
    world_.pipes().ends(number_, key, "on_sent");
    const auto found = end.sends.find(key);
    if (found == end.sends.end())
        return violate(RuleId::message_sent, end, "the memory of another socket was returned");
    std::ranges::fill(found->second->memory(), spoiled);
    end.sends.erase(found);
    if (react(Event::completed)) return;
    go_on_all(end);
}

void MessengerActor::on_peer_finished(End& end) {
    note("peer_finished", end.connection);
    if (std::exchange(end.peer_finished, true) || !world_.pipes().is_finished(in(end)))
        violate(RuleId::messages_finish, end, "an end was reported that the peer did not make");
    world_.pipes().everything_arrived(in(end), "the peer has finished");
    if (!react(Event::totals)) go_on_all(end);
}

void MessengerActor::on_closed(End& end, const Closed& closed) {
    note("closed", end.connection, static_cast<std::uint64_t>(closed.reason));
    if (end.over) violate(RuleId::last_word, end, "on_closed was called twice");
    if (!end.sends.empty())
        violate(RuleId::message_sent, end,
                std::to_string(end.sends.size()) + " sends have not ended before their connection");
    if (end.socket->posted_count() != 0)
        violate(RuleId::message_slices, end, "slices are in use after the connection");
    end.posted.clear();
    const bool had_finished = end.open && end.finished;
    if (had_finished && end.socket->is_retrying())
        violate(RuleId::messages_retry, end, "it connects again after finish()");
    if (std::exchange(end.open, false)) {
        if (closed.reason == CloseReason::orderly) {
            world_.pipes().everything_arrived(out(end), "the connection's end was orderly");
            // A socket that has closed receives nothing more.
            if (!end.closes)
                world_.pipes().everything_arrived(in(end), "the connection's end was orderly");
        }
        judge_close(end, closed);
    }
    end.over = !end.socket->is_retrying();
    if (react(Event::closed)) return;
    if (end.over && !serves_) retry_.start(std::chrono::milliseconds{200});
    if (!end.over && dice_.percent(50)) post_more(end);
}

void MessengerActor::judge_close(const End& end, const Closed& closed) {
    PipeOracle& pipes = world_.pipes();
    pipes.closed(out(end), in(end));
    // A peer that closes too may leave messages unread.
    const bool is_unread = pipes.is_closing(in(end)) && !pipes.is_empty(out(end));
    if (closed.reason != CloseReason::orderly && end.peer_reads && pipes.closes_calmly(out(end)) &&
        !is_unread)
        violate(RuleId::messages_close, end,
                "it was closed with " + std::string{to_string(closed.reason)} + ' ' +
                    closed.detail);
    const bool is_given_up =
        closed.reason == CloseReason::too_slow || closed.reason == CloseReason::lost;
    if (is_given_up && pipes.may_be_given_up(in(end))) return;
    const std::uint32_t peer = serves_ ? world_.network().process_of(end.connection) : server_;
    world_.judge_end(number_, peer, end.since, closed, dead_after());
}

// --- the end --------------------------------------------------------------------------------

void MessengerActor::behave() {
    Actor::behave();
    kept_.stop();
    behaves_ = true;
    slow_ = Duration{};
    depth_ = std::max<std::size_t>(1, depth_);
    resume();
    for (const auto& end : ends_) {
        post_more(*end);
        go_on_all(*end);
    }
}

bool MessengerActor::is_idle() const {
    if (closing_ || (!serves_ && !world_.serves(server_))) return true;
    return std::ranges::all_of(ends_, [this](const auto& end) {
        if (end->finished || end->closes || (end->over && !is_wanted_) || (serves_ && end->over))
            return true;
        return end->sends.empty() &&
               std::ranges::all_of(end->flows, [](const auto& flow) { return flow->left <= 0; });
    });
}

void MessengerActor::probe() {
    if (closing_) return;
    for (const std::int64_t borrows : {0, 1}) {
        Step step{.at_us = 0, .process = number_, .what = "send", .with = {}};
        step.with.set("borrows", borrows);
        send_on_all(step);
    }
}

void MessengerActor::check_served() {
    world_.pipes().check_closes();
    if (!serves_ && !closing_ && is_wanted_ && world_.serves(server_) && !ends_.empty() &&
        ends_.front()->socket && !ends_.front()->closes && !ends_.front()->open)
        violate(RuleId::messages_retry, *ends_.front(), "it is not connected");
    for (const auto& end : ends_) {
        if (!end->open || end->closes) continue;
        if (end->finished && end->peer_finished)
            violate(RuleId::messages_both_finished, *end, "it is open");
        if (!world_.pipes().is_empty(in(*end)))
            violate(RuleId::served_in_the_end, *end, "not all that was sent has been received");
        if (world_.pipes().is_finished(in(*end)) && !end->peer_finished)
            violate(RuleId::messages_finish, *end, "the end of the peer was not reported");
    }
}

void MessengerActor::close() {
    if (std::exchange(closing_, true)) return;
    note("close");
    retry_.cancel();
    resume();
    for (const auto& end : ends_) {
        // Without a connection there is nothing to finish.
        closes() || !end->open ? close_end(*end) : finish(*end);
    }
}

bool MessengerActor::is_closed() const {
    if (!closing_) return listener_ == nullptr && ends_.empty();
    return std::ranges::none_of(ends_, [](const auto& end) {
        return end->open || (end->socket && end->socket->is_retrying());
    });
}

void MessengerActor::abort() {
    note("abort");
    is_wanted_ = false;
    for (const auto& end : ends_) {
        if (!end->socket || end->over) continue;
        end->closes = true;
        end->socket->abort();
    }
}

void MessengerActor::destroy() {
    note("destroy");
    world_.pipes().forget(number_);
    is_wanted_ = false;
    for (const auto& end : ends_) {
        end->socket.reset();
        end->open = false;
        end->over = true;
        end->sends.clear();
        end->posted.clear();
    }
    listener_.reset();
}

} // namespace

std::unique_ptr<Actor> make_messenger(World& world, Process& process) {
    return std::make_unique<MessengerActor>(world, process);
}

} // namespace netio::world
