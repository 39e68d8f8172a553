// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/client.hpp"

#include "netio/base/option_check.hpp"
#include "pubsub/client/client_thread.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {

Client::Client(Options options) : Client{std::move(options), Events{}} {}

Client::Client(Options options, Events events)
    : thread_{new ClientThread{std::move(options), std::move(events)}} {}

Client::~Client() = default;

bool Client::subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                       OnAnswer answer) {
    return thread_->subscribe(std::move(fids), policy, std::move(answer), TimePoint::max());
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
    timeout = thread_->is_own_thread()
                  ? std::chrono::milliseconds{0}
                  : std::clamp(timeout, std::chrono::milliseconds{0}, longest_time);
    const auto promise = std::make_shared<std::promise<Answer>>();
    std::future<Answer> answer = promise->get_future();
    // When the time is over nobody listens, and nothing is kept for him.
    const bool asked = thread_->subscribe(
        std::move(fids), policy, [promise](Answer told) { promise->set_value(told); },
        Clock::now() + timeout);
    if (!asked) return Answer::closed;
    return answer.wait_for(timeout) == std::future_status::ready ? answer.get() : Answer::pending;
}

bool Client::unsubscribe(const FidRange& fids) {
    return thread_->unsubscribe(fids);
}

Status Client::publish(Fid fid, std::span<const std::byte> message, std::uint8_t status) {
    return thread_->publish(fid, message, status);
}

bool Client::wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const {
    return thread_->wait_for_subscribers(count, thread_->is_own_thread()
                                                    ? std::chrono::milliseconds{0}
                                                    : std::min(timeout, longest_time));
}

void Client::announce(Announcement announcement) {
    thread_->announce(std::move(announcement));
}

Status Client::send(const Address& to, std::span<const std::byte> message) {
    return thread_->destinations().send(to, message);
}

void Client::disconnect(const Address& from) {
    thread_->destinations().disconnect(from);
}

bool Client::post(std::function<void()> task) {
    return thread_->post(std::move(task));
}

std::size_t Client::poll(MessageBatch& batch, std::chrono::milliseconds timeout) {
    return thread_->queue().poll(batch, timeout);
}

std::size_t Client::poll(std::vector<Message>& out, std::size_t at_most,
                         std::chrono::milliseconds timeout) {
    return thread_->queue().poll(out, at_most, timeout);
}

int Client::pollable_fd() const noexcept {
    return thread_->queue().pollable_fd();
}

void Client::close() {
    thread_->close();
}

Client::Counters Client::counters() const {
    return thread_->counters();
}

std::vector<Endpoint> Client::endpoints() const {
    return thread_->endpoints();
}

} // namespace netio::pubsub::inline v0_2
