// SPDX-License-Identifier: Apache-2.0

// A program that ends, forks or calls from a wrong thread while its sockets are in use:
//   process_subject exit KIND PLACE   main returns; PLACE: early, first, late (see below)
//   process_subject exit_elsewhere KIND  another thread calls exit() while main uses the object
//   process_subject exit_while_waiting KIND  the same while main waits for nothing; exit() destroys
//                                     the object
//   process_subject exit_in_call KIND the same while main waits in a call of the object
//   process_subject running KIND      main returns while another thread runs the loop
//   process_subject fork HOW          a child is forked; HOW: fresh, exit, destroy, use
//   process_subject fork_with KIND    a child calls exit() while its parent uses the object
//   process_subject wrong_thread      messages are published from a thread that is not the loop's

#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/message_socket.hpp"
#include "netio/messages/queued.hpp"
#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"
#include "netio/messages/sender.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/pubsub.hpp"
#include "pubsub/recording/recording_reader.hpp"
#include "pubsub/recording/recording_writer.hpp"
#include "pubsub/subscriber/fid_query.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"
#include "stream/socket/blocking_stream.hpp"
#include "stream/socket/stream_listener.hpp"
#include "stream/socket/stream_socket.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

// A forked child frees nothing that it has inherited, and libcrypto keeps memory of ended threads.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the address sanitizer asks it for its options
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
    return "detect_leaks=0";
}

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
    virtual void use() = 0;
    virtual void wait() { ::pause(); } // longer than a test, unless the object ends it
};

void run_until(EventLoop& loop, const std::function<bool()>& done) {
    while (!done())
        loop.run_once(loop.now() + 10ms);
}

enum class Keys : std::uint8_t { none, privacy };

struct Loop : Subject {
    explicit Loop(Keys keys = Keys::none) {
        if (keys == Keys::none) return;
        files.emplace().permit(7, "services=all rma fids=0-63:block");
        server = std::make_shared<netio::ServerKeys>(
            loop, netio::ServerKeys::Options{.file = files->site(),
                                             .min_protection = netio::access::Protection::privacy});
        client = std::make_shared<netio::ClientKey>(netio::ClientKey::Options{
            .file = files->client(7), .protection = netio::access::Protection::privacy});
    }
    void use() override { loop.run_once(loop.now() + 1ms); }

    EventLoop loop;
    std::unique_ptr<netio::Transport> transport = netio::open_fabric(loop);
    std::optional<netio::test::KeyFiles> files;
    std::shared_ptr<netio::ServerKeys> server; // null: no keys
    std::shared_ptr<const netio::ClientKey> client;
};

// A directory for a registry. Announcements in it are withdrawn before it is removed.
struct BusFolder {
    BusFolder() = default;
    ~BusFolder() {
        if (::getpid() != process) return; // a forked child
        for (const auto& left : std::filesystem::directory_iterator{folder.path()})
            std::printf("left on the bus: %s\n", left.path().filename().c_str());
    }
    BusFolder(const BusFolder&) = delete;
    BusFolder& operator=(const BusFolder&) = delete;
    std::string path() const { return folder.path().string(); }
    netio::test::TemporaryFolder folder;
    const pid_t process = ::getpid();
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
    netio::ListenSocket listener{*transport, {.listen = {any_port}, .keys = server}, *this};
    netio::BufferedSendSocket sender{*transport, {.socket = {.key = client}}, *this};
    explicit Messages(Keys keys = Keys::none) : Loop{keys} {
        sender.connect(listener.endpoints().front().address);
        run_until(loop, [&] { return sender.is_connected(); });
        send();
        run_until(loop, [&] { return arrived > 0; });
        send(); // in flight when main returns
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
        *transport, {.publisher = publisher.endpoints().front().address, .key = client}, *this};

    explicit Published(Keys keys = Keys::none) : Loop{keys} {
        subscriber.subscribe(one_fid);
        exchange();
        publish(); // in flight when main returns
    }
    // Runs until some more messages have arrived.
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
    void use() override {
        publish();
        Loop::use();
    }
    auto options() const {
        typename Publisher::Options options;
        options.publisher.listen = {any_port};
        options.publisher.keys = server;
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

// A query whose answer is in transit.
struct Query final : Loop, pubsub::Publisher::Handler {
    pubsub::BufferedPublishSocket publisher{
        *transport, {.publisher = {.listen = {any_port}}}, *this};
    std::optional<pubsub::FidQuery> query;
    bool answered = false;
    Query() {
        ask();
        run_until(loop, [&] { return answered; });
        ask();
        loop.run_once();
    }
    void ask() {
        query.emplace(*transport,
                      pubsub::FidQuery::Options{.publisher = publisher.endpoints().front().address},
                      [&](const pubsub::FidQuery::Result&) { answered = true; });
    }
};

// Two streams with bytes in flight in both directions, and receives that wait for more.
struct Streams final : Loop, stream::StreamListener::Handler, stream::StreamSocket::Handler {
    static constexpr std::size_t message_bytes = 1 << 20;
    std::uint64_t arrived = 0;
    netio::RegisteredBuffer out{message_bytes, netio::Access::send};
    netio::RegisteredBuffer in{2 * message_bytes, netio::Access::remote_write};
    stream::StreamListener listener{*transport, {.listen = {any_port}, .keys = server}, *this};
    std::unique_ptr<stream::StreamSocket> near;
    stream::StreamSocket far{*transport, {.key = client}, *this};
    explicit Streams(Keys keys = Keys::none) : Loop{keys} {
        far.connect(listener.endpoints().front().address);
        run_until(loop, [&] { return near && near->is_connected() && far.is_connected(); });
        use();
        run_until(loop, [&] { return arrived > 0; });
        use();
    }
    void use() override {
        for (stream::StreamSocket* const end : {near.get(), &far}) {
            const std::size_t place = end == &far ? message_bytes : 0;
            static_cast<void>(
                end->receive(in.slice(place, message_bytes), netio::Cookie{1}, stream::Fill::all));
            static_cast<void>(end->send(out.slice(0, message_bytes), netio::Cookie{2}));
        }
        Loop::use();
    }
    void on_incoming(stream::IncomingStream& incoming) override {
        near = incoming.accept({}, *this);
    }
    void on_send_completed(stream::StreamSocket&, netio::Cookie,
                           netio::Completion::Outcome) override {}
    void on_received(stream::StreamSocket&, const stream::Received& received) override {
        arrived += received.bytes;
    }
    void on_closed(stream::StreamSocket&, const netio::Closed& why) override {
        std::printf("closed: %s\n", to_string(why).c_str());
    }
};

// A publisher, found in a registry or by its address.
struct Found final : Loop,
                     pubsub::Publisher::Handler,
                     pubsub::Announcer::Handler,
                     pubsub::Subscriptions::Handler {
    using Source = pubsub::Subscriptions::Source;
    std::uint64_t arrived = 0;
    BusFolder bus;
    pubsub::BufferedPublishSocket publisher{*transport, options(), *this};
    std::unique_ptr<pubsub::Announcer> announcer;
    std::unique_ptr<pubsub::Discovery> discovery;
    std::optional<pubsub::Subscriptions> subscriptions;

    explicit Found(bool on_bus, Keys keys = Keys::none) : Loop{keys} {
        pubsub::Subscriptions::Options options;
        options.socket.key = client;
        if (on_bus) {
            announcer = pubsub::announce(
                loop, bus.path(),
                {.name = "subject",
                 .instance = pubsub::draw_instance(),
                 .fids = {{.fids = one_fid, .meaning = {}}},
                 .addresses = {pubsub::to_announced_address(publisher.endpoints().front())},
                 .host = pubsub::this_host()},
                *this);
            discovery = pubsub::open_bus(loop, bus.path());
            options.bus = discovery.get();
        } else {
            options.publishers = {publisher.endpoints().front().address};
        }
        subscriptions.emplace(*transport, options, *this);
        subscriptions->subscribe(one_fid);
        run_until(loop, [&] {
            publish();
            return arrived >= 50;
        });
        publish();
    }
    void publish() {
        static_cast<void>(publisher.publish(pubsub::Fid{1}, std::array<std::byte, 100>{}));
        publisher.flush();
    }
    void use() override {
        publish();
        Loop::use();
    }
    pubsub::BufferedPublishSocket::Options options() const {
        pubsub::BufferedPublishSocket::Options options;
        options.publisher.listen = {any_port};
        options.publisher.keys = server;
        return options;
    }
    void on_message(pubsub::Subscriptions&, const Source&, pubsub::Fid, std::span<const std::byte>,
                    std::uint8_t) override {
        ++arrived;
    }
    void on_warning(const std::string& what) override { std::printf("%s\n", what.c_str()); }
    void on_warning(pubsub::Subscriptions&, const std::string& what) override {
        std::printf("%s\n", what.c_str());
    }
    void on_closed(pubsub::Publisher&, const netio::Closed&) override {}
    void on_closed(pubsub::Subscriptions&, const Source&,
                   const pubsub::Subscriptions::Ending& end) override {
        std::printf("closed: %s\n", to_string(end.closed).c_str());
    }
};

// An announcement and a registry reader that has seen it.
struct Announced final : Loop, pubsub::Announcer::Handler, pubsub::Discovery::Handler {
    bool seen = false;
    BusFolder bus;
    std::unique_ptr<pubsub::Announcer> announcer = pubsub::announce(
        loop, bus.path(),
        {.name = "subject",
         .instance = pubsub::draw_instance(),
         .addresses = {"tcp:127.0.0.1:1", "tcp:no..name:1"}}, // looked up on a thread of its own
        *this);
    std::unique_ptr<pubsub::Discovery> discovery = pubsub::open_bus(loop, bus.path());
    Announced() {
        discovery->watch(*this);
        run_until(loop, [&] { return seen; });
    }
    void on_announced(const pubsub::Announcement&) override { seen = true; }
    void on_gone(const std::string&) override {}
    void on_warning(const std::string&) override {}
};

struct Blocking final : Subject {
    std::optional<netio::test::KeyFiles> files;
    std::optional<stream::BlockingListener> listener;
    std::optional<stream::BlockingStream> near;
    std::optional<stream::BlockingStream> far;
    explicit Blocking(Keys keys = Keys::none) {
        stream::BlockingStream::Options listening;
        stream::BlockingStream::Options connecting;
        if (keys == Keys::privacy) {
            files.emplace().permit(7, "services=all rma");
            listening.keys = netio::ServerKeys::Options{
                .file = files->site(), .min_protection = netio::access::Protection::privacy};
            connecting.stream.key = std::make_shared<netio::ClientKey>(netio::ClientKey::Options{
                .file = files->client(7), .protection = netio::access::Protection::privacy});
        }
        listener.emplace("127.0.0.1:0", listening);
        std::thread other{[&] {
            near.emplace(
                stream::BlockingStream::connect(to_string(listener->address()), connecting));
        }};
        far.emplace(listener->accept());
        other.join();
        use();
        near->write(std::array<std::byte, 1000>{});
    }
    void use() override {
        std::array<std::byte, 1000> bytes{};
        near->write(bytes);
        far->read_exactly(bytes);
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
    void use() override {
        static_cast<void>(publisher.try_publish(1, std::array<std::byte, 100>{}));
    }
    void wait() override {
        while (subscriber.receive(1h)) {
        }
    }
};

// They find each other through a registry.
struct FrontDoorOnBus final : Subject {
    BusFolder folder;
    netio::Bus bus{folder.path()};
    netio::Publisher publisher{any_port,
                               {.bus = bus, .name = "subject", .fids = netio::FidSet{{one_fid}}}};
    netio::Subscriber subscriber{bus};
    FrontDoorOnBus() {
        subscriber.subscribe(one_fid);
        if (!subscriber.wait_until_subscribed(30s)) std::abort();
        use();
    }
    void use() override {
        static_cast<void>(publisher.try_publish(1, std::array<std::byte, 100>{}));
    }
};

// A subscriber with a key, and a publisher that requires it.
struct KeyedSubscriber final : Loop, pubsub::Publisher::Handler {
    pubsub::BufferedPublishSocket publisher{
        *transport, {.publisher = {.listen = {any_port}, .keys = server}}, *this};
    netio::Subscriber subscriber{publisher.endpoints().front().address, {.key = client}};
    pubsub::MessageBatch batch;
    KeyedSubscriber() : Loop{Keys::privacy} {
        subscriber.subscribe(one_fid);
        run_until(loop, [&] {
            publish();
            return subscriber.receive(batch, 0ms) > 0;
        });
    }
    void publish() {
        static_cast<void>(publisher.publish(pubsub::Fid{1}, std::array<std::byte, 100>{}));
        publisher.flush();
    }
    void use() override {
        publish();
        static_cast<void>(subscriber.receive(batch, 0ms));
        Loop::use();
    }
};

// It shares its context with its receiver.
struct Sending final : Subject, netio::ListenSocket::Handler {
    netio::Context context;
    std::unique_ptr<netio::ListenSocket> receiver;
    std::optional<netio::Sender> sender;
    std::atomic<bool> has_arrived{false};
    const pid_t process = ::getpid();
    Sending() {
        netio::Address address;
        context.run([&] {
            receiver = std::make_unique<netio::ListenSocket>(
                context.transport(), netio::ListenSocket::Options{.listen = {any_port}}, *this);
            address = receiver->endpoints().front().address;
        });
        sender.emplace(address, netio::Sender::Options{.context = context});
        sender->send("a text");
        while (!has_arrived)
            std::this_thread::yield();
    }
    ~Sending() override {
        sender.reset();
        if (::getpid() == process) context.run([this] { receiver.reset(); });
    }
    void use() override { static_cast<void>(sender->try_send("a text")); }
    void on_message(netio::ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {
        has_arrived = true;
    }
    void on_closed(netio::ReceiveSocket&, const netio::Closed&) override {}
};

// Messages in both directions; some are kept until everything else is gone.
struct TwoWay final : Loop {
    std::vector<netio::KeptBytes> kept; // destroyed last
    std::unique_ptr<netio::MessageSocket> near;
    netio::MessageListener listener{
        *transport, {.listen = {any_port}, .keys = server}, [this](netio::IncomingPeer& peer) {
            near =
                peer.accept({}, {.on_message = [this](const netio::IncomingMessage& message) {
                                static_cast<void>(near->send(message.bytes())); // back to the peer
                            }});
        }};
    netio::MessageSocket far{
        *transport, {.key = client}, {.on_message = [this](const netio::IncomingMessage& message) {
            if (kept.size() < 4) kept.push_back(message.keep());
        }}};
    explicit TwoWay(Keys keys = Keys::none) : Loop{keys} {
        far.connect(listener.endpoints().front().address);
        run_until(loop, [&] { return far.is_connected(); });
        for (const std::size_t bytes : {100U, 100U, 20'000U, 60'000U})
            send(bytes);
        run_until(loop, [&] { return kept.size() == 4; });
        send(20'000); // in flight when main returns
    }
    void send(std::size_t bytes) {
        static_cast<void>(far.send(std::vector<std::byte>(bytes)));
        far.flush();
    }
    void use() override {
        send(20'000);
        Loop::use();
    }
};

// A connection that receives nothing until messages that the user keeps are returned. They are
// destroyed before it.
struct Starved final : Loop {
    std::unique_ptr<netio::MessageSocket> near;
    netio::MessageListener listener{
        *transport, {.listen = {any_port}}, [this](netio::IncomingPeer& peer) {
            near = peer.accept({.session = {.keep_limit_bytes = std::size_t{1} << 18}},
                               {.on_message = [this](const netio::IncomingMessage& message) {
                                   kept.push_back(message.keep());
                               }});
        }};
    netio::MessageSocket far{*transport, {}, {}};
    std::vector<netio::KeptBytes> kept;
    Starved() {
        far.connect(listener.endpoints().front().address);
        run_until(loop, [&] { return far.is_connected(); });
        std::size_t seen = 0;
        for (int idle_turns = 0; idle_turns < 20;) {
            while (far.send(std::vector<std::byte>(20'000)) == Status::ok) {
            }
            loop.run_once(loop.now() + 1ms);
            idle_turns = std::exchange(seen, kept.size()) == kept.size() ? idle_turns + 1 : 0;
        }
    }
};

// A reply and a request that outlive the objects that they belong to, and a thread that answers.
struct Requests final : Subject {
    netio::Context context;
    std::optional<netio::Request> held;
    netio::Reply open;
    netio::KeptBytes reply;
    netio::Responder responder{any_port};
    netio::Requester requester{responder.endpoints().front().address, {.context = context}};
    Requests() {
        open = requester.send("a request without a reply");
        held = responder.receive(30s);
        if (!held) std::abort();
        use();
    }
    void use() override {
        netio::Reply later = requester.send(std::string(20'000, 'x'));
        auto request = responder.receive(30s);
        if (!request) std::abort();
        request->reply(request->bytes());
        auto part = later.next();
        if (!part) std::abort();
        reply = *std::move(part);
    }
    void wait() override { static_cast<void>(responder.receive(1h)); }
};

// It waits for a reply.
struct Requesting final : Subject {
    netio::Responder responder{any_port};
    netio::Requester requester{responder.endpoints().front().address};
    void use() override {}
    void wait() override {
        try {
            static_cast<void>(requester.request("a request without a reply", 1h));
        } catch (const netio::Error&) { // it was closed
        }
    }
};

// Sockets of a loop that deliver into a queue, and a thread that takes out of it.
struct Queueing final : Loop {
    netio::CompletionQueue queue;
    netio::RegisteredBuffer memory{20'000, netio::Access::send};
    netio::Queued<netio::ListenSocket> listener{queue, 1, *transport, {.listen = {any_port}}};
    netio::Queued<netio::SendSocket> sender{queue, 2, *transport, {}};
    std::atomic<int> arrived{0};
    std::thread taking;
    const pid_t process = ::getpid();
    Queueing() {
        sender->connect(listener->endpoints().front().address);
        run_until(loop, [&] { return sender->is_connected(); });
        taking = std::thread{[this] { take(); }};
        use();
        run_until(loop, [&] { return arrived > 0; });
    }
    ~Queueing() override {
        if (::getpid() != process) { // a child, which has no such thread
            taking.detach();
            return;
        }
        queue.close();
        taking.join();
    }
    void take() {
        std::vector<netio::QueueEvent> events(8);
        while (const std::size_t count = queue.dequeue(events, 1h))
            for (std::size_t at = 0; at < count; ++at)
                if (events[at].kind == netio::QueueEvent::Kind::message) ++arrived;
    }
    void use() override {
        static_cast<void>(sender.send(memory.slice(), netio::Cookie{1}));
        Loop::use();
    }
};

struct EmptyQueue final : Subject {
    netio::CompletionQueue queue;
    void use() override {}
    void wait() override {
        std::vector<netio::QueueEvent> events(8);
        static_cast<void>(queue.dequeue(events, 1h));
    }
};

// Messages of a subscriber that are kept until everything else is gone.
struct Keeping final : Subject {
    std::vector<netio::KeptMessage> kept; // destroyed last
    netio::Publisher publisher{any_port};
    netio::Subscriber subscriber{publisher.address()};
    Keeping() {
        subscriber.subscribe(1);
        if (!publisher.wait_for_subscribers(1, 30s)) std::abort();
        for (const std::size_t bytes : {100U, 20'000U, 200'000U, 1'000'000U})
            publisher.publish(1, std::vector<std::byte>(bytes));
        while (kept.size() < 4)
            if (auto next = subscriber.receive_kept(30s)) kept.push_back(*std::move(next));
    }
    void use() override {
        static_cast<void>(publisher.try_publish(1, std::vector<std::byte>(20'000)));
    }
};

// A recording that is being written, and one that is being read.
struct Recording final : Subject {
    netio::test::TemporaryFolder folder;
    netio::RecordingWriter writer{(folder.path() / "new.mcap").string()};
    std::optional<netio::RecordingReader> reader;
    std::vector<std::byte> message = std::vector<std::byte>(10'000);
    Recording() {
        const std::string path = (folder.path() / "old.mcap").string();
        {
            netio::RecordingWriter old{path};
            static_cast<void>(old.write({.fid = pubsub::Fid{1}, .bytes = message}));
            old.close();
        }
        reader.emplace(path);
        if (!reader->next()) std::abort();
        use();
    }
    void use() override {
        static_cast<void>(writer.write({.fid = pubsub::Fid{1}, .bytes = message}));
    }
};

std::unique_ptr<Subject> make(std::string_view kind) {
    // A peer that leaves while data is in flight is worth a line, and not what is tested here.
    netio::set_log([](std::string_view) {});
    if (kind == "watches") return std::make_unique<Watches>();
    if (kind == "messages") return std::make_unique<Messages>();
    if (kind == "messages_with_keys") return std::make_unique<Messages>(Keys::privacy);
    if (kind == "buffered") return std::make_unique<Buffered>();
    if (kind == "buffered_with_keys") return std::make_unique<Buffered>(Keys::privacy);
    if (kind == "unbuffered") return std::make_unique<Unbuffered>();
    if (kind == "unbuffered_with_keys") return std::make_unique<Unbuffered>(Keys::privacy);
    if (kind == "query") return std::make_unique<Query>();
    if (kind == "streams") return std::make_unique<Streams>();
    if (kind == "streams_with_keys") return std::make_unique<Streams>(Keys::privacy);
    if (kind == "subscriptions") return std::make_unique<Found>(false);
    if (kind == "subscriptions_with_keys") return std::make_unique<Found>(false, Keys::privacy);
    if (kind == "subscriptions_on_bus") return std::make_unique<Found>(true);
    if (kind == "announced") return std::make_unique<Announced>();
    if (kind == "blocking") return std::make_unique<Blocking>();
    if (kind == "blocking_with_keys") return std::make_unique<Blocking>(Keys::privacy);
    if (kind == "subscriber_with_key") return std::make_unique<KeyedSubscriber>();
    if (kind == "front_door_on_bus") return std::make_unique<FrontDoorOnBus>();
    if (kind == "sender") return std::make_unique<Sending>();
    if (kind == "two_way") return std::make_unique<TwoWay>();
    if (kind == "two_way_with_keys") return std::make_unique<TwoWay>(Keys::privacy);
    if (kind == "starved") return std::make_unique<Starved>();
    if (kind == "requests") return std::make_unique<Requests>();
    if (kind == "requesting") return std::make_unique<Requesting>();
    if (kind == "empty_queue") return std::make_unique<EmptyQueue>();
    if (kind == "queue") return std::make_unique<Queueing>();
    if (kind == "kept_messages") return std::make_unique<Keeping>();
    if (kind == "recording") return std::make_unique<Recording>();
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

int end_elsewhere(std::string_view kind) {
    Subject* const subject = make(kind).release(); // never destroyed
    std::thread{[] {
        std::this_thread::yield();
        std::exit(0);
    }}.detach();
    for (;;)
        subject->use();
}

int end_elsewhere_while_waiting(std::string_view kind) {
    first = make(kind);
    std::thread{[] { std::exit(0); }}.detach();
    for (;;)
        ::pause();
}

bool is_asleep(pid_t thread) {
    std::ifstream file{"/proc/self/task/" + std::to_string(thread) + "/stat"};
    std::string text;
    std::getline(file, text);
    return text.find(") S") != std::string::npos;
}

// The object is destroyed by another thread than the one that waits in it.
int end_in_call(std::string_view kind) {
    first = make(kind);
    std::atomic<bool> calls{false};
    std::thread{[&calls, main_thread = ::gettid()] {
        while (!calls || !is_asleep(main_thread))
            std::this_thread::yield();
        std::exit(0);
    }}.detach();
    calls = true;
    first->wait();
    for (;;)
        ::pause();
}

// Another thread runs the loop while main returns.
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

// Runs in the child.
int after_fork(std::string_view how, std::unique_ptr<Buffered>& inherited) {
    if (how == "exit") return 0; // destroys static objects
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

int fork_with(std::string_view kind) {
    first = make(kind);
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(10);
        std::exit(0); // destroys static objects
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) std::printf("the child ended with status %d\n", status);
    first->use();
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
    std::_Exit(0); // no failure was detected
}

} // namespace

int main(int argc, char** argv) try {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const std::string_view kind = argc > 2 ? argv[2] : "";
    int status = 2;
    if (what == "exit") status = end_with(kind, argc > 3 ? argv[3] : "");
    if (what == "exit_elsewhere") status = end_elsewhere(kind);
    if (what == "exit_while_waiting") status = end_elsewhere_while_waiting(kind);
    if (what == "exit_in_call") status = end_in_call(kind);
    if (what == "running" && kind == "buffered") status = end_while_running<Buffered>();
    if (what == "running" && kind == "watches") status = end_while_running<Watches>();
    if (what == "fork") status = fork_and_go_on(kind);
    if (what == "fork_with") status = fork_with(kind);
    if (what == "wrong_thread") status = publish_from_a_wrong_thread();
    std::puts("main returns");
    std::fflush(stdout);
    return status;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
