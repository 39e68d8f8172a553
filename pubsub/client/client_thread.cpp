// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client_thread.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/signals_blocked.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

void tell(const Client::Options& options, const std::string& event) {
    if (options.on_event) options.on_event(event);
}

// With room for the errands: of each destination, of the publisher, and of the client.
EventLoop::Options with_room(const Client::Options& options) {
    constexpr std::size_t of_others = 64;
    const std::size_t room = std::min(options.destination_limit, SIZE_MAX / 2) + of_others;
    EventLoop::Options loop = options.loop;
    loop.post_limit += std::min(room, SIZE_MAX - loop.post_limit);
    return loop;
}

} // namespace

ClientThread::ClientThread(Client::Options options, Client::Events events)
    : options_{std::move(options)}, loop_{with_room(options_)},
      close_{[this](auto task) { return post_errand(std::move(task)); },
             [this] { begin_to_close(); }},
      transport_{open_fabric(loop_, options_.fabric)},
      subscriber_{loop_,
                  options_,
                  std::move(events),
                  {.post = [this](auto task) { return post_errand(std::move(task)); },
                   .tell = [this](const std::string& line) { tell(options_, line); },
                   .ended = [this] { check_closed(); }}},
      destinations_{{.socket = options_.send,
                     .queue_bytes = options_.send_queue_bytes,
                     .limit = options_.destination_limit},
                    {.post = [this](auto task) { return post_errand(std::move(task)); },
                     .tell = [this](const std::string& line) { tell(options_, line); },
                     .ended = [this] { check_closed(); }}} {
    require_at_least("loop.post_limit", static_cast<std::int64_t>(options_.loop.post_limit), 1);
    destinations_.set_transport(*transport_);
    if (options_.publish) {
        publisher_ = std::make_unique<ClientPublisher>(
            *transport_, *options_.publish, options_.publish_queue_bytes, options_.bus,
            ClientPublisher::Calls{
                .post = [this](auto task) { return post_errand(std::move(task)); },
                .tell = [this](const std::string& line) { tell(options_, line); },
                .ended = [this] { check_closed(); }});
    }
    subscriber_.open(*transport_);
    const AllSignalsBlocked blocked;
    thread_ = std::thread{[this] { run(); }};
}

ClientThread::~ClientThread() {
    NETIO_CHECK_MSG(!is_own_thread(), "a client is not destroyed on its own thread");
    loop_.stop();
    if (thread_.joinable()) thread_.join();
}

void ClientThread::run() {
    loop_.run();
    if (publisher_) publisher_->take_no_more();
    destinations_.take_no_more();
    // What was posted before the end is done, and what it asks for is answered.
    closing_ = true;
    {
        const std::lock_guard lock{tasks_.mutex};
        tasks_.ended = true;
    }
    bool done = false;
    while (!loop_.post([&] { done = true; }))
        loop_.run_once();
    while (!done)
        loop_.run_once();
    subscriber_.end();
}

// --- any thread -----------------------------------------------------------------------------

bool ClientThread::post(std::function<void()> task) {
    const std::lock_guard lock{tasks_.mutex};
    if (tasks_.ended || tasks_.waiting.load() >= options_.loop.post_limit) return false;
    ++tasks_.waiting;
    const bool posted = loop_.post([this, task = std::move(task)] {
        --tasks_.waiting;
        task();
    });
    if (!posted) --tasks_.waiting;
    return posted;
}

bool ClientThread::post_errand(std::function<void()> task) {
    const std::lock_guard lock{tasks_.mutex};
    return !tasks_.ended && loop_.post(std::move(task));
}

bool ClientThread::subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                             Client::OnAnswer answer, TimePoint end) {
    for (const FidRange& range : fids)
        require_option(range.first <= range.last, "a range of fids ends before it begins");
    return post([this, fids = std::move(fids), policy, answer = std::move(answer), end] {
        subscriber_.ask(fids, policy, answer, end);
    });
}

bool ClientThread::unsubscribe(const FidRange& fids) {
    return post([this, fids] { subscriber_.unsubscribe(fids); });
}

Status ClientThread::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    if (!publisher_) return Status::no_subscribers;
    return publisher_->publish(fid, message, status);
}

bool ClientThread::wait_for_subscribers(std::size_t count,
                                        std::chrono::milliseconds timeout) const {
    return publisher_ && publisher_->wait_for_subscribers(count, timeout);
}

void ClientThread::announce(Announcement announcement) {
    require_option(publisher_ != nullptr, "a client that publishes nothing is not announced");
    require_option(!options_.bus.empty(), "a client without a bus is not announced");
    publisher_->announce(std::move(announcement));
}

std::vector<Endpoint> ClientThread::endpoints() const {
    return publisher_ ? publisher_->endpoints() : std::vector<Endpoint>{};
}

void ClientThread::close() {
    if (publisher_) publisher_->take_no_more();
    destinations_.take_no_more();
    close_.ask();
    if (is_own_thread()) return;
    subscriber_.queue().wait_for_end();
}

Client::Counters ClientThread::counters() const {
    const Destinations::Counted& sending = destinations_.counted();
    Client::Counters counters{.published = publisher_ ? publisher_->published() : 0,
                              .unpublished = publisher_ ? publisher_->unpublished() : 0,
                              .sent = sending.sent.load(std::memory_order_relaxed),
                              .unsent = sending.unsent.load(std::memory_order_relaxed),
                              .unconfirmed_frames =
                                  sending.unconfirmed_frames.load(std::memory_order_relaxed)};
    subscriber_.add_to(counters);
    return counters;
}

// --- its own thread -------------------------------------------------------------------------

void ClientThread::begin_to_close() {
    if (std::exchange(closing_, true)) return;
    subscriber_.close();
    if (publisher_) publisher_->close();
    destinations_.close();
    check_closed();
}

void ClientThread::check_closed() {
    if (closing_ && subscriber_.is_over() && (!publisher_ || publisher_->is_over()) &&
        destinations_.is_over())
        loop_.stop();
}

} // namespace netio::pubsub::inline v0_2
