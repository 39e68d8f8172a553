// SPDX-License-Identifier: Apache-2.0

// A program that ends, forks or calls from a wrong thread while its sockets are in use:
//   process_subject exit KIND PLACE   main returns; PLACE: early, first, late (see below)
//   process_subject exit_elsewhere    another thread calls exit() while a client publishes
//   process_subject running KIND      main returns while another thread runs the loop
//   process_subject fork HOW          a child is forked; HOW: fresh, exit, destroy, use
//   process_subject wrong_thread      messages are published from a thread that is not the loop's
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "pubsub/client/client.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/pubsub.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using netio::EventLoop;
using netio::Status;
namespace pubsub = netio::pubsub;
namespace stream = netio::stream;

constexpr pubsub::FidRange one_fid{.first = pubsub::Fid{1}, .last = pubsub::Fid{1}};
const netio::Address any_port{"127.0.0.1", 0};

struct Subject {
    Subject() = default;
    virtual ~Subject() = default;
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;
};

void run_until(EventLoop& loop, const std::function<bool()>& done) {
    while (!done())
        loop.run_once(loop.now() + 10ms);
}

struct Loop : Subject {
    EventLoop loop;
    std::unique_ptr<netio::Transport> transport = netio::open_fabric(loop);
};

struct Watches final : Loop {
    netio::Timer timer{loop, [] {}};
    netio::Timer tick = netio::Timer::every(loop, 1ms, [] {});
    netio::SignalWatch signals{loop, {SIGUSR1}, [](int) {}};
    netio::DescriptorWatch input{loop, ::eventfd(0, EFD_CLOEXEC),
                                 netio::DescriptorWatch::Interest::readable, [] {}};
    netio::DeviceWatch devices{loop};
    Watches() {
        timer.start(1h);
        loop.run_once();
    }
};

struct Messages final : Loop, netio::ListenSocket::Handler, netio::BufferedSendSocket::Handler {
    int arrived = 0;
    netio::ListenSocket listener{*transport, {.addresses = {any_port}}, *this};
    netio::BufferedSendSocket sender{*transport, {}, *this};
    Messages() {
        sender.connect(listener.endpoints().front().address);
        run_until(loop, [&] { return sender.is_connected(); });
        send();
        run_until(loop, [&] { return arrived > 0; });
        send(); // under way when main returns
    }
    void send() {
        static_cast<void>(sender.send(std::array<std::byte, 1000>{}));
        sender.flush();
    }
    void on_message(netio::ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {
        ++arrived;
    }
    void on_closed(netio::ReceiveSocket&, const netio::Closed&) override {}
    void on_closed(netio::BufferedSendSocket&, const netio::Closed&) override {}
    void on_connected(netio::ReceiveSocket&) override {}
    void on_connected(netio::BufferedSendSocket&) override {}
};

template <typename Publisher>
struct Published final : Loop, Publisher::Handler, pubsub::SubscribeSocket::Handler {
    std::uint64_t next = 1;
    std::uint64_t arrived = 0;
    std::uint64_t wrong = 0;
    bool closed = false;
    netio::RegisteredBuffer memory{4096, netio::Access::send};
    Publisher publisher{*transport, options(), *this};
    pubsub::SubscribeSocket subscriber{
        *transport, {.publisher = publisher.endpoints().front().address}, *this};

    Published() {
        subscriber.subscribe(one_fid);
        exchange();
        publish(); // under way when main returns
    }
    // Until some more messages have arrived.
    void exchange() {
        const std::uint64_t before = arrived;
        run_until(loop, [&] {
            publish();
            return arrived >= before + 50 || closed;
        });
    }
    void publish() {
        Status status = Status::ok;
        if constexpr (std::is_same_v<Publisher, pubsub::PublishSocket>) {
            std::memcpy(memory.data(), &next, sizeof next);
            status = publisher.publish(pubsub::Fid{1}, memory.slice(0, 8), netio::Cookie{1});
        } else {
            status = publisher.publish(pubsub::Fid{1}, std::as_bytes(std::span{&next, 1}));
            publisher.flush();
        }
        if (status == Status::ok) ++next;
    }
    static auto options() {
        typename Publisher::Options options;
        options.publisher.addresses = {any_port};
        return options;
    }
    void on_message(pubsub::SubscribeSocket&, pubsub::Fid, std::span<const std::byte> message,
                    std::uint8_t) override {
        if (message.size() != 8) ++wrong;
        ++arrived;
    }
    void on_closed(pubsub::SubscribeSocket&, const netio::Closed& why, bool) override {
        closed = true;
        std::printf("closed: %s\n", to_string(why).c_str());
    }
    void on_closed(pubsub::Publisher&, const netio::Closed&) override {}
    void on_publish_completed(pubsub::PublishSocket&, netio::Cookie,
                              const pubsub::PublicationOutcome&) {}
};
using Buffered = Published<pubsub::BufferedPublishSocket>;
using Unbuffered = Published<pubsub::PublishSocket>;

struct Blocking final : Subject {
    stream::BlockingListener listener{"127.0.0.1:0"};
    std::optional<stream::BlockingStream> near;
    std::optional<stream::BlockingStream> far;
    Blocking() {
        std::thread connecting{
            [&] { near.emplace(stream::BlockingStream::connect(to_string(listener.address()))); }};
        far.emplace(listener.accept());
        connecting.join();
        near->write(std::array<std::byte, 1000>{});
    }
};

struct TwoClients final : Subject {
    pubsub::Client publisher{options_to_publish()};
    pubsub::Client subscriber{
        pubsub::Client::Options{.publishers = {publisher.endpoints().front().address}}};
    TwoClients() {
        if (subscriber.subscribe({one_fid}, {}, 30s) != pubsub::Client::Answer::accepted)
            std::abort();
        publish();
    }
    void publish() {
        for (int i = 0; i < 100; ++i)
            static_cast<void>(publisher.publish(pubsub::Fid{1}, std::array<std::byte, 100>{}));
    }
    static pubsub::Client::Options options_to_publish() {
        pubsub::Client::Options options;
        options.publish.emplace();
        options.publish->publisher.addresses = {any_port};
        return options;
    }
};

struct FrontDoor final : Subject {
    netio::Context context;
    netio::Publisher publisher{any_port, {.context = context}};
    netio::Subscriber subscriber{publisher.address()};
    FrontDoor() {
        subscriber.subscribe(1);
        if (!publisher.wait_for_subscribers(1, 30s)) std::abort();
        for (std::uint64_t i = 0; i < 100; ++i)
            publisher.publish_value(1, i);
        if (!subscriber.receive(30s)) std::abort();
    }
};

std::unique_ptr<Subject> make(std::string_view kind) {
    if (kind == "watches") return std::make_unique<Watches>();
    if (kind == "messages") return std::make_unique<Messages>();
    if (kind == "buffered") return std::make_unique<Buffered>();
    if (kind == "unbuffered") return std::make_unique<Unbuffered>();
    if (kind == "blocking") return std::make_unique<Blocking>();
    if (kind == "client") return std::make_unique<TwoClients>();
    if (kind == "front_door") return std::make_unique<FrontDoor>();
    std::abort();
}

// Destroyed after all static objects that the library creates at its first use in main().
std::unique_ptr<Subject> first;
// Created before main().
const char* const made_early = std::getenv("MADE_EARLY");
std::unique_ptr<Subject> early = made_early == nullptr ? nullptr : make(made_early);

int end_with(std::string_view kind, std::string_view place) {
    if (place == "first") first = make(kind);
    if (place == "late") {
        make(kind).reset(); // the library's static objects exist now
        static std::unique_ptr<Subject> late;
        late = make(kind);
    }
    return 0;
}

int end_elsewhere() {
    auto* const clients = new TwoClients; // never destroyed
    std::thread{[] {
        std::this_thread::yield();
        std::exit(0);
    }}.detach();
    for (;;)
        clients->publish();
}

// The loop is run by another thread while main returns.
template <typename Kind>
int end_while_running() {
    auto subject = std::make_unique<Kind>();
    EventLoop& loop = subject->loop;
    first = std::move(subject);
    std::atomic<bool> runs{false};
    static_cast<void>(loop.post([&] { runs = true; }));
    std::thread{[&loop] { loop.run(); }}.detach();
    while (!runs)
        std::this_thread::yield();
    return 0;
}

// In the child.
int after_fork(std::string_view how, std::unique_ptr<Buffered>& inherited) {
    if (how == "exit") return 0; // destroys what is static
    if (how == "destroy") inherited.reset();
    if (how == "use") inherited->loop.run_once();
    if (how == "publish")
        for (;;)
            inherited->publish();
    if (how == "fresh") {
        Buffered own;
        own.exchange();
        return own.closed || own.wrong > 0 ? 1 : 0;
    }
    return 0;
}

int fork_and_go_on(std::string_view how) {
    static auto pair = std::make_unique<Buffered>();
    int failed = 0;
    for (int i = 0; i < 3; ++i) {
        std::fflush(stdout);
        const pid_t child = ::fork();
        if (child == 0) std::exit(after_fork(how, pair));
        pair->exchange();
        int status = 0;
        ::waitpid(child, &status, 0);
        if (status != 0) ++failed;
        pair->exchange();
    }
    std::printf("children failed: %d, parent disturbed: %d\n", failed,
                pair->closed || pair->wrong > 0 ? 1 : 0);
    return 0;
}

int publish_from_a_wrong_thread() {
    Buffered pair;
    std::atomic<bool> runs{false};
    static_cast<void>(pair.loop.post([&] { runs = true; }));
    std::thread running{[&] { pair.loop.run(); }};
    while (!runs)
        std::this_thread::yield();
    std::uint64_t bytes = 0;
    for (int i = 0; i < 100'000; ++i)
        static_cast<void>(
            pair.publisher.publish(pubsub::Fid{1}, std::as_bytes(std::span{&bytes, 1})));
    std::_Exit(0); // nobody has noticed
}

} // namespace

int main(int argc, char** argv) try {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const std::string_view kind = argc > 2 ? argv[2] : "";
    int status = 2;
    if (what == "exit") status = end_with(kind, argc > 3 ? argv[3] : "");
    if (what == "exit_elsewhere") status = end_elsewhere();
    if (what == "running" && kind == "buffered") status = end_while_running<Buffered>();
    if (what == "running" && kind == "watches") status = end_while_running<Watches>();
    if (what == "fork") status = fork_and_go_on(kind);
    if (what == "wrong_thread") status = publish_from_a_wrong_thread();
    std::puts("main returns");
    std::fflush(stdout);
    return status;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
