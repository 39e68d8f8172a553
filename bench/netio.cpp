// SPDX-License-Identifier: Apache-2.0

// This framework, by its public interface and with its default options. Forms: `buffered`
// (BufferedPublishSocket) and `unbuffered` (PublishSocket). Round trips: `unbuffered` takes a
// publisher and a subscriber on either side, and so two connections; `session` one connection. The
// pattern `idle` opens connections on which nothing happens.

#include "bench/netio_session.hpp"
#include "bench/subject.hpp"
#include "netio/access/key_source.hpp"
#include "netio/access/key_text.hpp"
#include "netio/access/right_words.hpp"
#include "netio/fabric.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <sys/resource.h>

namespace {

using bench::Arguments;
using netio::Status;
using netio::pubsub::Fid;
using netio::pubsub::FidRange;

constexpr Fid idle_fid{1}; // subscribed to, never published

netio::LoopMode mode_of(const Arguments& arguments) {
    if (arguments.mode == "busy") return netio::LoopMode::busy;
    return arguments.mode == "adaptive" ? netio::LoopMode::adaptive : netio::LoopMode::blocking;
}

netio::Address address_of(const Arguments& arguments, unsigned offset = 0) {
    return {arguments.address, static_cast<std::uint16_t>(arguments.port + offset)};
}

void set_heartbeat(netio::SessionOptions& session, const Arguments& arguments) {
    if (arguments.heartbeat_ms >= 0)
        session.heartbeat = std::chrono::milliseconds{arguments.heartbeat_ms};
}

// Ranges of one subscriber.
std::vector<FidRange> ranges_of(const Arguments& arguments) {
    if (!arguments.each_fid) {
        return {{Fid{bench::fid_at(0)}, Fid{bench::fid_at(arguments.fids - 1)}}};
    }
    std::vector<FidRange> ranges;
    for (std::size_t i = 0; i < arguments.fids; ++i)
        ranges.push_back({Fid{bench::fid_at(i)}, Fid{bench::fid_at(i)}});
    return ranges;
}

netio::access::Protection protection_of(const Arguments& arguments) {
    using netio::access::Protection;
    for (const Protection level : {Protection::peers, Protection::integrity, Protection::privacy})
        if (to_string(level) == arguments.protection) return level;
    return Protection::none;
}

// One key, in the publisher's file and in that of its subscribers.
std::shared_ptr<netio::ServerKeys> new_keys(netio::EventLoop& loop, const Arguments& arguments) {
    if (arguments.protection.empty()) return nullptr;
    const netio::access::Key key{
        .id = 1,
        .name = "bench",
        .secret = netio::access::Secret::random(),
        .rights = netio::access::parse_rights("services=pubsub fids=0-0xffffffffffffffff:block")};
    const std::string text = netio::access::text_of_one(key);
    for (const std::string& path : {arguments.keys, arguments.keys + ".client"})
        netio::access::write_key_file(path, text, true);
    return std::make_shared<netio::ServerKeys>(
        loop,
        netio::ServerKeys::Options{.file = arguments.keys, .least = protection_of(arguments)});
}

std::shared_ptr<const netio::ClientKey> client_key(const Arguments& arguments) {
    if (arguments.protection.empty()) return nullptr;
    return std::make_shared<netio::ClientKey>(netio::ClientKey::Options{
        .file = arguments.keys + ".client", .protection = protection_of(arguments)});
}

// Publishes one way or the other.
class Output final : private netio::pubsub::PublishSocket::Handler {
  public:
    struct Events {
        std::function<void()> on_ready; // everybody has subscribed
        std::function<void()> on_writable;
        std::function<void()> on_closed;
    };

    Output(netio::Transport& transport, const Arguments& arguments, unsigned port_offset,
           std::size_t expected_ranges, Events events)
        : events_{std::move(events)}, size_{arguments.size}, ranges_left_{expected_ranges},
          message_(arguments.size) {
        netio::pubsub::Publisher::Options publisher{
            .addresses = {address_of(arguments, port_offset)}, .open = true};
        publisher.keys = new_keys(transport.loop(), arguments);
        set_heartbeat(publisher.session, arguments);
        if (arguments.form != "unbuffered") {
            buffered_.emplace(transport,
                              netio::pubsub::BufferedPublishSocket::Options{.publisher = publisher},
                              static_cast<netio::pubsub::Publisher::Handler&>(*this));
            return;
        }
        const std::size_t count = std::clamp<std::size_t>((16U << 20) / size_, 4, 256);
        memory_.emplace(count * size_);
        for (std::size_t i = count; i > 0; --i)
            free_.push_back(i - 1);
        unbuffered_.emplace(transport,
                            netio::pubsub::PublishSocket::Options{.publisher = publisher},
                            static_cast<netio::pubsub::PublishSocket::Handler&>(*this));
    }

    // fill(bytes) writes the message; false: there is no room, on_writable follows.
    template <typename Fill>
    bool publish(Fid fid, Fill fill) {
        Status status = Status::again;
        if (buffered_) {
            fill(message_.data());
            status = buffered_->publish(fid, message_);
        } else if (!free_.empty()) {
            const netio::Slice slice = memory_->slice(free_.back() * size_, size_);
            fill(slice.data);
            status = unbuffered_->publish(fid, slice, netio::Cookie{free_.back()});
            if (status == Status::ok) free_.pop_back();
        }
        if (status == Status::ok) return true;
        if (status != Status::again) bench::fail("publish: " + std::string{to_string(status)});
        return false;
    }

    void close() { buffered_ ? buffered_->close() : unbuffered_->close(); }

  private:
    void on_subscribed(netio::pubsub::Publisher&, const netio::pubsub::SubscriberPeer&,
                       const FidRange&) override {
        if (--ranges_left_ == 0) events_.on_ready();
    }
    void on_writable(netio::pubsub::Publisher&) override { events_.on_writable(); }
    void on_closed(netio::pubsub::Publisher&, const netio::Closed&) override {
        events_.on_closed();
    }
    void on_publish_completed(netio::pubsub::PublishSocket&, netio::Cookie key) override {
        free_.push_back(static_cast<std::size_t>(key));
        if (free_.size() == 1) events_.on_writable();
    }

    Events events_;
    std::size_t size_;
    std::size_t ranges_left_;
    std::vector<std::byte> message_;
    std::optional<netio::RegisteredBuffer> memory_;
    std::vector<std::size_t> free_; // pieces of memory_
    std::optional<netio::pubsub::BufferedPublishSocket> buffered_;
    std::optional<netio::pubsub::PublishSocket> unbuffered_;
};

// Subscribes. Messages are taken as by a user's own handler: without a std::function.
class Input : private netio::pubsub::SubscribeSocket::Handler {
  public:
    Input(netio::Transport& transport, const Arguments& arguments, unsigned port_offset,
          const std::vector<FidRange>& ranges)
        : socket_{transport, options(arguments, port_offset), *this} {
        socket_.subscribe(ranges);
    }
    virtual ~Input() = default;

    std::uint64_t lost() const {
        const netio::pubsub::ArrivalCounter& arrivals = socket_.arrivals();
        const auto books = arrivals.books();
        return books ? books->lost : arrivals.missed();
    }

  private:
    virtual void on_ended() = 0;

    static netio::pubsub::SubscribeSocket::Options options(const Arguments& arguments,
                                                           unsigned port_offset) {
        netio::pubsub::SubscribeSocket::Options options{.publisher =
                                                            address_of(arguments, port_offset)};
        options.key = client_key(arguments);
        set_heartbeat(options.session, arguments);
        return options;
    }
    void on_closed(netio::pubsub::SubscribeSocket&, const netio::Closed& closed,
                   bool retrying) override {
        if (retrying) return;
        if (closed.reason != netio::CloseReason::orderly) bench::fail(closed.detail);
        on_ended();
    }

    netio::pubsub::SubscribeSocket socket_;
};

// --- streams ----------------------------------------------------------------------------------

void publish(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport) {
    bench::Source source{arguments};
    std::optional<Output> output;
    std::optional<netio::Timer> timer;
    const bool paced = arguments.pattern == "paced";
    const auto pump = [&] {
        while (!source.done() && source.due()) {
            if (!output->publish(Fid{source.fid()}, [&](std::byte* out) { source.prepare(out); })) {
                return;
            }
            source.advance();
            if (source.done()) return output->close();
        }
        if (paced && !source.done()) timer->start(std::chrono::nanoseconds{bench::tick_ns});
    };
    timer.emplace(loop, pump);
    const std::size_t ranges = arguments.each_fid ? arguments.fids : 1;
    output.emplace(transport, arguments, 0, ranges * arguments.subscribers + arguments.idle,
                   Output::Events{.on_ready =
                                      [&] {
                                          source.start();
                                          timer->start(netio::Duration{0});
                                      },
                                  .on_writable = pump,
                                  .on_closed = [&] { loop.stop(); }});
    bench::say("listening");
    loop.run();
    source.report();
}

class StreamInput final : public Input {
  public:
    StreamInput(netio::Transport& transport, const Arguments& arguments, netio::EventLoop& loop)
        : Input{transport, arguments, 0, ranges_of(arguments)}, loop_{loop}, sink_{arguments} {}

    void report() {
        if (lost() > 0) bench::fail("the publisher's totals say that messages were lost");
        sink_.report();
    }

  private:
    void on_message(netio::pubsub::SubscribeSocket&, Fid, std::span<const std::byte> message,
                    std::uint8_t) override {
        sink_.take(message.data(), message.size());
    }
    void on_ended() override { loop_.stop(); }

    netio::EventLoop& loop_;
    bench::Sink sink_;
};

void subscribe(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport) {
    StreamInput input{transport, arguments, loop};
    loop.run();
    input.report();
}

// --- round trips ------------------------------------------------------------------------------

// The rest calls functions for what happens.
class EventInput final : public Input {
  public:
    struct Events {
        std::function<void()> on_subscribed = [] {};
        std::function<void(std::span<const std::byte>)> on_message = [](auto) {};
        std::function<void()> on_ended = [] {};
    };
    EventInput(netio::Transport& transport, const Arguments& arguments, unsigned port_offset,
               const std::vector<FidRange>& ranges, Events events)
        : Input{transport, arguments, port_offset, ranges}, events_{std::move(events)} {}

  private:
    void on_subscribed(netio::pubsub::SubscribeSocket&, const FidRange&) override {
        events_.on_subscribed();
    }
    void on_message(netio::pubsub::SubscribeSocket&, Fid, std::span<const std::byte> message,
                    std::uint8_t) override {
        events_.on_message(message);
    }
    void on_ended() override { events_.on_ended(); }

    Events events_;
};

void measure_echo(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport) {
    bench::RoundTrips trips{arguments};
    std::optional<Output> output;
    bool subscribed = false;
    const auto send = [&] {
        if (!output->publish(Fid{bench::fid_at(0)}, [&](std::byte* out) { trips.prepare(out); })) {
            bench::fail("no room for one message");
        }
    };
    const auto begin = [&] { // when both have subscribed to each other
        if (std::exchange(subscribed, true)) send();
    };
    output.emplace(
        transport, arguments, 0, 1,
        Output::Events{.on_ready = begin, .on_writable = [] {}, .on_closed = [&] { loop.stop(); }});
    const EventInput input{
        transport,
        arguments,
        1,
        ranges_of(arguments),
        {.on_subscribed = begin, .on_message = [&](std::span<const std::byte> message) {
             if (trips.take(message.data())) return output->close();
             send();
         }}};
    bench::say("listening");
    loop.run();
    trips.report();
}

void echo(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport) {
    Output output{
        transport, arguments, 1, 1,
        Output::Events{.on_ready = [] {}, .on_writable = [] {}, .on_closed = [&] { loop.stop(); }}};
    const auto answer = [&](std::span<const std::byte> message) {
        const bool sent = output.publish(Fid{bench::fid_at(0)}, [&](std::byte* out) {
            std::memcpy(out, message.data(), message.size());
        });
        if (!sent) bench::fail("no room for one message");
    };
    const EventInput input{
        transport, arguments, 0, ranges_of(arguments), {.on_message = answer, .on_ended = [&] {
                                                            output.close();
                                                        }}};
    loop.run();
}

// --- idle connections -------------------------------------------------------------------------

void publish_nothing(const Arguments& arguments, netio::EventLoop& loop,
                     netio::Transport& transport) {
    bench::Source source{arguments};
    std::optional<Output> output;
    netio::Timer timer{loop, [&] { output->close(); }};
    output.emplace(transport, arguments, 0, arguments.idle,
                   Output::Events{.on_ready =
                                      [&] {
                                          source.start();
                                          timer.start(std::chrono::duration_cast<netio::Duration>(
                                              std::chrono::duration<double>{arguments.seconds}));
                                      },
                                  .on_writable = [] {},
                                  .on_closed = [&] { loop.stop(); }});
    bench::say("listening");
    loop.run();
    source.report();
}

void subscribe_idly(const Arguments& arguments, netio::EventLoop& loop,
                    netio::Transport& transport) {
    std::size_t subscribed = 0;
    std::size_t closed = 0;
    double cpu_at_start = 0;
    double cpu_s = 0;
    const auto on_subscribed = [&] {
        if (++subscribed == arguments.idle) cpu_at_start = bench::cpu_seconds();
    };
    const auto on_ended = [&] {
        if (++closed == 1) cpu_s = bench::cpu_seconds() - cpu_at_start;
        if (closed == arguments.idle) loop.stop();
    };
    std::vector<std::unique_ptr<Input>> inputs;
    for (std::size_t i = 0; i < arguments.idle; ++i) {
        inputs.push_back(std::make_unique<EventInput>(
            transport, arguments, 0, std::vector<FidRange>{{idle_fid, idle_fid}},
            EventInput::Events{.on_subscribed = on_subscribed, .on_ended = on_ended}));
    }
    loop.run();
    std::printf("{\"role\": \"idle\", \"cpu_s\": %.6f}\n", cpu_s);
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files); // one per connection
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    netio::EventLoop loop{{.mode = mode_of(arguments)}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    if (arguments.pattern == "echo" && arguments.form == "session") {
        bench::echo_over_link(arguments, loop, *transport);
    } else if (arguments.pattern == "echo") {
        (arguments.publish ? measure_echo : echo)(arguments, loop, *transport);
    } else if (arguments.pattern == "idle") {
        (arguments.publish ? publish_nothing : subscribe_idly)(arguments, loop, *transport);
    } else {
        (arguments.publish ? publish : subscribe)(arguments, loop, *transport);
    }
}
