// SPDX-License-Identifier: Apache-2.0

// Processes with byte streams: one listens, the others connect; both sides send and receive.

#include "stream/socket/stream_listener.hpp"
#include "stream/socket/stream_socket.hpp"
#include "tests/world/actors/actor.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

using stream::StreamSocket;

constexpr std::size_t sends_at_once = 4;

class StreamActor final : public Actor,
                          public StreamSocket::Handler,
                          public stream::StreamListener::Handler {
  public:
    StreamActor(World& world, Process& process);

    void behave() override;
    bool is_idle() const override;
    void probe() override { send_on_all({.left = 1, .bytes = 100}); }
    void check_served() override;
    void close() override;
    bool is_closed() const override;
    bool serves() const override { return listener_ != nullptr; }
    bool ends_first() const override { return true; }
    std::string feature() const override { return serves_ ? "stream-server" : "stream-client"; }
    std::string state() const override;

  private:
    struct Flow {
        std::int64_t left = 0;
        std::size_t bytes = 0;
    };
    struct Borrowed {
        std::uint64_t key = 0;
        std::unique_ptr<RegisteredBuffer> memory;
    };
    struct End {
        std::uint64_t connection = 0;
        TimePoint since;
        bool open = false;
        bool shut = false;          // this direction has ended
        bool over = false;          // on_closed was called
        bool peer_reads = false;    // since before it was closed
        bool waited_before = false; // its time-out began before the close
        std::deque<Flow> flows;
        std::deque<Borrowed> sends; // in the order of posting
        std::deque<Borrowed> receives;
        std::unique_ptr<StreamSocket> socket; // last member: destroyed first
    };

    void carry_out(const Step& step) override;
    void destroy() override;
    void abort() override;
    void connect();
    stream::StreamSocket::Options options() const;
    std::chrono::milliseconds close_timeout() const {
        return std::chrono::milliseconds{option("session_close_ms", 10'000)};
    }
    std::chrono::milliseconds close_limit() const {
        // A shrunk schedule may lack the other option.
        return std::max(std::chrono::milliseconds{option("close_limit_ms", 60'000)},
                        close_timeout());
    }
    // Longest sleep of its loop while it closes: until the next heartbeat or the close time-out.
    Duration longest_sleep() const {
        const auto heartbeat = session_options({}).heartbeat;
        return heartbeat.count() == 0 ? close_timeout() : std::min(heartbeat, close_timeout());
    }
    // Whether it ends with close(), and not with one shutdown per direction.
    bool closes() const { return option("closes") != 0; }
    End& end_of(const StreamSocket& socket);
    PipeOracle::Pipe out(const End& end) const { return {end.connection, serves_}; }
    PipeOracle::Pipe in(const End& end) const { return {end.connection, !serves_}; }
    void send_on_all(const Flow& flow);
    bool try_call(const std::function<Status()>& call);
    void send_more(End& end);
    void receive_more(End& end);
    void read_ring(End& end);
    void shut_down(End& end);
    void close_all();
    void judge_close(const End& end, const Closed& closed);

    void on_incoming(stream::IncomingStream& incoming) override;
    void on_connected(StreamSocket& socket) override;
    void on_send_completed(StreamSocket& socket, Cookie key, Completion::Outcome outcome) override;
    void on_received(StreamSocket& socket, const stream::Received& received) override;
    void on_readable(StreamSocket& socket) override;
    void on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) override;
    void on_end_of_stream(StreamSocket& socket) override;
    void on_closed(StreamSocket& socket, const Closed& closed) override;

    bool serves_;
    std::uint32_t server_;
    std::size_t receive_depth_ = 0;
    std::size_t receive_bytes_ = 1000;
    bool fill_all_ = false;
    bool closing_ = false;
    bool behaves_ = false; // from the same time for all
    std::uint64_t next_key_ = 1;
    std::vector<std::unique_ptr<End>> ends_;
    std::unique_ptr<stream::StreamListener> listener_;
};

StreamActor::StreamActor(World& world, Process& process)
    : Actor{world, process}, serves_{!process.plan.options.has("of")},
      server_{static_cast<std::uint32_t>(option("of"))} {
    if (serves_) {
        listener_ = std::make_unique<stream::StreamListener>(
            process.transport,
            stream::StreamListener::Options{.listen = {World::address_of(number_)},
                                            .allow_remote_anonymous = true,
                                            .keys = world.keys_of_server(process.loop)},
            *this);
    }
}

stream::StreamSocket::Options StreamActor::options() const {
    const auto ring = static_cast<std::uint64_t>(option("ring", 16 * 1024));
    stream::StreamSocket::Options options;
    if (option("published") != 0) {
        options = stream::published_stream(ring);
    } else {
        options.receiver = stream::improved_receiver(ring, option("grows") != 0 ? 8 * ring : 0);
    }
    if (!serves_) options.key = world_.key_of(number_);
    options.session = session_options(options.session);
    options.session.send_count =
        static_cast<std::size_t>(std::max<std::int64_t>(4, option("sends", 16)));
    options.session.receive_count = static_cast<std::size_t>(option("receives", 32));
    options.session.close_limit = close_limit();
    if (option("trusts") != 0) options.remote_writes = stream::RemoteWrites::trusted;
    return options;
}

std::string StreamActor::state() const {
    for (const auto& end : ends_) {
        if (!end->open) continue;
        if (end->shut) return "shut";
        if (!world_.pipes().is_empty(out(*end))) return "backlog";
        return end->receives.empty() ? "no-receive" : "quiet";
    }
    return ends_.empty() ? "alone" : "apart";
}

StreamActor::End& StreamActor::end_of(const StreamSocket& socket) {
    return **std::ranges::find_if(ends_,
                                  [&](const auto& end) { return end->socket.get() == &socket; });
}

// --- actions --------------------------------------------------------------------------------

void StreamActor::carry_out(const Step& step) {
    if (step.what == "connect") return connect();
    if (step.what == "send") {
        return send_on_all({.left = step.with.get("count", 1),
                            .bytes = static_cast<std::size_t>(step.with.get("bytes", 100))});
    }
    if (step.what == "receive") {
        receive_depth_ = static_cast<std::size_t>(step.with.get("depth", 1));
        receive_bytes_ = static_cast<std::size_t>(step.with.get("bytes", 1000));
        fill_all_ = step.with.get("fill") != 0;
        for (const auto& end : ends_)
            receive_more(*end);
    } else if (step.what == "shutdown") {
        for (const auto& end : ends_)
            shut_down(*end);
    } else if (step.what == "busy") {
        dawdle(std::chrono::microseconds{step.with.get("us")});
    } else if (step.what == "close" && closes()) {
        close_all();
    } else if (step.what == "destroy" || step.what == "abort" || step.what == "close") {
        world_.oracle().happens(Trouble::gone, number_);
        step.what == "abort" ? abort() : destroy();
    }
}

void StreamActor::connect() {
    if (serves_ || closing_ || !ends_.empty()) return;
    note("connect");
    End& end = *ends_.emplace_back(std::make_unique<End>());
    end.socket = std::make_unique<StreamSocket>(process_.transport, options(), *this);
    try {
        end.socket->connect(World::address_of(server_));
    } catch (const FabricError& refused) {
        note("connect_refused");
        end.over = true;
    }
}

void StreamActor::send_on_all(const Flow& flow) {
    for (const auto& end : ends_) {
        if (end->over || end->shut) continue;
        end->flows.push_back(flow);
        send_more(*end);
    }
}

// Both calls throw if memory cannot be registered; then nothing was accepted.
bool StreamActor::try_call(const std::function<Status()>& call) {
    try {
        const Status status = call();
        note("posted", static_cast<std::uint64_t>(status));
        return status == Status::ok;
    } catch (const FabricError& error) {
        note("not_registered");
        return false;
    }
}

void StreamActor::send_more(End& end) {
    while (end.open && !end.shut && !end.flows.empty() && end.sends.size() < sends_at_once) {
        Flow& flow = end.flows.front();
        const std::uint64_t offset = world_.pipes().bytes_in(out(end));
        auto memory = std::make_unique<RegisteredBuffer>(std::max<std::size_t>(1, flow.bytes));
        for (std::size_t i = 0; i < flow.bytes; ++i)
            memory->data()[i] = world_.pipes().byte_at(out(end), offset + i);
        const std::uint64_t key = next_key_++;
        const bool taken =
            try_call([&] { return end.socket->send(memory->slice(0, flow.bytes), Cookie{key}); });
        if (!taken) return;
        world_.pipes().begins(number_, key);
        world_.pipes().bytes_accepted(out(end), flow.bytes);
        end.sends.push_back({.key = key, .memory = std::move(memory)});
        if (--flow.left <= 0) end.flows.pop_front();
    }
}

// Reads in place, in parts of up to receive_bytes_, what no receive gets.
void StreamActor::read_ring(End& end) {
    if (receive_depth_ == 0 || end.socket == nullptr) return;
    for (auto bytes = end.socket->peek(); !bytes.empty(); bytes = end.socket->peek()) {
        bytes = bytes.first(std::min(bytes.size(), std::max<std::size_t>(1, receive_bytes_)));
        world_.pipes().bytes_arrived(in(end), number_, bytes);
        end.socket->consume(bytes.size());
    }
}

void StreamActor::receive_more(End& end) {
    if (option("peeks") != 0) return read_ring(end);
    while (end.open && end.receives.size() < receive_depth_) {
        auto memory = std::make_unique<RegisteredBuffer>(receive_bytes_, Access::remote_write);
        const std::uint64_t key = next_key_++;
        const bool taken = try_call([&] {
            return end.socket->receive(memory->slice(), Cookie{key},
                                       fill_all_ ? stream::Fill::all : stream::Fill::some);
        });
        if (!taken) return;
        world_.pipes().begins(number_, key);
        end.receives.push_back({.key = key, .memory = std::move(memory)});
    }
}

void StreamActor::shut_down(End& end) {
    if (!end.open || std::exchange(end.shut, true)) return;
    note("shut_down", end.connection);
    end.flows.clear();
    end.socket->shutdown_send();
    react(Event::closing);
}

void StreamActor::close_all() {
    for (const auto& end : ends_) {
        if (end->over || !end->socket || world_.pipes().is_closing(out(*end))) continue;
        note("closes", end->connection);
        end->peer_reads = behaves_;
        end->waited_before = std::exchange(end->shut, true) || world_.pipes().is_closing(in(*end));
        end->flows.clear();
        if (end->open) world_.pipes().closes(out(*end), number_, close_timeout(), close_limit());
        // A stream that is not yet connected here, but may be at its peer, is aborted.
        if (!end->open) world_.oracle().happens(Trouble::gone, number_);
        end->socket->close();
    }
    react(Event::closing);
}

// --- callbacks ------------------------------------------------------------------------------

void StreamActor::on_incoming(stream::IncomingStream& incoming) {
    if (closing_) return;
    End& end = *ends_.emplace_back(std::make_unique<End>());
    end.connection = connection_of(incoming.peer_address());
    try {
        end.socket = incoming.accept(options(), *this);
    } catch (...) {
        ends_.pop_back();
        throw;
    }
}

void StreamActor::on_connected(StreamSocket& socket) {
    End& end = end_of(socket);
    if (!serves_) end.connection = newest_connection();
    note("connected", end.connection);
    end.open = true;
    end.since = world_.oracle().now();
    if (react(Event::connected)) return;
    receive_more(end);
    send_more(end);
}

void StreamActor::on_send_completed(StreamSocket& socket, Cookie key, Completion::Outcome outcome) {
    const auto number = static_cast<std::uint64_t>(key);
    note("completed", number, static_cast<std::uint64_t>(outcome));
    world_.pipes().ends(number_, number, "on_send_completed");
    End& end = end_of(socket);
    if (end.sends.empty() || end.sends.front().key != number) {
        world_.oracle().violate(RuleId::bytes_in_order, "sends complete out of order");
        return;
    }
    end.sends.pop_front();
    if (react(Event::completed)) return;
    send_more(end);
}

void StreamActor::on_received(StreamSocket& socket, const stream::Received& received) {
    const auto number = static_cast<std::uint64_t>(received.cookie);
    note("received", number, received.bytes);
    world_.pipes().ends(number_, number, "on_received");
    End& end = end_of(socket);
    if (end.receives.empty() || end.receives.front().key != number) {
        world_.oracle().violate(RuleId::bytes_in_order, "receives complete out of order");
        return;
    }
    const Borrowed borrowed = std::move(end.receives.front());
    end.receives.pop_front();
    world_.pipes().bytes_arrived(in(end), number_, borrowed.memory->memory().first(received.bytes));
    if (react(Event::message)) return;
    if (received.outcome == Completion::Outcome::done && !received.end_of_stream) {
        receive_more(end);
    }
}

void StreamActor::on_readable(StreamSocket& socket) {
    if (option("peeks") == 0) return;
    note("readable");
    read_ring(end_of(socket));
    react(Event::message);
}

void StreamActor::on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) {
    if (option("peeks") == 0) return;
    note("lost", arrived_bytes);
    read_ring(end_of(socket));
}

void StreamActor::on_end_of_stream(StreamSocket& socket) {
    note("end_of_stream");
    world_.pipes().everything_arrived(in(end_of(socket)), "the end of the stream was reported");
    react(Event::totals);
}

void StreamActor::on_closed(StreamSocket& socket, const Closed& closed) {
    note("closed", static_cast<std::uint64_t>(closed.reason));
    End& end = end_of(socket);
    if (std::exchange(end.over, true)) {
        world_.oracle().violate(RuleId::last_word, "the end of a stream was reported twice");
    }
    if (!end.sends.empty() || !end.receives.empty()) {
        world_.oracle().violate(RuleId::completed_once,
                                "a stream has closed, and " +
                                    std::to_string(end.sends.size() + end.receives.size()) +
                                    " operations have not ended");
    }
    if (std::exchange(end.open, false)) {
        if (closed.reason == CloseReason::orderly) {
            // A stream that has closed receives nothing more.
            if (!world_.pipes().is_closing(out(end))) {
                world_.pipes().everything_arrived(in(end), "the stream's end was orderly");
            }
            world_.pipes().everything_arrives(out(end), in(end), "the stream's end was orderly");
        }
        judge_close(end, closed);
    }
    react(Event::closed);
}

void StreamActor::judge_close(const End& end, const Closed& closed) {
    PipeOracle& pipes = world_.pipes();
    pipes.closed(out(end), in(end));
    // Unless this side closes too and leaves data unread.
    if (closed.reason != CloseReason::orderly && end.peer_reads && pipes.closes_calmly(out(end)) &&
        !pipes.is_closing(in(end))) {
        world_.oracle().violate(RuleId::close_is_confirmed,
                                "process " + std::to_string(number_) + " got " +
                                    std::string{to_string(closed.reason)} + ' ' + closed.detail);
    }
    // Checks the reason in the reported text: any other reason for `unconfirmed` may occur at any
    // time.
    if (closed.reason == CloseReason::unconfirmed &&
        closed.detail.find(" has received nothing more for ") != std::string::npos &&
        !end.waited_before && pipes.gave_up_early(out(end), longest_sleep())) {
        world_.oracle().violate(RuleId::stream_close_is_bounded,
                                "process " + std::to_string(number_) +
                                    " did not wait for so long: " + closed.detail);
    }
    const bool is_given_up =
        closed.reason == CloseReason::too_slow || closed.reason == CloseReason::lost;
    if (is_given_up && pipes.may_be_given_up(in(end))) return;
    const std::uint32_t peer = serves_ ? world_.network().process_of(end.connection) : server_;
    world_.judge_end(number_, peer, end.since, closed, dead_after());
}

// --- the end --------------------------------------------------------------------------------

void StreamActor::behave() {
    Actor::behave();
    behaves_ = true;
    receive_depth_ = std::max<std::size_t>(1, receive_depth_);
    for (const auto& end : ends_) {
        receive_more(*end);
        send_more(*end);
    }
}

bool StreamActor::is_idle() const {
    return std::ranges::all_of(ends_, [](const auto& end) {
        return !end->open || end->shut || (end->flows.empty() && end->sends.empty());
    });
}

void StreamActor::check_served() {
    world_.pipes().check_closes();
    for (const auto& end : ends_) {
        // A receive that must be filled waits for more data.
        if (!end->open || fill_all_ || world_.pipes().is_empty(in(*end))) continue;
        if (world_.pipes().is_closing(out(*end))) continue;
        world_.oracle().violate(RuleId::served_in_the_end,
                                "process " + std::to_string(number_) + ", connection " +
                                    std::to_string(end->connection) +
                                    ": not all that was sent has been received");
    }
}

void StreamActor::close() {
    if (std::exchange(closing_, true)) return;
    note("close");
    if (closes()) return close_all();
    for (const auto& end : ends_)
        shut_down(*end);
}

bool StreamActor::is_closed() const {
    if (!closing_) return listener_ == nullptr && ends_.empty();
    return std::ranges::none_of(ends_, [](const auto& end) { return end->open; });
}

void StreamActor::abort() {
    note("abort");
    for (const auto& end : ends_)
        if (!end->over && end->socket) end->socket->abort();
}

void StreamActor::destroy() {
    note("destroy");
    world_.pipes().forget(number_);
    for (const auto& end : ends_) {
        end->socket.reset();
        end->open = false;
        end->over = true;
    }
    listener_.reset();
}

} // namespace

std::unique_ptr<Actor> make_stream(World& world, Process& process) {
    return std::make_unique<StreamActor>(world, process);
}

} // namespace netio::world
