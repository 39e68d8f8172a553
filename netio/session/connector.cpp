// SPDX-License-Identifier: Apache-2.0
#include "netio/session/connector.hpp"

#include "netio/access/auth.hpp"
#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/option_check.hpp"
#include "netio/session/client_key.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace netio::inline v0_3 {
namespace {

// In order of significance: a reason that the peer itself gave comes first.
constexpr std::array telling{
    CloseReason::rejected,       CloseReason::not_admitted,
    CloseReason::protocol_error, CloseReason::handshake_timeout,
    CloseReason::refused,        CloseReason::connect_timeout,
    CloseReason::lost,
};

// Retries after a listener closed a connection without an answer. A listener does so if a machine
// has too many unfinished connections, which finish soon.
constexpr unsigned retry_limit = 5;
constexpr std::chrono::milliseconds first_retry{20};

bool is_answer(const Closed& closed) {
    return closed.ended_unanswered || closed.reason == CloseReason::rejected ||
           closed.reason == CloseReason::refused || closed.reason == CloseReason::not_admitted ||
           closed.reason == CloseReason::protocol_error ||
           closed.reason == CloseReason::handshake_timeout;
}

std::ptrdiff_t rank(const Closed& closed) {
    return std::ranges::find(telling, closed.reason) - telling.begin();
}

// The most significant reason why routes failed, with every reason in its detail.
Closed all_reasons(const std::vector<Closed>& reasons) {
    if (reasons.empty()) return {.reason = CloseReason::failed, .detail = "no route was tried"};
    Closed all = *std::ranges::min_element(reasons, {}, rank);
    all.detail.clear();
    for (const Closed& one : reasons) {
        if (!all.detail.empty()) all.detail += "; ";
        all.detail += one.detail;
    }
    return all;
}

} // namespace

void require_remote(const Address& remote) {
    const std::size_t colon = remote.host.find(':');
    const bool has_port = colon != std::string::npos && colon == remote.host.rfind(':');
    require_option(!has_port, "'" + remote.host +
                                  "' is not a host: it has a port; give both in an Address, as in "
                                  "{\"10.0.0.1\", 1234}, or use parse_address(\"10.0.0.1:1234\")");
    require_option(!remote.host.empty(), "the host of an address to connect to is missing");
    require_option(remote.port != 0, "'" + to_string(remote) +
                                         "' is not an address to connect to: port 0 is not valid; "
                                         "use the port where the peer listens");
}

Connector::Connector(Transport& transport, Handler& handler, std::chrono::milliseconds slot_timeout)
    : transport_{transport}, handler_{handler}, slot_{transport.attempts(),
                                                      [this] { turn_.start(Duration::zero()); }},
      slot_timeout_{slot_timeout}, turn_{transport.loop(), [this] { go_on(); }} {}

Connector::~Connector() {
    if (destroyed_ != nullptr) *destroyed_ = true;
}

void Connector::connect(std::vector<Address> remotes, const std::string& local_host,
                        std::shared_ptr<const ClientKey> key) {
    NETIO_CHECK_MSG(!connecting_, "it is connecting already");
    NETIO_CHECK(!remotes.empty());
    std::ranges::for_each(remotes, require_remote);
    connecting_ = true;
    key_ = std::move(key);
    local_host_ = local_host;
    remotes_ = std::move(remotes);
    std::ranges::reverse(remotes_);
    search();
}

void Connector::look_at_key() const {
    if (!key_) return;
    const std::string problem = key_->look();
    Observer* const observer = transport_.loop().observer;
    if (!problem.empty() && observer != nullptr)
        observer->on_key_file_problem(problem + "; the previous keys stay in force");
}

void Connector::search() {
    const Address remote = std::move(remotes_.back());
    remotes_.pop_back();
    try {
        search_ = transport_.find_routes(remote, local_host_, [this, remote](FoundRoutes found) {
            if (found.routes.empty()) {
                reasons_.push_back(
                    {.reason = CloseReason::unreachable,
                     .detail = "cannot connect to " + to_string(remote) + ": " + found.problem});
            }
            on_found(std::move(found));
        });
    } catch (const std::system_error& error) { // no thread or no descriptor
        reasons_.push_back(
            {.reason = CloseReason::failed,
             .detail = "cannot look for a route to " + to_string(remote) + ": " + error.what()});
        turn_.start(Duration::zero());
    }
}

void Connector::on_found(FoundRoutes found) {
    look_at_key(); // not in connect(): a call never calls back, nor notifies the observer
    routes_ = std::move(found.routes);
    std::ranges::reverse(routes_);
    if (routes_.empty())
        return turn_.start(Duration::zero()); // a search must not be destroyed in its callback
    go_on();
}

void Connector::try_next(const Closed& closed) {
    NETIO_CHECK_MSG(connecting_, "there is no route that could have failed");
    if (is_answer(closed)) slot_.note_answer(transport_.loop().now());
    again_ = current_ && current_->auth && current_->auth->take_again();
    if (again_) return turn_.start(Duration::zero()); // the attempt keeps its slot
    slot_.leave();
    if (may_retry(closed)) {
        again_ = true;
        const auto pause = first_retry * (1U << retries_++);
        return turn_.start(pause + pause * (transport_.draw_number() % 64) / 64);
    }
    tell_observer(closed);
    reasons_.push_back(closed);
    turn_.start(Duration::zero());
}

bool Connector::may_retry(const Closed& closed) {
    return current_ && closed.ended_unanswered && retries_ < retry_limit;
}

void Connector::tell_observer(const Closed& closed) const {
    Observer* const observer = transport_.loop().observer;
    if (observer == nullptr || !current_) return;
    observer->on_route_failed({.provider = current_->provider,
                               .remote = current_->remote,
                               .closed = closed,
                               .is_last = routes_.empty() && remotes_.empty()});
}

void Connector::close() {
    NETIO_CHECK_MSG(connecting_, "there is nothing to close");
    cancel();
    connecting_ = true;
    reasons_.push_back({.reason = CloseReason::local, .detail = "closed before it was connected"});
    turn_.start(Duration::zero());
}

void Connector::cancel() noexcept {
    connecting_ = false;
    search_.reset();
    turn_.cancel();
    remotes_.clear();
    routes_.clear();
    current_.reset();
    again_ = false;
    retries_ = 0;
    slot_.note_answer(transport_.loop().now());
    slot_.leave();
    reasons_.clear();
}

void Connector::go_on() {
    if (slot_.is_waiting()) return wait_on();
    if (std::exchange(again_, false)) return leave();
    if (slot_.is_held()) return give_current(); // it was waiting for the slot
    next_route();
}

void Connector::next_route() {
    if (routes_.empty() && !remotes_.empty()) return search();
    if (routes_.empty()) return give_up(all_reasons(reasons_));
    current_ = target_of(routes_.back());
    retries_ = 0;
    routes_.pop_back();
    leave();
}

// Starts the attempt at once, or when there is a slot for one more unanswered attempt.
void Connector::leave() {
    if (slot_.is_held() || slot_.enter(current_->remote)) return give_current();
    waits_since_ = transport_.loop().now();
    turn_.start(slot_timeout_);
}

// Waits longer while the address answers other attempts, because then they only come first.
void Connector::wait_on() {
    const TimePoint since = std::max(waits_since_, slot_.last_answer());
    const TimePoint until = since + slot_timeout_;
    if (transport_.loop().now() < until) return turn_.start_at(until);
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(slot_timeout_).count();
    slot_.leave();
    try_next({.reason = CloseReason::connect_timeout,
              .detail = "no answer from " + to_string(current_->remote) + " within " +
                        std::to_string(time) + " ms to the " +
                        std::to_string(transport_.attempts().per_address()) +
                        " attempts before this one (attempts_per_address_limit)"});
}

Session::Target Connector::target_of(const Route& route) const {
    return {.provider = route.provider,
            .remote = route.remote,
            .local_host = route.local_host,
            .offer = route.offer,
            .auth = key_ ? key_->dial(route.dialled) : nullptr};
}

void Connector::give_current() {
    const Session::Target given = *current_; // this may be destroyed
    const DestructionWatch watch{destroyed_};
    try {
        handler_.on_route(given);
    } catch (const FabricError& error) {
        if (watch.destroyed() || !connecting_) return;
        try_next({.reason = CloseReason::failed, .detail = error.what()});
    }
}

void Connector::give_up(const Closed& closed) {
    cancel();
    handler_.on_connect_failed(closed); // may destroy this
}

} // namespace netio::inline v0_3
