// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/signals_blocked.hpp"
#include "pubsub/client/client_publisher.hpp"
#include "pubsub/client/client_subscriber.hpp"
#include "pubsub/client/destinations.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace netio::pubsub::inline v0_3 {

namespace {

// Adds space for the client's own tasks: one of each destination, and those of the other parts.
EventLoop::Options with_room(const Client::Options& options) {
    constexpr std::size_t of_others = 64;
    const std::size_t room = std::min(options.destination_limit, SIZE_MAX / 2) + of_others;
    EventLoop::Options loop = options.loop;
    loop.post_limit += std::min(room, SIZE_MAX - loop.post_limit);
    return loop;
}

} // namespace

// --- the loop and its thread ----------------------------------------------------------------

struct [[gnu::visibility("hidden")]] Client::Impl {
    Impl(Client::Options its_options, Client::Events events);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    // Any thread. Returns false if the task will not run. Up to `loop.post_limit` tasks wait at a
    // time.
    bool post(std::function<void()> task);
    // For tasks of the client itself, which have separate space.
    bool post_own(std::function<void()> task);
    bool subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                   Client::OnAnswer on_answer, TimePoint end);
    bool is_own_thread() const noexcept {
        return std::this_thread::get_id() == thread.get_id();
    }

    void run();
    // The functions below are called on the client's thread.
    void begin_to_close();
    void check_closed();

    struct Tasks {
        std::mutex mutex; // of `ended`, and held while posting
        bool ended = false;
        std::atomic<std::size_t> waiting{0}; // of the user
    };

    Client::Options options;
    EventLoop loop;
    Tasks tasks;
    ClientCalls calls;
    CoalescedTask close;
    // Used by its own thread.
    std::unique_ptr<Transport> transport;
    std::unique_ptr<ClientPublisher> publisher;
    ClientSubscriber subscriber;
    Destinations destinations;
    bool closing = false;
    std::thread thread; // last, because it uses the others
};

Client::Impl::Impl(Client::Options its_options, Client::Events events)
    : options{std::move(its_options)}, loop{with_room(options)},
      calls{.post = [this](std::function<void()> task) { return post_own(std::move(task)); },
            .report =
                [this](const std::string& line) {
                    if (options.on_event) options.on_event(line);
                },
            .ended = [this] { check_closed(); }},
      close{calls.post, [this] { begin_to_close(); }}, transport{open_fabric(loop, options.fabric)},
      subscriber{loop, options, std::move(events), calls},
      destinations{{.socket = options.send,
                    .queue_bytes = options.send_queue_bytes,
                    .limit = options.destination_limit},
                   calls} {
    require_at_least("loop.post_limit", static_cast<std::int64_t>(options.loop.post_limit), 1);
    destinations.set_transport(*transport);
    if (options.publish) {
        publisher = std::make_unique<ClientPublisher>(
            *transport, *options.publish, options.publish_queue_bytes, options.bus, calls);
    }
    subscriber.open(*transport);
    const AllSignalsBlocked blocked;
    thread = std::thread{[this] { run(); }};
}

Client::Impl::~Impl() {
    NETIO_CHECK_MSG(!is_own_thread(), "a client is not destroyed on its own thread");
    loop.stop();
    if (thread.joinable()) thread.join();
}

void Client::Impl::run() {
    loop.run();
    if (publisher) publisher->take_no_more();
    destinations.take_no_more();
    // Runs the tasks that were posted before the end; their calls get an answer.
    closing = true;
    {
        const std::lock_guard lock{tasks.mutex};
        tasks.ended = true;
    }
    bool done = false;
    while (!loop.post([&] { done = true; }))
        loop.run_once();
    while (!done)
        loop.run_once();
    subscriber.end();
}

bool Client::Impl::post(std::function<void()> task) {
    const std::lock_guard lock{tasks.mutex};
    if (tasks.ended || tasks.waiting.load() >= options.loop.post_limit) return false;
    ++tasks.waiting;
    const bool posted = loop.post([this, task = std::move(task)] {
        --tasks.waiting;
        task();
    });
    if (!posted) --tasks.waiting;
    return posted;
}

bool Client::Impl::post_own(std::function<void()> task) {
    const std::lock_guard lock{tasks.mutex};
    return !tasks.ended && loop.post(std::move(task));
}

bool Client::Impl::subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                             Client::OnAnswer on_answer, TimePoint end) {
    for (const FidRange& range : fids)
        require_option(range.first <= range.last, "a range of fids ends before it begins");
    return post([this, fids = std::move(fids), policy, on_answer = std::move(on_answer), end] {
        subscriber.subscribe(fids, policy, on_answer, end);
    });
}

void Client::Impl::begin_to_close() {
    if (std::exchange(closing, true)) return;
    subscriber.close();
    if (publisher) publisher->close();
    destinations.close();
    check_closed();
}

void Client::Impl::check_closed() {
    if (closing && subscriber.is_over() && (!publisher || publisher->is_over()) &&
        destinations.is_over())
        loop.stop();
}

// --- the public class -----------------------------------------------------------------------

Client::Client(Options options) : Client{std::move(options), Events{}} {}

Client::Client(Options options, Events events)
    : impl_{new Impl{std::move(options), std::move(events)}} {}

Client::~Client() = default;

bool Client::subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                       OnAnswer answer) {
    return impl_->subscribe(std::move(fids), policy, std::move(answer), TimePoint::max());
}

std::future<Client::Answer> Client::subscribe(std::vector<FidRange> fids,
                                              std::optional<SlowPolicy> policy) {
    const auto promise = std::make_shared<std::promise<Answer>>();
    std::future<Answer> future = promise->get_future();
    if (!subscribe(std::move(fids), policy,
                   [promise](Answer answer) { promise->set_value(answer); }))
        promise->set_value(Answer::closed);
    return future;
}

Client::Answer Client::subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                                 std::chrono::milliseconds timeout) {
    timeout = impl_->is_own_thread()
                  ? std::chrono::milliseconds{0}
                  : std::clamp(timeout, std::chrono::milliseconds{0}, longest_time);
    const auto promise = std::make_shared<std::promise<Answer>>();
    std::future<Answer> answer = promise->get_future();
    // The deadline also removes the waiting call from the client.
    const bool posted = impl_->subscribe(
        std::move(fids), policy, [promise](Answer result) { promise->set_value(result); },
        Clock::now() + timeout);
    if (!posted) return Answer::closed;
    return answer.wait_for(timeout) == std::future_status::ready ? answer.get() : Answer::pending;
}

bool Client::unsubscribe(const FidRange& fids) {
    Impl* const impl = impl_.operator->();
    return impl->post([impl, fids] { impl->subscriber.unsubscribe(fids); });
}

Status Client::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    ClientPublisher* const publisher = impl_->publisher.get();
    return publisher == nullptr ? Status::no_subscribers : publisher->publish(fid, message, status);
}

bool Client::wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const {
    const Impl& impl = *impl_.operator->();
    return impl.publisher && impl.publisher->wait_for_subscribers(
                                 count, impl.is_own_thread() ? std::chrono::milliseconds{0}
                                                             : std::min(timeout, longest_time));
}

void Client::announce(Announcement announcement) {
    const Impl& impl = *impl_.operator->();
    require_option(impl.publisher != nullptr, "a client that publishes nothing is not announced");
    require_option(!impl.options.bus.empty(), "a client without a bus is not announced");
    impl.publisher->announce(std::move(announcement));
}

Status Client::send(const Address& to, std::span<const std::byte> message) {
    return impl_->destinations.send(to, message);
}

void Client::disconnect(const Address& from) {
    impl_->destinations.disconnect(from);
}

bool Client::post(std::function<void()> task) {
    return impl_->post(std::move(task));
}

std::size_t Client::poll(MessageBatch& batch, std::chrono::milliseconds timeout) {
    return impl_->subscriber.queue().poll(batch, timeout);
}

std::size_t Client::poll(std::vector<Message>& out, std::size_t at_most,
                         std::chrono::milliseconds timeout) {
    return impl_->subscriber.queue().poll(out, at_most, timeout);
}

int Client::pollable_fd() const noexcept {
    return impl_->subscriber.queue().pollable_fd();
}

void Client::close() {
    Impl& impl = *impl_.operator->();
    if (impl.publisher) impl.publisher->take_no_more();
    impl.destinations.take_no_more();
    impl.close.request();
    if (!impl.is_own_thread()) impl.subscriber.queue().wait_for_end();
}

Client::Counters Client::counters() const {
    const Impl& impl = *impl_.operator->();
    const Destinations::Counted& sending = impl.destinations.counted();
    Counters counters{.published = impl.publisher ? impl.publisher->published() : 0,
                      .unpublished = impl.publisher ? impl.publisher->unpublished() : 0,
                      .sent = sending.sent.load(std::memory_order_relaxed),
                      .unsent = sending.unsent.load(std::memory_order_relaxed),
                      .unconfirmed_frames =
                          sending.unconfirmed_frames.load(std::memory_order_relaxed)};
    impl.subscriber.add_to(counters);
    return counters;
}

std::vector<Endpoint> Client::endpoints() const {
    const Impl& impl = *impl_.operator->();
    return impl.publisher ? impl.publisher->endpoints() : std::vector<Endpoint>{};
}

} // namespace netio::pubsub::inline v0_3
