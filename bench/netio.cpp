// SPDX-License-Identifier: Apache-2.0

// This framework, with its public interface and its default options. Forms: `buffered`
// (BufferedPublishSocket) and `unbuffered` (PublishSocket). Round trips: `unbuffered` uses a
// publisher and a subscriber on each side, so two connections; `session`, `message-socket`,
// `request-loop` and `request` use one connection. The pattern `idle` opens idle connections,
// `groups` publishes to many groups of subscribers, `loops` on one loop or two. Forms of a
// netio::Subscriber of the buffered publisher: `callback`, `batches`, `messages`.

#include "bench/netio_client.hpp"
#include "bench/netio_groups.hpp"
#include "bench/netio_loops.hpp"
#include "bench/netio_requests.hpp"
#include "bench/netio_session.hpp"
#include "bench/netio_sockets.hpp"
#include "netio/fabric.hpp"

#include <memory>
#include <optional>
#include <sys/resource.h>

namespace {

using bench::Arguments;
using bench::Input;
using bench::Output;
using netio::pubsub::Fid;
using netio::pubsub::FidRange;

constexpr Fid idle_fid{1}; // subscribed to, never published

netio::LoopMode mode_of(const Arguments& arguments) {
    if (arguments.mode == "busy") return netio::LoopMode::busy;
    return arguments.mode == "adaptive" ? netio::LoopMode::adaptive : netio::LoopMode::blocking;
}

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
        if (paced) source.tick();
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
        : Input{transport, arguments, 0, bench::ranges_of(arguments)}, loop_{loop},
          sink_{arguments} {}

    void report() {
        if (lost() > 0) bench::fail("the publisher's totals show that messages were lost");
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

// An Input that calls functions for its events.
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
            bench::fail("cannot send a single message");
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
        bench::ranges_of(arguments),
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
        if (!sent) bench::fail("cannot send a single message");
    };
    const EventInput input{transport,
                           arguments,
                           0,
                           bench::ranges_of(arguments),
                           {.on_message = answer, .on_ended = [&] { output.close(); }}};
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
    if (arguments.pattern == "loops" && arguments.publish) {
        bench::publish_on_loops(arguments);
        return 0;
    }
    if (bench::is_by_client(arguments) && !arguments.publish) {
        bench::subscribe_by_client(arguments);
        return 0;
    }
    netio::EventLoop loop{{.mode = mode_of(arguments)}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    if (arguments.pattern == "echo" && arguments.form == "session") {
        bench::echo_over_session(arguments, loop, *transport);
    } else if (arguments.pattern == "echo" && arguments.form == "message-socket") {
        bench::echo_over_message_socket(arguments, loop, *transport);
    } else if (arguments.pattern == "echo" && bench::is_by_request(arguments)) {
        bench::echo_by_request(arguments, loop, *transport, {.mode = mode_of(arguments)});
    } else if (arguments.pattern == "echo") {
        (arguments.publish ? measure_echo : echo)(arguments, loop, *transport);
    } else if (arguments.pattern == "groups") {
        (arguments.publish ? bench::publish_to_groups : bench::subscribe_in_groups)(arguments, loop,
                                                                                    *transport);
    } else if (arguments.pattern == "loops") {
        bench::subscribe_to_loops(arguments, loop, *transport);
    } else if (arguments.pattern == "idle") {
        (arguments.publish ? publish_nothing : subscribe_idly)(arguments, loop, *transport);
    } else {
        (arguments.publish ? publish : subscribe)(arguments, loop, *transport);
    }
}
